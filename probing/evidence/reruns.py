"""How the rows of each instrument are run again, which differences rounding explains, and what its
functions weigh.

*Attention.* Every rank of the drawn functions, by all heads. With each rank, the best and the worst
possible rank are computed, if each weight were off by the fraction SLACK due to rounding: a single
claimed rank outside rejects the result. On `test`, a function adds to a mean its hits by the heads
of a protocol. On `validation`, where two protocols choose their heads, hits move no score but
choices: of a relation, another head would have been chosen if it had M more hits, against the
chosen one, and the score would be G points lower. A function in which they can change by s at most
gives up to min(1, s / M) of G: of all heads, the one for which that is most counts. Sums of these
are at least what any set of functions gains. Edges of functions that were not read count as hits of
any head (`choose_least`).

*Masking.* Every copy of the drawn functions. Seeds and numbers of masked sub-tokens are equal; hits
and similarities, too, unless rounding could decide a prediction (`Filled.unsure`), as on another
machine: then as many hits may be others, and similarities any; what these gain is bounded, as of
all rounding. Trees that could not be compared are the same ones. A model that finds sub-tokens
equally likely, such as one whose vocabulary has each of them twice, cannot be checked: of real
models, one copy in a hundred is unsure; a result with more than MOST_UNSURE of such positions is
neither accepted nor rejected.

*Log-probabilities of texts*, as of minimal pairs and surprisal. In float32 they differ in their
last digits. In half precision by how much depends on the model, so it is measured: the drawn
functions run in two orders of batches, and a claim may differ from the first by SPREAD times the
most by which the two differ.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple, TypeVar

import datasets
import numpy as np
from tqdm import tqdm

from codesyntax_dataset.errors import CodeSyntaxError
from codesyntax_dataset.protocol import BEYOND_OFFSET, PUBLISHED, TABLE_KS
from codesyntax_metric.topk_uas import RULES, WORST_RANK
from probing.evidence.beyond import hits_by_protocol
from probing.evidence.gather import WholeSplits, alike
from probing.evidence.protocols import (
    TABLE_MEASURES,
    TABLE_PLACES,
    ChosenHits,
    apply,
    choose,
    published,
)
from probing.evidence.verify import (
    DECIMALS_APART,
    Criterion,
    Influence,
    Points,
    Rerun,
    RowComparison,
    Verifier,
)
from probing.instruments.attention.edges import stacked
from probing.instruments.attention.encoded import EncodedFunction
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.offsets import Offsets, best_offsets, is_hard
from probing.instruments.attention.probe import Probing
from probing.instruments.attention.ranking import RankBounds
from probing.instruments.attention.result import load
from probing.instruments.attention.runner import Runner
from probing.instruments.information import hits as information
from probing.instruments.information.inform import Informing
from probing.instruments.information.result import BOTH, WORDS, InformationLedger, InformationResult
from probing.instruments.likelihood import hits as likelihood
from probing.instruments.likelihood.likelihood import Preferring, Scorer, Scoring, Surprising
from probing.instruments.likelihood.result import (
    BITS,
    LEAST_PAIRS,
    MEASURED,
    SCORES,
    PreferenceLedger,
    SurprisalLedger,
    SurprisalResult,
)
from probing.instruments.masking.hits import T1
from probing.instruments.masking.mask import MaskedFunction, Masking
from probing.instruments.masking.result import FILLED, HITS, SIMILARITIES
from probing.instruments.silencing import hits as silencing
from probing.instruments.silencing.ablate import Ablation
from probing.instruments.silencing.result import SilencingLedger, SilencingResult
from probing.runs.ledger_file import RowLedger
from probing.stats.hits import Hits

SLACK = {"float32": 1e-3, "bfloat16": 0.4, "float16": 0.1}
"""The relative difference of a weight that is allowed when a function is probed again: other
batches round sums differently. For the embedded encoder and random models of 2 and 12 layers, whose
weights are sharper, batches of 1 and of up to 40 functions differed by less than 1e-4 in float32,
and by less than 0.3 in bfloat16, which has an eighth of the precision of float16."""

_LEAST = 0.05
"""The share of what its edges weigh by which a function is drawn at least: whatever heads claim,
somebody looks."""

CELLS = [f"{rule}, k = {k}" for rule in RULES for k in TABLE_KS]
"""The names of a protocol's means, without the protocol."""


class Mean(NamedTuple):
    """The means of a protocol, by each rule and k: what the heads that it chooses hit of the split
    that is scored, and the distances that its edges avoid, if any."""

    protocol: str
    chosen: ChosenHits
    offsets: Offsets | None = None

    @property
    def weight(self) -> dict[str, float]:
        """Relation in the mean -> the points that one of its edges weighs."""
        hits = self.chosen.hits
        return {name: 100 / len(hits.counted) / hits.groups[name].total for name in hits.counted}

    def edges(self, ledger: RankLedger) -> RankLedger:
        """Those that count."""
        return ledger if self.offsets is None else ledger.take(is_hard(ledger, self.offsets))

    def hits(self, ledger: RankLedger, system: str) -> Hits:
        """What its heads hit of the edges that count; those of *published* are chosen on these."""
        heads = choose(ledger) if self.protocol == PUBLISHED else self.chosen.choice
        return apply(self.edges(ledger), heads, system).at(TABLE_MEASURES).hits


def means(
    test: RankLedger, validation: RankLedger | None, unread: Collection[int] = ()
) -> list[Mean]:
    """The published means of these ledgers; without `validation`, those of the protocol *published*
    alone.

    `unread`: the functions of `validation` that the model could not read.
    """
    if validation is None:
        return [Mean(PUBLISHED, published(test).at(TABLE_MEASURES))]
    by_protocol = []
    for protocol, chosen in hits_by_protocol(validation, test, unread).items():
        offsets = best_offsets(validation) if protocol == BEYOND_OFFSET else None
        by_protocol.append(Mean(protocol, chosen.at(TABLE_MEASURES), offsets))
    return by_protocol


def on_test(ledger: RankLedger, published: Sequence[Mean]) -> Influence:
    """The influence of the functions of a `ledger` of the split that is scored on the published
    means of `test`."""
    influence = _without_means(ledger)
    for mean in published:
        hits = mean.chosen.hits
        for cell, added in zip(CELLS, hits.contributions(mean.chosen.system)):
            influence.add(f"{mean.protocol}: {cell}", hits.clusters, added)
    return influence


def on_validation(
    ledger: RankLedger,
    validation: RankLedger,
    test: RankLedger,
    published: Sequence[Mean],
    unread: Collection[int] = (),
) -> Influence:
    """The influence of the functions of a `ledger` of the split on which heads are chosen: those of
    the published means that choose on `validation`."""
    influence = _without_means(ledger)
    for mean in published[1:]:
        totals = mean.edges(test).counts()
        chosen_on = mean.edges(validation)
        weight = mean.weight
        for number, rule in enumerate(RULES):
            for swing in _rows_by_relation(chosen_on, rule):
                if swing.relation not in weight:
                    continue
                scored = totals.hits(swing.relation, rule).reshape(-1, WORST_RANK)  # (heads, k)
                lost = int(swing.edges[np.isin(swing.functions, list(unread))].sum())
                heads = mean.chosen.choice[swing.relation][number, TABLE_PLACES]
                chosen = (heads @ (totals.heads, 1)).tolist()
                for k, hits, head in zip(TABLE_KS, swing.hits, chosen):
                    gain = _of_choice(swing.edges, hits, scored[:, int(k) - 1], head, lost)
                    points = weight[swing.relation] * gain
                    influence.add(f"{mean.protocol}: {rule}, k = {k}", swing.functions, points)
    return influence


def _of_choice(
    edges: np.ndarray, hits: np.ndarray, scored: np.ndarray, chosen: int, lost: int
) -> np.ndarray:
    """Hits on test that functions may have gained by the choice of a head: (f,).

    `edges` (f,) and `hits` (f, heads) of functions of validation, of which `lost` edges were not
    read; `scored` (heads,): hits on test; `chosen`: the head.
    """
    totals = hits.sum(axis=0)
    best = int(totals.argmax())
    worse = np.flatnonzero(scored < scored[chosen])
    if not len(worse):
        return np.zeros(len(edges))
    margin = np.maximum(totals[best] - lost - totals[worse], 1)
    most = hits[:, [best]] + edges[:, None]
    swing = most - hits[:, worse]
    moved = np.minimum(swing / margin, 1)
    gained = scored[chosen] - scored[worse]
    return (moved * gained).max(axis=1)


class _Relation(NamedTuple):
    """The f functions that have a relation, their edges (f,), and the hits of every head: integers
    (k, f, heads)."""

    relation: str
    functions: np.ndarray
    edges: np.ndarray
    hits: np.ndarray


def _rows_by_relation(ledger: RankLedger, rule: str) -> Iterator[_Relation]:
    key = ledger.relation.astype(np.int64) << 32 | ledger.function
    pairs, pair, edges = np.unique(key, return_inverse=True, return_counts=True)
    heads = int(np.prod(ledger.ranks.shape[2:]))
    hits = np.zeros((len(TABLE_KS), len(pairs), heads), np.int32)
    for part, ranks in ledger.parts():
        order = np.argsort(pair[part], kind="stable")
        of_rule = ranks[RULES.index(rule)].reshape(-1, heads)[order]
        here = pair[part][order]
        starts = np.flatnonzero(np.diff(here, prepend=-1))
        for k, of_k in zip(TABLE_KS, hits):
            hit = of_rule < int(k)
            of_k[here[starts]] += np.add.reduceat(hit, starts, axis=0, dtype=np.int32)
    relation = pairs >> 32
    function = pairs & (2**32 - 1)
    for number in np.unique(relation).tolist():
        rows = relation == number
        name = ledger.relations[number]
        yield _Relation(name, function[rows], edges[rows], hits[:, rows])


def _without_means(ledger: RankLedger) -> Influence:
    """The influence of the functions of a ledger, with the points by which each is drawn at
    least."""
    edges = np.bincount(ledger.relation, minlength=len(ledger.relations))
    places, row = np.unique(ledger.function, return_inverse=True)
    weights = 100 / np.count_nonzero(edges) / edges[ledger.relation]
    least = _LEAST * np.bincount(row, weights=weights)
    return Influence(places, {}, least)


class RanksVerifier(Verifier[Probing]):
    """Compares ranks."""

    COUNTED = ("skips", "ties")
    RERUN = "ranks"

    def complete(self) -> Criterion:
        """Check that the ledger has exactly the edges of the data, in order, and ranks by the heads
        of the model."""
        ledger = self.ledger
        encoder = self.experiment.encoder
        functions = sorted(self.experiment.functions, key=attrgetter("index"))
        ours = stacked([function.edges for function in functions])
        begin = self.provenance.settings.begin
        heads = ledger.ranks.shape[2:]
        wrong = ""
        if encoder.begin != begin:
            wrong = f"the token in front is {begin}, but the model reads after {encoder.begin}"
        elif len(ledger) != len(ours):
            wrong = f"the ledger has {len(ledger)} edges, the data {len(ours)}"
        elif heads != (encoder.layers, encoder.heads):
            wrong = f"the ledger has ranks of {heads} layers and heads"
        if wrong:
            return Criterion("edges", False, wrong)
        differing = ledger.relation_names != ours.relation_names
        for column in ("function", "head", "first", "last", "tokens"):
            differing |= getattr(ledger, column) != getattr(ours, column)
        count = np.count_nonzero(differing)
        return Criterion("edges", count == 0, f"{count} of {len(ledger)} differ from the data's")

    @cached_property
    def counterpart(self) -> RankLedger | None:
        """The ledger of the result on the other split with the same settings, if it is in the same
        folder."""
        settings = self.provenance.settings
        split = "test" if settings.split == "validation" else "validation"
        pattern = settings.model_copy(update={"split": split}).name.rpartition(".")[0] + ".*.json"
        for file in sorted(self.file.parent.glob(pattern)):
            with contextlib.suppress(CodeSyntaxError):
                other = load(file)
                if alike(other) == alike(self.provenance):
                    return other.ledger
        return None

    @cached_property
    def _submitted(self) -> tuple[RankLedger, RankLedger | None, Collection[int]]:
        """As submissions have them: the ledger of the split that is scored; if it is here, that of
        the one on which heads are chosen; and the functions of the latter that were not read."""
        settings = self.provenance.settings
        ledger = self.ledger
        other = self.counterpart
        if other is None or other.ranks.shape[2:] != ledger.ranks.shape[2:]:
            return ledger, None, ()
        test, validation = (other, ledger) if settings.split == "validation" else (ledger, other)
        location = self.experiment.data.location
        alone = isinstance(location, datasets.Dataset)  # one split, without the other
        if alone or settings.limit is not None or settings.control is not None:
            return test, validation, ()
        splits = WholeSplits(location, settings.config, settings.direction)
        whole = splits.completed(validation, "validation")
        unread = np.setdiff1d(whole.function, validation.function).tolist()
        return splits.completed(test, "test"), whole, unread

    @property
    def _chosen_on(self) -> bool:
        """True if heads are chosen on this ledger, for another one."""
        return self._submitted[1] is not None and self.provenance.settings.split == "validation"

    @cached_property
    def _published(self) -> list[Mean]:
        return means(*self._submitted)

    def influence(self) -> Influence:
        test, validation, unread = self._submitted
        if validation is not None and self._chosen_on:
            return on_validation(self.ledger, validation, test, self._published, unread)
        return on_test(self.ledger, self._published)

    def compare(self, functions: Sequence[EncodedFunction]) -> RowComparison:
        settings = self.experiment.settings
        claimed = self.ledger.only(np.array([function.index for function in functions]))
        again = np.empty_like(claimed.ranks)
        outside = np.zeros(claimed.ranks.shape[1:], bool)
        runner = Runner(self.experiment.encoder, settings.direction, None)
        listener = partial(RankBounds, slack=SLACK[settings.precision])
        for part in self.parts(functions):
            bounds = runner.run(part, tqdm(disable=True), listener)
            edges_of = [np.flatnonzero(claimed.function == function.index) for function in part]
            places = np.concatenate(edges_of)
            again[:, places], least, most = np.moveaxis(bounds, -1, 0)
            ranks = claimed.ranks[:, places]
            impossible = (ranks < least) | (ranks > most)
            outside[places] = impossible.any(axis=0)
        if outside.any():
            edge, layer, head = np.argwhere(outside)[0]
            count = np.count_nonzero(outside)
            where = f"{claimed.relation_names[edge]} in function {claimed.function[edge]}"
            many = f"{count} of {outside.size} ranks differ by more than rounding"
            return RowComparison(f"{many}, as of {where} by head {layer}-{head}", False)
        reproduced = replace(claimed, ranks=again)
        by_protocol = self._published
        if self._chosen_on:  # of the scores on this split, whatever is chosen on it
            by_protocol = means(self.ledger, None)
        gained = _more_hits(claimed, reproduced, by_protocol)
        share = float((again != claimed.ranks).mean())
        finding = f"{share:.3%} of {again.size} ranks differ, all of them by rounding"
        return RowComparison(finding, True, gained)


def _more_hits(claimed: RankLedger, again: RankLedger, by_protocol: Sequence[Mean]) -> Points:
    """What each mean gains by claimed hits instead of reproduced ones, in points: (F,)."""
    functions = np.unique(claimed.function)
    gained = {}
    for mean in by_protocol:
        both = mean.hits(claimed, "claimed").join(mean.hits(again, "again"))
        points = np.zeros((len(CELLS), len(functions)))
        for name, weight in mean.weight.items():
            if name in both.groups:
                here = np.searchsorted(functions, both.of(name))
                points[:, here] += weight * both.groups[name].gained("claimed", "again")
        for cell, of_cell in zip(CELLS, points):
            gained[f"{mean.protocol}: {cell}"] = of_cell
    return gained


# ------------------------------------------------------------------------------------ masked syntax

MOST_UNSURE = 0.05
"""The largest share of predictions that rounding may decide."""

_EXACT = 1e-9  # two computations of one similarity


class CopiesVerifier(Verifier[Masking]):
    """Masks and restores functions again."""

    COUNTED = ("skips", "dropped")
    RERUN = "copies again"
    TOLERANCE: ClassVar = {
        **dict.fromkeys(FILLED, _EXACT),
        "log_probability": DECIMALS_APART,
    }

    def complete(self) -> Criterion:
        """Check that the ledger has as many copies of each function as there are to mask."""
        copies = {function.index: function.copies for function in self.experiment.functions}
        functions, counts = np.unique(self.ledger.rows["function"], return_counts=True)
        same = dict(zip(functions.tolist(), counts.tolist())) == copies
        return Criterion("copies", same, f"{len(self.ledger)} copies of {len(functions)} functions")

    def influence(self) -> Influence:
        """By T1, and by T1 - T0, of which both may have been changed; what is left out may have
        been the worst."""
        pairs = _pairs(self.ledger)
        least = _LEAST * pairs.contributions(_ALL)[0]
        return Influence(pairs.clusters, _both(pairs, _RAISED, _PARTED), least)

    def published(self, ledger: RowLedger) -> Points:
        pairs = _pairs(ledger)
        return _both(pairs, T1, _EFFECT)

    def rerun(self, functions: Sequence[MaskedFunction]) -> Rerun:
        parts = [self.experiment.rows(part, tqdm(disable=True)) for part in self.parts(functions)]
        ledgers, counts = zip(*parts)
        again = np.concatenate([ledger.rows for ledger in ledgers])
        order = np.lexsort((again["copy"], again["node_type"], again["function"]))
        rows = again[order]
        unsure = np.concatenate(counts)[order]
        similar = np.where(unsure > 0, 1.0, _EXACT)
        tolerance = {**self.TOLERANCE, HITS: unsure}
        tolerance |= dict.fromkeys(SIMILARITIES, similar)
        share = float(unsure.sum() / rows["masked"].sum())
        undecided = ""
        if share > MOST_UNSURE:
            ties = f"{share} of their predictions are near ties"
            undecided = f"{ties}, which rounding decides, so they cannot be checked"
        return Rerun(rows, tolerance, undecided)

    def row(self, row: np.ndarray) -> str:
        node_type = self.ledger.node_types[row["node_type"]]
        return f"copy {row['copy']} of {node_type} in function {row['function']}"


_EFFECT = "T1 - T0"
_RAISED, _PARTED = "at most T1", "at most T1 - T0"
_ALL = "all"
"""Systems beside T1: the effect; and the most by which both may have been raised, at most
by all."""


def _pairs(ledger: RowLedger) -> Hits:
    """Each pair of a function and a node type, in points, by similarities and restored sub-tokens;
    where trees could not be compared, T1 may have been anything."""
    rows = ledger.rows
    first = rows[rows["copy"] == 0]
    restored = rows[HITS] / rows["masked"]
    outcomes = np.stack([*(rows[name] for name in SIMILARITIES), restored])
    copies = 100 * outcomes.reshape(len(outcomes), len(first), -1)
    t1 = copies[..., 0]
    t0 = np.nan_to_num(copies[..., 1:]).mean(axis=-1)
    raised = np.nan_to_num(t1, nan=100)
    sums = {
        T1: np.nan_to_num(t1),
        _EFFECT: np.nan_to_num(t1) - t0,
        _RAISED: raised,
        _PARTED: raised + 100 - t0,
        _ALL: np.full(t1.shape, 100.0),
    }
    names = np.asarray(ledger.names, object)[first["node_type"]]
    measures = (*SIMILARITIES, "restored")
    return Hits.of_rows(first["function"], names, sums, measures, unit="points")


def _both(pairs: Hits, t1: str, effect: str) -> dict[str, np.ndarray]:
    """What each function adds to the means of two systems by each outcome."""
    added = {}
    for name, system in ((T1, t1), (_EFFECT, effect)):
        for outcome, points in zip(pairs.measures, pairs.contributions(system)):
            added[f"{outcome}: {name}"] = points
    return added


# ------------------------------------------------------------------------ rows of log-probabilities


class HeadsVerifier(Verifier[Ablation]):
    """Chooses heads again, and silences them in functions again."""

    COUNTED = ("skips", "left_out")
    TOLERANCE: ClassVar = {"log_probability": DECIMALS_APART}

    def counted(self) -> list[Criterion]:
        theirs = self.provenance.heads
        ours = self.experiment.provenance.heads
        other = [name for name in sorted(theirs | ours) if theirs.get(name) != ours.get(name)]
        finding = f"all {len(ours)} again"
        if other:
            finding = f"of other relations, or chosen otherwise, for {', '.join(other)}"
        return [*super().counted(), Criterion("heads", not other, finding)]

    def published(self, ledger: SilencingLedger) -> Points:
        """In hundredths of a nat: the mean cost over relations, and its difference to that of
        matched heads."""
        hits = silencing.hits(SilencingResult.from_ledger(ledger))
        whole, best, matched = (100 * hits.contributions(system)[0] for system in silencing.SYSTEMS)
        return {
            "cost: mean over relations": whole - best,
            "cost beyond matched heads: mean over relations": matched - best,
        }


class InformationVerifier(Verifier[Informing]):
    """Fits an information probe again."""

    COUNTED = ("skips", "left_out")
    TOLERANCE: ClassVar = dict.fromkeys(
        (f"{choice}_bits" for choice in (WORDS, BOTH)), DECIMALS_APART
    )

    def published(self, ledger: InformationLedger) -> Points:
        """In percent, and hundredths of a bit: the means over relations."""
        measured = information.hits(InformationResult.from_ledger(ledger))
        uas = _counted(measured["uas"])
        bits = _counted(measured["bits"])
        points = {finder: uas.contributions(finder)[0] for finder in information.FINDERS}
        words = 100 * bits.contributions(WORDS)[0]
        points["adds"] = words - 100 * bits.contributions(BOTH)[0]
        points["open"] = words
        return points


TEXT_ROUNDING = 0.02
"""Nats by which the log-probability of a text may differ in other batches or on another machine, in
float32."""

SPREAD = 3.0
"""Times the most by which two orders of batches differ in half precision, a claim may."""

_LAST_DIGIT = 2e-6  # of numbers with six decimals

S = TypeVar("S", bound=Scoring)


class _LogProbabilities(Verifier[S]):
    """Scores texts again."""

    def rerun(self, functions: Sequence[Any]) -> Rerun:
        rows = super().rerun(functions).rows
        tolerance = dict(self.TOLERANCE)
        if self.experiment.settings.precision != "float32":
            batched = self.experiment.scorer
            self.experiment.scorer = Scorer(self.experiment.model, 1)  # each text is a batch
            try:
                other = super().rerun(functions).rows
            finally:
                self.experiment.scorer = batched
            for name in tolerance:
                apart = np.abs(rows[name] - other[name])
                tolerance[name] += SPREAD * float(apart.max())
        return Rerun(rows, tolerance)


class PreferenceVerifier(_LogProbabilities[Preferring]):
    """Scores pairs again."""

    TOLERANCE: ClassVar = dict.fromkeys(
        (f"{text}_{score}" for text in ("good", "bad") for score in SCORES), TEXT_ROUNDING
    )

    def published(self, ledger: PreferenceLedger) -> Points:
        """In percent: the means over phenomena, by pair."""
        rows = ledger.rows
        numbers, pairs = np.unique(rows["phenomenon"], return_counts=True)
        few = frozenset(ledger.names[number] for number in numbers[pairs < LEAST_PAIRS])
        phenomena = [ledger.names[number] for number in rows["phenomenon"]]
        sums = {likelihood.MODEL: ledger.preferred().T}
        hits = Hits.of_rows(rows["function"], phenomena, sums, SCORES, left_out=few)
        return dict(zip(SCORES, _counted(hits).contributions(likelihood.MODEL)))


class SurprisalVerifier(_LogProbabilities[Surprising]):
    """Measures functions again."""

    COUNTED = ("skips", "unmatched")
    TOLERANCE: ClassVar = {
        f"{side}{name}": TEXT_ROUNDING if name == BITS else _LAST_DIGIT
        for side in ("", "control_")
        for name in MEASURED
    }

    def published(self, ledger: SurprisalLedger) -> Points:
        """In hundredths of a bit: by how much nodes are foreseen better than their controls, and
        than by 5-grams."""
        added = {}
        places = self.places(ledger)
        of_roles = likelihood.of_surprisal(SurprisalResult.from_ledger(ledger))
        for role, hits in of_roles.items():
            if not hits.names:
                continue
            counted = _counted(hits)
            here = np.searchsorted(places, hits.clusters)
            control = counted.contributions(likelihood.CONTROL)
            gained = control - counted.contributions(likelihood.NODE)
            for measure in (BITS, likelihood.OVER):
                points = np.zeros(len(places))
                points[here] = 100 * gained[hits.measures.index(measure)]
                added[f"{role}: {measure}"] = points
        return added


def _counted(hits: Hits) -> Hits:
    """The same, of which all groups are in the mean if none is."""
    if hits.counted:
        return hits
    return replace(hits, left_out=frozenset())
