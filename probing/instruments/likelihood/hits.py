"""Hits of minimal pairs, by repository, and of surprisal, by function."""

from __future__ import annotations

import numpy as np

from probing.instruments.likelihood.result import (
    BITS,
    GRAMS,
    LEAST_NODES,
    LEAST_PAIRS,
    ROLES,
    SCORES,
    PreferenceResult,
    SurprisalResult,
    stratum_weights,
)
from probing.stats.hits import Hits

MODEL = "model"
"""The system that prefers a text."""

NODE, CONTROL = "node", "control"
"""The tokens of a node, and those matched with them."""

OVER = "over 5-grams"

GAINS = (BITS, GRAMS, OVER)
"""By how many bits controls surprise more than nodes: the model, 5-grams, and the model more than
these."""


def of_pairs(result: PreferenceResult) -> Hits:
    """The pairs by phenomenon, of each of SCORES, whose good text is likelier.

    Clusters are repositories; pairs have the weights in their phenomenon by which strata of length
    count alike.
    """
    ledger = result.ledger
    few = frozenset(name for name, scores in result.phenomena.items() if scores.pairs < LEAST_PAIRS)
    weights = np.ones(len(ledger), np.int64)
    for chosen in ledger.named().values():
        weights[chosen] = stratum_weights(ledger.rows[chosen])
    return Hits.of_rows(
        ledger.rows["repository"],
        ledger.group_names,
        {MODEL: ledger.preferred().T * weights},
        SCORES,
        weights,
        weighted=True,
        over=ledger.over,
        left_out=few,
    )


def of_surprisal(result: SurprisalResult) -> dict[str, Hits]:
    """Each of ROLES -> the bits of nodes and their controls by node type. Clusters are
    functions."""
    measured = {}
    for role in ROLES:
        ledger = result.ledger.of(role)
        means = result.node_types[role]
        few = frozenset(name for name, of_type in means.items() if of_type.nodes < LEAST_NODES)
        measured[role] = Hits.of_rows(
            ledger.rows["function"],
            ledger.group_names,
            _bits(ledger.rows),
            GAINS,
            unit="bits",
            over=ledger.over,
            left_out=few,
        )
    return measured


def _bits(rows: np.ndarray) -> dict[str, np.ndarray]:
    """By each of GAINS the bits of nodes and of controls: (3, N)."""
    bits = {}
    for system, prefix in ((NODE, ""), (CONTROL, "control_")):
        by_model = rows[prefix + BITS]
        by_grams = rows[prefix + GRAMS]
        bits[system] = np.stack([by_model, by_grams, by_model - by_grams])
    return bits
