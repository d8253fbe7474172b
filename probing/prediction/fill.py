"""Masked copies of functions, restored by a language model, in batches, each copy once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
import transformers
from tqdm import tqdm

from codesyntax_dataset.arguments import checked
from codesyntax_dataset.errors import ArgumentError
from probing.models.infilling import RestoringModel
from probing.models.loaded import borrowed, full_precision
from probing.models.masked import KS, NEAR, mask_of
from probing.models.transfer import send
from probing.runs.batches import Batches

DECIMALS = 3
"""Those of the mean log-probability of a copy."""

_NEAR_HALF = 0.01  # of a copy's last decimal: nearer to where it is rounded up or down, another batch could decide


class Copy(NamedTuple):
    """A function to be masked: its sub-tokens `ids` (S,), and the `positions` (M,) to mask, at least one."""

    ids: np.ndarray
    positions: np.ndarray


class Filled(NamedTuple):
    """The predictions of a model in a copy.

    `predicted` (M,): ids, in the order of the positions; `hits`: how many of them the model finds within each k of KS;
    `log_probability`: of the true sub-tokens, in nats, the mean over the positions, rounded to DECIMALS; `unsure`: the
    number of positions where rounding, as on another machine, could change the prediction or a hit.
    """

    predicted: np.ndarray
    hits: tuple[int, ...]
    log_probability: float
    unsure: int


class Filler(Batches):
    """Restores copies in batches, longest first. What it finds does not depend on the batches, in float32.

    Rounding differs between batches, by far less than NEAR. The texts of a copy in which it could decide anything are
    run again, alone; `reruns` counts these.
    """

    def __init__(self, model: RestoringModel, batch_tokens: int | None = None):
        super().__init__(model, batch_tokens)
        self.model, self.reruns = model, 0

    def fill(self, copies: Sequence[Copy], bar: tqdm | None = None) -> list[Filled]:
        """The predictions in each copy, in order; equal texts are run once. The bar counts copies."""
        texts = [[Copy(*text) for text in self.model.texts(*copy)] for copy in copies]
        numbers: dict[tuple[bytes, bytes], int] = {}
        same = [
            [numbers.setdefault((text.ids.tobytes(), text.positions.tobytes()), len(numbers)) for text in of]
            for of in texts
        ]
        first = {number: text for of, each in zip(texts, same) for number, text in zip(each, of)}
        order = sorted(first, key=lambda number: (-len(first[number].ids), number))
        counted = FunctionsBar(tqdm(disable=True) if bar is None else bar, [*map(len, texts)])
        counted.update(sum(map(len, texts)) - len(order))
        batches = self.each([first[number] for number in order], counted, self._scores)
        scores = np.concatenate([batch.numpy() for batch in batches]) if batches else np.empty((0, 4))
        ends = np.cumsum([len(first[number].positions) for number in order])
        found = dict(zip(order, np.split(scores, ends[:-1])))
        alone: dict[int, np.ndarray] = {}
        filled = []
        for each in same:
            part = np.concatenate([found[number] for number in each])
            if NEAR[self.model.dtype] and _unsure(part):
                for number in set(each) - alone.keys():
                    self.reruns += 1
                    text = first[number]
                    alone[number] = self._scores([text], self.model.inputs([text.ids])).cpu().numpy()
                part = np.concatenate([alone[number] for number in each])
            filled.append(_filled(part))
        return filled

    def _scores(self, batch: Sequence[Copy], inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        return self.model.scores(inputs, *places_of(batch, self.model.device))


class Positioned(Protocol):
    """A text of a batch, of which some `positions` (M,) count."""

    @property
    def positions(self) -> np.ndarray: ...


def places_of(batch: Sequence[Positioned], device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """The rows and the columns of all positions of a batch, int64 (M,) each, on a device."""
    rows = np.repeat(np.arange(len(batch)), [len(one.positions) for one in batch])
    columns = np.concatenate([one.positions for one in batch])
    return send(rows, device), send(columns.astype(np.int64), device)


class FunctionsBar(tqdm):
    """Counts copies, in the order of functions, and tells a bar of functions when all those of one are finished."""

    def __init__(self, bar: tqdm, copies: Sequence[int]):
        super().__init__(disable=True)
        self._bar, self._ends, self._copies, self._functions = bar, np.cumsum(copies), 0, 0

    def update(self, n: float | None = 1) -> bool | None:
        self._copies += int(n or 0)
        functions = int(np.searchsorted(self._ends, self._copies, side="right"))
        self._functions, new = functions, functions - self._functions
        return self._bar.update(new)


@checked
def fill_masks(
    model: transformers.PreTrainedModel,
    tokenizer: Any,
    ids: Sequence[int] | np.ndarray,
    positions: Sequence[int] | np.ndarray,
) -> np.ndarray:
    """The sub-tokens that a masked language model predicts at some positions of a text: ids, int64 (M,).

    `model`: with a masked-LM head, as from `AutoModelForMaskedLM`; `ids` (S,): those of the text by its `tokenizer`,
    special tokens included; `positions` (M,): the ones to mask. The text is run once, alone, by the model's own code;
    of equally likely sub-tokens the one with the lowest id is predicted.

    Raises ArgumentError for positions outside of the text, ModelError for a model without a mask token.
    """
    text, places = np.array(ids, np.int64).reshape(-1), np.asarray(positions, np.int64).reshape(-1)
    if not len(places):
        return places
    if not 0 <= places.min() <= places.max() < len(text):
        raise ArgumentError(f"positions are {places.min()} to {places.max()}, expected 0 to {len(text) - 1}")
    text[places] = mask_of(tokenizer, type(model).__name__)
    inputs = torch.from_numpy(text)[None].to(model.device)
    with borrowed(model), full_precision(), torch.inference_mode():
        logits = model(input_ids=inputs, attention_mask=torch.ones_like(inputs), return_dict=True).logits
    return logits[0, torch.from_numpy(places).to(model.device)].argmax(dim=-1).cpu().numpy()


def _unsure(scores: np.ndarray) -> bool:
    """True if rounding could change a prediction, a hit, or the last decimal of the mean log-probability."""
    parts = scores[:, 2].mean() * 10**DECIMALS % 1
    return bool(scores[:, 3].any() or abs(parts - 0.5) < _NEAR_HALF)


def _filled(scores: np.ndarray) -> Filled:
    # within 3, 2, 1 or 0 of KS: within the largest k first
    hits = tuple(int((scores[:, 1] >= len(KS) - place).sum()) for place in range(len(KS)))
    mean = round(float(scores[:, 2].mean()), DECIMALS)
    return Filled(scores[:, 0].astype(np.int64), hits, mean, int(scores[:, 3].sum()))
