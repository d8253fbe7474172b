"""Submissions on masked syntax: their numbers follow from the ledger, and the smallest edit of one is refused."""

from __future__ import annotations

import copy
from collections import defaultdict

import numpy as np
import pytest
from support.evidence.hits_files import written
from support.evidence.masked_entries import TYPES, entries, held, masked

from codesyntax_dataset.errors import EntryError
from probing.evidence import submission, submission_masked
from probing.instruments.masking.hits import hits as hits_of
from probing.instruments.masking.result import OUTCOMES
from probing.stats.intervals import corrected

PLACE = 9
"""The row of a function with sub-tokens that were not restored."""


@pytest.fixture(scope="module")
def result():
    return masked(failed=2)


@pytest.fixture(scope="module")
def honest(result, tmp_path_factory):
    (made,) = entries([result])
    return made


def loaded(made):
    return submission.load(written(made))


def test_an_honest_submission_comes_back_as_it_was(result, honest):
    made = submission_masked.make(result, held(result))
    assert (made.difference(loaded(honest)), made.said()) == (None, loaded(honest).said())
    assert len(made.to_bytes()) < 8_000
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
            nothing = dict.fromkeys(OUTCOMES, 0.0) | {
                "log_probability": -20.0,
                "hits_1": 0,
                "masked": 0,
            }
            first, others = nothing, [nothing] * len(others)
        by_type[list(TYPES)[node_type]].append((first, others))
    made = loaded(honest)
    hits, of_types = made.tables["masking"], made.by_type(made.tables)
    t1s, t0s, effects = made.scores("T1"), made.scores("T0"), made.scores("T1", "T0")
    for outcome in OUTCOMES:
        means, unit = [], 1 if outcome == "log_probability" else 100
        for name, of in by_type.items():
            t1 = unit * np.mean([value(first, outcome) for first, _ in of])
            t0 = unit * np.mean(
                [np.mean([value(one, outcome) for one in others]) for _, others in of]
            )
            assert len(hits.of(name)) == len(of)
            assert submission_masked.masked(hits, name) == sum(first["masked"] for first, _ in of)
            assert of_types[name][outcome][:2] == pytest.approx((t1, t0), abs=1e-4)
            means.append((t1, t0))
        both = t1s[outcome].value, t0s[outcome].value
        assert both == pytest.approx(np.mean(means, axis=0), abs=1e-4)
        assert effects[outcome].value == pytest.approx(both[0] - both[1], abs=1e-7)
    assert (honest["functions"], made.copies) == (20, len(result.ledger))
    assert list(honest["uncompared"].values()) == [2, 0]


def test_effects_are_those_of_the_report():
    """With intervals and p over the functions of each node type, corrected over these."""
    result = masked()
    (honest,) = entries([result])
    hits = hits_of(result)["jaccard"]
    (effects,) = corrected([hits.by_group("T1", "T0")])
    made = loaded(honest)
    of_types = made.by_type(made.tables)
    for name, expected in hits.each(effects).items():
        effect = of_types[name]["jaccard"].effect
        assert effect[:3] == pytest.approx([100 * number for number in expected[:3]], abs=2e-4)
        assert effect.p == pytest.approx(expected.p, abs=1e-5)  # of rounded scores


def test_a_few_functions_have_no_interval():
    (made,) = entries([masked(functions=2)])
    for compared in (("T1",), ("T1", "T0")):
        assert np.isnan(loaded(made).scores(*compared)["jaccard"][1:3]).all()


@pytest.mark.parametrize("change", [1, -1])
@pytest.mark.parametrize(
    "path",
    [
        ("dropped", "no node of the type"),
        ("uncompared", "not in the results that it was compared with"),
    ],
)
def test_counts_that_do_not_add_up_are_refused(path, change, honest):
    """How many functions were skipped, the data alone can say."""
    forged = copy.deepcopy(honest)
    forged[path[0]][path[1]] += change
    with pytest.raises(EntryError):
        loaded(forged)


def column(outcome):
    return [*OUTCOMES, "masked"].index(outcome)


@pytest.mark.parametrize(
    ("name", "step", "reason"),
    [
        ("cluster", 10**6, "not those of a split of 22"),
        ("n", 1, "counted several times in a function"),
        ("masked", 1, "other sub-tokens are masked in T1|not one of its masked"),
        ("jaccard", 10, "does not follow from Jaccard"),
        ("sorensen_dice", 10, "does not follow from Jaccard"),
        ("restored", 10, "not one of its masked|a share is above 1"),
    ],
)
def test_one_number_of_a_function_is_refused(name, step, reason, honest):
    forged = copy.deepcopy(honest)
    table = forged["tables"]["masking"]
    values = table[name] if name in table else table["T1"][column(name)]
    values[-1] += step
    with pytest.raises(EntryError, match=reason):
        loaded(forged)


def test_a_function_that_is_left_out_is_refused(honest):
    """The count of pairs tells."""
    forged = copy.deepcopy(honest)
    table = forged["tables"]["masking"]
    forged["tables"]["masking"] = {name: of[..., :-1] for name, of in table.items()}
    with pytest.raises(EntryError, match="pairs of a function and a node type are compared"):
        loaded(forged)


def rewritten(honest, change):
    """The entry with other values by function."""
    forged = copy.deepcopy(honest)
    change(forged["tables"]["masking"])
    return forged


def put(outcome, value, arm=0):
    def change(table):
        table[f"T{1 - arm}"][column(outcome), PLACE] = round(abs(value) * 10**6)

    return change


def all_restored(table):
    table["T1"][column("restored"), PLACE] = 10**6


def too_large(table):
    for arm in ("T1", "T0"):
        table[arm][column("masked"), PLACE] = 512


def other_masked(table):
    table["T0"][column("masked"), PLACE] += 1


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
        (other_masked, "other sub-tokens are masked in T1"),
    ],
)
def test_what_no_model_can_have_is_refused(change, reason, honest):
    """However consistent the numbers are."""
    with pytest.raises(EntryError, match=reason):
        loaded(rewritten(honest, change))


def test_another_table_is_refused(honest):
    forged = copy.deepcopy(honest)
    forged["tables"] = {"published": forged["tables"]["masking"]}
    with pytest.raises(EntryError, match="the tables are others than masking"):
        loaded(forged)


def test_a_number_below_nothing_is_refused(honest):
    for outcome in (*OUTCOMES, "masked"):
        for arm in ("T1", "T0"):
            forged = copy.deepcopy(honest)
            forged["tables"]["masking"][arm][column(outcome), PLACE] = -1
            with pytest.raises(
                EntryError,
                match="a number is below 0|other sub-tokens are masked|are compared or counted",
            ):
                loaded(forged)


def test_what_was_not_compared_restores_nothing(honest):
    forged = copy.deepcopy(honest)
    for arm in ("T1", "T0"):
        forged["tables"]["masking"][arm][column("masked"), PLACE] = 0
    forged["uncompared"]["in one arm, every comparison of trees failed"] += 1
    with pytest.raises(EntryError, match="nothing is masked, and yet restored"):
        loaded(forged)


def test_a_function_of_no_node_type_is_refused(honest):
    """It has a row in which there is nothing."""
    forged = copy.deepcopy(honest)
    table = forged["tables"]["masking"]
    rows = {name: np.append(of, of[..., -1:], axis=-1) for name, of in table.items()}
    rows["cluster"][-1], rows["n"][-1] = 21, 0
    for arm in ("T1", "T0"):
        rows[arm][:, -1] = 0
    forged["tables"]["masking"] = rows
    with pytest.raises(EntryError, match="a function has none of the node types"):
        loaded(forged)


def test_numbers_that_a_model_could_have_are_what_only_masking_again_refuses(honest):
    def better(table):
        table["T1"][column("levenshtein"), PLACE] -= 10_000

    scores = [
        loaded(one).scores("T1")["levenshtein"] for one in (honest, rewritten(honest, better))
    ]
    assert scores[0] != scores[1]


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("instrument",), "attention", "unknown field|lacks the field"),
        (("version",), 1, "version is 1, expected 2"),
        (("settings", "control"), "x", "'sub-tokens' or 'spans'"),
        (("settings", "node_types"), [], "at least 1 item"),
        (
            ("settings", "node_types"),
            ["parameters", "string"],
            "some of the node types of the settings",
        ),
        (("skips",), {}, "the functions are not those of a split of 18|functions of a node type"),
        (("verified",), {"functions": 3, "of": 2}, "verified is 3 of 2"),
        (("skips",), {"<b>": 1}, "plain text"),
        (("run", "parser"), "<b>", "plain text"),
    ],
)
def test_other_files_are_refused_with_a_reason(path, value, reason, honest):
    forged = copy.deepcopy(honest)
    if path == ("skips",) and value == {}:
        forged["functions"] = 18
    place = forged
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(EntryError, match=reason) as refused:
        loaded(forged)
    assert len(str(refused.value)) < 400 and str(refused.value).isprintable()


def test_a_submission_that_would_fill_the_memory_is_refused(honest):
    forged = copy.deepcopy(honest)
    forged["functions"] = 10**5
    table, names = forged["tables"]["masking"], [f"n{number:04}" for number in range(1000)]
    forged["settings"]["node_types"] = names
    rows = {name: np.tile(of[..., :1], 1000) for name, of in table.items()}
    forged["tables"]["masking"] = rows | {"group": np.array(names, object)}
    with pytest.raises(EntryError, match="at most 3,000,000 pairs"):
        loaded(forged)
