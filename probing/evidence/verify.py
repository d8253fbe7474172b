"""Verify results: they are run again, and no published number may be more than what came out.

Whole splits are run again, those on which heads are chosen, too, and every number that a result
publishes (`probing.evidence.published`) is computed from what came out. A result is accepted if none
of them is more than ROUNDING points above. In half precision, whose sums depend on the batch, the
splits run twice, in other batches: the higher number counts, and by as much as any number of the two
differs, an honest one may be above.

Whoever has not the time draws some functions by a seed of his own: they are run again, and stand in
the ledger in place of those that are claimed. Nothing is known of the others.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset.arguments import Natural, Paths, Positive, StrPath, checked
from codesyntax_dataset.errors import (
    ArgumentError,
    CodeSyntaxError,
    DatasetError,
    HubError,
    LedgerError,
    ModelError,
    SubmissionError,
    UnknownName,
)
from probing.evidence.gather import alike, by_instrument
from probing.evidence.protocols import TABLE_MEASURES
from probing.evidence.published import CHOSEN_ON, SCORED, numbers_of
from probing.evidence.submission import branch_of
from probing.instruments import registry
from probing.instruments.attention.result import ProbeResult
from probing.models.location import REQUEST
from probing.runs.data import find_data
from probing.runs.experiment import run_again
from probing.runs.ledger_file import ATTENTION, instrument_of, without
from probing.runs.saved import ledger_path, read_text
from probing.runs.session import Session

ROUNDING = 0.1
"""Points by which a published number may be above what came out."""

MISSED = 0.05
"""What a draw does not find may have been forged, with at least this probability."""

ACCEPTED, REJECTED, UNCHECKED = "accepted", "rejected", "could not be checked"
"""The three verdicts. Missing files are never a rejection."""

REVISION = "revision"
"""The name of the check that the weights are those of a branch or tag."""

_COMMIT = 40  # digits

_OTHER_BATCHES = 1 << 14  # sub-tokens; by default a CPU has less, and a GPU more

_RUN_HERE = {"model", "revision", "data", "labels"}
"""Settings that say where model and data are; they have checks of their own."""


class Criterion(NamedTuple):
    """One check: its name, whether it passed (None: it could not be made), and its finding."""

    name: str
    passed: bool | None
    finding: str


class Reproduced(NamedTuple):
    """A published number, in points, and what came out, which is less by `rounding` at most."""

    claimed: float
    again: float
    rounding: float = ROUNDING

    @property
    def above(self) -> float:
        return self.claimed - self.again

    @property
    def too_high(self) -> bool:
        return not self.above <= self.rounding  # nor if nothing came out


@dataclass
class Verification:
    """The checks of the results in `files`, those of two splits together, and how many `functions`
    were run again, of how many in `total`.

    `numbers`: name and measure -> the number; `hidden`: what a forger of functions that were not
    run may have gained, in a sentence; `reference`: the branch or tag that the weights were loaded
    from; empty for a model that is not on the Hub.
    """

    files: list[Path]
    checks: list[Criterion] = field(default_factory=list)
    numbers: dict[tuple[str, Any], Reproduced] = field(default_factory=dict)
    functions: int = 0
    total: int = 0
    hidden: str = ""
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
        """True if nothing is wrong or missing but, perhaps, the Hub's word on the revision."""
        return all(check.passed or check.name == REVISION for check in self.checks)

    @property
    def reason(self) -> str:
        """The findings of the checks that did not pass."""
        failed = (check for check in self.checks if not check.passed)
        return "; ".join(f"{check.name}: {check.finding}" for check in failed)

    def check(self, name: str, passed: bool | None, finding: str) -> None:
        self.checks.append(Criterion(name, passed, finding))

    def same(self, name: str, theirs: Any, ours: Any, named: bool = True) -> None:
        """Check that both are equal. Unless `named` by the user, a difference may mean that another
        one has this name."""
        if theirs == ours:
            return self.check(name, True, f"{theirs}")
        difference = f"the result says {theirs}, here it is {ours}"
        if named:
            return self.check(name, False, difference)
        return self.check(name, None, f"{difference}: say with --{name} where it is")


def report_lines(verification: Verification) -> Sequence[str]:
    """One line per check, the numbers, claimed and reproduced, and the verdict. Of those by each k,
    the k of tables, and those that are too high."""
    mark = {True: "ok  ", False: "FAIL", None: "?   "}
    lines = [f"{mark[passed]} {name}: {finding}" for name, passed, finding in verification.checks]
    by_name: dict[str, list[str]] = {}
    for (name, measure), number in verification.numbers.items():
        title = name
        shown = f"{measure}"
        if isinstance(measure, tuple):
            rule, k = measure
            title = f"{name}, {rule}"
            shown = f"k = {k}"
            if measure not in TABLE_MEASURES and not number.too_high:
                continue
        text = f"{shown} {number.claimed:.2f} / {number.again:.2f}"
        by_name.setdefault(title, []).append(text)
    if by_name:
        lines.append("     claimed / reproduced, in points:")
    lines += [f"     {title}: {', '.join(texts)}" for title, texts in by_name.items()]
    verdict = verification.verdict
    if verdict != ACCEPTED:
        return [*lines, verdict.upper()]
    if not verification.hidden:
        return [*lines, verdict]
    some = f"{verification.functions:,} of {verification.total:,} functions"
    return [*lines, verification.hidden, f"{verdict} on {some}"]


# ------------------------------------------------------------------------------------------ results


@checked
def verify(result: StrPath, **options: Any) -> Verification:
    """Check one result, and that of the other split with it, if it is in the same folder.

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
    seed: Natural | None = None,
) -> Iterator[Verification | LedgerError]:
    """Check results, their scores, labels and model, and run them again.

    The probes of one model on the split that is scored and on that on which heads are chosen are
    verified together, if both are in the same folder. Results of one model share one that is loaded.

    Args:
        results: JSON files of results, each beside its ledger, or folders of them.
        model: its location, if not that in the results.
        data: its location, if not that in the results.
        device: where the model runs.
        functions: so many of each split are drawn and run again, instead of all.
        seed: of this draw, which nobody could foresee.

    Yields:
        The checks of each run, or the error if there is no readable result, as in an empty folder.

    Raises:
        ArgumentError: for `functions` without a `seed`, or the other way round.
    """
    if (functions is None) != (seed is None):
        raise ArgumentError(
            f"functions is {functions} and seed is {seed}, expected both or neither: a part is drawn by a seed of "
            "yours that the author of the result could not foresee"
        )
    sessions: dict[tuple, Session] = {}

    def session_of(file: Path, settings: Any) -> Session:
        session = Session.again(file, settings, model, device)
        fields = ("model", "revision", "dtype", "max_length")
        return sessions.setdefault(tuple(getattr(session, name) for name in fields), session)

    return _verifications(results, _Runner(session_of, data, functions, seed))


def _verifications(results: Paths, runner: _Runner) -> Iterator[Verification | LedgerError]:
    done: set[Path] = set()
    for path in map(Path, results):
        try:
            named = chain(*by_instrument([path]).values()) if path.is_dir() else [path]
        except LedgerError as error:
            yield error
            continue
        for file in named:
            if file not in done:
                files = _together(file)
                done |= {*files.values()}
                try:
                    yield runner.verified(files)
                except LedgerError as error:
                    yield error


def _together(file: Path) -> dict[str, Path]:
    """The file of a result and, of a probe, that of the split on which its heads are chosen, or for
    which they are; whole splits go before parts."""
    try:
        settings = alike(result := ProbeResult.read(read_text(file)))
    except LedgerError:  # another instrument, or a damaged file, of which all else is checked
        return {SCORED: file}
    chosen_on = result.settings.split == CHOSEN_ON
    other = settings.model_copy(update={"split": SCORED if chosen_on else CHOSEN_ON})
    name, _, _ = other.name.rpartition(".")
    for beside in sorted(
        file.parent.glob(f"{name}.*.json"), key=lambda path: (len(path.name), path)
    ):
        with contextlib.suppress(LedgerError):
            if alike(ProbeResult.read(read_text(beside))) == settings:
                files = (beside, file) if chosen_on else (file, beside)
                return dict(zip((SCORED, CHOSEN_ON), files))
    return {SCORED: file}


class _Runner(NamedTuple):
    """Runs results again: `session_of` loads the model of the result in a file with these settings;
    the others as of `verify_each`."""

    session_of: Callable[[Path, Any], Session]
    data: Any
    functions: int | None
    seed: int | None

    def verified(self, files: Mapping[str, Path]) -> Verification:
        """The checks of the results in these files; raises LedgerError for one that cannot be
        read."""
        verification = Verification([*files.values()])
        claimed = {}
        prepared = {}
        for part, file in files.items():
            claimed[part] = _read_result(file, verification)
            prepared[part] = self._prepared_again(file, claimed[part], verification)
        if not verification.checkable:
            return verification
        runs = []
        for part, twice in prepared.items():
            runs.append(self._again(claimed[part], twice, verification))
        if verification.checkable:
            compare_numbers(
                claimed, [dict(zip(claimed, results)) for results in zip(*runs)], verification
            )
            verification.hidden = self._hidden(verification)
        return verification

    def _prepared_again(self, file: Path, claimed: Any, verification: Verification) -> list[Any]:
        """The experiment of a result, prepared again: one for each run; checks what needs none."""
        provenance = claimed.PROVENANCE.of(claimed.ledger)
        settings = provenance.settings
        instrument = registry.instrument(claimed.instrument, file)
        twice = getattr(settings, "precision", "float32") != "float32"
        try:
            data = find_data(file, settings) if self.data is None else self.data
            session = self.session_of(file, settings)
            again: list[Any] = [instrument.experiment.again(provenance, session, data)]
            if twice and hasattr(again[0], "batch_tokens"):
                again.append(replace(again[0], batch_tokens=_OTHER_BATCHES))
            ours = again[0].provenance
        except CodeSyntaxError as error:
            missing = isinstance(error, (DatasetError, ModelError, HubError, UnknownName))
            verification.check("model and data", None if missing else False, str(error))
            return []
        of_model = session.is_of(settings.revision)
        loaded = settings.revision if of_model else ours.settings.revision
        verification.same("model", settings.revision, loaded, session.named)
        theirs, here = map(_version_and_labels, (settings, ours.settings))
        verification.same("data", theirs, here, self.data is not None)
        if len(ours.settings.revision) == _COMMIT:
            verification.checks.append(_check_reference(settings.model, ours.settings.revision))
            if verification.checks[-1].passed:
                verification.reference = verification.checks[-1].finding
        parsers = [
            getattr(provenance_of.run, "parser", None) for provenance_of in (provenance, ours)
        ]
        if len({*parsers}) > 1:
            installed = f"the trees are from {parsers[0]}, but {parsers[1]} is installed"
            verification.check("parser", None, f"{installed}: install the former")
        elif verification.checkable:
            verification.checks.append(_check_counts(provenance, ours))
        return again

    def _again(self, claimed: Any, experiments: list[Any], verification: Verification) -> list[Any]:
        """What each run gives: results like the one that is claimed; checks that they are of the
        same rows."""
        functions = experiments[0].functions
        places = np.sort([function.index for function in functions])
        verification.total += len(places)
        if self.functions is not None:
            rng = np.random.default_rng([self.seed or 0, len(places)])
            places = np.sort(rng.permutation(places)[: self.functions])
        verification.functions += len(places)
        of_part = claimed.ledger.only(places)
        results: list[Any] = []
        for experiment in experiments:
            experiment.only(places)
            ledger = run_again(experiment).ledger
            if not results:
                verification.checks.append(_check_rows(claimed, of_part, ledger, len(places)))
            if not verification.checkable:
                return []
            others = np.setdiff1d(claimed.ledger.function, places)
            if len(others):
                same = without(of_part.settings, ledger.COUNTS)
                parts = claimed.ledger.only(others), replace(ledger, settings=same)
                ledger = type(ledger).concatenate(parts)
            results.append(type(claimed).from_ledger(ledger))
        return results

    def _hidden(self, verification: Verification) -> str:
        """What forgers of other functions may have gained."""
        total, drawn = verification.total, verification.functions
        if drawn == total:
            return ""
        forged = most_missed(total, drawn)
        return (
            f"{drawn:,} of {total:,} functions were run again, drawn by seed {self.seed}. Of the others, {forged:,} "
            f"may be forged: as many are missed once in {1 / MISSED:.0f} times, and gain what they weigh."
        )


def most_missed(total: int, drawn: int) -> int:
    """The most of `total` functions of which, with the probability MISSED, none is among those
    drawn.

    >>> most_missed(100, 50)
    4
    """
    missed = 1.0
    for forged in range(total - drawn):
        missed *= (total - drawn - forged) / (total - forged)
        if missed < MISSED:
            return forged
    return total - drawn


def _read_result(file: Path, verification: Verification) -> Any:
    """The result in a file, of its ledger; checks that the numbers in the file are those."""
    path = ledger_path(file)
    instrument = registry.instrument(instrument_of(path) or ATTENTION, path)
    text = read_text(file)
    result = instrument.result.from_file(path)
    difference = result.difference(text)
    finding = "every number follows from the ledger"
    if difference:
        finding = f"numbers differ from the ledger's: {difference}"
    verification.check("scores", not difference, finding)
    return result


def _check_counts(theirs: Any, ours: Any) -> Criterion:
    """Check the settings, the family, and what was counted before the model ran: what it could not
    read, or what was chosen."""
    for name in type(ours).model_fields:
        parts = [getattr(side, name) for side in (theirs, ours)]
        if name == "settings":
            parts = [part.model_dump(exclude=_RUN_HERE) for part in parts]
        elif name == "run":
            parts = [part.family for part in parts]
        if name != "versions" and parts[0] != parts[1]:
            finding = f"the result says {_quoted(parts[0])}, here it is {_quoted(parts[1])}"
            return Criterion("family" if name == "run" else name, False, finding)
    skipped = sum(theirs.skips.values())
    return Criterion("counts", True, f"as here; {skipped:,} functions were not read")


def _quoted(part: Any) -> str:
    return str(part)[:500]


def _check_rows(claimed: Any, theirs: Any, ours: Any, functions: int) -> Criterion:
    """Check that two ledgers are of the same things, and count what differs."""
    if not theirs.same_things(ours):
        return Criterion(
            "rows", False, f"{len(theirs)} {ours.THINGS}, not the {len(ours)} of the data"
        )
    differing, count = theirs.differing(ours)
    share = f"{differing:,} of {count:,} {ours.CELLS} differ"
    split = claimed.settings.split
    return Criterion("again", True, f"{functions:,} functions of {split}, {share}")


def compare_numbers(
    claimed: Mapping[str, Any], again: Sequence[Mapping[str, Any]], verification: Verification
) -> None:
    """Check that no number is more than ROUNDING above what came out; of two runs the higher counts,
    and as much more is rounding as any number of the two differs by."""
    runs = [numbers_of(results, claimed) for results in again]
    published = numbers_of(claimed)
    every = {name: [run[name] for run in runs if name in run] for name in published}
    apart = max((max(values) - min(values) for values in every.values() if values), default=0.0)
    for name, number in published.items():
        reproduced = max(every[name], default=math.nan)
        verification.numbers[name] = Reproduced(number, reproduced, ROUNDING + apart)
    numbers = verification.numbers.values()
    wrong = [name for name, number in verification.numbers.items() if number.too_high]
    most = max((number.above for number in numbers), default=0.0)
    finding = f"{len(numbers)}, at most {max(0.0, most):.2f} points above what came out"
    if apart:
        finding += f"; runs in other batches differ by up to {apart:.2f}"
    if wrong:
        worst = max(wrong, key=lambda name: verification.numbers[name].above)
        shown = verification.numbers[worst]
        finding = (
            f"{len(wrong)} of {len(numbers)} are above what came out, as {worst[0]} {worst[1]}: claimed "
            f"{shown.claimed:.2f}, reproduced {shown.again:.2f}"
        )
    verification.check("numbers", not wrong, finding)


def _check_reference(model: str, commit: str) -> Criterion:
    """Check that a commit is on a branch or tag of a model's repository, unless its name says that
    it is not."""
    if f"@{REQUEST}" in model:
        return Criterion(REVISION, True, model.partition("@")[2])
    try:
        return Criterion(REVISION, True, branch_of(model, commit))
    except HubError as error:
        return Criterion(REVISION, None, str(error))
    except SubmissionError as error:
        return Criterion(REVISION, False, str(error))


def _version_and_labels(settings: Any) -> str:
    """The version and labels of the data, without its name, because a copy may have another
    name."""
    return f"{settings.data.rpartition('@')[2]} {settings.labels}"
