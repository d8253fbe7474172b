"""Masking results in a report: the numbers of its tables, alone and beside those of attention, and its page."""

from __future__ import annotations

import csv
import itertools
import json
import re
import shutil
from collections import defaultdict
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from conftest import figures_unrendered
from support.models.byte_tokenizer import all_but, byte_tokenizer
from transformers import BertConfig, BertForMaskedLM

from codesyntax_dataset import syntaxeval as published
from codesyntax_dataset.errors import LedgerError
from probing import mask, probe
from probing.evidence.gather import by_instrument
from probing.evidence.masked import FillerGain, Masked, comparable, gather
from probing.instruments.masking.result import MaskResult
from probing.models.masked import MaskedModel
from probing.report import syntaxeval
from probing.report.report import report
from probing.stats.hits import Hits
from probing.stats.intervals import Estimate, corrected

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]

TYPES = ["if_statement", "return_statement", "parameters", "while_statement", "for_in_clause"]
SIMILARITIES = {
    "Jaccard": "jaccard",
    "Sorensen-Dice": "sorensen_dice",
    "Levenshtein": "levenshtein",
}
PAIR = ["node_type", "function"]
SHORT, LONG = 550, 700
LIMIT = 80
RESULTS = "*[0-9a-f].json"
"""What ends with a digest: no examples."""


@pytest.fixture(scope="module")
def masked(dataset_folder, tmp_path_factory):
    """A planted model that loses two letters of `return`, once with fewer functions, which are too long for it."""
    tokenizer = byte_tokenizer()
    sizes = {
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "hidden_size": 8,
        "intermediate_size": 8,
    }
    model, folder = tmp_path_factory.mktemp("models") / "planted", tmp_path_factory.mktemp("masked")
    BertForMaskedLM(
        BertConfig(vocab_size=len(tokenizer), max_position_embeddings=LONG, **sizes)
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
    return report([masked], tmp_path_factory.mktemp("written") / "report").parent


@pytest.fixture(scope="module")
def of_probe(probed, dataset_folder, tmp_path_factory):
    with figures_unrendered():
        return report(
            [probed], tmp_path_factory.mktemp("written") / "report", dataset_folder
        ).parent


@pytest.fixture
def opened(written, page):
    page.goto((written / "index.html").as_uri())
    return page


def rows_of(written, table):
    with open(written / "tables" / f"{table}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def files(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def copies_of(masked):
    """Name in the report -> the rows of its ledger, as the file has them."""
    copies = {}
    for length in (SHORT, LONG):
        (ledger,) = [
            path.with_name(path.name.removesuffix(".json") + ".ledger.parquet")
            for path in masked.glob(RESULTS)
            if json.loads(path.read_text())["settings"]["max_length"] == length
        ]
        rows = copies[f"planted, max-length {length}"] = pq.read_table(ledger).to_pandas()
        rows["node_type"] = rows["node_type"].astype(str)
        rows["restored"] = 100 * rows["hits_1"] / rows["masked"]
    return copies


# Numbers


def test_tables_say_what_the_ledgers_say(masked, written):
    """On the functions that both have, for each node type; effects by the paired test over exactly these."""
    copies = {model: rows.set_index(PAIR) for model, rows in copies_of(masked).items()}
    short, long = (set(rows.index) for rows in copies.values())
    lost = {kind for kind, _ in long - short}
    assert {"return_statement", "parameters"} <= lost
    table = {
        (row["similarity"], row["node type"]): row for row in rows_of(written, "masking-python")
    }
    kinds = {kind for kind, _ in long & short}
    assert table.keys() == set(itertools.product(SIMILARITIES, kinds))
    for (model, rows), title in itertools.product(copies.items(), SIMILARITIES):
        name, rows = SIMILARITIES[title], rows[rows.index.isin(long & short)]
        arms = [
            rows[(rows["copy"] == 0) == first].groupby(PAIR).mean(numeric_only=True)
            for first in (True, False)
        ]
        functions, types = (arms[0].index.get_level_values(of) for of in ("function", "node_type"))
        both = {of: arm[[name]].to_numpy().T for of, arm in zip(("T1", "T0"), arms)}
        hits = Hits.of_rows(functions, types.to_numpy(), both, [0], unit="share")
        (tested,) = corrected([hits.by_group("T1", "T0")], times=3)
        for kind, effect in hits.each(tested).items():
            t1, t0 = (arm.loc[kind].mean() for arm in arms)
            row, expected = (
                table[title, kind],
                {
                    "masked": arms[0].loc[kind]["masked"].sum(),
                    "T1": t1[name],
                    "T0": t0[name],
                    "effect": t1[name] - t0[name],
                    "restored T1": t1["restored"],
                    "restored T0": t0["restored"],
                    "log-probability drop": t0["log_probability"] - t1["log_probability"],
                },
            )
            assert {of: float(row[f"{model}: {of}"]) for of in expected} == pytest.approx(expected)
            few = effect.n < 6
            assert int(row["functions"]) == effect.n
            assert ("few functions" in row["node type, marks"]) == few
            *ends, p = (row[f"{model}: effect, {part}"] for part in ("low", "high", "p"))
            if few:
                assert ends == ["", ""]
            else:
                assert list(map(float, ends)) == pytest.approx([effect.low, effect.high])
            assert float(p) == pytest.approx(effect.p, abs=0.05)  # of other exchanges


def test_functions_are_counted_that_are_not_compared(masked, written):
    """What was masked, and what was not: all functions and node types of each run."""
    copies, compared = copies_of(masked), 0
    for of in rows_of(written, "masking-python"):
        compared += int(of["functions"]) * (of["similarity"] == "Jaccard")
    for row in rows_of(written, "masking-results"):
        counts = defaultdict(int)
        for skip in rows_of(written, "masking-skips"):
            counts[skip["what"]] += int(skip["count"]) * (skip["model"] == row["model"])
        assert int(row["copies"]) == len(copies[row["model"]])
        functions = int(row["functions"])
        assert functions + counts["functions"] == LIMIT
        assert compared + counts["function and node type"] == functions * len(TYPES)


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
    made = Planted(
        SimpleNamespace(control=control), "", [*effects], {}, {}, 9, 9, 0, {}, {}, {}, None
    )
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


def test_colours_and_marks_say_what_the_tables_say(written, opened):
    """`return_statement` is planted to be lost."""
    rows = [row for row in rows_of(written, "masking-python") if row["similarity"] == "Jaccard"]
    name = f"planted, max-length {LONG}"
    lost, gained = (
        [
            row["node type"]
            for row in rows
            if float(row[f"{name}: effect, p"]) < 0.05 and sign * float(row[f"{name}: effect"]) > 0
            if "as filled" not in row[f"{name}: effect, marks"]
        ]
        for sign in (-1, 1)
    )
    assert "return_statement" in lost
    opened.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    body = opened.locator("#table-masking-python tbody:not([hidden])")
    for look, kinds in (("down", lost), ("up", gained)):
        coloured = body.locator(f"tr:has(td:nth-child(15).{look}) td:first-child").all_inner_texts()
        assert sorted(text.split("\n")[0] for text in coloured) == sorted(kinds)


# Beside attention


@pytest.mark.usefixtures("unrendered")
def test_attention_and_masking_in_one_report(probed, masked, of_probe, dataset_folder, tmp_path):
    """From one folder: the tables and figures of both reports, and a page that opens with both findings."""
    together = tmp_path / "together"
    for folder in (probed, masked):
        shutil.copytree(folder, together, dirs_exist_ok=True)
    found = files(report([together], tmp_path / "report", dataset_folder).parent)
    alone = report([masked], tmp_path / "alone").parent
    pages = {"index.html", "report.md"}
    parts = {
        name: data
        for part in (of_probe, alone)
        for name, data in files(part).items()
        if name not in pages
    }
    assert {name: data for name, data in found.items() if name not in pages} == parts
    text = found["report.md"].decode()
    titles = [line[3:] for line in text.splitlines() if line.startswith("## ")]
    assert titles[:2] == ["What was found", "Beyond offsets"]
    assert titles[-3:] == ["Masked syntax", "How to read this", "Results and signatures"]
    assert len({*titles}) == len(titles)
    first = text.partition("## Beyond offsets")[0]
    assert "In python, partial, first 20 functions, the attention heads of " in first
    page = found["index.html"].decode()  # which opens with one answer
    assert re.search(r"<details>\s*<summary><h2[^>]*>Masked syntax</h2>", page)


def test_a_report_on_attention_has_nothing_of_masking(of_probe):
    for name, data in files(of_probe).items():
        assert "mask" not in name
        assert b"mask" not in data.lower()
    assert (
        b"<h1>What language models know about the syntax of code</h1>"
        in files(of_probe)["index.html"]
    )


def test_paths_are_divided_by_what_they_hold(probed, masked, tmp_path):
    file = next(masked.glob(RESULTS))
    found = by_instrument([probed, file, tmp_path / "none"])
    assert found == {
        "masking": [file],
        "attention": [*sorted(probed.glob("*.json")), tmp_path / "none"],
        "silencing": [],
        "information": [],
        "preference": [],
        "surprisal": [],
    }
    found = by_instrument([masked, masked])
    assert (found["masking"], found["attention"]) == (sorted(masked.glob(RESULTS)), [])


# Documents


def test_page_stands_alone(written, opened):
    """The `page` fixture fails on an error in the console and on a request to another host."""
    assert opened.locator("main h2").all_inner_texts() == ["Masked syntax"]
    assert opened.locator("main h3").all_inner_texts() == [
        "python, limit 80",
        "Results and signatures",
    ]
    linked = [
        link.get_attribute("href") for link in opened.locator("caption a, figcaption a").all()
    ]
    assert len(linked) == opened.locator("table, figure").count() == 5
    assert [path for path in linked if not (written / path).is_file()] == []


def test_trees_of_two_parsers_stand_apart(masked, tmp_path):
    result = MaskResult.load(min(masked.glob(RESULTS)))
    result.save(tmp_path)
    result.ledger.settings["run"]["parser"] = "another 1.0"
    type(result).from_ledger(result.ledger).save(tmp_path / "other")
    groups = syntaxeval.read_groups([*tmp_path.glob(RESULTS), *(tmp_path / "other").glob(RESULTS)])
    original, other = sorted(
        (group.title for group in groups), key=lambda title: title.endswith(", another 1.0")
    )
    assert original.endswith(f", {result.run.parser}")
    assert other.endswith(", another 1.0")


def test_what_does_not_belong_is_refused(masked, tmp_path):
    """An altered number, and two runs of one job that differ; equal ones are shown once."""
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        shutil.copytree(masked, folder)
    assert [
        len(gather(group))
        for group in comparable(sorted([*first.glob(RESULTS), *second.glob(RESULTS)]))
    ] == [2]
    file = min(second.glob(RESULTS))
    result = MaskResult.load(file)
    result.ledger.rows["log_probability"] -= 1
    type(result).from_ledger(result.ledger).save(second)
    with pytest.raises(LedgerError, match="two runs of the same job"):
        report([first, second], tmp_path / "report")
    file.write_text(file.read_text().replace('"jaccard": 0.', '"jaccard": 0.9', 1))
    with pytest.raises(LedgerError, match="do not follow from its ledger"):
        report([second], tmp_path / "report")
    file.write_text("{}")
    with pytest.raises(LedgerError, match="is not a masking result"):
        report([second], tmp_path / "report")
    assert not (tmp_path / "report").exists()
