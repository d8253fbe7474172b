"""Languages beside each other: which relations they share, and the numbers of a figure and a table, by hand."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from codesyntax_dataset.protocol import BEST_BASELINE, HELD_OUT, TABLE_KS
from probing.report.configs import languages
from probing.report.findings import Findings, Score, Subject


def findings(
    config: str, scores: dict[str, tuple[float, float]], few: tuple[str, ...] = (), model: str = "m"
):
    """Of one model: relation -> its score and that of the best baseline, the same for every k."""
    found = {}
    for name, (mine, theirs) in scores.items():
        for k in map(int, TABLE_KS):
            n = 5 if name in few else 9
            found[model, HELD_OUT, "first", k, name, ""] = Score(
                mine, mine - 1, mine + 1, n=n, functions=n
            )
            found[BEST_BASELINE, HELD_OUT, "first", k, name, ""] = Score(theirs, n=9, functions=9)
    result = SimpleNamespace(settings=SimpleNamespace(config=config, control=None, model=model))
    subject = Subject(model, Path(), Path(), result, None, {}, 9, None, [])
    return Findings(config, config, [subject], found)


PYTHON = findings(
    "python_exact",
    {"If:if->test": (90.0, 80.0), "Call:func->args": (20.0, 60.0), "Dict:key->value": (5.0, 6.0), "BinOp:left->right": (1.0, 2.0)},
)  # fmt: skip
GO = findings(
    "go", {"If:if->test": (50.0, 70.0), "Call:func->args": (30.0, 90.0), "Dict:key->value": (7.0, 6.0), "Go:go->call": (1.0, 2.0)}
)  # fmt: skip
JAVA = findings(
    "java_exact",
    {"If:if->test": (40.0, 50.0), "Call:func->args": (8.0, 9.0)},
    few=("Call:func->args",),
)


def test_shared_relations_of_three_languages():
    """Those of two languages at least, where enough functions have them."""
    (section,) = languages([PYTHON, GO, JAVA])
    _, table = section.parts
    rows = {name: row for k, (name, _), *row in table.rows if k == "1"}
    assert list(rows) == ["Call:func->args", "Dict:key->value", "If:if->test"]
    assert rows["If:if->test"] == [
        [90, 89, 91],
        80,
        10,
        [50, 49, 51],
        70,
        -20,
        [40, 39, 41],
        50,
        -10,
    ]
    assert rows["Call:func->args"] == [
        [20, 19, 21],
        60,
        -40,
        [30, 29, 31],
        90,
        -60,
        None,
        None,
        None,
    ]
    assert [column.group for column in table.columns[2::3]] == ["Python", "Go", "Java"]
    assert len(table.rows) == 3 * len(TABLE_KS)


def test_one_model_at_a_time_and_one_kind_of_labels():
    paper = findings("python", {"If:if->test": (1.0, 2.0), "Call:func->args": (3.0, 4.0)})
    other = findings("java_exact", {"If:if->test": (1.0, 2.0)}, model="n")
    (section,) = languages([paper, PYTHON, GO, other])
    _, table = section.parts
    rows = {name: row for k, (name, _), *row in table.rows if k == "1"}
    assert rows["If:if->test"][0] == [90, 89, 91]
    assert rows["Dict:key->value"][1] == 6


@pytest.mark.parametrize(
    "alone",
    [
        [PYTHON],
        [PYTHON, findings("python", {"If:if->test": (1.0, 2.0)})],
        [PYTHON, findings("english", {"nsubj": (1.0, 2.0)})],
        [PYTHON, findings("go", {"Go:go->call": (1.0, 2.0)})],
    ],
)
def test_no_section_without_two_languages_that_share_a_relation(alone):
    assert languages(alone) == []
