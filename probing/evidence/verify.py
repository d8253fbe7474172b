"""Verify a result: a part of it is probed again, in other batches, and compared with its ledger.

*Which functions.* A score depends on one attention head for each relation, rule and k: the best on this split, or the
best on the split beside it. Functions are drawn without replacement, with higher probability if they contribute more to
the scores: half of the weight is proportional to the contribution of the hits of the heads of rule `first` at k = 1 to
the mean, a quarter to the largest share of the hits of any rule and k, and a quarter to the share of edges, with the
same weight for each relation. Every relation with edges is drawn at least once.

*What is compared.* Every rank of these functions, by all heads. With each rank, the best and the worst possible rank
are computed, if each weight were off by the fraction SLACK due to rounding: a single claimed rank outside rejects the
result. Within these bounds rounding favours the result as often as not: if the differences favour it by more than
MOST_BIASED standard deviations, for a head or for a score, the result is rejected, too.

*What a forger can gain.* An invented share g of a score S is in functions whose probability of being drawn is at least
n / 2 times g, where n functions are drawn: for the mean of `first` at k = 1, all of it goes undetected with a
probability of at most exp(-g n / 2). With 64 functions and S = 27 points, 2.5 points pass once in 20 times, 5 points
once in 400; for other rules and k the exponent is about half of that. If weights are equal except for rounding, as in a
model built for it, or in bfloat16, ranks within the bounds can be altered in fewer than MOST_BIASED ** 2 of the drawn
functions: with the embedded encoder in bfloat16, altering every third function gave 2.6 points, and altering every
second was rejected. `verify --all` leaves only this undetected.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm.auto import tqdm

from codesyntax_dataset.arguments import Natural, Positive, checked
from codesyntax_dataset.errors import CodeSyntaxError, DatasetError, HubError, LedgerError, ModelError, UnknownName
from codesyntax_metric.topk_uas import RULES
from probing.attention.edges import stacked
from probing.attention.ledger import RankLedger
from probing.attention.probe import Probing, Runner
from probing.attention.ranking import EncodedFunction, RankBounds
from probing.attention.result import load
from probing.evidence.ablate import Ablation, HeadsVerifier
from probing.evidence.checks import (
    FUNCTIONS,
    MOST_BIASED,
    Criterion,
    Verification,
    Verifier,
    in_deviations,
    same,
    without_replacement,
)
from probing.evidence.outcomes import Choice
from probing.evidence.selection import apply, choose
from probing.evidence.verify_masked import CopiesVerifier
from probing.prediction.mask import Masking
from probing.runs.data import find_data
from probing.runs.experiment import Experiment
from probing.runs.ledger_file import ATTENTION, MASKING, SILENCING, instrument_of
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
    functions: Positive | None = FUNCTIONS,
    seed: Natural | None = None,
) -> Verification:
    """Check a result file and the ledger beside it: scores, labels, model, and, by running them again, some functions.

    `model` and `data`: their locations, if not those in the result. `functions`: how many of the ledger's functions are
    probed again, drawn with `seed` (by default differently each time), and more if these do not include every relation;
    None: all of them. Raises LedgerError if there is no readable result.
    """
    (verification,) = verify_each([result], model=model, data=data, device=device, functions=functions, seed=seed)
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
    functions: Positive | None = FUNCTIONS,
    seed: Natural | None = None,
) -> Iterator[Verification | LedgerError]:
    """Yield what `verify` returns or raises for each result; results of one model share one that is loaded."""
    sessions: dict[tuple, Session] = {}

    def session_of(made: Any) -> Session:
        session = Session.again(made.settings, model, device)
        key = session.model, session.revision, session.dtype, session.max_length
        return sessions.setdefault(key, session)

    for result in results:
        try:
            yield _verified(Path(result), session_of, data, functions, seed)
        except LedgerError as error:
            yield error


def _verified(
    file: Path, session_of: Callable[[Any], Session], data: Any, functions: int | None, seed: int | None
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
        here = experiment.again(made, session_of(made), find_data(file, made.settings) if data is None else data)
        ours = here.settings
    except (DatasetError, ModelError, HubError, UnknownName) as error:
        return Verification([*checks, Criterion("model and data", None, str(error))], of=measured)
    except CodeSyntaxError as error:
        return Verification([*checks, Criterion("model and data", False, str(error))], of=measured)
    session = here.session
    checks += [
        same("model", made.settings.revision, ours.revision, session.revision is None),
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
    check, number = against.again(functions, np.random.default_rng(seed))
    return Verification([*checks, check], number, measured, result.ledger.digest())


class RanksVerifier(Verifier[Probing]):
    """Compares ranks."""

    COUNTED = ("skips", "ties")

    @staticmethod
    def places(ledger: RankLedger) -> np.ndarray:
        return np.unique(ledger.function)

    def counted(self) -> list[Criterion]:
        return [*super().counted()[:-1], _edges(self.ledger, self.experiment)]

    def again(self, number: int | None, rng: np.random.Generator) -> tuple[Criterion, int]:
        choices = [choose(self.ledger)]
        other = _counterpart(self.file, self.made.settings)
        if other is not None and other.ranks.shape[2:] == self.ledger.ranks.shape[2:]:
            choices.append(choose(other))
        return _probe_again(self.ledger, self.experiment, choices, number, rng)


VERIFIERS: dict[str, tuple[type[Experiment], type[Verifier]]] = {
    ATTENTION: (Probing, RanksVerifier),
    MASKING: (Masking, CopiesVerifier),
    SILENCING: (Ablation, HeadsVerifier),
}
"""Instrument -> what is run again, and how it is compared."""


def _version_and_labels(settings: Any) -> str:
    """The version and labels of the data, without its name, because a copy may have another name."""
    return f"{settings.data.rpartition('@')[2]} {settings.labels}"


def _edges(ledger: RankLedger, probing: Probing) -> Criterion:
    """Whether the ledger has exactly the edges of the data, in order."""
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


def _draw(ledger: RankLedger, choices: Sequence[Choice], number: int, rng: np.random.Generator) -> np.ndarray:
    """Draw at least `number` functions, by their contribution to the scores, including one of every relation."""
    outcomes = [apply(ledger, choice) for choice in choices]
    edges = outcomes[0].edges  # (F, R), of all relations, as the heads of the first choice are chosen here
    weight = _share((edges / edges.sum(axis=0)).sum(axis=1)) / 4
    for outcome in outcomes:
        per_edge = outcome.hits / outcome.edges.sum(axis=0)  # (rules, k, F, R)
        headline = per_edge[RULES.index("first"), 0][:, outcome.in_mean].sum(axis=-1)
        weight += (_share(headline) / 2 + _share(_share(per_edge.sum(axis=-1)).max(axis=(0, 1))) / 4) / len(outcomes)
    drawn = without_replacement(weight, number, rng)
    for column in rng.permutation(edges.shape[1]):
        holding = np.flatnonzero(edges[:, column])
        if not np.isin(holding, drawn).any():
            drawn = np.append(drawn, rng.choice(holding))
    return outcomes[0].functions[drawn]


def _share(values: np.ndarray) -> np.ndarray:
    """Values (..., F) as shares of their sum, or equal shares if all are 0."""
    total = values.sum(axis=-1, keepdims=True)
    return np.divide(values, total, out=np.full(values.shape, 1 / values.shape[-1]), where=total > 0)


def _probe_again(
    ledger: RankLedger, probing: Probing, choices: Sequence[Choice], functions: int | None, rng: np.random.Generator
) -> tuple[Criterion, int]:
    """Check the ranks of some functions, or of all; also return how many these are."""
    drawn = probing.functions
    if functions is not None:
        places = set(_draw(ledger, choices, functions, rng).tolist())
        drawn = [function for function in probing.functions if function.index in places]
    return _ranks(ledger, probing, drawn, choices), len(drawn)


def _ranks(
    ledger: RankLedger, probing: Probing, drawn: Sequence[EncodedFunction], choices: Sequence[Choice]
) -> Criterion:
    """Whether the ranks of the drawn functions are reproduced, except for unbiased rounding."""
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
        return Criterion(
            "ranks", False, f"{text}{count} of {outside.size} ranks differ by more than rounding, as of {where}"
        )
    bias, where = _bias(claimed, replace(claimed, ranks=again), choices)
    if bias > MOST_BIASED:
        return Criterion("ranks", False, f"{text}differences favour {where} by {bias:.1f} standard deviations")
    differing = float((again != claimed.ranks).mean())
    return Criterion("ranks", True, f"{text}{differing:.3%} of {again.size} ranks differ, all of them by rounding")


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
