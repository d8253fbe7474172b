"""The silencing ledger: how likely a language model finds dependents, whole and with one of its heads silenced.

A ledger needs no torch and no model: numpy and pyarrow read it. As Parquet it has one row per function, relation and
silenced head, sorted by function (its position in the split), relation and `silenced`: 0 is the whole model, 1 the best
head of the relation, and from 2 on the heads of the same layer that it is compared with.
"""

from __future__ import annotations

import numpy as np

from probing.prediction.row_ledger import RowLedger
from probing.runs import ledger_file

WHOLE, BEST, MATCHED = 0, 1, 2
"""What is silenced: nothing, the best head, or one to compare it with, which count on from here."""

DECIMALS = 6
"""Those of log-probabilities, as many as float32 gives."""


class SilencingLedger(RowLedger):
    """N rows of a function, a relation and a silenced head."""

    ROW = np.dtype(
        [
            ("function", "<i4"),
            ("relation", "<i4"),
            ("silenced", "<i4"),
            ("head", "<i4"),  # in the layer of the relation's best head; -1 if none is silenced
            ("edges", "<i4"),  # whose dependents are asked for
            ("sub_tokens", "<i4"),  # of these dependents
            ("length", "<i4"),  # sub-tokens of the function
            ("log_probability", "<f8"),  # of the true sub-tokens, the mean over those asked for, in nats
        ]
    )
    ORDER = ("function", "relation", "silenced")
    NAMED = "relation"
    INSTRUMENT = ledger_file.SILENCING
    COMMAND = "ablate"
    REPEATED = ("function", "relation", "silenced", "head", "edges", "sub_tokens", "length")

    @property
    def relations(self) -> list[str]:
        return self.names

    def __repr__(self) -> str:
        functions = len(np.unique(self.rows["function"]))
        return f"SilencingLedger: {len(self)} predictions in {functions} functions, {len(self.relations)} relations"

    @classmethod
    def check(cls, rows: np.ndarray) -> None:
        counts = np.stack([rows[name] for name in ("edges", "sub_tokens", "length")])
        if (counts < 1).any() or (rows["sub_tokens"] > rows["length"]).any():
            raise ValueError("counts that cannot be")
        if ((rows["silenced"] == WHOLE) != (rows["head"] == -1)).any() or (rows["head"] < -1).any():
            raise ValueError("heads that cannot be")
        if not np.isfinite(rows["log_probability"]).all() or (rows["log_probability"] > 0).any():
            raise ValueError("log-probabilities that cannot be")
