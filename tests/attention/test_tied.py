"""An edge whose head or dependent has no sub-token is not decided by a tie: it is not ranked."""

from __future__ import annotations

import numpy as np
import pytest

from codesyntax_metric.topk_uas import DEPENDENT_TO_HEAD, HEAD_TO_DEPENDENT
from probing.instruments.attention.align import Alignment
from probing.instruments.attention.edges import EdgeTable
from probing.instruments.attention.encoded import EncodedFunction

FIRST_SUB_TOKEN = np.array([1, 2, 2, -1, -1, 3], np.int32)
"""Of six tokens: 1 and 2 are twins, 3 and 4 have no sub-token."""


@pytest.mark.parametrize("direction", [HEAD_TO_DEPENDENT, DEPENDENT_TO_HEAD])
@pytest.mark.parametrize(
    "reader, sought, is_tied",
    [
        (0, 1, True),  # 2 has the same weight in the row of 0
        (1, 2, False),  # the only twin is the reading token
        (0, 5, False),  # no twin
        (0, 3, False),  # without a sub-token, as 4, which is no twin
        (3, 1, False),  # no row is read
        (3, 4, False),
    ],
)
def test_edges_between_tokens_with_and_without_sub_tokens(direction, reader, sought, is_tied):
    head, dependent = (reader, sought) if direction == HEAD_TO_DEPENDENT else (sought, reader)
    cell = np.zeros(1, np.int32)
    edges = EdgeTable(["r"], cell, cell, cell + head, cell + dependent, cell + dependent, cell + 6)
    function = EncodedFunction(0, np.arange(4), Alignment(FIRST_SUB_TOKEN, FIRST_SUB_TOKEN), edges)
    assert function.decided_by_tie(direction).tolist() == [[is_tied]] * 3  # for each rule
