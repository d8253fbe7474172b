"""Baselines without a model: predictors that use only positions or keywords (Shen et al. 2022,
section 4).

- Offset i predicts the token at distance i from the reading token: in code, 1 to 512 tokens after a
  head token or, in the direction `dependent-to-head`, 1 to 512 tokens before a token of the
  dependent; in natural language, up to 512 tokens before or after. Both directions hit the same
  edges, so offset baselines have the same scores in both.
- Keyword w predicts the nearest token spelled w: after the head token, or before the dependent's
  token.

A baseline is a list of predictors for each relation and rule, chosen greedily: each next predictor
is the one that hits most of the edges missed so far. Of equal gains, the nearer offset is chosen,
of two at one distance that of a head in front of its dependent, or the keyword listed first for the
language; a list ends if no predictor gains anything. The rank of an edge is the index of the first
predictor that hits it. This gives a rank ledger like a model's: one layer with one head for each of
KINDS, from which every score follows as for a model. The combined baseline, the better of the two
for each relation and k, is its best head.

On other data, a list that ends early would leave guesses unused. Held-out lists are therefore
filled up to 20 predictors, beyond the paper: with unused offsets by their distance to the nearest
one in the list, of equals the nearer to the reading token (1, 2, 3 ... if the list is empty); and
with unused keywords by their frequency in the functions of validation. The first k of a list are
the baseline at k, so no curve of an offset or keyword baseline falls. The combined one may fall, if
validation prefers the other of the two.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset.arguments import checked
from codesyntax_dataset.atomic import write
from codesyntax_dataset.errors import DatasetError, UnknownName
from codesyntax_dataset.languages import LANGUAGES, language_of, variant_of
from codesyntax_dataset.protocol import BASELINES, BEST_BASELINE, DIRECTIONS, KS
from codesyntax_metric.topk_uas import (
    DEPENDENT_TO_HEAD,
    HEAD_TO_DEPENDENT,
    RULES,
    SCORING_VERSION,
    WORST_RANK,
)
from probing.evidence.protocols import Choice, ChosenHits, apply, held_out, published
from probing.evidence.summary import Means, Summary, means, summary
from probing.instruments.attention.edges import EdgeTable, stacked
from probing.instruments.attention.ledger import RankLedger
from probing.runs.data import label_digest, load_functions, rows
from probing.runs.records import FieldsByName

KINDS = BASELINES[:-1]
"""The heads of a baseline's ledger, in this order."""


def kinds_of(config: str) -> list[str]:
    """Those of BASELINES that differ for a config: without keywords in its language, there is no
    baseline of them."""
    return [name for name in BASELINES if name != KINDS[1] or language_of(config).keywords]


MOST_KEYWORDS = 128
"""As many as 8 bits tell apart: `Edges.keyword`."""


class ScoredSplit(FieldsByName):
    """The functions of a split that have edges: how many, and the digest of their labels."""

    data: str
    labels: str
    config: str
    split: str
    functions: int


class BaselineSettings(ScoredSplit):
    """Everything that determines a baseline's scores."""

    direction: str
    chosen_on: ScoredSplit
    scoring: int


@dataclass(eq=False)
class Edges(EdgeTable):
    """E edges, and the keywords among the T tokens of their functions.

    `begin`: (E,), the index in `keyword` of the first token of the edge's function. `keyword`: int8
    (T,), for the concatenated tokens of all functions, an index into `keywords`, or -1. `left_out`:
    bool (T,), the tokens that models never predict (`Variant.never_predicted`). `settings`: the
    origin of the edges. `further_keywords`: predictors beyond the keywords of the language.
    """

    begin: np.ndarray
    keyword: np.ndarray
    left_out: np.ndarray
    language: str
    settings: ScoredSplit
    further_keywords: tuple[str, ...] = ()

    def take(self, mask: np.ndarray) -> Edges:
        """Some of the edges, by a mask (E,), with the tokens of all functions, where keywords are
        looked for."""
        columns = {name: column[mask] for name, column in self.columns.items()}
        return dataclasses.replace(self, **columns, begin=self.begin[mask])

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
    dataset, name = load_functions(data, config, split)
    numbers = {word: number for number, word in enumerate(keywords)}
    wanted = None if functions is None else set(np.asarray(functions).tolist())
    relations: list[str] = []
    labels = label_digest(dataset)
    tables: list[EdgeTable] = []
    keyword: list[int] = []
    left_out: list[bool] = []
    places = itertools.count()
    for batch in rows(dataset, None):
        used = [
            (function, row)
            for row, function in zip(batch, places)
            if row["relations"] and (wanted is None or function in wanted)
        ]
        tables.append(EdgeTable.from_rows(used, relations))
        for _, row in used:
            texts = [
                row["code"][start:end] for start, end in zip(row["token_start"], row["token_end"])
            ]
            keyword += [numbers.get(text, -1) for text in texts]
            left_out += [text == variant.never_predicted for text in texts]
    if not keyword:
        among = "" if wanted is None else " in these functions"
        raise DatasetError(f"{name}/{config}/{split} has no edges to score{among}")
    edges = stacked(tables)
    functions, first_edge, count = np.unique(edges.function, return_index=True, return_counts=True)
    tokens = edges.tokens[first_edge].astype(np.int64)
    return Edges(
        edges.relations,
        **edges.columns,
        begin=np.repeat(tokens.cumsum() - tokens, count),
        keyword=np.array(keyword, np.int8),
        left_out=np.array(left_out, bool),
        language=language.name,
        settings=ScoredSplit(
            data=name, labels=labels, config=config, split=split, functions=len(functions)
        ),
        further_keywords=further_keywords,
    )


class Patterns(NamedTuple):
    """The edges of one relation, grouped by the predictors that hit them: many edges share a
    pattern.

    `hits`: bool (patterns, predictors); `pattern`: (edges,), the index of each edge's pattern.
    """

    hits: np.ndarray
    pattern: np.ndarray


Named = dict[str, dict[str, dict[str, list[int] | list[str]]]]
"""Kind -> rule -> relation -> offsets or keywords, best first."""

Listed = dict[tuple[str, str, str], list[int]]
"""Kind, rule and relation -> numbers or places of predictors."""


@dataclass(frozen=True)
class Picks:
    """Chosen baselines: kind, rule and relation -> predictors, best first, as column numbers of
    `Patterns.hits`."""

    language: str
    keywords: tuple[str, ...]
    direction: str
    lists: Listed
    ties: Listed  # the places, from 1, at which others gain as much

    def names(self, kind: str, rule: str, relation: str) -> list[int] | list[str]:
        """The predictors as offsets (negative: towards the beginning) or keywords."""
        numbers = self.lists.get((kind, rule, relation), [])
        if kind == "keyword":
            return [self.keywords[number] for number in numbers]
        sign = 1 if self.direction == HEAD_TO_DEPENDENT else -1
        return (sign * _offsets(self.language)[numbers]).tolist()

    @property
    def picked(self) -> Named:
        """The names of all."""
        return _as_json({key: self.names(*key) for key in self.lists})

    def filled(self, edges: Edges, useless: Mapping[str, list[int]] | None = None) -> Picks:
        """The same with all lists filled up to the largest k, from the `edges` they were chosen on;
        see the module.

        Added predictors hit none of the edges that a list misses, so no score on these edges
        changes. `useless`: relation -> offsets from head to dependent that are not added by the
        rule `first`.
        """
        offsets = _offsets(self.language)
        occurring = np.bincount(edges.keyword[edges.keyword >= 0], minlength=len(self.keywords))

        def added(kind: str, rule: str, name: str, picked: list[int]) -> list[int]:
            if kind == "keyword":
                return np.argsort(-occurring, kind="stable").tolist()
            known = offsets[picked] if picked else np.zeros(1, int)
            distance = np.abs(offsets[:, None] - known).min(axis=1)
            numbers = np.argsort(distance, kind="stable")
            if useless and rule == RULES[0]:
                avoided = np.isin(offsets[numbers], useless.get(name, []))
                numbers = numbers[~avoided]
            return numbers.tolist()

        lists = {}
        for key, picked in self.lists.items():
            longer = dict.fromkeys([*picked, *added(*key, picked)])
            lists[key] = list(longer)[: max(KS)]
        return dataclasses.replace(self, lists=lists)


def _as_json(listed: Mapping[tuple[str, str, str], Any]) -> dict[str, dict[str, dict[str, Any]]]:
    """Kind, rule and relation -> something, as JSON."""
    nested: dict[str, dict[str, dict[str, Any]]] = {
        kind: {rule: {} for rule in RULES} for kind in KINDS
    }
    for (kind, rule, name), value in listed.items():
        nested[kind][rule][name] = value
    return nested


def pick(edges: Edges, direction: str = HEAD_TO_DEPENDENT) -> Picks:
    """Choose the best baselines for `edges`: for each relation and rule the greedy list for k = 1
    to 20."""
    lists: Listed = {}
    ties: Listed = {}
    for kind, rule, relation, _, patterns in _edges_by_relation(edges, direction):
        key = kind, rule, edges.relations[relation]
        lists[key], ties[key] = greedy(patterns, max(KS))
    return Picks(edges.language, edges.keywords, direction, lists, ties)


def greedy(patterns: Patterns, length: int) -> tuple[list[int], list[int]]:
    """Greedy maximum coverage: up to `length` predictors, each the one that gains most edges, the
    first of equals.

    Also returns the positions in the list, from 1, with several equally good predictors.
    """
    hits = patterns.hits.astype(np.float32)  # products in float32 are exact below 2**24 edges
    left = np.bincount(patterns.pattern, minlength=len(hits)).astype(np.float32)
    picked: list[int] = []
    tied: list[int] = []
    while len(picked) < min(length, hits.shape[1]):
        # some BLAS kernels set flags for lanes beyond the arrays: all numbers are finite
        with np.errstate(all="ignore"):
            gain = left @ hits  # (predictors,)
        best = int(gain.argmax())
        if gain[best] == 0:
            break
        picked.append(best)
        if np.count_nonzero(gain == gain[best]) > 1:
            tied.append(len(picked))
        left[patterns.hits[:, best]] = 0
    return picked, tied


def ledger(edges: Edges, picks: Picks) -> RankLedger:
    """The ranks of `edges` by `picks`, which may come from other edges: 1 layer with a head for
    each of KINDS."""
    ranks = np.full((len(RULES), len(edges), 1, len(KINDS)), WORST_RANK, np.uint8)
    for kind, rule, relation, index, patterns in _edges_by_relation(edges, picks.direction):
        numbers = picks.lists.get((kind, rule, edges.relations[relation]), [])
        if not numbers:
            continue
        listed = patterns.hits[:, numbers]  # (patterns, list)
        position = np.where(listed.any(axis=1), listed.argmax(axis=1), WORST_RANK)
        of_kind = ranks[RULES.index(rule), :, 0, KINDS.index(kind)]
        of_kind[index] = position[patterns.pattern]
    settings = {
        "baselines": {**edges.settings, "direction": picks.direction, "scoring": SCORING_VERSION}
    }
    return RankLedger.of(edges, ranks, settings)


def only(ledger: RankLedger, kind: str) -> RankLedger:
    """The ledger of only one of KINDS."""
    head = KINDS.index(kind)
    return dataclasses.replace(ledger, ranks=ledger.ranks[..., head : head + 1])


def better(ledger: RankLedger) -> Choice:
    """For each rule, relation and k the better of KINDS on `ledger`; if they are equal, the one
    chosen at k - 1.

    The one that needed fewer guesses is thereby kept when the other catches up, which happens if
    validation has few edges. If they are equal at k = 1, the offset is chosen.
    """
    counts = ledger.counts()
    choice: Choice = {}
    for name in counts.counts:
        heads = np.zeros((len(RULES), len(KS), 2), int)
        for number, rule in enumerate(RULES):
            offset, keyword = counts.hits(name, rule)[0, :, : max(KS)]
            chosen = 0
            for position, gained in enumerate((keyword - offset).tolist()):
                if gained:
                    chosen = int(gained > 0)
                heads[number, position, 1] = chosen
        choice[name] = heads
    return choice


@dataclass
class BaselineResult:
    """Offset, keyword and combined baseline of one split by both protocols.

    `picks`: protocol -> chosen predictors; `hits`: protocol -> `offset`, `keyword` or `combined` ->
    what it hits.
    """

    settings: BaselineSettings
    picks: dict[str, Picks]
    hits: dict[str, dict[str, ChosenHits]]

    @cached_property
    def summaries(self) -> dict[str, dict[str, Summary]]:
        """Protocol -> baseline -> its scores."""
        return {
            protocol: {kind: summary(chosen) for kind, chosen in of_kinds.items()}
            for protocol, of_kinds in self.hits.items()
        }

    @cached_property
    def same_relations(self) -> dict[str, Means]:
        """Baseline -> the means of *published* over the relations of *held-out*, which compare with
        its means."""
        relations = {kind: chosen.relations for kind, chosen in self.hits["held-out"].items()}
        return {
            kind: means(chosen.only(relations[kind]).hits.mean(kind))
            for kind, chosen in self.hits["published"].items()
        }

    def to_json(self) -> str:
        """Settings, chosen predictors and summaries of each protocol, and `same_relations`."""
        protocols = {}
        for protocol, summaries in self.summaries.items():
            picks = self.picks[protocol]
            numbers = {name: summed.model_dump() for name, summed in summaries.items()}
            choices = {"picked": picks.picked, "ties": _as_json(picks.ties)}
            protocols[protocol] = choices | numbers
        result = {
            "settings": self.settings.model_dump(),
            "protocols": protocols,
            "same_relations": self.same_relations,
        }
        return json.dumps(result, indent=1, allow_nan=False) + "\n"

    def save(self, folder: str | os.PathLike) -> Path:
        """Write the result atomically into `folder`; return the file's path."""
        settings = self.settings
        text = json.dumps(settings.model_dump(), sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:8]
        name = f"baselines.{settings.config}.{settings.split}.{digest}.json"
        return write(Path(folder) / name, self.to_json())


def evaluate(validation: Edges, test: Edges, direction: str = HEAD_TO_DEPENDENT) -> BaselineResult:
    """Baselines of `test` by both protocols: chosen on `test` itself, and chosen on `validation`
    and filled.

    For a comparison with a model, read only the functions of its ledgers: `read_edges(...,
    functions=ledger.function)`.
    """
    on_test = pick(test, direction)
    same = ledger(test, on_test)
    as_published = {kind: published(only(same, kind), kind) for kind in KINDS}
    as_published[BEST_BASELINE] = published(same, BEST_BASELINE)
    on_validation, as_held_out = chosen_on(validation, test, direction)
    settings = BaselineSettings(
        **test.settings, direction=direction, chosen_on=validation.settings, scoring=SCORING_VERSION
    )
    picks = {"published": on_test, "held-out": on_validation}
    return BaselineResult(settings, picks, {"published": as_published, "held-out": as_held_out})


def chosen_on(
    validation: Edges,
    test: Edges,
    direction: str = HEAD_TO_DEPENDENT,
    useless: Mapping[str, list[int]] | None = None,
) -> tuple[Picks, dict[str, ChosenHits]]:
    """What is chosen on `validation`, filled without `useless` offsets, and `offset`, `keyword` or
    `combined` -> what it hits of `test`."""
    picks = pick(validation, direction).filled(validation, useless)
    chosen = ledger(validation, picks)
    scored = ledger(test, picks)
    hits = {}
    for kind in KINDS:
        hits[kind] = held_out(only(chosen, kind), only(scored, kind), system=kind)
    hits[BEST_BASELINE] = apply(scored, better(chosen), BEST_BASELINE)
    return picks, hits


@checked
def baseline(
    data: Any,
    config: str = "python",
    split: str = "test",
    direction: str | None = None,
) -> BaselineResult:
    """The baselines of one split; for the held-out protocol they are chosen on the split
    `validation`.

    `data` is a folder that `codesyntax build` wrote, a dataset id on the Hub, or a loaded
    `DatasetDict`; `direction` is by default that of the language. Raises DatasetError or
    UnknownName for an unknown config, split or direction.
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
    return evaluate(
        read_edges(data, config, "validation"), read_edges(data, config, split), direction
    )


def _edges_by_relation(
    edges: Edges, direction: str
) -> Iterator[tuple[str, str, int, np.ndarray, Patterns]]:
    """Yield, for each kind, rule and relation that has edges, their indices in `edges` and their
    patterns."""
    if direction not in DIRECTIONS:
        raise UnknownName("direction", direction, DIRECTIONS)
    by_relation = np.argsort(edges.relation, kind="stable")
    ends = np.cumsum(np.bincount(edges.relation, minlength=len(edges.relations)))
    places = np.split(by_relation, ends[:-1])
    kinds: list[tuple[Iterable[np.ndarray], Callable[[np.ndarray], np.ndarray]]] = [
        _offset_patterns(edges),
        _keyword_patterns(edges, direction),
    ]
    for kind, (codes, expand) in zip(KINDS, kinds):
        for rule, edge_codes in zip(RULES, codes):
            for relation, index in enumerate(places):
                if len(index):
                    distinct, pattern = np.unique(edge_codes[index], return_inverse=True)
                    yield kind, rule, relation, index, Patterns(expand(distinct), pattern)


@cache
def _offsets(language: str) -> np.ndarray:
    """The offsets from head to dependent that the baseline may predict, nearest first: int64
    (offsets,)."""
    allowed = [offset for offset in LANGUAGES[language].offsets if offset]
    offsets = np.array(sorted(allowed, key=lambda offset: (abs(offset), -offset)))
    offsets.setflags(write=False)
    return offsets


def _offset_patterns(edges: Edges) -> tuple[list[np.ndarray], Callable[[np.ndarray], np.ndarray]]:
    """For each rule the offsets that hit each edge, as codes (E,), and how to expand codes to
    columns of `_offsets`.

    They are a run, whose code is the number of its first and of its last one; a run without any is
    -1.
    """
    allowed = LANGUAGES[edges.language].offsets
    columns = _offsets(edges.language)
    first = edges.first - edges.head
    last = edges.last - edges.head
    codes = []
    for begin, end in ((first, first), (first, last), (last, last)):
        begin = np.maximum(begin, allowed[0])
        end = np.minimum(end, allowed[-1])
        run = (begin - allowed[0]) * len(allowed) + end - allowed[0]
        codes.append(np.where(begin <= end, run, -1))

    def expand(codes: np.ndarray) -> np.ndarray:
        begin, end = np.divmod(codes[:, None], len(allowed))
        column = columns - allowed[0]
        return (codes[:, None] >= 0) & (begin <= column) & (column <= end)  # (patterns, offsets)

    return codes, expand


def _keyword_patterns(
    edges: Edges, direction: str
) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """For each rule and edge the keywords that hit, as codes (rules, E) of a bit each, and how to
    expand codes to columns of keywords."""
    number = max(1, len(edges.keywords))  # natural languages have none
    hits = np.zeros((len(RULES), len(edges), number), bool)
    keywords = np.flatnonzero(edges.keyword >= 0)
    order = keywords[np.argsort(edges.keyword[keywords], kind="stable")]
    in_order = edges.keyword[order]
    same = in_order[1:] == in_order[:-1]
    # neighbours among equal keywords; one of another function is further than all tokens of an edge
    earlier = order[:-1][same]
    later = order[1:][same]
    head, first, last = (edges.begin + column for column in (edges.head, edges.first, edges.last))
    behind = np.maximum(first, head + 1)  # the first token of the dependent that is behind the head
    if direction == DEPENDENT_TO_HEAD:
        repeated = np.full(len(edges.keyword), len(edges.keyword))
        repeated[earlier] = later
        word = edges.keyword[head]
        furthest = np.minimum(last, repeated[head])
        # of all tokens, `behind` sees the head best
        for rule, reading in enumerate((first, behind, last)):
            hit = np.flatnonzero((word >= 0) & (head < reading) & (reading <= furthest))
            hits[rule, hit, word[hit]] = True
    else:
        previous = np.full(len(edges.keyword), -1)
        previous[later] = earlier
        # a pair for each edge and keyword token in its dependent
        begin = np.searchsorted(keywords, behind)
        count = np.maximum(np.searchsorted(keywords, last, side="right") - begin, 0)
        edge = np.repeat(np.arange(len(edges)), count)
        start = begin - (count.cumsum() - count)
        token = keywords[np.arange(count.sum()) + np.repeat(start, count)]
        nearest = previous[token] <= head[edge]
        edge = edge[nearest]
        token = token[nearest]
        at_first = token == first[edge]
        at_last = token == last[edge]
        for rule, counts in enumerate((at_first, slice(None), at_last)):
            hits[rule, edge[counts], edges.keyword[token[counts]]] = True

    bits = np.packbits(hits, axis=-1)
    codes = bits.view(f"S{bits.shape[-1]}")[..., 0]  # texts are sorted faster than rows

    def expand(codes: np.ndarray) -> np.ndarray:
        rows = np.ascontiguousarray(codes).view(np.uint8).reshape(len(codes), -1)
        return np.unpackbits(rows, axis=1, count=len(edges.keywords)).astype(bool)

    return codes, expand
