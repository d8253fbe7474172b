"""A toy instrument, as somebody would add one: how many tokens of a function a model reads as one sub-token."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from tqdm import tqdm

from probing.evidence.published import SCORED, Numbers
from probing.evidence.scores import Slice, rows_by_result, shared_cells
from probing.instruments.registry import Instrument
from probing.report.document import Column, Part, Table
from probing.report.kinds import NAME, PERCENT
from probing.runs.data import words_of
from probing.runs.experiment import Experiment, Prepared
from probing.runs.ledger_file import RowLedger
from probing.runs.saved import Circumstances, Measured, Provenance, Result
from probing.runs.settings import ControlledSettings
from probing.stats.hits import Hits

TOY = "toy"
NAMES, OTHERS = "names", "others"


class ToyLedger(RowLedger):
    ROW = np.dtype([(name, "<i4") for name in ("function", "kind", "tokens", "whole")])
    ORDER = ("function", "kind")
    GROUP_COLUMN = "kind"
    INSTRUMENT = TOY
    COMMAND = "toy"
    DICTIONARY_COLUMNS = ("kind",)
    BOUNDS: ClassVar = {"tokens": (1, np.inf), "whole": (0, np.inf)}


class ToySettings(ControlledSettings):
    KIND = (TOY,)

    longest: int  # characters of a token that is asked for


class ToyProvenance(Provenance):
    VERSION = 1
    SIGNATURE_FIELDS = TOY, ("rows", "version")

    settings: ToySettings
    run: Circumstances
    version: int


class ToyResult(Result[ToyLedger]):
    LEDGER = ToyLedger
    PROVENANCE = ToyProvenance

    settings: ToySettings
    run: Circumstances
    whole: dict[str, float]
    """Percent by kind."""

    @classmethod
    def measured(cls, ledger: ToyLedger, provenance: Any) -> Measured:
        whole = {}
        for name, of_kind in ledger.named().items():
            rows = ledger.rows[of_kind]
            whole[name] = 100 * float(rows["whole"].sum() / rows["tokens"].sum())
        functions = len(np.unique(ledger.function))
        return {"rows": len(ledger)}, {"functions": functions, "whole": whole}


class ToyFunction(NamedTuple):
    index: int
    ids: np.ndarray
    words: list[str]


@dataclass
class Toy(Experiment[ToyFunction, ToyResult]):
    """Asks for tokens of up to `longest` characters."""

    RESULT = ToyResult
    PART = 3

    longest: int = 8

    def prepare(self) -> Prepared[ToyFunction]:
        encoder = self.session.encoder()
        skips = Counter[str]()
        functions = []
        for row in self.data.each_row():
            ((ids, _, _),) = encoder.encode([row["code"]])
            if len(ids) > encoder.longest:
                skips["too long"] += 1
            else:
                functions.append(ToyFunction(row["index"], ids, words_of(row)))
        return self.prepared(encoder, functions, skips, "can be read")

    def run(self, part: Sequence[ToyFunction], bar: tqdm) -> ToyLedger:
        tokenizer = self.session.encoder().tokenizer
        cells = []
        for function in part:
            counts = np.zeros((2, 2), int)
            for word in function.words:
                if word.strip() and len(word) <= self.longest:
                    whole = len(tokenizer.tokenize(word)) == 1
                    counts[0 if word.isidentifier() else 1] += (1, whole)
            for kind, (tokens, whole) in enumerate(counts.tolist()):
                if tokens:
                    cells.append((function.index, kind, tokens, whole))
            bar.update()
        return self.ledger([NAMES, OTHERS], cells)


def hits(result: ToyResult) -> Hits:
    rows = result.ledger.rows
    whole = {"model": rows["whole"][None]}
    names = result.ledger.group_names
    return Hits.of_rows(
        rows["function"], names, whole, ["whole"], rows["tokens"], over=result.ledger.over
    )


def _rows(result: ToyResult) -> Iterator[dict[str, Any]]:
    return Slice(hits(result), shared_cells(result)).scored("model")


toy_rows = rows_by_result(ToyResult, _rows)


def of_toy(results: Mapping[str, Any], _claimed: object) -> Iterator[Numbers]:
    yield Numbers("whole", hits(results[SCORED]), "model")


def toy_parts(result: ToyResult) -> list[Part]:
    columns = [
        Column("kind", NAME, of=partial(_cell, 0)),
        Column("whole", PERCENT, of=partial(_cell, 1)),
    ]
    table = Table("whole", result.title, columns, [list(row) for row in result.whole.items()])
    return [table, result.signature]


def _cell(place: int, row: Sequence[Any]) -> Any:
    return row[place]


def registered() -> Instrument:
    """What stands in the registry."""
    names = "Toy", "ToyResult", "toy_rows", "of_toy", "toy_parts"
    return Instrument(*(f"{__name__}:{name}" for name in names))
