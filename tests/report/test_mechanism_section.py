"""Attention beside masked syntax in a report: its numbers follow from the other tables and the ledger, or it is refused."""

from __future__ import annotations

import csv
from collections import defaultdict
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM

from probing import mask, probe
from probing.evidence.mechanism import Correlation, Correlations, MatchedPair, Mechanism, OneGuess
from probing.models.location import embedded_model
from probing.report import mechanism
from probing.report.report import report

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]

RELATIONS = {
    "if_statement": ["If:"], "for_statement": ["For:"], "while_statement": ["While:"], "attribute": ["Attribute:"],
    "comparison_operator": ["Compare:"], "assignment": ["Assign:"], "argument_list": ["Call:func->args"],
    "keyword_argument": ["Call:args->keywords", "Call:func->keywords"],
}  # fmt: skip
PROBED, MASKED = 20, 30
NOTHING = OneGuess([], np.array([], int), *[np.zeros((0, 0), int)] * 3)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    torch.manual_seed(0)
    sizes = {"num_hidden_layers": 1, "num_attention_heads": 4, "hidden_size": 32, "intermediate_size": 32}
    folder = tmp_path_factory.mktemp("models") / "small"
    BertForMaskedLM(BertConfig(**sizes, initializer_range=0.3)).save_pretrained(folder)
    AutoTokenizer.from_pretrained(embedded_model()).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def probed(model, dataset_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("probed")
    for split in ("test", "validation"):
        probe(model, dataset_folder, "python", split, limit=PROBED, output=folder)
    return folder


@pytest.fixture(scope="module")
def masked(model, dataset_folder, tmp_path_factory):
    """More functions than were probed, all of which have identifiers."""
    folder = tmp_path_factory.mktemp("masked")
    mask(model, dataset_folder, node_types=[*RELATIONS, "identifier"], draws=1, limit=MASKED, output=folder)
    return folder


@pytest.fixture(scope="module")
def written(probed, masked, dataset_folder, tmp_path_factory):
    return report([probed, masked], tmp_path_factory.mktemp("written") / "report", dataset_folder).parent


def rows_of(written, table):
    with open(written / "tables" / f"{table}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_scores_are_those_of_the_relations(written):
    """All functions that were probed were masked, too, so the scores are those that the table of relations has."""
    shown = {
        row["relation"]: (
            float(row["held-out: score"]),
            float(row[f"held-out: {row['held-out: compared with']}"]),
        )
        for row in rows_of(written, "python-relations-small")
        if (row["rule"], row["k"]) == ("first", "1") and row["held-out: score"]
    }
    pairs = rows_of(written, "mechanism-python-small")
    assert {row["node type"] for row in pairs} == set(RELATIONS)
    for row in pairs:
        same = sorted(name for name in shown if name.startswith(tuple(RELATIONS[row["node type"]])))
        assert row["relations"] == ", ".join(same)
        heads, baseline = np.mean([shown[name] for name in same], axis=0)
        assert float(row["attention: best heads"]) == pytest.approx(heads)
        assert float(row["attention: best baseline"]) == pytest.approx(baseline)


def test_losses_are_of_the_functions_that_were_probed(masked, written):
    (ledger,) = masked.glob("*.ledger.parquet")
    arms = defaultdict(dict)
    for row in pq.read_table(ledger).to_pylist():
        if row["function"] < PROBED:
            arms[row["node_type"], row["function"]][row["copy"]] = row
    assert max(function for _, function in arms) == PROBED - 1
    for row in rows_of(written, "mechanism-python-small"):
        of_type = [copies for (name, _), copies in arms.items() if name == row["node type"]]
        assert int(row["masking: functions"]) == len(of_type)
        effect = np.mean([copies[0]["jaccard"] - copies[1]["jaccard"] for copies in of_type])
        assert float(row["masking: effect"]) == pytest.approx(effect)
        restored = np.mean([copies[0]["hits_1"] / copies[0]["masked"] for copies in of_type])
        assert float(row["masking: restored T1"]) == pytest.approx(100 * restored)
        few = min(len(of_type), int(row["attention: functions"])) < 6
        assert row["node type, marks"] == ("few functions" if few else "")


def test_page_says_what_was_compared(written, page):
    page.goto((written / "index.html").as_uri())
    section = page.locator("section[aria-labelledby=mechanism]")
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    texts = section.locator("section p").all_inner_texts()
    pairs = [row for row in rows_of(written, "mechanism-python-small") if not row["node type, marks"]]
    assert len(pairs) >= 5
    assert f"{PROBED} functions of codesyntax@" in texts[0]
    assert f" 0 more have only edges, and {MASKED - PROBED} only nodes" in texts[0]
    told = [text for text in texts if text.startswith(f"Over {len(pairs)} pairs")]
    correlations = rows_of(written, "mechanism-python-small-correlation")
    assert [row["rank correlation of"] in text for row, text in zip(correlations, told)] == [True, True]
    drawn = section.locator("figure .wide svg").text_content()
    assert [row["node type"] in drawn for row in pairs] == [True] * len(pairs)
    page.set_viewport_size({"width": 400, "height": 800})
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


class Hashable(SimpleNamespace):
    __hash__ = object.__hash__


def test_another_model_or_other_data_are_not_compared():
    """The same name and revision are compared, unless the functions are others; controls never are."""
    shared = {
        "model": "m",
        "revision": "r",
        "config": "python",
        "split": "test",
        "limit": None,
        "labels": "abc",
        "random_weights": None,
        "instead": [],
    }

    def read(probed, masked):
        probed, masked = (Hashable(**{**shared, "data": "d@1", **changes}) for changes in (probed, masked))
        subject = SimpleNamespace(name="m", settings=probed, file=None)
        findings = SimpleNamespace(
            title="python", config=probed.config, settings=probed, models=[subject], guessed={probed: NOTHING}
        )
        group = SimpleNamespace(
            title="python",
            name="masking-python",
            settings=masked,
            models={"m": SimpleNamespace(settings=masked, node_types={})},
        )
        return mechanism.read_both([findings], [group])

    for other in ({"model": "n"}, {"revision": "s"}, {"split": "validation"}, {"config": "java"}):
        assert read(other, {}) == read({}, other) == []
    (compared,) = read({}, {})
    assert compared.mechanism.pairs == [] and compared.refused == ""
    for other, reason in (
        ({"data": "e@1"}, "attention was probed on d@1, and the masked functions are of e@1"),
        ({"labels": "xyz"}, "the functions that were probed have the labels abc, and those that were masked xyz"),
    ):
        (section,) = mechanism.sections(read({}, other))
        text = section.to_markdown()
        assert f"Not compared: {reason}." in text.replace("\\", "")


def test_sentences_say_no_more_than_the_tests():
    pair = MatchedPair("a", ["A:x->y"], 9, 9, 1.0, 1.0, -0.1, 1.0)

    def told(heads, difference):
        of = Correlations(Correlation(*heads), Correlation(0.2, -0.4, 0.7, 0.6), Correlation(*difference))
        first, second = mechanism._told(Mechanism(9, 0, 0, [pair] * 5, {"effect": of, "restored": of}))
        assert first.replace("the effect T1 − T0", "what is restored in T1") == second
        return first

    start = (
        "Over 5 pairs, the rank correlation of the effect T1 − T0 is +0.60 (95 % interval +0.10 to +0.90, p 0.040) "
        "with the scores of the best heads, and +0.20 (95 % interval −0.40 to +0.70, p 0.600) with the scores of the "
        "best baseline. "
    )
    apart, nan = (0.6, 0.1, 0.9, 0.04), np.nan
    assert told(apart, (0.4, nan, nan, 0.06)) == start + (
        "The test does not separate the two, so the heads explain nothing here that the baseline does not."
    )
    assert told(apart, (0.4, nan, nan, 0.01)) == start + (
        "The correlation of the heads is higher, by +0.40 (p 0.010). This shows an order, not a cause."
    )
    assert "is lower, by −0.40" in told((-0.6, -0.9, -0.1, 0.01), (-0.4, nan, nan, 0.02))
    for heads in ((0.6, 0.1, 0.9, 0.05), (nan, nan, nan, 1)):
        assert told(heads, (nan,) * 4).endswith("The test does not separate the correlation of the heads from 0.")
    (nothing,) = mechanism._told(Mechanism(9, 0, 0, [pair] * 4, {}))
    assert nothing.startswith("Only 4 pairs ") and nothing.endswith(", too few for a rank correlation.")
