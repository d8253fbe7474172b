"""Specs of tables: how columns are read, and that every spec that is there can be."""

from __future__ import annotations

import re
import string
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.tables import described

from probing.report import kinds, specs

SPECS = {
    "columns": {"counts": [["edges", "count", {"spare": True}]]},
    "table": {
        "toy": {
            "title": "Scores of\n  {model}",
            "notes": "At least {least}.",
            "filters": 1,
            "columns": [
                ["rule"],
                {"use": "counts"},
                {"when": "paper", "columns": [["paper", "percent", {"of": "printed"}]]},
                {
                    "for": "protocol",
                    "in": "protocols",
                    "group": "{protocol}",
                    "columns": [
                        ["score", "percent"],
                        ["head", "name", {"of": "best.head"}],
                        ["offset", "percent", {"at": "rivals", "of": "offset"}],
                    ],
                },
            ],
        }
    },
    "figure": {"toy": {"title": "Heads of {model}", "alt": "Dots of {model}"}},
    "text": {"toy": "{count} of\n{model}"},
    "facts": {"toy": {"model": "{model}", "edges": "{count} edges"}},
}


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setattr(specs, "_specs", lambda: SPECS)
    words = {"model": "m", "least": 3, "protocols": ["held-out", "published"]}
    held = {"score": 5, "best": SimpleNamespace(head="1-2"), "rivals": {"offset": 3}}
    row = {"rule": "first", "edges": 7, "printed": 40.5, "held-out": held}
    other = {**row, "held-out": None, "published": held}
    return lambda **more: specs.table("toy", [row, other], **words, **more)


def test_columns_are_repeated_for_each_item_and_read_behind_it(toy):
    table = toy(paper=False)
    shown = [(column.group, column.name, column.spare) for column in table.columns]
    assert shown == [
        ("", "rule", False),
        ("", "edges", True),
        ("held-out", "score", False),
        ("held-out", "head", False),
        ("held-out", "offset", False),
        ("published", "score", False),
        ("published", "head", False),
        ("published", "offset", False),
    ]
    assert table.rows == [
        ["first", 7, 5, "1-2", 3, None, None, None],
        ["first", 7, None, None, None, 5, "1-2", 3],
    ]
    assert (table.name, table.title, table.notes) == ("toy", "Scores of m", "At least 3.")
    assert table.filters == 1


def test_columns_under_a_condition_are_there_if_it_holds(toy):
    table = toy(paper=True)
    assert [(column.name, column.kind) for column in table.columns][2] == ("paper", kinds.PERCENT)
    assert table.rows[0][2] == 40.5


def test_texts_are_on_one_line_and_have_their_words(toy):
    assert specs.text("toy", count=2, model="m") == "2 of m"
    assert specs.facts("toy", count=2, model="m") == {"model": "m", "edges": "2 edges"}
    figure = specs.figure("toy", "file", lambda: None, model="m")
    assert (figure.name, figure.table) == ("file", "file")
    assert (figure.title, figure.alt) == ("Heads of m", "Dots of m")
    with pytest.raises(KeyError):
        specs.text("toy", count=2)


def entries(columns):
    """Each column, and each name of shared columns, whatever block it is in."""
    for entry in columns:
        if isinstance(entry, list):
            yield entry
        elif "use" in entry:
            yield entry["use"]
        else:
            assert "when" in entry or {"for", "in"} <= entry.keys()
            yield from entries(entry["columns"])


@pytest.mark.parametrize("part", ["table", "columns"])
def test_every_spec_names_kinds_and_columns_that_there_are(part):
    known = specs._specs()
    for spec in known[part].values():
        for entry in entries(spec["columns"] if part == "table" else spec):
            if isinstance(entry, str):
                assert entry in known["columns"]
                continue
            _, kind, options = [*entry, *["text", {}][len(entry) - 1 :]]
            assert options.keys() <= {"of", "at", "group", "spare"}
            if not any(field for _, field, *_ in string.Formatter().parse(kind)):
                assert isinstance(getattr(kinds, kind.upper()), kinds.Kind)


# --- nothing is left out in silence


@pytest.mark.parametrize(
    "row",
    [
        {"edges": 7, "held-out": {}, "published": {}},
        {"rule": "first", "held-out": {}, "published": {}},
        {"rule": "first", "edges": 7, "published": {"score": 1, "best": None, "rivals": None}},
        {"rule": "first", "edges": 7, "held-out": {"points": 5}, "published": None},
    ],
    ids=["rule", "edges", "held-out", "score"],
)
def test_a_column_that_no_row_has_is_an_error(row, monkeypatch):
    monkeypatch.setattr(specs, "_specs", lambda: SPECS)
    words = {"model": "m", "least": 3, "protocols": ["held-out", "published"], "paper": False}
    with pytest.raises(LookupError, match="no row of the table toy has its column "):
        specs.table("toy", [row], **words)
    assert specs.table("toy", [], **words).rows == []


@pytest.mark.parametrize("cells", [["first"], ["first", 7, 5, 1, 2]])
def test_a_row_has_a_cell_for_each_column(cells, monkeypatch):
    monkeypatch.setattr(specs, "_specs", lambda: SPECS)
    words = {"model": "m", "least": 3, "protocols": [], "paper": False}
    assert specs.table("toy", [["first", 7]], **words).rows == [["first", 7]]
    with pytest.raises(ValueError, match="zip"):
        specs.table("toy", [cells], **words)


def without_each_key(tree, path=()):
    """The places of all keys and columns, each with the tree without it."""
    keys = range(len(tree)) if isinstance(tree, list) else list(tree)
    for key in keys:
        left = tree.copy()
        del left[key]
        yield (*path, key), left
        if isinstance(tree[key], dict | list):
            for place, smaller in without_each_key(tree[key], (*path, key)):
                whole = tree.copy()
                whole[key] = smaller
                yield place, whole


ROOT = Path(__file__).resolve().parents[2]

WRITTEN = (ROOT / "tests/data/tables.txt").read_text(encoding="utf-8").splitlines()

NAMED = {
    (kind, name)
    for file in (ROOT / "probing").rglob("*.py")
    for kind, name in re.findall(
        r"\b(?:specs\.)?(table|figure|text|facts)\(\s*\"([\w-]+)\"", file.read_text("utf-8")
    )
}
"""The specs that our code names."""


def check(known):
    """That the specs are those that our code names, with the columns that were read."""
    assert described(known) == WRITTEN, "read it: python -m support.tables in tests"
    assert {name for kind, name in NAMED if kind == "text"} == known["text"].keys()


def test_tables_are_as_they_were_read():
    """tests/data/tables.txt, after a change: `PYTHONPATH=tests python -m support.tables`."""
    check(specs._specs())


@pytest.mark.slow
def test_no_key_is_missed_by_nobody():
    """Each key and column of the specs alone: without it, something is said."""
    known = specs._specs()
    places = []
    for place, smaller in without_each_key(known):
        with pytest.raises((AssertionError, ValueError, KeyError)):
            check(smaller)
            pytest.fail(f"nobody misses {place}")
        places.append(place)
    assert len(places) > 700


def test_columns_say_nothing_twice():
    """What `of` says by default."""
    for name, spec in {**specs._specs()["table"], **specs._specs()["columns"]}.items():
        for entry in entries(spec["columns"] if isinstance(spec, dict) else spec):
            if isinstance(entry, list) and len(entry) == 3:
                options = entry[2]
                usual = "" if "at" in options else entry[0].replace(" ", "_")
                assert options.get("of") != usual, (name, entry)
