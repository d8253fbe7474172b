"""Masking results in a report: the numbers of its tables, alone and beside those of attention, and its page."""

from __future__ import annotations

import json
import re
import shutil
from types import SimpleNamespace

import numpy as np
import pandas
import pytest
from conftest import figures_unrendered
from support.files import contents, csv_rows
from support.models.byte_tokenizer import all_but, byte_tokenizer
from support.models.random_models import sizes
from support.references import plain_intervals
from transformers import BertConfig, BertForMaskedLM

from codesyntax_dataset import syntaxeval as published
from codesyntax_dataset.errors import LedgerError
from probing import mask, probe
from probing.evidence.masked import FillerGain, Masked, comparable_masked, gather_masked
from probing.instruments.masking.result import MaskResult
from probing.models.masked import MaskedModel
from probing.report import syntaxeval
from probing.report.report import report
from probing.stats.intervals import Estimate

pytestmark = pytest.mark.slow

TYPES = ["if_statement", "return_statement", "parameters", "while_statement", "for_in_clause"]
SIMILARITIES = {
    "Jaccard": "jaccard",
    "Sorensen-Dice": "sorensen_dice",
    "Levenshtein": "levenshtein",
}
SHORT, LONG = 550, 700
LIMIT = 80
RESULTS = "*[0-9a-f].json"
"""What ends with a digest: no examples."""


@pytest.fixture(scope="module")
def masked(dataset_folder, tmp_path_factory):
    """A planted model that loses two letters of `return`, once with fewer functions, which are too long for it."""
    tokenizer = byte_tokenizer()
    model, folder = tmp_path_factory.mktemp("models") / "planted", tmp_path_factory.mktemp("masked")
    BertForMaskedLM(
        BertConfig(vocab_size=len(tokenizer), max_position_embeddings=LONG, **sizes(1, 8, 8, 1))
    ).save_pretrained(model)
    tokenizer.save_pretrained(model)
    run = {"node_types": TYPES, "draws": 2, "limit": LIMIT, "output": folder}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MaskedModel, "scores", staticmethod(all_but("un", wrong="x")))
        mask(str(model), dataset_folder, max_length=LONG, **run)
        mask(str(model), dataset_folder, max_length=SHORT, **run)
    return folder


@pytest.fixture(scope="module")
def probed(tiny_model, dataset_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("probed")
    for split in ("test", "validation"):
        probe(str(tiny_model), dataset_folder, "python", split, limit=20, output=folder)
    return folder


@pytest.fixture(scope="module")
def written(masked, tmp_path_factory):
    return report(
        [masked], tmp_path_factory.mktemp("written") / "report", cluster="function"
    ).parent


@pytest.fixture(scope="module")
def of_probe(probed, dataset_folder, tmp_path_factory):
    with figures_unrendered():
        return report(
            [probed], tmp_path_factory.mktemp("written") / "report", dataset_folder
        ).parent


def rows_of(written, name):
    return csv_rows(written / f"tables/{name}.csv")


def copies_of(masked):
    """Name in the report -> the rows of its ledger, with the names of node types."""
    copies = {}
    for file in masked.glob(RESULTS):
        result = MaskResult.load(file)
        rows = copies[f"planted, max-length {result.settings.max_length}"] = pandas.DataFrame(
            result.ledger.rows
        )
        rows["node_type"] = rows["node_type"].map(dict(enumerate(result.ledger.node_types)))
    return copies


# Numbers


def test_tables_say_what_the_evidence_does(masked, written):
    """Which is that of ledgers (`test_submission_masked.py`), on the functions that both models have."""
    (group,) = comparable_masked(sorted(masked.glob(RESULTS)))
    models = {
        f"planted, max-length {of.result.settings.max_length}": of for of in gather_masked(group)
    }
    copies = copies_of(masked)
    table = {
        (row["similarity"], row["node type"]): row for row in rows_of(written, "masking-python")
    }
    kinds = {kind for _, kind in table}
    assert len(table) == len(SIMILARITIES) * len(kinds)
    for (title, kind), row in table.items():
        short, long = (set(of["function"][of["node_type"] == kind]) for of in copies.values())
        shared, few = len(short & long), len(short & long) < 6
        assert short != long or kind not in ("return_statement", "parameters")
        assert int(row["functions"]) == shared > 0
        assert ("few functions" in row["node type, marks"]) == few
        for name, model in models.items():
            t1, t0 = model.arms(kind, SIMILARITIES[title]).mean(axis=1)
            restored, likely = (
                model.arms(kind, outcome).mean(axis=1)
                for outcome in ("restored", "log_probability")
            )
            effect = model.effects[SIMILARITIES[title]][kind]
            expected = {
                "masked": model.masked[kind],
                "T1": t1,
                "T0": t0,
                "effect": t1 - t0,
                "effect, p": effect.p,
                "restored T1": 100 * restored[0],
                "restored T0": 100 * restored[1],
                "log-probability drop": likely[1] - likely[0],
            }
            ends = {"effect, low": effect.low, "effect, high": effect.high}
            assert not few or {row[f"{name}: {end}"] for end in ends} == {""}
            told = expected if few else expected | ends
            assert {of: float(row[f"{name}: {of}"]) for of in told} == pytest.approx(told)


def test_p_of_one_result_is_corrected_over_node_types_and_outcomes(masked):
    file = next(masked.glob(RESULTS))
    result = MaskResult.load(file)
    rows = pandas.DataFrame(result.ledger.rows)
    of_node_type = rows["copy"] == 0
    means = rows.groupby(["node_type", "function", of_node_type])["jaccard"].mean().unstack()
    raw = {
        result.ledger.node_types[kind]: plain_intervals.mean_p(list(of[True] - of[False]))
        for kind, of in means.groupby("node_type")
    }
    corrected = plain_intervals.holm(list(raw.values()))
    expected = dict(zip(raw, (min(1, 3 * p) for p in corrected)))
    table = syntaxeval.masking_parts(result)[1]
    assert {row[0]: row[4][3] for row in table.rows} == pytest.approx(expected)
    assert expected != raw


def test_p_of_evidence_is_corrected_over_node_types_and_what_is_tested(masked):
    """Similarity, what is restored and log-probability: of each, three times that over node types."""
    (group,) = comparable_masked(sorted(masked.glob(RESULTS)))
    for model in gather_masked(group):
        for outcome in ("jaccard", "restored", "log_probability"):
            effects = model.effects[outcome]
            arms = [model.arms(kind, outcome) for kind in effects]
            raw = [plain_intervals.mean_p(np.round(t1 - t0, 9).tolist()) for t1, t0 in arms]
            expected = [min(1, 3 * p) for p in plain_intervals.holm(raw)]
            assert [effect.p for effect in effects.values()] == pytest.approx(expected)


def test_functions_are_counted_that_are_not_compared(masked, written):
    """What was masked, and what was not: all functions and node types of each run."""
    copies, table = copies_of(masked), rows_of(written, "masking-python")
    compared = sum(int(row["functions"]) for row in table) / len(SIMILARITIES)
    skips = pandas.DataFrame(rows_of(written, "masking-skips")).astype({"count": int})
    counts = skips.groupby(["model", "what"])["count"].sum()
    for row in rows_of(written, "masking-results"):
        model, functions = row["model"], int(row["functions"])
        assert int(row["copies"]) == len(copies[model])
        assert functions + counts[model, "functions"] == LIMIT
        assert compared + counts[model, "function and node type"] == functions * len(TYPES)


def test_published_numbers_are_those_of_the_paper(shared):
    theirs = json.loads((shared / "paper/syntaxeval_published.json").read_text())
    names = dict(zip(published.MODELS, ("M1", "M2")))
    assert {short: name for name, short in names.items()} == theirs["models"]
    assert theirs["source"] == published.SOURCE
    effects = {
        kind: [
            published.effects(name)[kind][model]
            for name in published.SIMILARITIES
            for model in published.MODELS
        ]
        for kind in published.effects("jaccard")
    }
    assert effects == theirs["causal_effect"]
    for arm, by_similarity in theirs["performance_mean_std"].items():
        for name, by_model in by_similarity.items():
            for model, numbers in published.performance(name).items():
                assert [*getattr(numbers, arm.lower())] == by_model[names[model]]


# The finding


def planted_effect(effect, p, functions):
    return Estimate(effect, effect - 0.1, effect + 0.1, p if effect else 1.0, functions)


class Planted(Masked):
    def counted(self, node_type):
        return self.effects["jaccard"][node_type].n


def model(control="sub-tokens", restored=0.5, filled=(), **effects):
    """A model of node types with these effects on all outcomes, corrected p-values and functions; or on each outcome.

    `restored`: its gain in T0 over the commonest sub-token; `filled`: that over fillers in T1, by node type.
    """
    result = SimpleNamespace(settings=SimpleNamespace(control=control))
    made = Planted(result, {}, dict.fromkeys(effects, 9), {})
    by_outcome = {"jaccard": {}, "restored": {}, "log_probability": {}}
    gains = {"jaccard": {}, "restored": {}}
    for name, (effect, p, functions) in effects.items():
        for outcome, of in zip(by_outcome, effect if isinstance(effect, tuple) else (effect,) * 3):
            by_outcome[outcome][name] = planted_effect(of, p, functions)
        for outcome, both in (
            ("restored", (0, restored)),
            ("jaccard", (dict(filled).get(name, 0.1), 0.1)),
        ):
            gains[outcome][name] = [
                FillerGain("letter", 0.5, planted_effect(gain, 0.01, functions)) for gain in both
            ]
    vars(made).update(effects=by_outcome, gains=gains)  # instead of what follows from hits
    return made


def told(control="sub-tokens", **planted):
    """Node type -> functions, and the verdicts by similarity of trees, restored sub-tokens and log-probability."""
    masked = model(control, **planted)
    table = syntaxeval._verdicts(syntaxeval.MaskedModels("t", "t", {"m": masked}))
    return {name: tuple(cells) for name, _, *cells in table.rows}


def test_verdicts_are_what_the_tests_separate():
    separated = told(a=(-0.2, 0.01, 9), b=(-0.9, 0.2, 9), d=(0.4, 0.01, 9), e=(-0.8, 0.01, 5))
    # e: few functions
    assert separated == {
        "b": ("not significant",) * 3,
        "a": ("lower",) * 3,
        "d": ("higher",) * 3,
    }
    assert told(a=(-0.2, 0.0501, 9)) == {"a": ("not significant",) * 3}
    assert told(a=((-0.03, 0.12, 0.0), 0.01, 9))["a"][:2] == ("lower", "higher")


def test_what_is_restored_no_better_than_by_a_filler_has_no_verdict():
    assert told(restored=0, a=(0.2, 0.001, 9)) == {"a": ("as filled",) * 3}
    assert told(filled={"b": 0}, a=(-0.2, 0.01, 9), b=(-0.2, 0.01, 9)) == {
        "a": ("lower",) * 3,
        "b": ("as filled", "lower", "lower"),
    }


# Beside attention


@pytest.mark.usefixtures("unrendered")
def test_attention_and_masking_in_one_report(probed, masked, of_probe, dataset_folder, tmp_path):
    """The tables and figures of both reports, and a page that opens with both findings."""
    found = contents(report([probed, masked], tmp_path / "report", dataset_folder).parent)
    parts = contents(of_probe) | contents(report([masked], tmp_path / "alone").parent)
    pages = "index.html", "report.md"
    for name in pages:
        del parts[name]
    assert {name: data for name, data in found.items() if name not in pages} == parts
    text = found["report.md"].decode()
    titles = re.findall("^## (.*)", text, re.MULTILINE)
    assert titles[:2] == ["What was found", "tiny on Python"]
    assert titles[-3:] == ["Masked syntax", "How to read this", "Results and signatures"]
    assert len({*titles}) == len(titles)
    first = text.partition("## tiny on Python")[0]
    assert (
        "On the first 20 functions (a partial run), with one guess, the attention heads of "
        in first
    )
    page = found["index.html"].decode()  # which opens with one answer
    assert re.search(r"<details>\s*<summary><h2[^>]*>Masked syntax</h2>", page)


def test_a_report_on_attention_has_nothing_of_masking(of_probe):
    files = contents(of_probe)
    assert not any("mask" in name or b"mask" in data.lower() for name, data in files.items())
    assert b"<h1>What language models know about the syntax of code</h1>" in files["index.html"]


# Documents


def test_trees_of_two_parsers_stand_apart(masked, tmp_path):
    file = min(masked.glob(RESULTS))
    ledger = MaskResult.load(file).ledger
    parser, ledger.settings["run"]["parser"] = ledger.settings["run"]["parser"], "another 1.0"
    MaskResult.from_ledger(ledger).save(tmp_path)
    groups = syntaxeval.read_groups([file, *tmp_path.glob(RESULTS)])
    titles = [group.title for group in groups]
    for name in (parser, "another 1.0"):
        assert sum(title.endswith(f", {name}") for title in titles) == 1


def test_two_runs_of_a_job_that_differ_are_refused(masked, tmp_path):
    """Equal ones are shown once."""
    first, second = (shutil.copytree(masked, tmp_path / name) for name in ("first", "second"))
    (group,) = comparable_masked(sorted([*first.glob(RESULTS), *second.glob(RESULTS)]))
    assert len(gather_masked(group)) == 2
    ledger = MaskResult.load(min(second.glob(RESULTS))).ledger
    ledger.rows["log_probability"] -= 1
    MaskResult.from_ledger(ledger).save(second)
    with pytest.raises(LedgerError, match="two runs of the same job"):
        report([first, second], tmp_path / "report")
    assert not (tmp_path / "report").exists()
