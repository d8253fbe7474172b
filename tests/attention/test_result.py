"""A result in the hand: how it looks, what it is equal to, how its numbers are reached, and as tables of pandas."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

import probing
from codesyntax_dataset.errors import LedgerError, UnknownName
from codesyntax_metric.topk_uas import NOT_IN_MEAN, RULES
from probing.instruments.attention.result import ProbeResult


@pytest.fixture(scope="module")
def result(tiny_model, dataset_folder):
    return probing.probe(tiny_model, dataset_folder, "java", limit=6)


@pytest.mark.slow
def test_its_text_is_short_and_says_what_was_probed(result):
    first, signature = repr(result).splitlines()
    assert "tiny on codesyntax@" in first
    assert "PARTIAL: first 6 functions" in first
    assert signature == result.signature
    assert len(repr(result.ledger)) < 100


def test_no_head_is_named_best_at_nothing_and_the_mean_counts_its_own_edges(result, capsys):
    """On the terminal; the example has relations that no head finds, and some that the mean leaves out."""
    from probing.report.document import print_parts
    from probing.report.results import parts

    found = {name for name, of in result.relations.items() if of["first"]["1"]["score"]}
    names = np.array(result.ledger.relations)[result.ledger.relation]
    in_mean = str(np.count_nonzero(~np.isin(names, list(NOT_IN_MEAN))))
    assert 0 < len(found) < len(result.relations)
    print_parts(parts(result))
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    shown = {line[0]: line[-6] for line in lines if line and line[0] in result.relations}
    assert {name for name, head in shown.items() if head != "-"} == found
    (mean,) = [line for line in lines if line[:2] == ["mean", "of"]]
    assert mean[2] == str(len({*names} - {*NOT_IN_MEAN}))
    assert mean[4] == in_mean
    ledger, offsets = result.ledger, {}
    for name in {*names}:
        distances = Counter((ledger.first - ledger.head)[names == name].tolist())
        offsets[name] = 100 * distances.most_common(1)[0][1] / distances.total()
    assert {
        line[0]: line[-1] for line in lines if line[:1] and line[0] in shown and line[1] != "*"
    } == {name: f"{found:.1f}" for name, found in offsets.items() if name not in NOT_IN_MEAN}
    assert (
        mean[-1]
        == f"{np.mean([found for name, found in offsets.items() if name not in NOT_IN_MEAN]):.1f}"
    )


def test_numbers_are_keys_too(result):
    relation = result.relations["Call:func->args"]["first"]
    assert relation[3] is relation["3"]
    assert result.scores["last"][20] == result.scores["last"]["20"]
    for k in (0, 21, 1.0, None):
        with pytest.raises(KeyError):
            relation[k]
    assert json.loads(result.to_json())["scores"] == result.scores


def test_best_heads(result):
    heads = result.best_heads("any", 3)
    assert heads.keys() == result.relations.keys()
    ledger = result.ledger
    for relation, (layer, head) in heads.items():
        of_relation = ledger.relation == ledger.relations.index(relation)
        hits = (ledger.ranks[RULES.index("any")][of_relation] < 3).sum(axis=0)
        assert hits[layer, head] == hits.max()
    with pytest.raises(UnknownName, match="unknown rule 'firs': did you mean 'first'"):
        result.best_heads("firs")
    with pytest.raises(UnknownName, match="unknown k '21'"):
        result.best_heads(k=21)


def test_a_table_of_pandas(result):
    relations = result.to_pandas()
    assert len(relations) == len(result.relations) * 3 * 4
    means = relations[relations.in_mean].groupby(["rule", "k"]).score.mean()
    for rule in RULES:
        assert means[rule, 10] == pytest.approx(result.scores[rule]["10"])


@pytest.mark.slow
def test_equal_is_what_has_the_same_ranks_and_settings(
    result, tiny_model, dataset_folder, tmp_path
):
    loaded = probing.load(result.save(tmp_path))
    assert loaded == result
    assert loaded.ledger.digest() == result.ledger.digest()
    changed = np.array(loaded.ledger.ranks)
    changed[0, 0, 0, 0] ^= 1
    assert ProbeResult.from_ledger(dataclasses.replace(loaded.ledger, ranks=changed)) != result
    assert result != probing.probe(tiny_model, dataset_folder, "java", limit=5)
    with pytest.raises(LedgerError, match="none.json: No such file"):
        probing.load(tmp_path / "none.json")


@pytest.mark.slow
def test_python_m_probing_is_the_command_line():
    done = subprocess.run(
        [sys.executable, "-m", "probing", "--version"], capture_output=True, text=True, check=True
    )
    assert probing.__version__ in done.stdout


@pytest.mark.parametrize("ties", [-1, 10**400])
def test_a_number_of_ties_that_cannot_be_is_refused(result, ties):
    settings = {**result.ledger.settings, "ties": {**result.ledger.settings["ties"], "any": ties}}
    with pytest.raises(LedgerError, match="ties.any is "):
        ProbeResult.from_ledger(dataclasses.replace(result.ledger, settings=settings))
