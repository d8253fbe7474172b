"""The masking ledger: what a model restored in each masked copy of each function. Every score is computed from it.

A ledger needs no torch and no model: numpy and pyarrow read it. As Parquet it has one row per copy, sorted by function
(its position in the split), node type and copy: 0 is T1, in which the nodes of the type are masked, the others are its
controls T0, in which as many random sub-tokens are (Velasco et al. 2024, section 3).
"""

from __future__ import annotations

import numpy as np

from probing.runs import ledger_file
from probing.runs.row_ledger import RowLedger

SIMILARITIES = ("jaccard", "sorensen_dice", "levenshtein")
"""Of the trees of the source and of the restored text, from 0 to 1."""

FILLERS = {"letter": "x", "deleted": ""}
"""Fillers that need no model: the letter x in place of each masked sub-token, or nothing."""

FILLED = tuple(f"{filler}_{similarity}" for filler in FILLERS for similarity in SIMILARITIES)
"""The similarities of the trees of the source and of the text that a filler leaves."""

FLOORS = {similarity: tuple(f"{filler}_{similarity}" for filler in FILLERS) for similarity in SIMILARITIES} | {
    "restored": ("commonest",)
}
"""Outcome -> columns of what needs no model, which say what it is worth."""

HITS = ("hits_1", "hits_5", "hits_10")
"""Counts of masked sub-tokens whose true one is first, or among the first 5 or 10."""

ROW = np.dtype(
    [
        ("function", "<i4"),
        ("node_type", "<i4"),
        ("copy", "<i4"),
        ("seed", "<i8"),  # of the positions
        ("masked", "<i4"),  # sub-tokens
        *((name, "<i4") for name in HITS),
        ("log_probability", "<f8"),  # of the true sub-tokens, the mean over the masked ones, in nats, rounded
        ("commonest", "<i4"),  # how many masked sub-tokens are the one masked most often, of this type in this arm
        *((name, "<f8") for name in (*SIMILARITIES, *FILLED)),  # NaN if the trees could not be compared
    ]
)
"""The columns of a copy. `node_type` is an index into the ledger's node types."""


class MaskingLedger(RowLedger):
    """N masked copies: `rows` (N,) of the type ROW. `settings`: how the ledger was made, as JSON."""

    ROW = ROW
    ORDER = ("function", "node_type", "copy")
    NAMED = "node_type"
    INSTRUMENT = ledger_file.MASKING
    COMMAND = "mask"
    REPEATED = ("node_type", "function", "copy", "masked")

    @property
    def node_types(self) -> list[str]:
        return self.names

    def __repr__(self) -> str:
        return f"MaskingLedger: {len(self)} masked copies, {len(self.node_types)} node types"

    @classmethod
    def check(cls, rows: np.ndarray) -> None:
        hits = np.stack([rows["masked"], *(rows[name] for name in reversed(HITS))])
        similarities = np.stack([rows[name] for name in (*SIMILARITIES, *FILLED)])
        failed = np.isnan(similarities)
        if (rows["masked"] < 1).any() or (np.diff(hits, axis=0) > 0).any() or (hits < 0).any():
            raise ValueError("hits that cannot be")
        if ((rows["commonest"] < 0) | (rows["commonest"] > rows["masked"])).any():
            raise ValueError("numbers of the commonest sub-token that cannot be")
        if not ((similarities >= 0) & (similarities <= 1) | failed).all() or (failed != failed[0]).any():
            raise ValueError("similarities that cannot be")
        if not np.isfinite(rows["log_probability"]).all() or (rows["log_probability"] > 0).any():
            raise ValueError("log-probabilities that cannot be")
