"""The base of every loaded model: its parts, padded batches of its sub-tokens, its checks, and
being left as it was."""

from __future__ import annotations

import contextlib
import inspect
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers
from torch import Tensor

from codesyntax_dataset.errors import ModelError
from codesyntax_dataset.protocol import PAPER_LENGTH
from codesyntax_dataset.safe_files import printable
from probing.models.subtokens import encode, positions, tells_characters
from probing.models.transfer import send
from probing.models.wrapped import is_spread, prompted, virtual_tokens

logger = logging.getLogger(__name__)

Batch = Mapping[str, Tensor]
"""Padded inputs of a model: input_ids and attention_mask, int64 (B, S) each."""

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}

# A short one, which gets padding, and one longer than the local windows of most models. Both are
# Python without comments, and are lexed as Java, too, for tokenizers that read one language, and
# may drop its comments.
TEXTS = (
    "def area(w, h):\n    return w * h\n",
    'def tally(rows, limit=10):\n    """Größe naïve → 数量 😀"""\n    found\t= {}\r\n    for row in rows:\n'
    "        key = row[0]\n        if key not in found and len(found) != limit:\n"
    "            found[key] = 1.5 * sum(row[1:])\n        else:\n"
    "            raise KeyError('unexpected # key: %s' % key)\n    return sorted(found.items())\n",
)

# How much two runs of the whole model may differ, where rounding accumulates: probabilities, or
# hidden states relative to their norm. An ignored mask, or padding that leaks, changes them by
# more.
DRIFT = {"float32": 1e-3, "bfloat16": 2e-1, "float16": 5e-2}


class Check(NamedTuple):
    """Something that must hold, what was measured, and what its failure means."""

    name: str
    passed: bool
    measured: str
    meaning: str = ""

    @classmethod
    def within(cls, name: str, difference: float, bound: float, said: str, meaning: str) -> Check:
        """That a difference is at most a bound; `said` has a `{}` for it."""
        return cls(
            name,
            difference <= bound,
            f"{said.format(f'{difference:.2g}')}, at most {bound:.0e}",
            meaning,
        )


class FailedCheck(ModelError):
    """A model that cannot be probed; `checks` are those made so far, of which the last failed."""

    def __init__(self, name: str, checks: list[Check]):
        failed = checks[-1]
        super().__init__(
            f"{name} cannot be probed: {failed.meaning} ({failed.name}: {failed.measured})"
        )
        self.checks = checks


class Loaded(NamedTuple):
    """A model, its tokenizer, and its name and revision in signatures.

    `dtype`: the precision in which it runs; `max_length`: the most sub-tokens of a text;
    `quantization`: the type of the weights in its file, such as Q4_1, if they were quantized;
    `head`: the digest of its head, where the revision does not cover it; `prompt`: the PEFT model
    whose virtual tokens stand before each text, if there is one.
    """

    model: Any
    tokenizer: Any
    name: str
    revision: str
    dtype: str = "float32"
    max_length: int = PAPER_LENGTH
    quantization: str = ""
    head: str = ""
    prompt: Any = None


class LoadedModel:
    """A model and its tokenizer, on a device, run on padded batches of sub-tokens.

    `model`: the part that is run; `family`: its `model_type`; `precision`: of signatures, such as
    `float32 of Q4_1`; `vocabulary`: the number of its embeddings; `longest`: the most sub-tokens,
    special tokens included, of a function; `spread`: whether its weights are those of several
    processes, which all run it; `forwarded`: how many sub-tokens were put into batches; `checks`:
    the self-check, which whoever loads it makes.
    The model is left unchanged: what a run changes, such as evaluation mode, is restored when the
    run ends or fails.
    """

    def __init__(self, loaded: Loaded):
        (
            self.model,
            self.tokenizer,
            self.name,
            self.revision,
            self.dtype,
            max_length,
            quantization,
            _,
            self.prompt,
        ) = loaded
        self.precision = f"{self.dtype} of {quantization}" if quantization else self.dtype
        model, tokenizer = loaded.model, loaded.tokenizer
        self.spread = is_spread(model)
        self.family = model.config.model_type
        self.device = next(model.parameters()).device
        ahead = virtual_tokens(self.prompt)
        self.longest = min(max_length, (positions_of(model) or max_length + ahead) - ahead)
        self.vocabulary = vocabulary_of(model)
        padding = tokenizer.pad_token_id
        # decoders often have no padding token, or one without a row in the embeddings; padding is
        # masked anyway
        self._padding = padding if padding is not None and padding < self.vocabulary else 0
        self.checks: list[Check] = []
        self.forwarded = 0

    def encode(self, texts: Sequence[str]) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Sub-tokens of each text: ids (S,), character offsets (S, 2), and which are special
        (S,)."""
        return encode(self.tokenizer, texts)

    def inputs(self, ids: Sequence[np.ndarray]) -> Batch:
        """A padded batch: input_ids and attention_mask (B, S), padding on the right.

        Raises ModelError for an id without an embedding.
        """
        length = max(map(len, ids))
        self.forwarded += sum(map(len, ids))
        input_ids = np.full((len(ids), length), self._padding, np.int64)
        mask = np.zeros((len(ids), length), np.int64)
        for row, text in enumerate(ids):
            input_ids[row, : len(text)] = text
            mask[row, : len(text)] = 1
        if input_ids.max() >= self.vocabulary:
            raise ModelError(
                f"the tokenizer of {self.name} gives the id {input_ids.max()}, but the model has embeddings for "
                f"{self.vocabulary} only: do the two belong together?"
            )
        return {
            "input_ids": send(input_ids, self.device),
            "attention_mask": send(mask, self.device),
        }

    def require(self, name: str, passed: bool, measured: str, meaning: str = "") -> None:
        """Add a check; raises FailedCheck unless it passed."""
        self.checks.append(Check(name, passed, measured, meaning))
        if not passed:
            raise FailedCheck(self.name, self.checks)

    def examined_texts(self, length: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """The ids of three texts for a self-check, and where they are text: of TEXTS, at most
        `length` sub-tokens, and the first with another last one of the text.

        The first is half as long at most, so that it gets padding where every character is a
        sub-token, too. Raises ModelError if it has no other sub-token to end with.
        """
        lengths = (min(self.longest, length // 2), min(self.longest, length))
        (first, text), (second, text_of_second) = (
            (ids[:most].copy(), np.flatnonzero(~special[:most]))
            for (ids, _, special), most in zip(self.encode(TEXTS), lengths)
        )
        others = first[text][first[text] != first[text[-1:]]]
        if not len(others):
            raise ModelError(
                f"functions of at most {self.longest} sub-tokens are too short for the self-check: allow longer ones"
            )
        changed = first.copy()
        changed[text[-1]] = others[0]
        return [first, second, changed], [text, text_of_second, text]

    def check_tokenizer(self) -> None:
        """Require that character offsets are reliable: each visible character of ASCII is in one
        sub-token, which spells it."""
        self.require(
            "the tokenizer gives characters",
            tells_characters(self.tokenizer),
            type(self.tokenizer).__name__,
            "only fast tokenizers give the characters of a sub-token; choose a model with a tokenizer.json",
        )
        wrong, unknown, total = [], 0, 0
        for text, (ids, offsets, special) in zip(TEXTS, self.encode(TEXTS)):
            tokens_of: list[list[int]] = [[] for _ in text]  # those of each character
            for token, (start, end) in zip(ids[~special].tolist(), offsets[~special].tolist()):
                piece, spelled = text[start:end], str(self.tokenizer.decode([token]))
                # the marker of a space, which some tokenizers also put before the text
                if not spelled.strip():
                    continue
                for tokens in tokens_of[start:end]:
                    tokens.append(token)
                known = token != self.tokenizer.unk_token_id
                if known and piece.isascii() and _letters(piece) != _letters(spelled):
                    wrong.append(f"{spelled!r} at {piece!r}")
            for character, tokens in zip(text, tokens_of):
                if character.isascii() and not character.isspace():
                    total += 1
                    unknown += tokens in ([], [self.tokenizer.unk_token_id])
                    if len(tokens) != 1:
                        wrong.append(f"{character!r} in {len(tokens)} sub-tokens")
        self.require(
            "sub-tokens are known",
            2 * unknown < total,
            f"{total - unknown} of {total} characters",
            "its tokenizer has no vocabulary for code, perhaps because files of it are missing",
        )
        self.require(
            "characters belong to one sub-token, which spells them",
            not wrong,
            ", ".join(wrong[:3]) or f"{total} of {total}",
            "its tokenizer's offsets leave characters out, overlap, or point at other characters",
        )


def _letters(text: str) -> str:
    """The letters and digits in lower case, which no tokenizer marks or cleans."""
    return re.sub("[^a-z0-9]", "", text.lower())


def error_line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def largest_value(difference: Tensor) -> float:
    """The largest absolute value; NaN counts as infinite."""
    return difference.abs().nan_to_num(nan=float("inf")).max().item()


def body_of(model: transformers.PreTrainedModel) -> torch.nn.Module:
    """The model without its head; of an encoder-decoder, the encoder."""
    body = model.base_model
    assert isinstance(body, transformers.PreTrainedModel)
    return (
        body.get_encoder()
        if body.config.is_encoder_decoder and hasattr(body, "get_encoder")
        else body
    )


def is_read(name: str) -> bool:
    """True if attention may depend on a weight of this name in a body: not on one of a pooler or a
    head."""
    part = name.partition(".")[0]
    return "pooler" not in part and not part.endswith("_head")


def check_weights(model: transformers.PreTrainedModel, info: Mapping[str, Any]) -> list[str]:
    """The names of missing weights outside of the model's body; `info` is that of
    `from_pretrained`.

    Raises ModelError for weights of the body that are missing, and would be random, except those of
    poolers and heads, or of another shape.
    """
    if info["mismatched_keys"]:
        name, got, expected = min(info["mismatched_keys"])
        raise ModelError(
            f"its weights {name} have the shape {tuple(got)}, its configuration says {tuple(expected)}"
        )
    parts = dict(model.named_parameters(remove_duplicate=False))
    body = {id(parameter) for parameter in body_of(model).parameters()}
    lost = sorted(
        name
        for name in info["missing_keys"]
        if id(parts.get(name)) in body and is_read(name.removeprefix(f"{model.base_model_prefix}."))
    )
    if lost:
        raise ModelError(lacking(lost))
    return sorted(name for name in info["missing_keys"] if id(parts.get(name)) not in body)


def lacking(names: Sequence[str]) -> str:
    """What to say of missing weights."""
    return f"its weights lack {', '.join(names[:3])}{' and others' if len(names) > 3 else ''}"


def positions_of(model: transformers.PreTrainedModel) -> int | None:
    """The number of positions of the model, or that its configuration gives if positions are
    relative; None: any."""
    for name, module in body_of(model).named_modules():
        table = getattr(module, "weight", None)
        if name.rpartition(".")[2] == "position_embeddings" and table is not None:
            # RoBERTa and its descendants count positions from after the padding index
            padding = getattr(module, "padding_idx", None)
            return len(table) - (0 if padding is None else padding + 1)
    return positions(model.config)


def without_cache(model: torch.nn.Module) -> dict[str, bool]:
    """The options with which a model, such as a decoder, does not keep the keys and values of all
    layers."""
    return (
        {"use_cache": False} if "use_cache" in inspect.signature(model.forward).parameters else {}
    )


def vocabulary_of(model: transformers.PreTrainedModel) -> float:
    """The number of ids with an embedding; infinite for models that hash their ids instead."""
    try:
        embedding = model.get_input_embeddings()
    except (NotImplementedError, AttributeError):
        return float("inf")
    weight = getattr(embedding, "weight", None)
    return len(weight) if isinstance(weight, Tensor) else float("inf")


_HELD = "_modules", "_buffers", "_forward_hooks"
"""What a part of a model holds in dictionaries of its own."""


@contextlib.contextmanager
def borrowed(model: Any, prompt: Any = None) -> Iterator[None]:
    """Run the model in evaluation mode, without gradients and compiled code, and compute float32
    products in float32, without TF32; with virtual tokens, if there is a `prompt`. Afterwards each
    part has the attributes that it had.

    Those are its mode; the kind of attention, which BigBird changes for good on a short text; the
    frequencies of rotary positions that were scaled for a long one; and the hooks with which
    transformers reads attention, as a model that has them cannot be pickled.
    """
    parts = [
        (part, dict(vars(part)), [dict(vars(part)[name]) for name in _HELD])
        for part in [*model.modules(), *(prompt.modules() if prompt is not None else ())]
    ]
    precision = torch.get_float32_matmul_precision()
    for part, _, _ in parts:
        part.training = False
        vars(part).pop("_compiled_call_impl", None)
    if prompt is not None:
        model.base_model.forward = prompted(model.base_model, prompt)
    torch.set_float32_matmul_precision("highest")
    try:
        # weights that FSDP gathers here are those of the next step, too, which no tensor of
        # torch.inference_mode() can be
        with torch.no_grad():
            yield
    finally:
        torch.set_float32_matmul_precision(precision)
        for part, attributes, held in parts:
            for now, before in zip((vars(part)[name] for name in _HELD), held):
                now.clear()
                now.update(before)
            vars(part).clear()
            vars(part).update(attributes)


_COVERED = "LOAD REPORT"
"""What a warning about missing weights says, which `check_weights` is for."""


@contextlib.contextmanager
def quiet(name: str = "") -> Iterator[list[str]]:
    """Silence transformers' long warnings, and the bars of weights that are read in a second.

    Yields its warnings so far. Of a model or tokenizer with a `name`, which is being read, those
    that are still in the list at the end are logged, each once, but for those about missing
    weights, which our messages cover; without a name nothing is: it was read before.
    """
    library: Any = transformers.utils.logging
    verbosity, bars = library.get_verbosity(), library._tqdm_active
    handlers = [*library.get_logger("transformers").handlers]
    messages: list[str] = []

    def hear(record: logging.LogRecord) -> bool:
        """Whether it is shown: if it is an error, or another library's."""
        shown = record.levelno > logging.WARNING or not record.name.startswith("transformers")
        if not shown and record.levelno == logging.WARNING:
            messages.append(" ".join(record.getMessage().split()))
        return shown

    library.set_verbosity_warning()  # commands have it at errors
    for handler in handlers:
        handler.addFilter(hear)
    library._tqdm_active = False  # disable_progress_bar() would hide downloads, too
    try:
        yield messages
    finally:
        library.set_verbosity(verbosity)
        library._tqdm_active = bars
        for handler in handlers:
            handler.removeFilter(hear)
        for message in messages:
            if name and _COVERED not in message:
                warn_once(f"{name}: transformers warns: {printable(message, 400)}")


@cache
def warn_once(text: str) -> None:
    """Log a warning that the process has not logged yet."""
    logger.warning("%s", text)
