"""Any Hugging Face language model: the probability of its sub-tokens, and what a masked one
restores, or a decoder that fills in the middle writes into a hole, in batches.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor
from transformers.modeling_outputs import BaseModelOutputWithPastAndCrossAttentions

from codesyntax_dataset.errors import ModelError
from probing.models.files import HEAD_MARK
from probing.models.loaded import (
    DRIFT,
    Batch,
    Check,
    Loaded,
    LoadedModel,
    borrowed,
    error_line,
    largest_value,
    positions_of,
    quiet,
    without_cache,
)
from probing.models.subtokens import word_ends

logger = logging.getLogger(__name__)

_EVERY = 3  # in the self-check every third sub-token is masked
EXAMINED_LENGTH = 48  # the sub-tokens of the longer text for the self-check
_MOST_LOGITS = 1 << 24  # of logits in memory at once, 64 MB


class ScoredText(NamedTuple):
    """The sub-tokens of a text, `ids` (S,), the `positions` (M,) of those that are no special ones,
    and where the words of these end, `ends` (M,)."""

    ids: np.ndarray
    positions: np.ndarray
    ends: np.ndarray


class ScoringModel(LoadedModel):
    """A masked language model or a decoder, whose output layer is computed only at the positions
    that are read.

    `mask`: the id of the mask token, None for a decoder; `why`: empty, or why the output layer is
    computed at all positions.

    Raises ModelError for a masked language model without a mask token.
    """

    def __init__(self, loaded: Loaded, masked: bool):
        super().__init__(loaded)
        if loaded.head:
            self.revision += HEAD_MARK + loaded.head
        self.mask = mask = self.tokenizer.mask_token_id if masked else None
        if masked and (mask is None or mask >= self.vocabulary):
            among = "" if mask is None else f" among its {self.vocabulary} embeddings"
            raise ModelError(
                f"{self.name} has no mask token{among}: use a masked language model, with its own tokenizer"
            )
        self.why = "its weights are spread over processes" if self.spread else ""
        self._body_options = without_cache(self.model.base_model)
        self._options = without_cache(self.model)
        self._at_once = _MOST_LOGITS // int(min(self.vocabulary, _MOST_LOGITS))

    def read(self, texts: Sequence[str]) -> Iterator[ScoredText]:
        """The sub-tokens of each text, and those of a masked language model in words.

        Before a decoder's text stands its beginning-of-text token, or its end-of-text token if it
        has no other, once.
        """
        begins = [self.tokenizer.bos_token_id, self.tokenizer.eos_token_id]
        begin = [token for token in begins if token is not None][:1]
        for text, (ids, offsets, special) in zip(texts, self.encode(texts)):
            positions = np.flatnonzero(~special)
            if self.mask is not None:
                yield ScoredText(
                    ids, positions, word_ends(self.tokenizer, text, positions, offsets)
                )
                continue
            ids = ids[~special]
            if ids[:1].tolist() != begin:
                ids = np.insert(ids, 0, begin)
            positions = np.arange(1, len(ids))
            yield ScoredText(ids, positions, positions + 1)

    def logits(
        self, inputs: Batch, rows: Tensor, columns: Tensor
    ) -> Iterator[tuple[slice, Tensor]]:
        """The logits at some positions of a batch: some of these, in order, with their float32 (m,
        vocabulary)."""
        with borrowed(self.model, self.prompt):
            if self.why:
                yield slice(None), self.everywhere(inputs, rows, columns)
                return
            hidden = self.model.base_model(**{**self._body_options, **inputs}, return_dict=True)[0][
                rows, columns
            ]
            for start in range(0, len(hidden), self._at_once):
                part = slice(start, start + self._at_once)
                yield part, self._logits_of(hidden[part]).float()

    def everywhere(self, inputs: Batch, rows: Tensor, columns: Tensor) -> Tensor:
        """The same logits, float32 (M, vocabulary), of those that the model reports for all
        positions."""
        with borrowed(self.model, self.prompt):
            return (
                self.model(**{**self._options, **inputs}, return_dict=True)
                .logits[rows, columns]
                .float()
            )

    def log_probabilities(self, inputs: Batch, rows: Tensor, columns: Tensor) -> Tensor:
        """The log-probability of the true sub-tokens at some positions, in nats: float64 (M,).

        `inputs`: a batch with its true sub-tokens; `rows`, `columns` (M,): which ones, on its
        device. A masked language model restores those of a row, all masked together; a decoder
        predicts each from those before it, so that columns count from 1.
        """
        truth, read = inputs["input_ids"][rows, columns], columns - 1
        if self.mask is not None:
            inputs, read = masked(inputs, rows, columns, self.mask), columns
        return self.chances(inputs, rows, read, truth)

    def chances(self, inputs: Batch, rows: Tensor, columns: Tensor, truth: Tensor) -> Tensor:
        """The log-probabilities, in nats, of the sub-tokens `truth` (M,) at some positions of a
        batch: float64 (M,)."""
        chances = torch.empty(len(rows), dtype=torch.float64, device=truth.device)
        for part, logits in self.logits(inputs, rows, columns):
            true = logits.gather(1, truth[part, None])[:, 0]
            chances[part] = (true - logits.logsumexp(dim=1)).double()
        return chances

    def _examine_output(
        self, inputs: Batch, rows: Tensor, columns: Tensor, expected: Tensor
    ) -> None:
        """Check that the logits at some positions are the `expected` ones of all; otherwise `why`
        is set."""
        name = "output layer at the positions that are read only"
        meaning = "its output layer cannot be computed on its own"
        try:
            from_states = torch.cat([logits for _, logits in self.logits(inputs, rows, columns)])
            apart = largest_value(from_states - expected)  # which fails for another vocabulary
            check = Check.within(name, apart, DRIFT[self.dtype], "logits differ by {}", meaning)
        except (
            Exception
        ) as error:  # a model's code may fail in any way when its parts are called on their own
            check = Check(name, False, error_line(error), meaning)
        self.checks.append(check)
        if not check.passed:
            self.why = f"{meaning} ({check.measured})"
            logger.warning(
                "the output layer of %s is computed at all positions: %s", self.name, self.why
            )

    def _logits_of(self, hidden: Tensor) -> Tensor:
        """The logits (M, vocabulary) that the model's own code computes from hidden states (M,
        width)."""
        body = self.model.base_model
        ids = torch.zeros(1, len(hidden), dtype=torch.long, device=hidden.device)
        own = body.__dict__.get("forward")
        body.forward = lambda *_, **__: BaseModelOutputWithPastAndCrossAttentions(
            last_hidden_state=hidden[None]
        )
        try:
            return self.model(
                input_ids=ids, attention_mask=torch.ones_like(ids), return_dict=True
            ).logits[0]
        finally:
            if own is None:
                del body.forward
            else:
                body.forward = own

    def compared(self, inputs: Batch, rows: Tensor, columns: Tensor, truth: Tensor) -> Tensor:
        """The logits at some positions of a batch, compared with those of the true sub-tokens (M,):
        float64 (M, 3), as of `MaskedModel.scores`."""
        comparisons = torch.empty(len(rows), 3, dtype=torch.float64, device=self.device)
        for part, logits in self.logits(inputs, rows, columns):
            comparisons[part] = _compared_logits(logits, truth[part])
        return comparisons

    def examine(self) -> Self:
        """The self-check: of the tokenizer, and of the logits of a text in a batch, alone, and with
        another end.

        Raises FailedCheck unless it predicts single sub-tokens: masked ones from both sides, or, as
        a decoder, from those before.
        """
        self.check_tokenizer()
        texts, places = self.examined_texts(EXAMINED_LENGTH)
        if self.mask is not None:
            for ids, text in zip(texts, places):
                ids[text[:-1][::_EVERY]] = self.mask
        columns = torch.as_tensor(places[0][:-1][::_EVERY], device=self.device)
        rows = torch.zeros_like(columns)
        both, alone, changed = (self.inputs(some) for some in (texts[:2], texts[:1], texts[2:]))
        try:
            batched, single, moved = (
                self.everywhere(inputs, rows, columns) for inputs in (both, alone, changed)
            )
        except Exception as error:  # models that need more than text raise errors of any type
            self.require(
                "runs on text", False, error_line(error), "it does not run on sub-tokens alone"
            )
        width = batched.shape[-1]
        self.require(
            "a logit for every sub-token",
            batched.ndim == 2 and width >= len(self.tokenizer),
            f"{width} logits for {len(self.tokenizer)} sub-tokens",
            "its output layer lacks some sub-tokens of its tokenizer",
        )
        bound = DRIFT[self.dtype]
        apart = largest_value(batched.softmax(-1) - single.softmax(-1))
        said = "probabilities at masks in a batch and alone differ by {}"
        meaning = "its predictions depend on the batch, or on chance"
        self.require(*Check.within("padding changes nothing", apart, bound, said, meaning))
        moved_by = largest_value(moved - single)
        moved_text = f"changing the last sub-token moves logits by {moved_by:.2g}"
        if self.mask is None:
            meaning = "it sees later sub-tokens, but has no head that restores masks"
            self.require("no sub-token sees what is behind", moved_by <= bound, moved_text, meaning)
        else:
            meaning = "it predicts a mask from the sub-tokens before it only, as decoders do"
            self.require("masks see what is behind", moved_by > 1e-6, moved_text, meaning)
        if not self.why:
            self._examine_output(both, rows, columns, batched)
        return self


class MaskedModel(ScoringModel):
    """A masked language model, which restores what is masked."""

    mask: int

    def __init__(self, loaded: Loaded):
        super().__init__(loaded, masked=True)

    def texts(
        self, ids: np.ndarray, positions: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The one text to run, in which all `positions` (M,) are masked."""
        yield ids, positions

    def scores(self, inputs: Batch, rows: Tensor, columns: Tensor) -> Tensor:
        """Predictions at masked positions, and the probability of the true sub-tokens: float64 (M,
        3).

        `inputs`: a batch with its true sub-tokens; `rows`, `columns` (M,): what to mask in it, on
        its device. The three numbers are the id with the largest logit, the lowest where several
        tie; 1 if it is the true one, otherwise 0; and the log-probability of the true one, in nats.
        """
        truth = inputs["input_ids"][rows, columns]
        return self.compared(masked(inputs, rows, columns, self.mask), rows, columns, truth)


def masked(inputs: Batch, rows: Tensor, columns: Tensor, mask: int) -> dict[str, Tensor]:
    """A batch in which the sub-tokens at `rows`, `columns` (M,) are the `mask`."""
    ids = inputs["input_ids"]
    return {**inputs, "input_ids": ids.index_put((rows, columns), ids.new_full((), mask))}


def _compared_logits(logits: Tensor, truth: Tensor) -> Tensor:
    """The numbers that `MaskedModel.scores` describes, for logits (M, vocabulary) and true ids
    (M,)."""
    predicted, true = logits.argmax(dim=1), logits.gather(1, truth[:, None])[:, 0]
    chance = true - logits.logsumexp(dim=1)
    return torch.stack([predicted, predicted == truth, chance], dim=1).double()


class Convention(NamedTuple):
    """The `marks` before the prefix, the suffix and the middle of a text, in this order (Bavarian
    et al. 2022, PSM).

    `models`: which were trained so, and `source`: where that is said; `stops`: tokens that end a
    middle, beside these three and the tokenizer's special ones.
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
    Convention(
        "Code Llama",
        ("▁<PRE>", "▁<SUF>", "▁<MID>"),
        ("▁<EOT>",),
        "Rozière et al. 2023 (arXiv:2308.12950)",
    ),
)
"""Of all, the first whose three tokens a tokenizer has is that of its model."""


def convention_of(tokenizer: Any) -> Convention | None:
    """The convention whose tokens a tokenizer has."""
    known = tokenizer.get_vocab()
    return next(
        (convention for convention in CONVENTIONS if known.keys() >= set(convention.marks)), None
    )


class InfillingModel(ScoringModel):
    """A decoder that writes into holes of a text, each on its own, greedily, at most as many
    sub-tokens as stood there.

    Raises ModelError for a decoder without tokens of CONVENTIONS.
    """

    def __init__(self, loaded: Loaded):
        super().__init__(loaded, masked=False)
        if self.prompt is not None:
            raise ModelError(f"{self.name} has virtual tokens, after which no holes are filled")
        convention = convention_of(self.tokenizer)
        if convention is None:
            known = "; ".join(other.models for other in CONVENTIONS)
            raise ModelError(
                f"{self.name} restores nothing: it is a decoder without fill-in-the-middle tokens; use one that has "
                f"those of {known}, or a masked language model"
            )
        self.longest = min(self.longest, (positions_of(loaded.model) or self.longest + 3) - 3)
        self._special = np.array(self.tokenizer.all_special_ids)
        vocabulary = self.tokenizer.get_vocab()
        self._marks = [[vocabulary[mark]] for mark in convention.marks]
        stops = [vocabulary[token] for token in convention.stops if token in vocabulary]
        self._stops = np.union1d(self._special, [*np.concatenate(self._marks), *stops])
        self._nothing = int(self._special[0])  # a special token stands for no text

    def texts(
        self, ids: np.ndarray, positions: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """For each run of neighbours among `positions` (M,) of a text, sorted: the text with this
        hole, as the model reads it, with what stood there at its end; and the positions of that.
        """
        inner = np.flatnonzero(~np.isin(ids, self._special))
        begin, end = inner[0], inner[-1] + 1
        for hole in np.split(positions, np.flatnonzero(np.diff(positions) > 1) + 1):
            first, last = hole[0], hole[-1] + 1
            parts = [ids[begin:first], ids[last:end], ids[first:last]]
            marked = [part for both in zip(self._marks, parts) for part in both]
            text = np.concatenate([ids[:begin], *marked]).astype(ids.dtype)
            yield text, np.arange(len(text) - len(hole), len(text))

    def scores(self, inputs: Batch, rows: Tensor, columns: Tensor) -> Tensor:
        """What the model writes, and the probability of what stood there: float64 (M, 3), as of
        `MaskedModel.scores`.

        `inputs`: a batch of `texts`; `rows`, `columns` (M,): what stood in their holes. A hole is
        written from left to right, each sub-token after those written before; behind a stop there
        is nothing. Whether a true sub-token is the likeliest, and its probability, are those after
        the true ones before it.
        """
        truth = inputs["input_ids"][rows, columns]
        numbers = self.compared(inputs, rows, columns - 1, truth).cpu()
        text, column = rows.cpu().numpy(), columns.cpu().numpy()
        for hole in np.split(np.arange(len(text)), np.flatnonzero(np.diff(text)) + 1):
            # up to the first other sub-token, the model has read just what it writes
            other = hole[numbers[hole, 1].numpy() == 0]
            if len(other):
                before = inputs["input_ids"][text[other[0]], : column[other[0]]]
                self._write(before, numbers[other[0] : hole[-1] + 1])
        return numbers

    def _write(self, before: Tensor, numbers: Tensor) -> None:
        """Put what the model writes after the sub-tokens `before` (S,) into `numbers` (n, 3), of
        which the first sub-token is known."""
        written = numbers[:, 0]
        if len(written) > 1:
            prompt = torch.cat([before, written[:1].to(before)])[None]
            with borrowed(self.model), quiet():
                output = self.model.generate(
                    prompt,
                    attention_mask=torch.ones_like(prompt),
                    max_new_tokens=len(written) - 1,
                    do_sample=False,
                    num_beams=1,
                    repetition_penalty=1.0,
                    eos_token_id=self._stops.tolist(),
                    pad_token_id=self._nothing,
                )
            more = output[0, prompt.shape[1] :].cpu()
            written[1 : 1 + len(more)] = more.double()
        stops = torch.from_numpy(self._stops)
        stopped = torch.isin(written.long(), stops).cumsum(0) > 0
        written[stopped] = self._nothing


RestoringModel = MaskedModel | InfillingModel
"""A model that restores sub-tokens of a text: of all that are masked at once, or of one hole after
the other."""
