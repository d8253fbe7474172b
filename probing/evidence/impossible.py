"""What no run of a model can give, however consistent it is: the checks of submissions, one after
the other.

Each yields whether it stands in a submission, and the reason. A check may rely on those before it
not standing there. That hits are no more than there is to hit, and no fewer than none, is checked
where files are read (`probing.stats.hits_file`); that numbers are those of a model, only running it
again tells (`probing.evidence.verify`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np

from codesyntax_dataset.languages import language_of, variant_of
from codesyntax_dataset.protocol import (
    BEST_BASELINE,
    BEYOND_OFFSET,
    HELD_OUT,
    PUBLISHED,
    TABLE_KS,
)
from codesyntax_metric.topk_uas import RULES
from probing.evidence.baselines import KINDS, LISTED
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


# ---------------------------------------------------------------------------------------- attention


def of_attention(entry: AttentionSubmission, tables: Tables) -> Problems:
    """What heads cannot hit."""
    yield from _check_names(entry, tables)
    yield from _check_choices(entry, tables)
    yield from _check_functions(entry, tables)
    yield from _falls_in_a_function(tables)
    yield from _hard_edges(tables)
    yield from _best_heads_fall(tables[PUBLISHED])
    yield from _best_ones(tables)
    for name in tables[PUBLISHED].names:
        yield _of_one_head(entry, name, tables)


def _check_names(entry: AttentionSubmission, tables: Tables) -> Problems:
    config = entry.settings.config
    language = language_of(config)
    variant = variant_of(config)
    names = tuple(tables)
    chosen = tuple(entry.chosen)
    expected = "expected published and held-out, and perhaps beyond-offset"
    yield names not in _PROTOCOLS, f"the tables are {shown(', '.join(names))}, {expected}"
    yield chosen != names, f"chosen is of {shown(', '.join(chosen))}, {expected}"
    for table, hits in tables.items():
        for name in hits.names:
            why = f"a name in {table} is {shown(name)}, expected a relation of {config}"
            yield not language.has_relation(name, variant), why
            why = f"{table} has {shown(name)}, which has no published hits"
            yield name not in tables[PUBLISHED].groups, why


def _check_choices(entry: AttentionSubmission, tables: Tables) -> Problems:
    numbers = {"heads": entry.layers * entry.heads, "better": len(KINDS)}
    for table in tables:
        for field, number in numbers.items():
            most = np.max(getattr(entry.chosen[table], field))
            why = f"{table}.{field} has {most}, expected a whole number from 0 to {number - 1}"
            yield most >= number, why


def _check_functions(entry: AttentionSubmission, tables: Tables) -> Problems:
    published = tables[PUBLISHED]
    clusters = published.clusters
    rows = entry.functions + sum(entry.skips.values())
    unread = np.array(entry.unread, np.int64)
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
    disordered = (np.diff(unread) <= 0).any()
    foreign = np.setdiff1d(unread, clusters).size
    yield disordered or foreign, "unread is not among the functions, in order"
    largest = max(group.n.max() for group in published.groups.values())
    yield largest > _MOST_EDGES, f"published has a function with more than {_MOST_EDGES:,} edges"
    fewer = len(tables[HELD_OUT].clusters) < len(clusters)
    yield fewer, "held-out lacks functions of published"
    for table, hits in tables.items():
        foreign = np.setdiff1d(hits.clusters, clusters).size
        yield foreign, f"the functions of {table} are not among those of published"
        for name in hits.names:
            yield from _check_edges(table, name, hits, published, unread)


def _check_edges(
    table: str, name: str, hits: Hits, published: Hits, unread: np.ndarray
) -> Problems:
    group = hits.groups[name]
    functions = hits.of(name)
    in_unread = group.sums[MODEL][:, np.isin(functions, unread)]
    why = f"{table}.model has hits in a function that the model could not read"
    yield in_unread.any(), why
    if table == BEYOND_OFFSET:
        inside = np.isin(published.of(name), functions)
        edges = published.groups[name].n[inside]
        more = len(edges) < len(functions) or (group.n > edges).any()
        yield more, f"{table} has more hard edges in a function than it has edges"
    else:
        edges = published.groups[name].n
        same = np.array_equal(group.n, edges) and np.array_equal(functions, published.of(name))
        yield not same, f"{table} has other edges of {name} than published"


def _falls_in_a_function(tables: Tables) -> Problems:
    """Baselines are lists of predictors: with more guesses, each function has no fewer hits."""
    for table, hits in tables.items():
        for kind in KINDS:
            why = f"{table}.{kind} has fewer hits in a function than with one guess fewer"
            for group in hits.groups.values():
                by_k = group.sums[kind].reshape(_BY_K)
                yield (np.diff(by_k, axis=1) < 0).any(), why


def _best_heads_fall(published: Hits) -> Problems:
    """*published* uses the best head on the scored data, other protocols any head."""
    by_rule = published.total(MODEL).reshape(_BY_K)
    falls = (np.diff(by_rule, axis=1) < 0).any()
    yield falls, "published.model has fewer hits than with one guess fewer"
    first, any_token, last = by_rule
    below = (any_token < np.maximum(first, last)).any()
    yield below, "published.model has fewer hits than by a stricter rule"


def _hard_edges(tables: Tables) -> Problems:
    if BEYOND_OFFSET not in tables:
        return
    hard = tables[BEYOND_OFFSET]
    expected = f"expected at least {LEAST_HARD_EDGES} in {FEW_CLUSTERS}"
    for name, group in hard.groups.items():
        counts = f"{group.total} hard edges of {name} in {len(group.n)} functions"
        few = group.few or group.total < LEAST_HARD_EDGES
        yield few, f"{BEYOND_OFFSET} has {counts}, {expected}"
        without = name not in tables[HELD_OUT].groups
        yield without, f"{BEYOND_OFFSET} has {name}, without held-out hits"
    none = f"{BEYOND_OFFSET} has no relation of the mean, expected no such score then"
    yield not hard.counted, none


def _best_ones(tables: Tables) -> Problems:
    """*published* uses the best head, and the better baseline, on the scored data."""
    published = tables[PUBLISHED]
    held_out = tables[HELD_OUT]
    each = [published.total(kind) for kind in LISTED]
    worse = (published.total(BEST_BASELINE) < np.max(each, axis=0)).any()
    why = "published.better is a combined baseline that is not the better of offset and keyword"
    yield worse, why
    best = dict(zip(published.names, published.total(MODEL).T))
    for table, hits in tables.items():
        for name, total in zip(hits.names, hits.total(MODEL).T):
            why = f"{table}.model has more hits of {name} than the best head, which is published"
            yield (total > best[name]).any(), why
    totals = zip(held_out.names, held_out.total(MODEL).T)
    copied = all((total == best[name]).all() for name, total in totals)
    many = len(held_out.names)
    why = (
        f"held-out has the hits of published for all {many} relations, rules and k: it was "
        "copied, heads chosen on other data miss the best one somewhere"
    )
    yield copied and many >= _MANY, why


_NO_MORE = np.array(
    [
        [k <= more and other in (rule, "any") for other, more in TABLE_MEASURES]
        for rule, k in TABLE_MEASURES
    ]
)
"""Whether a head hits no more by a measure than by another one."""


def _of_one_head(entry: AttentionSubmission, name: str, tables: Tables) -> tuple[Any, str]:
    """A head hits the same edges of a relation wherever named: no fewer with more guesses, most by
    rule `any`, and what it hits in all has place among the hard and the other edges."""
    clusters = tables[PUBLISHED].clusters
    present = [table for table, hits in tables.items() if name in hits.groups]
    edges, hits = np.zeros((2, len(present), len(TABLE_MEASURES), len(clusters)), np.int64)
    heads: list[int] = []
    for number, table in enumerate(present):
        of_table = tables[table]
        group = of_table.groups[name]
        columns = np.searchsorted(clusters, of_table.of(name))
        edges[number][:, columns] = group.n
        hits[number][:, columns] = group.sums[MODEL]
        heads += entry.chosen[table].heads[of_table.names.index(name)]
    head = np.array(heads)
    edge = edges.reshape(len(head), -1)
    hit = hits.reshape(len(head), -1)
    same_head = head[:, None] == head
    no_more = np.tile(_NO_MORE, (len(present), len(present)))
    fewer, most = np.nonzero(no_more & same_head)
    others = np.maximum(edge[fewer] - edge[most], 0)  # that are not hard
    broken = (hit[fewer] > hit[most] + others).any(axis=1)
    cells = [f"{table} {rule} {k}" for table in present for rule, k in TABLE_MEASURES]
    example = broken.argmax()
    first = cells[fewer[example]]
    second = cells[most[example]]
    lacks = f"{first} has hits in a function that {second} lacks, which no head can do"
    return broken.any(), f"{name}: of one and the same head, {lacks}"


# ------------------------------------------------------------------------------------------ masking

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
    hits = tables[MASKING]
    rows = entry.functions + sum(entry.skips.values())
    pairs = rows * len(hits.names)
    many = f"{pairs:,} functions and node types, expected at most {_MOST_PAIRS:,} pairs"
    yield pairs > _MOST_PAIRS, many
    foreign = set(hits.names) - set(entry.settings.node_types)
    yield foreign, "the table does not have some of the node types of the settings"
    yield hits.clusters[-1] >= rows, f"the functions are not those of a split of {rows}"
    for name, group in hits.groups.items():
        yield (group.n != 1).any(), f"{name} is counted several times in a function"
    known = np.unique(np.concatenate([hits.of(name) for name in hits.groups]))
    yield len(known) < len(hits.clusters), "a function has none of the node types"
    compared = sum(np.count_nonzero(group.sums[T1][-1] > 0) for group in hits.groups.values())
    compared += sum(entry.uncompared.values())
    counts = f"{compared} pairs of a function and a node type are compared or counted as not"
    yield compared != entry.pairs, f"{counts}, but {entry.pairs} were masked"
    for name, group in hits.groups.items():
        arms = np.stack([group.sums[arm] for arm in ARMS])
        for broken, why in _restored(arms, entry.settings):
            for arm, cluster in np.argwhere(np.atleast_2d(broken))[:1].tolist():
                function = hits.clusters[group.places[cluster]]
                yield True, f"{why}, {ARMS[arm]} of {name} in function {function}"


def _restored(arms: np.ndarray, settings: MaskSettings) -> Iterator[tuple[np.ndarray, str]]:
    """What no model can have, whatever it predicts: in which arms and functions (2, f) it stands
    here, and the reason. `arms`: the sums of a node type (2, measures, f)."""
    current = settings.protocol != masking.PUBLISHED
    *shares, nats, sub_tokens = np.moveaxis(arms, 1, 0)
    jaccard, sorensen_dice, levenshtein, restored = (share / UNIT for share in shares)
    count = sub_tokens[0]
    missed = count == 0
    nothing = (nats == MISSED_NATS) & (np.stack(shares) == 0).all(axis=0)
    yield arms.min(axis=1) < 0, "a number is below 0"
    yield sub_tokens[1:] != count, "other sub-tokens are masked in T1"
    yield missed & ~nothing, "nothing is masked, and yet restored"
    yield count > settings.max_length, "no function has so many masked sub-tokens"
    yield np.max(shares, axis=0) > UNIT, "a share is above 1"
    tokens = count * np.array([[1], [settings.draws]])
    hits = restored * tokens
    broken = np.abs(hits - np.round(hits)) > tokens / UNIT
    broken[1] &= current  # otherwise controls mask other numbers of sub-tokens
    yield broken, "the restored share is not one of its masked sub-tokens"
    most = 2 * jaccard / (1 + jaccard)  # is Sorensen-Dice, for one copy
    other = np.abs(sorensen_dice - most) > _ROUNDED_SUM
    yield other[:1], "Sorensen-Dice does not follow from Jaccard"
    unlike = sorensen_dice < jaccard - _ROUNDED_SUM
    unlike |= sorensen_dice > most + _ROUNDED_SUM
    yield unlike, "Jaccard allows no such Sorensen-Dice"
    yield levenshtein > sorensen_dice + _ROUNDED_SUM, "more nodes are in order than in common"
    # a true sub-token that is not the most likely one has a probability of at most a half
    least = -math.log(0.5) * (1 - restored) - 0.001
    likely = nats / UNIT < least
    yield likely & ~missed, "sub-tokens are too likely for so few that are restored"
    unchanged = current & (restored == 1) & (jaccard < 1)
    yield unchanged, "every sub-token is restored, but the tree is another"
