"""Masked copies of functions, restored by a language model, in batches, each copy once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from hashlib import sha256
from itertools import chain
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import torch
import transformers
from torch import Tensor
from tqdm import tqdm

from codesyntax_dataset.arguments import checked
from codesyntax_dataset.errors import ArgumentError
from probing.models.loaded import Batch, borrowed, full_precision
from probing.models.masked import KS, NEAR_LOGITS, RestoringModel, mask_of
from probing.models.transfer import send
from probing.runs.batches import Batches

RESTORED_DECIMALS = 3
"""Those of the mean log-probability of a copy."""

_NEAR_HALF = 0.01  # of a copy's last decimal: nearer to where it is rounded up or down, another batch could decide


class Copy(NamedTuple):
    """A function to be masked: its sub-tokens `ids` (S,), and the `positions` (M,) to mask, at
    least one."""

    ids: np.ndarray
    positions: np.ndarray


class Filled(NamedTuple):
    """The predictions of a model in a copy.

    `predicted` (M,): ids, in the order of the positions; `hits`: how many of them the model finds
    within each k of KS; `log_probability`: of the true sub-tokens, in nats, the mean over the
    positions, rounded to DECIMALS; `unsure`: the number of positions where rounding, as on another
    machine, could change the prediction or a hit.
    """

    predicted: np.ndarray
    hits: tuple[int, ...]
    log_probability: float
    unsure: int


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

    def __init__(self, model: Any, batch_tokens: int | None = None):
        super().__init__(model, batch_tokens)
        self.model = model

    @abstractmethod
    def work(self, batch: Sequence[Placed], inputs: Batch) -> Tensor:
        """What is found at all positions of a batch: (M,) or (M, numbers)."""

    def passes(self, text: Placed) -> Iterable[Placed]:
        """The passes that a text takes: by default itself. What they find, one after the other, is
        of its positions."""
        return [text]

    def find(self, groups: Sequence[Sequence[Placed]], bar: tqdm) -> list[list[np.ndarray]]:
        """What is found at the positions of each text of each group, such as a function; the bar
        counts groups."""
        distinct: dict[Hashable, Placed] = {}
        asked, new = [], []
        for group in groups:
            before = len(distinct)
            asked.append([[(key_of(item), item) for item in self.passes(text)] for text in group])
            for key, item in chain.from_iterable(asked[-1]):
                distinct.setdefault(key, item)
            new.append(len(distinct) - before)
        if self.LONGEST_FIRST:
            distinct = dict(sorted(distinct.items(), key=lambda item: -len(item[1].ids)))
        predictions = self.each([*distinct.values()], FunctionsBar(bar, new), self.work)
        ends = np.cumsum([len(item.positions) for item in distinct.values()])
        of_pass = dict(
            zip(
                distinct, np.split(torch.cat(predictions).numpy(), ends[:-1]) if predictions else []
            )
        )
        return [
            [np.concatenate([of_pass[key] for key, _ in text]) for text in group] for group in asked
        ]

    def alone(self, text: Placed) -> np.ndarray:
        """What is found at the positions of a text, one pass after the other."""
        each = [self.work([item], self.model.inputs([item.ids])) for item in self.passes(text)]
        return torch.cat(each).cpu().numpy()

    def places(self, batch: Sequence[Placed]) -> tuple[Tensor, Tensor]:
        """The rows and the columns of all positions of a batch, int64 (M,) each, on the model's
        device."""
        rows = np.repeat(np.arange(len(batch)), [len(item.positions) for item in batch])
        columns = np.concatenate([item.positions for item in batch])
        return send(rows, self.model.device), send(columns.astype(np.int64), self.model.device)


def key_of(item: Any) -> Hashable:
    """What equal passes share."""
    return tuple(
        sha256(part.tobytes()).digest() if isinstance(part, np.ndarray) else part for part in item
    )


class Filler(Passes[Copy]):
    """Restores copies in batches, longest first. What it finds does not depend on the batches, in
    float32.

    Rounding differs between batches, by far less than NEAR_LOGITS. The texts of a copy in which it
    could decide anything are run again, alone; `reruns` counts these.
    """

    LONGEST_FIRST = True

    model: RestoringModel
    reruns = 0

    def passes(self, text: Copy) -> list[Copy]:
        return [Copy(*part) for part in self.model.texts(*text)]

    def work(self, batch: Sequence[Copy], inputs: Batch) -> Tensor:
        return self.model.scores(inputs, *self.places(batch))

    def fill(self, groups: Sequence[Sequence[Copy]], bar: tqdm | None = None) -> list[list[Filled]]:
        """The predictions in each copy of each group, such as a function; the bar counts groups."""
        predictions = self.find(groups, tqdm(disable=True) if bar is None else bar)
        return [
            [self._sure(*prediction) for prediction in zip(*of_group)]
            for of_group in zip(groups, predictions)
        ]

    def _sure(self, copy: Copy, scores: np.ndarray) -> Filled:
        if NEAR_LOGITS[self.model.dtype] and _unsure(scores):
            self.reruns += len(self.passes(copy))
            scores = self.alone(copy)
        return _filled_positions(scores)


class FunctionsBar(tqdm):
    """Counts passes, in the order of groups, and tells a bar of groups when all those of one are
    finished."""

    def __init__(self, bar: tqdm, passes: Sequence[int]):
        super().__init__(disable=True)
        self._bar, self._ends, self._passes, self._groups = bar, np.cumsum(passes), 0, 0

    def update(self, n: float | None = 1) -> bool | None:
        self._passes += int(n or 0)
        groups = int(np.searchsorted(self._ends, self._passes, side="right"))
        self._groups, new = groups, groups - self._groups
        return self._bar.update(new)


@checked
def fill_masks(
    model: transformers.PreTrainedModel,
    tokenizer: Any,
    ids: Sequence[int] | np.ndarray,
    positions: Sequence[int] | np.ndarray,
) -> np.ndarray:
    """The sub-tokens that a masked language model predicts at some positions of a text: ids, int64
    (M,).

    `model`: with a masked-LM head, as from `AutoModelForMaskedLM`; `ids` (S,): those of the text by
    its `tokenizer`, special tokens included; `positions` (M,): the ones to mask. The text is run
    once, alone, by the model's own code; of equally likely sub-tokens the one with the lowest id is
    predicted.

    Raises ArgumentError for positions outside of the text, ModelError for a model without a mask
    token.
    """
    text, places = np.array(ids, np.int64).reshape(-1), np.asarray(positions, np.int64).reshape(-1)
    if not len(places):
        return places
    if not 0 <= places.min() <= places.max() < len(text):
        raise ArgumentError(
            f"positions are {places.min()} to {places.max()}, expected 0 to {len(text) - 1}"
        )
    text[places] = mask_of(tokenizer, type(model).__name__)
    inputs = torch.from_numpy(text)[None].to(model.device)
    with borrowed(model), full_precision(), torch.inference_mode():
        logits = model(
            input_ids=inputs, attention_mask=torch.ones_like(inputs), return_dict=True
        ).logits
    return logits[0, torch.from_numpy(places).to(model.device)].argmax(dim=-1).cpu().numpy()


def _unsure(scores: np.ndarray) -> bool:
    """True if rounding could change a prediction, a hit, or the last decimal of the mean
    log-probability."""
    parts = scores[:, 2].mean() * 10**RESTORED_DECIMALS % 1
    return bool(scores[:, 3].any() or abs(parts - 0.5) < _NEAR_HALF)


def _filled_positions(scores: np.ndarray) -> Filled:
    # within 3, 2, 1 or 0 of KS: within the largest k first
    hits = tuple(int((scores[:, 1] >= len(KS) - number).sum()) for number in range(len(KS)))
    mean = round(float(scores[:, 2].mean()), RESTORED_DECIMALS)
    return Filled(scores[:, 0].astype(np.int64), hits, mean, int(scores[:, 3].sum()))
