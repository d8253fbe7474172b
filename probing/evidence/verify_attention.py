"""Verify a result on attention: the ranks of some functions are made again, and compared with its ledger.

*Which functions.* Those on which published scores depend. On `test`, a function contributes to a mean its hits by the
heads of a protocol. On `validation`, where two protocols choose their heads, hits move no score but choices: of a
relation, another head would have been chosen if it had M more hits, against the chosen one, and the score would be G
points lower. A function in which they can change by s at most gives up to min(1, s / M) of G: of all heads, the one for
which that is most counts. Sums of these are at least what any set of functions gains. Edges of functions that were not
read count as hits of any head (`choose_least`).

*What is compared.* Every rank of these functions, by all heads. With each rank, the best and the worst possible rank
are computed, if each weight were off by the fraction SLACK due to rounding: a single claimed rank outside rejects the
result. Within these bounds rounding favours the result as often as not: if the differences favour it by more than
MOST_BIASED standard deviations, for a head or for a score, or a mean by more points than `by_rounding` accepts, the
result is rejected, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import NamedTuple

import datasets
import numpy as np

from codesyntax_dataset.errors import CodeSyntaxError
from codesyntax_dataset.protocol import BEYOND_OFFSET, HELD_OUT, PUBLISHED, TABLE_KS
from codesyntax_metric.topk_uas import NOT_IN_MEAN, RULES, WORST_RANK
from probing.evidence.beyond import beyond
from probing.evidence.checks import Again, Criterion, Influence, Verifier, in_deviations
from probing.evidence.gather import WholeSplits
from probing.evidence.protocols import TABLE_MEASURES, TABLE_PLACES, Choice, apply, choose, choose_least
from probing.instruments.attention.edges import stacked
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.offsets import AVOIDED, Offsets, is_hard
from probing.instruments.attention.probe import Probing, Runner
from probing.instruments.attention.ranking import EncodedFunction, RankBounds
from probing.instruments.attention.result import load

SLACK = {"float32": 1e-3, "bfloat16": 0.4}
"""The relative difference of a weight that is allowed when a function is probed again: other batches round sums
differently. For the embedded encoder and random models of 2 and 12 layers, whose weights are sharper, batches of 1 and
of up to 40 functions differed by less than 1e-4 in float32, and by less than 0.3 in bfloat16."""

_LEAST = 0.05
"""The share of what its edges weigh by which a function is drawn at least: whatever heads claim, somebody looks."""

PART = f"any relation, {RULES[0]}, k = {TABLE_KS[0]}"
"""The name of scores of single relations."""

CELLS = [f"{rule}, k = {k}" for rule in RULES for k in TABLE_KS]
"""The names of a protocol's means, without the protocol."""


class Mean(NamedTuple):
    """The means of a protocol, by each rule and k: the heads that it chooses, the distances that its edges avoid, if
    any, and relation -> the points that one of its edges weighs."""

    protocol: str
    choice: Choice
    offsets: Offsets | None
    weight: dict[str, float]

    @property
    def among(self) -> int:
        """Over how many relations it is a mean."""
        return max(1, sum(name not in NOT_IN_MEAN for name in self.weight))

    def edges(self, ledger: RankLedger) -> RankLedger:
        """Those that count."""
        return ledger if self.offsets is None else ledger.take(is_hard(ledger, self.offsets))

    def points(self, ledger: RankLedger) -> tuple[np.ndarray, np.ndarray]:
        """The contribution of each function by its relations: its place (F,), and points (rules * k, F, R)."""
        chosen = apply(self.edges(ledger), self.choice).at(TABLE_MEASURES)
        points = np.zeros((len(TABLE_MEASURES), len(chosen.functions), len(chosen.relations)), np.float32)
        for column, (name, group) in enumerate(chosen.hits.groups.items()):
            points[:, group.places, column] = self.weight.get(name, 0.0) * group.sums[chosen.system].sums
        return chosen.functions, points


def means(test: RankLedger, validation: RankLedger | None, unread: Collection[int] = ()) -> list[Mean]:
    """The published means of these ledgers; without `validation`, those of the protocol *published* alone.

    `unread`: the functions of `validation` that the model could not read.
    """
    found = [_mean(PUBLISHED, choose(test), None, test, test.relations)]
    if validation is None:
        return found
    chosen = choose_least(validation, test, unread) if len(unread) else choose(validation)
    found.append(_mean(HELD_OUT, chosen, None, test, [*chosen]))
    hard = beyond(validation, test, AVOIDED[0], unread)
    if hard is not None and hard.in_mean:
        left = test.take(is_hard(test, hard.offsets))
        found.append(_mean(BEYOND_OFFSET, hard.chosen.choice, hard.offsets, left, hard.chosen.relations))
    return found


def _mean(protocol: str, choice: Choice, offsets: Offsets | None, test: RankLedger, relations: list[str]) -> Mean:
    edges = dict(zip(test.relations, np.bincount(test.relation, minlength=len(test.relations)).tolist()))
    counted = [name for name in relations if edges.get(name)]
    among = max(1, sum(name not in NOT_IN_MEAN for name in counted))
    return Mean(protocol, choice, offsets, {name: 100 / among / edges[name] for name in counted})


def on_test(ledger: RankLedger, test: RankLedger, published: Sequence[Mean]) -> Influence:
    """The influence of the functions of a `ledger` of the split that is scored on the published means of `test`."""
    influence = _without_means(ledger)
    for mean in published:
        functions, points = mean.points(test)
        for cell, of_cell in zip(CELLS, points):
            influence.add(f"{mean.protocol}: {cell}", functions, of_cell.sum(axis=1))
        for of_relation in points[0].T:
            influence.add_part(f"{mean.protocol}: {PART}", functions, of_relation * mean.among)
    return influence


def on_validation(
    ledger: RankLedger,
    validation: RankLedger,
    test: RankLedger,
    published: Sequence[Mean],
    unread: Collection[int] = (),
) -> Influence:
    """The influence of the functions of a `ledger` of the split on which heads are chosen: those of the published means
    that choose on `validation`."""
    influence = _without_means(ledger)
    for mean in published[1:]:
        chosen_on, scored = mean.edges(validation), mean.edges(test)
        totals = scored.counts()
        for number, rule in enumerate(RULES):
            for name, functions, edges, hits in _by_relation(chosen_on, rule):
                if name not in mean.weight:
                    continue
                found = totals.hits(name, rule).reshape(-1, WORST_RANK)  # (heads, k)
                lost = int(edges[np.isin(functions, list(unread))].sum())
                for k, of_k, (layer, head) in zip(TABLE_KS, hits, mean.choice[name][number, TABLE_PLACES].tolist()):
                    best = layer * totals.heads + head
                    points = mean.weight[name] * _of_choice(edges, of_k, found[:, int(k) - 1], best, lost)
                    influence.add(f"{mean.protocol}: {rule}, k = {k}", functions, points)
                    if (rule, k) == (RULES[0], TABLE_KS[0]):
                        influence.add_part(f"{mean.protocol}: {PART}", functions, points * mean.among)
    return influence


def _of_choice(edges: np.ndarray, hits: np.ndarray, scored: np.ndarray, chosen: int, lost: int) -> np.ndarray:
    """Hits on test that functions may have gained by the choice of a head: (f,).

    `edges` (f,) and `hits` (f, heads) of functions of validation, of which `lost` edges were not read; `scored`
    (heads,): hits on test; `chosen`: the head.
    """
    totals = hits.sum(axis=0)
    best, worse = int(totals.argmax()), np.flatnonzero(scored < scored[chosen])
    if not len(worse):
        return np.zeros(len(edges))
    margin = np.maximum(totals[best] - lost - totals[worse], 1)
    swing = hits[:, [best]] + edges[:, None] - hits[:, worse]
    return (np.minimum(swing / margin, 1) * (scored[chosen] - scored[worse])).max(axis=1)


def _by_relation(ledger: RankLedger, rule: str) -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
    """Each relation, its functions (f,), their edges (f,), and the hits of every head: integers (k, f, heads)."""
    key = ledger.relation.astype(np.int64) << 32 | ledger.function
    pairs, pair, edges = np.unique(key, return_inverse=True, return_counts=True)
    hits = np.zeros((len(TABLE_KS), len(pairs), int(np.prod(ledger.ranks.shape[2:]))), np.int32)
    for part, ranks in ledger.parts():
        order = np.argsort(pair[part], kind="stable")
        of_rule, here = ranks[RULES.index(rule)].reshape(len(order), -1)[order], pair[part][order]
        starts = np.flatnonzero(np.diff(here, prepend=-1))
        for place, k in enumerate(TABLE_KS):
            hits[place, here[starts]] += np.add.reduceat(of_rule < int(k), starts, axis=0, dtype=np.int32)
    relation, function = pairs >> 32, pairs & (2**32 - 1)
    for number in np.unique(relation).tolist():
        of = relation == number
        yield ledger.relations[number], function[of], edges[of], hits[:, of]


def _without_means(ledger: RankLedger) -> Influence:
    """The influence of the functions of a ledger, with the points by which each is drawn at least."""
    edges = np.bincount(ledger.relation, minlength=len(ledger.relations))
    places, row = np.unique(ledger.function, return_inverse=True)
    weighs = 100 / np.count_nonzero(edges) / edges[ledger.relation]
    return Influence(places, {}, {}, _LEAST * np.bincount(row, weights=weighs))


class RanksVerifier(Verifier[Probing]):
    """Compares ranks."""

    COUNTED = ("skips", "ties")
    AGAIN = "ranks"

    @staticmethod
    def places(ledger: RankLedger) -> np.ndarray:
        return np.unique(ledger.function)

    def complete(self) -> Criterion:
        """Check that the ledger has exactly the edges of the data, in order, and ranks by the heads of the model."""
        ledger, encoder = self.ledger, self.experiment.encoder
        ours = stacked([function.edges for function in self.experiment.functions])
        if len(ledger) != len(ours):
            return Criterion("edges", False, f"the ledger has {len(ledger)} edges, the data {len(ours)}")
        if ledger.ranks.shape[2:] != (encoder.layers, encoder.heads):
            return Criterion("edges", False, f"the ledger has ranks of {ledger.ranks.shape[2:]} layers and heads")
        order = np.argsort(ours.function, kind="stable")
        names = np.asarray(ours.relations, dtype=object)[ours.relation[order]]
        differing = np.asarray(ledger.relations, dtype=object)[ledger.relation] != names
        for column in ("function", "head", "first", "last", "tokens"):
            differing |= getattr(ledger, column) != getattr(ours, column)[order]
        count = int(differing.sum())
        return Criterion("edges", count == 0, f"{count} of {len(ledger)} differ from the data's")

    @cached_property
    def counterpart(self) -> RankLedger | None:
        """The ledger of the result on the other split with the same settings, if it is in the same folder."""
        settings = self.made.settings
        split = "test" if settings.split == "validation" else "validation"
        pattern = settings.model_copy(update={"split": split}).name.rpartition(".")[0] + ".*.json"
        alike = {"split": settings.split, "labels": settings.labels, "limit": settings.limit}
        for file in sorted(self.file.parent.glob(pattern)):
            try:
                other = load(file)
            except CodeSyntaxError:
                continue
            if other.settings.model_copy(update=alike) == settings:
                return other.ledger
        return None

    @cached_property
    def _submitted(self) -> tuple[RankLedger, RankLedger | None, np.ndarray]:
        """As entries have them: the ledger of the split that is scored; if it is here, that of the one on which heads
        are chosen; and the functions of the latter that were not read."""
        settings, ledger, other, none = self.made.settings, self.ledger, self.counterpart, np.array([], int)
        if other is None or other.ranks.shape[2:] != ledger.ranks.shape[2:]:
            return ledger, None, none
        test, validation = (other, ledger) if settings.split == "validation" else (ledger, other)
        alone = isinstance(self.experiment.data.location, datasets.Dataset)  # one split, without the other
        if alone or settings.limit is not None or settings.control is not None:
            return test, validation, none
        splits = WholeSplits(self.experiment.data.location, settings.config, settings.direction)
        test, whole = splits.completed(test, "test"), splits.completed(validation, "validation")
        return test, whole, np.setdiff1d(whole.function, validation.function)

    @property
    def _chosen_on(self) -> bool:
        """True if heads are chosen on this ledger, for another one."""
        return self._submitted[1] is not None and self.made.settings.split == "validation"

    @cached_property
    def _published(self) -> list[Mean]:
        return means(*self._submitted)

    def influence(self) -> Influence:
        test, validation, unread = self._submitted
        if validation is not None and self._chosen_on:
            return on_validation(self.ledger, validation, test, self._published, unread)
        return on_test(self.ledger, test, self._published)

    def compare(self, functions: Sequence[EncodedFunction]) -> Again:
        """Compare ranks with what they are again, except for unbiased rounding."""
        settings = self.experiment.settings
        claimed = self.ledger.only(np.array([function.index for function in functions]))
        again, outside = np.empty_like(claimed.ranks), np.zeros(claimed.ranks.shape[1:], bool)
        runner = Runner(self.experiment.encoder, settings.direction, None)
        listener = partial(RankBounds, slack=SLACK[settings.precision])
        for part, bounds in self.in_parts(functions, lambda part, bar: runner.run(part, bar, listener)):
            ends = np.searchsorted(claimed.function, [[function.index, function.index + 1] for function in part])
            places = np.concatenate([np.arange(start, end) for start, end in ends])
            again[:, places] = bounds[..., 0]
            theirs = claimed.ranks[:, places]
            outside[places] = ((theirs < bounds[..., 1]) | (theirs > bounds[..., 2])).any(axis=0)
        if count := int(outside.sum()):
            edge, layer, head = np.argwhere(outside)[0]
            relation, function = claimed.relations[claimed.relation[edge]], claimed.function[edge]
            where = f"{relation} in function {function} by head {layer}-{head}"
            return Again(f"{count} of {outside.size} ranks differ by more than rounding, as of {where}", False)
        reproduced, published = replace(claimed, ranks=again), self._published
        if self._chosen_on:  # of the scores on this split, whatever is chosen on it
            published = means(self.ledger, None)
        return Again(
            f"{float((again != claimed.ranks).mean()):.3%} of {again.size} ranks differ, all of them by rounding",
            bias=_bias(claimed, reproduced, [mean.choice for mean in published if mean.protocol != PUBLISHED]),
            gained=_gained(claimed, reproduced, published),
        )


def _gained(claimed: RankLedger, again: RankLedger, published: Sequence[Mean]) -> dict[str, np.ndarray]:
    """The name of each mean -> points that each function gains by the claim."""
    functions = np.unique(claimed.function)
    gained = {}
    for mean in published:
        chosen = [mean, mean]
        if mean.protocol == PUBLISHED:  # a choice on one of the two would favour it
            chosen = [mean._replace(choice=choose(ledger)) for ledger in (claimed, again)]
        (places, theirs), (_, ours) = chosen[0].points(claimed), chosen[1].points(again)
        for cell, points in zip(CELLS, (theirs - ours).sum(axis=-1)):
            gained[f"{mean.protocol}: {cell}"] = np.zeros(len(functions))
            gained[f"{mean.protocol}: {cell}"][np.searchsorted(functions, places)] = points
    return gained


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
        hits = apply(claimed, choice, "claimed").hits.join(apply(again, choice, "again").hits)
        of_mean = hits.contributions("claimed") - hits.contributions("again")  # (M, F)
        found.append((float(in_deviations(of_mean.T).max()), "the mean score"))
        for name, group in hits.groups.items():
            gained = group.sums["claimed"].sums.astype(np.int64) - group.sums["again"].sums
            found.append((float(in_deviations(gained.T).max()), f"the score of {name}"))
    return max(found)
