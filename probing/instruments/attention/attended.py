"""One run of a model that hears what its attention heads attend to most: the heads that were picked
for the edges of their relations, and every head by the kinds of tokens. No attention map is
kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from probing.instruments.attention.encoded import EncodedFunction
from probing.instruments.attention.probe import Probing
from probing.instruments.attention.ranking import FirstChoices, Plan, Pooled
from probing.instruments.attention.runner import Runner
from probing.runs.progress import progress


def choices_of_heads(
    probing: Probing, picked: np.ndarray, kinds: Mapping[int, np.ndarray], number: int
) -> tuple[np.ndarray, np.ndarray]:
    """The choices of FirstChoices (rules, edges), and how many reading tokens of each head have
    their largest weight on a token of each kind, (layers, heads, kinds).

    `picked`: as of FirstChoices; `kinds`: the index of a function -> the kind of each of its
    tokens, of `number` kinds.
    """
    encoder = probing.encoder
    runner = Runner(encoder, probing.settings.direction, averages=probing.averages)
    listener = partial(ChoicesByKind, picked=picked, kinds=kinds, number=number)
    chosen = []
    attended = np.zeros((encoder.layers, probing.heads, number), np.int64)
    with progress(
        total=len(probing.functions), desc=f"running {encoder.name}", unit="function"
    ) as bar:
        for batch in runner.heard(probing.functions, bar, listener):
            counts, choices = np.split(batch.numpy(), [attended.size])
            attended += counts.reshape(attended.shape)
            chosen.append(choices.reshape(len(picked), -1))
    return np.concatenate(chosen, axis=1), attended


class ChoicesByKind(FirstChoices):
    """Also counts in `attended` (layers, heads, kinds) on which kind of token each reading token
    has its largest weight; a reading token without any weight is not counted."""

    def __init__(
        self,
        functions: Sequence[EncodedFunction],
        *arguments: Any,
        kinds: Mapping[int, np.ndarray],
        number: int,
        picked: np.ndarray,
    ):
        super().__init__(functions, *arguments, picked=picked)
        heads = arguments[1] * (1 + self.averages)
        device = self.found.device
        self.attended = torch.zeros((self.layers, heads, number), dtype=torch.int64, device=device)
        self.kinds: dict[Plan, Tensor] = {}
        for group, plan in self.groups:
            table = np.zeros((len(functions[group]), len(plan.token)), np.int64)
            for row, function in zip(table, functions[group]):
                row[: len(kinds[function.index])] = kinds[function.index]
            self.kinds[plan] = torch.from_numpy(table).to(device)

    @property
    def heard(self) -> Tensor:
        return torch.cat([self.attended.flatten(), self.found.flatten()])

    def on_layer(self, plan: Plan, edges: slice, pooled: Pooled) -> None:
        counted = self._count_attended(plan, pooled)
        super().on_layer(plan, edges, counted)
        for _ in counted:  # of a layer without a picked head, all are left
            pass

    def _count_attended(self, plan: Plan, pooled: Pooled) -> Pooled:
        for block, rows in pooled:
            functions = len(self.kinds[plan])
            width = len(rows) // functions  # rows of a function, padded
            reads = torch.zeros((functions, width), dtype=torch.bool)
            for function, readers in enumerate(block.readers):
                reads[function, : len(readers)] = True
            weight, token = rows.max(dim=-1)  # (G * N, H)
            kind = self.kinds[plan].repeat_interleave(width, dim=0).gather(1, token)
            heads, number = self.attended.shape[1:]
            cell = kind + number * torch.arange(heads, device=rows.device)
            attends = (weight > 0) & reads.flatten().to(rows.device)[:, None]
            counts = torch.bincount(cell[attends], minlength=heads * number)
            self.attended[self.layer] += counts.reshape(heads, number)
            yield block, rows
