"""Top-k UAS of attention heads: from attention to ranks, from ranks to counts, from counts to
scores.

The score of Shen et al. (2022, section 4): for an edge from a head token to a dependent, an
attention head hits within k if the dependent is among the k tokens with the largest weights in the
head token's row of word-level attention. Edge cases are defined here:

- A token's attention to itself counts as 0. Equal weights go by lower token index.
- A token without sub-tokens never predicts and is never predicted: an edge that needs one is a
  miss, and is counted.
- `first`: the dependent's first token must be hit; `last`: its last; `any`: any token from first to
  last.
- In the direction `dependent-to-head`, for models that cannot see later tokens, the rows of these
  tokens of the dependent are read instead, and the head token must be hit.
- Each relation, rule and k chooses its own best head; ties go to the lower layer, then to the lower
  head.
- The mean is over the relations that have edges, except those in NOT_IN_MEAN; it is None if none
  are left.

This file imports only numpy and none of its siblings, because the Hub loads the metric alone.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

CodeSyntaxError: type[ValueError]
try:
    from codesyntax_dataset import errors

    CodeSyntaxError = errors.CodeSyntaxError
# the metric was loaded from the Hub, without our packages; their errors are ValueErrors, too
except ImportError:
    CodeSyntaxError = ValueError

SCORING_VERSION = 2
"""Changes whenever the same attention would get different scores; part of every signature."""

RULES = ("first", "any", "last")
"""Which token of the dependent counts."""

DIRECTIONS = HEAD_TO_DEPENDENT, DEPENDENT_TO_HEAD = ("head-to-dependent", "dependent-to-head")
"""Whose row is read: the head token's, to find the dependent (as published), or the dependent's, to
find the head."""

WORST_RANK = 255
"""Ranks count from 0, the best, up to this value, which means: not among the first 255, or never
predicted."""

NOT_IN_MEAN = frozenset(
    {
        "Await:await->value",
        "Await:value->await",
        "Call:func->block",
        "Case:test->body",
        "Default:name->value",
        "Dict:key->value",
        "DictComp:key->generator",
        "DictComp:key->value",
        "DictComp:value->generator",
        "For:for->orelse",
        "GeneratorExp:elt->generator",
        "LabeledStatement:label->body",
        "ListComp:elt->generator",
        "Raise:raise->value",
        "Return:return->value",
        "Send:channel->value",
        "SetComp:elt->generator",
        "Slice:lower->upper",
        "Spread:spread->value",
        "Spread:value->spread",
        "UnaryOp:op->operand",
        "While:while->orelse",
        "With:item->body",
        "comprehension:target->iter",
    }
)
"""Relations that are scored but left out of the means: of the published ones, 34 of Python's 44 and
38 of Java's 39 are in; constructs that the paper does not have stay outside, so that means keep
their meaning."""


def rank_attention(
    attention: Any, edges: Sequence, direction: str = HEAD_TO_DEPENDENT
) -> np.ndarray:
    """Ranks of the dependents, or of the head tokens, of one function's edges.

    Returns uint8 (rules, edges, layers, heads), rules in the order of RULES. `attention` is
    word-level, (layers, heads, tokens, tokens), rows attend to columns: an array, a torch tensor or
    nested lists; or as a model gives it, a tuple of layers (1, heads, tokens, tokens). A token whose
    row and column are 0 everywhere has no sub-tokens. `edges` are `(relation, head, first, last)`,
    as tuples or as mappings with these keys.

    Raises CodeSyntaxError for other shapes, for weights that are negative or not finite, for edges
    outside the tokens, and for an unknown direction.
    """
    if direction not in DIRECTIONS:
        raise CodeSyntaxError(
            f"direction is {direction!r}, expected one of {', '.join(DIRECTIONS)}"
        )
    try:
        if isinstance(attention, (list, tuple)):
            attention = [_from_torch(layer) for layer in attention]
        attention = np.asarray(_from_torch(attention))
    except (TypeError, ValueError, RuntimeError) as error:
        raise CodeSyntaxError(
            f"attention is not an array ({error}): pass one numpy array, torch tensor or nested list of equal lengths"
        ) from None
    if attention.ndim == 5 and attention.shape[1] == 1:  # a batch of one function
        attention = attention[:, 0]
    if attention.ndim == 5:
        raise CodeSyntaxError(
            f"attention has the shape {attention.shape}, (layers, functions, heads, tokens, tokens): add the "
            f"{attention.shape[1]} functions of the batch one by one, as [layer[0] for layer in attentions]"
        )
    if attention.ndim != 4 or attention.shape[2] != attention.shape[3] or 0 in attention.shape:
        raise CodeSyntaxError(
            f"attention has the shape {attention.shape}, expected (layers, heads, tokens, tokens) of code tokens: of "
            "the sub-tokens of a token, first add up the columns, then average the rows"
        )
    if (
        attention.dtype.kind not in "fiu"
        or not np.isfinite(attention).all()
        or (attention < 0).any()
    ):
        raise CodeSyntaxError(
            f"attention has weights that are not finite numbers of at least 0 (type {attention.dtype}): pass the "
            "probabilities, not scores or masked values"
        )
    if attention.dtype.kind == "u":  # `rank_rows` marks tokens by negative weights
        attention = attention.astype(np.float64)
    layers, heads, tokens, _ = attention.shape
    _, head, first, last = edge_columns(edges, tokens)
    mapped = (attention != 0).any(axis=(0, 1, 2)) | (attention != 0).any(axis=(0, 1, 3))  # (T,)
    ranks = np.empty((len(RULES), len(head), layers, heads), np.uint8)
    if not len(head):
        return ranks
    # for each token of each dependent, edge by edge: a pair of a reading token and a token to be
    # found
    span = last - first + 1
    begin = span.cumsum() - span
    token = np.arange(span.sum()) + np.repeat(first - begin, span)
    head = np.repeat(head, span)
    reading, target = (head, token) if direction == HEAD_TO_DEPENDENT else (token, head)
    readers, row = np.unique(reading, return_inverse=True)
    for layer in range(layers):  # one layer at a time bounds the memory
        # (H, pairs)
        pairs = rank_rows(attention[layer][:, readers], readers, mapped)[:, row, target]
        by_rule = (
            pairs[:, begin],
            np.minimum.reduceat(pairs, begin, axis=-1),
            pairs[:, begin + span - 1],
        )
        ranks[:, :, layer] = np.stack(by_rule).swapaxes(1, 2)
    return ranks


def _from_torch(attention: Any) -> Any:
    """A torch tensor as numpy takes it, which has no bfloat16; anything else as it is."""
    if not hasattr(attention, "detach"):
        return attention
    attention = attention.detach().cpu()
    return attention.float() if attention.element_size() < 4 else attention


def rank_rows(rows: np.ndarray, readers: np.ndarray, mapped: np.ndarray) -> np.ndarray:
    """The rank of every token in rows of weights, uint8 (heads, readers, tokens). Overwrites
    `rows`, of the same shape.

    `readers` (readers,): the tokens whose rows these are; `mapped` (tokens,): whether a token has
    sub-tokens. `Plan.rank` in `probing/instruments/attention/ranking.py` gives the same ranks on a
    device: a tie rule changes in both.
    """
    rows[:, np.arange(len(readers)), readers] = 0
    rows[:, :, ~mapped] = -1  # below every weight, so that such a token ranks below every other
    # equal weights stay in the order of the tokens
    order = np.argsort(-rows, axis=-1, kind="stable")
    rank = np.minimum(np.arange(rows.shape[-1]), WORST_RANK).astype(np.uint8)
    ranks = np.empty(rows.shape, np.uint8)
    np.put_along_axis(ranks, order, np.broadcast_to(rank, rows.shape), axis=-1)
    ranks[:, :, ~mapped] = ranks[:, ~mapped[readers]] = WORST_RANK
    return ranks


def edge_columns(
    edges: Iterable, tokens: int | None = None
) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray]:
    """Relations, heads, firsts and lasts of `edges`, checked against the number of tokens if it is
    given."""
    relations, columns = [], []
    for index, edge in enumerate(edges):
        try:
            if isinstance(edge, Mapping):
                edge = (edge["relation"], edge["head"], edge["first"], edge["last"])
            relation, *positions = edge
            # no fractions, no digits in a string
            head, first, last = map(operator.index, positions)
            if not isinstance(relation, str):
                raise TypeError
        except (KeyError, TypeError, ValueError):
            raise CodeSyntaxError(
                f"edge {index} is {edge!r}, expected (relation, head, first, last) or a mapping with these keys: the "
                "relation's name and three whole numbers"
            ) from None
        if (
            min(head, first) < 0
            or last < first
            or (tokens is not None and max(head, last) >= tokens)
        ):
            below = "" if tokens is None else f" and tokens below {tokens}, which the attention has"
            raise CodeSyntaxError(
                f"edge {index} ({relation}) is {head} -> {first}..{last}, expected 0 <= head and 0 <= first <= last"
                f"{below}: do prediction and edges come from the same function?"
            )
        relations.append(relation)
        columns.append((head, first, last))
    return relations, *np.array(columns, np.int64).reshape(-1, 3).T


class RankCounts:
    """The number of times that each rank occurs: per relation an int64 array (rules, layers, heads,
    WORST_RANK + 1).

    Counts of batches, shards and processes add up (`merge`), and every score is computed from them.
    Their size depends on the model and the relations, not on the number of functions.
    """

    def __init__(self, layers: int, heads: int):
        self.layers, self.heads = layers, heads
        self.functions = 0
        self.counts: dict[str, np.ndarray] = {}

    def add(self, relations: Sequence[str], ranks: np.ndarray) -> None:
        """Count the ranks of one or more functions' edges: `ranks` uint8 (rules, edges, layers,
        heads)."""
        if ranks.shape != (len(RULES), len(relations), self.layers, self.heads):
            raise CodeSyntaxError(
                f"ranks have the shape {ranks.shape}, expected {(len(RULES), len(relations), self.layers, self.heads)}:"
                " rules first, any, last; edges; layers; heads, the same model for every function"
            )
        names = sorted(set(relations))
        numbers = {name: number for number, name in enumerate(names)}
        relation_of = np.fromiter(map(numbers.__getitem__, relations), np.intp, len(relations))
        cells = len(RULES) * self.layers * self.heads
        width = WORST_RANK + 1
        for index, name in enumerate(names):
            # (cells, edges)
            chosen = ranks[:, relation_of == index].transpose(0, 2, 3, 1).reshape(cells, -1)
            # bytes are faster put in order than the wider numbers made of them
            in_order = np.ascontiguousarray(chosen)
            flat = np.bincount(
                (in_order + np.arange(cells)[:, None] * width).ravel(), minlength=cells * width
            )
            self._of(name)[...] += flat.reshape(len(RULES), self.layers, self.heads, width)

    def merge(self, other: RankCounts) -> None:
        """Add the counts of another part of the data, probed with the same model."""
        if (self.layers, self.heads) != (other.layers, other.heads):
            raise CodeSyntaxError(
                f"counts of {other.layers} layers x {other.heads} heads do not add to {self.layers} x {self.heads}: "
                "they come from the same model"
            )
        self.functions += other.functions
        for name, counts in other.counts.items():
            self._of(name)[...] += counts

    def _of(self, relation: str) -> np.ndarray:
        shape = (len(RULES), self.layers, self.heads, WORST_RANK + 1)
        return self.counts.setdefault(relation, np.zeros(shape, np.int64))

    def edges(self, relation: str) -> int:
        return int(self.counts[relation][0, 0, 0].sum())

    def hits(self, relation: str, rule: str, most: int = WORST_RANK) -> np.ndarray:
        """Edges hit within k by each attention head: int64 (layers, heads, most), k from 1."""
        return self.counts[relation][RULES.index(rule), :, :, :most].cumsum(axis=-1)


def score(counts: RankCounts, k: int | Iterable[int], rule: str) -> dict[str, Any]:
    """Top-k UAS in percent by the published protocol: the best head of each relation and k, chosen
    on the scored data.

    Returns `{"scores": {k: mean}, "relations": {relation: {"edges": n, "in_mean": bool, k:
    {"score", "layer", "head"}}}}`, k as a string, layers and heads counted from 0, relations by
    name.

    >>> counts = RankCounts(layers=1, heads=2)
    >>> ranks = np.array([[0, 4], [2, 1]], np.uint8)  # of two edges, by two heads
    >>> counts.add(["If:if->test", "If:if->test"], np.tile(ranks.reshape(1, 2, 1, 2), (3, 1, 1, 1)))
    >>> score(counts, [1, 3], "first")["relations"]["If:if->test"]["3"]
    {'score': 100.0, 'layer': 0, 'head': 0}
    """
    check_rule(rule)
    ks = check_k(k)
    relations: dict[str, Any] = {}
    for name in sorted(counts.counts):
        edges = counts.edges(name)
        # (P, k)
        hits = counts.hits(name, rule, max(ks)).reshape(-1, max(ks))[:, [value - 1 for value in ks]]
        relations[name] = {"edges": edges, "in_mean": name not in NOT_IN_MEAN}
        for value, best, pair in zip(ks, hits.max(axis=0).tolist(), hits.argmax(axis=0).tolist()):
            layer, head = divmod(pair, counts.heads)  # the first of equals
            relations[name][str(value)] = {
                "score": 100 * best / edges,
                "layer": layer,
                "head": head,
            }
    return {
        "scores": {str(value): mean_score(relations, str(value)) for value in ks},
        "relations": relations,
    }


def mean_score(relations: Mapping[str, Any], k: str) -> float | None:
    """The mean over relations at `k`, or None without a relation that counts."""
    values = [entry[k]["score"] for entry in relations.values() if entry["in_mean"]]
    # one addition after the other: since Python 3.12 sum() rounds otherwise, and results must not
    # depend on the version
    return functools.reduce(operator.add, values, 0.0) / len(values) if values else None


def check_rule(rule: str) -> None:
    if rule not in RULES:
        raise CodeSyntaxError(f"rule is {rule!r}, expected one of {', '.join(RULES)}")


def check_k(k: int | Iterable[int]) -> list[int]:
    """The values of `k`, a number or several, in order, each once."""
    values = list(k) if isinstance(k, Iterable) else [k]
    if not values or not all(
        isinstance(value, (int, np.integer)) and value is not True and 1 <= value <= WORST_RANK
        for value in values
    ):
        raise CodeSyntaxError(
            f"k is {k!r}, expected a whole number from 1 to {WORST_RANK}, or a list of them"
        )
    return sorted({int(value) for value in values})
