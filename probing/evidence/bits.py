"""What syntax costs a decoder, in bits per byte: a number that compares across tokenizers.

A unit is a token of the code with the white space before it, so that units cover the text, and the
same text has the same bytes under any tokenizer. The bits of a sub-token that is in several units
are shared among them by bytes. Closing tokens are those with which nodes of several tokens end,
each once; each has a control: of the tokens that close no node, the one most like it in frequency
and place (`probing.instruments.likelihood`), whose unit has as many bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from probing.instruments.likelihood.likelihood import (
    FREQUENCY_APART,
    PLACE_APART,
    TokenizedFunction,
)


def bits_and_bytes(function: TokenizedFunction, scores: np.ndarray) -> np.ndarray:
    """The bits and bytes of each unit of a function: (T, 2). `scores`: the log-probabilities of its
    sub-tokens, in nats."""
    widths = [len(character.encode()) for character in function.code.text]
    byte_of = np.append(0, np.cumsum(widths))
    ends = np.append(0, np.array([token.end for token in function.code.tokens]))
    units = byte_of[np.maximum.accumulate(ends)]
    until = byte_of[np.maximum.accumulate(function.ends)]
    unscored = len(function.ends) - len(scores)
    paid = np.cumsum(np.append(np.zeros(unscored), -scores / np.log(2)))
    # several sub-tokens of one character end at once: the last one has paid for all
    last = np.append(until[1:] > until[:-1], True)
    whole = np.interp(units, np.append(0, until[last]), np.append(0, paid[last]))
    return np.column_stack([np.diff(whole), np.diff(units)])


def closing_and_matched(
    function: TokenizedFunction, size: np.ndarray, node_types: Sequence[str]
) -> list[tuple[int, int]]:
    """The closing tokens of a function that have a control, each with it; `size`: the bytes of
    units (T,)."""
    kinds = {*node_types}
    closing = sorted(
        {
            node.last
            for node in function.code.nodes
            if node.type in kinds and 0 <= node.first < node.last
        }
    )
    _, frequency, place = function.like.T
    others = function.first >= 0
    others[closing] = False
    matched = []
    for token in closing:
        apart = np.abs(frequency - frequency[token]) + np.abs(place - place[token])
        alike = others & (size == size[token])
        alike &= np.abs(frequency - frequency[token]) <= FREQUENCY_APART
        alike &= np.abs(place - place[token]) <= PLACE_APART
        if alike.any() and function.first[token] >= 0:
            matched.append((token, int(np.where(alike, apart, np.inf).argmin())))
    return matched


CLOSING, MATCHED, GRAMS = "closing", "matched", "grams"
"""What is paid for: closing tokens, their controls, and closing tokens by 5-grams."""


def paid(
    functions: Sequence[TokenizedFunction], scores: Sequence[np.ndarray], node_types: Sequence[str]
) -> dict[str, np.ndarray]:
    """The bits and the bytes of what is paid for in each function, by name: (F, 2)."""
    sums = []
    for function, of_function in zip(functions, scores):
        units = bits_and_bytes(function, of_function)
        pairs = np.array(closing_and_matched(function, units[:, 1], node_types), np.int64).reshape(
            -1, 2
        )
        closing, matched = units[pairs.T]
        grams = np.column_stack([function.like[pairs[:, 0], 0], closing[:, 1]])
        sums.append([part.sum(axis=0) for part in (closing, matched, grams)])
    return dict(zip((CLOSING, MATCHED, GRAMS), np.swapaxes(sums, 0, 1)))
