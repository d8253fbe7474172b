"""The features of a pair of tokens, a head token and a candidate: words and positions, and the attention between them.

*Words and positions*, without any model, are the rival of attention. For a head token i and a candidate j: the distance
between the two in tokens (each up to FAR, and in powers of two), in characters, lines, indentation and bracket depth;
how far j is from either end of the function; the word class of j and of its neighbours; its length, its place in its
line, and equality of the two words. They are the same for all models, and so many that attention which tells only
positions and words adds nothing: that of models before training.

*Attention.* Of each layer, the word-level weights from a head token to each token and back are there while the listener
hears it, and are then gone: no map is stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from tqdm import tqdm

from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT
from probing.instruments.attention.ranking import BatchListener, EncodedFunction
from probing.runs.batches import Batches
from probing.runs.data import Row

if TYPE_CHECKING:
    from probing.models.capture import Rows
    from probing.models.encoder import Encoder

FAR = 24
"""Up to this distance, in tokens, each offset has a weight of its own."""

FREQUENT = 120
"""The number of most frequent words that are classes of their own."""

_SHAPES = ("name", "number", "text", "mark", "end")
_LINES, _COLUMNS, _BRACKETS, _POWERS, _LENGTHS = 8, 16, 4, 10, 8


def _shape(word: str) -> str:
    """The class of a word that is not frequent."""
    if word[:1].isdigit():
        return "number"
    if word[:1] in "\"'`" and word:
        return "text"
    return "name" if word.isidentifier() else "mark"


class WordClasses:
    """Numbers of word classes: the frequent words of some functions, and the shapes of all others."""

    def __init__(self, rows: Iterable[Row]):
        counts = Counter(word for row in rows for word in words_of(row))
        frequent = sorted(counts, key=lambda word: (-counts[word], word))[:FREQUENT]
        self.numbers = {word: number for number, word in enumerate(frequent, len(_SHAPES))}

    def __len__(self) -> int:
        return len(_SHAPES) + FREQUENT

    def of(self, words: Iterable[str]) -> np.ndarray:
        return np.array([self.numbers.get(word) or _SHAPES.index(_shape(word)) for word in words], np.int64)


def words_of(row: Row) -> list[str]:
    """The tokens of a row of the dataset."""
    return [row["code"][start:end] for start, end in zip(row["token_start"], row["token_end"])]


def _power(number: np.ndarray) -> np.ndarray:
    return np.minimum(np.log2(np.abs(number) + 1).astype(np.int64), _POWERS - 1)


@lru_cache(maxsize=4)
def _by_distance(most: int) -> tuple[np.ndarray, np.ndarray]:
    """What distances in tokens from -most to most tell: codes (2, distances) and values (distances, 4)."""
    distance = np.arange(-most, most + 1)
    offset = np.clip(distance, -FAR - 1, FAR + 1) + FAR + 1
    return np.stack([offset, _power(distance) + _POWERS * (distance > 0)]), np.stack(_smooth(distance), 1)


def _smooth(apart: np.ndarray) -> list[np.ndarray]:
    """Values of how far a candidate is, on either side."""
    sides = apart > 0, apart < 0
    near, far = 1 / (1 + np.abs(apart)), np.log1p(np.abs(apart)) / 2
    return [value * side for side in sides for value in (far, near)]


@dataclass(frozen=True)
class Surface:
    """The T tokens of a function as words and positions see them.

    `fixed` (F, T): the codes of what a candidate is, whatever the head; `ends` (T, 3): values of how far it is from
    either end; `sizes`: how many values each row of codes may have; the others (T,).
    """

    word: np.ndarray
    start: np.ndarray
    line: np.ndarray
    indent: np.ndarray
    depth: np.ndarray
    fixed: np.ndarray
    ends: np.ndarray
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, row: Row, classes: WordClasses) -> Surface:
        code, words, start = row["code"], words_of(row), np.asarray(row["token_start"], np.int64)
        tokens, known = len(words), classes.of(words)
        lines = code.expandtabs(4).split("\n")
        line = np.searchsorted(np.flatnonzero(np.array([*code]) == "\n"), start) if code else start
        indents = np.array([len(one) - len(one.lstrip()) for one in lines])
        opened = np.array([(word in ("(", "[", "{")) - (word in (")", "]", "}")) for word in words])
        begins = np.diff(line, prepend=-1) != 0
        ends, end = np.append(begins[1:], True), _SHAPES.index("end")
        length = np.minimum(np.asarray(row["token_end"]) - start, _LENGTHS - 1)
        here = np.arange(tokens)
        fixed = [known, np.append(known[1:], end), np.append(end, known[:-1]), length, begins + 2 * ends]
        fixed += [_power(here), _power(tokens - here)]
        sizes = (*[len(classes)] * 3, _LENGTHS, 4, _POWERS, _POWERS)
        moving = (2 * FAR + 3, 2 * _POWERS, *(2 * most + 1 for most in (_LINES, _COLUMNS, _BRACKETS)), 2)
        number = {word: place for place, word in enumerate(dict.fromkeys(words))}
        same = np.array([number[word] for word in words])
        smooth = np.stack([np.log1p(here) / 2, 1 / (1 + here), np.log1p(tokens - here) / 2], 1)
        return cls(same, start, line, indents[line], opened.cumsum(), np.stack(fixed), smooth, (*sizes, *moving))

    @property
    def indicators(self) -> int:
        return sum(self.sizes)

    def pairs(self, head: int) -> tuple[np.ndarray, np.ndarray]:
        """The features of all tokens as candidates of one head token: codes (K, T) and values (T, D)."""
        tokens = len(self.word)
        farthest = 1 << tokens.bit_length()
        by_distance, of_distance = _by_distance(farthest)
        distances = slice(farthest - head, farthest - head + tokens)
        moving = [
            np.minimum(np.maximum(places - places[head], -most), most) + most  # takes half as long as clip
            for places, most in ((self.line, _LINES), (self.indent, _COLUMNS), (self.depth, _BRACKETS))
        ]
        codes = np.concatenate([self.fixed, by_distance[:, distances], moving, [self.word == self.word[head]]])
        codes += np.cumsum([0, *self.sizes[:-1]])[:, None]
        characters = np.stack(_smooth(self.start - self.start[head]), 1)
        return codes, np.concatenate([of_distance[distances], characters, self.ends], axis=1)


TRANSFORMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "root": torch.sqrt,
    "weight": torch.clone,
    "log": lambda weight: torch.log1p(1000 * weight) / 7,
}
"""In which form attention enters the log-linear choice: each from about 0 to 1."""


class ReadFunction(EncodedFunction):
    """A function all of whose tokens read, with its drawn edges."""

    def readers(self, direction: str) -> np.ndarray:
        return np.flatnonzero(self.alignment.mapped)

    @cached_property
    def heads(self) -> np.ndarray:
        """The distinct head tokens of its edges, ascending."""
        return np.unique(self.edges.head)


class PairListener(BatchListener):
    """Hears, layer by layer, the attention between the head tokens of a function and all its tokens.

    `asked`: function -> what is asked about it, integers (n, 2); `heard`: function -> the two arrays that answer.
    """

    functions: Sequence[ReadFunction]

    def __init__(
        self,
        functions: Sequence[ReadFunction],
        *arguments: Any,
        asked: Mapping[int, np.ndarray],
        heard: dict[int, tuple[np.ndarray, np.ndarray]],
    ):
        super().__init__(functions, *arguments)
        self.functions, self.asked, self.heard = functions, asked, heard

    def __call__(self, rows: Rows) -> None:
        for group, plan in self.groups:
            functions = self.functions[group]
            heard = [
                torch.zeros(len(function.heads), 2, plan.heads, len(plan.token), device=plan.token.device)
                for function in functions
            ]
            for block, weights in plan.pooled(partial(rows, group), self.layer):
                by_function = weights.clamp_(min=0).unflatten(0, (len(functions), -1))
                for function, pairs, readers, read in zip(functions, heard, block.readers, by_function):
                    place = np.flatnonzero(np.isin(function.heads, readers))
                    pairs[place, 0] = read[np.searchsorted(readers, function.heads[place])]
                    pairs[:, 1, :, readers] = read[: len(readers), :, function.heads].permute(2, 1, 0)
            for function, pairs in zip(functions, heard):
                self.hear_pairs(function, pairs[..., : len(function.alignment.first)])
        self.layer += 1

    def hear_pairs(self, function: ReadFunction, pairs: torch.Tensor) -> None:
        """Process `self.layer` of a function: weights (heads tokens, 2, H, T), from the head token, then to it; 0 for
        tokens without sub-tokens, and for itself."""
        raise NotImplementedError


class GatheredPairs(PairListener):
    """Keeps the weights of chosen candidates, and the token that each attention head ranks first for each head token.

    `asked`: function -> the place among its head tokens, and the token, of each of P candidates; `heard`: function ->
    weights, half precision (P, layers, 2, H), and first tokens, int16 (head tokens, layers, 2, H).
    """

    def hear_pairs(self, function: ReadFunction, pairs: torch.Tensor) -> None:
        place, token = self.asked[function.index].T
        if self.layer == 0:
            shape = self.layers, *pairs.shape[1:3]
            kept = np.empty((len(place), *shape), np.float16)
            self.heard[function.index] = kept, np.empty((len(pairs), *shape), np.int16)
        kept, first = self.heard[function.index]
        kept[:, self.layer] = pairs[place, :, :, token].cpu().numpy()
        first[:, self.layer] = pairs.argmax(dim=-1).cpu().numpy()


class Scorers(NamedTuple):
    """The scorers of candidates by attention: `weights` float32 (relations, models, layers, 2, H) in a `transform`, and
    `picked` (relations, picks, 3), an attention head's layer, direction and number.
    """

    transform: str
    weights: np.ndarray
    picked: np.ndarray


class ScoredPairs(PairListener):
    """Adds up the scores of all candidates by the attention of all heads.

    `asked`: function -> the relation, and the place among its head tokens, of each of M choices; `heard`: function ->
    scores (M, models, T), and weights by the picked heads (M, picks, T).
    """

    def __init__(self, *arguments: Any, scorers: Scorers, **asked: Any):
        super().__init__(*arguments, **asked)
        self.transform, self.picked = TRANSFORMS[scorers.transform], scorers.picked
        self.weights = torch.from_numpy(scorers.weights).to(self.found.device)

    def hear_pairs(self, function: ReadFunction, pairs: torch.Tensor) -> None:
        relation, place = self.asked[function.index].T
        if self.layer == 0:
            shape = len(place), self.weights.shape[1], pairs.shape[-1]
            by_head = np.zeros((len(place), self.picked.shape[1], pairs.shape[-1]), np.float32)
            self.heard[function.index] = np.zeros(shape), by_head
        scores, by_head = self.heard[function.index]
        weights = self.weights[relation, :, self.layer].flatten(2)  # (M, models, 2 * H)
        read = self.transform(pairs).flatten(1, 2)[place]  # (M, 2 * H, T)
        scores += torch.bmm(weights, read).cpu().numpy()
        layer, direction, head = np.moveaxis(self.picked[relation], -1, 0)  # each (M, picks)
        choice, pick = np.nonzero(layer == self.layer)
        at = place[choice], direction[choice, pick], head[choice, pick]
        by_head[choice, pick] = pairs[at].cpu().numpy()


def listen(
    encoder: Encoder, functions: Sequence[ReadFunction], bar: tqdm, listener: Callable[..., PairListener]
) -> None:
    """Run the model over functions, in batches, to each of which a new `listener` listens."""
    batches, longest_first = Batches(encoder), sorted(functions, key=lambda function: -len(function.ids))

    def work(batch: Sequence[ReadFunction], inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        length = inputs["input_ids"].shape[1]
        arguments = encoder.layers, encoder.heads, length, encoder.device, batches.elements, HEAD_TO_DEPENDENT
        encoder.forward(inputs, listener(batch, *arguments))
        return torch.empty(0)

    batches.each(longest_first, bar, work)
