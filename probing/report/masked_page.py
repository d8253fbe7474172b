"""One function as a masked language model restores it, as a self-contained web page."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch

from codesyntax_dataset.arguments import Natural, checked
from codesyntax_dataset.errors import ArgumentError
from codesyntax_dataset.languages import language_of
from codesyntax_dataset.languages.grammar import checked_node_types
from codesyntax_metric.ast_similarity.similarity import parser_version
from probing.models.load import load_restoring
from probing.prediction.masking import Maskable, Masker, masked_copies
from probing.prediction.restore import Part, Restoration, RestoredCopy
from probing.report.pages import Page, check_length, page, shown

_SIGNS = str.maketrans({"\n": "⏎", "\r": "␍", "\t": "⇥"})
_NOTHING = "∅"


@checked
def show_masked(
    model: str | os.PathLike | tuple,
    code: str | os.PathLike | None = None,
    *,
    id: int | None = None,
    data: Any = "codesyntax",
    config: str = "python",
    split: str = "test",
    node_type: str | None = None,
    revision: str | None = None,
    dtype: str | torch.dtype = "float32",
    device: str | torch.device | None = None,
    seed: Natural = 0,
) -> Page:
    """A page with one function, masked as in `mask`: what the model restores of each node type, right and wrong marked.

    For each node type that occurs, of those that `mask` masks by default, the copy T1, in which the nodes are masked,
    stands beside a control T0, of as many random sub-tokens: the first one of `mask` with this `seed`, if the function
    is from `data` (Velasco et al. 2024). `node_type`: the one to open with, any of the grammar; by default the first.
    The other arguments are as of `show`.

    Raises what `show` raises; ModelError unless the model is a masked language model; UnknownName for a node type that
    the grammar does not have; and ArgumentError for one that is not in the function.
    """
    function, language = shown(code, id, data, config, split), language_of(config).name
    names = checked_node_types(language)
    wanted = [] if node_type is None else checked_node_types(language, [node_type])
    loaded = load_restoring(model, revision=revision, dtype=dtype, device=device)
    masker = Masker(loaded.tokenizer, language, dict.fromkeys([*names, *wanted]))
    (maskable,) = masker.read([function.code])
    check_length(function, len(maskable.ids), loaded.name, loaded.longest)
    copies, *_ = masked_copies(maskable, function.place, masker.node_types, draws=1, seed=seed)
    present = [masker.node_types[copy.node_type] for copy in copies if copy.number == 0]
    if node_type is not None and node_type not in present:
        there = f"masked can be {', '.join(present)}" if present else "nor any of those that are masked by default"
        raise ArgumentError(f"{function.name} has nothing to mask of the node type {node_type}: {there}")
    if not present:
        raise ArgumentError(
            f"{function.name} has nothing to mask of {', '.join(names)}: name another node type of its grammar"
        )
    restoration = Restoration(loaded, masker)
    (restored,) = restoration.each([(maskable, copies)])
    return page(
        "Masked syntax",
        "masked.html.jinja",
        model=loaded.name,
        revision=loaded.revision[:12],
        function=function.name,
        dtype=loaded.dtype,
        seed=seed,
        parser=parser_version(language),
        types=dict(zip(present, _arms(maskable, restored, restoration))),
        page={"opened": node_type or present[0]},
    )


class Piece(NamedTuple):
    """Some text of a line. `look`: empty if it was not masked, `right`, or `wrong`, where `was` is the true text."""

    text: str
    look: str = ""
    was: str = ""


class _Line(NamedTuple):
    """A line of the source: its pieces, and the columns by which it hangs where it is wrapped."""

    pieces: list[Piece]
    hang: int


class _Arm(NamedTuple):
    """A masked copy: the number of its masked sub-tokens, those that are restored, and the rest for reading."""

    name: str
    masked: int
    restored: int
    similarities: dict[str, str]
    log_probability: str
    lines: list[_Line]


def _arms(function: Maskable, restored: Sequence[RestoredCopy], restoration: Restoration) -> Iterator[list[_Arm]]:
    """Both copies of each node type."""
    for pair in zip(restored[::2], restored[1::2]):
        arms = []
        for name, one in zip(("T1", "T0"), pair):
            positions = one.copy.positions
            parts = restoration.restorer.parts(function, positions, one.filled.predicted)
            similarities = map(_number, (*one.similarity, *(floor.jaccard for floor in one.floors)))
            numbers = len(positions), one.filled.hits[0], dict(zip(_TITLES, similarities))
            arms.append(_Arm(name, *numbers, _number(one.filled.log_probability), lines_of(parts)))
        yield arms


_TITLES = ("Jaccard", "Sorensen-Dice", "Levenshtein", "Jaccard with x for each", "with nothing for each")


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}".replace("-", "−")


def lines_of(parts: Sequence[Part]) -> list[_Line]:
    """The source by line, with the predicted text in place of what was masked.

    A wrong prediction is one piece in the line where it begins, with signs for line breaks and, if it has no other
    characters, for spaces and tabs; the line breaks and the indentation that were masked there stay.
    """
    lines: list[list[Piece]] = [[]]

    def add(text: str, look: str = "") -> None:
        for number, piece in enumerate(text.replace("\r\n", "\n").split("\n")):
            if number:
                lines[-1] += [Piece("⏎", look)] if look else []
                lines.append([])
            if piece:
                lines[-1].append(Piece(piece, look))

    for part in parts:
        if part.right == part.masked:
            add(part.text, "right" if part.masked else "")
            continue
        lines[-1].append(Piece(_visible(part.text), "wrong", _visible(part.source)))
        for behind in part.source.split("\n")[1:]:
            add("\n" + behind[: len(behind) - len(behind.lstrip())])
    return [_Line(pieces, _hang(pieces)) for pieces in (lines if lines[-1] else lines[:-1])]


def _visible(text: str) -> str:
    if text.isspace():
        text = re.sub(" {4,}", lambda spaces: f"␣×{len(spaces[0])}", text).replace(" ", "␣")
    return text.translate(_SIGNS) or _NOTHING


def _hang(pieces: Sequence[Piece]) -> int:
    """Long lines wrap behind their indentation; a multiple of four keeps the tab stops."""
    text = "".join(piece.text for piece in pieces).expandtabs(4)
    return min(4 * math.ceil((len(text) - len(text.lstrip())) / 4) + 4, 32)
