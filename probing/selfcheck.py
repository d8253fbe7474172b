"""The self-check: what must hold before a model's attention is believed, found out on two short texts.

Nothing in it trusts the model's family. The attention maps that a model reports in eager mode are the reference, and they
are themselves compared with what the model does: what its final hidden states depend on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from codesyntax_dataset.errors import ModelError
from probing import capture

if TYPE_CHECKING:
    from probing.encoder import Encoder

TEXTS = (  # a short one, which gets padding, and one that is longer than the local windows of most models
    "def area(w, h):\n    return w * h\n",
    'def tally(rows, limit=10):\n\t"""Größe naïve → 数量 😀"""\n\tfound = {}\r\n    for row in rows:\n        key = row[0]\n'
    "        if key not in found and len(found) < limit:\n            found[key] = 1.5 * sum(row[1:])  # x != y\n"
    "        else:\n            raise KeyError('unexpected key: %s' % key)\n    return sorted(found.items())\n",
)

# How far probabilities may be apart that come from the same queries and keys, by the precision of the model. bfloat16 has
# 8 bits, and eager attention rounds its scores to them, so that even a right probability can move by some hundredths.
_ROUNDING = {"float32": 1e-5, "bfloat16": 5e-2}

# How far apart two runs through the whole model may be, where rounding adds up: probabilities, or hidden states in relation
# to their norm. A mask that is ignored, or padding that leaks, moves them by more.
_DRIFT = {"float32": 1e-3, "bfloat16": 2e-1}


class Check(NamedTuple):
    """Something that must hold, what was found, and what it means where it does not hold."""

    name: str
    passed: bool
    found: str
    meaning: str


class FailedCheck(ModelError):
    """A model that cannot be probed; `checks` are all that were made, the last one failed."""

    def __init__(self, name: str, checks: list[Check]):
        failed = checks[-1]
        super().__init__(f"{name} cannot be probed: {failed.meaning} ({failed.name}: {failed.found})")
        self.checks = checks


class Findings(NamedTuple):
    """What the self-check found: attention layers and heads of each, whether no sub-token sees a later one, the checks, and
    why the attention must be taken from the eager maps, or an empty string."""

    layers: int
    heads: int
    causal: bool
    checks: list[Check]
    why_eager: str


def examine(encoder: Encoder) -> Findings:
    """Check the tokenizer and the model of an encoder that has not been checked yet; raises FailedCheck."""
    checks: list[Check] = []

    def require(check: Check) -> None:
        checks.append(check)
        if not check.passed:
            raise FailedCheck(encoder.name, checks)

    for check in _tokenizer_checks(encoder):
        require(check)
    encoded = [(ids[: encoder.longest], special[: encoder.longest]) for ids, _, special in encoder.encode(TEXTS)]
    padded = encoder.inputs([ids for ids, _ in encoded])
    alone = encoder.inputs([encoded[0][0]])
    length = padded["input_ids"].shape[1]
    try:
        maps, hidden = _run(encoder, padded)
        maps_alone, hidden_alone = _run(encoder, alone)
    except Exception as error:  # whatever a model raises that wants more than text
        require(Check("runs on text", False, _said(error), "it does not run on sub-tokens alone"))
        raise
    require(Check("runs on text", True, f"{len(encoded)} texts of up to {length} sub-tokens", ""))
    shapes = {tuple(getattr(m, "shape", ())) for m in maps}
    heads = max((shape[1] for shape in shapes if len(shape) == 4), default=0)
    require(
        Check(
            "maps between all sub-tokens",
            shapes == {(len(encoded), heads, length, length)},
            f"{len(maps)} layers of the shape {', '.join(map(str, sorted(shapes))) or 'nothing'}, expected (texts, heads, "
            f"{length}, {length})",
            "its attention is not between all pairs of sub-tokens, with as many heads in every layer",
        )
    )
    maps, maps_alone = [m.float() for m in maps], [m.float() for m in maps_alone]
    read = padded["attention_mask"].bool()  # (B, S); rows of padding mean nothing
    compared = [
        Check(
            f"captured rows equal the maps{kind}",
            *_compare(encoder, inputs, reference),
            "our attention function does not compute what the model's own does",
        )
        for kind, inputs, reference in (("", padded, maps), (", without padding", alone, maps_alone))
    ]
    require(_rows_sum_to_one(maps, read, encoder.dtype, explained=all(check.passed for check in compared)))
    require(_no_padding(maps, read))
    later = max(_largest(m.triu(1).masked_fill(~read[:, None, :, None], 0)) for m in maps)
    moved = _what_a_later_token_moves(encoder, alone, hidden_alone, encoded[0][1])
    causal = later <= 1e-6
    require(
        Check(
            "maps show what sub-tokens see",
            moved <= _DRIFT[encoder.dtype] / 10 if causal else moved > 1e-5,
            f"{later:.2g} on later sub-tokens; changing the last one moves earlier hidden states by {moved:.2g}",
            "its maps are not those it computes with",
        )
    )
    leaked = max(_largest(m[:1, :, : a.shape[2], : a.shape[3]] - a) for m, a in zip(maps, maps_alone))
    bound = _DRIFT[encoder.dtype]
    require(
        Check(
            "padding changes nothing",
            leaked <= bound,
            f"maps of a text in a batch and alone differ by {leaked:.2g}, at most {bound:.0e}",
            "its attention depends on the batch, or on chance",
        )
    )
    checks += compared
    if all(check.passed for check in compared):
        checks.append(_same_output(encoder, padded, hidden))
    why = next((f"{check.meaning} ({check.name}: {check.found})" for check in checks if not check.passed), "")
    return Findings(len(maps), heads, causal, checks, why)


def _tokenizer_checks(encoder: Encoder) -> Iterator[Check]:
    """Whether character offsets can be trusted: every character once, in order, and spelled by its sub-token."""
    tokenizer = encoder.tokenizer
    yield Check(
        "the tokenizer is fast",
        getattr(tokenizer, "is_fast", False),
        type(tokenizer).__name__,
        "only fast tokenizers tell which characters a sub-token covers; pick a model with a tokenizer.json",
    )
    missing, twice, backwards, misspelled, unknown, total = "", "", 0, [], 0, 0
    for text, (ids, offsets, special) in zip(TEXTS, encoder.encode(TEXTS)):
        covered = np.zeros(len(text), int)
        ids, offsets = ids[~special], offsets[~special]
        for token, (start, end) in zip(ids.tolist(), offsets.tolist()):
            piece, total = text[start:end], total + 1
            covered[start:end] += 1
            if token == tokenizer.unk_token_id:
                unknown += piece.isascii()
            elif piece.isascii() and _letters(piece) != _letters(tokenizer.decode([token])):
                misspelled.append(f"{tokenizer.decode([token])!r} at {piece!r}")
        backwards += int((np.diff(offsets, axis=0) < 0).any(axis=1).sum())
        visible = [(character, times) for character, times in zip(text, covered) if not character.isspace()]
        missing += "".join(character for character, times in visible if not times)
        # bytes of one character may be several sub-tokens
        twice += "".join(character for character, times in visible if times > 1 and character.isascii())
    yield Check(
        "sub-tokens are known",
        2 * unknown < total,
        f"{total - unknown} of {total}",
        "its tokenizer has no vocabulary for code, perhaps because files of it are missing",
    )
    yield Check(
        "characters belong to one sub-token",
        not missing and not twice,
        f"{missing!r} to none, {twice!r} to several",
        "its tokenizer's offsets leave characters out, or overlap",
    )
    yield Check(
        "offsets run from left to right",
        not backwards,
        f"{backwards} run backwards",
        "its tokenizer's offsets cannot be followed",
    )
    yield Check(
        "offsets spell the sub-tokens",
        not misspelled,
        ", ".join(misspelled[:3]) or f"{total} of {total}",
        "its tokenizer's offsets point at other characters",
    )


def _letters(text: str) -> str:
    """What no tokenizer marks or cleans: the letters and digits, in lower case."""
    return re.sub("[^a-z0-9]", "", text.lower())


def _run(encoder: Encoder, inputs: Mapping[str, torch.Tensor]) -> tuple[list[torch.Tensor], torch.Tensor]:
    """The model's eager maps, as it reports them, and its last hidden states (B, S, D), float32."""
    output = encoder.run(inputs, "eager", output_attentions=True, output_hidden_states=True)
    return list(output.get("attentions") or ()), _hidden(output)


def _hidden(output) -> torch.Tensor:
    hidden = output.get("last_hidden_state")
    return (output["hidden_states"][-1] if hidden is None else hidden).float()


def _compare(encoder: Encoder, inputs: Mapping[str, torch.Tensor], maps: list[torch.Tensor]) -> tuple[bool, str]:
    """Whether our attention function is called for every layer and its rows are the maps, and by how much they differ.

    Every layer goes on with the reference, so that its queries and keys are those of the eager run and rounding in other
    layers plays no part.
    """
    attended = inputs["attention_mask"].bool()[:, None, :, None]
    bound = _ROUNDING[encoder.dtype]
    differences: list[float] = []

    def listener(rows: capture.Rows) -> torch.Tensor | None:
        if len(differences) >= len(maps):
            differences.append(float("inf"))
            return None
        reference = maps[len(differences)]
        differences.append(_largest((rows(slice(None), None) - reference).masked_fill(~attended, 0)))
        return reference

    try:
        with capture.listen(listener):
            encoder.run(inputs, capture.NAME)
    except Exception as error:  # whatever a model's code does with an attention function it did not expect
        return False, _said(error)
    if len(differences) != len(maps):
        return False, f"called {len(differences)} times, expected once for each of {len(maps)} layers"
    worst = int(np.argmax(differences))
    return differences[worst] <= bound, f"they differ by {differences[worst]:.2g} in layer {worst}, at most {bound:.0e}"


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def _same_output(encoder: Encoder, inputs: Mapping[str, torch.Tensor], hidden: torch.Tensor) -> Check:
    ours = _hidden(encoder.run(inputs, capture.NAME, output_hidden_states=True))
    # the mean, because a mixture of experts may send a sub-token elsewhere when a number is rounded otherwise
    apart, bound = _apart(ours, hidden, inputs["attention_mask"]).mean().item(), _DRIFT[encoder.dtype]
    return Check(
        "output stays the same",
        apart <= bound,
        f"hidden states differ by {apart:.2g} of their norm, at most {bound:.0e}",
        "the model computes something else with our attention function",
    )


def _rows_sum_to_one(maps: list[torch.Tensor], read: torch.Tensor, dtype: str, explained: bool) -> Check:
    """Attention sinks take a share that no sub-token gets: a smaller sum is right where our own formula says the same."""
    rows = read[:, None].expand(-1, maps[0].shape[1], -1)
    sums = torch.stack([m.sum(dim=-1)[rows] for m in maps])
    low, high = sums.min().item(), sums.max().item()
    bound = max(1e-4, _ROUNDING[dtype])
    least = min(m.min().item() for m in maps)
    return Check(
        "rows sum to 1",
        least >= 0 and high <= 1 + bound and (low >= 1 - bound or explained),
        f"{low:.5f} to {high:.5f}" + ("; the rest goes to attention sinks" if low < 1 - bound and explained else ""),
        "what it reports as attention are no probabilities",
    )


def _no_padding(maps: list[torch.Tensor], read: torch.Tensor) -> Check:
    padding = read[:, None, :, None] & ~read[:, None, None, :]
    most = max(_largest(m.masked_fill(~padding, 0)) for m in maps)
    return Check(
        "padding gets nothing", most <= 1e-6, f"{most:.2g} on columns of padding", "it attends to padding in a batch"
    )


def _what_a_later_token_moves(
    encoder: Encoder, inputs: Mapping[str, torch.Tensor], hidden: torch.Tensor, special: np.ndarray
) -> float:
    """How far earlier hidden states move, in relation to their norm, when the last sub-token of the text is another."""
    ids = inputs["input_ids"].clone()
    text = np.flatnonzero(~special)
    last = int(text[-1])
    ids[0, last] = next(ids[0, place] for place in text if ids[0, place] != ids[0, last])
    earlier = (torch.arange(ids.shape[1], device=ids.device) < last)[None]
    return _largest(_apart(_run(encoder, {**inputs, "input_ids": ids})[1], hidden, earlier))


def _apart(ours: torch.Tensor, theirs: torch.Tensor, where: torch.Tensor) -> torch.Tensor:
    """The distance of hidden states (B, S, D) in relation to their norm, at each position where there is text."""
    return ((ours - theirs).norm(dim=-1) / theirs.norm(dim=-1).clamp(min=1e-9))[where.bool()]


def _largest(difference: torch.Tensor) -> float:
    """The largest absolute value; what is not a number counts as infinite."""
    return difference.abs().nan_to_num(nan=float("inf")).max().item()
