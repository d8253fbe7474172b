"""The two protocols: where the attention head of each relation is chosen, for models and baselines
alike.

They are always reported side by side:

- *published* (Shen et al. 2022, section 4): each relation, rule and k uses the head that is best on
  the scored data.
- *held-out*: the head is chosen on the validation split and scored on the test split. `choose`
  never sees the data that `apply` scores; `choose_least` does, to the harm of a model that could
  not read all functions. A relation without edges to choose on is left out, and one in fewer than
  LEAST_FUNCTIONS functions is in no mean, which is over fewer than that of *published*, and does
  not compare with it.

What the chosen heads hit are `Hits`: relations are groups, functions are clusters, edges are what
there is to hit, and the measures are MEASURES, a rule and k each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from codesyntax_dataset.errors import LedgerError
from codesyntax_dataset.protocol import HELD_OUT, KS, PUBLISHED, TABLE_KS
from codesyntax_metric.topk_uas import NOT_IN_MEAN, RULES, WORST_RANK, score
from probing.evidence.redrawn import Best, Redrawn, drawn_again
from probing.instruments.attention.edges import EdgeTable
from probing.instruments.attention.ledger import RankLedger
from probing.stats.hits import Hits
from probing.stats.intervals import Estimate

MODEL = "model"
"""The system whose hits are those of a model's attention heads."""

MEASURES = tuple(product(RULES, KS))
"""Rule and k, in the order of the first axis of estimates."""

TABLE_MEASURES = tuple(product(RULES, map(int, TABLE_KS)))
"""Those of tables."""

ONE_GUESS = ((RULES[0], KS[0]),)
"""With one guess, by the rule `first`."""

_PLACES = np.array(KS) - 1
"""Where hits within k are, of all k from 1."""

_BY_RULE_AND_K = len(RULES), len(KS)

Choice = dict[str, np.ndarray]
"""Relation -> layer and head of the attention head by each rule and k of KS: integers (rules, k,
2)."""

LEAST_FUNCTIONS = 3
"""A relation in fewer functions is in no mean but the paper's: nothing shows how much it varies."""

TABLE_PLACES = [KS.index(int(k)) for k in TABLE_KS]
"""Where the k of tables are among KS."""


@dataclass(frozen=True, eq=False)
class ChosenHits:
    """The hits of chosen heads, of one system.

    `choice`: the heads, of relations that have edges to choose on; `hits` have no other groups.
    """

    system: str
    hits: Hits
    choice: Choice

    @property
    def relations(self) -> list[str]:
        return self.hits.names

    def only(self, relations: Iterable[str]) -> ChosenHits:
        """The same, restricted to these relations, such as those of the other protocol, so that
        means compare."""
        return replace(self, hits=self.hits.where(groups=relations))

    def at(self, measures: Sequence[tuple[str, int]]) -> ChosenHits:
        """The same, restricted to these of MEASURES."""
        return replace(self, hits=self.hits.where(measures=measures))


@dataclass(eq=False)
class Comparison:
    """The differences between what the systems `first` and `second` hit of the same edges, in
    points, by the M measures and R relations of `hits`, with p-values; computed when they are asked
    for."""

    hits: Hits

    @cached_property
    def mean(self) -> Estimate:
        """(M,), of the means over relations, which is a single test and not corrected."""
        return self.hits.mean("first", "second")

    @cached_property
    def by_relation(self) -> Estimate:
        """(M, R), p corrected over the relations (Holm 1979) within a measure."""
        return self.hits.by_group("first", "second")

    def of_mean(self, rule: str, k: int) -> Estimate:
        """The difference of the means."""
        return self.mean.at(self.hits.measures.index((rule, k)))

    def on(self, relation: str, rule: str, k: int) -> Estimate:
        """The difference on one of the relations."""
        row = self.hits.measures.index((rule, k))
        return self.by_relation.at(row, self.hits.names.index(relation))


def compare_hits(first: ChosenHits, second: ChosenHits) -> Comparison:
    """Compare two models, or a model and a baseline, on the relations of both.

    Raises LedgerError unless the two were scored on the same edges of the same functions.
    """
    hits = first.hits.named({first.system: "first"})
    return Comparison(hits.join(second.hits.named({second.system: "second"})))


def choose(ledger: RankLedger) -> Choice:
    """The best head of each rule, relation and k, ties as in `score`."""
    counts = ledger.counts()
    choice: Choice = {name: np.empty((*_BY_RULE_AND_K, 2), int) for name in counts.counts}
    for number, rule in enumerate(RULES):
        for name, cells in score(counts, KS, rule)["relations"].items():
            heads = [(cells[str(k)]["layer"], cells[str(k)]["head"]) for k in KS]
            choice[name][number] = heads
    return choice


def choose_least(validation: RankLedger, test: RankLedger, lost: EdgeTable) -> Choice:
    """The worst that `choose` could choose on `validation`, if the edges that are `lost`, since
    their functions were not read, had been ranked.

    Whatever heads find of these, the best one has at least as many hits of the others as the best
    there, less the lost edges. Of such heads, the one with the fewest hits on `test` counts: who
    reads less chooses no better.
    """
    choice = choose(validation)
    known = validation.counts()
    scored = test.counts()
    for name, edges in zip(*np.unique(lost.relation_names, return_counts=True)):
        if name not in scored.counts:
            continue
        heads = choice.setdefault(name, np.zeros((*_BY_RULE_AND_K, 2), int))
        for number, rule in enumerate(RULES):
            test_hits = scored.hits(name, rule).reshape(-1, WORST_RANK)
            possible = np.ones(test_hits.shape, bool)
            if name in known.counts:
                hits = known.hits(name, rule).reshape(-1, WORST_RANK)
                possible = hits >= hits.max(axis=0) - edges
            of_possible = np.where(possible, test_hits, test_hits.max() + 1)
            worst = of_possible.argmin(axis=0)[_PLACES]
            heads[number] = np.stack(np.divmod(worst, known.heads), axis=-1)
    return choice


def in_mean(relation: str, functions: int, protocol: str) -> bool:
    """True if a relation in so many functions is in the means of a protocol."""
    return relation not in NOT_IN_MEAN and (protocol == PUBLISHED or functions >= LEAST_FUNCTIONS)


def apply(
    ledger: RankLedger, choice: Choice, system: str = MODEL, protocol: str = HELD_OUT
) -> ChosenHits:
    """Score `ledger` with the heads that a protocol chose. Raises LedgerError for heads that the
    ledger does not have."""
    shape = ledger.ranks.shape[2:]
    chosen = np.zeros((2, *_BY_RULE_AND_K, len(ledger.relations)), np.intp)
    for number, name in enumerate(ledger.relations):
        if name not in choice:
            continue
        heads = choice[name]
        beyond = heads[(heads >= shape).any(axis=-1)]
        if len(beyond):
            layer, head = beyond[0]
            raise LedgerError(
                f"head {layer}-{head} was chosen for {name}, but the ledger has {shape[0]} layers of {shape[1]} "
                "heads: choose on a ledger of the same model"
            )
        chosen[..., number] = np.moveaxis(heads, -1, 0)
    layer, head = chosen.swapaxes(1, 2)  # (k, rules, relations)
    ranks = ledger.of_heads(layer, head)
    within = np.less(ranks, np.array(KS)[:, None, None], out=ranks.view(bool))  # in place
    del ranks
    within = within.swapaxes(0, 1).reshape(len(MEASURES), -1)
    every = Hits.of_rows(
        ledger.function,
        ledger.relation_names,
        {system: within},
        MEASURES,
        over=ledger.over,
    )
    groups = {name: group for name, group in every.groups.items() if name in choice}
    left_out = frozenset(
        name for name, group in groups.items() if not in_mean(name, len(group.places), protocol)
    )
    return ChosenHits(system, replace(every, groups=groups, left_out=left_out), choice)


def published(ledger: RankLedger, system: str = MODEL) -> ChosenHits:
    """The published protocol: the heads are chosen on the scored data."""
    return apply(ledger, choose(ledger), system, PUBLISHED)


def held_out(
    validation: RankLedger,
    test: RankLedger,
    edges: EdgeTable | None = None,
    system: str = MODEL,
) -> ChosenHits:
    """The held-out protocol: the heads are chosen on `validation` and scored on `test`.

    `edges`: all edges to choose on, of which the model could read those of `validation`.
    Raises what `check_alike` does.
    """
    check_alike(validation, test)
    lost = None if edges is None else unread(edges, validation)
    if lost:
        return apply(test, choose_least(validation, test, lost), system)
    return redrawn(apply(test, choose(validation), system), validation, test)


def most(hits: np.ndarray) -> np.ndarray:
    """Who finds most, the first of equals (N,), by what each finds (N, heads)."""
    return hits.argmax(axis=1)


def redrawn(
    chosen: ChosenHits,
    validation: RankLedger,
    test: RankLedger,
    best: Best = most,
) -> ChosenHits:
    """The same with what is chosen on `validation` drawn again, if it has enough to draw; by `best`,
    by default whoever finds most."""
    drawn = drawn_again(validation)
    if drawn is None:
        return chosen
    means = Redrawn(validation, test, drawn.clusters, best).mean
    return replace(chosen, hits=replace(chosen.hits, redrawn={chosen.system: means}))


def unread(edges: EdgeTable, ledger: RankLedger) -> EdgeTable:
    """The edges of functions that the ledger does not have."""
    return edges.take(~np.isin(edges.function, ledger.function))


def check_alike(validation: RankLedger, test: RankLedger) -> None:
    """Raise LedgerError unless these are ledgers of the same model and settings, and of two
    splits."""
    chosen = validation.settings.get("settings", {})
    scored = test.settings.get("settings", {})
    for name in sorted({*chosen, *scored} - {"split", "labels", "limit"}):
        if chosen.get(name) != scored.get(name):
            raise LedgerError(
                f"the heads were chosen with {name} {chosen.get(name)!r}, but are scored with {scored.get(name)!r}: "
                "probe both splits in the same way"
            )
    if chosen and chosen["split"] == scored["split"]:
        raise LedgerError(
            f"both ledgers are of the split {chosen['split']}: choose on another, such as validation"
        )
