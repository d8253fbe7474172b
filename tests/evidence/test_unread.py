"""Functions that a model could not read choose no better heads, whatever is scored with them."""

from __future__ import annotations

import numpy as np
import pytest

from codesyntax_dataset.protocol import BEYOND_OFFSET
from codesyntax_metric.topk_uas import RULES
from probing.evidence import reruns
from probing.evidence.beyond import beyond
from probing.instruments.attention.ledger import RankLedger

ARGS = "Call:func->args"

READ = [(0, 0, 9), (0, 0, 9), (0, 9, 0)]
"""The ranks of three heads for the hard edge of each function of validation that was read: head 0 finds them all, head 1
two, head 2 one. An edge that was not read lets head 1 be as good."""

SCORED = [(0, 0, 0), (0, 9, 9), (0, 0, 9)]
"""For the hard edges of test: head 0 finds three, head 1 two."""


def ledger_of(hard):
    """Three edges at distance 1, which the best offset finds, and one hard edge in each function, the k-th k + 2 tokens
    away, so that no offset finds two of them."""
    distances = [1, 1, 1, *range(2, 2 + len(hard))]
    functions = [100, 100, 100, *range(len(hard))]
    ranks = np.array([(0, 0, 0)] * 3 + hard, np.uint8)
    zeros = np.zeros(len(distances), np.int32)
    dependents = np.array(distances, np.int32)
    return RankLedger(
        relations=[ARGS],
        function=np.array(functions, np.int32),
        relation=zeros,
        head=zeros,
        first=dependents,
        last=dependents,
        tokens=dependents + 1,
        ranks=np.tile(ranks.reshape(1, len(ranks), 1, 3), (len(RULES), 1, 1, 1)),
        settings={},
    )


@pytest.mark.parametrize("unread, head", [(0, 0), (1, 1)])
def test_beyond_offsets_the_worst_head_that_could_be_best_counts(unread, head):
    validation = ledger_of(READ + [(255, 255, 255)] * unread)
    not_read = [len(READ)] * unread
    found = beyond(validation, ledger_of(SCORED), not_read)
    assert found.chosen.choice[ARGS][0, 0].tolist() == [0, head]


def test_means_of_a_rerun_have_the_same_heads():
    """Ten times as many, of which beyond offsets have a mean."""
    validation = ledger_of(READ * 10 + [(255, 255, 255)] * 10)
    unread = range(len(READ) * 10, len(READ) * 10 + 10)
    for given, head in (((), 0), (unread, 1)):
        *_, hard = reruns.means(ledger_of(SCORED * 10), validation, given)
        assert hard.protocol == BEYOND_OFFSET
        assert hard.chosen.choice[ARGS][0, 0].tolist() == [0, head]
