"""Controls: the scores if there is nothing to find in the attention, in the weights or in the labels.

- *random attention* (`probing.evidence.random_attention`): every row ranks the other tokens in random order. This is
  the score by chance.
- *random weights* (`probing.models.load`): an untrained twin, the same architecture, tokenizer and pooling
  with weights drawn as its family initialises them. Position schemes and sub-tokens alone give it a score, above random
  attention or below: what a model learned shows against such twins only, of several seeds, such as three.
- *shuffled attention*: the unchanged model, but the weights of each attention head are permuted over the tokens of a
  function, in the same way in all rows. The distribution of weights is kept; which tokens get them is random. A score
  above it may come from the architecture: an untrained model with local positions has one, too.
- *redrawn dependents*: the unchanged model, on edges to other tokens on the same side of the head, in code after it:
  what heads gain merely by looking there.
- *control task* (Hewitt and Liang 2019): the unchanged model, on edges whose dependents the seed assigns to words: each
  word, as the head of a relation, always has the token before it, the one after it, or the first or last of the
  function. A probe that finds these has learned words, not syntax; what it finds more of the real edges is its
  selectivity.
"""

from __future__ import annotations

import hashlib

import datasets
import numpy as np

from codesyntax_dataset.errors import LedgerError, UnknownName
from codesyntax_dataset.protocol import CONTROL_TASK, CONTROLS, REDRAWN_DEPENDENTS
from codesyntax_dataset.schema import EdgeCell

RELABELLED = REDRAWN_DEPENDENTS, CONTROL_TASK
"""The controls that are about other edges."""

_LABELLED = ["relations", "code", "token_start", "token_end"]


def check_control(name: str | None) -> None:
    """Raise UnknownName for an unknown control, LedgerError for one that no longer exists."""
    if name == "shuffled-labels":
        raise LedgerError(f"the control {name} no longer exists: probe {REDRAWN_DEPENDENTS} instead")
    if name not in (None, *CONTROLS):
        raise UnknownName("control", name, CONTROLS)


def labels_of(dataset: datasets.Dataset, control: str | None, seed: int | None) -> datasets.Dataset:
    """The dataset as read by a probe with this control; raises what `check_control` raises."""
    check_control(control)
    relabel = {REDRAWN_DEPENDENTS: redraw_dependents, CONTROL_TASK: assign_dependents}.get(control or "")
    return dataset if relabel is None else relabel(dataset, seed or 0)


Relations = dict[str, list[EdgeCell]]
"""The column `relations` of a row."""


def assign_dependents(dataset: datasets.Dataset, seed: int = 0) -> datasets.Dataset:
    """The dataset with the dependents of the control task: one token each, not of white space.

    Before the first token stands the second, as it were, and behind the last one the last but one. A function without
    another token keeps its dependents.
    """

    def assign(relations: list[EdgeCell], code: str, starts: list[int], ends: list[int]) -> Relations:
        words = [code[start:end] for start, end in zip(starts, ends)]
        visible = np.array([place for place, word in enumerate(words) if word.strip()], np.int64)
        assigned: list[EdgeCell] = []
        for edge in relations:
            others = visible[visible != edge["head"]]
            if len(others):
                here, most = int(np.searchsorted(others, edge["head"])), len(others) - 1
                task = hashlib.sha256(f"{seed} {edge['relation']} {words[edge['head']]}".encode()).digest()[0] % 4
                place = int(others[(max(here - 1, 0), min(here, most), 0, most)[task]])
                edge = {**edge, "first": place, "last": place}
            assigned.append(edge)
        return {"relations": assigned}

    return dataset.map(assign, input_columns=_LABELLED, desc="assigning dependents")


def redraw_dependents(dataset: datasets.Dataset, seed: int = 0) -> datasets.Dataset:
    """The dataset with another dependent for every edge: as many tokens on the same side of the head, which in code is
    after it, none of them the gold one's.

    All positions are equally likely, except that a dependent does not begin or end with white space, which many models
    cannot find, unless the gold one does. If no such position is left, the dependent may overlap the gold one, then
    begin or end with white space, then be anywhere, but never begin where the gold one does; a dependent that is the
    whole function is kept. Heads and relations are kept. The result is probed and scored like any dataset; its
    labels have another digest.
    """

    def redraw(relations: list[EdgeCell], code: str, starts: list[int], ends: list[int], index: int) -> Relations:
        rng = np.random.default_rng([seed, index])
        visible = np.array([bool(code[start:end].strip()) for start, end in zip(starts, ends)], bool)
        redrawn: list[EdgeCell] = []
        for edge in relations:
            head, first, last = edge["head"], edge["first"], edge["last"]
            begin = np.arange(len(visible) - (last - first))
            begin = begin[begin != first]
            end = begin + last - first
            visible_ends = (visible[begin] >= visible[first]) & (visible[end] >= visible[last])
            apart = (end < first) | (last < begin)
            side = np.sign(begin - head) == np.sign(first - head)
            choices = (side & visible_ends & apart, side & visible_ends, side, np.ones(len(begin), bool))
            places = next((begin[choice] for choice in choices if choice.any()), [first])
            place = int(rng.choice(places))
            redrawn.append({**edge, "first": place, "last": place + last - first})
        return {"relations": redrawn}

    return dataset.map(redraw, with_indices=True, input_columns=_LABELLED, desc="redrawing dependents")
