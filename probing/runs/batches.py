"""Run functions of all lengths through a model in batches, with little padding and within its
memory."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from tqdm import tqdm

from codesyntax_dataset.errors import ModelError
from probing.models.transfer import fetch

if TYPE_CHECKING:
    from probing.models.loaded import LoadedModel
    from probing.runs.experiment import Tokenized

MOST_PADDING = 0.1
"""The most padding in a batch, relative to its sub-tokens."""

# on a CPU, what its caches hold is faster than fewer batches
_TOKENS_ON_DEVICE = {"cpu": 1024, "cuda": 65536}
_ELEMENTS = {"cpu": 1 << 19, "cuda": 1 << 26}  # numbers in memory beside the model's: 2 MB, 256 MB


TextT = TypeVar("TextT", bound="Tokenized")


class Batches:
    """Batches of functions, longest first, of a token budget, lowered if memory runs out.

    `batch_tokens`: sub-tokens per batch, padding included; by default what suits the device.
    `elements`: how many numbers the work on a batch may hold at once, beside those of the model.
    """

    def __init__(self, model: LoadedModel, batch_tokens: int | None = None):
        kind = "cuda" if model.device.type == "cuda" else "cpu"
        self.model = model
        self.budget = batch_tokens or _TOKENS_ON_DEVICE[kind]
        self.elements = _ELEMENTS[kind]

    def each(
        self,
        functions: Sequence[TextT],
        bar: tqdm,
        work: Callable[[Sequence[TextT], Mapping[str, torch.Tensor]], torch.Tensor],
    ) -> list[torch.Tensor]:
        """The output of `work` for every batch, from its functions and the model's inputs: on the
        CPU, in order."""
        device, done, start = self.model.device, [], 0
        while start < len(functions):
            batch = self.batch(functions, start)
            inputs = self.inputs(batch)
            try:
                result = work(batch, inputs)
            except RuntimeError as error:
                if not out_of_memory(error):
                    raise
                self._shrink(len(batch), inputs["input_ids"].shape[1])
                continue
            done.append(fetch(result))  # on a GPU, while the next batch runs
            start += len(batch)
            bar.update(len(batch))
        if device.type == "cpu" and platform.libc_ver()[0] == "glibc":
            # batches have different sizes, and glibc would keep memory for all of them; not after
            # each batch: allocating the memory again takes 6 % of the time
            ctypes.CDLL(None).malloc_trim(0)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return done

    def inputs(self, batch: Sequence[Any]) -> Mapping[str, torch.Tensor]:
        """The model's inputs for a batch."""
        return self.model.inputs([function.ids for function in batch])

    def batch(self, functions: Sequence[TextT], start: int) -> Sequence[TextT]:
        """The next functions, at least one, that fit the budget and MOST_PADDING when padded to the
        first."""
        longest, real, end = len(functions[start].ids), 0, start
        for function in functions[start : start + max(1, self.budget // longest)]:
            real += len(function.ids)
            if (end + 1 - start) * longest > (1 + MOST_PADDING) * real:
                break
            end += 1
        return functions[start:end]

    def _shrink(self, functions: int, length: int) -> None:
        if self.model.device.type == "cuda":
            torch.cuda.empty_cache()
        if functions > 1:
            self.budget = functions // 2 * length
        elif self.elements > 1:
            self.elements = 1  # as little as possible, which cannot be reduced further
        else:
            raise ModelError(
                f"out of memory for one function of {length} sub-tokens on {self.model.device}: lower --max-length, "
                "or use a larger device"
            )


def out_of_memory(error: RuntimeError) -> bool:
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)
