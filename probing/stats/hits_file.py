"""Hits kept in a file of the cache, which who makes a board alone can write to."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from codesyntax_dataset.arguments import StrPath
from codesyntax_dataset.atomic import write
from probing.runs.records import JsonObject
from probing.stats.hits import Group, Hits


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
        described[name] = {
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
            tables[name] = Hits(
                arrays[f"{name}/clusters"],
                groups,
                tuple(tuple(of) if isinstance(of, list) else of for of in known["measures"]),
                known["unit"],
                frozenset(known["left_out"]),
                {tuple(pair): count for pair, count in known["families"]},
            )
    return tables, header["about"]
