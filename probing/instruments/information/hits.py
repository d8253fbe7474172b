"""Hits of an information probe: the dependents that choices find, and their log-loss, by function
and relation."""

from __future__ import annotations

from typing import Any

import numpy as np

from probing.instruments.information.result import (
    ATTENTION,
    BOTH,
    WORDS,
    InformationResult,
    floor_bits,
)
from probing.stats.hits import Hits

FINDERS = BEST, *_ = "best", ATTENTION, WORDS, BOTH
"""One attention head and the three choices."""


def hits(result: InformationResult) -> dict[str, Hits]:
    """What words and positions, and both, leave open, and what each of FINDERS finds, by function.

    `bits` -> the log-loss above the floor, by relation: attention adds what the first has more;
    `constructs` -> the same, by construct, such as `For` for all its relations, which ask about the
    same head tokens; `uas` -> the edges whose dependent each of FINDERS ranks first.
    """
    rows = result.ledger.rows
    names = np.array(result.ledger.names, object)[rows["relation"]]
    left_out = frozenset(name for name, scores in result.relations.items() if not scores.in_mean)
    floor = floor_bits(rows)
    bits = {choice: (rows[f"{choice}_bits"] - floor)[None] for choice in (WORDS, BOTH)}
    top1_hits = {finder: (rows[f"{finder}_rank"] == 0)[None].astype(np.int64) for finder in FINDERS}
    repositories = result.ledger.repositories
    shared: dict[str, Any] = {"left_out": left_out, "repositories": repositories}
    in_mean = np.array([name not in left_out for name in names], bool)
    functions = rows["function"]
    constructs = np.array([name.partition(":")[0] for name in names[in_mean]], object)
    of_constructs = {choice: sums[:, in_mean] for choice, sums in bits.items()}
    return {
        "bits": Hits.of_rows(functions, names, bits, ("bits",), unit="bits", **shared),
        "constructs": Hits.of_rows(
            functions[in_mean],
            constructs,
            of_constructs,
            ("bits",),
            unit="bits",
            repositories=repositories,
        ),
        "uas": Hits.of_rows(functions, names, top1_hits, ("uas",), **shared),
    }
