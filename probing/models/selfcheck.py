"""The self-check: what must hold before a model's attention is trusted, tested on two short texts
and, for what may depend on length, on the longest and the shortest function of the run.

It does not rely on the model's family. The attention maps that a model reports in eager mode are
the reference, and are themselves compared with the model's behaviour. If a check fails, the model
is refused; only if the last ones, of our attention function, fail, the eager maps are probed
instead.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor
from transformers.utils import ModelOutput

from codesyntax_dataset.errors import ModelError
from probing.models import capture
from probing.models.encoder import Encoder
from probing.models.loaded import DRIFT, DTYPES, Batch, Check, error_line, largest_value

EncoderT = TypeVar("EncoderT", bound=Encoder)

# How much the same arithmetic on the same queries and keys may change a probability, in any
# precision.
_ROUNDING_ERROR = 1e-5

# How much the sum of rounded probabilities may differ from 1.
_ROUNDING_OF_SUMS = {"float32": 1e-4, "bfloat16": 5e-2, "float16": 1e-2}

# Sub-tokens of the longer text for the self-check: few, so that any model is quick, but more than
# ModernBERT's local window.
_LENGTH, _LENGTH_WITH_WINDOW = 24, 72

_ROWS = 16  # rows of a text to compare in a batch and alone


class _EagerRun(NamedTuple):
    """A batch, the model's eager maps of it, as it reports them, and its last hidden states (B, S,
    D), all in float32."""

    inputs: Batch
    maps: list[Any]
    hidden: Tensor

    @classmethod
    def of(cls, encoder: Encoder, inputs: Batch) -> _EagerRun:
        output = encoder.run(inputs, "eager", output_attentions=True, output_hidden_states=True)
        maps = output.get("attentions") or ()
        return cls(
            inputs,
            [None if layer is None else layer.float() for layer in maps],
            _hidden_states(output),
        )

    @property
    def texts(self) -> Tensor:
        """Where there is text: bool (B, S). Rows of padding are meaningless."""
        return self.inputs["attention_mask"].bool()


def self_check(encoder: EncoderT) -> EncoderT:
    """Check the tokenizer and the model of an encoder, which then reads attention as the outcome
    says; raises FailedCheck."""
    encoder.check_tokenizer()
    config = getattr(encoder.model, "config", None)
    length = _LENGTH_WITH_WINDOW if getattr(config, "sliding_window", None) else _LENGTH
    texts, _ = encoder.examined_texts(length)
    first, _, other = texts
    together = encoder.inputs(texts[:2])
    changed = encoder.inputs([first, other])  # no padding: both are of one length
    try:
        padded, alone = _EagerRun.of(encoder, together), _EagerRun.of(encoder, changed)
    except Exception as error:  # models that need more than text raise errors of any type
        encoder.require(
            "runs on text", False, error_line(error), "it does not run on sub-tokens alone"
        )
    count, length = together["input_ids"].shape
    encoder.require("runs on text", True, f"{count} texts of up to {length} sub-tokens")
    shapes = {tuple(getattr(m, "shape", ())) for m in padded.maps}
    heads = max((shape[1] for shape in shapes if len(shape) == 4), default=0)
    encoder.require(
        "maps between all sub-tokens",
        shapes == {(count, heads, length, length)},
        f"{len(padded.maps)} layers of the shape {', '.join(map(str, sorted(shapes))) or 'nothing'}, expected "
        f"({count}, heads, {length}, {length})",
        "its attention is not between all pairs of sub-tokens, with as many heads in every layer",
    )
    captured, apart = zip(*(_captured(encoder, run) for run in (padded, alone)))
    passed = all(check.passed for check in captured)
    _check_probabilities(encoder, padded, explained=passed)
    causal = _check_what_is_seen(encoder, padded, alone)
    length = alone.maps[0].shape[-1]
    moved = max(
        largest_value(m[:1, :, :length, :length] - other[:1])
        for m, other in zip(padded.maps, alone.maps)
    )
    bound = DRIFT[encoder.dtype]
    said = "maps of a text in a batch and alone differ by {}"
    meaning = "its attention depends on the batch, or on chance"
    encoder.require(*Check.within("padding changes nothing", moved, bound, said, meaning))
    encoder.checks += captured
    if passed:
        said = "hidden states differ by {} of their norm"
        meaning = "its output changes with our attention function"
        check = Check.within("output stays the same", max(apart), bound, said, meaning)
        encoder.checks.append(check)
    failed = (check for check in encoder.checks if not check.passed)
    encoder.why = next(
        (f"{check.meaning} ({check.name}: {check.measured})" for check in failed), ""
    )
    encoder.layers, encoder.heads, encoder.causal = len(padded.maps), heads, causal
    encoder.accept()
    return encoder


def examine_lengths(encoder: Encoder, longest: np.ndarray, shortest: np.ndarray) -> None:
    """Check that the attention of a text does not depend on the length of its batch.

    `longest`, `shortest`: the ids of the run's longest and shortest function. In some models the
    encoding of positions (longrope: Ding et al. 2024; dynamic scaling) or the kind of attention
    (BigBird) depends on the input length. What was examined before is not examined again.

    Raises FailedCheck.
    """
    before = encoder.examined
    if before and len(longest) <= len(before[0]) and len(before[1]) <= len(shortest):
        return
    longest = max([longest, *before[:1]], key=len)
    shortest = min([shortest, *before[1:]], key=len)
    encoder.examined = longest, shortest
    if len(longest) == len(shortest):
        return
    name = f"batches of {len(shortest)} to {len(longest)} sub-tokens change nothing"
    meaning = (
        "its attention depends on the length of the batch; lower --max-length to where it does not"
    )
    positions = torch.linspace(0, len(shortest) - 1, _ROWS).long().to(encoder.device)
    try:
        # alone first: some models keep the setting for the longest text so far
        alone = _attention_rows(encoder, encoder.inputs([shortest]), positions)
        # what the longest says makes no difference, only how long it is
        batch = encoder.inputs([longest, shortest])
        padded = {name: texts[1:] for name, texts in batch.items()}
        mixed = _attention_rows(encoder, padded, positions)
    except ModelError as error:  # maps of another shape
        encoder.require(name, False, str(error), meaning)
        return
    apart = max(
        largest_value(rows[..., : len(shortest)] - other) for rows, other in zip(mixed, alone)
    )
    said = "in a batch and alone, weights differ by {}"
    encoder.require(*Check.within(name, apart, DRIFT[encoder.dtype], said, meaning))


def _attention_rows(encoder: Encoder, text: Batch, positions: Tensor) -> list[Tensor]:
    """Rows of a text's attention, (1, H, R, S) for each layer."""
    rows_of_layers: list[Tensor] = []
    encoder.forward(text, lambda rows: rows_of_layers.append(rows(slice(1), positions[None])))
    return rows_of_layers


def _hidden_states(output: ModelOutput) -> Tensor:
    hidden = output.get("last_hidden_state")
    return (output["hidden_states"][-1] if hidden is None else hidden).float()


def _captured(encoder: Encoder, run: _EagerRun) -> tuple[Check, float]:
    """True if our attention function is called for every layer and its rows are the maps; and how
    far its hidden states are from those of the run, relative to their norm."""
    texts, maps = run.texts, run.maps
    name = "captured rows are the maps" + ("" if (~texts).any() else ", without padding")
    meaning = "our attention function computes other weights than the model's own"
    try:
        # the code of some families computes softmax in float32, that of others does not
        tries = {
            _differences(encoder, run, precision)
            for precision in (torch.float32, DTYPES[encoder.dtype])
        }
        differences = min(tries, key=max)
        # left to our attention function
        output = encoder.run(run.inputs, capture.ATTENTION_NAME, output_hidden_states=True)
        distances = _relative_distance(_hidden_states(output)[texts], run.hidden[texts])
        # the mean, because rounding may make a mixture of experts route a sub-token differently
        apart = distances.nan_to_num(nan=float("inf")).mean().item()
    except Exception as error:  # a model's code may fail in any way with an attention function that it does not expect
        return Check(name, False, error_line(error), meaning), float("inf")
    if len(differences) != len(maps):
        said = f"called {len(differences)} times, expected once for each of {len(maps)} layers"
        return Check(name, False, said, meaning), apart
    worst = max(differences)
    said = f"they differ by {{}} in layer {differences.index(worst)}"
    return Check.within(name, worst, _ROUNDING_ERROR, said, meaning), apart


def _differences(encoder: Encoder, run: _EagerRun, softmax: torch.dtype) -> tuple[float, ...]:
    """How far the rows of our attention function are from the maps of the run, in each layer for
    which it is called.

    Rows are computed as the model computes its maps, in its precision, with softmax in that of
    `softmax`, and from the same queries and keys: every layer continues with the reference. So
    neither large scores nor many layers make a difference, but any other mask, scale or key does.
    """
    rows_of_text = run.texts[:, None, :, None]
    differences: list[float] = []

    def listener(rows: capture.Rows) -> Tensor | None:
        if len(differences) >= len(run.maps):
            differences.append(float("inf"))
            return None
        reference = run.maps[len(differences)]
        difference = rows(slice(None), None).float() - reference
        differences.append(largest_value(difference.masked_fill(~rows_of_text, 0)))
        return reference

    with capture.listen(listener, softmax):
        encoder.run(run.inputs, capture.ATTENTION_NAME)
    return tuple(differences)


def _check_probabilities(encoder: Encoder, run: _EagerRun, explained: bool) -> None:
    """Require that rows are probabilities of what is text.

    Attention sinks take a share that goes to no sub-token: a smaller sum is correct if our formula
    gives it, too.
    """
    rows = run.texts[:, None].expand(-1, run.maps[0].shape[1], -1)
    sums = torch.stack([m.sum(dim=-1)[rows] for m in run.maps])
    low, high = sums.min().item(), sums.max().item()
    bound = _ROUNDING_OF_SUMS[encoder.dtype]
    least = min(m.min().item() for m in run.maps)
    encoder.require(
        "rows sum to 1",
        least >= 0 and high <= 1 + bound and (low >= 1 - bound or explained),
        f"{low:.5f} to {high:.5f}"
        + ("; the rest goes to attention sinks" if low < 1 - bound and explained else ""),
        "the attention that it reports is not made of probabilities",
    )
    padding = run.texts[:, None, :, None] & ~run.texts[:, None, None, :]
    most = max(largest_value(m.masked_fill(~padding, 0)) for m in run.maps)
    encoder.require(
        "nothing on padding",
        most <= 1e-6,
        f"{most:.2g} on its columns",
        "it attends to padding in a batch",
    )


def _check_what_is_seen(encoder: Encoder, padded: _EagerRun, alone: _EagerRun) -> bool:
    """Whether no sub-token sees a later one. Require that maps without weight on later sub-tokens
    belong to a model that does not see them, and vice versa; `alone`: a text, and the same with
    another end."""
    later = max(
        largest_value(m.triu(1).masked_fill(~padded.texts[:, None, :, None], 0))
        for m in padded.maps
    )
    causal = later <= 1e-6
    changed = (alone.inputs["input_ids"][0] != alone.inputs["input_ids"][1]).int().argmax()
    moved = largest_value(_relative_distance(alone.hidden[1, :changed], alone.hidden[0, :changed]))
    encoder.require(
        "maps show what sub-tokens see",
        moved <= DRIFT[encoder.dtype] / 10 if causal else moved > 1e-5,
        f"{later:.2g} on later ones, and changing the last one moves earlier hidden states by {moved:.2g}",
        "it computes with other maps than it reports",
    )
    return causal


def _relative_distance(ours: Tensor, theirs: Tensor) -> Tensor:
    """The distance of hidden states (..., D) relative to their norm."""
    return (ours - theirs).norm(dim=-1) / theirs.norm(dim=-1).clamp(min=1e-9)
