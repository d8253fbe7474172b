"""Controls: what a score is worth if there is nothing to find, in the attention, in the weights or in the labels.

- *random attention* (`probing.evidence.random_attention`): every row ranks the other tokens in random order. What counting alone gives.
- *random weights* (`probing.models.random_weights`): the model's architecture, tokenizer and pooling without what it learned. Its attention is nearly even,
  so the token of most sub-tokens wins nearly every row, where weights are summed: it scores less than random
  attention, and a distance to it says nothing about what was learned.
- *shuffled attention*: the model as it is, but the weights that an attention head has in a function are dealt out anew over the
  tokens, in all rows alike. How much attention there is, and how much of it falls on few tokens, stays; which tokens
  these are is chance. What is above it was learned.
- *redrawn dependents*: the model as it is, on edges to other tokens behind the head. What heads gain by looking behind
  the head at all. Not a control task in the sense of Hewitt and Liang (2019), whose labels belong to word types.
"""

from __future__ import annotations

from typing import Any

import datasets
import numpy as np

from codesyntax_dataset.errors import LedgerError, UnknownName
from codesyntax_dataset.protocol import CONTROLS, REDRAWN_DEPENDENTS


def check_control(name: str | None) -> None:
    """Raise UnknownName for a control that there is not, LedgerError for one that was given up."""
    if name == "shuffled-labels":
        raise LedgerError(f"the control {name} is no more: {REDRAWN_DEPENDENTS} took its place, so probe that")
    if name not in (None, *CONTROLS):
        raise UnknownName("control", name, CONTROLS)


def labels_of(dataset: datasets.Dataset, control: str | None, seed: int) -> datasets.Dataset:
    """The dataset as a probe with this control reads it; raises what `check_control` does."""
    check_control(control)
    return redraw_dependents(dataset, seed) if control == REDRAWN_DEPENDENTS else dataset


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
