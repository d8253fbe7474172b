"""Hits of minimal pairs, by repository, and of surprisal, by function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from probing.instruments.likelihood.result import (
    BITS,
    GRAMS,
    LEAST_NODES,
    LEAST_PAIRS,
    ROLES,
    SCORES,
    PreferenceLedger,
    PreferenceResult,
    SurprisalResult,
    stratum_weights,
)
from probing.runs.ledger_file import RowLedger
from probing.stats.hits import Hits, Measure

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
    preferred = {MODEL: result.ledger.preferred().T}
    few = frozenset(name for name, scores in result.phenomena.items() if scores.pairs < LEAST_PAIRS)
    return _grouped(result.ledger, preferred, SCORES, weighted=stratum_weights, left_out=few)


def of_surprisal(result: SurprisalResult) -> dict[str, Hits]:
    """Each of ROLES -> the bits of nodes and their controls by node type. Clusters are
    functions."""
    measured = {}
    for role in ROLES:
        ledger, means = result.ledger.of(role), result.node_types[role]
        few = frozenset(name for name, of_type in means.items() if of_type.nodes < LEAST_NODES)
        measured[role] = _grouped(ledger, _bits(ledger.rows), GAINS, unit="bits", left_out=few)
    return measured


def _bits(rows: np.ndarray) -> dict[str, np.ndarray]:
    """By each of GAINS the bits of nodes and of controls: (3, N)."""
    bits = {}
    for system, prefix in ((NODE, ""), (CONTROL, "control_")):
        by_model, by_grams = rows[prefix + BITS], rows[prefix + GRAMS]
        bits[system] = np.stack([by_model, by_grams, by_model - by_grams])
    return bits


def _grouped(
    ledger: RowLedger,
    sums: dict[str, np.ndarray],
    measures: tuple[Measure, ...],
    weighted: Callable[[np.ndarray], np.ndarray] | None = None,
    **fields: Any,
) -> Hits:
    """Hits of the rows of each group of a ledger, from sums (M, N) by system.

    `weighted`: from the rows of a group to their weights, integers; by default each row counts
    once.
    """
    names, weights = np.full(len(ledger), "", object), np.ones(len(ledger), np.int64)
    for name, chosen in ledger.named().items():
        names[chosen] = name
        if weighted is not None:
            weights[chosen] = weighted(ledger.rows[chosen])
    clusters = ledger.rows["repository" if isinstance(ledger, PreferenceLedger) else "function"]
    return Hits.of_rows(
        clusters,
        names,
        {system: counts * weights for system, counts in sums.items()},
        measures,
        weights,
        weighted=weighted is not None,
        repositories=ledger.repositories,
        **fields,
    )
