"""Two models on the same functions, or one before and after an edit (`codesyntax_dataset.edits`):
the paired difference of what their heads find with one guess, overall and by relation.

Only functions that both sides have, on test and on validation, and relations of both are compared,
edge by edge. Heads are chosen on validation, and anew after an edit, so whoever loses has no other
choice that makes up for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from codesyntax_dataset.arguments import Paths, StrPath, checked
from codesyntax_dataset.errors import ArgumentError, LedgerError, UnknownName
from probing.evidence.gather import Probed, find
from probing.evidence.protocols import ONE_GUESS, Comparison, compare_hits, held_out
from probing.runs.repositories import clustered_by


@dataclass(frozen=True, kw_only=True)
class ModelsCompared:
    """Heads of two models on the functions that both could read, held-out, with one guess, by the
    rule first.

    `means`: of the two, in percent, NaN if no relation is in the mean; `relations`: of the two, of
    each of the R relations of `difference`, in percent: (2, R); `edges`: of these relations, (R,),
    and `in_mean`: (R,), those in the mean; `difference`: the first less the second.
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


class _Place(NamedTuple):
    """Settings that two results must share to be compared."""

    data: str
    labels: str
    config: str
    split: str
    direction: str

    def __str__(self) -> str:
        return f"{self.data}/{self.config}/{self.split} ({self.direction})"


@checked
def compare(
    first: StrPath,
    second: StrPath,
    results: Paths = (),
    cluster: str | None = None,
) -> list[ModelsCompared]:
    """Compare two models on each config, split and direction on which both were probed. Heads are
    chosen on validation (held-out).

    Args:
        first: a result or a folder of results of one model; or, among `results`, the name of a
            model, or of a checkpoint, such as `NAME/step-100` or `step-100`.
        second: the same of the other model.
        results: files or folders that `probing.probe` wrote, in which models are named.
        cluster: what intervals and tests are over, `function` or `repository`; by default the
            latter for results on functions of at least six repositories.

    Returns:
        An entry for each config, split and direction: `means` of the two, top-1 UAS in percent over
        the functions that both read, and `difference`, the first less the second, in points.

    Raises:
        LedgerError: no result; several models where one is expected; or two that share neither data
            nor functions.
        UnknownName: a name that is not among `results`.
        ArgumentError: `results` in which no model is named.

    Examples:
        >>> import probing
        >>> compared = probing.compare("tiny-code-lm", "tiny-code-mlm", ["results"])[0]
        >>> compared.names, compared.functions
        (('tiny-code-lm', 'tiny-code-mlm'), 20)
    """
    if results and all(map(_holds_results, (first, second))):
        raise ArgumentError(
            f"{first} and {second} are results: leave `results` out, or name a model that is among them"
        )
    with clustered_by(cluster):
        among = find(list(results)) if results else []
        sides = [_by_place(side, among) for side in (first, second)]
    shared = [shared_place for shared_place in sides[0] if shared_place in sides[1]]
    if not shared:
        there = []
        for side, places in zip((first, second), sides):
            on = ", ".join(map(str, places))
            there.append(f"{side} on {on}")
        raise LedgerError(
            f"{' and '.join(there)}: probe both on the same data, config, split and direction"
        )
    compared = []
    for alike in shared:
        both = compared_heads(sides[0][alike], sides[1][alike])
        if both is None:
            raise LedgerError(f"{first} and {second} share no function of {alike.config}")
        compared.append(both)
    return compared


def _holds_results(side: StrPath) -> bool:
    return Path(side).is_file() or any(Path(side).glob("*.ledger.parquet"))


def _by_place(side: StrPath, among: Sequence[Probed]) -> dict[_Place, Probed]:
    """The results of a model, which may be named `among` results, by what two must share."""
    probed = [result for result in among if _is_named(result, Path(side))]
    if _holds_results(side):
        probed = find([side])
    if not probed:
        names = list(dict.fromkeys(map(_name_of, among)))
        raise UnknownName("result or name of a model among the results", str(side), names)
    models = [result for result in probed if result.settings.control is None] or probed
    places: dict[_Place, Probed] = {}
    for model in models:
        settings = model.settings
        shared = _Place(*(getattr(settings, name) for name in _Place._fields))
        if shared in places:
            files = " and ".join(str(result.files["test"]) for result in (places[shared], model))
            raise LedgerError(f"{side} has several results on {shared}, {files}: give one of them")
        places[shared] = model
    return places


def _name_of(probed: Probed) -> str:
    """A name by which `_is_named` finds this one."""
    step = probed.test.run.step
    return probed.settings.model if step is None else f"{probed.settings.model}/step-{step}"


def _is_named(probed: Probed, side: Path) -> bool:
    """True if this is the model `side`, or its checkpoint in the folder `side`, which may be named
    without the model."""
    model, step = probed.settings.model, probed.test.run.step
    if str(side) == model or step is None or side.parent.name not in ("", model):
        return str(side) == model
    from probing.models.location import step_of  # which asks the Hub, and imports what does

    return step_of(side.name) == step


def compared_heads(first: Probed, second: Probed) -> ModelsCompared | None:
    """Two models on the functions of both; None if they share none of test, or of validation.

    Raises LedgerError if these do not have the same edges.
    """
    test, validation = (
        np.intersect1d(*(getattr(side, part).ledger.function for side in (first, second)))
        for part in ("test", "validation")
    )
    if not (len(test) and len(validation)):
        return None
    common = [side.only(test, validation) for side in (first, second)]
    sides = [held_out(side.validation.ledger, side.test.ledger).at(ONE_GUESS) for side in common]
    difference = compare_hits(*sides)
    hits = difference.hits
    systems = ("first", "second")
    first_mean, second_mean = (float(hits.mean(system).value[0]) for system in systems)
    settings = first.settings
    return ModelsCompared(
        names=_names(first, second),
        config=settings.config,
        split=settings.split,
        direction=settings.direction,
        functions=len(test),
        means=(first_mean, second_mean),
        relations=np.concatenate([hits.scores(system) for system in systems]),
        edges=hits.n,
        in_mean=np.array([name in hits.counted for name in hits.names], bool),
        difference=difference,
    )


def _names(first: Probed, second: Probed) -> tuple[str, str]:
    """Those of the models with their steps, or of the files if these are equal."""
    model = first.test.model
    other = second.test.model
    if model == other:
        return first.files["test"].name, second.files["test"].name
    return model, other
