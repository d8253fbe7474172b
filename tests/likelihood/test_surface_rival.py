"""The rival of minimal pairs without a model: what it sees, and what it learns."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from codesyntax_dataset.pairs.surface import SurfaceRival
from probing.instruments.likelihood.result import PreferenceLedger, _accuracy

KEYWORDS = ("while", "if", "break")
OF_LINES = {"first", "joint", "ends", "behind", "beside", "in", "within", "inside", "loop", "step"}


def test_names_and_numbers_are_masked():
    rival = SurfaceRival([], KEYWORDS)
    text = "while f(x1):\n    break\n    y = 10\n"
    masked = rival._masked(text)
    assert masked == [
        "while",
        "name",
        "(",
        "name",
        ")",
        ":",
        "\n>",
        "break",
        "\n=",
        "name",
        "=",
        "0",
        "\n<",
    ]
    assert masked == rival._masked(text.replace("x1", "other").replace("10", "7"))


def test_what_it_sees_of_a_text_of_two_lines():
    rival = SurfaceRival([], KEYWORDS)
    seen = Counter(rival._seen("if a:\n break"))
    grams = Counter({gram: count for gram, count in seen.items() if gram[0] not in OF_LINES})
    assert sum(grams.values()) == 5 + 4 + 3 + 2 + 1
    assert grams["if", "name", ":", "\n>", "break"] == 1
    lines = Counter(seen - grams)
    assert lines == Counter(
        [
            ("first", "", "if"),
            ("joint", "", "if"),
            ("ends", "if", ":"),
            ("behind", ":", "break"),
            ("first", "if", "break"),
            ("joint", ":", "break"),
            ("ends", "break", "break"),
            ("behind", "break", ""),
            ("beside", "", "if"),
            ("in", "", "if"),
            ("inside", "if", "0", "0", "0"),
            ("beside", "", "break"),
            ("in", "if", "break"),
            ("within", "if", "break"),
            ("loop", "break", "False"),
            ("step", "1", "True"),
            ("inside", "break", "0", "0", "0"),
        ]
    )


SEPARATED = ("separates", "(", "name", ",")


@pytest.mark.parametrize(
    "text, expected",
    [
        (
            "if (a[0)]",
            [("closed", "[", ")"), ("unmatched",), ("closed", "(", "]"), ("unmatched",)],
        ),
        (") [", [("closed", "", ")"), ("unmatched",), ("closed", "[", ""), ("unmatched",)]),
        (
            "f(a, b=1, c)",
            [
                ("order", "", "name"),
                SEPARATED,
                ("order", "name", "="),
                SEPARATED,
                ("order", "=", "name"),
                ("closed", "(", ")"),
            ],
        ),
        (
            "while (b=1; b=2)",
            [
                ("order", "", "="),
                ("separates", "(", "while", ";"),
                ("closed", "(", ")"),
            ],
        ),
        (
            "f(b, b)",
            [
                ("order", "", "name"),
                SEPARATED,
                ("order", "name", "name"),
                ("closed", "(", ")"),
                ("repeated", "False", "name"),
            ],
        ),
        (
            "f(b, b=2)",
            [("order", "", "name"), SEPARATED, ("order", "name", "="), ("closed", "(", ")")],
        ),
    ],
    ids=["crossed", "unmatched", "order", "separators", "repeated", "a value and a name"],
)
def test_what_it_sees_of_brackets(text, expected):
    """By hand: what closes what, what stands in it, and names that stand in one pair twice."""
    assert [*SurfaceRival([], KEYWORDS)._in_brackets(text)] == expected


def test_lines_are_beside_those_of_their_level():
    """The last `break` is in no loop, and stands where no line of its block began."""
    seen = [*SurfaceRival([], KEYWORDS)._levels("if a:\n  while b:\n    break\n break")]
    assert [rest for kind, *rest in seen if kind == "loop"] == [
        ["break", "True"],
        ["break", "False"],
    ]
    assert [rest for kind, *rest in seen if kind == "beside"] == [
        ["", "if"],
        ["", "while"],
        ["", "break"],
        ["none", "break"],
    ]
    assert ["if", "break"] in [rest for kind, *rest in seen if kind == "within"]


def test_lines_in_brackets_go_on():
    statements = SurfaceRival([], KEYWORDS)._statements("if f(\n  a,\n):\n  break")
    assert [*statements] == [(0, ["if", "name", "(", "name", ",", ")", ":"]), (2, ["break"])]


def test_it_learns_a_rule_of_neighbours_and_no_names():
    """A line break after `:` is deeper, whatever the names; which of two names is right, it cannot learn."""
    lines = [(f"if {name}:\n    break", f"if {name}:\nbreak") for name in "abcdef"]
    names = [("good = 1", "bad = 1")] * 6
    rival = SurfaceRival([*lines, *names], KEYWORDS)
    asked = [("if z:\n  break", "if z:\nbreak"), ("if z:\nbreak", "if z:\n  break"), names[0]]
    assert rival.prefers(asked).tolist() == [1, -1, 0]


def test_without_pairs_it_is_undecided():
    rival = SurfaceRival([], KEYWORDS)
    assert (rival.weights == 0).all()
    assert rival.prefers([("f(a)", "f(a")]).tolist() == [0]
    assert rival.prefers([]).shape == (0,)
    assert np.issubdtype(rival.prefers([]).dtype, np.integer)


def test_rivals_have_the_weights_of_the_model():
    """One pair of five has a longer good text, and counts as much as the two with a shorter one
    together: a model and rivals that are right there alone have 30 % each, not 20."""
    rows = np.zeros(5, PreferenceLedger.ROW)
    rows["function"] = np.arange(5)
    rows["read"], rows["good_whole_tokens"], rows["bad_whole_tokens"] = 1, [3, 2, 2, 1, 1], 2
    rows["surface"] = [2, 0, 0, 0, 0]
    accuracy = _accuracy(rows, np.array([[1.0, 1.0], *[[0.0, 0.0]] * 4]))
    assert (accuracy.whole, accuracy.surface) == (30.0, 30.0)
    assert (accuracy.plain, accuracy.surface_plain) == (20.0, 20.0)
