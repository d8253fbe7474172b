"""Controls: what a score is worth if there is nothing to find, in the attention, in the weights or in the labels.

- *random attention*: every row ranks the other tokens in random order. What counting alone gives.
- *random weights*: the model's architecture, tokenizer and pooling without what it learned. Its attention is nearly even,
  so the token of most sub-tokens wins nearly every row, where weights are summed: it scores less than random
  attention, and a distance to it says nothing about what was learned.
- *shuffled attention*: the model as it is, but the weights that an attention head has in a function are dealt out anew over the
  tokens, in all rows alike. How much attention there is, and how much of it falls on few tokens, stays; which tokens
  these are is chance. What is above it was learned.
- *redrawn dependents*: the model as it is, on edges to other tokens behind the head. What heads gain by looking behind
  the head at all. Not a control task in the sense of Hewitt and Liang (2019), whose labels belong to word types.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import datasets
import numpy as np

from codesyntax_dataset.errors import LedgerError, ModelError, UnknownName
from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT, NOT_IN_MEAN, RULES, rank_attention
from probing.baselines import Edges
from probing.ledger import RankLedger
from probing.result import KS

if TYPE_CHECKING:
    from transformers import PreTrainedModel

CONTROLS = RANDOM_WEIGHTS, SHUFFLED_ATTENTION, REDRAWN_DEPENDENTS = (
    "random-weights",
    "shuffled-attention",
    "redrawn-dependents",
)
"""The controls that a probe can be run with; random attention needs no model."""

_WEIGHTS = 1 << 23
"""Random weights at once: 64 MB."""


def check_control(name: str | None) -> None:
    """Raise UnknownName for a control that there is not, LedgerError for one that was given up."""
    if name == "shuffled-labels":
        raise LedgerError(f"the control {name} is no more: {REDRAWN_DEPENDENTS} took its place, so probe that")
    if name not in (None, *CONTROLS):
        raise UnknownName("control", name, CONTROLS)


def random_attention(edges: Edges, direction: str = HEAD_TO_DEPENDENT, heads: int = 12, seed: int = 0) -> RankLedger:
    """The ledger of one layer of `heads` attention heads with random weights, ranked as any attention."""
    rng = np.random.default_rng(seed)
    ranks = np.empty((len(RULES), len(edges), 1, heads), np.uint8)
    starts = np.flatnonzero(np.diff(edges.function, prepend=-1))  # edges come function by function
    for start, end in zip(starts, [*starts[1:], len(edges)]):
        tokens, part = int(edges.tokens[start]), slice(start, end)
        left_out = edges.left_out[edges.begin[start] : edges.begin[start] + tokens]
        names = [edges.relations[relation] for relation in edges.relation[part]]
        of_function = list(zip(names, edges.head[part], edges.first[part], edges.last[part]))
        at_once = max(1, _WEIGHTS // tokens**2)
        for one in range(0, heads, at_once):
            some = slice(one, min(heads, one + at_once))
            attention = rng.random((1, some.stop - one, tokens, tokens))
            attention[:, :, left_out] = attention[..., left_out] = 0  # as of a token without sub-tokens
            ranks[:, part, :, some] = rank_attention(attention, of_function, direction)
    settings = {"random_attention": {**edges.settings, "direction": direction, "seed": seed}}
    names = ("function", "relation", "head", "first", "last", "tokens")
    columns = {name: getattr(edges, name).astype(np.int32) for name in names}
    return RankLedger(relations=edges.relations, ranks=ranks, settings=settings, **columns)


def expected(edges: Edges, direction: str = HEAD_TO_DEPENDENT, relations: Sequence[str] | None = None) -> np.ndarray:
    """What one head of random attention scores on average: percent, float64 (rules, k), the mean over relations.

    `relations`: the mean is over these alone.

    Of n other tokens the best k are any k. A row finds one of m tokens with probability 1 - C(n - m, k) / C(n, k), and m
    rows, each looking for one token, find it with 1 - (1 - k / n) ** m. A token's own place is the last. Tokens that are
    never predicted count neither in n nor in m.
    """
    k = np.array(KS)
    before = np.append(0, np.cumsum(~edges.left_out))  # tokens that may be predicted before each
    head, first, last = (edges.begin + column for column in (edges.head, edges.first, edges.last))
    may = ~edges.left_out[head]

    def single(token: np.ndarray) -> np.ndarray:
        return (may & ~edges.left_out[token]).astype(int)

    found = {"first": single(first), "any": (before[last + 1] - before[first]) * may, "last": single(last)}
    own = {"first": first == head, "any": (first <= head) & (head <= last), "last": last == head}
    others = (before[edges.begin + edges.tokens] - before[edges.begin] - 1)[:, None]  # (E, 1)
    left = np.maximum(others - (k - 1), 1)  # tokens that are left to be the k-th best
    names = np.array(edges.relations)[edges.relation]
    relations = edges.relations if relations is None else relations
    in_mean = [name for name in relations if name not in NOT_IN_MEAN]
    means = np.full((len(RULES), len(k)), np.nan)
    for number, rule in enumerate(RULES):
        m = (found[rule] - (own[rule] & may))[:, None]  # without the own one
        if direction == HEAD_TO_DEPENDENT:
            missed = np.cumprod(np.clip(1 - m / left, 0, 1), axis=1)
        else:
            missed = np.clip(1 - k / np.maximum(others, 1), 0, 1) ** m
        # so many are all tokens, the own one included
        hit = np.where((k > others) & (found[rule] > 0)[:, None], 1, 1 - missed)
        if in_mean:
            means[number] = np.mean([100 * hit[names == name].mean(axis=0) for name in in_mean], axis=0)
    return means


def redraw_dependents(dataset: datasets.Dataset, seed: int = 0) -> datasets.Dataset:
    """The dataset with another dependent for every edge: as many tokens, behind the head, none of them the gold one's.

    Each place is drawn with the same probability, but for those that begin or end with white space, which many models
    cannot find, where the gold one does not. Where no such place is left, the dependent may overlap the gold one, then
    begin or end with white space, then lie before the head, but never begin where the gold one does; one that is the
    whole function stays. Heads and relations stay. The result is probed and scored as any dataset; its labels have another digest.
    """

    def redraw(
        relations: list[dict[str, Any]], code: str, starts: list[int], ends: list[int], index: int
    ) -> dict[str, list[dict[str, Any]]]:
        rng = np.random.default_rng([seed, index])
        visible = np.array([bool(code[start:end].strip()) for start, end in zip(starts, ends)], bool)
        redrawn = []
        for edge in relations:
            head, first, last = edge["head"], edge["first"], edge["last"]
            begin = np.arange(len(visible) - (last - first))
            begin = begin[begin != first]
            end = begin + last - first
            told = (visible[begin] >= visible[first]) & (visible[end] >= visible[last])
            apart = (end < first) | (last < begin)
            behind = begin > head
            choices = (behind & told & apart, behind & told, behind, np.ones(len(begin), bool))
            places = next((begin[choice] for choice in choices if choice.any()), [first])
            place = int(rng.choice(places))
            redrawn.append({**edge, "first": place, "last": place + last - first})
        return {"relations": redrawn}

    columns = ["relations", "code", "token_start", "token_end"]
    return dataset.map(redraw, with_indices=True, input_columns=columns, desc="redrawing dependents")


def random_weights(model: PreTrainedModel, seed: int = 0) -> PreTrainedModel:
    """A new model of the same configuration, precision and device, headless, with weights as training begins.

    Raises ModelError where the configuration does not build that model.
    """
    import torch
    from transformers import AutoModel

    config = copy.deepcopy(model.config)
    with torch.random.fork_rng(), torch.device("cpu"):  # weights do not depend on the device
        torch.manual_seed(seed)
        try:
            fresh = AutoModel.from_config(config, dtype=model.dtype, attn_implementation="eager")
        except ValueError as error:
            raise ModelError(f"{type(model).__name__} cannot be built from its configuration: {error}") from error
    return fresh.to(model.device).eval()
