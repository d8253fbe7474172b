"""Specs of tables: how columns are read, and that every spec that is there can be."""

from __future__ import annotations

import string
from types import SimpleNamespace

import pytest

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
    return lambda **more: specs.table("toy", [row], **words, **more)


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
    assert table.rows == [["first", 7, 5, "1-2", 3, None, None, None]]
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
