"""The frame of scores: its columns, and its numbers against plain sums over ledgers."""

from __future__ import annotations

import re
from functools import partial

import pandas
import pytest
from conftest import ROOT
from support.commands import run
from support.evidence.masked import masked
from support.references import plain_intervals

import probing
from codesyntax_dataset.errors import LedgerError
from probing.evidence.masked import comparable_masked, filler_gains
from probing.evidence.protocols import MEASURES
from probing.evidence.scores import COLUMNS, Slice
from probing.instruments.masking.hits import hits as hits_of


@pytest.fixture(scope="module")
def frame(evidence, few_functions):
    probed = evidence.probed
    return probing.scores([probed.test, probed.validation], few_functions)


def only(frame, **cells):
    for name, value in cells.items():
        frame = frame[frame[name] == value]
    return frame


def test_the_guide_says_what_columns_mean(frame):
    """Those that do not explain themselves, in the words of `COLUMNS`."""
    text = (ROOT / "probing/docs/scores.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"\| column \| meaning \|\n\| --- \| --- \|\n((?:\|.*\n)+)", text)
    explained = dict(re.findall(r"\| `(\w+)` \| (.*) \|", table))
    assert len(explained) > 5
    assert explained.items() <= COLUMNS.items()
    assert list(frame.columns) == list(COLUMNS)
    named = " ".join(probing.scores.__doc__.split()).partition("in what unit: ")[2]
    assert named.partition(".")[0].split(", ") == list(COLUMNS)


def test_a_row_is_one_number(frame):
    key = [
        name
        for name in COLUMNS
        if name not in ("value", "low", "high", "p", "n", "functions", "items", "chosen")
    ]
    assert not frame.duplicated(key).any()
    assert frame["value"].notna().all()
    assert set(frame["instrument"]) == {"attention"}
    assert set(frame["split"]) == {"test"}
    assert frame[frame["against"] == ""]["p"].isna().all()
    assert (frame["low"] <= frame["value"]).sum() == frame["low"].notna().sum()


def test_attention_is_that_of_the_evidence(frame, evidence):
    """Which plain loops over ranks give (`test_compared.py`)."""
    hits = evidence.hits["held-out"].hits
    rows = only(frame, protocol="held-out", system="model", against="")
    for row in rows[rows["group"] != "mean"].itertuples():
        place = MEASURES.index((row.rule, row.k)), hits.names.index(row.group)
        assert row.value == pytest.approx(hits.scores("model")[place])
        assert row.items == hits.groups[row.group].total
    assert set(hits.names) < set(rows["group"])


def test_the_mean_and_its_difference_are_over_relations(frame):
    cells = only(frame, protocol="published", rule="first", k=1)
    model, best = (
        only(cells, system=name, against="").set_index("group")["value"]
        for name in ("model", "combined")
    )
    difference = only(cells, system="model", against="combined").set_index("group")
    assert difference.loc["mean", "value"] == pytest.approx(model["mean"] - best["mean"])
    for name in difference.index:
        assert difference.loc[name, "value"] == pytest.approx(model[name] - best[name])
    assert difference["p"].between(0, 1).all()


@pytest.mark.slow
def test_masking_is_the_mean_over_functions():
    """Of one node type; of all: `test_submission_masked.py`."""
    result = masked()
    rows = pandas.DataFrame(result.ledger.rows)
    copies = rows[rows["node_type"] == 0].groupby("copy")["jaccard"].mean()
    expected = {"T1": copies[0], "T0": copies[1:].mean()}
    cells = only(probing.scores(result), group=result.ledger.node_types[0], measure="jaccard")
    scores = cells.set_index(["system", "against"])
    for arm, value in expected.items():
        assert scores.loc[arm, ""].value == pytest.approx(value)
    effect, gain = (scores.loc["T1", against] for against in ("T0", "T1 filled"))
    assert effect.value == pytest.approx(expected["T1"] - expected["T0"])
    # of the fillers, a letter leaves most of the trees
    filled = rows.loc[(rows["node_type"] == 0) & (rows["copy"] == 0), "letter_jaccard"]
    assert gain.value == pytest.approx(expected["T1"] - filled.mean())
    assert (gain.chosen, gain.n) == ("letter", len(filled))


def test_p_is_corrected_over_node_types_and_of_gains_over_arms():
    """A letter is the best filler of each."""
    measured = hits_of(masked())["jaccard"]
    raw = partial(plain_intervals.groups_p, measured)
    alone = [raw(arm, f"letter {arm}") for arm in ("T1", "T0")]
    differences = Slice(measured, {}).scored_groups("T1", "T0")
    expected = [min(1, 3 * p) for p in plain_intervals.holm(raw("T1", "T0"))]
    assert [row["p"] for row in differences] == pytest.approx(expected)
    told = [gain.gain.p for of_arm in zip(*filler_gains(measured).values()) for gain in of_arm]
    assert told == pytest.approx(plain_intervals.holm([p for of_arm in alone for p in of_arm]))


def test_a_masking_result_of_an_unknown_config_is_none(tmp_path):
    file = masked().save(tmp_path)
    file.write_text(file.read_text().replace('"config": "python"', '"config": "perl"'))
    with pytest.raises(LedgerError, match=f"{file.name} is not a masking result .*'perl'"):
        comparable_masked([file])


@pytest.mark.slow
def test_score_writes_it(tmp_path):
    result = masked()
    file = result.save(tmp_path)
    run("score", tmp_path, "--csv", tmp_path / "scores.csv")
    written = pandas.read_csv(tmp_path / "scores.csv")
    frame = probing.scores(file)
    assert list(written.columns) == list(COLUMNS)
    assert len(written) == len(frame)
    assert written["value"].tolist() == pytest.approx(frame["value"].tolist())
