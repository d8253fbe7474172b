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
from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT, RULES, rank_attention
from probing.baselines import Edges
from probing.ledger import RankLedger

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
