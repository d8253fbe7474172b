"""Decoders that fill in the middle: how their tokenizers mark a hole in a text, and what they write into it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from transformers import DynamicCache

from codesyntax_dataset.errors import ModelError
from probing.models.loaded import TEXTS, Loaded, error_line, positions_of
from probing.models.masked import MaskedModel, ScoringModel
from probing.models.transfer import send


class Convention(NamedTuple):
    """The `marks` before the prefix, the suffix and the middle of a text, in this order (Bavarian et al. 2022, PSM).

    `models`: which were trained so, and `source`: where that is said; `stops`: tokens that end a middle, beside these
    three and the tokenizer's special ones.
    """

    models: str
    marks: tuple[str, str, str]
    stops: tuple[str, ...]
    source: str


CONVENTIONS = (
    Convention(
        "StarCoder2, Granite",
        ("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
        ("<fim_pad>", "<file_sep>", "<repo_name>"),
        "Lozhkov et al. 2024 (arXiv:2402.19173), Mishra et al. 2024 (arXiv:2405.04324)",
    ),
    Convention(
        "Qwen2.5-Coder, CodeGemma",
        ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
        ("<|fim_pad|>", "<|file_sep|>", "<|repo_name|>", "<|file_separator|>"),
        "Hui et al. 2024 (arXiv:2409.12186), CodeGemma Team 2024 (arXiv:2406.11409)",
    ),
    Convention(
        "DeepSeek-Coder",
        ("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),
        (),
        "Guo et al. 2024 (arXiv:2401.14196)",
    ),
    Convention("Code Llama", ("▁<PRE>", "▁<SUF>", "▁<MID>"), ("▁<EOT>",), "Rozière et al. 2023 (arXiv:2308.12950)"),
)
"""Of all, the first whose three tokens a tokenizer has is that of its model."""


def convention_of(tokenizer: Any) -> Convention | None:
    """The convention whose tokens a tokenizer has."""
    known = tokenizer.get_vocab()
    return next((one for one in CONVENTIONS if known.keys() >= set(one.marks)), None)


class InfillingModel(ScoringModel):
    """A decoder that writes into holes of a text, each on its own, greedily, at most as many sub-tokens as stood there.

    Raises ModelError for a decoder without tokens of CONVENTIONS.
    """

    def __init__(self, loaded: Loaded):
        super().__init__(loaded, masked=False)
        convention = convention_of(self.tokenizer)
        if convention is None:
            known = "; ".join(one.models for one in CONVENTIONS)
            raise ModelError(
                f"{self.name} restores nothing: it is a decoder without fill-in-the-middle tokens; use one that has "
                f"those of {known}, or a masked language model"
            )
        # a cache has a column for each sub-token of a text, and one for each that is written: windows count columns
        window = (getattr(loaded.model.config, "sliding_window", None) or 2 * self.longest + 6) // 2
        self.longest = min(self.longest, min(window, positions_of(loaded.model) or window) - 3)
        self._marks = [[token] for token in self.tokenizer.convert_tokens_to_ids(list(convention.marks))]
        self._special = np.array(self.tokenizer.all_special_ids)
        known = self.tokenizer.get_vocab()
        stops = [known[token] for token in convention.stops if token in known]
        self._stops = np.union1d(self._special, [*np.concatenate(self._marks), *stops])
        self._nothing = int(self._special[0])  # a special token stands for no text

    def texts(self, ids: np.ndarray, positions: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """For each run of neighbours among `positions` (M,) of a text, sorted: the text with this hole, as the model
        reads it, with what stood there at its end; and the positions of that.
        """
        inner = np.flatnonzero(~np.isin(ids, self._special))
        begin, end = inner[0], inner[-1] + 1
        for hole in np.split(positions, np.flatnonzero(np.diff(positions) > 1) + 1):
            first, last = hole[0], hole[-1] + 1
            parts = [ids[begin:first], ids[last:end], ids[first:last]]
            marked = [part for both in zip(self._marks, parts) for part in both]
            text = np.concatenate([ids[:begin], *marked]).astype(ids.dtype)
            yield text, np.arange(len(text) - len(hole), len(text))

    def scores(self, inputs: Mapping[str, torch.Tensor], rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
        """What the model writes, and the probability of what stood there: float64 (M, 4), as of `MaskedModel.scores`.

        `inputs`: a batch of `texts`; `rows`, `columns` (M,): what stood in their holes. A hole is written from left to
        right, each sub-token after those written before; behind a stop there is nothing. The rank and the probability
        of a true sub-token are those after the true ones before it.
        """
        cached: dict[str, Any] = {"past_key_values": DynamicCache(), "use_cache": True}
        truth = inputs["input_ids"][rows, columns]
        found = self.compared({**inputs, **cached}, rows, columns - 1, truth).cpu().numpy()
        written, unsure = found[:, 0], found[:, 3]
        text, column, true = (of.cpu().numpy() for of in (rows, columns, truth))
        end = np.searchsorted(text, text, side="right")
        # of each text, up to the first sub-token that is another one, this pass has written what the model writes
        other = np.flatnonzero(written != true)
        place = other[np.unique(text[other], return_index=True)[1]]
        there, kept = inputs["attention_mask"].cpu().numpy().copy(), np.arange(len(inputs["input_ids"]))
        there[text[place]] *= np.arange(there.shape[1]) < column[place, None]
        while True:
            stopped = np.isin(written[place], self._stops)
            for at in place[stopped]:
                written[at : end[at]] = self._nothing
            place = place[~stopped & (place + 1 < end[place])]
            if not len(place):
                return torch.from_numpy(found)
            chosen, kept = np.searchsorted(kept, text[place]), text[place]
            if len(chosen) < len(there):
                cached["past_key_values"].batch_select_indices(send(chosen, self.device))
            there = np.pad(there[chosen], ((0, 0), (0, 1)), constant_values=1)
            ids = written[place, None].astype(np.int64)
            step = {"input_ids": ids, "attention_mask": there, "position_ids": column[place, None]}
            sent = {name: send(of, self.device) for name, of in step.items()}
            place = place + 1
            each = torch.arange(len(place), device=self.device)
            behind = truth[send(place, self.device)]
            new = self.compared({**sent, **cached}, each, torch.zeros_like(each), behind).cpu().numpy()
            written[place], unsure[place] = new[:, 0], np.maximum(unsure[place], new[:, 3])

    def examine(self) -> Self:
        """The self-check of a decoder; and of what it writes into a hole in a batch, and alone."""
        super().examine()
        found: list[tuple[np.ndarray, np.ndarray]] = []
        for ids, _, special in self.encode(TEXTS):
            inner = np.flatnonzero(~special)
            found += self.texts(ids, inner[len(inner) // 4 : len(inner) // 2])
        try:
            together, alone = self._written(found), [self._written([one]) for one in found]
        except Exception as error:  # a model's code may fail in any way when it gets a cache
            self.require("continues a text", False, error_line(error), "it does not continue what it has read")
        both = np.stack([together, np.concatenate(alone)])
        apart = int(((both[0, :, 0] != both[1, :, 0]) & (both[:, :, 3] == 0).all(axis=0)).sum())
        self.require(
            "holes are filled in a batch as alone",
            apart == 0,
            f"{apart} of {len(together)} sub-tokens differ",
            "what it writes depends on the batch",
        )
        return self

    def _written(self, texts: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """`scores` of some of `texts`, in one batch."""
        rows = np.repeat(np.arange(len(texts)), [len(positions) for _, positions in texts])
        columns = np.concatenate([positions for _, positions in texts])
        inputs = self.inputs([ids for ids, _ in texts])
        return self.scores(inputs, send(rows, self.device), send(columns, self.device)).numpy()


RestoringModel = MaskedModel | InfillingModel
"""A model that restores sub-tokens of a text: of all that are masked at once, or of one hole after the other."""
