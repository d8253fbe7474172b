"""Hits of an information probe: the dependents that choices find, and their log-loss, by function and relation."""

from __future__ import annotations

from typing import Any

import numpy as np

from probing.instruments.information.result import ATTENTION, BOTH, WORDS, InformationResult
from probing.stats.hits import Hits

FINDERS = BEST, *_ = "best", ATTENTION, WORDS, BOTH
"""One attention head and the three choices."""


def hits(result: InformationResult) -> dict[str, Hits]:
    """`bits` -> the log-loss of words and positions, and of both: attention adds what the first has more. `uas` -> the
    edges whose dependent each of FINDERS ranks first."""
    rows = result.ledger.rows
    names = np.array(result.ledger.relations, object)[rows["relation"]]
    left_out = frozenset(name for name, scores in result.relations.items() if not scores.in_mean)
    bits = {choice: rows[f"{choice}_bits"][None] for choice in (WORDS, BOTH)}
    found = {finder: (rows[f"{finder}_rank"] == 0)[None].astype(np.int64) for finder in FINDERS}
    shared: dict[str, Any] = {"left_out": left_out, "repositories": result.ledger.repositories}
    return {
        "bits": Hits.of_rows(rows["function"], names, bits, ("bits",), unit="bits", **shared),
        "uas": Hits.of_rows(rows["function"], names, found, ("uas",), **shared),
    }
