"""What no run of a model can give, however consistent it is: the checks of submissions, one after
the other.

Each yields whether it stands in a submission, and the reason. A check may rely on those before it
not standing there. That hits are no more than there is to hit, and no fewer than none, is checked
where files are read (`probing.stats.hits_file`); that numbers are those of a model, only running it
again tells (`probing.evidence.verify`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from codesyntax_dataset.languages import language_of, variant_of
from codesyntax_dataset.protocol import (
    BASELINES,
    BEYOND_OFFSET,
    HELD_OUT,
    PUBLISHED,
    TABLE_KS,
)
from codesyntax_metric.topk_uas import RULES
from probing.evidence.baselines import KINDS
from probing.evidence.beyond import LEAST_HARD_EDGES
from probing.evidence.protocols import MODEL, TABLE_MEASURES
from probing.evidence.submission import Tables
from probing.instruments.masking import masking
from probing.instruments.masking.hits import ARMS, T1
from probing.instruments.masking.result import MaskSettings
from probing.runs.ledger_file import MASKING
from probing.runs.records import shown
from probing.stats.hits import Hits
from probing.stats.intervals import FEW_CLUSTERS

Problems = Iterator[tuple[Any, str]]

# whose modules import this one
AttentionSubmission: TypeAlias = Any
MaskedSubmission: TypeAlias = Any

NO_RELATIONS = "no relations"
"""Why a function is skipped that has nothing to score; skipped for another reason, it is missed."""

_PROTOCOLS = ((PUBLISHED, HELD_OUT), (PUBLISHED, HELD_OUT, BEYOND_OFFSET))

_MANY = 10
"""With so many relations, held-out heads are never all the best ones: of two models, 32 and 56 % of
the scores were."""

_MOST_EDGES = 10**6  # of a relation in a function
_BY_K = (len(RULES), len(TABLE_KS), -1)


# ----------------------------------------------------------------------------------------------------------- attention


def of_attention(entry: AttentionSubmission, tables: Tables) -> Problems:
    """What heads cannot hit."""
    yield from _names(entry, tables)
    yield from _choices(entry, tables)
    yield from _functions(entry, tables)
    yield from _orders(tables, KINDS)
    yield from _hard_edges(tables)
    yield from _orders(tables, (MODEL,))
    yield from _best_ones(tables)
    for name in tables[PUBLISHED].names:
        yield _of_one_head(entry, name, tables)


def _names(entry: AttentionSubmission, tables: Tables) -> Problems:
    config, names = entry.settings.config, tuple(tables)
    language, variant = language_of(config), variant_of(config)
    expected = "expected published and held-out, and perhaps beyond-offset"
    yield names not in _PROTOCOLS, f"the tables are {shown(', '.join(names))}, {expected}"
    yield tuple(entry.chosen) != names, f"chosen is of {shown(', '.join(entry.chosen))}, {expected}"
    for table, hits in tables.items():
        for name in hits.names:
            why = f"a name in {table} is {shown(name)}, expected a relation of {config}"
            yield not language.has_relation(name, variant), why
            why = f"{table} has {shown(name)}, which has no published hits"
            yield name not in tables[PUBLISHED].groups, why


def _choices(entry: AttentionSubmission, tables: Tables) -> Problems:
    for table in tables:
        for field, number in (("heads", entry.layers * entry.heads), ("better", len(KINDS))):
            most = np.max(getattr(entry.chosen[table], field))
            why = f"{table}.{field} has {most}, expected a whole number from 0 to {number - 1}"
            yield most >= number, why


def _functions(entry: AttentionSubmission, tables: Tables) -> Problems:
    published, rows = tables[PUBLISHED], entry.functions + sum(entry.skips.values())
    clusters, unread = published.clusters, np.array(entry.unread, np.int64)
    known = np.concatenate([published.of(name) for name in published.groups])
    lacking = np.setdiff1d(clusters, known).size
    yield lacking, "published has a function or a relation without any edge"
    expected = entry.functions + entry.missed
    strange = len(clusters) != expected or clusters[-1] >= rows
    places = f"{expected} places in a split of {rows}, scored and skipped"
    yield strange, f"the functions are not {places}"
    skipped = sum(count for reason, count in entry.skips.items() if reason != NO_RELATIONS)
    why = f"{entry.missed} functions are missed, {skipped} were skipped but with edges"
    yield entry.missed != skipped, why
    strange = (np.diff(unread) <= 0).any() or np.setdiff1d(unread, clusters).size
    yield strange, "unread is not among the functions, in order"
    largest = max(int(group.n.max()) for group in published.groups.values())
    yield largest > _MOST_EDGES, f"published has a function with more than {_MOST_EDGES:,} edges"
    yield len(tables[HELD_OUT].clusters) < len(clusters), "held-out lacks functions of published"
    for table, hits in tables.items():
        foreign = np.setdiff1d(hits.clusters, clusters).size
        yield foreign, f"the functions of {table} are not among those of published"
        for name in hits.names:
            yield from _edges(table, name, hits, published, unread)


def _edges(table: str, name: str, hits: Hits, published: Hits, unread: np.ndarray) -> Problems:
    group, beside = hits.groups[name], published.groups[name]
    places, there = hits.of(name), published.of(name)
    hit = group.sums[MODEL].distinct[:, np.isin(places, unread)].any()
    yield hit, f"{table}.model has hits in a function that the model could not read"
    if table == BEYOND_OFFSET:
        edges = beside.n[np.isin(there, places)]
        more = len(edges) < len(places) or (group.n > edges).any()
        yield more, f"{table} has more hard edges in a function than it has edges"
    else:
        same = np.array_equal(group.n, beside.n) and np.array_equal(places, there)
        yield not same, f"{table} has other edges of {name} than published"


def _falls_in_a_function(hits: Hits, system: str) -> bool:
    """True if a function has fewer hits of a relation with more guesses."""
    for group in hits.groups.values():
        by_k = group.sums[system].sums.reshape(*_BY_K[:2], len(group.n))
        if (np.diff(by_k, axis=1) < 0).any():
            return True
    return False


def _falls(hits: Hits, system: str) -> bool:
    """True if there are fewer hits of a relation with more guesses."""
    return bool((np.diff(hits.total(system).reshape(_BY_K), axis=1) < 0).any())


def _below_a_stricter_rule(hits: Hits, system: str) -> bool:
    """True if any token is hit less often than the first, or the last one."""
    first, any_, last = hits.total(system).reshape(_BY_K)
    return bool((any_ < np.maximum(first, last)).any())


class _Order(NamedTuple):
    """A rule for the columns of some systems: by rule and k, in the `tables`, all if there are
    none."""

    systems: tuple[str, ...]
    tables: tuple[str, ...]
    broken: Callable[[Hits, str], bool]
    why: str


_ORDERS = (
    _Order(
        tuple(KINDS), (), _falls_in_a_function, "fewer hits in a function than with one guess fewer"
    ),
    _Order((MODEL,), (PUBLISHED,), _falls, "fewer hits than with one guess fewer"),
    _Order((MODEL,), (PUBLISHED,), _below_a_stricter_rule, "fewer hits than by a stricter rule"),
)
"""*published* uses the best head on the scored data, other protocols any head."""


def _orders(tables: Tables, systems: tuple[str, ...]) -> Problems:
    for order in _ORDERS:
        for table in order.tables or tables:
            for system in order.systems:
                if system in systems:
                    why = f"{table}.{system} has {order.why}"
                    yield order.broken(tables[table], system), why


def _hard_edges(tables: Tables) -> Problems:
    if BEYOND_OFFSET not in tables:
        return
    hard = tables[BEYOND_OFFSET]
    for name, group in hard.groups.items():
        functions, total = len(group.n), group.total
        counts = f"{total} hard edges of {name} in {functions} functions"
        few = functions < FEW_CLUSTERS or total < LEAST_HARD_EDGES
        yield (
            few,
            f"{BEYOND_OFFSET} has {counts}, expected at least {LEAST_HARD_EDGES} in {FEW_CLUSTERS}",
        )
        without = name not in tables[HELD_OUT].groups
        yield without, f"{BEYOND_OFFSET} has {name}, without held-out hits"
    none = f"{BEYOND_OFFSET} has no relation of the mean, expected no such score then"
    yield not hard.counted, none


def _best_ones(tables: Tables) -> Problems:
    """*published* uses the best head, and the better baseline, on the scored data."""
    published, held_out = tables[PUBLISHED], tables[HELD_OUT]
    offset, keyword, combined = (published.total(kind) for kind in BASELINES)
    worse = (combined < np.maximum(offset, keyword)).any()
    yield (
        worse,
        "published.better is a combined baseline that is not the better of offset and keyword",
    )
    best = dict(zip(published.names, published.total(MODEL).T))
    for table, hits in tables.items():
        for name, total in zip(hits.names, hits.total(MODEL).T):
            why = f"{table}.model has more hits of {name} than the best head, which is published"
            yield (total > best[name]).any(), why
    totals = zip(held_out.names, held_out.total(MODEL).T)
    copied = all((total == best[name]).all() for name, total in totals)
    many = len(held_out.names)
    yield (
        copied and many >= _MANY,
        f"held-out has the hits of published for all {many} relations, rules and k: it was "
        "copied, heads chosen on other data miss the best one somewhere",
    )


def _of_one_head(entry: AttentionSubmission, name: str, tables: Tables) -> tuple[Any, str]:
    """A head hits the same edges of a relation wherever named: no fewer with more guesses, most by
    rule `any`, and what it hits in all has place among the hard and the other edges."""
    clusters, cells, hits, edges = tables[PUBLISHED].clusters, [], [], []
    heads: list[int] = []
    for table, of_table in tables.items():
        if name in of_table.groups:
            group = of_table.groups[name]
            columns = np.searchsorted(clusters, of_table.of(name))
            dense = np.zeros((1 + len(TABLE_MEASURES), len(clusters)), np.int64)
            dense[0, columns] = group.n
            dense[1:, columns] = group.sums[MODEL].sums
            cells += [(table, rule, k) for rule, k in TABLE_MEASURES]
            heads += entry.chosen[table].heads[of_table.names.index(name)]
            hits.append(dense[1:])
            edges.append(np.repeat(dense[:1], len(TABLE_MEASURES), axis=0))
    rules, ks = np.array([rule for _, rule, _ in cells]), np.array([k for *_, k in cells])
    head, hit, edge = np.array(heads), np.concatenate(hits), np.concatenate(edges)
    more = (ks[:, None] <= ks) & ((rules[:, None] == rules) | (rules == "any"))
    fewer, most = np.nonzero(more & (head[:, None] == head))
    others = np.maximum(edge[fewer] - edge[most], 0)  # that are not hard
    broken = (hit[fewer] > hit[most] + others).any(axis=1)
    first, second = (" ".join(map(str, cells[side[broken.argmax()]])) for side in (fewer, most))
    lacks = f"{first} has hits in a function that {second} lacks, which no head can do"
    return broken.any(), f"{name}: of one and the same head, {lacks}"


# ------------------------------------------------------------------------------------------------------------- masking

UNIT = 10**6
"""Of the sums of masking: they are in millionths."""

MISSED_NATS = 20 * UNIT
"""The log-probability of sub-tokens that are missed, without its sign: -20 nats."""

_ROUNDED_SUM = 2.5 / UNIT  # more than rounding to millionths changes a sum of two similarities
_MOST_PAIRS = 3 * 10**6
"""More than the largest published config has, all node types of its grammar masked."""


def of_masking(entry: MaskedSubmission, tables: Tables) -> Problems:
    """What a masked model cannot restore."""
    yield tuple(tables) != (MASKING,), f"the tables are others than {MASKING}"
    hits, rows = tables[MASKING], entry.functions + sum(entry.skips.values())
    pairs = rows * len(hits.names)
    many = f"{pairs:,} functions and node types, expected at most {_MOST_PAIRS:,} pairs"
    yield pairs > _MOST_PAIRS, many
    foreign = set(hits.names) - set(entry.settings.node_types)
    yield foreign, "the table does not have some of the node types of the settings"
    most = max(len(group.n) for group in hits.groups.values())
    yield most > rows, f"{most} functions of a node type, expected at most {rows}"
    yield hits.clusters[-1] >= rows, f"the functions are not those of a split of {rows}"
    for name, group in hits.groups.items():
        yield (group.n != 1).any(), f"{name} is counted several times in a function"
    known = np.unique(np.concatenate([hits.of(name) for name in hits.groups]))
    yield len(known) < len(hits.clusters), "a function has none of the node types"
    compared = sum(map(len, read(hits).values())) + sum(entry.uncompared.values())
    counts = f"{compared} pairs of a function and a node type are compared or counted as not"
    yield compared != entry.pairs, f"{counts}, but {entry.pairs} were masked"
    for name, group in hits.groups.items():
        arms = np.stack([group.sums[arm].sums for arm in ARMS])
        for cells, why in _restored(arms, entry.settings):
            where = np.argwhere(np.atleast_2d(cells))
            arm, cluster = where[0].tolist() if where.size else (0, 0)
            function = hits.clusters[group.places[cluster]]
            yield where.size, f"{why}, {ARMS[arm]} of {name} in function {function}"


def read(hits: Hits) -> dict[str, np.ndarray]:
    """Node type -> the functions that the model could read, and whose trees could be compared."""
    return {name: hits.of(name)[group.sums[T1].sums[-1] > 0] for name, group in hits.groups.items()}


def _restored(arms: np.ndarray, settings: MaskSettings) -> Iterator[tuple[np.ndarray, str]]:
    """What no model can have, whatever it predicts: in which arms and functions (2, f) it stands
    here, and the reason. `arms`: the sums of a node type (2, measures, f)."""
    current = settings.protocol != masking.PUBLISHED
    *shares, nats, sub_tokens = np.moveaxis(arms, 1, 0)
    jaccard, sorensen_dice, levenshtein, restored = (share / UNIT for share in shares)
    count = sub_tokens[0]
    most = 2 * jaccard / (1 + jaccard)  # is Sorensen-Dice, for one copy
    unlike = (sorensen_dice < jaccard - _ROUNDED_SUM) | (sorensen_dice > most + _ROUNDED_SUM)
    tokens = count * np.array([[1], [settings.draws]])
    broken = np.abs(restored * tokens - np.round(restored * tokens)) > tokens / UNIT
    broken[1] &= current  # otherwise controls mask other numbers of sub-tokens
    # a true sub-token that is not the most likely one has a probability of at most a half
    likely = -nats / UNIT > math.log(0.5) * (1 - restored) + 0.001
    missed = count == 0
    nothing = (nats == MISSED_NATS) & (np.stack(shares) == 0).all(axis=0)
    yield arms.min(axis=1) < 0, "a number is below 0"
    yield sub_tokens[1:] != count, "other sub-tokens are masked in T1"
    yield missed & ~nothing, "nothing is masked, and yet restored"
    yield count > settings.max_length, "no function has so many masked sub-tokens"
    yield np.max(shares, axis=0) > UNIT, "a share is above 1"
    yield broken, "the restored share is not one of its masked sub-tokens"
    yield (
        np.abs(sorensen_dice - most)[:1] > _ROUNDED_SUM,
        "Sorensen-Dice does not follow from Jaccard",
    )
    yield unlike, "Jaccard allows no such Sorensen-Dice"
    yield levenshtein > sorensen_dice + _ROUNDED_SUM, "more nodes are in order than in common"
    yield likely & ~missed, "sub-tokens are too likely for so few that are restored"
    unchanged = current & (restored == 1) & (jaccard < 1)
    yield unchanged, "every sub-token is restored, but the tree is another"
