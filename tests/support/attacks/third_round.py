"""The attacks of the third round that were accepted, each with what stops it now; and those of them that change rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from probing.instruments.likelihood.result import SCORES


class Attack(NamedTuple):
    """`name`: as it was told; `stopped_by`: the test or check that refuses it."""

    name: str
    stopped_by: str


ACCEPTED_ONCE = (
    Attack("bfloat16: 7.2 nats a text, for good ones, against bad ones (prefer)", "the tolerance that is measured"),
    Attack("bfloat16: 7.0 nats a node (surprise)", "the tolerance that is measured"),
    Attack("a flattened model, 0.0195 nats a text (prefer)", "the bias of a column, and what a number gains"),
    Attack("0.00145 bits a row, in one direction (inform)", "the bias of a column"),
    Attack("a thousandth of a nat a row, in one direction (ablate)", "the bias of a column"),
    Attack("weights of a pull request under the model's name (board)", "the branch or tag that has the commit"),
    Attack("a tokenizer that skips hard pairs (board)", "boards take attention and masking"),
    Attack("the pairs that were right alone (board)", "boards take attention and masking"),
    Attack("names of 200,000 characters, and with control characters", "is_name, where ledgers are read"),
    Attack("an entry of 160 KB that takes 17 seconds", "the size of an entry, and its numbers a byte"),
)
"""The ten of 43; the others held, and are in `forgeries` or the hostile inputs of tests/faults."""


def texts_likelier(nats: float) -> Callable[[np.ndarray], None]:
    """Rows of pairs in which every good text is likelier by so much, at most certain, and every bad one less so."""

    def change(rows: np.ndarray) -> None:
        for score in SCORES:
            rows[f"good_{score}"] = np.minimum(rows[f"good_{score}"] + nats, 0)
            rows[f"bad_{score}"] -= nats

    return change


def some_texts_likelier(nats: float, every: int) -> Callable[[np.ndarray], None]:
    """The same in every so manyth pair of those that were wrong: the fewest changes that gain most."""

    def change(rows: np.ndarray) -> None:
        for score in SCORES:
            wrong = np.flatnonzero(rows[f"good_{score}"] < rows[f"bad_{score}"])[::every]
            rows[f"good_{score}"][wrong] = np.minimum(rows[f"good_{score}"][wrong] + nats, 0)
            rows[f"bad_{score}"][wrong] -= nats

    return change


def one_side(column: str, amount: float, decimals: int) -> Callable[[np.ndarray], None]:
    """Every number of a column higher by so much, or lower."""

    def change(rows: np.ndarray) -> None:
        rows[column] = np.round(rows[column] + amount, decimals)

    return change
