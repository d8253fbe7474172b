"""Sub-tokens to code tokens, by character offsets."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.labels.edge_tables import edge_table

from codesyntax_metric.topk_uas import DEPENDENT_TO_HEAD, HEAD_TO_DEPENDENT
from probing.instruments.attention.align import Alignment, OffsetsError, align
from probing.instruments.attention.encoded import EncodedFunction


def aligned(code, tokens, offsets, special):
    start, end = np.array(tokens, np.int64).reshape(-1, 2).T
    found = align(
        code, start, end, np.array(offsets, np.int64).reshape(-1, 2), np.array(special, bool)
    )
    return list(zip(found.first.tolist(), found.last.tolist()))


def test_hand_listed():
    # `foo(x):` + line break, as [CLS] fo ##o ( x ): [SEP]: `):` serves two tokens, the line break owns nothing
    tokens = [(0, 3), (3, 4), (4, 5), (5, 6), (6, 7), (7, 8)]
    offsets = [(0, 0), (0, 2), (2, 3), (3, 4), (4, 5), (5, 7), (0, 0)]
    special = [True, False, False, False, False, False, True]
    assert aligned("foo(x):\n", tokens, offsets, special) == [
        (1, 2),
        (3, 3),
        (4, 4),
        (5, 5),
        (5, 5),
        (-1, -1),
    ]


def test_exact_offsets():
    """White space that a sub-token stands for is its own; one that stands for nothing owns nothing."""
    code, tokens = "    x\n", np.array([(0, 4), (4, 5), (5, 6)])
    offsets = np.array([(0, 4), (4, 4), (4, 5), (4, 5), (5, 6)])
    found = align(code, *tokens.T, offsets, np.zeros(5, bool), exact=True)
    assert list(zip(found.first, found.last)) == [(0, 0), (2, 3), (4, 4)]


def test_one_character_in_two_sub_tokens():
    # a byte-level tokenizer splits `é` (one character) into two sub-tokens with the same offsets
    assert aligned("éx", [(0, 1), (1, 2)], [(0, 1), (0, 1), (1, 2)], [False] * 3) == [
        (0, 1),
        (2, 2),
    ]


def test_space_before_the_word_belongs_to_nobody():
    """Of `if x:` + line break + indentation + `return 1`: offsets with their spaces, and as RoBERTa's tokenizer trims them."""
    code = "if x:\n    return 1"
    tokens = [(0, 2), (3, 4), (4, 5), (5, 6), (6, 10), (10, 16), (17, 18)]
    # `\\n   ` is one sub-token, ` return` another
    spaces = [
        (0, 2),
        (2, 4),
        (4, 5),
        (5, 9),
        (9, 16),
        (16, 18),
    ]
    trimmed = [(0, 2), (3, 4), (4, 5), (5, 6), (10, 16), (17, 18)]
    expected = [(0, 0), (1, 1), (2, 2), (3, 3), (-1, -1), (4, 4), (5, 5)]
    for offsets in (spaces, trimmed):
        assert aligned(code, tokens, offsets, [False] * 6) == expected


def test_white_space_in_a_sub_token():
    # a tab before the word is nobody's, as is a space; a line break behind it serves the token of that name
    assert aligned("\treturn", [(0, 1), (1, 7)], [(0, 7)], [False]) == [(-1, -1), (0, 0)]
    assert aligned("x: \n", [(0, 1), (1, 2), (3, 4)], [(0, 1), (1, 4)], [False] * 2) == [
        (0, 0),
        (1, 1),
        (1, 1),
    ]
    # a sub-token of tabs is that of the indentation, one of spaces is nobody's
    assert aligned("\tx", [(0, 1), (1, 2)], [(0, 1), (1, 2)], [False] * 2) == [(0, 0), (1, 1)]
    assert aligned("  x", [(0, 2), (2, 3)], [(0, 2), (2, 3)], [False] * 2) == [(-1, -1), (1, 1)]
    # one without characters is nobody's, at the beginning of the code, too
    assert aligned("ab", [(0, 1), (1, 2)], [(0, 0), (0, 1), (1, 1), (1, 2)], [False] * 4) == [
        (1, 1),
        (3, 3),
    ]
    assert aligned("ab", [(0, 2)], [(0, 1), (1, 1)], [False] * 2) == [(0, 0)]
    # inside a token they count as anything else
    assert aligned("'  '", [(0, 4)], [(0, 1), (1, 3), (3, 4)], [False] * 3) == [(0, 2)]


def test_empty_token_and_no_sub_tokens_own_nothing():
    assert aligned("ab", [(0, 0), (0, 2), (1, 1), (2, 2)], [(0, 2)], [False]) == [
        (-1, -1),
        (0, 0),
        *[(-1, -1)] * 2,
    ]
    assert aligned("ab", [(0, 2)], [(0, 0)], [True]) == [(-1, -1)]


def test_tokens_that_are_never_predicted_have_no_sub_tokens():
    place = np.arange(3, dtype=np.int32)
    left = Alignment(place, place + 1).without(";", "a;b", place, place + 1)
    assert (left.first.tolist(), left.last.tolist()) == ([0, -1, 2], [1, -1, 3])
    assert left.mapped.tolist() == [True, False, True]  # the sub-token at 0 is one like any other
    assert Alignment(place, place).without(None, "a;b", place, place + 1).mapped.all()


def test_offsets_that_cannot_be_followed():
    for offsets in ([(1, 2), (0, 2)], [(0, 3), (1, 2)]):  # by one character
        with pytest.raises(OffsetsError, match="backwards"):
            aligned("abc", [(0, 2)], offsets, [False, False])
    with pytest.raises(OffsetsError, match="reach 4, but the code ends at 3"):
        aligned("abc", [(0, 2)], [(0, 1), (2, 4)], [False, False])


def tied(tokens, offsets, edges, direction):
    """For each rule the edges (head, first, last) that a tie decides."""
    start, end = np.array(tokens).T
    code = "x" * end[-1]
    alignment = align(code, start, end, np.array(offsets), np.zeros(len(offsets), bool))
    table = edge_table(len(start), edges)
    found = EncodedFunction(0, np.arange(len(offsets)), alignment, table).decided_by_tie(direction)
    return [np.flatnonzero(of_rule).tolist() for of_rule in found]


def test_ties_of_tokens_that_share_all_their_sub_tokens():
    # f ( ) : x as the sub-tokens f, (), :x. `(` and `)` are twins, and so are `:` and `x`
    tokens, offsets = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)], [(0, 1), (1, 3), (3, 5)]
    edges = [(0, 1, 1), (0, 1, 2), (0, 2, 3), (1, 2, 2), (1, 0, 2), (3, 0, 0), (3, 4, 4)]
    # rule any: both twins inside are no tie; a twin that is the reading token is none
    assert tied(tokens, offsets, edges, HEAD_TO_DEPENDENT) == [[0, 1, 2], [0, 2], [0, 1, 2]]
    # here the head token is looked for: `(` from 2 or from 0..2, `:` from 0 but not from its twin
    assert tied(tokens, offsets, edges, DEPENDENT_TO_HEAD) == [[4, 5], [4, 5], [5]]


@st.composite
def texts(draw):
    """Code, its tokens and sub-tokens, each with gaps."""
    code = draw(st.text("ab \t\n", min_size=1, max_size=30))
    length = len(code)

    def spans():
        cuts = sorted(draw(st.lists(st.integers(0, length), max_size=12)))
        return [(a, b) for a, b in itertools.pairwise(cuts) if draw(st.booleans()) or a == b]

    sub = [(a, b) for a, b in spans() if a < b]
    return code, spans(), sub, [draw(st.booleans()) for _ in sub]


@pytest.mark.slow
@given(texts())
def test_like_a_plain_search(text):
    """A token owns the sub-tokens from the first to the last that shares a character with it, white space aside."""
    code, tokens, offsets, special = text
    covered = []
    for a, b in offsets:
        piece = code[a:b]
        kept = piece.lstrip() or piece.lstrip(" ")
        begin = b - len(kept)
        covered.append(set(range(begin, begin + len(kept.rstrip(" ")))))
    expected = []
    for start, end in tokens:
        shares = [
            s
            for s, places in enumerate(covered)
            if not special[s] and places & set(range(start, end))
        ]
        expected.append((shares[0], shares[-1]) if shares else (-1, -1))
    assert aligned(code, tokens, offsets, special) == expected
