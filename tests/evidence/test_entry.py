"""Entries: what honest evidence gives is read back, what is forged or broken is refused with its reason."""

from __future__ import annotations

import copy
import dataclasses
import functools
import itertools
import json
import os
import re

import datasets
import numpy as np
import pytest
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id
from hypothesis import given, settings
from hypothesis import strategies as st
from support.attacks import forgeries
from support.evidence.entries import of_model, other_model

from codesyntax_dataset.errors import EntryError
from codesyntax_dataset.protocol import BASELINES, BEYOND_OFFSET, PROTOCOLS, TABLE_KS
from codesyntax_metric.topk_uas import RULES
from probing.evidence import entry
from probing.evidence.gather import Probed, WholeSplits
from probing.evidence.protocols import MEASURES, SAME_RELATIONS
from probing.instruments.attention.result import ProbeResult

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def honest(evidence):
    """Of a model that is about as good as the combined baseline where it may guess often."""
    return of_model(evidence, "user/base", 0.5)


@pytest.fixture(scope="module")
def text(honest):
    return entry.load(json.dumps(honest).encode()).to_json()


def test_an_honest_entry_comes_back_as_it_was(evidence, honest, text, tmp_path):
    file = tmp_path / "entry.json"
    file.write_text(text)
    assert entry.load(file) == entry.load(text.encode())
    assert json.loads(text) == honest
    assert entry.load(file).to_json() == text
    assert len(text) < 24_000  # of 40 functions
    made = evidence.entry()
    assert entry.load(made.to_json().encode()) == made
    assert made.signature == evidence.probed.test.signature


def test_numbers_are_those_of_the_report(evidence):
    """Every score, bound, difference and p, though the entry has nothing but hits."""
    other = other_model(evidence, "user/base", 0.5)
    found, told = other.entry().scores(), other.scores
    means = {name: (told["protocols"][name]["scores"], told["differences"][name]) for name in PROTOCOLS}
    means[SAME_RELATIONS] = told["same_relations"]["scores"], told["same_relations"]["differences"]
    for (mean, rule, k), score in found.cells.items():
        if mean == BEYOND_OFFSET:
            at = MEASURES.index((rule, int(k)))
            chosen = other.beyond[1].chosen
            expected = chosen.hits.mean(chosen.system).at(at)[:3]
            *difference, p, _ = other.beyond_compared[1].mean.at(at)
        else:
            of_mean, tested = means[mean]
            expected, difference, p = of_mean[rule][k], tested[rule][k].difference, tested[rule][k].p
        assert (*score.mean, *score.difference, score.p) == pytest.approx((*expected, *difference, p), abs=1e-9)
        for kind in BASELINES if mean in PROTOCOLS else ():
            baseline = told["baselines"][mean][kind]["scores"][rule][k]
            assert found.baselines[kind][mean, rule, k].mean == pytest.approx(baseline, abs=1e-9)
    for protocol in PROTOCOLS:
        relations = told["protocols"][protocol]["relations"]
        combined = told["baselines"][protocol]["combined"]["relations"]
        assert {name for name, of in found.relations.items() if (protocol, "any", "3") in of.found} == set(relations)
        for name, relation in relations.items():
            of, about = found.relations[name], ("edges", "functions", "few_functions", "in_mean")
            assert [getattr(of, field) for field in about] == [relation[field] for field in about]
            for rule, k in itertools.product(RULES, TABLE_KS):
                best, cell = of.found[protocol, rule, k], relation[rule][k]
                assert list(best.score) == pytest.approx(cell["score"], abs=1e-9)
                assert (best.layer, best.head) == (cell["layer"], cell["head"])
                assert of.combined[protocol, rule, k] == pytest.approx(combined[name][rule][k].score[0], abs=1e-9)


@pytest.mark.parametrize("at", [(), ("settings",), ("run",), ("chosen_on",), ("ledgers",), ("published",)])
@pytest.mark.parametrize("field", ["signature", "scores", "p", "trusted"])
def test_a_number_that_is_derived_is_an_unknown_field(at, field, honest):
    """Nothing that follows from hits can be said."""
    forged = copy.deepcopy(honest)
    functools.reduce(dict.__getitem__, at, forged)[field] = 0.5
    with pytest.raises(EntryError, match=f"has an unknown field '{field}'"):
        entry.load(json.dumps(forged).encode())


def test_file_names_tell_settings_apart_and_are_safe(honest):
    names = {entry.load(json.dumps(honest).encode()).file_name}
    changes = {"revision": "1" * 40, "dtype": "bfloat16", "max_length": 100, "model": "user/tiny"}
    for name, value in changes.items():
        other = copy.deepcopy(honest)
        other["settings"][name] = value
        names.add(entry.load(json.dumps(other).encode()).file_name)
    assert len(names) == 5
    assert all(re.fullmatch(r"\w[\w.-]*\.json", name, re.ASCII) for name in names)


@pytest.mark.parametrize("forgery", forgeries.ENTRIES, ids=lambda forgery: forgery.name)
def test_forged_entries(forgery, honest, tmp_path):
    file = tmp_path / "entry.json"
    forgery.write(file, honest)
    with pytest.raises(EntryError, match=forgery.reason) as refused:
        entry.load(file)
    message = str(refused.value)
    assert len(message) < 400
    assert message.isprintable()


def test_names_of_models_are_those_of_the_hub(honest):
    for name in ("a", "user/a.b-c_d", "user/a.", "user./a", "a--b/c", "a/b.git", "a/.b", "a/b-", "a/b/c", "a" * 97):
        other = copy.deepcopy(honest)
        forgeries.settings(other, model=name)
        try:
            validate_repo_id(name)
        except HFValidationError:
            with pytest.raises(EntryError, match="as the Hub allows it"):
                entry.load(json.dumps(other).encode())
        else:
            assert json.loads(entry.load(json.dumps(other).encode()).to_json()) == other


def test_what_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")  # reading it would wait for ever
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(EntryError, match="expected a regular file"):
            entry.load(path)
    for path in (tmp_path / "nothing", "nul\0"):
        with pytest.raises(EntryError, match="cannot be read"):
            entry.load(path)


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_any_change_is_read_or_refused(text, data):
    """Nothing but EntryError is ever raised, and what is accepted is what was there."""
    forged = json.loads(text)
    for _ in range(data.draw(st.integers(1, 3))):
        forgeries.change(forged, data)
    changed = json.dumps(forged).encode()
    try:
        assert json.loads(entry.load(changed).to_json()) == json.loads(changed)
    except EntryError as refused:
        assert str(refused)


@settings(max_examples=30, deadline=None)
@given(place=st.integers(0), put=st.binary(max_size=8), cut=st.integers(0, 20))
def test_any_bytes_are_read_or_refused(text, place, put, cut):
    text = text.encode()
    place %= len(text)
    try:
        assert entry.load(text[:place] + put + text[place + cut :]).to_json()
    except EntryError as refused:
        assert str(refused)


WORDS = "self if return for in not None while raise def [ ( = + - . , : == import".split()


@pytest.fixture(scope="module")
def all_read(evidence, few_functions):
    """The scores of the tiny model, which reads all functions; the whole splits; and the code of test."""
    direction = evidence.probed.test.settings.direction
    code = datasets.load_dataset(str(few_functions), "python", split="test")["code"]
    return evidence.entry().scores(), WholeSplits(few_functions, "python", direction), list(code)


@pytest.mark.parametrize("word", WORDS)
def test_no_tokenizer_gains_by_reading_less(word, evidence, all_read):
    """It makes of a word more sub-tokens than a model reads, so that functions with it are skipped, here those of test
    of which heads find less than of others; the choice of heads stays."""
    honest, whole, codes = all_read
    found = honest.cells
    spelled = {place for place, code in enumerate(codes) if word in re.findall(r"\w+|[^\w\s]", code)}
    shares = dict(zip(evidence.hits["held-out"].functions.tolist(), honest.shares[0]))
    poor = sorted(spelled & shares.keys(), key=shares.get)[: max(1, len(spelled) // 2)]
    kept = np.setdiff1d(evidence.probed.test.ledger.function, poor)
    if len(kept) == len(shares):
        return
    probed = evidence.probed
    ledger = probed.test.ledger.only(kept)
    skips = {"more than 511 sub-tokens": len(shares) - len(kept)}
    less = ProbeResult.from_ledger(dataclasses.replace(ledger, settings={**ledger.settings, "skips": skips}))
    made = whole.evidence(Probed(less, probed.validation, probed.files)).entry()
    scores = made.scores()
    assert made.missed == len(shares) - len(kept)
    for cell, score in scores.cells.items():
        assert (score is None) == (found[cell] is None)
        assert score is None or score.mean.value <= found[cell].mean.value + 1e-9
    assert entry.load(made.to_json().encode()) == made
    assert set(scores.on_read) >= {"held-out", "published"}
