"""Minimal pairs beside attention in a report: numbers of the other tables, of models, checkpoints and no controls."""

from __future__ import annotations

import csv

import pytest
import torch
from conftest import figures_unrendered
from support.models.byte_tokenizer import byte_tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

from codesyntax_dataset.build import build
from probing import prefer, probe
from probing.evidence import mechanism as predictors
from probing.evidence.mechanism import Order
from probing.report.mechanism import told_of_orders
from probing.report.report import report

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]

LIMIT, LENGTH = 30, 900


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Two checkpoints of a decoder that reads bytes, probed and asked for preferences, and an untrained twin."""
    place, tokenizer = tmp_path_factory.mktemp("predictors"), byte_tokenizer()
    build("sample", ["python", "python_pairs"], place / "data")
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 48}
    config = LlamaConfig(vocab_size=len(tokenizer), max_position_embeddings=LENGTH, initializer_range=0.3, **sizes)
    for step in (1, 2):
        torch.manual_seed(step)
        LlamaForCausalLM(config).save_pretrained(place / f"training/step-{step}")
        tokenizer.save_pretrained(place / f"training/step-{step}")
    given = {"output": place / "results", "max_length": LENGTH}
    for split in ("test", "validation"):
        for step in (1, 2):
            probe(place / f"training/step-{step}", place / "data", "python", split, limit=LIMIT, **given)
    for step, control in ((1, None), (2, None), (2, "random-weights")):
        prefer(place / f"training/step-{step}", place / "data", sample=80, control=control, **given)
    with pytest.MonkeyPatch.context() as patch, figures_unrendered():
        patch.setattr(predictors, "LEAST_PAIRS", 1)
        return report([place / "results"], place / "report", place / "data").parent


def test_only_what_rises_with_accuracies_is_said_to_order_them():
    def said(within, beyond, across):
        return told_of_orders([Order("heads", "whole", 6, 7, within, beyond, across)])

    high, low, unsure = (0.9, 0.01), (-0.9, 0.01), (0.4, 0.2)
    assert said(high, high, unsure).startswith("Of 6 models, scores of the best heads (whole texts) order relations as")
    for within, beyond in ((high, unsure), (high, low), (low, high), (unsure, high)):
        assert said(within, beyond, unsure).startswith("Of 6 models, nothing orders relations as")
    assert said(unsure, unsure, high).endswith("scores of the best heads (whole texts) order models so.")
    assert said(unsure, unsure, low).endswith("Nothing orders models so.")


def rows_of(written, table):
    with open(written / "tables" / f"{table}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_numbers_are_those_of_the_other_tables(written):
    rows = rows_of(written, "predictors-python-dependent-to-head")
    assert {row["model"] for row in rows} == {"step-1", "step-2"}  # the twin is a control
    for name in ("step-1", "step-2"):
        here = {row["relation"]: row for row in rows if row["model"] == name}
        (bins,) = (written / "tables").glob(f"{name}.preference.python_pairs.*-bins.csv")
        pairs = {row["pairs with"]: row for row in rows_of(written, bins.stem) if ":" in row["pairs with"]}
        assert here.keys() == pairs.keys() and len(here) >= 5
        for relation, row in here.items():
            assert row["pairs"] == pairs[relation]["pairs"]
            assert row["accuracy: whole texts"] == pairs[relation]["accuracy: whole texts"]
            assert row["bits"] == row["cost"] == ""
        shown = {
            row["relation"]: row
            for row in rows_of(written, f"python-dependent-to-head-relations-{name}")
            if (row["rule"], row["k"]) == ("first", "1") and row["held-out: score"]
        }
        both = here.keys() & shown.keys()
        assert both
        for relation in both:
            assert float(here[relation]["best heads"]) == pytest.approx(float(shown[relation]["held-out: score"]))


def test_the_section_says_what_orders_what(written):
    page = (written / "report.md").read_text(encoding="utf-8")
    assert "What predicts which text a model prefers" in page and "orders relations as the accuracies" in page
    orders = rows_of(written, "predictors-python-dependent-to-head-orders")
    assert [(row["predictor"], row["accuracy"]) for row in orders] == [
        (predictor, score)
        for predictor in ("best heads", "best baseline, without a model")
        for score in ("whole texts", "where they differ")
    ]
    assert {row["models"] for row in orders} == {"2"} and all(row["over models"] == "" for row in orders)
