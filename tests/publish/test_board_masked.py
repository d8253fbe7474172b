"""Entries on masked syntax on a board: what may stand in one table, ranks, the files, and the page in a browser."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from support.evidence.hits_files import written
from support.evidence.masked_entries import TYPES, entries, masked

from codesyntax_dataset.errors import LedgerError
from probing.evidence.submission import load
from probing.evidence.submission_masked import masked as masked_of
from probing.instruments.masking.result import OUTCOMES
from probing.publish import board
from probing.report.board import save as save_board
from probing.runs.ledger_file import ATTENTION, MASKING
from probing.stats.hits_file import SUFFIX

FILES = ["README.md", "board.csv", "board.md", "index.html", "masking.csv", "models"]
SKILLS = {"user/good": 0.9, "user/same": 0.9, "user/bad": 0.3}


@pytest.fixture(scope="module")
def made():
    """The entries of three models by name."""
    found = entries([masked(name, skill, functions=60) for name, skill in SKILLS.items()])
    return {one["settings"]["model"]: one for one in found}


@pytest.fixture(scope="module")
def scores(made):
    return {name: load(written(one)) for name, one in made.items()}


def write(folder: Path, found) -> Path:
    for name, one in found.items():
        file = folder / "entries" / f"{name.replace('/', '-')}{SUFFIX}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(written(one))
    return folder


@pytest.fixture(scope="module")
def saved(made, tmp_path_factory):
    folder = tmp_path_factory.mktemp("board")
    return save_board(board.read([write(folder / "source", made)]), folder / "site").parent


def test_ranks_are_those_of_a_paired_test(made, scores, tmp_path):
    found = board.read([write(tmp_path, made)])
    ((table,), left_out) = found.of(MASKING), found.left_out
    assert (len(found), found.of(ATTENTION), left_out) == (3, [], [])
    ranks = {row.model: of for row, of in zip(table.rows, table.ranks)}
    assert ranks["user/bad"] == dict.fromkeys(OUTCOMES, (3, 3))
    assert ranks["user/good"] == ranks["user/same"] == dict.fromkeys(OUTCOMES, (1, 2))
    for row in table.rows:  # the contributions of functions add up to the score
        means = [row.means[outcome].value for outcome in OUTCOMES]
        assert row.shares.sum(axis=1) == pytest.approx(means, abs=1e-3)
        assert repr(row.means) == repr(scores[row.model].scores("T1"))


def test_a_table_has_what_compares_and_nothing_else(made, tmp_path):
    others = {
        "draws": masked("user/x", draws=3, functions=60),
        "protocol": masked("user/x", protocol="published", functions=60),
        "spans": masked("user/x", control="spans", functions=60),
        "config": masked("user/x", config="java", functions=60),
        "data": masked("user/x", labels="ba9876543210", functions=60),
        "types": masked("user/x", node_types=list(TYPES)[:2], functions=60),
        "failed": masked("user/x", failed=1, functions=60),
        "length": masked(
            "user/x", max_length=300, functions=60
        ),  # of other text than its tokenizer reads at once
    }
    found = {name: entries([one])[0] for name, one in others.items()}
    (tmp_path / "all").mkdir()
    tables = board.read([write(tmp_path / "all", {**made, **found})]).tables
    assert sorted(
        sorted(row.file.split("/")[-1].removesuffix(SUFFIX) for row in table.rows)
        for table in tables
    ) == [
        ["config"],
        ["data"],
        ["draws"],
        ["failed", "length", "user-bad", "user-good", "user-same"],
        ["protocol"],
        ["spans"],
        ["types"],
    ]


def test_what_was_not_compared_is_missed(tmp_path):
    """In three pairs a comparison failed: the table is the same, and the score lower than on what was compared."""
    found = {
        one["settings"]["model"]: one
        for one in entries([masked("user/a", failed=3), masked("user/b")])
    }
    board_of = board.read([write(tmp_path, found)])
    ((table,), left_out) = board_of.tables, board_of.left_out
    assert ([row.model for row in table.rows], left_out) == (["user/a", "user/b"], [])
    assert [sum(row.entry.uncompared.values()) for row in table.rows] == [3, 0]
    missing, whole = table.rows
    assert missing.means["jaccard"].value < missing.entry.on_read["jaccard"]
    assert whole.entry.on_read == {}


def test_csv_has_every_mean(made, scores, saved):
    with open(saved / "masking.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * len(OUTCOMES) * (1 + len(TYPES))
    for row in rows:
        of, outcome = scores[row["model"]], row["outcome"]
        if name := row["node type"]:
            hits = of.tables["masking"]
            assert (int(row["functions"]), int(row["masked"])) == (
                len(hits.of(name)),
                masked_of(hits, name),
            )
            assert float(row["T1"]) == pytest.approx(
                of.by_type(of.tables)[name][outcome].t1, abs=1e-4
            )
            assert (row["first rank"], row["T1, low"]) == ("", "")
        else:
            score = [of.scores(*compared)[outcome] for compared in (("T1",), ("T0",), ("T1", "T0"))]
            told = [
                [float(row[f"{part}{bound}"]) for bound in ("", ", low", ", high")]
                for part in ("T1", "T0", "effect")
            ]
            assert np.array(told) == pytest.approx(
                np.array([of_arm[:3] for of_arm in score]), abs=1e-4
            )
            assert float(row["effect, p"]) == pytest.approx(score[2].p, abs=1e-4)
            assert int(row["first rank"]) <= int(row["last rank"])


def test_an_attention_board_has_nothing_of_masking(tmp_path):
    folder = save_board(board.Board([], []), tmp_path / "site").parent
    assert sorted(path.name for path in folder.iterdir()) == FILES[:4]
    assert all("mask" not in path.read_text().lower() for path in folder.iterdir())


def test_an_attention_board_leaves_no_file_of_masking(made, tmp_path):
    """Files and pages that an earlier board wrote, and this one does not have."""
    folder = save_board(board.read([write(tmp_path / "source", made)]), tmp_path / "site").parent
    assert sorted(path.name for path in folder.iterdir()) == FILES
    save_board(board.Board([], []), folder)
    assert sorted(path.name for path in folder.iterdir()) == FILES[:4]
    (folder / "masking.csv").write_text("mine")
    with pytest.raises(LedgerError, match="was not made by"):
        save_board(board.Board([], []), folder)


@pytest.mark.slow
def test_page_shows_models_and_their_node_types(made, scores, saved, page):
    """The `page` fixture fails on an error in the console and on a request to another host."""
    page.goto((saved / "index.html").as_uri())
    rows = page.locator("table").first.locator("tbody > tr")
    names = [row.locator("td").first.inner_text() for row in rows.all()]
    best = sorted(made, key=lambda name: -scores[name].scores("T1")["jaccard"].value)
    assert names == best
    cells = rows.first.locator("td").all_inner_texts()
    t1, t0 = (scores[best[0]].scores(arm)["jaccard"].value for arm in ("T1", "T0"))
    assert cells[2:4] == ["bert", "1–2"]
    assert cells[4].split("\n")[0] == f"{t1:.1f}"
    assert cells[5].split("\n")[0] == f"{t0:.1f}"
    page.get_by_role("link", name=best[0]).click()
    types = [
        row.locator("td").first.inner_text()
        for row in page.locator("table").first.locator("tbody > tr").all()
    ]
    assert types == list(TYPES)
    for width in (1400, 400):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
