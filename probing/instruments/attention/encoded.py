"""A function as a model reads it, with the edges that its attention heads are asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT
from probing.instruments.attention.align import Alignment
from probing.instruments.attention.edges import EdgeTable


@dataclass(frozen=True)
class EncodedFunction:
    """One function in the model's sub-tokens, and its edges.

    `index`: its position in the split; `ids` (sub-tokens,), special tokens included.
    """

    index: int
    ids: np.ndarray
    alignment: Alignment
    edges: EdgeTable

    def readers(self, direction: str) -> np.ndarray:
        """The distinct tokens with sub-tokens whose rows are read, ascending."""
        if direction == HEAD_TO_DEPENDENT:
            readers = np.unique(self.edges.head)
        else:
            # the number of dependents that contain each token, as differences
            opened = np.zeros(len(self.alignment.first) + 1, np.int64)
            np.add.at(opened, self.edges.first, 1)
            np.add.at(opened, self.edges.last + 1, -1)
            readers = np.flatnonzero(opened.cumsum() > 0)
        return readers[self.alignment.mapped[readers]]

    def decided_by_tie(self, direction: str) -> np.ndarray:
        """The edges decided by a tie of code tokens: bool (rules, edges).

        Tokens with exactly the same sub-tokens, such as those of `()` in most byte-level
        tokenizers, get the same weight in every row, and the lower index goes first. A tie decides
        an edge if the token to be found has such a twin. The reading token does not count, because
        it gives itself no weight; for rule `any`, nor do other tokens of the dependent.
        """
        first, last = self.alignment
        _, kind, count = np.unique(
            first.astype(np.int64) << 32 | last, return_inverse=True, return_counts=True
        )
        span = self.edges.last - self.edges.first + 1
        begin = span.cumsum() - span
        # pairs of an edge and a token of its dependent
        edge = np.repeat(np.arange(len(span)), span)
        token = np.arange(span.sum()) + (self.edges.first - begin)[edge]
        head = self.edges.head[edge]
        sought, reader = (token, head) if direction == HEAD_TO_DEPENDENT else (head, token)
        twins = count[kind[sought]] - 1 - (kind[sought] == kind[reader])
        twins[
            (sought == reader) | ~self.alignment.mapped[sought] | ~self.alignment.mapped[reader]
        ] = 0
        rivals = twins
        if direction == HEAD_TO_DEPENDENT:
            others = token != head
            _, same = np.unique(edge * len(first) + kind[token], return_inverse=True)
            rivals = twins - (np.bincount(same, weights=others)[same] - others)
        return np.stack(
            [twins[begin] > 0, np.maximum.reduceat(rivals, begin) > 0, twins[begin + span - 1] > 0]
        )
