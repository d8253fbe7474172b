"""Two on the same functions: the paired difference of what they find with one guess, overall and by
relation.

- `compare`: two models.
- `changes`: a model, and baselines, before and after an edit (`codesyntax_dataset.edits`). Only
  functions that both sides have, on test and on validation, and relations of both are compared,
  edge by edge. Heads, offsets and keywords are chosen on validation, before the edit and anew after
  it, so whoever loses has no other choice that makes up for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from codesyntax_dataset.arguments import checked
from codesyntax_dataset.errors import LedgerError, UnknownName
from codesyntax_dataset.protocol import BEST_BASELINE
from probing.evidence import baselines
from probing.evidence.gather import Probed, find
from probing.evidence.protocols import ONE_GUESS, ChosenHits, Comparison, held_out
from probing.evidence.protocols import compare as compare_hits
from probing.instruments.attention.result import at_step
from probing.runs.clusters import FUNCTION
from probing.runs.data import find_data
from probing.runs.repositories import clustered_by


@dataclass(frozen=True, kw_only=True)
class Sides:
    """Hits of two on the same functions with one guess, held-out, rule first.

    `means`: of the two, in percent, NaN if no relation is in the mean; `relations`: of the two, of
    each of the R relations of `difference`, in percent: (2, R); `edges`: of these relations, (R,),
    and `in_mean`: (R,), those in the mean; `difference`: the first less the second, of one rule and
    k.
    """

    means: tuple[float, float]
    relations: np.ndarray
    edges: np.ndarray
    in_mean: np.ndarray
    difference: Comparison

    @classmethod
    def of(cls, first_hits: ChosenHits, second_hits: ChosenHits, **fields: Any) -> Self:
        """From hits with one guess, of the same relations."""
        sides = first_hits, second_hits
        first, second = (float(side.hits.mean(side.system).value[0]) for side in sides)
        counted = [name in first_hits.hits.counted for name in first_hits.relations]
        return cls(
            means=(first, second),
            relations=np.concatenate([side.hits.scores(side.system) for side in sides]),
            edges=first_hits.hits.n,
            in_mean=np.array(counted, bool),
            difference=compare_hits(first_hits, second_hits),
            **fields,
        )


def shared_functions(sides: Sequence[Probed]) -> tuple[np.ndarray, np.ndarray]:
    """The functions of test, and of validation, that both sides have."""
    first, second = sides
    test = np.intersect1d(first.test.ledger.function, second.test.ledger.function)
    return test, np.intersect1d(first.validation.ledger.function, second.validation.ledger.function)


class _Place(NamedTuple):
    """Settings that two results must share to be compared."""

    data: str
    labels: str
    config: str
    split: str
    direction: str


@dataclass(frozen=True, kw_only=True)
class ModelsCompared(Sides):
    """One model against another on the functions that both could read."""

    names: tuple[str, str]
    config: str
    split: str
    direction: str
    functions: int


@checked
def compare(
    first: str | os.PathLike,
    second: str | os.PathLike,
    results: Sequence[str | os.PathLike] = (),
    cluster: str = FUNCTION,
) -> list[ModelsCompared]:
    """Compare two models on each config, split and direction on which both were probed.

    `first`, `second`: a result or a folder of results of one model, or among `results`, files or
    folders that `probe` wrote, the name of a model, or of a checkpoint, such as `NAME at step 100`
    or the path of its folder. Heads are chosen on validation (held-out). `cluster`: what intervals
    and tests are over, function or repository.

    Raises LedgerError for what is no result, for several models where one is expected, and for two
    that share neither data nor functions; UnknownName for a name that is not among `results`.
    """
    with clustered_by(cluster):
        among = cache(lambda: find(list(results)) if results else [])  # read once, if at all
        sides = [_by_place(side, among, bool(results)) for side in (first, second)]
    shared = [shared_place for shared_place in sides[0] if shared_place in sides[1]]
    if not shared:
        there = []
        for side, places in zip((first, second), sides):
            on = ", ".join(map(_words, places))
            there.append(f"{side} on {on}")
        raise LedgerError(
            f"{' and '.join(there)}: probe both on the same data, config, split and direction"
        )
    return [_compared_sides(sides[0][alike], sides[1][alike]) for alike in shared]


def _words(shared: _Place) -> str:
    return f"{shared.data}/{shared.config}/{shared.split} ({shared.direction})"


def _by_place(
    side: str | os.PathLike, among: Callable[[], list[Probed]], several: bool
) -> dict[_Place, Probed]:
    """The results of a model, by what two must share. `among`: reads those in which to look for a
    name, if `several` are given."""
    path = Path(side)
    if path.is_file() or any(path.glob("*.ledger.parquet")) or (path.exists() and not several):
        probed = find([side])
    else:
        probed = [result for result in among() if _is_named(result, path)]
        if not probed:
            names = list(dict.fromkeys(map(_probed_name, among())))
            raise UnknownName("result or name of a model among the results", str(side), names)
    models = [result for result in probed if result.test.settings.control is None] or probed
    places: dict[_Place, Probed] = {}
    for model in models:
        settings = model.test.settings
        shared = _Place(*(getattr(settings, name) for name in _Place._fields))
        if shared in places:
            files = " and ".join(str(result.files["test"]) for result in (places[shared], model))
            raise LedgerError(
                f"{side} has several results on {_words(shared)}, {files}: give one of them"
            )
        places[shared] = model
    return places


def _probed_name(probed: Probed) -> str:
    return at_step(probed.test.settings.model, probed.test.run.step)


def _is_named(probed: Probed, side: Path) -> bool:
    """True if this is the model, or the checkpoint of it in the folder `side`, or at the step that
    `side` names."""
    model = probed.test.settings.model
    step = probed.test.run.step
    named = str(side) in (model, at_step(model, step))
    if named or step is None or side.parent.name != model:
        return named
    from probing.models.location import step_of  # which asks the Hub, and imports what does

    return step_of(side.name) == step


def _compared_sides(first: Probed, second: Probed) -> ModelsCompared:
    test, validation = shared_functions([first, second])
    settings = first.test.settings
    names = _probed_name(first), _probed_name(second)
    if names[0] == names[1]:
        files = first.files["test"], second.files["test"]
        names = files[0].name, files[1].name
        if names[0] == names[1]:  # one folder is a copy of the other
            names = str(files[0]), str(files[1])
    if not (len(test) and len(validation)):
        raise LedgerError(f"{' and '.join(names)} share no function of {settings.config}")
    common = [side.only(test, validation) for side in (first, second)]
    sides = [held_out(side.validation.ledger, side.test.ledger).at(ONE_GUESS) for side in common]
    shared = set(sides[0].relations) & set(sides[1].relations)
    settings_of = {name: getattr(settings, name) for name in ("config", "split", "direction")}
    return ModelsCompared.of(
        *(side.only(shared) for side in sides), names=names, functions=len(test), **settings_of
    )


HEADS, OFFSET = "heads", baselines.KINDS[0]
WHO = (HEADS, OFFSET, BEST_BASELINE)
"""Who finds edges: the best heads of a model, the best offset, and the better of an offset and a
keyword."""


@dataclass(frozen=True)
class Changes:
    """The changes by an edit. `functions`, `edges`: of test, that both sides have; `lost`:
    functions that only the side before has, because the edit did not keep their labels, or made
    them too long; `by`: of each of WHO, after against before."""

    functions: int
    edges: int
    lost: int
    by: dict[str, Sides]


def changes(before: Probed, after: Probed, data: Any = None) -> Changes | None:
    """Hits of each of WHO before and after; None without common functions or relations.

    `data`: the location of both configs, if not the one in the results. Raises LedgerError if the
    same functions do not have the same edges.
    """
    sides = after, before
    test, validation = shared_functions(sides)
    if not (len(test) and len(validation)):
        return None
    systems = [_found(side.only(test, validation), test, validation, data) for side in sides]
    first, second = (side[HEADS] for side in systems)
    if not np.array_equal(_edges_by_function(first), _edges_by_function(second)):
        raise LedgerError(
            f"{before.files['test']} and {after.files['test']} do not have the same edges in the same functions: build "
            "both configs from one source, in one folder, and probe them again"
        )
    names = set(first.relations) & set(second.relations)
    if not names:
        return None
    by = {}
    for who in WHO:
        of_both = [side[who].only(names) for side in systems]
        by[who] = Sides.of(*of_both)
    lost = len(np.setdiff1d(before.test.ledger.function, test))
    return Changes(len(test), int(first.only(names).hits.n.sum()), lost, by)


def _edges_by_function(chosen: ChosenHits) -> np.ndarray:
    """The edges of all relations in each function: (F,)."""
    edges = np.zeros(len(chosen.functions), np.int64)
    for group in chosen.hits.groups.values():
        edges[group.places] += group.n
    return edges


def _found(
    probed: Probed, test: np.ndarray, validation: np.ndarray, data: Any
) -> dict[str, ChosenHits]:
    """Hits of each of WHO on one side in these functions."""
    settings = probed.test.settings
    location = find_data(probed.files["test"], settings) if data is None else data
    chosen_on, scored = (
        baselines.read_edges(location, settings.config, split, functions)
        for split, functions in (("validation", validation), (settings.split, test))
    )
    scored.repositories = probed.test.ledger.repositories
    _, rivals = baselines.chosen_on(chosen_on, scored, settings.direction)
    heads = held_out(probed.validation.ledger, probed.test.ledger)
    chosen = {HEADS: heads, **{kind: rivals[kind] for kind in WHO[1:]}}
    return {who: hits.at(ONE_GUESS) for who, hits in chosen.items()}
