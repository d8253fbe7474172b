"""Verify a result: a part of it is run again, in other batches, and compared with its ledger.

*Which functions are run again, and how much a forger can still gain when a verification passes.*
The *influence* of a function on a published number is the most points by which a change of the
function can have raised the number. A function whose largest influence is m is drawn with the
probability 1 - exp(-rate * m), independently of all others. Forged functions are therefore all
missed with the probability exp(-rate * sum of m): with 5 % or more only if they gain log(20) / rate
points or less. The default rate makes these ENOUGH points for every number.

*What is compared.* Two things, of every instrument in the same way; `probing.evidence.reruns` has
what is an instrument's own: how its rows are run again, its tolerances, and its published numbers.

- Each row is the same, but for what rounding explains. A single one that is not rejects the result.
- What the differences gain a published number is at most ROUNDING points, and DEVIATIONS standard
  deviations of those against it (`gained_by_rounding`). So much is added to the bound that is
  printed.

*What remains.* The draw follows from the digest of the ledger, so that verifying the same ledger
again changes nothing. Who alters a ledger gets another draw, and may alter it until one misses what
is forged: by the bounds, after some twenty trials. A maintainer's own `seed`, which nobody knew
before, ends that.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from tqdm import tqdm

from codesyntax_dataset.arguments import Natural, Paths, Positive, StrPath, checked
from codesyntax_dataset.errors import (
    CodeSyntaxError,
    DatasetError,
    HubError,
    LedgerError,
    ModelError,
    UnknownName,
)
from probing.instruments import registry
from probing.models.location import REQUEST, reference_of
from probing.runs.data import find_data
from probing.runs.ledger_file import ATTENTION, instrument_of
from probing.runs.saved import ledger_path, read_text
from probing.runs.session import Session

if TYPE_CHECKING:
    from probing.runs.experiment import Experiment

ENOUGH = 0.4
"""Points that changes of functions that are not drawn may gain, with a probability of at least
MISSED."""

MISSED = 0.05
"""A bound is the largest gain that is accepted with at least this probability."""

ROUNDING = 0.1
"""Points by which differences that rounding explains may favour a number, beside honest
differences."""

DEVIATIONS = 3.0
"""Standard deviations by which honest differences may favour a number."""

DECIMALS_APART = 0.0015
"""The most by which two roundings of one log-probability to three decimals differ, and an error of
0.0005 in it."""

ACCEPTED, REJECTED, UNCHECKED = "accepted", "rejected", "could not be checked"
"""The three verdicts. Missing files are never a rejection."""

REVISION = "revision"
"""The name of the check that the weights are those of a branch or tag."""

_BUDGET = -math.log(MISSED)
_COMMIT = 40  # digits

Points = Mapping[str, np.ndarray]
"""The name of a number -> what each function adds to it, or differs by in it: (F,)."""

AnyExperiment = TypeVar("AnyExperiment", bound="Experiment")


# ----------------------------------------------------------------------------------------- the draw


@dataclass(frozen=True)
class Influence:
    """Of F functions, by how many points each may have raised a number.

    `places` (F,): in the split, ascending; `means`: the name of a published mean -> points (F,), by
    which functions are drawn; `least` (F,): points by which a function is drawn, even if it raises
    no mean.
    """

    places: np.ndarray
    means: dict[str, np.ndarray]
    least: np.ndarray

    def add(self, mean: str, functions: np.ndarray, points: np.ndarray) -> None:
        """Add the points (f,) by which functions, at these places (f,), may have raised a mean;
        those of functions that are not among `places` are left out."""
        of_all = self.means.setdefault(mean, np.zeros(len(self.places)))
        _, here, there = np.intersect1d(self.places, functions, return_indices=True)
        of_all[here] += points[there]

    @property
    def largest(self) -> np.ndarray:
        """(F,)."""
        return np.max([self.least, *self.means.values()], axis=0)


class Draw(NamedTuple):
    """The functions to run again: their `places` (n,), the probabilities (n,) with which they were
    drawn, and the name of each published number -> the largest gain in points that passes with the
    probability MISSED."""

    places: np.ndarray
    chance: np.ndarray
    bounds: dict[str, float]


def draw(
    influence: Influence, number: int | None, rng: np.random.Generator, everything: bool = False
) -> Draw:
    """Draw functions to run again.

    Args:
        influence: of the functions to draw from.
        number: about so many; by default as many as ENOUGH asks for.
        everything: draw all functions.
    """
    largest = influence.largest
    # where no function can have raised a number, all are drawn
    costs = np.full(len(largest), np.inf)
    if largest.any() and not everything:
        costs = _rate(largest, number) * largest
    chance = -np.expm1(-costs)
    drawn = rng.random(len(largest)) < chance
    drawn[largest.argmax()] = True
    bounds = {name: undetected(points, costs) for name, points in influence.means.items()}
    return Draw(influence.places[drawn], chance[drawn], bounds)


def undetected(points: np.ndarray, costs: np.ndarray) -> float:
    """The most points that functions gain which are all missed with the probability MISSED; a
    little more, as if a part of a function could be forged.

    `points` (F,) of each; `costs` (F,): the negative logarithms of the probabilities that they are
    missed.

    >>> undetected(np.array([1.0, 2.0, 4.0]), np.array([1.0, 1.0, 9.0]))
    3.0
    """
    possible = (costs <= _BUDGET) & (points > 0)
    points = points[possible]
    costs = np.maximum(costs[possible], 1e-12)
    order = np.argsort(-points / costs, kind="stable")
    points = points[order]
    costs = costs[order]
    too_much = (costs.cumsum() - _BUDGET) / costs
    return float(points @ np.clip(1 - too_much, 0, 1))


def _rate(largest: np.ndarray, number: int | None) -> float:
    """The rate at which about so many functions are drawn."""
    if number is None:
        return _BUDGET / ENOUGH
    low = 0.0
    high = 1e9
    for _ in range(100):
        rate = (low + high) / 2
        if -np.expm1(-rate * largest).sum() < number:
            low = rate
        else:
            high = rate
    return high


# --------------------------------------------------------------------------- what rounding explains


class RowComparison(NamedTuple):
    """Some functions as they were claimed, beside what they are again.

    `report`: how they differ; `passed`: whether each row differs by rounding alone, None if that
    cannot be said; `gained`: published number -> points (f,) that it gains by the differences in
    each function.
    """

    report: str
    passed: bool | None = True
    gained: Mapping[str, np.ndarray] = {}


def gained_by_rounding(gained: np.ndarray, chance: np.ndarray) -> tuple[float, float]:
    """By how many points differences to what was found again favour a number, and how many points
    are accepted.

    `gained` (f,): of each function that was run again; `chance` (f,) with which it was drawn.
    Rounding takes no side: honest differences in favour are about as many as those against, so the
    latter say what is accepted.
    """
    whole = gained / chance
    against = np.minimum(whole, 0)
    spread = np.sqrt(2 * (against**2).sum())
    return float(whole.sum()), float(ROUNDING + DEVIATIONS * spread)


# -------------------------------------------------------------------------------------- the verdict


class Criterion(NamedTuple):
    """One check: its name, whether it passed (None: it could not be made), and its finding."""

    name: str
    passed: bool | None
    finding: str


@dataclass
class Verification:
    """The checks of one result, and how many functions were run again: `functions` out of `total`.

    `ledger`: the digest of the ledger that was checked, if it came to that. `bounds`: each
    published number -> the largest gain in points that a forger has with the probability MISSED,
    although all checks pass. `reference`: the branch or tag that the weights were loaded from;
    empty for a model that is not on the Hub.
    """

    checks: list[Criterion]
    functions: int = 0
    total: int = 0
    ledger: str = ""
    bounds: dict[str, float] = field(default_factory=dict)
    reference: str = ""

    @property
    def verdict(self) -> str:
        """ACCEPTED, REJECTED or UNCHECKED."""
        passed = [check.passed for check in self.checks]
        if False in passed:
            return REJECTED
        return UNCHECKED if None in passed else ACCEPTED

    @property
    def accepted(self) -> bool:
        return self.verdict == ACCEPTED

    @property
    def checkable(self) -> bool:
        """True if nothing is missing but, perhaps, the Hub's word on the revision."""
        return all(check.passed is not None or check.name == REVISION for check in self.checks)

    @property
    def reason(self) -> str:
        """The findings of the checks that did not pass."""
        failed = (check for check in self.checks if not check.passed)
        return "; ".join(f"{check.name}: {check.finding}" for check in failed)


def same(name: str, theirs: Any, ours: Any, named: bool = True) -> Criterion:
    """Check that both are equal. Unless `named` by the user, a difference may mean that another one
    has this name."""
    if theirs == ours:
        return Criterion(name, True, f"{theirs}")
    difference = f"the result says {theirs}, here it is {ours}"
    if named:
        return Criterion(name, False, difference)
    return Criterion(name, None, f"{difference}: say with --{name} where it is")


def report(verification: Verification) -> Sequence[str]:
    """One line per check, and the verdict."""
    mark = {True: "ok  ", False: "FAIL", None: "?   "}
    lines = [f"{mark[passed]} {name}: {finding}" for name, passed, finding in verification.checks]
    verdict = verification.verdict
    if verdict != ACCEPTED:
        return [*lines, verdict.upper()]
    groups: dict[str, list[str]] = {}
    for name, bound in verification.bounds.items():
        protocol, _, cell = name.rpartition(": ")
        groups.setdefault(protocol or "mean", []).append(f"{cell} {bound:.2f}")
    if groups:
        often = f"{1 / MISSED:.0f}"
        lines.append(f"A forger whom this misses once in {often} times gains, in points, at most:")
    for protocol, cells in groups.items():
        bounds = ", ".join(cells)
        lines.append(f"     {protocol}: {bounds}")
    return [*lines, verdict]


# ------------------------------------------------------------------------------- rows and functions


class Rerun(NamedTuple):
    """What some functions give again: `rows` in the order of a ledger; the `tolerance` of each
    column that need not be equal, one number or one for each row (N,); and why they cannot be
    compared, if that is so."""

    rows: np.ndarray
    tolerance: Mapping[str, Any]
    undecided: str = ""


class Verifier(Generic[AnyExperiment]):
    """Compares a result with what its `experiment`, prepared again, gives now. `file`: that of the
    result.

    An instrument with a ledger of rows says TOLERANCE, column -> the most by which rounding changes
    it; and by `published` what its functions add to its numbers. COUNTED: fields of the provenance
    that must be equal; RERUN: the name of the check of what is run again.
    """

    COUNTED: ClassVar[tuple[str, ...]] = ("skips",)
    RERUN: ClassVar[str] = "rows again"
    TOLERANCE: ClassVar[Mapping[str, float]] = {}

    def __init__(self, file: Path, result: Any, experiment: AnyExperiment):
        self.file = file
        self.ledger = result.ledger
        self.experiment = experiment
        self.provenance = result.PROVENANCE.of(result.ledger)

    @staticmethod
    def places(ledger: Any) -> np.ndarray:
        """The places in the split of the functions of a ledger, each once."""
        return np.unique(ledger.function)

    def unlike(self) -> list[Criterion]:
        """Criteria that cannot be checked here, which is nobody's fault."""
        theirs = getattr(self.provenance.run, "parser", None)
        ours = getattr(self.experiment.provenance.run, "parser", None)
        if theirs == ours:
            return []
        installed = f"the trees are from {theirs}, but {ours} is installed: install the former"
        return [Criterion("parser", None, installed)]

    def counted(self) -> list[Criterion]:
        """Check that the ledger has the functions, and counts, that it should have."""
        theirs = self.provenance
        ours = self.experiment.provenance
        checks = [same(name, getattr(theirs, name), getattr(ours, name)) for name in self.COUNTED]
        checks.append(same("family", theirs.run.family, ours.run.family))
        return [*checks, self.complete()]

    def complete(self) -> Criterion:
        """Check that the ledger has what there is to measure, and nothing else."""
        functions = sorted(function.index for function in self.experiment.functions)
        claimed = self.places(self.ledger)
        finding = f"{len(claimed)}, here {len(functions)}"
        if unread := sum(self.provenance.skips.values()):
            finding += f"; {unread} more were not read"
        return Criterion("functions", claimed.tolist() == functions, finding)

    @abstractmethod
    def published(self, ledger: Any) -> Points:
        """What each function of a ledger adds to each published number, in points: (F,)."""

    def influence(self) -> Influence:
        """By what functions add to the published numbers; where they add nothing, they may have
        taken something away: as much as functions differ."""
        places = self.places(self.ledger)
        published = self.published(self.ledger)
        spread = max(points.std() for points in published.values())
        raised = {name: np.maximum(points, 0) for name, points in published.items()}
        return Influence(places, raised, np.full(len(places), spread))

    def again(
        self, number: int | None, everything: bool, rng: np.random.Generator
    ) -> tuple[Criterion, Draw]:
        """Draw functions, run them again and compare; what rounding may favour a mean by is added
        to its bound."""
        drawn = draw(self.influence(), number, rng, everything)
        chosen = set(drawn.places.tolist())
        functions = [function for function in self.experiment.functions if function.index in chosen]
        compared = self.compare(functions)
        text = f"{len(functions)} functions run again, "
        check = Criterion(self.RERUN, compared.passed, text + compared.report)
        if not check.passed:
            return check, drawn
        bounds = dict(drawn.bounds)
        for name, points in compared.gained.items():
            favour, accepted = gained_by_rounding(points, drawn.chance)
            if favour > accepted:
                favoured = f"differences favour {name} by {favour:.2f} points"
                limit = f"rounding by {accepted:.2f} at most"
                return Criterion("rounding", False, f"{text}{favoured}, {limit}"), drawn
            if name in bounds:
                bounds[name] += accepted
        return check, drawn._replace(bounds=bounds)

    def compare(self, functions: Sequence[Any]) -> RowComparison:
        """Compare the rows of functions with what they are again."""
        rerun = self.rerun(functions)
        claimed = self.ledger.only(np.array([function.index for function in functions])).rows
        count = len(claimed)
        if count != len(rerun.rows):
            return RowComparison(f"{count} rows, here {len(rerun.rows)}", False)
        outside, differing = np.zeros((2, count), bool)
        for name in claimed.dtype.names:
            distance = _apart(claimed[name], rerun.rows[name])
            outside |= distance > rerun.tolerance.get(name, 0)
            differing |= distance > 0
        if rerun.undecided and not outside.any():
            return RowComparison(rerun.undecided, None)
        if outside.any():
            example = self.row(claimed[outside.argmax()])
            many = f"{np.count_nonzero(outside)} of {count} rows differ by more than rounding"
            return RowComparison(f"{many}, as {example}", False)
        finding = f"{np.count_nonzero(differing)} of {count} rows differ, all of them by rounding"
        return RowComparison(finding, True, self.gained(functions, rerun.rows))

    def rerun(self, functions: Sequence[Any]) -> Rerun:
        """Run functions again."""
        ledgers = [self.experiment.run(part, tqdm(disable=True)) for part in self.parts(functions)]
        return Rerun(type(self.ledger).concatenate(ledgers).rows, self.TOLERANCE)

    def row(self, row: np.ndarray) -> str:
        """What a row is of, in words."""
        name = self.ledger.names[row[self.ledger.GROUP_COLUMN]]
        return f"one of {name} in function {row['function']}"

    def gained(self, functions: Sequence[Any], rows: np.ndarray) -> Points:
        """The points that each published number gains by the claim, in each of these functions, by
        place: the numbers of the ledger, less those of the ledger with the rows that were found
        again."""
        ledger = self.ledger
        chosen = np.array(sorted(function.index for function in functions))
        both = ledger.rows.copy()
        both[np.isin(both["function"], chosen)] = rows
        reproduced = self.published(replace(ledger, rows=both))
        claimed = self.published(ledger)
        here = np.searchsorted(self.places(ledger), chosen)
        return {name: (points - reproduced[name])[here] for name, points in claimed.items()}

    def parts(self, functions: Sequence[Any]) -> list[Sequence[Any]]:
        """As many functions at a time as in a run."""
        size = self.experiment.PART
        return [functions[start : start + size] for start in range(0, len(functions), size)]


def _apart(claimed: np.ndarray, again: np.ndarray) -> np.ndarray:
    """By how much the numbers of a column differ (N,): not if both are unknown, without limit if
    one is."""
    apart = np.abs(claimed.astype(float) - again)
    if claimed.dtype.kind != "f":  # a float does not hold all whole numbers
        return np.where(claimed == again, 0, np.maximum(apart, 1))
    unknown = np.isnan(claimed) & np.isnan(again)
    known = np.nan_to_num(apart, nan=np.inf)
    return np.where(unknown, 0, known)


# ------------------------------------------------------------------------------------------ results


@checked
def verify(result: StrPath, **options: Any) -> Verification:
    """Check one result.

    Args:
        result: the JSON file of a result, beside its ledger.
        options: as of `verify_each`.

    Raises:
        LedgerError: if there is no readable result.
    """
    (verification,) = verify_each([result], **options)
    if isinstance(verification, LedgerError):
        raise verification
    return verification


@checked
def verify_each(
    results: Paths,
    *,
    model: Any = None,
    data: Any = None,
    device: Any = None,
    functions: Positive | None = None,
    everything: bool = False,
    seed: Natural | None = None,
) -> Iterator[Verification | LedgerError]:
    """Check results: their scores, labels and model and, by running them again, some functions.

    Results of one model share one that is loaded.

    Args:
        results: JSON files of results, each beside its ledger.
        model: its location, if not that in the results.
        data: its location, if not that in the results.
        device: where the model runs.
        functions: about how many are run again; by default as many as bound each mean to half a
            point.
        everything: run all functions again.
        seed: for a draw of one's own, which otherwise follows from the ledger.

    Yields:
        The checks of each result, or the error if there is no readable one.
    """
    sessions: dict[tuple, Session] = {}

    def session_of(file: Path, settings: Any) -> Session:
        session = Session.again(file, settings, model, device)
        fields = ("model", "revision", "dtype", "max_length")
        return sessions.setdefault(tuple(getattr(session, name) for name in fields), session)

    for result in results:
        try:
            yield _verified_result(Path(result), session_of, data, functions, everything, seed)
        except LedgerError as error:
            yield error


def _verified_result(
    file: Path,
    session_of: Callable[[Path, Any], Session],
    data: Any,
    functions: int | None,
    everything: bool,
    seed: int | None,
) -> Verification:
    """The checks of a result; `session_of`: loads the model of a result with these settings."""
    path = ledger_path(file)
    instrument = registry.instrument(instrument_of(path) or ATTENTION, path)
    text = read_text(file)
    result = instrument.result.from_file(path)
    provenance = result.PROVENANCE.of(result.ledger)
    settings = provenance.settings
    total = len(np.unique(result.ledger.function))
    difference = result.difference(text)
    finding = "every number follows from the ledger"
    if difference:
        finding = f"numbers differ from the ledger's: {difference}"
    verification = Verification([Criterion("scores", not difference, finding)], total=total)
    checks = verification.checks
    try:
        location = find_data(file, settings) if data is None else data
        session = session_of(file, settings)
        experiment = instrument.experiment.again(provenance, session, location)
        ours = experiment.settings
    except CodeSyntaxError as error:
        missing = isinstance(error, (DatasetError, ModelError, HubError, UnknownName))
        checks.append(Criterion("model and data", None if missing else False, str(error)))
        return verification
    revision = settings.revision
    loaded = revision if session.is_of(revision) else ours.revision
    checks.append(same("model", revision, loaded, session.named))
    theirs = _version_and_labels(settings)
    here = _version_and_labels(ours)
    checks.append(same("data", theirs, here, data is not None))
    if len(ours.revision) == _COMMIT:
        checks.append(_check_reference(settings.model, ours.revision))
        if checks[-1].passed:
            verification.reference = checks[-1].finding
    verifier = instrument.verifier(file, result, experiment)
    for step in (verifier.unlike, verifier.counted):
        if verification.checkable:
            checks += step()
    if verification.checkable and checks[-1].passed:
        verification.ledger = result.ledger.digest()
        check, drawn = verifier.again(functions, everything, rng_of(verification.ledger, seed))
        checks.append(check)
        verification.functions, verification.bounds = len(drawn.places), drawn.bounds
    return verification


def _check_reference(model: str, commit: str) -> Criterion:
    """Check that a commit is on a branch or tag of a model's repository, unless its name says that
    it is not."""
    if f"@{REQUEST}" in model:
        return Criterion(REVISION, True, model.partition("@")[2])
    try:
        reference = reference_of(model, commit)
    except Exception as error:  # which one depends on the HTTP client of huggingface_hub
        reason = " ".join(str(error).split())[:200]
        silent = f"the Hub does not say which branch of {model} has {commit}: {reason}"
        return Criterion(REVISION, None, silent)
    if reference is None:
        nowhere = f"{commit} is on no branch or tag of {model}, as of a pull request"
        return Criterion(REVISION, False, nowhere)
    return Criterion(REVISION, True, reference)


def rng_of(digest: str, seed: int | None) -> np.random.Generator:
    """The draw of a ledger with this digest, or that of a seed for it."""
    entropy = list(bytes.fromhex(digest))
    if seed is not None:
        entropy.append(seed)
    return np.random.default_rng(entropy)


def _version_and_labels(settings: Any) -> str:
    """The version and labels of the data, without its name, because a copy may have another
    name."""
    return f"{settings.data.rpartition('@')[2]} {settings.labels}"
