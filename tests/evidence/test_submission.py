"""Submissions: what honest evidence gives is read back, what is forged or broken is refused with its reason."""

from __future__ import annotations

import copy
import functools
import itertools
import json
import os
import re

import numpy as np
import pytest
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id
from hypothesis import given, settings
from hypothesis import strategies as st
from support.attacks import entries
from support.evidence.entries import entry_of, of_model, other_model
from support.evidence.hits_files import arrow_table, in_parquet, written

from codesyntax_dataset.errors import EntryError
from codesyntax_dataset.protocol import BASELINES, BEYOND_OFFSET, PROTOCOLS
from probing.evidence import submission
from probing.evidence.protocols import MEASURES, TABLE_MEASURES, TABLE_PLACES

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def honest(evidence):
    """Of a model that is about as good as the combined baseline where it may guess often."""
    return of_model(evidence, "user/base", 0.5)


@pytest.fixture(scope="module")
def data(honest):
    return written(honest)


@pytest.fixture(scope="module")
def few_relations(honest):
    """An entry of two relations in six functions, which is read sooner."""
    entry = copy.deepcopy(honest)
    entries.small(entry)
    submission.load(written(entry))
    return entry


def changed(honest, **fields):
    """A copy of an entry with other settings."""
    other = copy.deepcopy(honest)
    entries.settings(other, **fields)
    return submission.load(written(other))


def said(entry):
    """The fields that an entry was read from."""
    return entry.model_dump(mode="json", exclude_unset=True)


def test_an_honest_submission_comes_back_as_it_was(evidence, honest, data, tmp_path):
    file = tmp_path / "one.hits.parquet"
    file.write_bytes(data)
    read = submission.load(file)
    assert said(read) == {
        name: of for name, of in honest.items() if name not in ("tables", "measures")
    }
    made = entry_of(evidence)
    assert made.to_bytes() == entry_of(evidence).to_bytes()
    again = submission.load(made.to_bytes())
    assert (again.difference(made), again.table) == (None, made.table)
    assert made.signature == evidence.probed.test.signature
    assert len(made.to_bytes()) < 30_000  # of 40 functions


def test_numbers_are_those_of_the_report(evidence):
    """Every score, bound, difference and p, though the submission has nothing but hits."""
    other = other_model(evidence, "user/base", 0.5)
    made = entry_of(other)
    hits = other.hits
    assert set(hits) == {*PROTOCOLS, BEYOND_OFFSET}
    tested = {name: both.mean for name, both in other.comparisons.items()}
    gained = made.scores("model", "combined")
    for cell, score in made.scores("model").items():
        mean, rule, k = cell
        measure = MEASURES.index((rule, int(k)))
        expected = hits[mean].hits.mean("model").at(measure)
        difference = tested[mean].at(measure)
        assert score[:3] == pytest.approx(expected[:3], abs=1e-9)
        assert gained[cell][:4] == pytest.approx(difference[:4], abs=1e-9)
    known = other.splits.baselines.hits
    assert {name for of_protocol in known.values() for name in of_protocol} == {*BASELINES}
    for protocol, kind in [(name, kind) for name in known for kind in known[name]]:
        expected = known[protocol][kind].at(TABLE_MEASURES).hits.mean(kind)
        scores = made.scores(kind)
        for measure, (rule, k) in enumerate(TABLE_MEASURES):
            score = scores[protocol, rule, str(k)]
            assert score[:3] == pytest.approx(expected.at(measure)[:3], abs=1e-9)
    for protocol in PROTOCOLS:
        chosen, table = other.hits[protocol].at(TABLE_MEASURES), made.tables[protocol]
        assert table.names == chosen.relations
        np.testing.assert_allclose(table.scores("model"), chosen.hits.scores("model"), atol=1e-9)
        for column, name in enumerate(table.names):
            heads = chosen.choice[name][:, TABLE_PLACES].reshape(-1, 2).tolist()
            shown = [made.head(protocol, column, measure) for measure in range(len(heads))]
            assert shown == [f"{layer}-{head}" for layer, head in heads]


@pytest.mark.parametrize(
    "at", [(), ("settings",), ("run",), ("chosen_on",), ("ledgers",), ("chosen", "published")]
)
@pytest.mark.parametrize("field", ["signature", "scores", "tables"])
def test_a_number_that_is_derived_is_an_unknown_field(at, field, honest):
    """Nothing that follows from hits can be said."""
    table, about = arrow_table(honest)
    functools.reduce(dict.__getitem__, at, about := copy.deepcopy(about))[field] = 0.5
    with pytest.raises(EntryError, match=f"has an unknown field '{field}'"):
        submission.load(in_parquet(table, json.dumps(about)))


def test_file_names_tell_settings_apart_and_are_safe(honest):
    changes = {"revision": "1" * 40, "dtype": "bfloat16", "max_length": 100, "model": "user/tiny"}
    names = {changed(honest, **{name: value}).file_name for name, value in changes.items()}
    names.add(changed(honest).file_name)
    assert len(names) == 5
    assert all(
        re.fullmatch(r"\w[\w.-]*\.[0-9a-f]{8}\.hits\.parquet", name, re.ASCII) for name in names
    )


@pytest.mark.parametrize("attack", entries.ENTRIES, ids=lambda attack: attack.name)
def test_forged_entries(attack, honest):
    with pytest.raises(EntryError, match=attack.stopped_by) as refused:
        submission.load(entries.file_of(attack, honest))
    message = str(refused.value)
    assert len(message) < 400
    assert message.isprintable()


SYSTEMS, TABLES = ("model", "offset", "keyword"), entries.PROTOCOLS
MEASURED = range(12)  # rules and k


def more_than_edges(entry, table, system, measure):
    entry["tables"][table][system][measure, 0] = entries.EDGES + 1


def below_nothing(entry, table, system, measure):
    entry["tables"][table][system][measure, 0] = -1


def fewer_with_more_guesses(entry, table, system, measure):
    hits = entry["tables"][table][system]
    hits[measure, np.flatnonzero(hits[measure - 1] > 0)[0]] = 0


def other_edges(entry, table, system, measure):
    entry["tables"][table]["n"][0] += 10**5


def no_such_head(entry, table, system, measure):
    entry["chosen"][table]["heads"][0][measure] = entry["layers"] * entry["heads"]


def no_such_baseline(entry, table, system, measure):
    entry["chosen"][table]["better"][0][measure] = 3


LATER = [measure for measure in MEASURED if measure % 4]  # which have one guess fewer before them
OTHER = "has other edges of .* than published|more hard edges in a function"
ALL = ("",)
GUARDS = [
    (more_than_edges, TABLES, SYSTEMS, MEASURED, "{system} has more hits in a function than"),
    (below_nothing, TABLES, SYSTEMS, MEASURED, "{system} .* or fewer than none"),
    (fewer_with_more_guesses, TABLES, SYSTEMS[1:], LATER, "than with one guess fewer"),
    (other_edges, TABLES[1:], ALL, (0,), OTHER),
    (no_such_head, TABLES, ALL, MEASURED, "heads has .*, expected a whole number from 0 to 5"),
    (no_such_baseline, TABLES, ALL, MEASURED, "better has 3, .* whole number from 0 to 2"),
]
"""What is changed, in which tables, systems and measures, and the reason it is refused for."""


@pytest.mark.parametrize("forge, tables, systems, measures, reason", GUARDS)
def test_every_guard_looks_at_every_column(forge, tables, systems, measures, reason, few_relations):
    for table, system, measure in itertools.product(tables, systems, measures):
        entry = copy.deepcopy(few_relations)
        forge(entry, table, system, measure)
        with pytest.raises(EntryError, match=f"{table}.*({reason.format(system=system)})"):
            submission.load(written(entry))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "bfloat16 of Q4_K"])
def test_precisions(dtype, honest):
    assert changed(honest, dtype=dtype).settings.dtype == dtype


def test_a_file_of_200_mb_and_a_link_are_not_read(data, tmp_path):
    file, link = tmp_path / "large.hits.parquet", tmp_path / "link.hits.parquet"
    file.write_bytes(data)
    link.symlink_to(file)
    with pytest.raises(EntryError, match="expected a regular file"):
        submission.load(link)
    os.truncate(file, 200 * 10**6)  # sparse: takes no space
    with pytest.raises(EntryError, match="larger than"):
        submission.load(file)


def test_names_of_models_are_those_of_the_hub(honest):
    for name in (
        "a",
        "user/a.b-c_d",
        "user/a.",
        "user./a",
        "a--b/c",
        "a/b.git",
        "a/.b",
        "a/b-",
        "a/b/c",
        "a" * 97,
    ):
        try:
            validate_repo_id(name)
        except HFValidationError:
            with pytest.raises(EntryError, match="as the Hub allows it"):
                changed(honest, model=name)
        else:
            assert changed(honest, model=name).settings.model == name


def test_what_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")  # reading it would wait for ever
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(EntryError, match="expected a regular file"):
            submission.load(path)
    for path in (tmp_path / "nothing", "nul\0"):
        with pytest.raises(EntryError, match="cannot be read"):
            submission.load(path)


@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_any_change_is_read_or_refused(few_relations, data):
    """Nothing but EntryError is ever raised, and what is accepted is what was there."""
    table, about = arrow_table(few_relations)
    about = json.loads(json.dumps(about))
    for _ in range(data.draw(st.integers(1, 3))):
        entries.change(about, data)
    try:
        read = submission.load(in_parquet(table, text := json.dumps(about)))
        assert said(read) == {name: of for name, of in json.loads(text).items() if name != "hits"}
    except EntryError as refused:
        assert str(refused)


@settings(max_examples=40, deadline=None)
@given(place=st.integers(0), put=st.binary(max_size=8), cut=st.integers(0, 20))
def test_any_bytes_are_read_or_refused(data, place, put, cut):
    place %= len(data)
    try:
        assert submission.load(data[:place] + put + data[place + cut :]).to_bytes()
    except EntryError as refused:
        assert str(refused)
