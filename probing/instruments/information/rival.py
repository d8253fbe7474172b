"""What words and positions tell of dependents, learned once of the same choices: no model changes it,
so that it is kept in memory, and in the cache."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from probing.instruments.information import learn
from probing.instruments.information.learn import SurfaceFit, SurfaceSample
from probing.models import cache_dir

_FILE_KIND = "what words and positions tell"

_last: dict[str, dict[int, SurfaceFit]] = {}
"""The fits of the last samples, by their digest."""


def rival(samples: Mapping[int, SurfaceSample]) -> dict[int, SurfaceFit]:
    """`learn_surface`, or what it gave of the very same samples before."""
    known_by = digest(dict(samples))
    fits = _last.get(known_by) or cache_dir.made_of(
        [_FILE_KIND, learn.SURFACE_PENALTIES, known_by],
        ".npz",
        lambda: learn.learn_surface(samples),
        _write_fits,
        lambda file: _read_fits(file, samples),
    )
    _last.clear()
    _last[known_by] = fits
    return fits


def digest(value: Any) -> str:
    """A digest of all there is in arrays, dataclasses, mappings and sequences; raises TypeError for
    what it could leave out."""
    parts: list[Any]
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise TypeError("an array of objects")
        parts = [str(value.dtype), str(value.shape), value]
    elif is_dataclass(value):
        parts = [type(value).__name__]
        for each in fields(value):
            parts += [each.name, digest(getattr(value, each.name))]
    elif isinstance(value, dict):
        parts = ["dict", *(digest(item) for pair in value.items() for item in pair)]
    elif isinstance(value, tuple | list):
        parts = ["sequence", *map(digest, value)]
    elif value is None or isinstance(value, str | int | float):
        parts = [type(value).__name__, repr(value)]
    else:
        raise TypeError(f"no digest of a {type(value).__name__}")
    whole = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part.tobytes()
        whole.update(len(data).to_bytes(8, "little") + data)
    return whole.hexdigest()


def _write_fits(file: Path, fits: Mapping[int, SurfaceFit]) -> None:
    arrays = {}
    for relation, fitted in fits.items():
        arrays[f"{relation}/features"] = np.array(fitted.features)
        arrays[f"{relation}/penalty"] = np.array(fitted.penalty)
        arrays[f"{relation}/weights"] = np.stack([*fitted.of_folds, fitted.weights])
        arrays[f"{relation}/unseen"] = fitted.unseen
    with file.open("xb") as opened:
        np.savez(opened, allow_pickle=False, **arrays)


def _read_fits(file: Path, samples: Mapping[int, SurfaceSample]) -> dict[int, SurfaceFit]:
    fits = {}
    with np.load(file, allow_pickle=False) as arrays:
        for relation, sample in samples.items():
            *of_folds, weights = arrays[f"{relation}/weights"]
            fits[relation] = SurfaceFit(
                sample,
                str(arrays[f"{relation}/features"]),
                float(arrays[f"{relation}/penalty"]),
                of_folds,
                weights,
                arrays[f"{relation}/unseen"],
            )
    return fits
