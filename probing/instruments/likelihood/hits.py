"""Hits of minimal pairs, by repository, and of surprisal, by function."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from probing.instruments.likelihood.result import (
    BITS,
    CLOSING,
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


def of_pairs(result: PreferenceResult) -> dict[str, Hits]:
    """By what pairs are grouped, phenomena first -> the pairs, of each of SCORES, whose good text
    is likelier.

    Clusters are repositories; pairs have the weights in their group by which strata of length count
    alike.
    """
    preferred = {MODEL: result.ledger.preferred().T}
    few = frozenset(name for name, scores in result.phenomena.items() if scores.pairs < LEAST_PAIRS)
    return {
        by: _grouped(
            result.ledger,
            groups,
            preferred,
            SCORES,
            weighted=stratum_weights,
            left_out=few if by == "phenomena" else frozenset(),
        )
        for by, groups in result.ledger.groups().items()
    }


def of_surprisal(result: SurprisalResult) -> dict[str, Hits]:
    """Each of ROLES -> the bits of nodes and their controls by node type; `distances` and `depths`
    -> those of closing tokens by these. Clusters are functions."""
    measured = {}
    for role in ROLES:
        ledger = result.ledger.of(role)
        types = ledger.groups()["node_types"]
        few = frozenset(name for name, chosen in types if chosen.sum() < LEAST_NODES)
        measured[role] = _grouped(
            ledger, types, _bits(ledger.rows), GAINS, unit="bits", left_out=few
        )
    closing = result.ledger.of(CLOSING)
    for by in ("distances", "depths"):
        measured[by] = _grouped(
            closing, closing.groups()[by], _bits(closing.rows), GAINS, unit="bits"
        )
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
    groups: Iterable[tuple[str, np.ndarray]],
    sums: dict[str, np.ndarray],
    measures: tuple[Measure, ...],
    weighted: Callable[[np.ndarray], np.ndarray] | None = None,
    **fields: Any,
) -> Hits:
    """Hits of the rows of some groups, each bool (N,), from sums (M, N) by system.

    `weighted`: from the rows of a group to their weights, integers; by default each row counts
    once.
    """
    names, weights = np.full(len(ledger), "", object), np.ones(len(ledger), np.int64)
    for name, chosen in groups:
        names[chosen] = name
        if weighted is not None:
            weights[chosen] = weighted(ledger.rows[chosen])
    known = names != ""
    parts = {system: (counts * weights)[:, known] for system, counts in sums.items()}
    clusters = ledger.rows["repository" if isinstance(ledger, PreferenceLedger) else "function"]
    fields["repositories"] = ledger.repositories
    return Hits.of_rows(
        clusters[known],
        names[known],
        parts,
        measures,
        weights[known],
        weighted=weighted is not None,
        **fields,
    )
