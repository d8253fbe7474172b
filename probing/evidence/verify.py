"""Verify a result: a part of it is run again, in other batches, and compared with its ledger.

*Which functions.* Those on which published scores depend: `probing.evidence.checks` says how many, and what a forger
can still gain, for each number. The draw follows from the digest of the ledger, so that verifying the same ledger again
changes nothing. *What is compared* depends on the instrument: see `verify_attention`, `CopiesVerifier` and the others.

*What remains.* Who alters a ledger gets another draw, and may alter it until one misses what is forged: by the bounds,
after some twenty trials. A maintainer's own `seed`, which nobody knew before, ends that.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from codesyntax_dataset.arguments import Natural, Positive, checked
from codesyntax_dataset.errors import CodeSyntaxError, DatasetError, HubError, LedgerError, ModelError, UnknownName
from probing.evidence.checks import (
    ROUNDED,
    Again,
    Criterion,
    Draw,
    E,
    Influence,
    Verification,
    Verifier,
    in_deviations,
    same,
)
from probing.evidence.effect import MEASURED, by_function
from probing.evidence.verify_attention import RanksVerifier
from probing.instruments.attention.probe import Probing
from probing.instruments.information.inform import Informing
from probing.instruments.information.result import InformationResult
from probing.instruments.likelihood.likelihood import Preferring, Surprising
from probing.instruments.likelihood.result import SCORES
from probing.instruments.masking.mask import MaskedFunction, Masking
from probing.instruments.masking.result import FILLED, HITS, SIMILARITIES
from probing.instruments.silencing.ablate import Ablation
from probing.instruments.silencing.result import SilencingResult
from probing.models.masked import InfillingModel
from probing.runs.data import find_data
from probing.runs.experiment import Experiment
from probing.runs.ledger_file import ATTENTION, INFORMATION, MASKING, PREFERENCE, SILENCING, SURPRISAL, instrument_of
from probing.runs.saved import ledger_path, read_text
from probing.runs.session import Session


@checked
def verify(result: str | os.PathLike, **options: Any) -> Verification:
    """What `verify_each` yields for one result; raises LedgerError if there is no readable one."""
    (verification,) = verify_each([result], **options)
    if isinstance(verification, LedgerError):
        raise verification
    return verification


@checked
def verify_each(
    results: Sequence[str | os.PathLike],
    *,
    model: Any = None,
    data: Any = None,
    device: str | torch.device | None = None,
    functions: Positive | None = None,
    everything: bool = False,
    seed: Natural | None = None,
) -> Iterator[Verification | LedgerError]:
    """Check result files and the ledgers beside them: scores, labels, model and, by running them again, some functions.

    Yields the checks of each result, or the error if there is no readable one; results of one model share one that is
    loaded. `model` and `data`: their locations, if not those in the results. `functions`: about how many are run again,
    by default as many as bound each mean to half a point; or `everything`. `seed`: for a draw of one's own, which
    otherwise follows from the ledger.
    """
    sessions: dict[tuple, Session] = {}

    def session_of(file: Path, settings: Any) -> Session:
        session = Session.again(file, settings, model, device)
        of_model = session.model, session.revision, session.dtype, session.max_length
        return sessions.setdefault((*of_model, session.weights, session.pool), session)

    def again(verifier: Verifier) -> tuple[Criterion, Draw]:
        rng = rng_of(verifier.ledger.digest(), seed)
        return verifier.again(functions, everything, rng)

    for result in results:
        try:
            yield _verified(Path(result), session_of, data, again)
        except LedgerError as error:
            yield error


def _verified(
    file: Path,
    session_of: Callable[[Path, Any], Session],
    data: Any,
    again: Callable[[Verifier], tuple[Criterion, Draw]],
) -> Verification:
    """The checks of a result. `session_of`: loads the model of a result with these settings; `again`: runs a part of it
    again."""
    instrument = instrument_of(ledger_path(file)) or ATTENTION
    if instrument not in VERIFIERS:
        raise LedgerError(f"{ledger_path(file)} is of {instrument!r:.40}, expected one of {', '.join(VERIFIERS)}")
    experiment, verifier = VERIFIERS[instrument]
    text = read_text(file)
    result = experiment.RESULT.from_file(ledger_path(file))
    made, difference = result.PROVENANCE.of(result.ledger), result.difference(text)
    found = f"numbers differ from the ledger's: {difference}" if difference else "every number follows from the ledger"
    checks = [Criterion("scores", difference is None, found)]
    verification = Verification(checks, of=len(verifier.places(result.ledger)))
    try:
        place = find_data(file, made.settings) if data is None else data
        here = experiment.again(made, session_of(file, made.settings), place)
        ours = here.settings
    except CodeSyntaxError as error:
        missing = isinstance(error, (DatasetError, ModelError, HubError, UnknownName))
        checks.append(Criterion("model and data", None if missing else False, str(error)))
        return verification
    session, revision = here.session, made.settings.revision
    checks += [
        same("model", revision, revision if session.is_of(revision) else ours.revision, session.named),
        same("data", _version_and_labels(made.settings), _version_and_labels(ours), data is not None),
    ]
    against = verifier(file, result, here)
    if all(check.passed is not None for check in checks):
        checks += against.unlike()
    if all(check.passed is not None for check in checks):
        checks += against.counted()
        if checks[-1].passed:
            check, drawn = again(against)
            checks.append(check)
            verification.functions, verification.bounds = len(drawn.places), drawn.bounds
            verification.ledger = result.ledger.digest()
    return verification


def rng_of(digest: str, seed: int | None) -> np.random.Generator:
    """The draw of a ledger with this digest, or that of a seed for it."""
    return np.random.default_rng([*bytes.fromhex(digest), *([] if seed is None else [seed])])


class InformationVerifier(Verifier[Informing]):
    """Fits an information probe again, and compares the rows of some functions."""

    COUNTED = ("skips", "left_out")

    def influence(self) -> Influence:
        """In percent, and hundredths of a bit: what functions contribute to the means over relations."""
        result = InformationResult.from_ledger(self.ledger)
        names, edges, sums = by_function(self.ledger)
        counted = [place for place, name in enumerate(names) if result.relations[name].in_mean] or [*range(len(names))]
        each = sums[:, counted] / edges[:, counted].sum(axis=0)[:, None] / len(counted)  # (F, R, 6)
        each[..., -2:] *= 100
        points = dict(zip(MEASURED, np.maximum(each.sum(axis=1), 0).T))
        least = (edges[:, counted] / edges[:, counted].sum(axis=0)).sum(axis=1) / len(counted)
        return Influence(self.places(self.ledger), points, {}, least)


_ROUNDED = {"float32": 0.02, "bfloat16": 8.0}
"""Nats by which the log-probability of a text may differ in other batches or on another machine."""


class _LogProbabilities(Verifier[E]):
    """Scores some texts again."""

    @property
    def rounded(self) -> float:
        return _ROUNDED[self.experiment.settings.precision]


class HeadsVerifier(Verifier[Ablation]):
    """Chooses the heads of a silencing result again, and compares the rows of some functions."""

    COUNTED = ("skips", "left_out")

    def counted(self) -> list[Criterion]:
        theirs, ours = self.made.heads, self.experiment.provenance.heads
        other = sorted(name for name in {**theirs, **ours} if theirs.get(name) != ours.get(name))
        differs = f"of other relations, or chosen otherwise, for {', '.join(other)}"
        return [*super().counted(), Criterion("heads", not other, differs if other else f"all {len(ours)} again")]

    def influence(self) -> Influence:
        """In hundredths of a nat: what functions contribute to the mean cost over relations, and to the difference."""
        places = self.places(self.ledger)
        influence = Influence(places, {}, {}, np.zeros(len(places)))
        result = SilencingResult.from_ledger(self.ledger)
        for costs in result.costs().values():
            functions, share = costs.functions, 100 / len(costs.functions)
            both = np.stack([costs.best, costs.best - costs.matched.mean(axis=1)])
            weight = share / len(result.heads)
            for name, raised in zip(("cost", "cost beyond matched heads"), np.maximum(both, 0)):
                influence.add(f"{name}: mean over relations", functions, weight * raised)
            influence.add_part("cost: any relation", functions, share * np.maximum(costs.best, 0))
            at = np.searchsorted(places, functions)
            influence.least[at] += weight * both.std(axis=1).max()  # what is claimed to be 0 may be less
        return influence


class SurprisalVerifier(_LogProbabilities[Surprising]):
    """Measures some functions again."""

    COUNTED = ("skips", "unmatched")


class PreferenceVerifier(_LogProbabilities[Preferring]):
    """Scores some pairs again."""

    def influence(self) -> Influence:
        """In percent of the mean over phenomena."""
        _, at, pairs = np.unique(self.ledger.rows["phenomenon"], return_inverse=True, return_counts=True)
        points = 100 / pairs[at] / len(pairs)
        return Influence(self.places(self.ledger), dict.fromkeys(SCORES, points), {}, points)


MOST_UNSURE = 0.05
"""The largest share of predictions that rounding may decide."""

_LEAST = 0.05  # of what its node types weigh: so a function is drawn at least
_MOST_TEXTS = 64  # of near-tied predictions in one copy

_EXACT = ("function", "node_type", "copy", "seed", "masked", "commonest")


class CopiesVerifier(Verifier[Masking]):
    """Masks and restores some functions again, and compares the copies with the ledger.

    *Which functions.* By what they contribute to the means over node types, of T1 and of T1 - T0
    (`probing.evidence.checks`).

    *What is compared.* Every copy of these functions. Seeds and numbers of masked sub-tokens must be equal; hits and
    similarities, too, unless rounding could decide a prediction (`Filled.unsure`), as on another machine: then they
    must be those of a text that near-tied predictions give. Trees that could not be compared are the same ones.
    Log-probabilities are equal up to rounding. One copy that differs by more rejects the result. If what differs within
    these bounds favours one arm by more than MOST_BIASED standard deviations over functions, or a mean by more points
    than `by_rounding` accepts, the result is rejected, too.

    *What cannot be checked.* A model that finds sub-tokens equally likely, such as one whose vocabulary has each of
    them twice: of real models, one copy in a hundred is unsure. A result with more than MOST_UNSURE of such positions
    is neither accepted nor rejected.
    """

    COUNTED = ("skips", "dropped")
    AGAIN = "copies again"

    def complete(self) -> Criterion:
        """Check that the ledger has as many copies of each function as there are to mask."""
        copies = {function.index: function.copies for function in self.experiment.functions}
        claimed = dict(zip(*(part.tolist() for part in np.unique(self.ledger.rows["function"], return_counts=True))))
        return Criterion("copies", claimed == copies, f"{len(self.ledger)} copies of {len(claimed)} functions")

    def influence(self) -> Influence:
        settings, pairs = self.made.settings, _pairs(self.ledger.rows)
        places, place = np.unique(pairs.function, return_inverse=True)
        weight = pairs.weight(pairs.node_type)

        def of_functions(points: np.ndarray) -> np.ndarray:
            return np.bincount(place, weight * points, len(places))

        found: dict[str, np.ndarray] = {}
        for name, (t1, t0) in pairs.arms.items():
            raised = np.nan_to_num(t1, nan=1)  # what is left out may have been the worst
            found[f"{name}: T1"] = of_functions(raised)
            found[f"{name}: T1 - T0"] = of_functions(raised + 1 - np.nan_to_num(t0))
        types = [
            len(settings.node_types) * of_functions(np.nan_to_num(pairs.arms[SIMILARITIES[0]][0], nan=1) * of)
            for of in (pairs.node_type == np.unique(pairs.node_type)[:, None])
        ]
        parts = {f"{SIMILARITIES[0]}: T1 of any node type": types}
        return Influence(places, found, parts, _LEAST * of_functions(np.ones(len(weight))))

    def compare(self, functions: Sequence[MaskedFunction]) -> Again:
        """Compare copies with what they are again, except for unbiased rounding."""
        parts = [found for _, found in self.in_parts(functions, self.experiment.rows)]
        again = np.concatenate([ledger.rows for ledger, _ in parts])
        order = np.lexsort((again["copy"], again["node_type"], again["function"]))
        ours, unsure = again[order], np.concatenate([counts for _, counts in parts])[order]
        theirs = self.ledger.only(np.array([function.index for function in functions])).rows
        wrong = np.logical_or.reduce([theirs[name] != ours[name] for name in _EXACT])
        for name in FILLED:
            wrong |= ~np.isclose(theirs[name], ours[name], 0, 1e-9, True)
        for name in HITS:
            wrong |= np.abs(theirs[name] - ours[name]) > unsure
        wrong |= np.abs(theirs["log_probability"] - ours["log_probability"]) > ROUNDED
        other = theirs[HITS[0]] != ours[HITS[0]]
        for name in SIMILARITIES:
            other |= ~np.isclose(theirs[name], ours[name], 0, 1e-9, True)
        wrong |= other & (unsure == 0)
        share = float(unsure.sum() / ours["masked"].sum())
        if share > MOST_UNSURE and not wrong.any():
            found = f"{share} of their predictions are near ties, which rounding decides, so they cannot be checked"
            return Again(found, None)
        by_index = {function.index: function for function in functions}
        for at in np.flatnonzero(other & ~wrong):
            wrong[at] = not _possible(self.experiment, by_index[int(theirs[at]["function"])], theirs[at])
        if count := int(wrong.sum()):
            row = theirs[wrong.argmax()]
            where = f"copy {row['copy']} of {self.ledger.node_types[row['node_type']]} in function {row['function']}"
            return Again(f"{count} of {len(ours)} copies differ by more than rounding, as {where}", False)
        return Again(
            f"{int(other.sum())} of {len(ours)} copies differ, all of them by rounding",
            bias=(_bias(theirs, ours), "one arm"),
            gained=_gained(self.ledger.rows, theirs, ours),
        )


class _Pairs(NamedTuple):
    """P pairs of a function and a node type: `function`, `node_type` (P,), and outcome -> T1 and T0 (2, P)."""

    function: np.ndarray
    node_type: np.ndarray
    arms: dict[str, np.ndarray]

    def weight(self, of_all: np.ndarray) -> np.ndarray:
        """Points that a pair weighs in the mean over node types, if the pairs of `of_all` are in it: (P,)."""
        sizes = np.bincount(of_all)
        return 100 / np.count_nonzero(sizes) / sizes[self.node_type]


def _pairs(rows: np.ndarray) -> _Pairs:
    """The pairs of sorted rows."""
    starts = np.flatnonzero(rows["copy"] == 0)
    controls = np.diff(np.append(starts, len(rows))) - 1
    outcomes = {name: rows[name].astype(float) for name in SIMILARITIES}
    outcomes["restored"] = rows[HITS[0]] / rows["masked"]
    arms = {}
    for name, values in outcomes.items():
        t0 = np.add.reduceat(np.where(rows["copy"] > 0, np.nan_to_num(values), 0), starts) / controls
        arms[name] = np.stack([values[starts], t0])
    return _Pairs(rows["function"][starts], rows["node_type"][starts], arms)


def _possible(masking: Masking, function: MaskedFunction, row: np.ndarray) -> bool:
    """True if near-tied predictions in a copy give the hits and similarities of a row.

    When a hole is filled, all that is written behind a near tie follows from it: any text may.
    """
    model, restoration = masking.model, masking.restoration
    if isinstance(model, InfillingModel):
        return True
    (read,) = restoration.masker.read([function.code])
    copies, *_ = masking.copies(read, function.index)
    positions = next(
        copy.positions for copy in copies if copy.node_type == row["node_type"] and copy.number == row["copy"]
    )
    true = function.ids[positions]
    columns = torch.as_tensor(positions, dtype=torch.int64, device=model.device)
    ties = model.near_ties(model.inputs([function.ids]), torch.zeros_like(columns), columns)
    if math.prod(map(len, ties)) > _MOST_TEXTS:
        return False
    for predicted in map(np.array, product(*ties)):
        if (predicted == true).sum() == row[HITS[0]]:
            found = restoration.similarity(read, positions, predicted)
            if np.allclose([row[name] for name in SIMILARITIES], found, 0, 1e-9, True):
                return True
    return False


def _gained(rows: np.ndarray, theirs: np.ndarray, ours: np.ndarray) -> dict[str, np.ndarray]:
    """The name of each mean -> points that each function gains by the claim; `rows`: the whole ledger."""
    claimed, again = _pairs(theirs), _pairs(ours)
    places, place = np.unique(claimed.function, return_inverse=True)
    weight = claimed.weight(rows["node_type"][rows["copy"] == 0])
    gained = {}
    for name, arms in claimed.arms.items():
        t1, t0 = np.nan_to_num(weight * (arms - again.arms[name]))
        gained[f"{name}: T1"] = np.bincount(place, t1, len(places))
        gained[f"{name}: T1 - T0"] = np.bincount(place, t1 - t0, len(places))
    return gained


def _bias(theirs: np.ndarray, ours: np.ndarray) -> float:
    """By how many standard deviations over functions the differences favour an arm, by any number."""
    starts = np.flatnonzero(np.diff(ours["function"], prepend=-1))
    most = 0.0
    for name in (*HITS, "log_probability", *SIMILARITIES):
        gained = np.nan_to_num(theirs[name] - ours[name])
        for arm in (ours["copy"] == 0, ours["copy"] > 0):
            most = max(most, float(np.abs(in_deviations(np.add.reduceat(np.where(arm, gained, 0.0), starts)))))
    return most


VERIFIERS: dict[str, tuple[type[Experiment], type[Verifier]]] = {
    ATTENTION: (Probing, RanksVerifier),
    MASKING: (Masking, CopiesVerifier),
    SILENCING: (Ablation, HeadsVerifier),
    INFORMATION: (Informing, InformationVerifier),
    PREFERENCE: (Preferring, PreferenceVerifier),
    SURPRISAL: (Surprising, SurprisalVerifier),
}
"""Instrument -> what is run again, and how it is compared."""


def _version_and_labels(settings: Any) -> str:
    """The version and labels of the data, without its name, because a copy may have another name."""
    return f"{settings.data.rpartition('@')[2]} {settings.labels}"
