"""Choosing the attention head of each relation, for models and baselines alike.

Two protocols, always reported side by side:

- *published* (Shen et al. 2022, section 4): each relation, rule and k uses the head that is best on the scored data.
- *held-out*: the head is chosen on the validation split and scored on the test split. `choose` never sees the data that
  `apply` scores; `choose_least` does, to the harm of a model that could not read all functions. A relation without
  edges to choose on is excluded from the mean, and listed; the mean of *published* that compares with it is over the
  same relations, SAME_RELATIONS.

*Hits* of chosen heads are counted by function, and summed over functions that are drawn or exchanged at random.
Of a whole dataset most of these numbers are the same, or 0: a relation is in a part of the functions, and its hits are
often equal for several rules and k. They are therefore kept relation by relation, for its functions only and once for
each distinct column, and summed in this form. Sums of whole numbers in float32 are exact below 2**24 edges, in any
order, so they are what sums over all functions are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from codesyntax_dataset.errors import LedgerError
from codesyntax_dataset.protocol import KS, TABLE_KS
from codesyntax_metric.topk_uas import NOT_IN_MEAN, RULES, WORST_RANK, score
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.result import ProbeResult
from probing.stats.statistics import unexchanged

SAME_RELATIONS = "published, held-out's relations"
"""The scores of *published* over the relations of *held-out*, which compare with those of *held-out*."""

_PLACES = np.array(KS) - 1
"""Where hits within k are, of all k from 1."""

_WORST = max(KS)
"""As good as any rank behind it."""

Choice = dict[str, np.ndarray]
"""Relation -> layer and head of the attention head by each rule and k of KS: integers (rules, k, 2)."""

TABLE_PLACES = [KS.index(int(k)) for k in TABLE_KS]
"""Where the k of tables are among KS."""

_AT_ONCE = 128
"""Draws or exchanges of a relation's functions in memory at once, which fit a processor's cache: a multiple of 8, as
exchanges are kept as bits."""


@dataclass(frozen=True, eq=False)
class Found:
    """The counts of one relation in the f functions that have it, such as its hits.

    `places` (f,): which functions these are; `edges` int64 (f,); `columns`: integers (columns, f), each column once;
    `which` (rules, k): the index in `columns`.
    """

    places: np.ndarray
    edges: np.ndarray
    columns: np.ndarray
    which: np.ndarray

    @classmethod
    def of(cls, places: np.ndarray, edges: np.ndarray, counts: np.ndarray) -> Found:
        """From `counts` (rules, k, f)."""
        rules, ks, functions = counts.shape
        distinct: dict[bytes, int] = {}
        rows = np.ascontiguousarray(counts.reshape(rules * ks, functions))
        which = [distinct.setdefault(row.tobytes(), len(distinct)) for row in rows]
        firsts = np.unique(which, return_index=True)[1]
        return cls(places, edges.astype(np.int64), rows[firsts], np.reshape(which, (rules, ks)))

    @property
    def counts(self) -> np.ndarray:
        """(rules, k, f)."""
        return self.columns[self.which]

    @property
    def total(self) -> np.ndarray:
        """Over all functions: int64 (rules, k)."""
        return self.columns.sum(axis=1, dtype=np.int64)[self.which]

    def minus(self, other: Found, places: Sequence[int] | slice = slice(None)) -> Found:
        """The differences to another one of the same edges, at some places on the axis of k."""
        return Found.of(self.places, self.edges, self.counts[:, places].astype(np.int32) - other.counts[:, places])


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The hits of the chosen heads by function: F functions, R relations sorted by name.

    `functions` (F,): positions in the split; `edges`: int32 (F, R); `found`: the hits of each relation. `unchosen`:
    relations that have edges to score but none to choose on, with their number of edges; not in `relations`.
    """

    relations: list[str]
    functions: np.ndarray
    edges: np.ndarray
    found: list[Found]
    choice: Choice
    unchosen: dict[str, int]

    @property
    def in_mean(self) -> np.ndarray:
        """Which relations count in the mean: bool (R,)."""
        return np.array([name not in NOT_IN_MEAN for name in self.relations], bool)

    def content(self) -> Iterator[bytes]:
        """All that statistics of these outcomes depend on."""
        yield repr([self.relations, len(self.functions), self.shape, self.edges.flags.f_contiguous]).encode()
        for found in self.found:
            for array in (found.places, found.edges, found.columns, found.which):
                yield repr(array.shape).encode()
                yield np.ascontiguousarray(array, np.int64).tobytes()

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of rules and of k."""
        return self.found[0].which.shape if self.found else (len(RULES), len(KS))

    @property
    def hits(self) -> np.ndarray:
        """The hits of all functions, most of them 0: integers (rules, k, F, R)."""
        kind = np.result_type(np.int16, *(found.columns.dtype for found in self.found))
        dense = np.zeros((len(self.found), *self.shape, len(self.functions)), kind)
        for found, of_relation in zip(self.found, dense):
            of_relation[..., found.places] = found.counts
        return np.moveaxis(dense, 0, -1)

    @property
    def total(self) -> np.ndarray:
        """The hits in all functions: int64 (rules, k, R)."""
        totals = np.array([found.total for found in self.found], np.int64).reshape(-1, *self.shape)
        return np.moveaxis(totals, 0, -1)

    def only(self, relations: Iterable[str]) -> Outcomes:
        """The same, restricted to these relations, such as those of the other protocol, so that means compare."""
        columns = [self.relations.index(name) for name in sorted(relations)]
        names = [self.relations[column] for column in columns]
        return replace(self, relations=names, edges=self.edges[:, columns], found=[self.found[at] for at in columns])

    def at(self, rules: Sequence[str], ks: Sequence[int]) -> Outcomes:
        """The same, restricted to these of RULES and KS."""
        cells = np.ix_([RULES.index(rule) for rule in rules], [KS.index(k) for k in ks])
        return replace(
            self, found=[Found.of(one.places, one.edges, one.columns[one.which[cells]]) for one in self.found]
        )

    @property
    def one_guess(self) -> Outcomes:
        """The same with one guess, by the rule `first`."""
        return self.at(RULES[:1], KS[:1])


def resampled(parts: Sequence[Found], functions: int, resamples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Sums over functions drawn with replacement: of edges (B, R), and of counts (B, rules * k, R), both float32."""
    weight = _weights(functions, resamples, seed)
    edges = np.empty((resamples, len(parts)), np.float32)
    counts = np.empty((resamples, parts[0].which.size, len(parts)), np.float32)
    for number, part in enumerate(parts):
        columns, which = np.vstack([part.edges, part.columns]).astype(np.float32), 1 + part.which.ravel()
        for start in range(0, resamples, _AT_ONCE):
            drawn = slice(start, min(start + _AT_ONCE, resamples))
            sums = columns @ weight[part.places, drawn].astype(np.float32)
            edges[drawn, number] = sums[0]
            counts[drawn, :, number] = sums[which].T
    return edges, counts


def exchanged(parts: Sequence[Found], functions: int, permutations: int, seed: int) -> Iterator[list[np.ndarray]]:
    """Sums of the columns of each part over functions, each exchanged (its sign changed) or not, at random.

    Yields the parts' sums (columns, exchanges), some exchanges at a time.
    """
    rows = [part.columns.any(axis=0) for part in parts]  # what is 0 has no sign
    places = [part.places[kept] for part, kept in zip(parts, rows)]
    columns = [part.columns[:, kept].astype(np.float32) for part, kept in zip(parts, rows)]
    for bits, number in _blocks(functions, permutations, seed):
        yield [_sums(of_part, bits[at], number) for of_part, at in zip(columns, places)]


def exchanged_together(table: np.ndarray, permutations: int, seed: int) -> Iterator[np.ndarray]:
    """The same for float64 (n, F), such as weighted sums of all relations: yields (n, exchanges)."""
    for bits, number in _blocks(table.shape[1], permutations, seed):
        yield _sums(table, bits, number)


def _blocks(functions: int, permutations: int, seed: int) -> Iterator[tuple[np.ndarray, int]]:
    """The exchanges, some at a time, as bits (F, exchanges / 8), and how many they are."""
    exchanges = _exchanges(functions, permutations, seed)
    for start in range(0, permutations, _AT_ONCE):
        bits = np.ascontiguousarray(exchanges[:, start // 8 : (start + _AT_ONCE) // 8])
        yield bits, min(_AT_ONCE, permutations - start)


def _sums(columns: np.ndarray, bits: np.ndarray, number: int) -> np.ndarray:
    """The sums (columns, exchanges) of `columns` (columns, f), each of the f with its sign."""
    kept = np.unpackbits(bits, axis=1, count=number).astype(columns.dtype)
    return 2 * (columns @ kept) - columns.sum(axis=1, keepdims=True)


@lru_cache(maxsize=4)
def _weights(functions: int, resamples: int, seed: int) -> np.ndarray:
    """The number of times each function is drawn in each resample: (F, B)."""
    drawn = np.random.default_rng(seed).multinomial(functions, np.full(functions, 1 / functions), resamples)
    return np.ascontiguousarray(drawn.T, np.min_scalar_type(drawn.max(initial=0)))


@lru_cache(maxsize=4)
def _exchanges(functions: int, permutations: int, seed: int) -> np.ndarray:
    """Which functions keep their sign in each exchange, as bits: uint8 (F, exchanges / 8)."""
    some = unexchanged(functions, permutations, seed, _AT_ONCE)
    return np.hstack([np.packbits(kept.T.astype(bool), axis=1) for kept in some])


def choose(ledger: RankLedger) -> Choice:
    """The best head of each rule, relation and k, ties as in `score`."""
    counts = ledger.counts()
    by_rule = [score(counts, KS, rule)["relations"] for rule in RULES]
    return {name: _heads([of_rule[name] for of_rule in by_rule]) for name in by_rule[0]}


def choose_least(validation: RankLedger, test: RankLedger, unread: Collection[int]) -> Choice:
    """The worst that `choose` could choose on `validation`, if the functions `unread` of it had been read.

    Whatever heads find in these, the best one has at least as many hits in the others as the best there, less the edges
    of these. Of such heads, the one with the fewest hits on `test` counts: who reads less chooses no better.
    """
    choice, lost = choose(validation), np.isin(validation.function, list(unread))
    known, scored = validation.counts(), test.counts()
    for column in np.unique(validation.relation[lost]).tolist():
        name, edges = validation.relations[column], np.count_nonzero(lost & (validation.relation == column))
        for number, rule in enumerate(RULES) if name in scored.counts else ():
            hits, found = (counts.hits(name, rule).reshape(-1, WORST_RANK) for counts in (known, scored))
            possible = hits >= hits.max(axis=0) - edges
            worst = np.where(possible, found, found.max() + 1).argmin(axis=0)
            choice[name][number] = np.stack(np.divmod(worst[_PLACES], known.heads), axis=-1)
    return choice


def choice_of(result: ProbeResult) -> Choice:
    """The heads of the scores of a result: what `choose` chooses on its ledger."""
    return {name: _heads([entry[rule] for rule in RULES]) for name, entry in result.relations.items()}


def _heads(by_rule: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """Layers and heads (rules, k, 2), from those by k for each rule."""
    return np.array([[(cells[str(k)]["layer"], cells[str(k)]["head"]) for k in KS] for cells in by_rule])


def apply(ledger: RankLedger, choice: Choice) -> Outcomes:
    """Score `ledger` with chosen heads. Raises LedgerError for heads that the ledger does not have."""
    return apply_each(ledger, [choice])[0]


def apply_each(ledger: RankLedger, choices: Sequence[Choice]) -> list[Outcomes]:
    """The same for several choices of heads, for which the ranks are read once."""
    guesses = [_heads_by_guess(ledger, choice) for choice in choices]
    ranks = np.minimum(ledger.of_heads(*np.concatenate(guesses, axis=1)), _WORST)  # (all guesses, rules, E)
    ends = np.cumsum([heads.shape[1] for heads in guesses])[:-1]
    return [_outcomes(ledger, choice, own) for choice, own in zip(choices, np.split(ranks, ends))]


def _outcomes(ledger: RankLedger, choice: Choice, ranks: np.ndarray) -> Outcomes:
    """The hits of a choice, from the ranks (guesses, rules, E) of its heads as in `_heads_by_guess`."""
    functions, row = np.unique(ledger.function, return_inverse=True)
    present = np.bincount(ledger.relation, minlength=len(ledger.relations))
    names = sorted(name for name, edges in zip(ledger.relations, present) if edges)
    chosen = [name for name in names if name in choice]
    edges, found = np.zeros((len(functions), len(chosen)), np.int32), []
    for column, name in enumerate(chosen):
        number = ledger.relations.index(name)
        index = np.flatnonzero(ledger.relation == number)
        edges[:, column] = np.bincount(row[index], minlength=len(functions))
        places, own = np.unique(row[index], return_inverse=True)
        of_relation = edges[places, column]
        small = np.int16 if of_relation.max() < 2**15 else np.int32
        hits = np.zeros((len(RULES), len(KS), len(places)), small)
        for rule, heads_by_k in enumerate(choice[name]):
            distinct, which = _distinct(heads_by_k)
            for guess in range(len(distinct)):
                cells = own * (_WORST + 1) + ranks[guess, rule, index]
                counts = np.bincount(cells, minlength=len(places) * (_WORST + 1))
                within = counts.reshape(len(places), -1).cumsum(axis=1)  # (f, ranks)
                hits[rule, which == guess] = within.T[_PLACES[which == guess]]
        found.append(Found.of(places, of_relation, hits))
    unchosen = {name: int(present[ledger.relations.index(name)]) for name in names if name not in chosen}
    return Outcomes(chosen, functions, edges, found, choice, unchosen)


def _heads_by_guess(ledger: RankLedger, choice: Choice) -> np.ndarray:
    """Layers and heads (2, n, rules, relations of the ledger): the distinct ones that a relation chose, in order."""
    layers, heads = ledger.ranks.shape[2:]
    names = [ledger.relations[number] for number in np.unique(ledger.relation)]
    distinct = {
        (rule, name): _distinct(choice[name][rule])[0] for rule in range(len(RULES)) for name in names if name in choice
    }
    most = max(map(len, distinct.values()), default=0)
    cells = np.zeros((2, most, len(RULES), len(ledger.relations)), np.intp)
    for (rule, name), chosen in distinct.items():
        if (beyond := (chosen >= (layers, heads)).any(axis=1)).any():
            layer, head = chosen[beyond.argmax()]
            raise LedgerError(
                f"head {layer}-{head} was chosen for {name}, but the ledger has {layers} layers of {heads} "
                "heads: choose on a ledger of the same model"
            )
        cells[:, : len(chosen), rule, ledger.relations.index(name)] = chosen.T
    return cells


def _distinct(heads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct ones of heads (k, 2), in order, and for each of them which that is (k,)."""
    numbers, which = np.unique(heads @ (1 << 32, 1), return_inverse=True)  # much faster than over an axis
    return np.stack(np.divmod(numbers, 1 << 32), axis=-1), which


def published(ledger: RankLedger) -> Outcomes:
    """The published protocol: the heads are chosen on the scored data."""
    return apply(ledger, choose(ledger))


def held_out(validation: RankLedger, test: RankLedger, unread: Collection[int] = ()) -> Outcomes:
    """The held-out protocol: the heads are chosen on `validation` and scored on `test`.

    `unread`: the functions of `validation` that the model could not read.
    Raises what `check_alike` does.
    """
    check_alike(validation, test)
    return apply(test, choose_least(validation, test, unread) if len(unread) else choose(validation))


def check_alike(validation: RankLedger, test: RankLedger) -> None:
    """Raise LedgerError unless these are ledgers of the same model and settings, and of two splits."""
    one, other = (ledger.settings.get("settings", {}) for ledger in (validation, test))
    for name in sorted({*one, *other} - {"split", "labels", "limit"}):
        if one.get(name) != other.get(name):
            raise LedgerError(
                f"the heads were chosen with {name} {one.get(name)!r}, but are scored with {other.get(name)!r}: "
                "probe both splits in the same way"
            )
    if one and one["split"] == other["split"]:
        raise LedgerError(f"both ledgers are of the split {one['split']}: choose on another, such as validation")
