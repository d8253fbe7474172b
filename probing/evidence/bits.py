"""What syntax costs a language model, in bits per byte: a number that compares across tokenizers.

A unit is a token of the code with the white space before it, so that units cover the text, and the
same text has the same bytes under any tokenizer. The bits of a sub-token that is in several units
are shared among them by bytes. Closing tokens are those with which nodes of several tokens end,
each once; each has a control: of the tokens that close no node, the one most like it in frequency
and place (`probing.instruments.likelihood`), whose unit has as many bytes.

A decoder pays for each sub-token after those before it, a masked language model also with those
behind its word (pseudo-log-likelihood, Kauf and Ivanova 2023): the two do not compare.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from probing.instruments.likelihood.likelihood import TokenizedFunction, controls_of
from probing.models.masked import ScoredText


def _until(function: TokenizedFunction) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of the text before each unit, and before each sub-token, and all: (T + 1,) and
    (S + 1,)."""
    widths = [len(character.encode()) for character in function.code.text]
    place = np.append(0, np.cumsum(widths))
    ends = np.append(0, np.array([token.end for token in function.code.tokens]))
    before = place[np.append(0, np.maximum.accumulate(function.ends))]
    return place[np.maximum.accumulate(ends)], before


def bits_and_bytes(function: TokenizedFunction, scores: np.ndarray) -> np.ndarray:
    """The bits and bytes of each unit of a function: (T, 2). `scores`: the log-probabilities of its
    sub-tokens, in nats."""
    units, until = _until(function)
    unscored = len(function.ends) - len(scores)
    paid = np.cumsum(np.append(np.zeros(1 + unscored), -scores / np.log(2)))
    # several sub-tokens of one character end at once: the last one has paid for all
    last = np.append(until[1:] > until[:-1], True)
    whole = np.interp(units, until[last], paid[last])
    return np.column_stack([np.diff(whole), np.diff(units)])


def closing_and_matched(
    function: TokenizedFunction, size: np.ndarray, node_types: Sequence[str]
) -> np.ndarray:
    """The closing tokens of a function that have a control, each with it: (P, 2). `size`: the bytes
    of units (T,)."""
    nodes = [node for node in function.code.nodes if 0 <= node.first < node.last]
    closing = np.unique([node.last for node in nodes if node.type in node_types]).astype(int)
    pairs = np.column_stack([closing, controls_of(function, closing, size)])
    return pairs[pairs[:, 1] >= 0]


class ClosingTokens(NamedTuple):
    """A function, its closing tokens with their controls, `pairs` (P, 2), and what of its text is
    scored for them."""

    function: TokenizedFunction
    pairs: np.ndarray
    text: ScoredText


def closing_tokens(
    functions: Iterable[TokenizedFunction], node_types: Sequence[str], most: int | None
) -> Iterator[ClosingTokens]:
    """The functions that have closing tokens with controls; of each `most` sub-tokens are scored,
    those of some such tokens, drawn, or None for all."""
    for function in functions:
        units, until = _until(function)
        pairs = closing_and_matched(function, np.diff(units), node_types)
        text = function.text
        if most is not None:
            ends = np.unique(until)
            begin = ends[np.maximum(np.searchsorted(ends, until[1:]) - 1, 0)]
            after = until[1:] > units[pairs.T][:, :, None]
            inside = np.logical_or(*(after & (begin < units[pairs.T + 1][:, :, None])))
            order = np.random.default_rng(function.index).permutation(len(pairs))
            together = np.logical_or.accumulate(inside[order], axis=0)
            few = int((together.sum(axis=1) <= most).sum())
            pairs = pairs[order[:few]]
            scored = np.flatnonzero(inside[order[:few]].any(axis=0))
            text = ScoredText(text.ids, text.positions[scored], text.ends[scored])
        if len(pairs):
            yield ClosingTokens(function, pairs, text)


CLOSING, MATCHED, GRAMS = "closing", "matched", "grams"
"""What is paid for: closing tokens, their controls, and closing tokens by 5-grams."""


def paid(functions: Sequence[ClosingTokens], scores: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """The bits and the bytes of what is paid for in each function, by name: (F, 2). `scores`: the
    log-probabilities of what is scored."""
    sums = []
    for (function, pairs, text), of_function in zip(functions, scores):
        positions = function.text.positions
        of_all = np.zeros(len(positions))
        of_all[np.isin(positions, text.positions)] = of_function
        closing, matched = bits_and_bytes(function, of_all)[pairs.T]
        grams = np.column_stack([function.like[pairs[:, 0], 0], closing[:, 1]])
        sums.append([part.sum(axis=0) for part in (closing, matched, grams)])
    return dict(zip((CLOSING, MATCHED, GRAMS), np.swapaxes(sums, 0, 1)))
