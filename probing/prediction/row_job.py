"""What jobs of `probing.runs.runner` share whose tables are row ledgers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar, cast

import numpy as np

from probing.prediction.row_ledger import RowLedger
from probing.runs.saved import Result

F = TypeVar("F")
L = TypeVar("L", bound=RowLedger)
R = TypeVar("R", bound=Result)


class RowJob(Generic[F, L, R]):
    """A `runner.Job` on functions F, whose tables are of the type LEDGER, with its `names`, and its result a RESULT.

    `data_folder`: the folder of the data, if it is in one.
    """

    LEDGER: ClassVar[type[RowLedger]]
    RESULT: ClassVar[type[Result]]

    data_folder: Path | None

    @property
    def name(self) -> str:
        raise NotImplementedError

    @property
    def made(self) -> dict[str, Any]:
        raise NotImplementedError

    @property
    def names(self) -> list[str]:
        raise NotImplementedError

    def as_found(self, rows: np.ndarray) -> np.ndarray:
        """Rows (N,) of a ledger as bytes: uint8 (N, bytes of a row)."""
        return rows.view(np.uint8).reshape(len(rows), self.LEDGER.ROW.itemsize)

    def shape_of(self, rows: int) -> tuple[int, ...]:
        return rows, self.LEDGER.ROW.itemsize

    def table(self, part: Sequence[F], found: np.ndarray) -> L:
        rows = np.ascontiguousarray(found).view(self.LEDGER.ROW).reshape(-1)
        return cast(L, self.LEDGER.concatenate([self.LEDGER(self.names, rows, self.made)]))

    def found(self, table: L) -> np.ndarray:
        return self.as_found(table.rows)

    def load(self, file: Path) -> L:
        return cast(L, self.LEDGER.load(file))

    def result(self, tables: Sequence[L]) -> R:
        return cast(R, self.RESULT.from_ledger(self.LEDGER.concatenate(tables), self.data_folder))

    def finished(self, folder: Path) -> R | None:
        return cast(R | None, self.RESULT.finished(folder / f"{self.name}.json", self.made, self.data_folder))

    def save(self, result: R, folder: Path) -> None:
        result.save(folder)
