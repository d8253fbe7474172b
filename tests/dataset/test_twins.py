"""Near copies: counted by hand, and by all sequences of five tokens."""

from __future__ import annotations

import pytest

from codesyntax_dataset import twins
from codesyntax_dataset.pairs.rivals import lexed
from codesyntax_dataset.twins import Twins


def twins_of(codes):
    known = Twins()
    return [known.first_of(10 + place, code) for place, code in enumerate(codes)]


def fives(code):
    tokens = lexed(code)
    return {tuple(tokens[start : start + 5]) for start in range(len(tokens) - 4)}


WHOLE = "a b c d e f g h i j k l"
"""Eight sequences of five."""


@pytest.mark.parametrize(
    "code, shared",
    [
        (WHOLE, 8),
        ("a b c d e f g h i j k x", 7),
        ("a b c d e f g h i x k l", 5),  # 5 of 11
        ("a b c d e f g h i j x l", 6),  # 6 of 10
        ("a b c d e x g h i j k l", 3),
        ("x", 0),
        ("", 0),
    ],
)
def test_near_copies_share_half_of_their_sequences_of_five_tokens(code, shared):
    assert len(fives(WHOLE) & fives(code)) == shared
    of_either = len(fives(WHOLE) | fives(code))
    assert twins_of([WHOLE, code])[1] == (10 if 2 * shared >= of_either else 11)


def test_copies_of_copies_have_the_first_function():
    middle = "a b c d e f g h i j x y"
    far = "a b c d e f g h x y z w"
    assert twins_of([WHOLE, far]) == [10, 11]
    assert twins_of([WHOLE, middle, middle]) == [10, 10, 10]


def test_short_functions_are_copies_if_they_are_equal():
    assert twins_of(["f ( )", "f ( )", "g ( )", "", ""]) == [10, 10, 12, 13, 14]


def test_what_many_functions_share_is_looked_up_in_few(monkeypatch):
    """Of those that share most of their few sequences with all others: else a million would take days."""
    compared = []
    resemblance = twins._resemblance

    def counted(one, other):
        compared.append(other)
        return resemblance(one, other)

    monkeypatch.setattr(twins, "_resemblance", counted)
    monkeypatch.setattr(twins, "_MOST", 3)
    getters = [f"public int get{name} ( ) {{ return this . {name} ; }}" for name in range(100)]
    known = Twins()
    firsts = [known.first_of(number, code) for number, code in enumerate([*getters, getters[70]])]
    assert firsts == [*range(100), 70]
    assert 0 < len(compared) <= 100 * 8 * 3
