"""Masked copies of functions, restored by a language model, in batches, each copy once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from hashlib import sha256
from itertools import chain
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from probing.models.loaded import Batch
from probing.models.masked import RestoringModel
from probing.models.transfer import send
from probing.runs.batches import Batches

RESTORED_DECIMALS = 3
"""Those of the mean log-probability of a copy."""


class Copy(NamedTuple):
    """A function to be masked: its sub-tokens `ids` (S,), and the `positions` (M,) to mask, at
    least one."""

    ids: np.ndarray
    positions: np.ndarray


class Filled(NamedTuple):
    """The predictions of a model in a copy.

    `predicted` (M,): ids, in the order of the positions; `hits`: at how many of them the true one
    is the likeliest; `log_probability`: of the true sub-tokens, in nats, the mean over the
    positions, rounded to RESTORED_DECIMALS.
    """

    predicted: np.ndarray
    hits: int
    log_probability: float


class Positioned(Protocol):
    """A text of sub-tokens `ids` (S,), of which some `positions` (M,) count: a named tuple."""

    @property
    def ids(self) -> np.ndarray: ...

    @property
    def positions(self) -> np.ndarray: ...


Placed = TypeVar("Placed", bound=Positioned)


class Passes(Batches, ABC, Generic[Placed]):
    """Runs forward passes in batches, equal ones once: as they come, or if LONGEST_FIRST says so
    the longest first."""

    LONGEST_FIRST: ClassVar[bool] = False

    @abstractmethod
    def work(self, batch: Sequence[Placed], inputs: Batch) -> Tensor:
        """What is found at all positions of a batch: (M,) or (M, numbers)."""

    def found(self, item: Placed) -> int:
        """At how many positions `work` finds something in a pass: by default at all that it has."""
        return len(item.positions)

    def passes(self, text: Any) -> Iterable[Placed]:
        """The passes that a text takes: by default itself. What they find, one after the other, is
        of its positions."""
        return [text]

    def find(self, groups: Sequence[Sequence[Positioned]], bar: tqdm) -> list[list[np.ndarray]]:
        """What is found at the positions of each text of each group, such as a function; the bar
        counts groups."""
        distinct: dict[Hashable, Placed] = {}
        asked = []
        for group in groups:
            asked.append([[(pass_key(item), item) for item in self.passes(text)] for text in group])
            distinct |= dict(chain.from_iterable(asked[-1]))
        if self.LONGEST_FIRST:
            distinct = dict(sorted(distinct.items(), key=lambda item: -len(item[1].ids)))
        predictions = self.each([*distinct.values()], tqdm(disable=True), self.work)
        bar.update(len(groups))
        ends = np.cumsum([self.found(item) for item in distinct.values()])
        of_pass = dict(
            zip(
                distinct, np.split(torch.cat(predictions).numpy(), ends[:-1]) if predictions else []
            )
        )
        return [
            [np.concatenate([of_pass[key] for key, _ in text]) for text in group] for group in asked
        ]

    def places(self, batch: Sequence[Placed]) -> tuple[Tensor, Tensor]:
        """The rows and the columns of all positions of a batch, int64 (M,) each, on the model's
        device."""
        rows = np.repeat(np.arange(len(batch)), [len(item.positions) for item in batch])
        columns = np.concatenate([item.positions for item in batch])
        return send(rows, self.model.device), send(columns.astype(np.int64), self.model.device)


def pass_key(item: Any) -> Hashable:
    """What equal passes share."""
    return tuple(
        sha256(part.tobytes()).digest() if isinstance(part, np.ndarray) else part for part in item
    )


class Filler(Passes[Copy]):
    """Restores copies in batches, longest first.

    Rounding differs between batches: predictions do only where logits nearly tie.
    """

    LONGEST_FIRST = True

    model: RestoringModel

    def passes(self, text: Copy) -> list[Copy]:
        return [Copy(*part) for part in self.model.texts(*text)]

    def work(self, batch: Sequence[Copy], inputs: Batch) -> Tensor:
        return self.model.scores(inputs, *self.places(batch))

    def fill(self, groups: Sequence[Sequence[Copy]], bar: tqdm | None = None) -> list[list[Filled]]:
        """The predictions in each copy of each group, such as a function; the bar counts groups."""
        predictions = self.find(groups, tqdm(disable=True) if bar is None else bar)
        return [[_filled_positions(scores) for scores in of_group] for of_group in predictions]


def _filled_positions(scores: np.ndarray) -> Filled:
    mean = round(float(scores[:, 2].mean()), RESTORED_DECIMALS)
    return Filled(scores[:, 0].astype(np.int64), int(scores[:, 1].sum()), mean)
