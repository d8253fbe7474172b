"""Shared parts of the verifications of all instruments: checks, verdicts, running functions again, and bias.

*Which functions are run again, and how much a forger can still gain when a verification passes.* The *influence* of a
function on a published number is the most points by which a change of the function can have raised the number. A
function whose largest influence is m is drawn with the probability 1 - exp(-rate * m), independently of all others.
Forged functions are therefore all missed with the probability exp(-rate * sum of m): with 5 % or more only if they gain
log(20) / rate points or less. The default rate makes these ENOUGH points for every number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from tqdm import tqdm

if TYPE_CHECKING:
    from probing.runs.experiment import Experiment

ENOUGH = 0.4
"""Points that changes of functions that are not drawn may gain, with a probability of at least MISSED."""

ROUNDING = 0.1
"""Points by which differences that rounding explains may favour a number, beside honest differences."""

MISSED = 0.05
"""A bound is the largest gain that is accepted with at least this probability."""

_BUDGET = -math.log(MISSED)
_DEVIATIONS = 3.0  # of honest differences


@dataclass(frozen=True)
class Influence:
    """Of F functions, by how many points each may have raised a number.

    `places` (F,): in the split, ascending; `means`: the name of a published mean -> points (F,), by which functions are
    drawn; `parts`: a name for several numbers that one function may decide, such as scores of relations -> points (F,)
    of each; `least` (F,): points by which a function is drawn, even if it raises no number.
    """

    places: np.ndarray
    means: dict[str, np.ndarray]
    parts: dict[str, list[np.ndarray]]
    least: np.ndarray

    def add(self, mean: str, functions: np.ndarray, points: np.ndarray) -> None:
        """Add the points (f,) by which functions, at these places (f,), may have raised a mean."""
        self.means[mean] = self.means.get(mean, 0) + self._placed(functions, points)

    def add_part(self, name: str, functions: np.ndarray, points: np.ndarray) -> None:
        """Add a number to `parts`, which functions may have raised by these points (f,)."""
        self.parts.setdefault(name, []).append(self._placed(functions, points))

    def _placed(self, functions: np.ndarray, points: np.ndarray) -> np.ndarray:
        """The points (F,) of all functions; those of functions that are not among them are left out."""
        placed = np.zeros(len(self.places))
        _, here, there = np.intersect1d(self.places, functions, return_indices=True)
        placed[here] = points[there]
        return placed

    @property
    def largest(self) -> np.ndarray:
        """(F,)."""
        return np.max([self.least, *self.means.values()], axis=0)


class Draw(NamedTuple):
    """The functions to run again: their `places` (n,), the probabilities (n,) with which they were drawn, and the name
    of each published number -> the largest gain in points that passes with the probability MISSED."""

    places: np.ndarray
    chance: np.ndarray
    bounds: dict[str, float]


def draw(influence: Influence, number: int | None, rng: np.random.Generator, everything: bool = False) -> Draw:
    """Draw functions: about so many, by default as many as ENOUGH asks for, or all."""
    largest = influence.largest
    costs = np.full(len(largest), np.inf) if everything else _rate(largest, number) * largest
    drawn = rng.random(len(largest)) < -np.expm1(-costs)
    drawn[largest.argmax()] = True
    bounds = {name: undetected(points, costs) for name, points in influence.means.items()}
    bounds |= {name: max(undetected(points, costs) for points in of) for name, of in influence.parts.items()}
    return Draw(influence.places[drawn], -np.expm1(-costs[drawn]), bounds)


def undetected(points: np.ndarray, costs: np.ndarray) -> float:
    """The most points that functions gain which are all missed with the probability MISSED; a little more, as if a part
    of a function could be forged.

    `points` (F,) of each; `costs` (F,): the negative logarithms of the probabilities that they are missed.

    >>> undetected(np.array([1.0, 2.0, 4.0]), np.array([1.0, 1.0, 9.0]))
    3.0
    """
    possible = (costs <= _BUDGET) & (points > 0)
    points, costs = points[possible], np.maximum(costs[possible], 1e-12)
    order = np.argsort(-points / costs, kind="stable")
    spent = costs[order].cumsum()
    kept = np.clip(1 - (spent - _BUDGET) / costs[order], 0, 1)
    return float((points[order] * kept).sum())


def by_rounding(gained: np.ndarray, chance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By how many points (n,) differences to what was found again favour numbers, and how many are accepted (n,).

    `gained` (f, n): of each function that was run again; `chance` (f,) with which it was drawn. Rounding takes no side:
    honest differences in favour are about as many as those against, so the latter say what is accepted.
    """
    whole = gained / chance[:, None]
    against = (np.minimum(whole, 0) ** 2).sum(axis=0)
    return whole.sum(axis=0), ROUNDING + _DEVIATIONS * np.sqrt(2 * against)


def _rate(largest: np.ndarray, number: int | None) -> float:
    """The rate at which about so many functions are drawn."""
    if number is None:
        return _BUDGET / ENOUGH
    if number >= np.count_nonzero(largest):
        return math.inf
    low, high = 0.0, 1e9
    for _ in range(100):
        rate = (low + high) / 2
        low, high = (rate, high) if -np.expm1(-rate * largest).sum() < number else (low, rate)
    return high


ACCEPTED, REJECTED, UNCHECKED = "accepted", "rejected", "could not be checked"
"""The three verdicts. Missing files are never a rejection."""

MOST_BIASED = 5.0
"""Standard deviations by which differences may favour the result: for one head or score, by chance less than once in
250,000 times (Hoeffding 1963: exp(-MOST_BIASED ** 2 / 2) for sums of independent terms with random signs)."""


ROUNDED = 0.0015
"""The most by which two roundings of one log-probability to three decimals differ, and an error of 0.0005 in it."""

E = TypeVar("E", bound="Experiment")


class Criterion(NamedTuple):
    """One check: its name, whether it passed (None: it could not be made), and what was found."""

    name: str
    passed: bool | None
    found: str


@dataclass
class Verification:
    """The checks of one result, and how many functions were probed again: `functions` out of `of`.

    `ledger`: the digest of the ledger that was checked, if it came to that. `bounds`: each published number -> the
    largest gain in points that a forger has with the probability MISSED, although all checks pass.
    """

    checks: list[Criterion]
    functions: int = 0
    of: int = 0
    ledger: str = ""
    bounds: dict[str, float] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """ACCEPTED, REJECTED or UNCHECKED."""
        passed = [check.passed for check in self.checks]
        return REJECTED if False in passed else UNCHECKED if None in passed else ACCEPTED

    @property
    def accepted(self) -> bool:
        return self.verdict == ACCEPTED

    @property
    def reason(self) -> str:
        """What was found by the checks that did not pass."""
        return "; ".join(f"{check.name}: {check.found}" for check in self.checks if not check.passed)


def same(name: str, theirs: Any, ours: Any, named: bool = True) -> Criterion:
    """Check that both are equal. Unless `named` by the user, a difference may mean that another one has this name."""
    if theirs == ours:
        return Criterion(name, True, f"{theirs}")
    difference = f"the result says {theirs}, here it is {ours}"
    if named:
        return Criterion(name, False, difference)
    return Criterion(name, None, f"{difference}: say with --{name} where it is")


class Again(NamedTuple):
    """The comparison of functions that were run again with what the result says of them: what was `found`, and whether
    it `passed` (None: it could not be checked).

    `bias`: by how many standard deviations the differences favour the result, and where; `gained`: name of a published
    mean -> points (f,) that it gains by the differences in each function.
    """

    found: str
    passed: bool | None = True
    bias: tuple[float, str] = (0.0, "")
    gained: Mapping[str, np.ndarray] | None = None


class Verifier(Generic[E]):
    """Compares a result with what its `experiment`, prepared again, gives now. `file`: that of the result.

    Here for ledgers of rows, of which functions are drawn with equal probability; a subclass may know better. COUNTED:
    fields of the provenance that must be equal; AGAIN: the name of the check of what is run again.
    """

    COUNTED: ClassVar[tuple[str, ...]] = ("skips",)
    AGAIN: ClassVar[str] = "rows again"

    def __init__(self, file: Path, result: Any, experiment: E):
        self.file, self.ledger, self.experiment = file, result.ledger, experiment
        self.made = result.PROVENANCE.of(result.ledger)

    @property
    def rounded(self) -> float:
        """The most by which rounding changes a number of a row."""
        return ROUNDED

    @staticmethod
    def places(ledger: Any) -> np.ndarray:
        """The places in the split of the functions of a ledger, each once."""
        return np.unique(ledger.rows["function"])

    def unlike(self) -> list[Criterion]:
        """Criteria that cannot be checked here, which is nobody's fault."""
        theirs, ours = (getattr(one.run, "parser", None) for one in (self.made, self.experiment.provenance))
        if theirs == ours:
            return []
        return [Criterion("parser", None, f"the trees are from {theirs}, but {ours} is installed: install the former")]

    def counted(self) -> list[Criterion]:
        """Check that the ledger has the functions, and counts, that it should have."""
        ours = self.experiment.provenance
        checks = [same(name, getattr(self.made, name), getattr(ours, name)) for name in self.COUNTED]
        return [*checks, same("family", self.made.run.family, ours.run.family), self.complete()]

    def complete(self) -> Criterion:
        """Check that the ledger has what there is to measure, and nothing else."""
        functions = sorted(function.index for function in self.experiment.functions)
        claimed = self.places(self.ledger)
        return Criterion("functions", claimed.tolist() == functions, f"{len(claimed)}, here {len(functions)}")

    def influence(self) -> Influence:
        """The share of each function in the published numbers; by default, each is a mean over functions."""
        places = self.places(self.ledger)
        points = np.full(len(places), 100 / len(places))
        return Influence(places, {"a mean over functions": points}, {}, points)

    def again(self, number: int | None, everything: bool, rng: np.random.Generator) -> tuple[Criterion, Draw]:
        """Draw functions, run them again and compare; what rounding may favour a mean by is added to its bound."""
        drawn = draw(self.influence(), number, rng, everything)
        chosen = set(drawn.places.tolist())
        functions = [function for function in self.experiment.functions if function.index in chosen]
        name, text, bounds = self.AGAIN, f"{len(functions)} functions run again, ", drawn.bounds
        found, passed, (bias, where), gained = self.compare(functions)
        if bias > MOST_BIASED:
            passed, found = False, f"differences favour {where} by {bias:.1f} standard deviations"
        elif gained:
            favour, accepted = by_rounding(np.stack([*gained.values()], axis=1), drawn.chance)
            limits, worst = dict(zip(gained, accepted.tolist())), int((favour - accepted).argmax())
            bounds = {mean: bound + limits.get(mean, 0) for mean, bound in bounds.items()}
            if favour[worst] > accepted[worst]:
                points = f"by {favour[worst]:.2f} points, rounding by {accepted[worst]:.2f} at most"
                name, passed, found = "rounding", False, f"differences favour {[*gained][worst]} {points}"
        return Criterion(name, passed, text + found), drawn._replace(bounds=bounds)

    def compare(self, functions: Sequence[Any]) -> Again:
        """Compare the rows of functions with what they are again, except for rounding."""
        theirs = self.ledger.only(np.array([function.index for function in functions])).rows
        parts = (ledger for _, ledger in self.in_parts(functions, self.experiment.run))
        ours = type(self.ledger).concatenate(parts).rows
        if len(theirs) != len(ours):
            return Again(f"{len(theirs)} rows, here {len(ours)}", False)
        wrong = np.zeros(len(ours), bool)
        for name in ours.dtype.names:
            if ours[name].dtype.kind == "f":
                wrong |= ~np.isclose(theirs[name], ours[name], 0, self.rounded, equal_nan=True)
            else:
                wrong |= theirs[name] != ours[name]
        return Again(f"{int(wrong.sum())} of {len(ours)} rows differ by more than rounding", not wrong.any())

    def in_parts(
        self, functions: Sequence[Any], run: Callable[[Any, tqdm], Any]
    ) -> Iterator[tuple[Sequence[Any], Any]]:
        """Some functions at a time, and what `run` gives of them."""
        for start in range(0, len(functions), self.experiment.PART):
            part = functions[start : start + self.experiment.PART]
            yield part, run(part, tqdm(disable=True))


def in_deviations(differences: np.ndarray) -> np.ndarray:
    """The sum of differences (F, ...) over functions, in standard deviations of sums with random signs."""
    spread = np.sqrt((differences.astype(float) ** 2).sum(axis=0))
    return np.divide(differences.sum(axis=0), spread, out=np.zeros(spread.shape), where=spread > 0)


def report(verification: Verification) -> Sequence[str]:
    """One line per check, and the verdict."""
    mark = {True: "ok  ", False: "FAIL", None: "?   "}
    lines = [f"{mark[check.passed]} {check.name}: {check.found}" for check in verification.checks]
    if verification.accepted and verification.bounds:
        groups: dict[str, list[str]] = {}
        for name, bound in verification.bounds.items():
            protocol, _, cell = name.rpartition(": ")
            groups.setdefault(protocol, []).append(f"{cell} {bound:.2f}")
        lines.append(f"A forger whom this misses once in {1 / MISSED:.0f} times gains, in points, at most:")
        lines += [f"     {protocol or 'mean'}: {', '.join(cells)}" for protocol, cells in groups.items()]
    return [*lines, verification.verdict if verification.accepted else verification.verdict.upper()]
