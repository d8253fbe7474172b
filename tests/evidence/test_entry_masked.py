"""Entries on masked syntax: their numbers follow from the ledger, and the smallest edit of one is refused."""

from __future__ import annotations

import copy
import json
import re
from collections import defaultdict

import numpy as np
import pytest
from support.evidence.masked_entries import TYPES, entries, masked

from codesyntax_dataset.errors import EntryError
from probing.evidence import entry
from probing.evidence.entry import packed, unpacked
from probing.instruments.masking.hits import hits as hits_of
from probing.instruments.masking.result import OUTCOMES
from probing.stats.intervals import corrected


@pytest.fixture(scope="module")
def result():
    return masked(failed=2)


@pytest.fixture(scope="module")
def honest(result, tmp_path_factory):
    (made,) = entries([result])
    return made


def loaded(made):
    return entry.load(json.dumps(made).encode())


def test_an_honest_entry_comes_back_as_it_was(result, honest):
    assert json.loads(loaded(honest).to_json()) == honest
    text = loaded(honest).to_json()
    assert len(text) < 4_000
    bare = re.sub(r"(?<=\d)\.0(?=[,\]}])", "", text)  # without the fraction of whole numbers, as some tools write it
    assert bare != text and entry.load(bare.encode()) == loaded(honest)
    assert loaded(honest).signature == result.signature


def test_means_and_counts_are_those_of_the_ledger(result, honest):
    copies = defaultdict(list)
    for row in result.ledger.rows.tolist():
        copies[row[1], row[0]].append(dict(zip(result.ledger.rows.dtype.names, row)))

    def value(row, outcome):
        return row["hits_1"] / max(1, row["masked"]) if outcome == "restored" else row[outcome]

    by_type = defaultdict(list)
    for (node_type, _), (first, *others) in sorted(copies.items()):
        if first["jaccard"] != first["jaccard"]:  # it failed, and counts as missed
            nothing = dict.fromkeys(OUTCOMES, 0.0) | {"log_probability": -20.0, "hits_1": 0, "masked": 0}
            first, others = nothing, [nothing] * len(others)
        by_type[list(TYPES)[node_type]].append((first, others))
    scores = loaded(honest).scores()
    for outcome in OUTCOMES:
        means, unit = [], 1 if outcome == "log_probability" else 100
        for name, of in by_type.items():
            t1 = unit * np.mean([value(first, outcome) for first, _ in of])
            t0 = unit * np.mean([np.mean([value(one, outcome) for one in others]) for _, others in of])
            told = scores.node_types[name]
            assert (told.functions, told.masked) == (len(of), sum(first["masked"] for first, _ in of))
            cell = told.cells[outcome]
            assert (cell.mean.value, cell.reference.value) == pytest.approx((t1, t0), abs=1e-4)
            means.append((t1, t0))
        mean = scores.cells[outcome]
        assert (mean.mean.value, mean.reference.value) == pytest.approx(np.mean(means, axis=0), abs=1e-4)
        assert mean.difference.value == pytest.approx(mean.mean.value - mean.reference.value, abs=1e-7)
    assert (honest["functions"], loaded(honest).copies) == (20, len(result.ledger))
    assert list(honest["uncompared"].values()) == [2, 0]


def test_effects_are_those_of_the_report():
    """With intervals and p over the functions of each node type, corrected over these."""
    result = masked()
    (honest,) = entries([result])
    hits = hits_of(result)["jaccard"]
    (effects,) = corrected([hits.by_group("T1", "T0")])
    for name, expected in hits.each(effects).items():
        told = loaded(honest).scores().node_types[name].cells["jaccard"]
        assert told.difference == pytest.approx([100 * number for number in expected[:3]], abs=2e-4)
        assert told.p == pytest.approx(expected.p, abs=1e-5)  # of rounded scores


def test_a_few_functions_have_no_interval(tmp_path):
    (made,) = entries([masked(functions=2)])
    score = loaded(made).scores().cells["jaccard"]
    assert score.mean[1:] == score.difference[1:] == (None, None)


@pytest.mark.parametrize("change", [1, -1])
@pytest.mark.parametrize(
    "path",
    [
        ("dropped", "no node of the type"),
        ("compared", "string"),
        ("uncompared", "not in the results that it was compared with"),
    ],
)
def test_counts_that_do_not_add_up_are_refused(path, change, honest):
    """How many functions were skipped, the data alone can say."""
    forged = copy.deepcopy(honest)
    forged[path[0]][path[1]] += change
    with pytest.raises(EntryError):
        loaded(forged)


@pytest.mark.parametrize("name", ["places", "masked", "jaccard", "sorensen_dice", "restored"])
def test_one_number_of_a_function_is_refused(name, honest):
    forged = copy.deepcopy(honest)
    pairs = sum(honest["compared"].values())
    fields, count = (forged, pairs) if name in forged else (forged["outcomes"], 2 * pairs)
    values = unpacked(fields[name], "", count).copy()
    values[pairs - 1] += {"places": 10**6, "masked": 1}.get(name, 10)  # of T1
    fields[name] = packed(values)
    with pytest.raises(EntryError):
        loaded(forged)


def rewritten(honest, change):
    """The entry with other values by function."""
    forged, found = copy.deepcopy(honest), loaded(honest).pairs()
    change(found)
    forged["masked"] = packed(found.masked)
    forged["outcomes"] = {name: packed(np.round(np.abs(of) * 1e6)) for name, of in found.arms.items()}
    return forged


def put(outcome, value, arm=0):
    def change(found):
        found.arms[outcome][arm, 3] = value

    return change


def all_restored(found):
    found.arms["restored"][0, 3] = 1


def too_large(found):
    found.masked[3] = 512


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (put("jaccard", 1.5), "share is above 1"),
        (put("sorensen_dice", 0.5), "Sorensen-Dice does not follow from Jaccard"),
        (put("sorensen_dice", 0.1, 1), "no such Sorensen-Dice"),
        (put("levenshtein", 1.0), "in order than in common"),
        (put("restored", 0.123456), "not one of its masked"),
        (put("log_probability", 0.0), "too likely"),
        (all_restored, "but the tree is another"),
        (too_large, "no function has so many"),
    ],
)
def test_what_no_model_can_have_is_refused(change, reason, honest):
    """However consistent the numbers are."""
    with pytest.raises(EntryError, match=reason):
        loaded(rewritten(honest, change))


def test_numbers_that_a_model_could_have_are_what_only_masking_again_refuses(honest):
    def better(found):
        found.arms["levenshtein"][0, 3] -= 0.01

    scores = [loaded(one).scores().cells["levenshtein"] for one in (honest, rewritten(honest, better))]
    assert scores[0] != scores[1]


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("format",), 2, "format is 2"),
        (("instrument",), "attention", "unknown field 'compared'|lacks the field|settings has an unknown field"),
        (("version",), 1, "version is 1, expected 2"),
        (("settings", "limit"), 5, "a partial run is not published"),
        (("settings", "control"), "x", "'sub-tokens' or 'spans'"),
        (("settings", "split"), "validation", "'test'"),
        (("settings", "model"), "../x", "as the Hub allows it"),
        (("settings", "node_types"), [], "at least 1 item"),
        (("functions",), 10**6, "at most 100000"),
        (("signature",), "mask|x", "unknown field 'signature'"),
        (("scores",), {}, "unknown field 'scores'"),
        (("outcomes", "p"), 0.5, "outcomes has an unknown field 'p'"),
        (("places",), "!", "packed numbers"),
        (("compared", "nothing"), 1, "node types of the settings, in their order"),
        (("compared",), {}, "node types of the settings, in their order"),
        (("compared", "string"), 23, "23 functions of a node type, expected at most 22"),
        (("verified",), {"functions": 3, "of": 2}, "verified is 3 of 2"),
        (("skips",), {"<b>": 1}, "plain text"),
        (("run", "parser"), "<b>", "plain text"),
    ],
)
def test_other_files_are_refused_with_a_reason(path, value, reason, honest):
    forged = copy.deepcopy(honest)
    place = forged
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(EntryError, match=reason) as refused:
        loaded(forged)
    assert len(str(refused.value)) < 400 and str(refused.value).isprintable()


def test_an_entry_that_would_fill_the_memory_is_refused(honest):
    forged = copy.deepcopy(honest)
    forged["functions"] = 10**5
    names = [f"n{number}" for number in range(1000)]
    forged["settings"]["node_types"] = names
    forged["compared"] = dict.fromkeys(names, 10**5)
    with pytest.raises(EntryError, match="at most 3,000,000 pairs"):
        loaded(forged)
