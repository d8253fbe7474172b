"""Worked examples of a masking result: what the model restored in three short functions, and its syntax tree.

A ledger holds no predictions. Therefore the model restores these three copies again, and they are written beside the
result. Which ones follows from the ledger: of all T1 copies of functions of at most LINES lines and CHARACTERS
characters, those with the lowest, the median and the highest Jaccard similarity.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field, ValidationError

from codesyntax_dataset.atomic import write
from codesyntax_dataset.checksummed_json import with_checksum, without_checksum
from codesyntax_dataset.errors import EntryError, LedgerError
from codesyntax_dataset.languages.grammar import parse
from codesyntax_metric.ast_similarity.similarity import Similarity
from probing.instruments.masking.masking import CURRENT, masked_copies, walk
from probing.instruments.masking.restore import Part, Restoration
from probing.instruments.masking.result import HITS, SIMILARITIES, MaskResult
from probing.runs import records
from probing.runs.data import Functions, rows
from probing.runs.records import Number, Record, Texts, explain, listed

logger = logging.getLogger(__name__)

LINES, CHARACTERS = 15, 500
"""The most of a function that is short enough to read."""

Place = Literal["lowest", "median", "highest"]

_LARGEST = 2**20  # bytes of the file, many times the usual size


class RestoredExample(Record):
    """A restored copy T1 of a function, which has the number `function` in the split, and the `id` in the dataset.

    `place`: of its Jaccard similarity among those of all short functions. `tree` and `restored_tree`: the types of the
    named nodes of the source and of the restored text in pre-order, indented by two spaces for each node above.
    """

    place: Place
    function: Number
    id: int
    node_type: str
    parts: Annotated[tuple[Part, ...], listed]
    tree: Annotated[Texts, Field(min_length=1)]
    restored_tree: Annotated[Texts, Field(min_length=1)]


class Worked(NamedTuple):
    """An example, and the `similarity` of its trees, from the ledger."""

    example: RestoredExample
    similarity: Similarity


class Examples(Record):
    """Those of the result with this digest of its `ledger`; none if it has no short function."""

    format: Literal[1]
    ledger: str
    examples: Annotated[tuple[RestoredExample, ...], listed]

    def to_json(self) -> str:
        """The same examples give the same text."""
        return json.dumps(with_checksum(self.model_dump(mode="json")), indent=1, allow_nan=False) + "\n"


def examples_path(result: str | os.PathLike) -> Path:
    """The path of the examples of a result, beside its JSON."""
    path = Path(result)
    return path.with_name(path.name.removesuffix(".json") + ".examples.json")


def load(path: Path, result: MaskResult) -> list[Worked]:
    """The examples in a file, of this result; raises LedgerError if it holds none, or those of another result."""
    try:
        fields = records.parse(records.read(path, _LARGEST), _LARGEST)
        examples = Examples.model_validate(without_checksum(fields))
    except (EntryError, ValidationError) as error:
        reason = explain(error, "the file") if isinstance(error, ValidationError) else error
        raise LedgerError(
            f"{path} does not hold the examples of a masking result ({reason}): run `codesyntax mask` again to write "
            "them, or remove the file"
        ) from error
    shown = [_row(result, example) for example in examples.examples]
    if examples.ledger != result.ledger.digest() or None in shown:
        raise LedgerError(
            f"{path} does not belong to the result beside it: run `codesyntax mask` again to replace it, or remove "
            "the file"
        )
    similarities = [Similarity(*(float(row[name]) for name in SIMILARITIES)) for row in shown]
    return [*map(Worked, examples.examples, similarities)]


def _row(result: MaskResult, example: RestoredExample) -> Any:
    """The row of the ledger that an example shows; None if the ledger does not have it."""
    ledger, parts = result.ledger, example.parts
    if example.node_type not in ledger.node_types:
        return None
    shown = {
        "function": example.function,
        "node_type": ledger.node_types.index(example.node_type),
        "copy": 0,
        "masked": sum(part.masked for part in parts),
        HITS[0]: sum(part.right for part in parts),
    }
    rows = ledger.rows[np.logical_and.reduce([ledger.rows[name] == value for name, value in shown.items()])]
    return rows[0] if len(rows) else None


def save(result: MaskResult, functions: Functions, folder: Path, restoration: Callable[[], Restoration]) -> None:
    """Write the examples of a result that is saved in a folder, unless they are there.

    `functions`: those of the run; `restoration`: loads what restored them. There are none by the protocol `published`,
    which decodes a function as a whole, and by `infilling`, of which the ledger counts other hits than the text has.
    """
    if result.settings.protocol != CURRENT:
        return
    path = examples_path(result.paths(folder)[0])
    try:
        load(path, result)
    except LedgerError:
        if examples := _restored_again(result, functions, restoration()):
            write(path, examples.to_json())


def _restored_again(result: MaskResult, functions: Functions, restoration: Restoration) -> Examples | None:
    """The examples; None if the model restores them otherwise than in the run, as on another machine."""
    settings, ledger, masker = result.settings, result.ledger, restoration.masker
    examples = []
    for example_place, row, id, code in _chosen(result, functions):
        index, name = int(row["function"]), ledger.node_types[row["node_type"]]
        (function,) = masker.read([code])
        copies, *_ = masked_copies(function, index, [name], 0, settings.seed, settings.rate, settings.control)
        ((restored,),) = restoration.each([(function, copies)])
        if (restored.filled.hits[0], *restored.similarity) != tuple(row[column] for column in (HITS[0], *SIMILARITIES)):
            logger.warning("no examples are written: the model now restores other sub-tokens than the ledger says")
            return None
        examples.append(
            RestoredExample(
                place=example_place,
                function=index,
                id=id,
                node_type=name,
                parts=tuple(restoration.restorer.parts(function, restored.copy.positions, restored.filled.predicted)),
                tree=_outline(code, masker.language),
                restored_tree=_outline(restored.text, masker.language),
            )
        )
    return Examples(format=1, ledger=ledger.digest(), examples=tuple(examples))


def _chosen(result: MaskResult, functions: Functions) -> Iterator[tuple[Place, np.void, int, str]]:
    """The place, the row of the ledger, the id and the code of each example.

    Of equal similarities, that of fewer masked sub-tokens counts as lower, then that of the earlier function.
    """
    copies = result.ledger.rows
    first = copies[(copies["copy"] == 0) & ~np.isnan(copies[SIMILARITIES[0]])]
    short = {
        row["place"]: (row["id"], row["code"])
        for row in chain.from_iterable(rows(functions.dataset, functions.limit))
        if len(row["code"]) <= CHARACTERS and len(row["code"].splitlines()) <= LINES
    }
    first = first[np.isin(first["function"], list(short))]
    order = np.lexsort((first["node_type"], first["function"], first["masked"], first[SIMILARITIES[0]]))
    last = len(order) - 1
    places: dict[int, Place] = {
        last: "highest",
        last // 2: "median",
        0: "lowest",
    }  # one or two if there are no three
    for number, example_place in sorted(places.items()):
        if last >= 0:
            row = first[order[number]]
            yield example_place, row, *short[int(row["function"])]


def _outline(code: str, language: str) -> tuple[str, ...]:
    """The types of the named nodes of a tree, indented."""
    return tuple("  " * depth + node.type for node, depth in walk(parse(code, language)) if node.is_named)
