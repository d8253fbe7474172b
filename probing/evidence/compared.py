"""Two models on the same functions: the paired difference of what their heads find, overall and by relation."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from codesyntax_dataset.arguments import checked
from codesyntax_dataset.errors import LedgerError, UnknownName
from codesyntax_dataset.protocol import KS
from codesyntax_metric.topk_uas import RULES
from probing.evidence.gather import Probed, find
from probing.evidence.selection import held_out
from probing.evidence.uncertainty import Comparison, mean_of
from probing.evidence.uncertainty import compare as compare_outcomes


class _Place(NamedTuple):
    """Settings that two results must share to be compared."""

    data: str
    labels: str
    config: str
    split: str
    direction: str


@dataclass(frozen=True)
class ModelsCompared:
    """One model against another with one guess, held-out, rule first, on the functions that both could read.

    `means`: of the two, in percent, NaN if no relation is in the mean; `relations`: of the two, of each of the R
    relations of `difference`, in percent: (2, R); `edges`: of these relations, (R,), and `in_mean`: (R,), those in the
    mean; `difference`: the first less the second, of one rule and k.
    """

    names: tuple[str, str]
    config: str
    split: str
    direction: str
    functions: int
    means: tuple[float, float]
    relations: np.ndarray
    edges: np.ndarray
    in_mean: np.ndarray
    difference: Comparison


@checked
def compare(
    one: str | os.PathLike, other: str | os.PathLike, results: Sequence[str | os.PathLike] = ()
) -> list[ModelsCompared]:
    """Compare two models on each config, split and direction on which both were probed.

    `one`, `other`: a result or a folder of results of one model, or the name of a model among `results`, files or
    folders that `probe` wrote. Heads are chosen on validation (held-out).

    Raises LedgerError for what is no result, for several models where one is expected, and for two that share neither
    data nor functions; UnknownName for a name that is not among `results`.
    """
    sides = [_by_place(side, results) for side in (one, other)]
    shared = [place for place in sides[0] if place in sides[1]]
    if not shared:
        told = " and ".join(f"{side} on {', '.join(map(_words, places))}" for side, places in zip((one, other), sides))
        raise LedgerError(f"{told}: probe both on the same data, config, split and direction")
    return [_compared(sides[0][place], sides[1][place]) for place in shared]


def _words(place: _Place) -> str:
    return f"{place.data}/{place.config}/{place.split} ({place.direction})"


def _by_place(side: str | os.PathLike, results: Sequence[str | os.PathLike]) -> dict[_Place, Probed]:
    """The results of a model, by what two must share."""
    probed = find([side] if Path(side).exists() else list(results)) if results or Path(side).exists() else []
    if not Path(side).exists():
        names = list(dict.fromkeys(one.test.settings.model for one in probed))
        if str(side) not in names:
            raise UnknownName("result or name of a model among the results", str(side), names)
        probed = [one for one in probed if one.test.settings.model == str(side)]
    models = [one for one in probed if one.test.settings.control is None] or probed
    places: dict[_Place, Probed] = {}
    for model in models:
        settings = model.test.settings
        place = _Place(settings.data, settings.labels, settings.config, settings.split, settings.direction)
        if place in places:
            files = " and ".join(str(one.files["test"]) for one in (places[place], model))
            raise LedgerError(f"{side} has several results on {_words(place)}, {files}: give one of them")
        places[place] = model
    return places


def _compared(one: Probed, other: Probed) -> ModelsCompared:
    sides = one, other
    test, validation = (
        np.intersect1d(*(getattr(side, part).ledger.function for side in sides)) for part in ("test", "validation")
    )
    settings = one.test.settings
    names = one.test.settings.model, other.test.settings.model
    if names[0] == names[1]:
        names = one.files["test"].name, other.files["test"].name
    if not (len(test) and len(validation)):
        raise LedgerError(f"{' and '.join(names)} share no function of {settings.config}")
    kept = [side.only(test, validation) for side in sides]
    found = [held_out(side.validation.ledger, side.test.ledger).at(RULES[:1], KS[:1]) for side in kept]
    shared = set(found[0].relations) & set(found[1].relations)
    first, second = (side.only(shared) for side in found)
    edges = first.edges.sum(axis=0)
    hits = np.array([side.total[0, 0] for side in (first, second)])
    mean, other_mean = mean_of(hits[:, first.in_mean], edges[first.in_mean]).tolist()
    return ModelsCompared(
        names,
        settings.config,
        settings.split,
        settings.direction,
        len(test),
        (mean, other_mean),
        100 * hits / edges,
        edges,
        first.in_mean,
        compare_outcomes(first, second),
    )
