"""Entries on masked syntax on a board: what may stand in one table, ranks, the files, and the page in a browser."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from support.evidence.entries import of_model
from support.evidence.hits_files import written
from support.evidence.masked_entries import TYPES, entries, masked
from support.files import csv_rows

from probing.evidence.submission import load
from probing.evidence.submission_masked import TITLES
from probing.evidence.submission_masked import masked as masked_of
from probing.instruments.masking.result import OUTCOMES
from probing.publish import board
from probing.report.board import document
from probing.report.board import save as save_board
from probing.runs.ledger_file import ATTENTION, MASKING
from probing.stats.hits_file import SUFFIX

FILES = ["README.md", "index.html", "models", "report.md", "tables"]
SKILLS = {"user/good": 0.9, "user/same": 0.9, "user/bad": 0.3}


@pytest.fixture(scope="module", autouse=True)
def of_any_data():
    """Entries of models and functions that nobody has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(board.Checker, "check", lambda self, entry: None)
        yield


@pytest.fixture(scope="module")
def made():
    """The entries of three models by name."""
    found = entries([masked(name, skill, functions=60) for name, skill in SKILLS.items()])
    return {one["settings"]["model"]: one for one in found}


@pytest.fixture(scope="module")
def scores(made):
    return {name: load(written(one)) for name, one in made.items()}


def write(folder, found):
    for name, one in found.items():
        file = folder / "entries" / f"{name.replace('/', '-')}{SUFFIX}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(written(one))
    return folder


@pytest.fixture(scope="module")
def saved(made, tmp_path_factory):
    folder = tmp_path_factory.mktemp("board")
    return save_board(board.read([write(folder / "source", made)], "data"), folder / "site").parent


def test_ranks_are_those_of_a_paired_test(made, scores, tmp_path):
    found = board.read([write(tmp_path, made)], "data")
    (table,) = found.of(MASKING)
    assert (len(found), found.of(ATTENTION), found.left_out) == (3, [], [])
    expected = {"user/bad": (3, 3), "user/good": (1, 2), "user/same": (1, 2)}
    for row, of_row in zip(table.rows, table.ranks, strict=True):
        assert of_row == dict.fromkeys(OUTCOMES, expected.pop(row.model))
        # the contributions of functions add up to the score
        means = [row.means[outcome].value for outcome in OUTCOMES]
        assert row.shares.sum(axis=1) == pytest.approx(means, abs=1e-3)
        assert repr(row.means) == repr(scores[row.model].scores("T1"))


def test_a_table_has_what_compares_and_nothing_else(made, tmp_path):
    others = {
        "draws": {"draws": 3},
        "protocol": {"protocol": "published"},
        "spans": {"control": "spans"},
        "config": {"config": "java"},
        "data": {"labels": "ba9876543210"},
        "types": {"node_types": list(TYPES)[:2]},
        "failed": {"failed": 1},
        "length": {"max_length": 300},  # of other text than its tokenizer reads at once
    }
    results = [masked("user/x", functions=60, **of) for of in others.values()]
    found = made | dict(zip(others, entries(results)))
    tables = board.read([write(tmp_path, found)], "data").tables
    alike = ["failed", "length", "user-bad", "user-good", "user-same"]
    alone = [[name] for name in sorted(others) if name not in alike]
    files = [[Path(row.file).name.removesuffix(SUFFIX) for row in table.rows] for table in tables]
    assert sorted(map(sorted, files)) == sorted([alike, *alone])


@pytest.mark.slow
def test_csv_has_the_means_of_the_page(scores, saved):
    (file,) = (saved / "tables").iterdir()
    rows = csv_rows(file)
    assert {row["name"] for row in rows} == set(SKILLS) and len(rows) == len(SKILLS)
    for row, outcome in product(rows, ("jaccard", "restored")):
        told, arms = [], []
        for name, compared in (("T1", ["T1"]), ("T0", ["T0"]), ("Δ", ["T1", "T0"])):
            column = f"{TITLES[outcome]}: {name}"
            told += [float(row[f"{column}{bound}"]) for bound in ("", ", low", ", high")]
            estimate = scores[row["name"]].scores(*compared)[outcome]
            arms += estimate[:3]
        assert told == pytest.approx(arms, abs=1e-4)
        assert float(row[f"{TITLES[outcome]}: Δ, p"]) == pytest.approx(estimate.p, abs=1e-4)
        rank = "3" if row["name"] == "user/bad" else "1–2"
        assert row[f"{TITLES[outcome]}: rank"] == rank


def test_the_page_of_a_model_has_its_node_types(made, scores, tmp_path):
    report = document(board.read([write(tmp_path, {"good": made["user/good"]})], "data"))
    (((section,),),) = ([sections] for _, sections in report.models.values())
    entry, hits = scores["user/good"], scores["user/good"].tables["masking"]
    by_type = entry.by_type(entry.tables)
    assert [name for (name, _), *_ in section.parts[0].rows] == list(by_type)
    for (name, _), functions, sub_tokens, t1, t0, effect, *_ in section.parts[0].rows:
        assert (functions, sub_tokens) == (len(hits.of(name)), masked_of(hits, name))
        of_name = by_type[name]["jaccard"]
        assert [t1, t0, *effect] == pytest.approx([of_name.t1, of_name.t0, *of_name.effect[:4]])


@pytest.mark.slow
def test_a_board_of_both_instruments_explains_both(made, evidence, tmp_path):
    both = {"masked": made["user/good"], "probed": of_model(evidence, "user/base", 0.5)}
    about = document(board.read([write(tmp_path, both)], "data")).about
    assert "Top-k UAS is" in about and "T1 masks" in about


def test_an_attention_board_leaves_no_file_of_masking(made, tmp_path):
    """Files and pages that an earlier board wrote, and this one does not have; nor does it name the instrument."""
    found = board.read([write(tmp_path / "source", made)], "data")
    folder = save_board(found, tmp_path / "site").parent
    assert sorted(path.name for path in folder.iterdir()) == FILES
    pages = [page.read_text() for page in (folder / "models").iterdir()]
    assert len(pages) == 3 and all(name in text for text in pages for name in TYPES)
    save_board(board.Board([], []), folder)
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md",
        "index.html",
        "report.md",
    ]
    assert all("mask" not in path.read_text().lower() for path in folder.iterdir())
