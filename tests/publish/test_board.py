"""The board: what may stand in one table, ranks, what is left out, and the page in a browser."""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from support.evidence.entries import MODELS, of_model, settled
from support.evidence.hits_files import written
from support.files import contents, csv_rows
from support.hub.loopback_hub import LoopbackHub

from codesyntax_dataset.errors import CodeSyntaxError, HubError, LedgerError
from codesyntax_dataset.safe_files import printable
from probing.cli import main
from probing.evidence.submission import load
from probing.publish import board
from probing.publish.board import (
    CONFLICT,
    Board,
    BoardRow,
    LeftOut,
    group,
    read,
)
from probing.publish.verified import Checker, RunAgain
from probing.report.board import save
from probing.stats.hits_file import SUFFIX
from probing.stats.intervals import ranks

pytestmark = pytest.mark.slow

FILES = ("README.md", "report.md", "index.html")


DATA = "data"


@pytest.fixture(scope="module", autouse=True)
def of_any_data():
    """Entries need not be of the data, which has tests of its own (`test_verified.py`)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checker, "check", lambda self, entry: None)
        yield


@pytest.fixture(scope="module")
def python(evidence):
    """The entry of a model much like the tiny one on Python, under another name."""
    return of_model(evidence, "user/base", 0.5)


def row_of(fields, file="file"):
    return BoardRow.of(file, load(written(fields)))


def write(folder, entries):
    """A folder of entries: name -> entry."""
    for name, entry in entries.items():
        file = folder / "entries" / f"{name}{SUFFIX}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(written(entry))
    return folder


def stem(file):
    return Path(file).name.removesuffix(SUFFIX)


def test_ranks_are_ranges_by_hand():
    """20 functions, all of which gain; and a model as good as `base` on average that no test can tell from either."""
    base = np.full(20, 2.0)
    swings = base + np.resize([9.0, -9.0], 20)
    assert ranks(np.stack([base, base + 1, swings])) == [(2, 3), (1, 2), (1, 3)]
    assert ranks(base[None]) == [(1, 1)]


def test_a_table_has_what_compares_and_nothing_else(evidence, python, tmp_path):
    entries = {
        "base": python,
        "other": of_model(evidence, "user/other", 0.2),
        # each decoder has a token of its own in front
        "begins": settled(python, "user/begins", begin=7),
        "config": settled(python, "user/base", config="python_with_new_lines"),
        "dtype": settled(python, "user/base", dtype="bfloat16"),
        "length": settled(python, "user/base", max_length=510),
        "direction": settled(python, "user/base", direction="dependent-to-head"),
    }
    found = read([write(tmp_path, entries)], DATA)
    assert found.left_out == []
    tables = sorted(sorted(stem(row.file) for row in table.rows) for table in found.tables)
    assert tables == [
        ["base", "begins", "other"],
        ["config"],
        ["direction"],
        ["dtype"],
        ["length"],
    ]
    assert all(
        rank[1] <= len(table.rows)
        for table in found.tables
        for row in table.ranks
        for rank in row.values()
    )


def test_other_hard_edges_stand_apart(python):
    """One hard edge less, which nobody hit."""
    fewer = settled(python, "user/fewer")
    hard = fewer["tables"]["beyond-offset"]
    hits = np.max(
        [hard[who].max(axis=0) for who in ("model", "offset", "keyword", "context")], axis=0
    )
    hard["n"][np.argmax((hard["n"] > 1) & (hard["n"] > hits))] -= 1
    one, other, same = (
        row_of(of).entry.table for of in (python, fewer, settled(python, "user/same"))
    )
    assert one == same != other


def test_the_order_in_which_entries_come_does_not_matter(evidence, python, tmp_path):
    entries = {name: settled(python, name) for name, _ in MODELS[:2]}
    entries |= {"better": of_model(evidence, "user/better", 1), "same": entries[MODELS[1][0]]}
    folders = [write(tmp_path / name, {"of": of}) for name, of in zip("abcd", entries.values())]
    boards = []
    for places in ([0, 1, 2, 3], [3, 1, 0, 2]):
        folder = tmp_path / f"board{places[0]}"
        save(read([folders[place] for place in places], DATA), folder)
        boards.append(contents(folder))
    assert boards[0] == boards[1]
    assert {Path(file).parts[0] for file in boards[0]} == {*FILES, "models", "tables"}


def remarks_of(found):
    return {stem(row.file): row.remarks for table in found.tables for row in table.rows}


def test_two_entries_for_one_model_are_in_conflict(evidence, python, tmp_path):
    """Nobody takes the place of an honest entry by a lower one; in another case it is the same name."""
    sabotage = of_model(evidence, "user/base", -0.9)
    other = settled(sabotage, "USER/Base", revision=python["settings"]["revision"])
    found = read([write(tmp_path, {"low": other, "first": python, "again": python})], DATA)
    assert remarks_of(found) == {"again": (CONFLICT,), "low": (CONFLICT,)}
    ((file, reason),) = found.left_out
    assert (stem(file), reason.endswith(f"as {tmp_path.name}/entries/again{SUFFIX}")) == (
        "first",
        True,
    )


def test_verified_beats_claimed_and_two_verified_are_shown(evidence, python):
    low = of_model(evidence, "user/base", -0.9)
    honest = BoardRow.of("honest", load(written(python)), RunAgain(60, 70, "main"))
    ((table,), left_out) = group([row_of(low, "low"), honest])
    (row,) = table.rows
    assert (row.file, row.verified, row.remarks) == ("honest", (60, 70, "main"), ())
    reason = "the same model and revision as honest, which this board verified"
    assert left_out == [LeftOut("low", reason)]
    run_again = BoardRow.of("low", load(written(low)), RunAgain(70, 70, "main"))
    ((table,), left_out) = group([run_again, honest])
    assert ([row.remarks for row in table.rows], left_out) == ([(CONFLICT,)] * 2, [])


def test_who_takes_the_ledger_or_the_numbers_of_another_is_marked(python, tmp_path):
    copied = {**settled(python, "user/copy"), "ledgers": python["ledgers"]}
    found = remarks_of(read([write(tmp_path, {"base": python, "copied": copied})], DATA))
    assert found == {
        "base": ("the ledger of user/copy", "the numbers of user/copy"),
        "copied": ("the ledger of user/base", "the numbers of user/base"),
    }


def test_what_is_left_out_is_listed_with_its_reason(python, tmp_path):
    folder = write(tmp_path / "source", {"good": python})
    elsewhere = write(tmp_path / "elsewhere", {"inside": settled(python, "user/elsewhere")})
    entries, strange = folder / "entries", f"file<img src=x>\n\u202e|{SUFFIX}"
    (entries / strange).write_text("{}")
    expected = {printable(strange): "the file is no hits file", f"unreadable{SUFFIX}": ""}
    (entries / "folder").symlink_to(elsewhere / "entries")
    (entries / f"unreadable{SUFFIX}").touch(mode=0)
    os.mkfifo(entries / f"pipe{SUFFIX}")
    (entries / f"link{SUFFIX}").symlink_to(elsewhere / "entries" / f"inside{SUFFIX}")
    expected |= {f"link{SUFFIX}": "a link or a folder", f"pipe{SUFFIX}": "regular file"}
    output = tmp_path / "board"
    command = ["board", str(folder), "--data", DATA, "--output", str(output)]
    result = CliRunner().invoke(main, command, catch_exceptions=False)
    assert (result.exit_code, result.stdout.strip()) == (0, str(output / "index.html"))
    *lines, last = result.stderr.splitlines()
    assert last == f"entries: 1, tables: 1, files left out: {len(expected)}"
    reasons = dict(line.removeprefix("left out source/entries/").split(": ", 1) for line in lines)
    assert reasons.keys() == expected.keys()
    assert all(re.search(reason, reasons[name]) for name, reason in expected.items()), reasons
    texts = {name: (output / name).read_text() for name in FILES}
    assert not any(str(tmp_path) in text for text in texts.values())
    assert "<img" not in texts["index.html"] + texts["report.md"]
    assert "&lt;img src=x&gt;" in texts["index.html"]


def test_sources_that_are_none(python, tmp_path, monkeypatch):
    """No name of a folder, and entries behind a link; further ones are in `tests/cli/mistakes.txt`."""
    monkeypatch.chdir(tmp_path)
    Path("linked").mkdir()
    entries = write(tmp_path / "elsewhere", {"base": python}) / "entries"
    Path("linked/entries").symlink_to(entries)
    for source, said in (("n" * 5000, "no folder n"), ("linked", "linked has no file .*hits")):
        with pytest.raises(CodeSyntaxError, match=said):
            read([source], DATA)


def test_csv_and_markdown_have_the_numbers_of_entries(evidence, python, tmp_path):
    """Which are those of reports (`test_submission.py`)."""
    better = of_model(evidence, "user/better", 1)
    found = read([write(tmp_path, {"base": python, "better": better})], DATA)
    page = save(found, tmp_path / "board")
    (file,) = page.with_name("tables").iterdir()
    rows = csv_rows(file)
    by_place = {tuple(row[name] for name in ("name", "rule", "k")): row for row in rows}
    assert len(by_place) == len(rows)
    entry = load(written(python))
    expected = {"user/base": (entry.scores("model"), entry.scores("model", "combined"))}
    for kind in ("combined", "offset", "keyword", "context"):
        expected[f"{kind} baseline"] = entry.scores(kind), {}
    for name, (scores, differences) in expected.items():
        for cell, score in scores.items():
            if name not in ("user/base", "combined baseline") and cell[0] == "beyond-offset":
                continue  # the combined one alone is shown there
            if name == "context baseline" and cell[0] == "published":
                continue  # it is not in the paper
            protocol, *place = cell
            row = by_place[(name, *place)]
            told = [row[f"{protocol}: UAS{end}"] for end in ("", ", low", ", high")]
            assert [float(number) for number in told] == pytest.approx(score[:3], abs=1e-4)
            if cell in differences:
                ends = ("", ", low", ", high", ", p")
                told = [float(row[f"{protocol}: Δ{end}"]) for end in ends]
                assert told == pytest.approx(differences[cell][:4], abs=1e-4)
    assert by_place["user/better", "first", "1"]["held-out: rank"] == "1"
    assert {row["verified"] for row in rows if "user/" in row["name"]} == {"claimed"}
    markdown = page.with_name("report.md").read_text()
    tables = markdown[: markdown.index("## How to read this")]
    lines = [line.split(" | ") for line in tables.splitlines() if line.startswith("| ")][2:]
    means = [float(line[4].split()[0]) for line in lines]
    assert len(means) == 6 and means == sorted(means, reverse=True)
    assert [line[-1] for line in lines if "user/" in line[0]] == ["claimed |"] * 2
    space = page.with_name("README.md").read_text().split("---\n")[1]
    assert "sdk: static\n" in space and "app_file: index.html\n" in space


def test_what_is_ours_is_replaced_and_nothing_else(python, tmp_path):
    found = read([write(tmp_path / "source", {"base": python})], DATA)
    folder = save(found, tmp_path / "board").parent
    (folder / "models/old.html").write_text("of an earlier board")
    save(found, folder)
    assert len(list((folder / "models").iterdir())) == 1
    (folder / "notes.txt").write_text("my own work")
    before = contents(folder)
    with pytest.raises(LedgerError, match=r"notes.txt was not made by `codesyntax board`"):
        save(found, folder)
    assert contents(folder) == before


def test_names_of_others_show_as_they_are():
    assert printable("a\nb\u202ec\ud800") == "a\\nb\\u202ec\\ud800"
    assert len(printable("x" * 1000)) == 300


def test_ledgers_of_a_results_repository(tmp_path, monkeypatch):
    monkeypatch.setattr(board, "LARGEST_LEDGER", 5)
    with LoopbackHub() as hub:
        hub.connect(monkeypatch, tmp_path / "cache")
        hub.add("user/results", {f"ledgers/{size}.parquet": b" " * size for size in (5, 6)})
        with board._opened_source("user/results") as source:
            assert [bool(source.ledger(str(size))) for size in (5, 6, 7)] == [True, False, False]


def test_a_results_repository(evidence, python, tmp_path, monkeypatch):
    """From the loopback Hub: entries, and the names of files that are not worth fetching."""
    models = {"base": python, "better": of_model(evidence, "user/better", 1)}
    files = {f"entries/{name}{SUFFIX}": written(entry) for name, entry in models.items()}
    strange = {
        "README.md": b"---\n---\n",
        "entries/[a-z]*.hits.parquet": b"{}",
        "entries/large.hits.parquet": b" " * (board.LARGEST_ENTRY + 1),
        "entries/largest.hits.parquet": b" " * board.LARGEST_ENTRY,
    }
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    with LoopbackHub() as hub:
        hub.connect(monkeypatch, tmp_path / "cache")
        hub.add("user/results", files)
        hub.add("user/results", {**files, **strange}, revision="later")
        found, later = (read([f"user/results{at}"], DATA) for at in ("", "@later"))
        asked = " ".join(hub.requests)
        with pytest.raises(HubError, match="user/nothing.* does not exist"):
            read(["user/nothing"], DATA)
    assert {row.model for row in found.tables[0].rows} == {"user/base", "user/better"}
    assert found.left_out == [] and len(later) == 2
    assert "large." not in asked and "[a-z]" not in asked
    place = "user/results@later/entries"
    for name, reason in (
        ("[a-z]*", "not a plain file name"),
        ("large", "the file is larger than"),
        ("largest", "the file is no hits file"),
    ):
        assert dict(later.left_out)[f"{place}/{name}{SUFFIX}"].startswith(reason)


KINDS = {
    "python": {},
    "direction": {"direction": "dependent-to-head"},
    "config": {"config": "python_with_new_lines"},
}


@pytest.fixture(scope="module")
def large(python, tmp_path_factory):
    return page_of(10, python, tmp_path_factory.mktemp("large"))


def page_of(number_of_rows, python, folder):
    """The page of so many rows: 70 % of `python`, 10 % in another direction, 20 % of another config."""
    entries = {}
    for number in range(number_of_rows):
        model, family = MODELS[number * len(MODELS) // number_of_rows]
        kind = "config" if number % 5 == 0 else "direction" if number % 10 == 1 else "python"
        of = KINDS[kind] | {"family": family}
        entries[str(number)] = settled(python, f"{model}-{number:03}", **of)
    tables = read([write(folder, entries)], DATA).tables
    for table in tables:  # without the remarks that the same numbers under many names have
        table.rows[:] = [dataclasses.replace(row, remarks=()) for row in table.rows]
    return save(Board(tables, []), folder / "board")


def column(page, title, table=0):
    """The texts of one column of a table, by its header with the group."""
    return page.evaluate(
        """([title, number]) => {
            const table = document.querySelectorAll("table")[number];
            const place = [...table.tHead.rows[table.tHead.rows.length - 1].cells].findIndex((head) => head.textContent.trim() === title);
            const rows = [...table.querySelectorAll("tbody:not([hidden]) > tr:not([hidden])")];
            return rows.map((row) => row.cells[place].firstChild.textContent.trim());
        }""",
        [title, table],
    )


def models(page, table=0):
    return [name for name in column(page, "name", table) if "/" in name]


@pytest.mark.long
def test_the_page_of_200_entries_is_small_and_ready_at_once(python, page, tmp_path):
    large = page_of(200, python, tmp_path)
    assert large.stat().st_size < 2_000_000
    page.goto(large.as_uri())
    # milliseconds since the page was asked for
    assert page.evaluate("performance.now()") < 5000
    assert (
        page.locator("footer p")
        .text_content()
        .startswith("Made by codesyntax board from 200 submissions, and 0 files left")
    )
    assert "All files were read" in page.locator("main section").last.text_content()


def test_search_and_contents(large, page):
    page.goto(large.as_uri())
    titles = [title.split(":")[0] for title in page.locator("h2").all_text_contents()]
    assert titles[:3] == [
        "python, test, head-to-dependent",
        "python, test, dependent-to-head",
        "python_with_new_lines, test, head-to-dependent",
    ]
    page.get_by_text("Contents", exact=True).click()
    page.get_by_role("link", name="python_with_new_lines").click()
    assert page.locator("h2", has_text="python_with_new_lines").is_visible()
    everything, box = models(page), page.get_by_role("searchbox", name="Models")
    for words, of in (("T5", "Salesforce/"), ("CODEBERT-BASE-00", "codebert-base-00")):
        box.fill(words)
        assert sorted(models(page)) == [name for name in sorted(everything) if of in name] != []
    assert "combined baseline" in column(page, "name")
    box.fill("")
    assert models(page) == everything


def test_the_page_of_a_model_by_keyboard(large, page, python):
    page.goto(large.as_uri())
    name = models(page)[1]
    page.locator("table").first.get_by_role("button").last.focus()
    page.keyboard.press("Tab")  # then the table's models, one after the other
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == name
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    page.wait_for_url("**/models/*.html")
    assert page.locator("h1").text_content().startswith(f"{name}@")
    origin = page.locator("[id$=-origin]").text_content()
    entry = load(written(python))
    assert f"model:{name}@" in origin and entry.signature.split("|data")[1] in origin
    texts = page.locator("table").first.evaluate(
        """table => [...table.tBodies[0].rows].map(row =>
            [...row.cells].map(cell => [...cell.childNodes].map(node => node.textContent.trim()).join("|")))"""
    )
    rows = {row[0].split("|")[0]: row for row in texts}
    published, held_out = (entry.tables[protocol] for protocol in ("published", "held-out"))
    assert set(rows) == set(published.names) > set(held_out.groups)
    for relation, (shown, edges, _, *others) in rows.items():
        group, missing = published.groups[relation], ["–", "–", "–", "–"]
        assert edges == f"{group.total:,}" and ("few functions" in shown) == group.few
        none = [cell.strip("|") for cell in others[:4]] == missing
        assert none == (relation not in held_out.groups)
    score, rival = (float(held_out.scores(of)[0, 0]) for of in ("model", "combined"))
    shown, head, *others = rows[held_out.names[0]][3:7]
    assert head == entry.head("held-out", 0, 0)
    told = [float(cell.strip("|").split("|")[0].replace("−", "-")) for cell in (shown, *others)]
    assert told == pytest.approx([score, rival, score - rival], abs=0.0501)
    page.get_by_role("link", name="All models").click()
    page.wait_for_url("**/index.html")


def test_nothing_lies_outside_of_the_page(large, page):
    page.set_viewport_size({"width": 400, "height": 800})
    for scheme, background in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(20, 23, 27)")):
        page.emulate_media(color_scheme=scheme)
        page.goto(large.as_uri())
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == background
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    assert page.evaluate(OUTSIDE) == []
    page.locator("tbody:not([hidden]) a").first.click()
    page.wait_for_url("**/models/**", wait_until="load")
    assert page.evaluate(OUTSIDE) == []


OUTSIDE = """() => [...document.querySelectorAll("tbody:not([hidden]) td, th")].filter((cell) =>
  cell.checkVisibility() && (cell.getBoundingClientRect().right > innerWidth || cell.scrollWidth > cell.clientWidth + 1)).map((cell) => cell.textContent)"""
