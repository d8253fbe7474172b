"""The board: what may stand in one table, ranks, what is left out, and the page in a browser."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import itertools
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from support.attacks import entries as forgeries
from support.evidence.entries import MODELS, of_model, settled
from support.evidence.hits_files import written
from support.hub.loopback_hub import LoopbackHub

from codesyntax_dataset.errors import LedgerError
from codesyntax_dataset.safe_files import printable
from probing.cli import main
from probing.evidence.submission import Submission, load
from probing.publish import board
from probing.publish.board import (
    CONFLICT,
    Board,
    BoardRow,
    LeftOut,
    group,
    read,
    rows_of,
)
from probing.publish.verified import Checker, RunAgain
from probing.report.board import save
from probing.stats.hits_file import SUFFIX
from probing.stats.intervals import ALPHA, ranks

pytestmark = pytest.mark.slow

FILES = ("README.md", "report.md", "index.html")
SOME = ("held out copied from published", "HTML in the model's name", "a file that is cut off")
"""Attacks that stand for those that are refused where submissions are read (`test_submission.py`)."""

MARKUP = "<img src=x onerror=alert(1)></script>|`*"


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


def row_of(fields: dict[str, Any], file: str = "file") -> BoardRow:
    (row,) = rows_of([(file, load(written(fields)))])
    return row


def write(folder: Path, entries) -> Path:
    """A folder of entries: name -> entry."""
    for name, entry in entries.items():
        file = folder / "entries" / f"{name}{SUFFIX}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(written(entry))
    return folder


def stem(file: str) -> str:
    return Path(file).name.removesuffix(SUFFIX)


def test_ranks_are_ranges_by_hand():
    """20 functions. Where all of them gain p is 2e-6, and two of 20 that do show nothing."""
    base = np.full(20, 2.0)
    better, unsure = base + 1, base + 0.0
    unsure[:2] += 2
    assert ranks(np.stack([base, better, unsure])) == [(2, 3), (1, 1), (2, 3)]
    assert ranks(np.stack([base, base, base])) == [(1, 3)] * 3
    assert ranks(base[None]) == [(1, 1)]
    # as good as `base` on average, and no test can tell it from either
    swings = base + np.resize([9.0, -9.0], 20)
    assert ranks(np.stack([base, better, swings])) == [(2, 3), (1, 2), (1, 3)]


@pytest.mark.parametrize("functions", [3, 6, 9, 12])
def test_ranks_never_separate_more_often_than_the_exact_test(functions):
    """All exchanges are tried, on differences that few functions decide and on even ones."""
    signs = np.array(list(itertools.product([1, -1], repeat=functions)))
    rng = np.random.default_rng(functions)
    separated = 0
    for trial in range(100):
        gained = rng.normal(1, 0.3, functions) * rng.pareto(1 + trial % 3, functions)
        exact = (np.abs(signs @ gained) >= abs(gained.sum()) - 1e-9).mean()
        apart = ranks(np.stack([gained, np.zeros(functions)]).astype(np.float32)) == [
            (1, 1),
            (2, 2),
        ]
        assert exact <= ALPHA or not apart
        separated += apart
    assert (separated > 0) == (functions > 5)


def test_a_table_has_what_compares_and_nothing_else(evidence, python, tmp_path):
    entries = {
        "base": python,
        "other": of_model(evidence, "user/other", 0.2),
        # the same functions, said in another way
        "fits": settled(python, "user/fits", also_fits=["user/base"]),
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
        ["base", "begins", "fits", "other"],
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
    hits = np.max([hard[who].max(axis=0) for who in ("model", "offset", "keyword")], axis=0)
    hard["n"][np.argmax((hard["n"] > 1) & (hard["n"] > hits))] -= 1
    one, other, same = (
        row_of(of).entry.table for of in (python, fewer, settled(python, "user/same"))
    )
    assert one == same != other


def test_the_order_in_which_entries_come_does_not_matter(evidence, python, tmp_path):
    entries = {str(number): settled(python, name) for number, (name, _) in enumerate(MODELS[:2])}
    entries["2"] = of_model(evidence, "user/better", 1)
    entries["same"] = entries["1"]
    folders = [
        write(tmp_path / name, {number: entries[number]}) for name, number in zip("abcd", entries)
    ]
    for shuffled in ([0, 1, 2, 3], [3, 1, 0, 2]):
        save(read([folders[place] for place in shuffled], DATA), tmp_path / f"board{shuffled[0]}")
    first, other = (
        {
            file.relative_to(folder): file.read_bytes()
            for file in folder.rglob("*")
            if file.is_file()
        }
        for folder in (tmp_path / "board0", tmp_path / "board3")
    )
    assert first == other
    assert sorted({file.parts[0] for file in first}) == sorted([*FILES, "models", "tables"])


def remarks_of(found: Board) -> dict[str, tuple[str, ...]]:
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


def test_verified_beats_claimed_and_two_verified_are_shown(evidence, python, tmp_path):
    low = of_model(evidence, "user/base", -0.9)
    rows = [(name, load(written(of))) for name, of in (("low", low), ("honest", python))]
    ((table,), left_out) = group(rows_of(rows, {"honest": RunAgain(60, 70, "main")}))
    assert [(row.file, row.verified, row.remarks) for row in table.rows] == [
        ("honest", (60, 70, "main"), ())
    ]
    assert left_out == [
        LeftOut("low", "the same model and revision as honest, which this board verified")
    ]
    ((table,), left_out) = group(
        rows_of(rows, {"honest": RunAgain(60, 70, "main"), "low": RunAgain(70, 70, "main")})
    )
    assert ([row.remarks for row in table.rows], left_out) == ([(CONFLICT,)] * 2, [])


def test_who_takes_the_ledger_or_the_numbers_of_another_is_marked(python, tmp_path):
    copied = {**settled(python, "user/copy"), "ledgers": python["ledgers"]}
    found = remarks_of(read([write(tmp_path, {"base": python, "copied": copied})], DATA))
    assert found == {
        "base": ("the ledger of user/copy", "the numbers of user/copy"),
        "copied": ("the ledger of user/base", "the numbers of user/base"),
    }


def test_what_is_left_out_is_listed_with_its_reason(evidence, python, tmp_path):
    folder = write(tmp_path / "source", {"good": python})
    entries = folder / "entries"
    (entries / f"file<img src=x>\n\u202e|{SUFFIX}").write_text("{}")
    attacks = [attack for attack in forgeries.ENTRIES if attack.name in SOME]
    for attack in attacks:
        (entries / f"{attack.name}{SUFFIX}").write_bytes(forgeries.file_of(attack, python))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / f"inside{SUFFIX}").write_bytes(
        written(of_model(evidence, "user/elsewhere", 0.2))
    )
    (entries / "folder").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(entries / f"pipe{SUFFIX}")
    (entries / f"unreadable{SUFFIX}").touch(mode=0)
    (entries / f"link{SUFFIX}").symlink_to(tmp_path / "elsewhere" / f"inside{SUFFIX}")
    (entries / "notes.txt").write_text("no entry")
    output = tmp_path / "board"
    result = CliRunner().invoke(
        main,
        ["board", str(folder), "--data", DATA, "--output", str(output)],
        catch_exceptions=False,
    )
    assert result.exit_code == 0
    assert f"entries: 1, tables: 1, files left out: {len(attacks) + 4}\n" in result.stderr
    assert result.stdout.strip() == str(output / "index.html")
    lines = [
        line.removeprefix("left out source/entries/") for line in result.stderr.splitlines()[:-1]
    ]
    reasons = dict(line.split(": ", 1) for line in lines)
    assert len(reasons) == len(attacks) + 4
    for attack in attacks:
        assert re.search(attack.stopped_by, reasons.pop(f"{attack.name}{SUFFIX}")), attack.name
    assert reasons.pop(f"file<img src=x>\\n\\u202e|{SUFFIX}").startswith("the file is no hits file")
    assert "a link, a device or a folder" in reasons.pop(f"link{SUFFIX}")
    assert "a link, a device or a folder" in reasons.pop(f"pipe{SUFFIX}")
    assert set(reasons) == {f"unreadable{SUFFIX}"}
    texts = {name: (output / name).read_text() for name in FILES}
    for name, text in texts.items():
        assert str(tmp_path) not in text, name
    assert "<img" not in texts["index.html"] + texts["report.md"]
    assert "&lt;img src=x&gt;" in texts["index.html"]


def test_sources_that_are_none(python, tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "elsewhere", {"base": python})
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "entries").symlink_to(tmp_path / "elsewhere" / "entries")
    for source, said in (
        ("empty", "empty has no file *.hits.parquet: expected a folder"),
        ("nothing/to/see", "no folder n"),
        ("n" * 5000, "no folder n"),
        ("linked", "linked has no file *.hits.parquet"),
    ):
        result = CliRunner().invoke(
            main, ["board", source, "--data", DATA, "--output", "board"], catch_exceptions=False
        )
        assert (result.exit_code, said in result.stderr, result.stderr.count("\n")) == (
            1,
            True,
            1,
        ), result.stderr
    assert not Path("board").exists()


def test_markdown_and_csv_have_every_number_of_entries(evidence, python, tmp_path):
    """Which are those of reports (`test_submission.py`)."""
    better = of_model(evidence, "user/better", 1)
    found = read([write(tmp_path, {"base": python, "better": better})], DATA)
    page = save(found, tmp_path / "board")
    (table,) = page.with_name("tables").iterdir()
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    by_place = {tuple(row[name] for name in ("name", "rule", "k")): row for row in rows}
    assert len(by_place) == len(rows)
    entry = load(written(python))
    expected = {"user/base": (entry.scores("model"), entry.scores("model", "combined"))}
    for kind in ("combined", "offset", "keyword"):
        expected[f"{kind} baseline"] = entry.scores(kind), {}
    for name, (scores, differences) in expected.items():
        for cell, score in scores.items():
            if name in ("offset baseline", "keyword baseline") and cell[0] == "beyond-offset":
                continue  # the combined one alone is shown there
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
    assert [line[-1] for line in lines if "user/" in line[0]] == ["claimed |"] * 2
    scores = [float(line[4].split()[0]) for line in lines]
    assert len(scores) == 5 and scores == sorted(scores, reverse=True)
    space = page.with_name("README.md").read_text().split("---\n")[1]
    assert "sdk: static\n" in space and "app_file: index.html\n" in space


@pytest.mark.parametrize(("taken", "named"), [("report.md", ""), ("notes.txt", "notes.txt")])
def test_a_folder_of_something_else_stays_as_it_is(python, tmp_path, taken, named):
    source = write(tmp_path / "source", {"base": python})
    found = read([source], DATA)
    folder = save(found, tmp_path / "board").parent
    (folder / "models/old.html").write_text("of an earlier board")
    save(found, folder)  # what is ours is replaced, or removed
    assert len(list((folder / "models").iterdir())) == 1
    (folder / taken).write_text("my own work")
    before = {file: file.read_bytes() for file in folder.rglob("*.*")}
    with pytest.raises(LedgerError, match=f"{named} was not made by `codesyntax board`"):
        save(found, folder)
    result = CliRunner().invoke(
        main,
        ["board", str(source), "--data", DATA, "--output", str(folder)],
        catch_exceptions=False,
    )
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert {file: file.read_bytes() for file in folder.rglob("*.*")} == before


def test_names_of_others_show_as_they_are():
    assert printable("a\nb\u202ec\ud800") == "a\\nb\\u202ec\\ud800"
    assert len(printable("x" * 1000)) == 300


def test_a_results_repository(evidence, python, tmp_path, monkeypatch):
    """From the loopback Hub: the same board as from a folder, and files that are not worth fetching are named."""
    better = of_model(evidence, "user/better", 1)
    files = {
        f"entries/{name}{SUFFIX}": written(entry)
        for name, entry in (("base", python), ("better", better))
    }
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

        def run(*arguments: str) -> tuple[int, str]:
            done = CliRunner().invoke(
                main, ["board", *arguments, "--data", DATA], catch_exceptions=False
            )
            return done.exit_code, done.stderr

        assert run("user/results", "--output", str(tmp_path / "hub")) == (
            0,
            "entries: 2, tables: 1, files left out: 0\n",
        )
        status, said = run("user/results@later", "--output", str(tmp_path / "later"))
        assert status == 0
        assert (
            "left out user/results@later/entries/[a-z]*.hits.parquet: not a plain file name" in said
        )
        assert (
            "left out user/results@later/entries/large.hits.parquet: the file is larger than"
            in said
        )
        assert (
            "left out user/results@later/entries/largest.hits.parquet: the file is no hits file"
            in said
        )
        unasked = ("large.", "[a-z]")
        assert [
            request for request in hub.requests if any(name in request for name in unasked)
        ] == []
        status, said = run("user/nothing", "--output", str(tmp_path / "nothing"))
        assert (status, "user/nothing does not exist" in said, said.count("\n")) == (1, True, 1)
    folder = write(tmp_path / "results", {"base": python, "better": better})
    save(read([folder], DATA), tmp_path / "folder")
    for name in ("report.md", "README.md"):
        assert (tmp_path / "hub" / name).read_text() == (tmp_path / "folder" / name).read_text()


def unchecked(entry: Submission, name: str, family: str) -> Submission:
    """The entry of another model, whatever its name."""
    settings = entry.settings.model_copy(
        update={"model": name, "revision": hashlib.sha1(name.encode()).hexdigest()}
    )
    other = entry.model_copy(
        update={"settings": settings, "run": entry.run.model_copy(update={"family": family})}
    )
    kind, _, rest = entry.signature.split("|", 2)
    signature = f"{kind}|model:{name}@{settings.revision[:12]}|{rest}"
    other._facts = entry._facts._replace(signature=signature)
    return other


KINDS = {
    "python": {},
    "direction": {"direction": "dependent-to-head"},
    "config": {"config": "python_with_new_lines"},
}


@pytest.fixture(scope="module")
def large(python, tmp_path_factory) -> Path:
    return page_of(10, python, tmp_path_factory.mktemp("large"))


def page_of(number_of_rows: int, python, folder: Path) -> Path:
    """The page of so many rows: 70 % of `python`, 10 % in another direction, 20 % of another config.

    Three are read, the others are theirs under other names, and their means are moved at random: the page is as large
    as that of as many different models.
    """
    rng = np.random.default_rng(0)
    entries = {name: settled(python, "user/name", **of) for name, of in KINDS.items()}
    tables = read([write(folder, entries)], DATA).tables
    read_rows = {stem(row.file): row for table in tables for row in table.rows}
    rows = []
    for number in range(number_of_rows):
        model, family = MODELS[number * len(MODELS) // number_of_rows]
        kind = "config" if number % 5 == 0 else "direction" if number % 10 == 1 else "python"
        row, name = read_rows[kind], f"{model}-{number:03}"
        moved = {"means": {}, "differences": {}}
        for field, estimates in moved.items():
            for cell, estimate in getattr(row, field).items():
                by = rng.normal()
                ends = {end: getattr(estimate, end) + by for end in ("value", "low", "high")}
                estimates[cell] = estimate._replace(**ends)
        entry = unchecked(row.entry, name, family)
        rows.append(dataclasses.replace(row, file=f"{name}{SUFFIX}", entry=entry, **moved))
    tables, twice = group(rows)
    assert twice == []
    for table in tables:  # without the remarks that the same numbers under many names have
        table.rows[:] = [dataclasses.replace(row, remarks=()) for row in table.rows]
    return save(Board(tables, []), folder / "board")


def column(page, title: str, table: int = 0) -> list[str]:
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


def models(page, table: int = 0) -> list[str]:
    return [name for name in column(page, "name", table) if "/" in name]


def choose(page, **filters: str) -> None:
    """Set the menus over the first table."""
    for label, value in filters.items():
        menu = (
            page.locator(".table")
            .first.locator("label", has_text=re.compile(f"^{label} "))
            .locator("select")
        )
        menu.select_option(value)


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
    assert (
        page.locator("h2", has_text="python_with_new_lines").is_visible()
        and len(models(page, 2)) == 2
    )
    everything, box = models(page), page.get_by_role("searchbox", name="Models")
    box.fill("T5")
    assert sorted(models(page)) == sorted(
        name for name in everything if name.startswith("Salesforce/")
    )
    box.fill("CODEBERT-BASE-00")
    assert set(models(page)) == {name for name in everything if "codebert-base-00" in name} != set()
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
    entry = load(written(python))
    texts = page.locator("table").first.evaluate(
        """table => [...table.tBodies[0].rows].map(row =>
            [...row.cells].map(cell => [...cell.childNodes].map(node => node.textContent.trim()).join("|")))"""
    )
    rows = {row[0].split("|")[0]: row for row in texts}
    published, held_out = (entry.tables[protocol] for protocol in ("published", "held-out"))
    assert set(rows) == set(published.names)
    for relation, cells in rows.items():
        assert cells[1] == f"{published.groups[relation].total:,}"
        assert ("few functions" in cells[0]) == published.groups[relation].few
        if relation not in held_out.groups:
            assert [cell.strip("|") for cell in cells[3:7]] == ["–"] * 4
    score, rival = (float(held_out.scores(of)[0, 0]) for of in ("model", "combined"))
    shown, head, *others = rows[held_out.names[0]][3:7]
    assert head == entry.head("held-out", 0, 0)
    told = [float(cell.strip("|").split("|")[0].replace("−", "-")) for cell in (shown, *others)]
    assert told == pytest.approx([score, rival, score - rival], abs=0.0501)
    differences = [float(row[6].replace("−", "-")) for row in rows.values() if row[6] != "–"]
    assert differences == sorted(differences, reverse=True)
    origin = page.locator("[id$=-origin]").text_content()
    signature = entry.signature.split("|data")[1]
    assert f"model:{name}@" in origin and signature in origin and origin.count("SHA-256") == 2
    choose(page, k="20")
    place = published.names.index(next(iter(rows)))
    score = published.scores("model")[published.measures.index(("first", 20)), place]
    assert f"{score:.1f}" in page.locator("table").first.locator("tbody:visible").text_content()
    page.get_by_role("link", name="All models").click()
    page.wait_for_url("**/index.html")


def test_nothing_lies_outside_of_the_page(large, page):
    schemes = ("light", "rgb(255, 255, 255)", 1400), ("dark", "rgb(20, 23, 27)", 400)
    for scheme, background, width in schemes:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(large.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert "claimed" in column(page, "verified")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == background
    assert page.evaluate(OUTSIDE) == []
    page.locator("tbody:not([hidden]) a").first.click()
    page.wait_for_url("**/models/**", wait_until="load")
    assert page.evaluate(OUTSIDE) == []


OUTSIDE = """() => [...document.querySelectorAll("tbody:not([hidden]) td, th")].filter((cell) =>
  cell.checkVisibility() && (cell.getBoundingClientRect().right > innerWidth || cell.scrollWidth > cell.clientWidth + 1)).map((cell) => cell.textContent)"""


def test_names_with_markup_stay_text(evidence, python, tmp_path, page, monkeypatch):
    """`entry.load` refuses such a name; the page does not depend on that."""
    monkeypatch.setattr(board, "load", lambda path: unchecked(load(path), MARKUP, MARKUP))
    entry = of_model(evidence, "user/name", 0.1)
    found = read([write(tmp_path / MARKUP.replace("/", ""), {"entry": entry})], DATA)
    found.left_out.append(LeftOut(MARKUP, MARKUP))
    file = save(found, tmp_path / "board")
    page.goto(file.as_uri())
    assert MARKUP in column(page, "name")
    assert page.locator("#table-left-out tbody").inner_text().split("\t") == [MARKUP, MARKUP]
    page.locator("tbody a").first.click()
    page.wait_for_url("**/models/*.html")
    assert page.locator("h1").text_content().startswith(MARKUP)
    assert page.locator("img").count() == 0
    assert "<img" not in (tmp_path / "board" / "report.md").read_text()
