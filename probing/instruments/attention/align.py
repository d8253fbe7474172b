"""Align a model's sub-tokens with code tokens by character offsets (Shen et al. 2022, section 4;
Clark et al. 2019)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from codesyntax_dataset.errors import ModelError


class OffsetsError(ModelError):
    """Inconsistent character offsets of one function."""


class Alignment(NamedTuple):
    """The sub-tokens of each code token: from `first[t]` to `last[t]`, inclusive; -1 if it has
    none.

    Two int32 arrays (tokens,) of positions in the model's input, special tokens counted. A
    sub-token may belong to two code tokens, such as `):`; a token without sub-tokens, such as a
    line break for BERT, neither reads nor is ranked.
    """

    first: np.ndarray
    last: np.ndarray

    @property
    def mapped(self) -> np.ndarray:
        """True where each code token has a sub-token: bool (tokens,)."""
        return self.first >= 0

    def without(
        self, token: str | None, code: str, start: np.ndarray, end: np.ndarray
    ) -> Alignment:
        """The same, but code tokens spelled `token` have no sub-tokens.

        `start`, `end` (tokens,): character offsets of the code tokens in `code`, end exclusive.
        """
        if token is None:
            return self
        left_out = np.array([code[a:b] == token for a, b in zip(start, end)], bool)
        return Alignment(*(np.where(left_out, np.int32(-1), index) for index in self))


def align(
    code: str,
    start: np.ndarray,
    end: np.ndarray,
    offsets: np.ndarray,
    special: np.ndarray,
    *,
    exact: bool = False,
) -> Alignment:
    """Give each code token the sub-tokens from the one covering its first character to the one
    covering its last.

    `start`, `end` (tokens,): character offsets of the code tokens in `code`, end exclusive.
    `offsets` (sub-tokens, 2): those of the sub-tokens, end exclusive. `special` (sub-tokens,):
    whether each is a special token, which belongs to no code token. White space at the ends of a
    sub-token does not count, see `trimmed`, unless offsets are `exact`.

    Raises OffsetsError if the sub-tokens do not run from left to right through `code`.
    """
    positions = np.flatnonzero(~special)
    sub_start, sub_end = offsets[positions].T
    if (np.diff(sub_start) < 0).any() or (np.diff(sub_end) < 0).any():
        raise OffsetsError(
            "the tokenizer's character offsets run backwards, expected them to run from left to right"
        )
    if len(positions) and sub_end[-1] > len(code):
        raise OffsetsError(
            f"the tokenizer's character offsets reach {sub_end[-1]}, but the code ends at {len(code)}"
        )
    if not exact:
        sub_start, sub_end = trimmed(code, sub_start, sub_end)
    covering = sub_start < sub_end
    positions, sub_start, sub_end = positions[covering], sub_start[covering], sub_end[covering]
    # the first sub-token that ends after the first character
    first = np.searchsorted(sub_end, start, side="right")
    # the last sub-token that starts before the end
    last = np.searchsorted(sub_start, end, side="left") - 1
    owns = (start < end) & (first <= last)
    padded = np.append(positions, -1)  # so that an index behind the last sub-token can be looked up
    return Alignment(
        np.where(owns, padded[first], -1).astype(np.int32),
        np.where(owns, padded[last], -1).astype(np.int32),
    )


def trimmed(
    code: str, start: np.ndarray, end: np.ndarray, white: str | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The characters of sub-tokens without what is `white` before a word (characters, or None for
    all white space), and without the spaces at either end.

    The published pipeline used RoBERTa's tokenizer, whose offsets leave out spaces. Those of many
    others, GPT-2's for one, include the space in front of a word, of some a tab: then the
    indentation of a line would own the line's first word. A line break keeps its sub-token, and one
    of spaces alone covers nothing.
    """
    begins = []
    ends = []
    for first, last in zip(start.tolist(), end.tolist()):
        piece = code[first:last]
        word = piece.lstrip(white) or piece.lstrip(" ")
        begin = last - len(word)
        begins.append(begin)
        ends.append(begin + len(word.rstrip(" ")))
    return np.array(begins, np.int64), np.array(ends, np.int64)
