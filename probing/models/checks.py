"""The base of every self-check: its texts, its bounds, its outcomes, and the checks of a tokenizer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from codesyntax_dataset.errors import ModelError
from probing.models.subtokens import encode, tells_characters

# A short one, which gets padding, and one longer than the local windows of most models. Both are Python without
# comments, and are lexed as Java, too, for tokenizers that read one language, and may drop its comments.
TEXTS = (
    "def area(w, h):\n    return w * h\n",
    'def tally(rows, limit=10):\n    """Größe naïve → 数量 😀"""\n    found\t= {}\r\n    for row in rows:\n'
    "        key = row[0]\n        if key not in found and len(found) != limit:\n"
    "            found[key] = 1.5 * sum(row[1:])\n        else:\n"
    "            raise KeyError('unexpected # key: %s' % key)\n    return sorted(found.items())\n",
)

# How much two runs of the whole model may differ, where rounding accumulates: probabilities, or hidden states relative
# to their norm. An ignored mask, or padding that leaks, changes them by more.
DRIFT = {"float32": 1e-3, "bfloat16": 2e-1}


class Check(NamedTuple):
    """Something that must hold, what was measured, and what its failure means."""

    name: str
    passed: bool
    found: str
    meaning: str = ""


class FailedCheck(ModelError):
    """A model that cannot be probed; `checks` are those made so far, of which the last failed."""

    def __init__(self, name: str, checks: list[Check]):
        failed = checks[-1]
        super().__init__(f"{name} cannot be probed: {failed.meaning} ({failed.name}: {failed.found})")
        self.checks = checks


class SelfCheck(NamedTuple):
    """The outcome of a self-check: the number of attention layers and of heads in each, whether no sub-token sees a
    later one, the checks, and why attention must be read from the eager maps (empty if it need not)."""

    layers: int
    heads: int
    causal: bool
    checks: list[Check]
    why: str


def tokenizer_checks(tokenizer: Any) -> Iterator[Check]:
    """True if character offsets are reliable: each character once, in order, and spelled by its sub-token."""
    yield Check(
        "the tokenizer gives characters",
        tells_characters(tokenizer),
        type(tokenizer).__name__,
        "only fast tokenizers give the characters of a sub-token; choose a model with a tokenizer.json",
    )
    missing, twice, backwards, misspelled, unknown, total = "", "", 0, [], 0, 0
    for text, (ids, offsets, special) in zip(TEXTS, encode(tokenizer, TEXTS)):
        times = np.zeros(len(text), int)  # in how many sub-tokens each character is
        ids, offsets = ids[~special], offsets[~special]
        for token, (start, end) in zip(ids.tolist(), offsets.tolist()):
            piece, spelled = text[start:end], str(tokenizer.decode([token]))
            if not spelled.strip():  # the marker of a space, which some tokenizers also put before the text
                continue
            total += 1
            times[start:end] += 1
            if token == tokenizer.unk_token_id:
                unknown += piece.isascii()
            elif piece.isascii() and _letters(piece) != _letters(spelled):
                misspelled.append(f"{spelled!r} at {piece!r}")
        backwards += int((np.diff(offsets, axis=0) < 0).any(axis=1).sum())
        visible = [(character, count) for character, count in zip(text, times) if not character.isspace()]
        missing += "".join(character for character, count in visible if not count)
        # bytes of one character may be several sub-tokens
        twice += "".join(character for character, count in visible if count > 1 and character.isascii())
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
    """The letters and digits in lower case, which no tokenizer marks or cleans."""
    return re.sub("[^a-z0-9]", "", text.lower())


def error_line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def largest(difference: torch.Tensor) -> float:
    """The largest absolute value; NaN counts as infinite."""
    return difference.abs().nan_to_num(nan=float("inf")).max().item()
