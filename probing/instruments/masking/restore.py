"""What a model restores in masked copies of functions: their texts, and how similar the trees are
to the sources'."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence, Set
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from tqdm import tqdm

from codesyntax_dataset.errors import CodeSyntaxError
from codesyntax_metric.ast_similarity.similarity import Similarity, compare, node_types
from probing.instruments.masking.masking import PUBLISHED, Maskable, MaskedCopy, Masker
from probing.instruments.masking.result import FILLERS
from probing.runs.records import Number, Record

if TYPE_CHECKING:
    from probing.instruments.masking.fill import Filled
    from probing.models.masked import RestoringModel

_UNCOMPARED = Similarity(np.nan, np.nan, np.nan)

_SAMPLE = "def f(x):\n\tif x:\n        return [x,  x]\n"


class RestoredPart(Record):
    """A stretch of a function, and the text that stands there when it is restored.

    `masked`: how many of its sub-tokens were masked, 0 between masks; `right`: how many of these
    are predicted exactly.
    """

    source: str
    text: str
    masked: Number
    right: Number


class Restorer:
    """Puts predictions into functions, by the protocol of the function (Velasco et al. 2024).

    `published`: the predicted ids in place of the masked, without bos and eos tokens anywhere,
    decoded as a whole, without clean-up. What the tokenizer does not spell, such as case or white
    space, is lost.

    `current`: predictions replace exactly the masked sub-tokens; everything else stays as it is in
    the source. A sub-token predicted as it was gives its characters back; a predicted special token
    stands for no text; a character of several sub-tokens is decoded from all of them. If the
    tokenizer spells white space, as byte-level ones do, so do predictions, and the text is what
    decoding the ids gives, where that changes nothing else. If it does not, as WordPiece, white
    space stays as in the source, and one space is added only where two words would run together
    that the sub-tokens keep apart.
    """

    def __init__(self, tokenizer: Any):
        self.tokenizer = tokenizer
        self._special = frozenset(tokenizer.all_special_ids)
        self._spells_space = (
            self._decode(tokenizer(_SAMPLE, add_special_tokens=False)["input_ids"]) == _SAMPLE
        )
        self._word = tokenizer("x", add_special_tokens=False)["input_ids"]
        self._piece = functools.cache(self._read_piece)
        self._spaces = functools.cache(self._read_spaces)
        # of a function with many copies
        self._extents = functools.lru_cache(maxsize=1)(self._read_extents)

    def text(self, function: Maskable, positions: np.ndarray, predicted: np.ndarray) -> str:
        """The text of a function in which the sub-tokens at `positions` (M,), sorted, became
        `predicted` (M,)."""
        if function.protocol == PUBLISHED:
            ids = function.ids.copy()
            ids[positions] = predicted
            ends = (self.tokenizer.bos_token_id, self.tokenizer.eos_token_id)
            return self._decode([number for number in ids.tolist() if number not in ends])
        return "".join(part.text for part in self.parts(function, positions, predicted))

    def parts(
        self, function: Maskable, positions: np.ndarray, predicted: np.ndarray
    ) -> list[RestoredPart]:
        """The same text of the protocol `current` in parts, each with what becomes of its masked
        sub-tokens."""
        extents = self._extents(function)
        true = function.ids.tolist()
        new_ids = dict(zip(positions.tolist(), predicted.tolist()))
        starts = {start: true[place] for place, (start, _) in extents.items()}
        parts = []
        end_before, behind, was_new = 0, "", False

        def add(
            last: int,
            run: Sequence[int] = (),
            pieces: Sequence[tuple[str, int | None]] | None = None,
        ) -> None:
            """Add the source up to a character, or what is predicted there: `pieces`, each with the
            sub-token that it begins with."""
            nonlocal end_before, behind, was_new
            text, source, new = "", function.code[end_before:last], pieces is not None
            for piece, number in [(source, starts.get(end_before))] if pieces is None else pieces:
                if not piece:
                    continue
                if (new or was_new) and not self._spells_space and number is not None:
                    text += " " * (
                        self._piece(number)[0] and _in_word(behind) and _in_word(piece[0])
                    )
                text += piece
                behind = piece[-1]
                was_new = new
            hidden = [position for position in run if position in new_ids]
            if text or source or hidden:
                right = sum(new_ids[position] == true[position] for position in hidden)
                parts.append(
                    RestoredPart(source=source, text=text, masked=len(hidden), right=right)
                )
            end_before = last

        for run in _replaced_runs(extents, new_ids.keys(), together=self._spells_space):
            add(min(extents[position][0] for position in run))
            last = max(extents[position][1] for position in run)
            shown = [
                new_ids.get(position, true[position])
                for position in run
                if new_ids.get(position) not in self._special
            ]
            if all(new_ids.get(position, true[position]) == true[position] for position in run):
                add(last, run)
            elif self._spells_space:
                add(last, run, [(self._decode(shown), None)])
            else:
                add(last, run, [(self._piece(number)[1], number) for number in shown])
        add(len(function.code))
        return parts

    def _read_extents(self, function: Maskable) -> dict[int, tuple[int, int]]:
        """The characters of each sub-token of the text, by its position, with the spaces that it
        spells itself."""
        extents = {}
        for position in np.flatnonzero(~function.special).tolist():
            start, end = function.place[position].tolist()
            if self._spells_space:
                before, behind = self._spaces(int(function.ids[position]))
                while before and start and function.code[start - 1] == " ":
                    start -= 1
                    before -= 1
                while behind and function.code[end : end + 1] == " ":
                    end += 1
                    behind -= 1
            extents[position] = (start, end)
        return extents

    def _read_spaces(self, number: int) -> tuple[int, int]:
        """The number of spaces in front of a sub-token, and behind it."""
        own = self._decode([number])
        before = len(own) - len(own.lstrip(" "))
        return before, len(own) - before - len(own.strip(" "))

    def _read_piece(self, number: int) -> tuple[bool, str]:
        """True if a sub-token begins a word, and its text."""
        text = self._decode([*self._word, number])[len(self._decode(self._word)) :]
        return text[:1].isspace(), text.strip()

    def _decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(
            ids, skip_special_tokens=False, clean_up_tokenization_spaces=False
        )


class RestoredCopy(NamedTuple):
    """A `copy` as a model restored it: what it `filled` in, and the `similarity` of the trees of
    the text and the source; `floors`: that of FILLERS. NaN if a tree could not be compared.
    """

    copy: MaskedCopy
    filled: Filled
    similarity: Similarity
    floors: list[Similarity]


class Restoration:
    """Restores masked copies with a model, and compares each with its source; `batch_tokens` as of
    `mask`."""

    def __init__(self, model: RestoringModel, masker: Masker, batch_tokens: int | None = None):
        from probing.instruments.masking.fill import Filler  # transformers takes seconds to import

        self.restorer = Restorer(masker.tokenizer)
        self.masker = masker
        self._filler = Filler(model, batch_tokens)

    def each(
        self, functions: Sequence[tuple[Maskable, Sequence[MaskedCopy]]], bar: tqdm | None = None
    ) -> Iterator[list[RestoredCopy]]:
        """The restored copies of each function, in order. The bar counts functions."""
        from probing.instruments.masking.fill import Copy

        asked = [
            [Copy(function.ids, copy.positions) for copy in copies]
            for function, copies in functions
        ]
        for (function, copies), filled in zip(functions, self._filler.fill(asked, bar)):
            compared = _comparison(function.code, self.masker.language)
            restored = []
            for copy, filling in zip(copies, filled):
                text = self.restorer.text(function, copy.positions, filling.predicted)
                fillers = (
                    filled_with(filler, function, copy.positions) for filler in FILLERS.values()
                )
                of_model, *of_fillers = map(compared, [text, *fillers])
                if _UNCOMPARED in (of_model, *of_fillers):
                    of_model = _UNCOMPARED
                    of_fillers = [_UNCOMPARED] * len(FILLERS)
                restored.append(RestoredCopy(copy, filling, of_model, of_fillers))
            yield restored


def filled_with(filler: str, function: Maskable, positions: np.ndarray) -> str:
    """The text of a function with a filler in place of the characters of each sub-token at
    `positions` (M,), sorted.

    Spaces around words stay; a character of several sub-tokens is replaced once.
    """
    parts = []
    end_before = 0
    for start, end in function.place[positions].tolist():
        if end_before <= start < end:
            parts += [function.code[end_before:start], filler]
            end_before = end
    return "".join([*parts, function.code[end_before:]])


def _comparison(code: str, language: str) -> Callable[[str], Similarity]:
    """Compares texts with the source; each text once."""
    types = node_types(code, language)

    @functools.cache
    def similarity(text: str) -> Similarity:
        try:
            return compare(types, node_types(text, language))
        except CodeSyntaxError:  # counted as failed, never as unlike
            return _UNCOMPARED

    return similarity


def _replaced_runs(
    extents: dict[int, tuple[int, int]], masked: Set[int], *, together: bool
) -> list[list[int]]:
    """The positions to replace: all that share a character with a masked one, neighbours `together`
    or not."""
    runs: list[list[int]] = []
    follows = False
    for group in _positions_by_character(extents):
        changed = not masked.isdisjoint(group)
        if changed and follows and together:
            runs[-1] += group
        elif changed:
            runs.append(group)
        follows = changed
    return runs


def _positions_by_character(extents: dict[int, tuple[int, int]]) -> list[list[int]]:
    """All positions; those that share a character are together."""
    groups: list[list[int]] = []
    reach = 0
    for position, (start, end) in extents.items():
        if groups and start < reach:
            groups[-1].append(position)
        else:
            groups.append([position])
        reach = max(reach, end)
    return groups


def _in_word(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character == "_")
