"""Controls: what a score is worth if there is nothing to find, in the attention, in the weights or in the labels.

- *random attention*: every row ranks the other tokens in random order. What counting alone gives.
- *random weights*: the model's architecture, tokenizer and pooling without what it learned. Long words are many
  sub-tokens and win the rows whose weights are summed, so this control differs from random attention.
- *shuffled labels*: the model as it is, on edges that relate the wrong tokens. What heads gain by looking at tokens
  that are often somebody's dependent.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import datasets
import numpy as np

from codesyntax_dataset.errors import ModelError
from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT, NOT_IN_MEAN, RULES, rank_attention
from probing.baselines import Edges
from probing.ledger import RankLedger
from probing.result import KS

if TYPE_CHECKING:
    from transformers import PreTrainedModel

CONTROLS = RANDOM_WEIGHTS, SHUFFLED_LABELS = ("random-weights", "shuffled-labels")
"""The controls that a probe can be run with; random attention needs no model."""


def random_attention(edges: Edges, direction: str = HEAD_TO_DEPENDENT, heads: int = 12, seed: int = 0) -> RankLedger:
    """The ledger of one layer of `heads` attention heads with random weights, ranked as any attention."""
    rng = np.random.default_rng(seed)
    ranks = np.empty((len(RULES), len(edges), 1, heads), np.uint8)
    starts = np.flatnonzero(np.diff(edges.function, prepend=-1))  # edges come function by function
    for start, end in zip(starts, [*starts[1:], len(edges)]):
        tokens, part = int(edges.tokens[start]), slice(start, end)
        names = [edges.relations[relation] for relation in edges.relation[part]]
        of_function = list(zip(names, edges.head[part], edges.first[part], edges.last[part]))
        for head in range(heads):  # one at a time bounds the memory
            attention = rng.random((1, 1, tokens, tokens))
            ranks[:, part, :, head] = rank_attention(attention, of_function, direction)[..., 0]
    settings = {"random_attention": {**edges.settings, "direction": direction, "seed": seed}}
    names = ("function", "relation", "head", "first", "last", "tokens")
    columns = {name: getattr(edges, name).astype(np.int32) for name in names}
    return RankLedger(relations=edges.relations, ranks=ranks, settings=settings, **columns)


def expected(edges: Edges, direction: str = HEAD_TO_DEPENDENT) -> np.ndarray:
    """What one head of random attention scores on average: percent, float64 (rules, k), the mean over relations.

    Of n other tokens the best k are any k. A row finds one of m tokens with probability 1 - C(n - m, k) / C(n, k), and m
    rows, each looking for one token, find it with 1 - (1 - k / n) ** m. A token's own place is the last.
    """
    k = np.array(KS)
    inside = edges.last - edges.first + 1 - ((edges.first <= edges.head) & (edges.head <= edges.last))
    wanted = {"first": edges.first != edges.head, "any": inside, "last": edges.last != edges.head}
    others = (edges.tokens - 1)[:, None]  # (E, 1)
    left = np.maximum(others - (k - 1), 1)  # tokens that are left to be the k-th best
    names = np.array(edges.relations)[edges.relation]
    in_mean = [name for name in edges.relations if name not in NOT_IN_MEAN]
    means = np.full((len(RULES), len(k)), np.nan)
    for number, rule in enumerate(RULES):
        m = np.asarray(wanted[rule], np.int64)[:, None]
        if direction == HEAD_TO_DEPENDENT:
            missed = np.cumprod(np.clip(1 - m / left, 0, 1), axis=1)
        else:
            missed = np.clip(1 - k / np.maximum(others, 1), 0, 1) ** m
        hit = np.where(k > others, 1, 1 - missed)  # so many are all tokens, the own one included
        if in_mean:
            means[number] = np.mean([100 * hit[names == name].mean(axis=0) for name in in_mean], axis=0)
    return means


def shuffle_labels(dataset: datasets.Dataset, seed: int = 0) -> datasets.Dataset:
    """The dataset with the dependents of each function dealt out anew among all its edges.

    Each function keeps its heads with their relations, and its dependents; who belongs to whom is random. A function
    with one edge keeps it. The result is probed and scored as any dataset; its labels have another digest.
    """

    def deal(relations: list[dict[str, Any]], index: int) -> dict[str, list[dict[str, Any]]]:
        order = np.random.default_rng([seed, index]).permutation(len(relations))
        return {
            "relations": [
                {**edge, "first": relations[other]["first"], "last": relations[other]["last"]}
                for edge, other in zip(relations, order)
            ]
        }

    return dataset.map(deal, with_indices=True, input_columns="relations", desc="shuffling labels")


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
