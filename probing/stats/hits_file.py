"""Hits kept in a file of the cache, which who makes a board alone can write to."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from codesyntax_dataset.arguments import StrPath
from codesyntax_dataset.atomic import write
from codesyntax_dataset.errors import LedgerError
from probing.runs.clusters import Clusters
from probing.runs.records import JsonObject
from probing.stats.hits import Group, Hits, Measure


def save(path: StrPath, tables: Mapping[str, Hits], about: JsonObject) -> None:
    """Write tables of hits, and what is known `about` them, as JSON."""
    arrays: dict[str, np.ndarray] = {}
    described = {}
    for name, hits in tables.items():
        groups = hits.groups.values()
        arrays[f"{name}/clusters"] = hits.clusters
        if groups:
            keys = [[group.places, group.n] for group in groups]
            arrays[f"{name}/keys"] = np.concatenate(keys, axis=-1)
            sums = [[*group.sums.values()] for group in groups]
            arrays[f"{name}/sums"] = np.concatenate(sums, axis=-1)
        for system, means in hits.redrawn.items():
            arrays[f"{name}/redrawn/{system}"] = means(hits.counted, hits.measures)
        if hits.over is not None:
            arrays[f"{name}/over"] = hits.over.number
        described[name] = {
            "over": hits.over and hits.over.unit,
            "groups": [[name, len(group.n), group.worth] for name, group in hits.groups.items()],
            "systems": hits.systems,
            "redrawn": [*hits.redrawn],
            "measures": hits.measures,
            "unit": hits.unit,
            "left_out": sorted(hits.left_out),
            "families": [*map(list, hits.families.items())],
        }
    text = json.dumps({"about": about, "tables": described})
    file = io.BytesIO()
    arrays["header"] = np.frombuffer(text.encode(), np.uint8)
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    write(Path(path), file.getvalue())


def about_in(path: StrPath) -> JsonObject | None:
    """What is known about the hits in a file, which are not read; None if it is missing or
    damaged."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return json.loads(arrays["header"].tobytes())["about"]
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        return None


def load(path: StrPath) -> tuple[dict[str, Hits], JsonObject]:
    """The tables of a file, and what is known about them; raises LedgerError if it is damaged."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            header = json.loads(arrays["header"].tobytes())
            known = header["tables"].items()
            return {name: _hits_in(name, arrays, each) for name, each in known}, header["about"]
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise LedgerError(f"{path} is damaged ({error}): remove it, and repeat this") from error


def _hits_in(name: str, arrays: Mapping[str, np.ndarray], known: JsonObject) -> Hits:
    groups = {}
    if known["groups"]:
        keys, sums = arrays[f"{name}/keys"], arrays[f"{name}/sums"]
        stop = 0
        for group, size, worth in known["groups"]:
            of_group = slice(stop, stop := stop + size)
            places, n = keys[:, of_group]
            by_system = dict(zip(known["systems"], sums[..., of_group]))
            groups[group] = Group(places, n, by_system, worth)
    measures = tuple(
        tuple(measure) if isinstance(measure, list) else measure for measure in known["measures"]
    )
    redrawn = {
        system: partial(_redrawn, arrays[f"{name}/redrawn/{system}"], measures)
        for system in known["redrawn"]
    }
    unit = known["over"]
    return Hits(
        arrays[f"{name}/clusters"],
        groups,
        measures,
        known["unit"],
        frozenset(known["left_out"]),
        {tuple(pair): count for pair, count in known["families"]},
        redrawn,
        Clusters(unit, arrays[f"{name}/over"]) if unit else None,
    )


def _redrawn(
    means: np.ndarray, measures: Sequence[Measure], _groups: object, asked: Sequence[Measure]
) -> np.ndarray:
    """The means that were kept, by some of the measures: of the groups that were counted then."""
    return means[:, [measures.index(measure) for measure in asked]]
