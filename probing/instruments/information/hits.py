"""Hits of an information probe: the dependents that choices find, and their log-loss, by function
and relation."""

from __future__ import annotations

import numpy as np

from probing.instruments.information.result import (
    ATTENTION,
    BOTH,
    WORDS,
    InformationResult,
    floor_bits,
)
from probing.stats.hits import Hits

FINDERS = ("best", ATTENTION, WORDS, BOTH)
"""One attention head and the three choices."""


def hits(result: InformationResult) -> dict[str, Hits]:
    """What words and positions, and both, leave open, and what each of FINDERS finds, by function.

    `bits` -> the log-loss above the floor, by relation: attention adds what the first has more;
    `uas` -> the edges whose dependent each of FINDERS ranks first.
    """
    rows = result.ledger.rows
    names = result.ledger.group_names
    left_out = frozenset(name for name, scores in result.relations.items() if not scores.in_mean)
    floor = floor_bits(rows)
    bits = {choice: (rows[f"{choice}_bits"] - floor)[None] for choice in (WORDS, BOTH)}
    top1_hits = {finder: (rows[f"{finder}_rank"] == 0)[None].astype(np.int64) for finder in FINDERS}
    functions = rows["function"]
    over = result.ledger.over
    return {
        "bits": Hits.of_rows(
            functions,
            names,
            bits,
            ("bits",),
            unit="bits",
            left_out=left_out,
            over=over,
        ),
        "uas": Hits.of_rows(functions, names, top1_hits, ("uas",), left_out=left_out, over=over),
    }
