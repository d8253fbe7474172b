"""Intervals and tests over functions, whatever the functions are scored for.

The paired test. If neither of two is better, they are exchangeable in each function: the test counts how often random
exchanges (sign changes of the differences) give a sum as far from 0 (Noreen 1989), equal sums half (mid-p: Lancaster
1961). That tests symmetry, and of few skewed differences it rejects too many. Student's t after Hall's transformation,
which removes the skewness (1992, Journal of the Royal Statistical Society B 54), does not; it is over the differences
that are not 0, whose mean is 0 if that of all is. The p-value is the larger of the two. tests/benchmarks/sizes.py
simulates its size: at most 6 % where 5 % are said. But where a mean is 0 by one rare large difference, few functions
may lack it: of such, it rejects up to 18 %.

The cache. Statistics that reports and boards keep are each computed once, and found again by a digest of all they
depend on. They are in the cache (`probing.models.cache_dir`), not beside the results: these travel, and may be in a
folder that cannot be written. A file is named after the digest of the numbers that the statistic is made from, as they
were read just now from the ledgers and the data, of our code and of the libraries; and after that of its own content,
so that a damaged one is computed again. Whoever can write to the cache can forge what a report or a board says, so only
these, within `caching`, take anything from it: `verify` and `submit` compute.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import numpy as np
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from codesyntax_dataset import safe_files
from codesyntax_dataset.atomic import write
from codesyntax_dataset.errors import LedgerError
from probing.models import cache_dir

logger = logging.getLogger(__name__)

FEW_FUNCTIONS = 6
"""Relations and node types in fewer functions are marked: their scores are unreliable and have no interval."""

SEPARATED = 0.05
"""A difference with a p-value below this is separated from 0."""

LEAST_EDGES = 30
"""Hard edges of `test` from which a relation is in a mean beyond offsets."""

RESAMPLES = 1000
"""Bootstrap resamples of the interval of a mean."""

PERMUTATIONS = 9999
"""Random permutations of a test: the smallest p-value is 1 / 10000."""

_AT_ONCE = 100
"""Resamples in memory at once."""


def holm(p: np.ndarray) -> np.ndarray:
    """p-values of several tests, corrected to keep the family-wise error rate (Holm 1979)."""
    order = np.argsort(p)
    corrected = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    result = np.empty(len(p))
    result[order] = np.minimum(corrected, 1)
    return result


def bca(score: np.ndarray, resampled: np.ndarray, left_out: np.ndarray, degrees: float = float("inf")) -> np.ndarray:
    """Lower and upper bounds (2, n) from `score` (n,), `resampled` (B, n) and the jackknife `left_out` (F, n).

    `degrees`: of freedom of the spread. A bootstrap takes it for known and is too narrow where it rests on few
    functions; its levels are then those of Student's t (the expanded percentiles of Hesterberg 2015, The American
    Statistician 69).
    """
    drawn = np.isfinite(resampled).sum(axis=0)  # (n,)
    drawn_or_one = np.maximum(drawn, 1)
    close = 1e-9 * np.maximum(np.abs(score), 1)  # equal means may differ in their last digits
    below = (resampled < score - close).sum(axis=0) + (np.abs(resampled - score) <= close).sum(axis=0) / 2
    bias = ndtri(np.clip(below / drawn_or_one, 0.5 / drawn_or_one, 1 - 0.5 / drawn_or_one))
    kept = np.isfinite(left_out)
    centre = np.where(kept, left_out, 0).sum(axis=0) / np.maximum(kept.sum(axis=0), 1)
    influence = np.where(kept, centre - left_out, 0)
    spread = 6 * (influence**2).sum(axis=0) ** 1.5
    skew = np.divide((influence**3).sum(axis=0), spread, out=np.zeros(len(score)), where=spread > 1e-12)
    ordered = np.sort(resampled, axis=0)  # NaN come last
    bounds = []
    for tail in stdtrit(degrees, (0.025, 0.975)):
        away = bias + tail
        # beyond its pole the formula would reverse
        level = ndtr(bias + away / np.maximum(1 - skew * away, 1e-9))
        place = level * (drawn_or_one - 1)
        low = np.floor(place).astype(int)
        values = np.take_along_axis(ordered, np.stack([low, np.minimum(low + 1, drawn_or_one - 1)]), axis=0)
        bounds.append(values[0] + (place - low) * (values[1] - values[0]))
    return np.stack(bounds)


def bootstrapped(
    estimate: Callable[..., np.ndarray],
    tables: Sequence[np.ndarray],
    draws: Iterable[np.ndarray],
    degrees: float = float("inf"),
) -> np.ndarray:
    """The estimate of sums of `tables` (F, ...) over functions, with lower and upper bounds by `bca`: (3, n).

    `estimate`: gives (..., n) from the sums of each table, (..., as of the table); `draws`: how often each function is
    drawn, some resamples at a time: (B, F). Fewer than FEW_FUNCTIONS functions have no bounds, which are then NaN.
    """
    totals = [table.sum(axis=0) for table in tables]
    found = estimate(*totals)
    if len(tables[0]) < FEW_FUNCTIONS:
        return np.stack([found, *np.full((2, len(found)), np.nan)])
    resampled = np.concatenate([estimate(*(np.tensordot(drawn, table, 1) for table in tables)) for drawn in draws])
    left_out = estimate(*(total - table for total, table in zip(totals, tables)))
    return np.stack([found, *bca(found, resampled, left_out, degrees)])


def drawn_functions(functions: int, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """How often each function is drawn, for `bootstrapped`."""
    rng = np.random.default_rng(seed)
    for start in range(0, resamples, _AT_ONCE):
        rows = rng.integers(functions, size=(min(_AT_ONCE, resamples - start), functions))
        yield np.array([np.bincount(row, minlength=functions) for row in rows], float)


def as_far(sums: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """The number of `sums` (..., B) farther from 0 than `observed` (...); sums equally far count half."""
    sums, observed = np.abs(sums), np.abs(observed)[..., None]
    least, most = ((observed + close).astype(sums.dtype) for close in (-1e-9, 1e-9))  # rounding makes no difference
    return ((sums >= least).sum(axis=-1) + (sums > most).sum(axis=-1)) / 2


def paired_test(differences: np.ndarray, permutations: int, seed: int) -> np.ndarray:
    """p-values (...) that the mean of `differences` (..., F) over functions is 0."""
    observed = differences.sum(axis=-1)
    exchanges = signs(differences.shape[-1], permutations, seed)
    farther = sum(as_far(differences @ sign.T, observed) for sign in exchanges)
    return paired_p(np.asarray(farther), permutations, differences)


def paired_p(farther: np.ndarray, permutations: int, differences: np.ndarray) -> np.ndarray:
    """p-values (...) of the paired test on `differences` (..., F), of whose exchanged sums `farther` (...) were
    counted by `as_far`."""
    return np.maximum((1 + farther) / (1 + permutations), skew_corrected(differences))


def skew_corrected(values: np.ndarray) -> np.ndarray:
    """Two-sided p-values (...) of Hall's transformed t, that the mean of `values` (..., F) is 0, over those that are
    not 0; 1 for less than 3 of them."""
    rounding = 1e-9 * np.abs(values).max(axis=-1)
    counted = np.abs(values) > rounding[..., None]
    known = counted.sum(axis=-1)
    size = np.maximum(known, 3)
    degrees = size - 1
    mean = np.where(counted, values, 0).sum(axis=-1) / size
    residuals = np.where(counted, values - mean[..., None], 0)
    spread = np.sqrt((residuals**2).sum(axis=-1) / degrees)
    varies = spread > rounding
    scale = np.where(varies, spread, 1)
    skew = np.where(varies, (residuals**3).sum(axis=-1) / scale**3, 0) * size / (degrees * (size - 2))
    shift = np.where(varies, mean / scale, np.sign(mean) * 1e9)
    t = np.sqrt(size) * (shift + skew * shift**2 / 3 + skew**2 * shift**3 / 27 + skew / (6 * size))
    return np.where((np.abs(mean) > 1e-12) & (known > 2), 2 * stdtr(degrees, -np.abs(t)), 1)


def signs(functions: int, permutations: int, seed: int, at_once: int = 500) -> Iterator[np.ndarray]:
    """Yield random exchanges, some at a time: -1 where the two are exchanged, float64 (permutations, functions)."""
    return (kept * 2.0 - 1 for kept in unexchanged(functions, permutations, seed, at_once))


def unexchanged(functions: int, permutations: int, seed: int, at_once: int) -> Iterator[np.ndarray]:
    """The same as whole numbers, 0 where the two are exchanged and 1 where not: int64 (permutations, functions)."""
    rng = np.random.default_rng(seed)
    for start in range(0, permutations, at_once):
        yield rng.integers(0, 2, (min(at_once, permutations - start), functions))


Arrays = Mapping[str, np.ndarray]

_LARGEST = 1 << 26
"""The most bytes of a file, many times the usual size."""

_caching = ContextVar("caching", default=False)


@contextmanager
def caching() -> Iterator[None]:
    """Take statistics from the cache within this block, and keep them there."""
    before = _caching.set(True)
    try:
        yield
    finally:
        _caching.reset(before)


def cached(what: str, made_of: Iterable[bytes], compute: Callable[[], Arrays]) -> Arrays:
    """The float64 arrays that `compute` returns, or returned for the same `what` and `made_of` before."""
    place = cache_dir.folder() if _caching.get() else None
    if place is None:
        return compute()
    digest = hashlib.sha256(f"{_of_code()} {what}".encode())
    for part in made_of:
        digest.update(hashlib.sha256(part).digest())
    key = digest.hexdigest()[:32]
    for file in sorted(place.glob(f"{key}-*.statistics.json")):
        found = _read(file)
        if found is not None:
            return found
        logger.warning("%s is damaged: computing its statistics again", file)
    arrays = compute()
    _keep(arrays, place, key)
    return arrays


@functools.cache
def _of_code() -> str:
    return cache_dir.key("statistics")


def _read(file: Path) -> Arrays | None:
    """The arrays in a file; None if it is damaged."""
    try:
        data = safe_files.read(file, _LARGEST)
        if file.name.split("-")[1] != f"{hashlib.sha256(data).hexdigest()}.statistics.json":
            return None
        return {
            name: np.frombuffer(base64.b64decode(one["float64"]), "<f8").astype(np.float64).reshape(one["shape"])
            for name, one in json.loads(data).items()
        }
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def _keep(arrays: Arrays, place: Path, key: str) -> None:
    """Keep arrays; failing to do so is not an error."""
    fields = {
        name: {"shape": one.shape, "float64": base64.b64encode(np.ascontiguousarray(one, "<f8").tobytes()).decode()}
        for name, one in arrays.items()
    }
    text = json.dumps(fields)
    try:
        write(cache_dir.private(place) / f"{key}-{hashlib.sha256(text.encode()).hexdigest()}.statistics.json", text)
    except (OSError, LedgerError) as error:
        logger.warning("cannot cache statistics: %s", error)
