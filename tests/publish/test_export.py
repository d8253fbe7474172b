"""Results for other tools: every number of the export is the entry's, and the store's schema takes the files.

`tests/data/every_eval_ever.json` has the fields, types and terms of the schemas of Every Eval Ever 0.3.0 that concern
us, without their texts.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
import shutil
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

import codesyntax_dataset
from codesyntax_dataset.build import build
from codesyntax_dataset.errors import ArgumentError, EntryError, LedgerError
from probing import mask, probe
from probing.cli import main
from probing.evidence.submission import load
from probing.models.location import TINY
from probing.publish.export import export, read

SCHEMAS = json.loads(
    (Path(__file__).parents[1] / "data/every_eval_ever.json").read_text(encoding="utf-8")
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A dataset of few functions."""
    folder = tmp_path_factory.mktemp("data")
    sample = Path(codesyntax_dataset.__file__).parent / "sample"
    for project in ("test/spans", "validation/cachebox"):
        shutil.copytree(sample / project, folder / "source" / project)
    build(str(folder / "source"), ["python"], folder / "codesyntax")
    return folder / "codesyntax"


@pytest.fixture(scope="module")
def results(tiny_model, data, tmp_path_factory):
    """Three results: a model, and a masked model with both controls."""
    folder = tmp_path_factory.mktemp("results")
    for split in ("test", "validation"):
        probe(str(tiny_model), data, split=split, output=folder)
    for control in ("sub-tokens", "spans"):
        types = ["parameters", "identifier"]
        mask(TINY, data, control=control, draws=1, node_types=types, output=folder)
    return folder


@pytest.fixture(scope="module")
def entries(results):
    """By signature."""
    return {entry.signature: entry for entry in read([results])}


@pytest.fixture(scope="module")
def exported(results, tmp_path_factory):
    output = tmp_path_factory.mktemp("exported")
    files = export(
        [results], output, format="every-eval-ever", organization="a lab", relationship="other"
    )
    assert len(files) == 6
    return output


def records(folder: Path) -> list[tuple[dict, list[dict]]]:
    """Each record of the store, with its instances."""
    found = []
    for file in sorted(folder.rglob("*.json")):
        record = json.loads(file.read_text(encoding="utf-8"))
        path = folder / record["detailed_evaluation_results"]["file_path"]
        assert path == file.with_name(f"{file.stem}_samples.jsonl")
        found.append(
            (record, [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()])
        )
    return found


def test_the_store_takes_three_results(exported):
    validators = {name: jsonschema.Draft7Validator(schema) for name, schema in SCHEMAS.items()}
    both = records(exported)
    assert len(both) == 3
    for record, lines in both:
        assert list(validators["aggregate"].iter_errors(record)) == []
        for line in lines:
            assert list(validators["instance"].iter_errors(line)) == []
    broken = json.loads(json.dumps(both[0][0]))
    broken["evaluation_results"][0]["metric_config"].pop("lower_is_better")
    assert list(validators["aggregate"].iter_errors(broken))


def test_every_number_is_the_entrys(exported, entries):
    for record, _ in records(exported):
        ours = record["evaluation_results"]
        entry = entries[ours[0]["generation_config"]["additional_details"]["signature"]]
        scored, rivals = entry.scores(entry.SYSTEM), entry.scores(entry.RIVAL)
        gained = entry.scores(entry.SYSTEM, entry.RIVAL)
        assert len({one["evaluation_result_id"] for one in ours}) == len(ours) > len(scored)
        for one, (cell, score) in zip(ours, scored.items()):
            parameters = one["metric_config"]["metric_parameters"]
            assert tuple(parameters.values()) == (cell if isinstance(cell, tuple) else (cell,))
            details = one["score_details"]
            assert details["score"] == score.value
            if score.low == score.low:
                bounds = details["uncertainty"]["confidence_interval"]
                assert (bounds["lower"], bounds["upper"]) == (score.low, score.high)
            assert float(details["details"]["reference value"]) == rivals[cell].value
            assert float(details["details"]["difference value"]) == gained[cell].value
        details = record["model_info"]["additional_details"]
        assert details["revision"] == entry.settings.revision


def test_instances_make_up_the_number(exported):
    """Their file has the checksum that the record says, and the mean of a relation's edges follows from its functions."""
    for record, lines in records(exported):
        detailed = record["detailed_evaluation_results"]
        file = exported / detailed["file_path"]
        assert hashlib.sha256(file.read_bytes()).hexdigest() == detailed["checksum"]
        assert detailed["total_rows"] == len(lines) > 0
        assert {line["evaluation_id"] for line in lines} == {record["evaluation_id"]}
        by_id = {one["evaluation_result_id"]: one for one in record["evaluation_results"]}
        assert {line["evaluation_result_id"] for line in lines} <= by_id.keys()
        # a mean over edges, or over functions
        for number in {line["evaluation_result_id"] for line in lines}:
            ours = [line for line in lines if line["evaluation_result_id"] == number]
            asked = [int(line["metadata"]["asked"]) for line in ours]
            right = sum(line["evaluation"]["score"] * edges for line, edges in zip(ours, asked))
            score = by_id[number]["score_details"]["score"]
            assert 100 * right / sum(asked) == pytest.approx(score, abs=1e-3)
        if "masking" in record["evaluation_id"]:
            assert by_id.keys() >= {"masking.restored.parameters", "masking.restored.identifier"}
        assert all(
            line["evaluation"]["is_correct"] == (line["evaluation"]["score"] == 1) for line in lines
        )


def test_nothing_local_is_exported(exported, results):
    for file in exported.rglob("*.json*"):
        assert str(results) not in file.read_text(encoding="utf-8")
        assert "/tmp" not in file.read_text(encoding="utf-8") and "def " not in file.read_text(
            encoding="utf-8"
        )


@pytest.fixture(scope="module")
def in_a_table(results, tmp_path_factory):
    (file,) = export([results], tmp_path_factory.mktemp("table"), format="csv")
    return file


def test_a_table_has_the_numbers_of_the_store(exported, in_a_table):
    with in_a_table.open(encoding="utf-8", newline="") as opened:
        rows = {(row["signature"], row["number"]): row for row in csv.DictReader(opened)}
    compared = 0
    for record, _ in records(exported):
        for one in record["evaluation_results"]:
            signature = one["generation_config"]["additional_details"]["signature"]
            row = rows.pop((signature, one["evaluation_result_id"]))
            assert float(row["mean"]) == one["score_details"]["score"]
            compared += 1
    assert compared > 70 and not rows


def test_entries_are_those_of_reports_and_can_be_exported_again(
    results, entries, in_a_table, tmp_path
):
    files = export([results], tmp_path / "entries", format="entry")
    assert {load(file).signature for file in files} == entries.keys()
    (again,) = export([tmp_path / "entries"], tmp_path / "again")
    assert sorted(again.read_text().splitlines()) == sorted(in_a_table.read_text().splitlines())


def test_what_no_board_takes_is_left_out_with_the_reason(results, data, tmp_path, caplog):
    for split in ("test", "validation"):
        probe(TINY, data, "python", split, limit=2, output=tmp_path / "partial")
    with pytest.raises(EntryError, match="a partial run is not published"):
        export([tmp_path / "partial"], tmp_path / "entries", format="entry")
    assert not caplog.records  # it is said once
    files = export([results, tmp_path / "partial"], tmp_path / "entries", format="entry")
    assert len(files) == 3
    (record,) = caplog.records
    assert re.fullmatch(r"left out .*/partial/.*: .*a partial run.*", record.getMessage())


def test_what_cannot_be_exported_is_said_in_a_line(results, tmp_path):
    with pytest.raises(ArgumentError, match="--organization NAME"):
        export([results], tmp_path, format="every-eval-ever")
    with pytest.raises(ArgumentError, match="expected one of entry, csv, every-eval-ever"):
        export([results], tmp_path, format="xml")
    with pytest.raises(ArgumentError, match="first_party"):
        export([results], tmp_path, relationship="friend")
    one = next(results.glob("*.masking.*[0-9a-f].json"))
    (tmp_path / "results.csv").write_text("mine")
    with pytest.raises(LedgerError, match=r"results.csv was not made by `codesyntax export`"):
        export([one], tmp_path)
    assert (tmp_path / "results.csv").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    with pytest.raises(LedgerError):
        export([tmp_path / "empty"], tmp_path)
    ran = CliRunner().invoke(
        main, ["export", str(one), "--output", str(tmp_path / "out")], catch_exceptions=False
    )
    assert (ran.exit_code, ran.stdout) == (0, f"{tmp_path / 'out/results.csv'}\n")
