"""What language models find likely: the text of a minimal pair that parses, and the tokens of
syntax nodes.

Minimal pairs: the score of a text is the sum of the log-probabilities of its sub-tokens. A decoder
predicts each from those before it; the first from the beginning-of-text token or, in a model
without one, from its end-of-text token, which stands before every text once, whether the tokenizer
adds it or not. In a masked language model each sub-token is masked with those of its word behind
it, so the score is a pseudo-log-likelihood, within words from left to right (Kauf and Ivanova
2023). The other score, of the place alone, sums over the
sub-tokens in which the two texts differ: all between those that they share at the beginning and at
the end, and the next one too where one text has none there.

Surprisal: that of a token is the negative binary logarithm of its probability after all that stands
before it, in bits: the sum over its sub-tokens, from one forward pass a function. A sub-token of
two tokens, such as `):`, counts for both. Tokens are the leaves of the syntax tree. Each token of a
node has a control: of the tokens of the function that do not have this role in any node of the
type, the most similar one in frequency and place, with as many sub-tokens. A token without such a
control is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from codesyntax_dataset.arguments import Natural, Positive, StrPath, checked
from codesyntax_dataset.errors import ArgumentError, ModelError, ParseError, UnknownName
from codesyntax_dataset.languages import language_of, variant_of
from codesyntax_dataset.pairs.code import Code, Node
from codesyntax_dataset.pairs.rivals import N, NGrams, windows
from codesyntax_dataset.pairs.surface import Pair, SurfaceRival
from codesyntax_dataset.protocol import RANDOM_WEIGHTS
from codesyntax_metric.ast_similarity.similarity import parser_version
from probing.instruments.attention.align import align
from probing.instruments.likelihood import result as results
from probing.instruments.likelihood.result import (
    DECIMALS,
    UNKNOWN,
    PreferenceLedger,
    PreferenceResult,
    SurprisalLedger,
    SurprisalResult,
)
from probing.instruments.masking.fill import Copy, Passes, Positioned
from probing.instruments.masking.mask import chosen_types
from probing.models.location import ModelSource
from probing.models.subtokens import check_language, common_prefix, exact_offsets
from probing.runs.data import Functions, pair_rows, read_functions, read_validation
from probing.runs.experiment import ANY_BATCHES, NO_SETTING, Experiment, F, Prepared, R, run
from probing.runs.session import Session

if TYPE_CHECKING:
    from probing.models.loaded import Batch
    from probing.models.masked import ScoredText, ScoringModel


@dataclass
class Scoring(Experiment[F, R]):
    """What reads the log-probabilities of sub-tokens, by a model or a randomly initialised copy."""

    PART = 128

    batch_tokens: int | None = field(default=None, metadata={NO_SETTING: ANY_BATCHES})

    @cached_property
    def model(self) -> ScoringModel:
        return self.session.scoring_model(None if self.data.control is None else self.data.seed)

    @cached_property
    def scorer(self) -> Scorer:
        return Scorer(self.model, self.batch_tokens)


class Scorer(Passes[Copy]):
    """Finds log-probabilities; a masked language model runs over a text once for each of its
    sub-tokens."""

    model: ScoringModel

    def passes(self, text: ScoredText) -> list[Copy]:
        if self.model.mask is None:
            return [Copy(text.ids, text.positions)]
        return [Copy(text.ids, np.arange(*word)) for word in zip(text.positions, text.ends)]

    def found(self, item: Copy) -> int:
        return len(item.positions) if self.model.mask is None else 1

    def work(self, batch: Sequence[Copy], inputs: Batch) -> Tensor:
        scores = self.model.log_probabilities(inputs, *self.places(batch))
        if self.model.mask is None:
            return scores
        return scores[np.cumsum([0, *(len(item.positions) for item in batch[:-1])])]


# ------------------------------------------------------------------------------------ minimal pairs


@checked
def prefer(
    model: ModelSource | Session,
    data: Any,
    config: str = "python_pairs",
    split: str = "test",
    *,
    revision: str | None = None,
    dtype: str | torch.dtype | None = None,
    device: str | torch.device | None = None,
    batch_tokens: Positive | None = None,
    limit: Positive | None = None,
    sample: Positive | None = None,
    max_length: Positive | None = None,
    control: str | None = None,
    seed: Natural = 0,
    output: StrPath | None = None,
    shard: str | None = None,
) -> PreferenceResult | None:
    """Score minimal pairs of code: how often a language model finds the text that parses likelier.

    A masked language model runs once for each sub-token of a text.

    A repeated run is answered from the cache (see `probing.models.cache_dir`), unless the model is
    a pair. Under `accelerate launch` or `torchrun` the processes share the work; the main process
    returns the result of a single one, the others None.

    Args:
        model: a Hub id, a local folder or file, the name of an embedded model, or a (model,
            tokenizer) pair, with a masked-LM or causal-LM head; or a `probing.Session`, which loads
            it once for several calls.
        data: a folder that `codesyntax build` wrote, a dataset id on the Hub, or a loaded
            `DatasetDict`.
        config: minimal pairs of a language, such as `python_pairs`.
        split: the split that is scored, `test` or `validation`.
        revision: a branch, tag or commit on the Hub, or the name of a checkpoint in a local folder.
        dtype: precision of the model: `float32`, by default, `bfloat16` or `float16`, as text or
            torch dtype.
        device: such as `cpu` or `cuda:1`; by default a CUDA GPU if there is one, and for a pair
            where it is.
        batch_tokens: sub-tokens in a batch, padding included; scores do not depend on it.
        limit: only the first so many pairs of the split; the result says so.
        sample: only so many pairs, drawn by `seed`, of controls by 0: the same ones for every
            model.
        max_length: the most sub-tokens of a text, special tokens included, by default 511: pairs
            with a longer one are not read, and count as wrong.
        control: `random-weights`: a randomly initialised copy, drawn by `seed`.
        seed: of `sample` and `control`.
        output: a folder for the result and its ledger, in which an interrupted run continues where
            it stopped.
        shard: such as `2/7`: run only the second of seven shards of the pairs, and write it to
            `output` for `probing.merge`.

    Returns:
        The accuracy, percent of the pairs, of all and by phenomenon, ties half; None with a
        `shard`, and in other processes than the main one.

    Raises:
        ArgumentError: an argument of another kind, or one that contradicts another.
        UnknownName: a config, split or other name that does not exist.
        DatasetError: data that do not exist, are damaged, or lack what is asked for.
        ModelError: a model that cannot be loaded, or does not fit.
        LedgerError: nothing can be scored, or `output` has damaged or other files.

    Examples:
        >>> import probing
        >>> result = probing.prefer("tiny-code-lm", "codesyntax", limit=4)
        >>> result.accuracy.pairs, 0 <= result.accuracy.whole <= 100
        (4, True)
    """
    session = Session.of(
        model, revision=revision, dtype=dtype, device=device, max_length=max_length
    )
    if control not in (None, RANDOM_WEIGHTS):
        raise UnknownName("control of minimal pairs", control, [RANDOM_WEIGHTS])
    if not variant_of(config).pairs:
        raise ArgumentError(
            f"config is {config!r}, expected one of minimal pairs, such as {language_of(config).name}_pairs"
        )
    read = read_functions(
        data, config, split, limit=limit, sample=sample, control=control, seed=seed
    )
    return run(Preferring(session, read, batch_tokens), output, shard)


@dataclass(frozen=True)
class EncodedPair:
    """A minimal pair as the model reads it, at the place `index` in the split.

    `good`, `bad`: each the sub-tokens and the positions of those that are scored; `changed`: of
    each, which of these positions the two do not share, bool (M,); `about`: phenomenon,
    repository, and how rivals without a model decide, as in the ledger.
    """

    index: int
    good: ScoredText
    bad: ScoredText
    changed: tuple[np.ndarray, np.ndarray]
    about: tuple[int, ...]

    @property
    def ids(self) -> np.ndarray:
        """The longer text."""
        return max(self.good.ids, self.bad.ids, key=len)


@dataclass
class Preferring(Scoring[EncodedPair, PreferenceResult]):
    """Scores both texts of minimal pairs; arguments as of `prefer`."""

    RESULT = PreferenceResult

    def prepare(self) -> Prepared[EncodedPair]:
        data = self.data
        model = self.model
        check_language(model.tokenizer, model.name, language_of(data.config).name)
        rows = list(pair_rows(data.table, data.limit))
        self.phenomena = sorted({row["phenomenon"] for row in rows})
        encoded = [*self._encoded_pairs(rows)]
        long = sum(self._exceeds_length(pair) for pair in encoded)
        return self.prepared(
            model,
            encoded if long < len(encoded) else [],
            Counter({f"more than {model.longest} sub-tokens": long}),
            "can be scored",
            run={"scores": "log-probability" if model.mask is None else "pseudo-log-likelihood"},
        )

    def _exceeds_length(self, pair: EncodedPair) -> bool:
        return len(pair.ids) > self.model.longest

    @cached_property
    def validation(self) -> Functions | None:
        """The pairs on which a rival is fitted, if there are others than those that are scored."""
        data = self.data
        if data.split == "validation" or not isinstance(data.location, StrPath | Mapping):
            return None
        try:
            return read_validation(data)
        except UnknownName:  # there is no such split
            return None

    @property
    def learned_from(self) -> Mapping[str, str | None]:
        return {"fitted_on": self.validation and self.validation.labels}

    def _by_surface(self, rows: Sequence[Mapping[str, Any]]) -> np.ndarray:
        """The verdicts (P,) of the rival, as in the ledger; UNKNOWN without validation pairs."""
        if self.validation is None:
            return np.full(len(rows), UNKNOWN)
        table = self.validation.table
        texts = tuple(zip(table["good"].to_pylist(), table["bad"].to_pylist()))
        asked = tuple((row["good"], row["bad"]) for row in rows)
        return _surface_verdicts(texts, asked, language_of(self.data.config).keywords)

    def _encoded_pairs(self, rows: Sequence[Mapping[str, Any]]) -> Iterator[EncodedPair]:
        repository: dict[str, int] = {}
        for row, by_surface in zip(rows, self._by_surface(rows).tolist()):
            good, bad = self.model.read([row["good"], row["bad"]])
            about = (
                self.phenomena.index(row["phenomenon"]),
                repository.setdefault(row["repo"], len(repository)),
                by_surface,
            )
            yield EncodedPair(row["index"], good, bad, changed(good, bad), about)

    def run(self, part: Sequence[EncodedPair], bar: tqdm) -> PreferenceLedger:
        short = [pair for pair in part if not self._exceeds_length(pair)]
        bar.update(len(part) - len(short))
        scored = self.scorer.find([(pair.good, pair.bad) for pair in short], bar)
        sums = {}
        for pair, scores in zip(short, scored):
            parts = zip(scores, pair.changed)
            of_both = [(text.sum(), text[where].sum()) for text, where in parts]
            sums[pair.index] = np.ravel(of_both).round(DECIMALS)
        nothing = np.zeros(2 * len(results.SCORES))
        cells = []
        for pair in part:
            tokens = [count for where in pair.changed for count in (len(where), int(where.sum()))]
            read = int(pair.index in sums)
            summed = sums.get(pair.index, nothing)
            cells.append((pair.index, *pair.about, read, *tokens, *summed))
        return self.ledger(self.phenomena, cells)


@lru_cache(maxsize=2)
def _surface_verdicts(
    fitted_on: tuple[Pair, ...], asked: tuple[Pair, ...], keywords: tuple[str, ...]
) -> np.ndarray:
    """Those of the rival, once in a process: evaluations of a training ask for them again and
    again."""
    return 1 + SurfaceRival(fitted_on, keywords).prefers(asked)


def changed(good: Positioned, bad: Positioned) -> tuple[np.ndarray, np.ndarray]:
    """Of each text, which of its positions are in the place where the two differ: bool (M,)."""
    shortest = min(len(good.ids), len(bad.ids))
    first = common_prefix(good.ids, bad.ids)
    last = common_prefix(good.ids[::-1][: shortest - first], bad.ids[::-1][: shortest - first])
    if first + last == shortest and last:  # one text has nothing there
        last -= 1
    here, there = (
        (text.positions >= first) & (text.positions < len(text.ids) - last) for text in (good, bad)
    )
    return here, there


# ---------------------------------------------------------------------------------------- surprisal

FREQUENCY_APART, PLACE_APART = 1.0, 0.25
"""The most by which a control differs: twice or half as frequent, and by a quarter of the
function."""

_SETS_AT_ONCE = 256
"""Tokens whose controls are sought at once."""


@checked
def surprise(
    model: ModelSource | Session,
    data: Any,
    config: str = "python",
    split: str = "test",
    *,
    node_types: Sequence[str] | None = None,
    revision: str | None = None,
    dtype: str | torch.dtype | None = None,
    device: str | torch.device | None = None,
    batch_tokens: Positive | None = None,
    limit: Positive | None = None,
    sample: Positive | None = None,
    max_length: Positive | None = None,
    control: str | None = None,
    seed: Natural = 0,
    output: StrPath | None = None,
    shard: str | None = None,
) -> SurprisalResult | None:
    """Measure how well a decoder foresees the first token, the closing token and all tokens of the
    nodes of each type.

    A repeated run is answered from the cache (see `probing.models.cache_dir`), unless the model is
    a pair. Under `accelerate launch` or `torchrun` the processes share the work; the main process
    returns the result of a single one, the others None.

    Args:
        model: a Hub id, a local folder or file, the name of an embedded model, or a (model,
            tokenizer) pair: a decoder, with its head; or a `probing.Session`, which loads it once
            for several calls.
        data: a folder that `codesyntax build` wrote, a dataset id on the Hub, or a loaded
            `DatasetDict`.
        config: the labels, such as `python`, `java` or `python_exact`.
        split: the split that is scored, `test` or `validation`.
        node_types: names of the language's tree-sitter grammar; by default those that
            `probing.mask` masks.
        revision: a branch, tag or commit on the Hub, or the name of a checkpoint in a local folder.
        dtype: precision of the model: `float32`, by default, `bfloat16` or `float16`, as text or
            torch dtype.
        device: such as `cpu` or `cuda:1`; by default a CUDA GPU if there is one, and for a pair
            where it is.
        batch_tokens: sub-tokens in a batch, padding included; scores do not depend on it.
        limit: only the first so many functions of the split; the result says so.
        sample: only so many functions, drawn by `seed`, of controls by 0: the same ones for every
            model.
        max_length: the most sub-tokens of a function, special tokens included: by default 511, as
            in the paper. Longer ones are skipped and counted.
        control: `random-weights`: a randomly initialised copy, drawn by `seed`.
        seed: of `sample` and `control`.
        output: a folder for the result and its ledger, in which an interrupted run continues where
            it stopped.
        shard: such as `2/7`: run only the second of seven shards of the functions, and write it to
            `output` for `probing.merge`.

    Returns:
        The means by role, `first`, `closing` and `all`, and node type, in bits, beside those of
        controls: tokens as frequent; None with a `shard`, and in other processes than the main one.

    Raises:
        ArgumentError: an argument of another kind, or one that contradicts another.
        UnknownName: a config, split or other name that does not exist.
        DatasetError: data that do not exist, are damaged, or lack what is asked for.
        ModelError: a model that cannot be loaded, or does not fit.
        LedgerError: nothing can be scored, or `output` has damaged or other files.

    Examples:
        >>> import probing
        >>> result = probing.surprise(
        ...     "tiny-code-lm", "codesyntax", node_types=["if_statement"], limit=4
        ... )
        >>> result.node_types["closing"]["if_statement"].nodes
        9
    """
    session = Session.of(
        model, revision=revision, dtype=dtype, device=device, max_length=max_length
    )
    if control not in (None, RANDOM_WEIGHTS):
        raise UnknownName("control of surprisal", control, [RANDOM_WEIGHTS])
    chosen = chosen_types(language_of(config).name, node_types)
    read = read_functions(
        data, config, split, limit=limit, sample=sample, control=control, seed=seed
    )
    return run(Surprising(session, read, batch_tokens, chosen), output, shard)


@dataclass
class TokenizedFunction:
    """A function of T tokens, at the place `index` in the split.

    `text`: its sub-tokens, and the positions of those that are scored; `first`, `last` (T,): which
    scores are those of each token, -1 without; `ends`: where each sub-token ends in the text, that
    of one that is not scored, too; `like` (T, 3): surprisal for 5-grams, frequency and place, as in
    the ledger; `asked`: what each row of the ledger is about, its tokens, and their
    controls.
    """

    index: int
    code: Code
    text: ScoredText
    first: np.ndarray
    last: np.ndarray
    ends: np.ndarray
    like: np.ndarray
    asked: list[tuple[tuple[int, ...], list[int], list[int]]] = field(default_factory=list)

    @property
    def ids(self) -> np.ndarray:
        return self.text.ids


@dataclass
class Surprising(Scoring[TokenizedFunction, SurprisalResult]):
    """Measures the surprisal of nodes; arguments as of `surprise`, node types by name."""

    RESULT = SurprisalResult

    node_types: Sequence[str] = ()

    def prepare(self) -> Prepared[TokenizedFunction]:
        model = self.model
        if model.mask is not None:
            raise ModelError(
                f"{model.name} sees later sub-tokens, too: surprisal is that of decoders"
            )
        skips = Counter[str]()
        unmatched = {role: Counter[str]() for role in results.ROLES}
        functions = tokenized_functions(model, self.data, skips)
        for function in functions:
            _match(function, self.node_types, unmatched)
        asked = [function for function in functions if function.asked]
        skips["no node with a control"] = len(functions) - len(asked)
        return self.prepared(
            model,
            asked,
            skips,
            "has a node that can be compared",
            run={"parser": parser_version(language_of(self.data.config).name)},
            unmatched={role: dict(sorted(counts.items())) for role, counts in unmatched.items()},
        )

    def run(self, part: Sequence[TokenizedFunction], bar: tqdm) -> SurprisalLedger:
        cells = []
        for function, (scores,) in zip(
            part, self.scorer.find([[function.text] for function in part], bar)
        ):
            before = np.append(0, np.cumsum(-scores / np.log(2)))
            bits = before[function.last + 1] - before[function.first]
            measured = np.column_stack([bits, function.like])
            for about, tokens, controls in function.asked:
                means = [measured[rows].mean(axis=0).round(DECIMALS) for rows in (tokens, controls)]
                cells.append((*about, *np.concatenate(means)))
        return self.ledger(self.node_types, cells)


def tokenized_functions(
    model: ScoringModel, data: Functions, skips: Counter[str]
) -> list[TokenizedFunction]:
    """The functions that a model can read; of the others, why, in `skips`."""
    functions = []
    language = language_of(data.config).name
    for row in data.each_row():
        try:
            code = Code(row["code"], language)
        except ParseError:
            skips["does not parse"] += 1
            continue
        (text,) = model.read([code.text])
        if len(text.ids) > model.longest:
            skips[f"more than {model.longest} sub-tokens"] += 1
            continue
        ((_, offsets, special),) = model.encode([code.text])
        offsets = offsets[~special]
        start, end = np.array([(token.start, token.end) for token in code.tokens]).T
        none = np.zeros(len(offsets), bool)
        exact = exact_offsets(model.tokenizer)
        alignment = align(code.text, start, end, offsets, none, exact=exact)
        unscored = len(offsets) - len(text.positions)  # a first sub-token that nothing predicts
        first, last = alignment.first - unscored, alignment.last - unscored
        like = np.empty((len(first), 3))
        functions.append(
            TokenizedFunction(row["index"], code, text, first, last, offsets[:, 1], like)
        )
    _score_grams(functions)
    return functions


def _score_grams(functions: Sequence[TokenizedFunction]) -> None:
    """Say of each token what it is like: the 5-gram model of each half of the functions scores the
    other half."""
    texts = [[function.code.of(token) for token in function.code.tokens] for function in functions]
    counts = Counter(token for tokens in texts for token in tokens)
    halves = np.array_split(np.arange(len(functions)), 2)
    none = np.empty((0, N), np.uint64)
    for half, other in (halves, halves[::-1]):
        grams = NGrams(np.concatenate([none, *(windows(texts[number]) for number in other)]))
        for number in half:
            tokens = texts[number]
            frequency = np.log2([counts[token] for token in tokens])
            bits = -grams.log_probabilities(windows(tokens)) / np.log(2)
            relative_place = np.arange(len(tokens)) / len(tokens)
            functions[number].like = np.column_stack([bits, frequency, relative_place])


def _match(
    function: TokenizedFunction, node_types: Sequence[str], unmatched: dict[str, Counter[str]]
) -> None:
    """Ask for the nodes of a function whose tokens have controls, and count those without."""
    nodes = [node for node in function.code.nodes if node.first >= 0]
    for kind, name in enumerate(node_types):
        of_kind = [node for node in nodes if node.type == name]
        for column, role in enumerate(results.ROLES):
            spans = [_tokens_in(node, role) for node in of_kind]
            taken = sorted({token for span in spans for token in span})
            size = function.last - function.first
            controls = controls_of(function, np.array(taken, int), size)
            control_of = dict(zip(taken, controls.tolist()))
            for number, span in enumerate(spans):
                tokens = [token for token in span if control_of[token] >= 0]
                if tokens:
                    about = function.index, kind, number, column
                    function.asked.append((about, tokens, [control_of[token] for token in tokens]))
                elif span:
                    unmatched[role][name] += 1


def _tokens_in(node: Node, role: str) -> list[int]:
    """The tokens of a node in one of ROLES; none for the closing one of a node of a single
    token."""
    if role == results.FIRST:
        return [node.first]
    if role == results.CLOSING:
        return [node.last] if node.last > node.first else []
    return [*range(node.first, node.last + 1)]


def controls_of(function: TokenizedFunction, taken: np.ndarray, size: np.ndarray) -> np.ndarray:
    """The token outside of `taken` that is most like each of these, of the same `size` (T,), the
    first of equals; -1 without any: (tokens,)."""
    _, frequency, place = function.like.T
    free = np.delete(np.arange(len(size)), taken)
    free = free[function.first[free] >= 0]
    controls = np.full(len(taken), -1)
    if not len(free):
        return controls
    for part in np.array_split(np.arange(len(taken)), 1 + len(taken) // _SETS_AT_ONCE):
        tokens = taken[part, None]
        apart = [np.abs(of_all[free] - of_all[tokens]) for of_all in (frequency, place)]
        alike = (size[free] == size[tokens]) & (function.first[tokens] >= 0)
        alike &= (apart[0] <= FREQUENCY_APART) & (apart[1] <= PLACE_APART)
        nearest = np.where(alike, apart[0] + apart[1], np.inf).argmin(axis=1)
        controls[part] = np.where(alike.any(axis=1), free[nearest], -1)
    return controls
