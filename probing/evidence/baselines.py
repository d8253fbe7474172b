"""Baselines without a model: predictors that use only positions or keywords (Shen et al. 2022,
section 4).

- Offset i predicts the token at distance i from the reading token: in code, 1 to 512 tokens after a
  head token or, in the direction `dependent-to-head`, 1 to 512 tokens before a token of the
  dependent; in natural language, up to 512 tokens before or after. Both directions hit the same
  edges, so offset baselines have the same scores in both.
- Keyword w predicts the nearest token spelled w: after the head token, or before the dependent's
  token.
- Context ranks tokens by what surrounds them (`probing.evidence.context`). It is not in the paper,
  and only chosen on other data than those that it is scored on.

Each of the first two is a list of predictors for each relation and rule, chosen greedily: each next predictor
is the one that hits most of the edges missed so far. Of equal gains, the nearer offset is chosen,
of two at one distance that of a head in front of its dependent, or the keyword listed first for the
language; a list ends if no predictor gains anything. The rank of an edge is the index of the first
predictor that hits it. This gives a rank ledger like a model's: one layer with one head for each of
KINDS, from which every score follows as for a model. The combined baseline, the best of them for
each relation and k, is its best head.

On other data, a list that ends early would leave guesses unused. Held-out lists are therefore
filled up to 20 predictors, beyond the paper: with unused offsets by their distance to the nearest
one in the list, of equals the nearer to the reading token (1, 2, 3 ... if the list is empty); and
with unused keywords by their frequency in the functions of validation. The first k of a list are
the baseline at k, so no curve but that of the combined baseline falls; it may, if validation prefers
another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from codesyntax_dataset.arguments import checked
from codesyntax_dataset.errors import DatasetError, UnknownName
from codesyntax_dataset.languages import LANGUAGES, language_of, variant_of
from codesyntax_dataset.protocol import (
    BASELINES,
    BEST_BASELINE,
    DIRECTIONS,
    HELD_OUT,
    KS,
    PUBLISHED,
)
from codesyntax_metric.topk_uas import (
    DEPENDENT_TO_HEAD,
    HEAD_TO_DEPENDENT,
    RULES,
    SCORING_VERSION,
    WORST_RANK,
)
from probing.evidence.context import Context, ContextRanks, SeenEdges, View, context
from probing.evidence.protocols import Choice, ChosenHits, apply, held_out, published, redrawn
from probing.instruments.attention.edges import EdgeTable, runs, stacked
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.offsets import Offsets
from probing.runs.data import label_digest, load_functions, rows
from probing.runs.records import FieldsByName
from probing.runs.repositories import COLUMN, clusters_of

KINDS = BASELINES[:-1]
"""The heads of a baseline's ledger, in this order."""

LISTED = KINDS[:2]
"""Those of the paper: lists of predictors, and all that the protocol *published* has."""


def kinds_of(config: str, protocol: str = HELD_OUT) -> list[str]:
    """Those of BASELINES that a config has by a protocol: without keywords in its language, there
    is no baseline of them."""
    known = BASELINES if protocol != PUBLISHED else (*LISTED, BEST_BASELINE)
    return [name for name in known if name != LISTED[1] or language_of(config).keywords]


MOST_KEYWORDS = 128
"""As many as 8 bits tell apart: `Edges.keyword`."""


class ScoredSplit(FieldsByName):
    """The functions of a split that have edges: how many, and the digest of their labels."""

    data: str
    labels: str
    config: str
    split: str
    functions: int


@dataclass(eq=False)
class Edges(SeenEdges):
    """E edges, and the T tokens of their functions.

    `keyword`: int8 (T,), an index into `keywords`, or -1. `left_out`: bool (T,), the tokens that
    models never predict (`Variant.never_predicted`). `settings`: the origin of the edges.
    `further_keywords`: predictors beyond the keywords of the language.
    `origins`: the number of repositories that the functions are from; 0 if the data do not say.
    """

    keyword: np.ndarray
    left_out: np.ndarray
    language: str
    settings: ScoredSplit
    further_keywords: tuple[str, ...] = ()
    origins: int = 0

    @property
    def keywords(self) -> tuple[str, ...]:
        return LANGUAGES[self.language].keywords + self.further_keywords


def read_edges(
    data: Any,
    config: str,
    split: str,
    functions: np.ndarray | None = None,
    further_keywords: tuple[str, ...] = (),
) -> Edges:
    """The edges of one split, or of `functions` only: places in the split, as in the column
    `function` of a ledger.

    `data` is as in `load_functions`. Raises DatasetError or UnknownName as that does, DatasetError
    without any edge.
    """
    language = language_of(config)
    variant = variant_of(config)
    keywords = language.keywords + further_keywords
    if len(keywords) > MOST_KEYWORDS:
        raise DatasetError(
            f"{language.title} has {len(keywords)} keywords, expected at most {MOST_KEYWORDS}"
        )
    table, name = load_functions(data, config, split)
    numbers = {word: number for number, word in enumerate(keywords)}
    wanted = None if functions is None else set(np.asarray(functions).tolist())
    relations: list[str] = []
    labels = label_digest(table)
    tables: list[EdgeTable] = []
    views: list[View] = []
    for batch in rows(table, None):
        used = [
            (row["index"], row)
            for row in batch
            if row["relations"] and (wanted is None or row["index"] in wanted)
        ]
        tables.append(EdgeTable.from_rows(used, relations))
        views.append(View.of(row for _, row in used))
    if not any(map(len, tables)):
        among = "" if wanted is None else " in these functions"
        raise DatasetError(f"{name}/{config}/{split} has no edges to score{among}")
    edges = stacked(tables)
    functions, first_edge, count = np.unique(edges.function, return_index=True, return_counts=True)
    tokens = edges.tokens[first_edge].astype(np.int64)
    view = View.joined(views)
    keyword = np.array([numbers.get(word, -1) for word in view.words], np.int8)
    left_out = np.array([word == variant.never_predicted for word in view.words], bool)
    return Edges(
        edges.relations,
        **edges.columns,
        begin=np.repeat(tokens.cumsum() - tokens, count),
        view=view,
        keyword=keyword[view.word],
        left_out=left_out[view.word],
        language=language.name,
        settings=ScoredSplit(
            data=name, labels=labels, config=config, split=split, functions=len(functions)
        ),
        further_keywords=further_keywords,
        over=clusters_of(table, functions),
        origins=_repositories(table, functions),
    )


def _repositories(table: pa.Table, functions: np.ndarray) -> int:
    if COLUMN not in table.column_names:
        return 0
    return len(set(table[COLUMN].take(pa.array(functions)).to_pylist()))


Pairs = tuple[np.ndarray, np.ndarray]
"""Places of edges, and beside each the number of a predictor that hits it: (n,) each."""

Listed = dict[tuple[str, str, str], list[int]]
"""Kind, rule and relation -> numbers or places of predictors."""


@dataclass(frozen=True)
class Picks:
    """Chosen baselines: kind, rule and relation -> predictors, best first, as places in `_nearest_first`
    or `keywords`."""

    language: str
    keywords: tuple[str, ...]
    direction: str
    lists: Listed

    def names(self, kind: str, rule: str, relation: str) -> list[int] | list[str]:
        """The predictors as offsets (negative: towards the beginning) or keywords."""
        numbers = self.lists.get((kind, rule, relation), [])
        if kind == "keyword":
            return [self.keywords[number] for number in numbers]
        sign = 1 if self.direction == HEAD_TO_DEPENDENT else -1
        return (sign * _nearest_first(self.language)[numbers]).tolist()

    def filled(self, edges: Edges, useless: Offsets | None = None) -> Picks:
        """The same with all lists filled up to the largest k, from the `edges` they were chosen on;
        see the module.

        Added predictors hit none of the edges that a list misses, so no score on these edges
        changes. `useless`: relation -> the offset from head to dependent that is not added by the
        rule `first`.
        """
        offsets = _nearest_first(self.language)
        occurring = np.bincount(edges.keyword[edges.keyword >= 0], minlength=len(self.keywords))
        frequent = np.argsort(-occurring, kind="stable")
        lists = {}
        for (kind, rule, name), picked in self.lists.items():
            further = frequent
            if kind != "keyword":
                known = offsets[picked] if picked else np.zeros(1, int)
                distance = np.abs(offsets[:, None] - known).min(axis=1)
                further = np.argsort(distance, kind="stable")
                if useless and rule == RULES[0]:
                    further = further[offsets[further] != useless.get(name, 0)]
            longer = dict.fromkeys([*picked, *further.tolist()])
            lists[kind, rule, name] = list(longer)[: max(KS)]
        return replace(self, lists=lists)


def pick(edges: Edges, direction: str = HEAD_TO_DEPENDENT) -> Picks:
    """Choose the best baselines for `edges`: for each relation and rule the greedy list for k = 1
    to 20."""
    lists = {
        (kind, rule, relation): greedy(*pairs, max(KS))
        for kind, rule, relation, _, pairs in _hits_by_relation(edges, direction)
    }
    return Picks(edges.language, edges.keywords, direction, lists)


def greedy(edge: np.ndarray, number: np.ndarray, length: int) -> list[int]:
    """Greedy maximum coverage, from `Pairs`: up to `length` predictors, each the one that gains
    most edges, the first of equals."""
    picked: list[int] = []
    while len(edge) and len(picked) < length:
        best = int(np.bincount(number).argmax())
        picked.append(best)
        missed = np.ones(edge.max() + 1, bool)
        missed[edge[number == best]] = False
        left = missed[edge]
        edge, number = edge[left], number[left]
    return picked


def rank_ledger(edges: Edges, picks: Picks, by_context: np.ndarray | None = None) -> RankLedger:
    """The ranks of `edges` by `picks`, which may come from other edges, and those of the context
    baseline (rules, E), if any: 1 layer with a head for each of KINDS, or of LISTED."""
    ranks = np.full((len(RULES), len(edges), 1, len(LISTED)), WORST_RANK, np.uint8)
    for kind, rule, relation, index, pairs in _hits_by_relation(edges, picks.direction):
        edge, number = pairs
        picked = picks.lists.get((kind, rule, relation), [])
        guess = np.full(
            max(MOST_KEYWORDS, len(_nearest_first(edges.language))), WORST_RANK, np.uint8
        )
        guess[picked] = np.arange(len(picked))
        rank = np.full(len(index), WORST_RANK, np.uint8)
        np.minimum.at(rank, edge, guess[number])
        ranks[RULES.index(rule), index, 0, LISTED.index(kind)] = rank
    if by_context is not None:
        ranks = np.concatenate([ranks, by_context[..., None, None]], axis=-1)
    about = {**edges.settings, "direction": picks.direction, "scoring": SCORING_VERSION}
    return RankLedger.of(edges, ranks, {"baselines": about})


def only_kind(ledger: RankLedger, kind: str) -> RankLedger:
    """The ledger of only one of KINDS."""
    head = KINDS.index(kind)
    return replace(ledger, ranks=ledger.ranks[..., head : head + 1])


def better(ledger: RankLedger) -> Choice:
    """For each rule, relation and k the best of the kinds that `ledger` has; if it is equal to the
    one chosen at k - 1, that one.

    The one that needed fewer guesses is thereby kept when another catches up, which happens if
    validation has few edges. If they are equal at k = 1, the offset is chosen; but the context
    baseline, if it is there, unless another finds more by over a standard error of their number
    (Breiman et al. 1984): of its ranks on validation, each was learned on a part of it.
    """
    counts = ledger.counts()
    choice: Choice = {}
    for name in counts.counts:
        heads = np.zeros((len(RULES), len(KS), 2), int)
        for number, rule in enumerate(RULES):
            by_kind = counts.hits(name, rule)[0, :, : max(KS)].astype(float)
            chosen = 0
            if len(by_kind) > len(LISTED):
                chosen = len(LISTED)
                by_kind[chosen] += np.sqrt(by_kind.max(axis=0))
            for position, hits in enumerate(by_kind.T):
                if hits.max() > hits[chosen]:
                    chosen = int(hits.argmax())
                heads[number, position, 1] = chosen
        choice[name] = heads
    return choice


def _better_kind(hits: np.ndarray) -> np.ndarray:
    """The kind that `better` chooses by what each finds (N, kinds), apart from ties: (N,)."""
    favoured = hits.astype(float)
    if hits.shape[1] > len(LISTED):
        favoured[:, len(LISTED)] += np.sqrt(hits.max(axis=1))
    return favoured.argmax(axis=1)


@dataclass
class BaselineResult:
    """The baselines of one split by both protocols.

    `settings`: of the split that is scored; `picks`: protocol -> chosen predictors; `ranks`: that
    of each edge by each kind; `hits`: those of BASELINES that a protocol has -> what each hits.
    """

    settings: ScoredSplit
    direction: str
    picks: dict[str, Picks]
    ranks: dict[str, RankLedger]
    hits: dict[str, dict[str, ChosenHits]]


def evaluate_baselines(
    validation: Edges,
    test: Edges,
    direction: str = HEAD_TO_DEPENDENT,
    by_context: Context | None = None,
) -> BaselineResult:
    """Baselines of `test` by both protocols: chosen on `test` itself, as in the paper, and chosen
    on `validation` and filled. `by_context`: of these edges, if it is known.

    For a comparison with a model, read only the functions of its ledgers: `read_edges(...,
    functions=ledger.function)`.
    """
    on_test = pick(test, direction)
    same = rank_ledger(test, on_test)
    as_published = {kind: published(only_kind(same, kind), kind) for kind in LISTED}
    as_published[BEST_BASELINE] = published(same, BEST_BASELINE)
    by_context = context(validation, test, direction) if by_context is None else by_context
    on_validation, unseen, as_held_out = chosen_on(validation, test, by_context.every, direction)
    picks = {PUBLISHED: on_test, HELD_OUT: on_validation}
    hits = {PUBLISHED: as_published, HELD_OUT: as_held_out}
    ranks = {PUBLISHED: same, HELD_OUT: unseen}
    return BaselineResult(test.settings, direction, picks, ranks, hits)


def chosen_on(
    validation: Edges,
    test: Edges,
    by_context: ContextRanks,
    direction: str = HEAD_TO_DEPENDENT,
    useless: Offsets | None = None,
) -> tuple[Picks, RankLedger, dict[str, ChosenHits]]:
    """What is chosen on `validation`, filled without `useless` offsets, the ranks of `test`, and
    each of BASELINES -> what it hits of `test`. The best one is chosen by what the context baseline finds in functions
    that it was not learned on."""
    picks = pick(validation, direction).filled(validation, useless)
    chosen = rank_ledger(validation, picks, by_context.validation)
    scored = rank_ledger(test, picks, by_context.test)
    hits = {}
    for kind in KINDS:
        hits[kind] = held_out(only_kind(chosen, kind), only_kind(scored, kind), system=kind)
    best = apply(scored, better(chosen), BEST_BASELINE)
    hits[BEST_BASELINE] = redrawn(best, chosen, scored, _better_kind)
    return picks, scored, hits


@checked
def baseline(
    data: Any,
    config: str = "python",
    split: str = "test",
    direction: str | None = None,
) -> BaselineResult:
    """The baselines of one split, which need no model; for the held-out protocol they are chosen on
    the split `validation`.

    Args:
        data: a folder that `codesyntax build` wrote, a dataset id on the Hub, or a loaded
            `DatasetDict`.
        config: the labels, such as `python`, `java` or `python_exact`.
        split: the split that is scored, `test` or `validation`.
        direction: `head-to-dependent` or `dependent-to-head`; by default that of the language.

    Returns:
        By protocol, `published` and `held-out`: the chosen predictors in `picks`, what each
        baseline finds in `hits`, and the `ranks` of each edge.

    Raises:
        DatasetError: data that do not exist or are damaged.
        UnknownName: an unknown config, split or direction.

    Examples:
        >>> import probing
        >>> result = probing.baseline("codesyntax")
        >>> sorted(result.hits["published"])
        ['combined', 'keyword', 'offset']
    """
    if split == "validation":
        raise DatasetError(
            "the split validation serves to choose held-out baselines: score another split, such as test"
        )
    import datasets

    if isinstance(data, datasets.Dataset):
        raise DatasetError(
            "held-out baselines need two splits, and this is one: pass a DatasetDict, a folder or an id"
        )
    direction = language_of(config).direction if direction is None else direction
    if direction not in DIRECTIONS:  # before anything is downloaded
        raise UnknownName("direction", direction, DIRECTIONS)
    return evaluate_baselines(
        read_edges(data, config, "validation"), read_edges(data, config, split), direction
    )


def _hits_by_relation(
    edges: Edges, direction: str
) -> Iterator[tuple[str, str, str, np.ndarray, Pairs]]:
    """Yield, for each kind, rule and relation that has edges, their indices in `edges`, and which
    of these predictors hit."""
    if direction not in DIRECTIONS:
        raise UnknownName("direction", direction, DIRECTIONS)
    repeated = _repeated(edges.keyword)
    for relation, name in enumerate(edges.relations):
        index = np.flatnonzero(edges.relation == relation)
        if len(index):
            some = edges.take(index)
            hits = _offset_hits(some), _keyword_hits(some, direction, *repeated)
            for kind, by_rule in zip(LISTED, hits):
                for rule, pairs in zip(RULES, by_rule):
                    yield kind, rule, name, index, pairs


@cache
def _nearest_first(language: str) -> np.ndarray:
    """The offsets from head to dependent that the baseline may predict, nearest first: int64
    (offsets,)."""
    allowed = [offset for offset in LANGUAGES[language].offsets if offset]
    offsets = np.array(sorted(allowed, key=lambda offset: (abs(offset), -offset)))
    offsets.setflags(write=False)
    return offsets


def _offset_hits(edges: Edges) -> Iterator[Pairs]:
    """By each rule the offsets that hit edges, which are a run, as places in `_nearest_first`."""
    allowed = LANGUAGES[edges.language].offsets
    number_of = np.full(len(allowed), -1)
    number_of[_nearest_first(edges.language) - allowed[0]] = np.arange(
        len(_nearest_first(edges.language))
    )
    first = edges.first - edges.head
    last = edges.last - edges.head
    for begin, end in ((first, first), (first, last), (last, last)):
        edge, offset = runs(np.maximum(begin, allowed[0]), np.minimum(end, allowed[-1]) + 1)
        number = number_of[offset - allowed[0]]
        yield edge[number >= 0], number[number >= 0]


def _repeated(keyword: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each token the one before it, and behind it, of the same keyword, of whatever function;
    -1 and T without any: (T,) each."""
    places = np.flatnonzero(keyword >= 0)
    order = places[np.argsort(keyword[places], kind="stable")]
    same = np.flatnonzero(np.diff(keyword[order]) == 0)
    before = np.full(len(keyword), -1)
    behind = np.full(len(keyword), len(keyword))
    before[order[same + 1]] = order[same]
    behind[order[same]] = order[same + 1]
    return before, behind


def _keyword_hits(
    edges: Edges, direction: str, before: np.ndarray, behind: np.ndarray
) -> Iterator[Pairs]:
    """By each rule the keywords that hit edges. `before`, `behind`: as of `_repeated`; equal
    keywords of another function are further than all tokens of an edge."""
    keyword = edges.keyword
    head, first, last = (edges.begin + column for column in (edges.head, edges.first, edges.last))
    # the first token of the dependent that is behind the head
    nearest = np.maximum(first, head + 1)
    if direction == DEPENDENT_TO_HEAD:
        # of all tokens, `nearest` sees the head best
        for reading in (first, nearest, last):
            seen = (head < reading) & (reading <= np.minimum(last, behind[head]))
            hit = np.flatnonzero((keyword[head] >= 0) & seen)
            yield hit, keyword[head[hit]]
        return
    places = np.flatnonzero(keyword >= 0)
    begin = np.searchsorted(places, nearest)
    edge, occurrence = runs(begin, np.searchsorted(places, last, side="right"))
    token = places[occurrence]
    for counts in (token == first[edge], True, token == last[edge]):
        hit = (before[token] <= head[edge]) & counts
        yield edge[hit], keyword[token[hit]]
