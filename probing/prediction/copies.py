"""The masked copies of functions: T1, in which the nodes of a type are masked, and its controls T0.

Which there are, what a model restores in them, and how similar the trees are (Velasco et al. 2024).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from tqdm import tqdm

from codesyntax_dataset.errors import CodeSyntaxError
from codesyntax_metric.ast_similarity.similarity import Similarity, compare, node_types
from probing.prediction.masking import SPANS, SUB_TOKENS, Maskable, Masker, seed_of
from probing.prediction.restore import Restorer
from probing.prediction.result import FILLERS, NO_NODE, NO_PLACE, NOTHING_MASKED, TOO_MANY

if TYPE_CHECKING:
    from probing.models.infilling import RestoringModel
    from probing.prediction.fill import Filled

_UNCOMPARED = Similarity(np.nan, np.nan, np.nan)


class MaskedCopy(NamedTuple):
    """The `positions` (M,) that are masked in a copy, and their `seed`."""

    positions: np.ndarray
    seed: int


class TypeCopies(NamedTuple):
    """A node type of a function, by its index among those asked for, and its copies: T1 first, then the controls."""

    node_type: int
    copies: list[MaskedCopy]


class RestoredCopy(NamedTuple):
    """A copy as a model restored it: the `text`, and the `similarity` of its tree and the source's; `floors`: that of
    FILLERS. NaN if a tree could not be compared.
    """

    filled: Filled
    text: str
    similarity: Similarity
    floors: list[Similarity]


def masked_copies(
    function: Maskable,
    index: int,
    node_types: Sequence[str],
    *,
    rate: float = 1.0,
    control: str = SUB_TOKENS,
    draws: int,
    seed: int,
) -> tuple[list[TypeCopies], Counter[str], Counter[tuple[str, bool]]]:
    """The masked copies of a function, by node type, and why there are none for the other types; and for the control
    `spans`, the number of nodes of each type that have a place for a control beside them (True), or have none.

    `index`: the function's place in the split, from which the seeds of its copies follow; the rest as of `mask`.
    """
    pairs: list[TypeCopies] = []
    dropped: Counter[str] = Counter()
    placed: Counter[tuple[str, bool]] = Counter()
    for place, name in enumerate(node_types):
        first = seed_of(seed, index, name, 0)
        masked = function.mask(name, rate, seed=first)
        if not len(function.nodes(name)):
            dropped[NO_NODE] += 1
        elif not len(masked.positions):
            dropped[NOTHING_MASKED] += 1
        elif masked.controls > len(function.eligible):
            dropped[TOO_MANY] += 1
        else:
            seeds = [seed_of(seed, index, name, copy) for copy in range(1, draws + 1)]
            positions = masked.positions
            if control == SPANS:
                positions, spans = function.comparable(name, masked.positions, first)
                controls = [function.control_spans(name, positions, spans, seed) for seed in seeds]
                nodes, with_place = (function.nodes_at(name, at) for at in (masked.positions, positions))
                placed.update({(name, True): with_place, (name, False): nodes - with_place})
            else:
                controls = [function.control(masked.controls, seed) for seed in seeds]
            if len(positions):
                pairs.append(TypeCopies(place, [MaskedCopy(positions, first), *map(MaskedCopy, controls, seeds)]))
            else:
                dropped[NO_PLACE] += 1
    return pairs, dropped, placed


class Restoration:
    """Restores masked copies with a model, and compares each with its source; `batch_tokens` as of `mask`."""

    def __init__(self, model: RestoringModel, masker: Masker, batch_tokens: int | None = None):
        from probing.prediction.fill import Filler  # transformers takes seconds to import

        self.restorer = Restorer(masker.tokenizer)
        self.masker, self._filler = masker, Filler(model, batch_tokens)

    def each(
        self, functions: Sequence[tuple[Maskable, Sequence[TypeCopies]]], bar: tqdm | None = None
    ) -> Iterator[list[RestoredCopy]]:
        """The restored copies of each function, in order. The bar counts functions."""
        from probing.prediction.fill import Copy, FunctionsBar

        masked = [[copy for pair in pairs for copy in pair.copies] for _, pairs in functions]
        copies = [Copy(function.ids, copy.positions) for (function, _), of in zip(functions, masked) for copy in of]
        counted = None if bar is None else FunctionsBar(bar, [len(of) for of in masked])
        filled = iter(self._filler.fill(copies, counted))
        for (function, _), of in zip(functions, masked):
            compared = _Comparison(function.code, self.masker.language)
            restored = []
            for copy, one in zip(of, islice(filled, len(of))):
                text = self.restorer.text(function, copy.positions, one.predicted)
                texts = [text, *(filled_with(filler, function, copy.positions) for filler in FILLERS.values())]
                of_model, *of_fillers = map(compared, texts)
                if _UNCOMPARED in (of_model, *of_fillers):
                    of_model, of_fillers = _UNCOMPARED, [_UNCOMPARED] * len(FILLERS)
                restored.append(RestoredCopy(one, text, of_model, of_fillers))
            yield restored

    def similarity(self, function: Maskable, positions: np.ndarray, predicted: np.ndarray) -> Similarity:
        """That of a function with these predictions (M,) at its `positions`, and the source."""
        text = self.restorer.text(function, positions, predicted)
        return _Comparison(function.code, self.masker.language)(text)


def filled_with(filler: str, function: Maskable, positions: np.ndarray) -> str:
    """The text of a function with a filler in place of the characters of each sub-token at `positions` (M,), sorted.

    Spaces around words stay; a character of several sub-tokens is replaced once.
    """
    parts, at = [], 0
    for start, end in function.place[positions].tolist():
        if at <= start < end:
            parts += [function.code[at:start], filler]
            at = end
    return "".join([*parts, function.code[at:]])


class _Comparison:
    """Compares texts with the source; each text once."""

    def __init__(self, code: str, language: str):
        self._language = language
        self._types = node_types(code, language)
        self._found: dict[str, Similarity] = {code: compare(self._types, self._types)}

    def __call__(self, text: str) -> Similarity:
        if text not in self._found:
            try:
                self._found[text] = compare(self._types, node_types(text, self._language))
            except CodeSyntaxError:  # counted as failed, never as unlike
                self._found[text] = _UNCOMPARED
        return self._found[text]
