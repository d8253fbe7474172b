"""Hits kept in a file of the cache, which who makes a board alone can write to."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from codesyntax_dataset.arguments import StrPath
from codesyntax_dataset.atomic import write
from probing.runs.records import JsonObject
from probing.stats.hits import Group, Hits, Measure


def save(path: StrPath, tables: Mapping[str, Hits], about: JsonObject) -> None:
    """Write tables of hits, and what is known `about` them, as JSON."""
    arrays: dict[str, np.ndarray] = {}
    described = {}
    for name, hits in tables.items():
        arrays[f"{name}/clusters"] = hits.clusters
        groups = {}
        for number, (group_name, group) in enumerate(hits.groups.items()):
            groups[group_name] = [[*group.sums], group.worth]
            arrays[f"{name}/{number}/keys"] = np.stack([group.places, group.n])
            arrays[f"{name}/{number}/sums"] = np.stack([*group.sums.values()])
        for system, means in hits.redrawn.items():
            arrays[f"{name}/redrawn/{system}"] = means(hits.counted, hits.measures)
        described[name] = {
            "redrawn": [*hits.redrawn],
            "measures": hits.measures,
            "unit": hits.unit,
            "left_out": sorted(hits.left_out),
            "families": [*map(list, hits.families.items())],
            "groups": groups,
        }
    text = json.dumps({"about": about, "tables": described})
    file = io.BytesIO()
    arrays["header"] = np.frombuffer(text.encode(), np.uint8)
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    write(Path(path), file.getvalue())


def load(path: StrPath) -> tuple[dict[str, Hits], JsonObject]:
    """The tables of a file, and what is known about them."""
    with np.load(path, allow_pickle=False) as arrays:
        header = json.loads(arrays["header"].tobytes())
        tables = {}
        for name, known in header["tables"].items():
            groups = {}
            for number, (group_name, (systems, worth)) in enumerate(known["groups"].items()):
                places, n = arrays[f"{name}/{number}/keys"]
                sums = dict(zip(systems, arrays[f"{name}/{number}/sums"]))
                groups[group_name] = Group(places, n, sums, worth)
            measures = tuple(tuple(of) if isinstance(of, list) else of for of in known["measures"])
            redrawn = {
                system: partial(_redrawn, arrays[f"{name}/redrawn/{system}"], measures)
                for system in known["redrawn"]
            }
            tables[name] = Hits(
                arrays[f"{name}/clusters"],
                groups,
                measures,
                known["unit"],
                frozenset(known["left_out"]),
                {tuple(pair): count for pair, count in known["families"]},
                redrawn,
            )
    return tables, header["about"]


def _redrawn(
    means: np.ndarray, measures: Sequence[Measure], _groups: object, asked: Sequence[Measure]
) -> np.ndarray:
    """The means that were kept, by some of the measures: of the groups that were counted then."""
    return means[:, [measures.index(measure) for measure in asked]]
