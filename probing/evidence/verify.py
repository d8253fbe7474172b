"""Verify a result: a part of it is probed again, in other batches, and compared with its ledger.

*Which functions.* Those on which published scores depend (`probing.evidence.influence`): of `test`, by what they
contribute to the means of every protocol, rule and k; of `validation`, by the heads that they may have had chosen.
`probing.evidence.checks` says how many, and what a forger can still gain, for each number. The draw follows from the
digest of the ledger, so that verifying the same ledger again changes nothing.

*What is compared.* Every rank of these functions, by all heads. With each rank, the best and the worst possible rank
are computed, if each weight were off by the fraction SLACK due to rounding: a single claimed rank outside rejects the
result. Within these bounds rounding favours the result as often as not: if the differences favour it by more than
MOST_BIASED standard deviations, for a head or for a score, or a mean by more points than `by_rounding` accepts, the
result is rejected, too.

*What remains.* Who alters a ledger gets another draw, and may alter it until one misses what is forged: by the bounds,
after some twenty trials. A maintainer's own `seed`, which nobody knew before, ends that.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import torch
from tqdm import tqdm

from codesyntax_dataset.arguments import Natural, Positive, checked
from codesyntax_dataset.errors import CodeSyntaxError, DatasetError, HubError, LedgerError, ModelError, UnknownName
from codesyntax_dataset.protocol import PUBLISHED
from codesyntax_metric.topk_uas import RULES
from probing.attention.edges import stacked
from probing.attention.ledger import RankLedger
from probing.attention.probe import Probing, Runner
from probing.attention.ranking import EncodedFunction, RankBounds
from probing.attention.result import load
from probing.evidence.ablate import Ablation, HeadsVerifier
from probing.evidence.checks import (
    MOST_BIASED,
    Criterion,
    E,
    Influence,
    Verification,
    Verifier,
    favoured,
    in_deviations,
    same,
)
from probing.evidence.gather import WholeSplits
from probing.evidence.influence import CELLS, Mean, least, means, on_test, on_validation
from probing.evidence.outcomes import Choice
from probing.evidence.selection import apply, choose
from probing.evidence.usable import MEASURED, by_function
from probing.evidence.verify_masked import CopiesVerifier
from probing.information.inform import Informing
from probing.information.result import InformationResult
from probing.prediction.mask import Masking
from probing.prediction.prefer import Preferring
from probing.prediction.preference_result import SCORES
from probing.prediction.surprise import Surprising
from probing.runs.data import find_data
from probing.runs.experiment import Experiment
from probing.runs.ledger_file import ATTENTION, INFORMATION, MASKING, PREFERENCE, SILENCING, SURPRISAL, instrument_of
from probing.runs.saved import ledger_path, read_text
from probing.runs.session import Session
from probing.runs.settings import Settings

SLACK = {"float32": 1e-3, "bfloat16": 0.4}
"""The relative difference of a weight that is allowed when a function is probed again: other batches round sums
differently. For the embedded encoder and random models of 2 and 12 layers, whose weights are sharper, batches of 1 and
of up to 40 functions differed by less than 1e-4 in float32, and by less than 0.3 in bfloat16."""


@checked
def verify(
    result: str | os.PathLike,
    *,
    model: Any = None,
    data: Any = None,
    device: str | torch.device | None = None,
    functions: Positive | None = None,
    everything: bool = False,
    seed: Natural | None = None,
) -> Verification:
    """Check a result file and the ledger beside it: scores, labels, model, and, by running them again, some functions.

    `model` and `data`: their locations, if not those in the result. `functions`: about how many are run again, by
    default as many as bound each mean to half a point; or `everything`. `seed`: for a draw of one's own, which
    otherwise follows from the ledger. Raises LedgerError if there is no readable result.
    """
    (verification,) = verify_each(
        [result], model=model, data=data, device=device, functions=functions, everything=everything, seed=seed
    )
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
    """Yield what `verify` returns or raises for each result; results of one model share one that is loaded."""
    sessions: dict[tuple, Session] = {}

    def session_of(file: Path, made: Any) -> Session:
        session = Session.again(file, made.settings, model, device)
        of_model = session.model, session.revision, session.dtype, session.max_length
        key = *of_model, session.weights, session.pool
        return sessions.setdefault(key, session)

    for result in results:
        try:
            yield _verified(Path(result), session_of, data, functions, everything, seed)
        except LedgerError as error:
            yield error


def _verified(
    file: Path,
    session_of: Callable[[Path, Any], Session],
    data: Any,
    functions: int | None,
    everything: bool,
    seed: int | None,
) -> Verification:
    """The checks of a result."""
    instrument = instrument_of(ledger_path(file)) or ATTENTION
    if instrument not in VERIFIERS:
        raise LedgerError(f"{ledger_path(file)} is of {instrument!r:.40}, expected one of {', '.join(VERIFIERS)}")
    experiment, verifier = VERIFIERS[instrument]
    text = read_text(file)
    result = experiment.RESULT.from_file(ledger_path(file))
    made, difference = result.PROVENANCE.of(result.ledger), result.difference(text)
    found = f"numbers differ from the ledger's: {difference}" if difference else "every number follows from the ledger"
    checks = [Criterion("scores", difference is None, found)]
    measured = len(verifier.places(result.ledger))
    try:
        here = experiment.again(made, session_of(file, made), find_data(file, made.settings) if data is None else data)
        ours = here.settings
    except (DatasetError, ModelError, HubError, UnknownName) as error:
        return Verification([*checks, Criterion("model and data", None, str(error))], of=measured)
    except CodeSyntaxError as error:
        return Verification([*checks, Criterion("model and data", False, str(error))], of=measured)
    session, revision = here.session, made.settings.revision
    checks += [
        same("model", revision, revision if session.is_of(revision) else ours.revision, session.named),
        same("data", _version_and_labels(made.settings), _version_and_labels(ours), data is not None),
    ]
    against = verifier(file, result, here)
    if None not in (checks[-2].passed, checks[-1].passed):
        checks += against.unlike()
    if any(check.passed is None for check in checks):
        return Verification(checks, of=measured)
    checks += against.counted()
    if not checks[-1].passed:
        return Verification(checks, of=measured)
    digest = result.ledger.digest()
    check, drawn = against.again(functions, everything, rng_of(digest, seed))
    return Verification([*checks, check], len(drawn.places), measured, digest, drawn.bounds)


def rng_of(digest: str, seed: int | None) -> np.random.Generator:
    """The draw of a ledger with this digest, or that of a seed for it."""
    return np.random.default_rng([*bytes.fromhex(digest), *([] if seed is None else [seed])])


class RanksVerifier(Verifier[Probing]):
    """Compares ranks."""

    COUNTED = ("skips", "ties")

    @staticmethod
    def places(ledger: RankLedger) -> np.ndarray:
        return np.unique(ledger.function)

    def counted(self) -> list[Criterion]:
        return [*super().counted()[:-1], _edges(self.ledger, self.experiment)]

    @cached_property
    def counterpart(self) -> RankLedger | None:
        return _counterpart(self.file, self.made.settings)

    @property
    def _pair(self) -> tuple[RankLedger, RankLedger | None]:
        """The ledgers of the split that is scored and, if both are here, of the one on which heads are chosen."""
        ledger, other = self.ledger, self.counterpart
        if other is None or other.ranks.shape[2:] != ledger.ranks.shape[2:]:
            return ledger, None
        return (other, ledger) if self.made.settings.split == "validation" else (ledger, other)

    @cached_property
    def _submitted(self) -> tuple[RankLedger, RankLedger | None, np.ndarray]:
        """The same as entries have them, and the functions that were not read of those on which heads are chosen."""
        (test, validation), settings = self._pair, self.made.settings
        alone = isinstance(self.experiment.data.location, datasets.Dataset)  # one split, without the other
        if validation is None or alone or settings.limit is not None or settings.control is not None:
            return test, validation, np.array([], int)
        splits = WholeSplits(self.experiment.data.location, settings.config, settings.direction)
        test, whole = splits.completed(test, "test"), splits.completed(validation, "validation")
        return test, whole, np.setdiff1d(whole.function, validation.function)

    @cached_property
    def _published(self) -> list[Mean]:
        return means(*self._submitted)

    def influence(self) -> Influence:
        test, validation, unread = self._submitted
        if validation is not None and self.made.settings.split == "validation":
            found = on_validation(validation, test, self._published, unread)
        else:
            found = on_test(test, self._published)
        return found.at(*least(self.ledger))

    def compare(
        self, functions: Sequence[EncodedFunction], chance: Mapping[int, float]
    ) -> tuple[Criterion, dict[str, float]]:
        of_validation = self._submitted[1] is not None and self.made.settings.split == "validation"
        scored = means(self.ledger, None) if of_validation else self._published
        return _ranks(self.ledger, self.experiment, functions, scored, chance)


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


def _edges(ledger: RankLedger, probing: Probing) -> Criterion:
    """Check that the ledger has exactly the edges of the data, in order."""
    ours = stacked([function.edges for function in probing.functions])
    order = np.argsort(ours.function, kind="stable")
    names = np.asarray(ours.relations, dtype=object)[ours.relation[order]]
    if len(ledger) != len(order):
        return Criterion("edges", False, f"the ledger has {len(ledger)} edges, the data {len(order)}")
    differing = np.asarray(ledger.relations, dtype=object)[ledger.relation] != names
    for column in ("function", "head", "first", "last", "tokens"):
        differing |= getattr(ledger, column) != getattr(ours, column)[order]
    if ledger.ranks.shape[2:] != (probing.encoder.layers, probing.encoder.heads):
        return Criterion("edges", False, f"the ledger has ranks of {ledger.ranks.shape[2:]} layers and heads")
    count = int(differing.sum())
    return Criterion("edges", count == 0, f"{count} of {len(ledger)} differ from the data's")


def _counterpart(result: Path, settings: Settings) -> RankLedger | None:
    """The ledger of the result on the other split with the same settings, if it is in the same folder."""
    split = "test" if settings.split == "validation" else "validation"
    pattern = settings.model_copy(update={"split": split}).name.rpartition(".")[0] + ".*.json"
    alike = {"split": settings.split, "labels": settings.labels, "limit": settings.limit}
    for file in sorted(result.parent.glob(pattern)):
        try:
            other = load(file)
        except CodeSyntaxError:
            continue
        if other.settings.model_copy(update=alike) == settings:
            return other.ledger
    return None


def _ranks(
    ledger: RankLedger,
    probing: Probing,
    drawn: Sequence[EncodedFunction],
    published: Sequence[Mean],
    chance: Mapping[int, float],
) -> tuple[Criterion, dict[str, float]]:
    """Check that the ranks of the drawn functions are reproduced, except for unbiased rounding."""
    claimed = ledger.only(np.array([function.index for function in drawn]))
    again, outside = np.empty_like(claimed.ranks), np.zeros(claimed.ranks.shape[1:], bool)
    runner = Runner(probing.encoder, probing.settings.direction, None)
    listener = partial(RankBounds, slack=SLACK[probing.settings.precision])
    for start in range(0, len(drawn), probing.PART):
        part = drawn[start : start + probing.PART]
        bounds = runner.run(part, tqdm(disable=True), listener)
        places = np.concatenate([_places(claimed, function.index) for function in part])
        again[:, places] = bounds[..., 0]
        theirs = claimed.ranks[:, places]
        outside[places] = ((theirs < bounds[..., 1]) | (theirs > bounds[..., 2])).any(axis=0)
    text = f"{len(drawn)} functions probed again, "
    if count := int(outside.sum()):
        edge, layer, head = np.argwhere(outside)[0]
        where = (
            f"{claimed.relations[claimed.relation[edge]]} in function {claimed.function[edge]} by head {layer}-{head}"
        )
        found = f"{count} of {outside.size} ranks differ by more than rounding, as of {where}"
        return Criterion("ranks", False, f"{text}{found}"), {}
    reproduced = replace(claimed, ranks=again)
    bias, where = _bias(claimed, reproduced, [mean.choice for mean in published if mean.protocol != PUBLISHED])
    if bias > MOST_BIASED:
        found = f"differences favour {where} by {bias:.1f} standard deviations"
        return Criterion("ranks", False, f"{text}{found}"), {}
    check, limits = favoured(text, *_gained(claimed, reproduced, published, chance))
    differing = float((again != claimed.ranks).mean())
    found = f"{differing:.3%} of {again.size} ranks differ, all of them by rounding"
    return check or Criterion("ranks", True, f"{text}{found}"), limits


def _gained(
    claimed: RankLedger, again: RankLedger, published: Sequence[Mean], chance: Mapping[int, float]
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """The names of means, what each function gains by the claim (f, n), and the probability (f,) with which it was
    drawn."""
    functions = np.unique(claimed.function)
    columns, names = [], []
    for mean in published:
        chosen = [mean, mean]
        if mean.protocol == PUBLISHED:  # a choice on one of the two would favour it
            chosen = [mean._replace(choice=choose(ledger)) for ledger in (claimed, again)]
        (places, theirs), (_, ours) = chosen[0].points(claimed), chosen[1].points(again)
        gained = np.zeros((len(functions), len(theirs)))
        gained[np.searchsorted(functions, places)] = (theirs - ours).sum(axis=-1).T
        columns.append(gained)
        names += [f"{mean.protocol}: {cell}" for cell in CELLS]
    return names, np.hstack(columns), np.array([chance[place] for place in functions.tolist()])


def _places(ledger: RankLedger, function: int) -> np.ndarray:
    """The positions of the edges of a function in a sorted ledger."""
    return np.arange(*np.searchsorted(ledger.function, [function, function + 1]))


def _bias(claimed: RankLedger, again: RankLedger, choices: Sequence[Choice]) -> tuple[float, str]:
    """By how many standard deviations over functions the differences between two ledgers favour the claim, and where.

    For each head and rule, this counts a function's ranks that are claimed better minus those claimed worse; for the
    scores of the chosen heads, claimed hits minus reproduced hits.
    """
    starts = np.flatnonzero(np.diff(claimed.function, prepend=-1))
    found = []
    for rule, name in enumerate(RULES):
        better = np.sign(again.ranks[rule].astype(np.int16) - claimed.ranks[rule])
        sides = in_deviations(np.add.reduceat(better, starts, axis=0, dtype=np.int64))  # (layers, heads)
        layer, head = np.unravel_index(sides.argmax(), sides.shape)
        found.append((float(sides.max()), f"head {layer}-{head} by the rule {name}"))
    for choice in choices:
        theirs, ours = apply(claimed, choice), apply(again, choice)
        gained = np.moveaxis(theirs.hits.astype(np.int64) - ours.hits, 2, 0)  # (F, rules, k, R)
        weight = theirs.in_mean / theirs.edges.sum(axis=0)
        of_relations, of_mean = in_deviations(gained), in_deviations((gained * weight).sum(axis=-1))
        found.append(
            (float(of_relations.max()), f"the score of {theirs.relations[of_relations.max(axis=(0, 1)).argmax()]}")
        )
        found.append((float(of_mean.max()), "the mean score"))
    return max(found)
