"""Sub-tokens to code tokens, by character offsets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codesyntax_dataset.errors import ModelError
from probing.align import align


def aligned(tokens, offsets, special):
    start, end = np.array(tokens, np.int64).reshape(-1, 2).T
    found = align(start, end, np.array(offsets, np.int64).reshape(-1, 2), np.array(special, bool))
    return list(zip(found.first.tolist(), found.last.tolist()))


def test_hand_listed():
    # `foo(x):` + line break, as [CLS] fo ##o ( x ): [SEP]: `):` serves two tokens, the line break owns nothing
    tokens = [(0, 3), (3, 4), (4, 5), (5, 6), (6, 7), (7, 8)]
    offsets = [(0, 0), (0, 2), (2, 3), (3, 4), (4, 5), (5, 7), (0, 0)]
    special = [True, False, False, False, False, False, True]
    assert aligned(tokens, offsets, special) == [(1, 2), (3, 3), (4, 4), (5, 5), (5, 5), (-1, -1)]


def test_one_character_in_two_sub_tokens():
    # a byte-level tokenizer splits `é` (one character) into two sub-tokens with the same offsets
    assert aligned([(0, 1), (1, 2)], [(0, 1), (0, 1), (1, 2)], [False] * 3) == [(0, 1), (2, 2)]


def test_space_before_the_word_belongs_to_the_sub_token():
    # `if x` as `if` and ` x`: the sub-token's offsets include the space
    assert aligned([(0, 2), (3, 4)], [(0, 2), (2, 4)], [False, False]) == [(0, 0), (1, 1)]


def test_empty_token_and_no_sub_tokens_own_nothing():
    assert aligned([(0, 0), (0, 2), (2, 2)], [(0, 2)], [False]) == [(-1, -1), (0, 0), (-1, -1)]
    assert aligned([(0, 2)], [(0, 0)], [True]) == [(-1, -1)]


def test_offsets_that_run_backwards():
    with pytest.raises(ModelError, match="backwards"):
        aligned([(0, 2)], [(2, 3), (0, 1)], [False, False])


@st.composite
def texts(draw):
    """Code tokens and sub-tokens over the same characters, each with gaps."""
    length = draw(st.integers(1, 30))

    def spans():
        cuts = sorted(draw(st.lists(st.integers(0, length), max_size=12)))
        return [(a, b) for a, b in zip(cuts, cuts[1:]) if draw(st.booleans()) or a == b]

    sub = [(a, b) for a, b in spans() if a < b]
    return spans(), sub, [draw(st.booleans()) for _ in sub]


@given(texts())
def test_like_a_plain_search(text):
    """A token owns the sub-tokens from the first to the last that shares a character with it."""
    tokens, offsets, special = text
    expected = []
    for start, end in tokens:
        shares = [
            s
            for s, (a, b) in enumerate(offsets)
            if not special[s] and set(range(a, b)) & set(range(start, end))
        ]
        expected.append((shares[0], shares[-1]) if shares else (-1, -1))
    assert aligned(tokens, offsets, special) == expected
