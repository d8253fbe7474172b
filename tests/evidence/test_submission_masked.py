"""Submissions on masked syntax: their numbers follow from the ledger, and the smallest edit of one is refused."""

from __future__ import annotations

import copy

import numpy as np
import pandas
import pytest
from support.attacks.entries import setting
from support.evidence.hits_files import written
from support.evidence.masked_entries import TYPES, entries, held, masked

from codesyntax_dataset.errors import EntryError
from probing.evidence import submission, submission_masked
from probing.instruments.masking.hits import hits as hits_of
from probing.instruments.masking.result import OUTCOMES

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
    assert made.difference(loaded(honest)) is None
    assert len(made.to_bytes()) < 8_000
    assert loaded(honest).signature == result.signature


def test_means_and_counts_are_those_of_the_ledger(result, honest):
    """What failed in T1 counts as missed: nothing is masked or restored, at -20 nats."""
    rows = pandas.DataFrame(result.ledger.rows)
    rows["restored"] = rows["hits_1"] / rows["masked"]
    first = rows["copy"] == 0
    pair = list(zip(rows["node_type"], rows["function"]))
    failed = {of for of, lost in zip(pair, first & rows["jaccard"].isna()) if lost}
    missed = np.array([of in failed for of in pair])
    rows.loc[missed, [*OUTCOMES, "masked"]] = 0
    rows.loc[missed, "log_probability"] = -20
    rows[list(OUTCOMES)] *= [1 if name == "log_probability" else 100 for name in OUTCOMES]
    t1 = rows[first].groupby("node_type")[list(OUTCOMES)].mean()
    each = rows[~first].groupby(["node_type", "function"])[list(OUTCOMES)].mean()
    t0 = each.groupby("node_type").mean()
    made = loaded(honest)
    hits, of_types = made.tables["masking"], made.by_type(made.tables)
    effects = made.scores("T1", "T0")
    for outcome in OUTCOMES:
        for number, name in enumerate(TYPES):
            expected = t1[outcome][number], t0[outcome][number]
            assert of_types[name][outcome][:2] == pytest.approx(expected, abs=1e-4)
        both = [made.scores(arm)[outcome].value for arm in ("T1", "T0")]
        assert both == pytest.approx([t1[outcome].mean(), t0[outcome].mean()], abs=1e-4)
        assert effects[outcome].value == pytest.approx(both[0] - both[1], abs=1e-7)
    for number, name in enumerate(TYPES):
        of_type = rows[first & (rows["node_type"] == number)]
        assert len(hits.of(name)) == len(of_type)
        assert submission_masked.masked(hits, name) == of_type["masked"].sum()
    assert (honest["functions"], made.copies) == (20, len(result.ledger))
    assert list(honest["uncompared"].values()) == [2, 0]


def test_effects_are_those_of_the_report():
    """With intervals and p over the functions of each node type, corrected over these."""
    result = masked()
    (honest,) = entries([result])
    hits = hits_of(result)["jaccard"]
    made = loaded(honest)
    of_types = made.by_type(made.tables)
    for name, expected in hits.each(hits.by_group("T1", "T0")).items():
        effect = of_types[name]["jaccard"].effect
        assert effect[:3] == pytest.approx([100 * number for number in expected[:3]], abs=2e-4)
        assert effect.p == pytest.approx(expected.p, abs=1e-5)  # of rounded scores
        others = [of_types[name][outcome].effect[1:4] for outcome in OUTCOMES[1:]]
        assert np.isnan(others).all()


def test_a_few_functions_have_no_interval():
    (made,) = entries([masked(functions=2)])
    for compared in (("T1",), ("T1", "T0")):
        assert np.isnan(loaded(made).scores(*compared)["jaccard"][1:3]).all()


# ---------------------------------------------------------------------------------- what is refused


def column(outcome):
    return [*OUTCOMES, "masked"].index(outcome)


def put(arm, outcome, value):
    """A number of one function, which is written in millionths."""

    def change(entry):
        entry["tables"]["masking"][arm][column(outcome), PLACE] = value

    return change


def add(arm, outcome, step):
    def change(entry):
        entry["tables"]["masking"][arm][column(outcome), -1] += step

    return change


def add_to(name, step):
    def change(entry):
        entry["tables"]["masking"][name][-1] += step

    return change


def count(field, reason, step):
    def change(entry):
        entry[field][reason] += step

    return change


def too_large(entry):
    for arm in ("T1", "T0"):
        put(arm, "masked", 512)(entry)


def left_out(entry):
    table = entry["tables"]["masking"]
    entry["tables"]["masking"] = {name: of[..., :-1] for name, of in table.items()}


def restored_unread(entry):
    """What was not compared restores nothing."""
    for arm in ("T1", "T0"):
        put(arm, "masked", 0)(entry)
    entry["uncompared"]["in one arm, every comparison of trees failed"] += 1


def of_no_type(entry):
    """A function has a row in which there is nothing."""
    table = entry["tables"]["masking"]
    rows = {name: np.append(of, of[..., -1:], axis=-1) for name, of in table.items()}
    rows["cluster"][-1], rows["n"][-1] = 21, 0
    for arm in ("T1", "T0"):
        rows[arm][:, -1] = 0
    entry["tables"]["masking"] = rows


def other_table(entry):
    entry["tables"] = {"published": entry["tables"]["masking"]}


def fewer_skips(entry):
    entry |= {"functions": 18, "skips": {}}


def of_1000_types(rows):
    def change(entry):
        names = [f"n{number:04}" for number in range(1000)]
        entry["functions"], entry["settings"]["node_types"] = rows - 2, names  # of which 2 skipped
        tiled = {
            name: np.tile(of[..., :1], 1000) for name, of in entry["tables"]["masking"].items()
        }
        entry["tables"]["masking"] = tiled | {"group": np.array(names, object)}

    return change


MILLION = 10**6
NEVER, UNSHARED = "no node of the type", "not in the results that it was compared with"
COUNTED = "pairs of a function and a node type are compared"
BELOW = "a number is below 0|other sub-tokens are masked|are compared or counted"
SHARE, OTHERS = "not one of its masked|a share is above 1", "other sub-tokens are masked in T1"
DICE, SOME = "does not follow from Jaccard", "some of the node types of the settings"
FEWER = "the functions are not those of a split of 18"

CASES = [
    *((count("dropped", NEVER, step), COUNTED) for step in (1, -1)),
    *((count("uncompared", UNSHARED, step), f"{COUNTED}|uncompared") for step in (1, -1)),
    (add_to("cluster", MILLION), "not those of a split of 22"),
    (add_to("n", 1), "counted several times in a function"),
    (add("T1", "masked", 1), f"{OTHERS}|{SHARE}"),
    (add("T1", "jaccard", 10), DICE),
    (add("T1", "sorensen_dice", 10), DICE),
    (add("T1", "restored", 10), SHARE),
    (put("T1", "jaccard", 3 * MILLION // 2), "share is above 1"),
    (put("T1", "sorensen_dice", MILLION // 2), DICE),
    (put("T0", "sorensen_dice", MILLION // 10), "no such Sorensen-Dice"),
    (put("T0", "sorensen_dice", MILLION), "no such Sorensen-Dice"),
    (put("T1", "levenshtein", MILLION), "in order than in common"),
    (put("T1", "restored", 123_456), "not one of its masked"),
    (put("T1", "log_probability", 0), "too likely"),
    (put("T1", "restored", MILLION), "but the tree is another"),
    (add("T0", "masked", 1), OTHERS),
    *((put(arm, name, -1), BELOW) for arm in ("T1", "T0") for name in (*OUTCOMES, "masked")),
    (too_large, "no function has so many"),
    (left_out, COUNTED),
    (restored_unread, "nothing is masked, and yet restored"),
    (of_no_type, "a function has none of the node types"),
    (other_table, "the tables are others than masking"),
    (fewer_skips, FEWER),
    (of_1000_types(3001), "at most 3,000,000 pairs"),
    (of_1000_types(3000), COUNTED),
    (setting("instrument", "attention"), "unknown field|lacks the field"),
    (setting("version", 1), "version is 1, expected 3"),
    (setting("settings.control", "x"), "'sub-tokens' or 'spans'"),
    (setting("settings.node_types", []), "at least 1 item"),
    (setting("settings.node_types", ["parameters", "string"]), SOME),
    (setting("skips", {"<b>": 1}), "plain text"),
    (setting("run.parser", "<b>"), "plain text"),
]
"""What no run gives, however consistent it is, and why it is refused."""


@pytest.mark.parametrize("change, reason", CASES)
def test_what_no_run_gives_is_refused_with_a_reason(change, reason, honest):
    forged = copy.deepcopy(honest)
    change(forged)
    with pytest.raises(EntryError, match=reason) as refused:
        loaded(forged)
    assert len(str(refused.value)) < 400 and str(refused.value).isprintable()


def test_numbers_that_a_model_could_have_are_what_only_masking_again_refuses(honest):
    forged = copy.deepcopy(honest)
    forged["tables"]["masking"]["T1"][column("levenshtein"), PLACE] -= 10_000
    scores = [loaded(entry).scores("T1")["levenshtein"] for entry in (honest, forged)]
    assert scores[0] != scores[1]
