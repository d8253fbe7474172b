"""Surprisal by node type: how well a decoder foresees the tokens of syntax nodes, beside tokens like them.

The surprisal of a token is the negative binary logarithm of its probability after all that stands before it, in bits:
the sum over its sub-tokens, from one forward pass a function. A sub-token of two tokens, such as `):`, counts for both.
Tokens are the leaves of the syntax tree. Each token of a node has a control: of the tokens of the function that do not
have this role in any node of the type, the most similar one in frequency and place, with as many sub-tokens. A token
without such a control is left out.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from codesyntax_dataset.arguments import Natural, Positive, checked
from codesyntax_dataset.errors import ModelError, ParseError, UnknownName
from codesyntax_dataset.languages import language_of
from codesyntax_dataset.pairs.code import Code
from codesyntax_dataset.pairs.rivals import N, NGrams, windows
from codesyntax_dataset.protocol import PAPER_LENGTH, RANDOM_WEIGHTS
from codesyntax_metric.ast_similarity.similarity import parser_version
from probing.attention.align import align
from probing.models.subtokens import exact_offsets
from probing.prediction.fill import Copy
from probing.prediction.mask import chosen_types
from probing.prediction.prefer import Scoring
from probing.prediction.surprisal_result import (
    CLOSING,
    DECIMALS,
    FIRST,
    ROLES,
    SurprisalLedger,
    SurprisalResult,
)
from probing.runs.data import read_functions, rows
from probing.runs.experiment import Prepared, run
from probing.runs.session import Session
from probing.runs.settings import limit_of

FREQUENCY_APART, PLACE_APART = 1.0, 0.25
"""The most by which a control differs: twice or half as frequent, and by a quarter of the function."""


@checked
def surprise(
    model: str | os.PathLike | tuple | Session,
    data: Any,
    config: str = "python",
    split: str = "test",
    *,
    node_types: Sequence[str] | None = None,
    revision: str | None = None,
    dtype: str | torch.dtype = "float32",
    device: str | torch.device | None = None,
    batch_tokens: Positive | None = None,
    limit: Positive | None = None,
    sample: Positive | None = None,
    max_length: Positive = PAPER_LENGTH,
    control: str | None = None,
    seed: Natural = 0,
    output: str | os.PathLike | None = None,
    shard: str | None = None,
) -> SurprisalResult | None:
    """Measure how well a decoder foresees the first token, the closing token and all tokens of the nodes of each type.

    `model`: a decoder, with its head. `node_types`: names of the language's tree-sitter grammar; by default those that
    `mask` masks. `control`: `random-weights`, an untrained twin drawn by `seed`. The others as of `probing.probe`;
    `model` may be a `Session`, which says `revision`, `dtype`, `device` and `max_length` itself.

    Raises ArgumentError, ModelError, DatasetError, UnknownName or LedgerError, each with a one-line message.
    """
    session = Session.of(model, revision=revision, dtype=dtype, device=device, max_length=max_length)
    if control not in (None, RANDOM_WEIGHTS):
        raise UnknownName("control of surprisal", control, [RANDOM_WEIGHTS])
    chosen = chosen_types(language_of(config).name, node_types)
    read = read_functions(data, config, split, limit=limit_of(limit, sample, seed), control=control, seed=seed)
    return run(Surprising(session, read, batch_tokens, chosen), output, shard)


@dataclass
class TokenizedFunction:
    """A function of T tokens, at the place `index` in the split.

    `text`: its sub-tokens, and the positions of those that are scored; `first`, `last` (T,): which scores are those of
    each token, -1 without; `like` (T, 3): surprisal for 5-grams, frequency and place, as in the ledger; `asked`: what
    each row of the ledger is about, its tokens, and their controls.
    """

    index: int
    code: Code
    text: Copy
    first: np.ndarray
    last: np.ndarray
    like: np.ndarray
    asked: list[tuple[tuple[int, ...], list[int], list[int]]] = field(default_factory=list)

    @property
    def ids(self) -> np.ndarray:
        return self.text.ids

    @property
    def tokens(self) -> list[str]:
        return [self.code.of(token) for token in self.code.tokens]


@dataclass
class Surprising(Scoring[TokenizedFunction, SurprisalResult]):
    """Measures the surprisal of nodes; arguments as of `surprise`, node types by name."""

    RESULT = SurprisalResult
    VERB = "reading with"
    ASKED = ("node_types",)

    node_types: Sequence[str] = ()

    @property
    def asked(self) -> Mapping[str, object]:
        return {**super().asked, "parser": self._parser}

    @property
    def _parser(self) -> str:
        return parser_version(language_of(self.data.config).name)

    def prepare(self) -> Prepared[TokenizedFunction]:
        model = self.model
        if model.mask is not None:
            raise ModelError(f"{model.name} sees later sub-tokens, too: surprisal is that of decoders")
        skips, unmatched = Counter[str](), {role: Counter[str]() for role in ROLES}
        functions = [*self._read(skips)]
        _compare(functions)
        for function in functions:
            _match(function, self.node_types, unmatched)
        kept = [function for function in functions if function.asked]
        skips["no node with a control"] = len(functions) - len(kept)
        return self.prepared(
            model,
            kept,
            skips,
            "has a node that can be compared",
            run={"parser": self._parser},
            unmatched={role: dict(sorted(counts.items())) for role, counts in unmatched.items()},
        )

    def _read(self, skips: Counter[str]) -> Iterator[TokenizedFunction]:
        model, language = self.model, language_of(self.data.config).name
        for row in (row for batch in rows(self.data.dataset, self.data.limit) for row in batch):
            try:
                code = Code(row["code"], language)
            except ParseError:
                skips["does not parse"] += 1
                continue
            ((ids, positions),) = model.read([code.text])
            if len(ids) > model.longest:
                skips[f"more than {model.longest} sub-tokens"] += 1
                continue
            ((_, offsets, special),) = model.encode([code.text])
            start, end = (np.array([getattr(token, name) for token in code.tokens]) for name in ("start", "end"))
            found = align(
                code.text,
                start,
                end,
                offsets[~special],
                np.zeros((~special).sum(), bool),
                exact=exact_offsets(model.tokenizer),
            )
            unscored = (~special).sum() - len(positions)  # a first sub-token that nothing predicts
            first, last = found.first - unscored, found.last - unscored
            yield TokenizedFunction(row["place"], code, Copy(ids, positions), first, last, np.empty((len(first), 3)))

    def run(self, part: Sequence[TokenizedFunction], bar: tqdm) -> SurprisalLedger:
        cells: list[tuple[float, ...]] = []
        for function, (scores,) in zip(part, self.scorer.find([[function.text] for function in part], bar)):
            before = np.append(0, np.cumsum(-scores / np.log(2)))
            bits = before[function.last + 1] - before[function.first]
            measured = np.column_stack([bits, function.like])
            for about, tokens, controls in function.asked:
                means = [measured[of].mean(axis=0).round(DECIMALS) for of in (tokens, controls)]
                cells.append((*about, *np.concatenate(means)))
        return SurprisalLedger([*self.node_types], np.array(cells, SurprisalLedger.ROW), self.made).sorted()


def _compare(functions: Sequence[TokenizedFunction]) -> None:
    """Say of each token what it is like: the 5-gram model of each half of the functions scores the other half."""
    texts = [function.tokens for function in functions]
    counts = Counter(token for tokens in texts for token in tokens)
    halves = np.array_split(np.arange(len(functions)), 2)
    for half, other in (halves, halves[::-1]):
        grams = NGrams(np.concatenate([np.empty((0, N), np.uint64), *(windows(texts[at]) for at in other)]))
        for at in half:
            frequency = np.log2([counts[token] for token in texts[at]])
            bits = -grams.log_probabilities(windows(texts[at])) / np.log(2)
            functions[at].like = np.column_stack([bits, frequency, np.arange(len(bits)) / len(bits)])


def _match(function: TokenizedFunction, node_types: Sequence[str], unmatched: dict[str, Counter[str]]) -> None:
    """Ask for the nodes of a function whose tokens have controls, and count those without."""
    nodes = [node for node in function.code.nodes if node.first >= 0]
    for kind, name in enumerate(node_types):
        of_kind = [node for node in nodes if node.type == name]
        for at, role in enumerate(ROLES):
            spans = [
                [node.first] if role == FIRST
                else [node.last] * (node.last > node.first) if role == CLOSING
                else [*range(node.first, node.last + 1)]
                for node in of_kind
            ]  # fmt: skip
            taken = sorted({token for span in spans for token in span})
            controls = {token: found for token in taken if (found := _control(function, token, taken)) is not None}
            for number, (node, span) in enumerate(zip(of_kind, spans)):
                tokens = [token for token in span if token in controls]
                if tokens:
                    about = function.index, kind, number, at, node.level, node.last - node.first
                    function.asked.append((about, tokens, [controls[token] for token in tokens]))
                elif span:
                    unmatched[role][name] += 1


def _control(function: TokenizedFunction, token: int, taken: Sequence[int]) -> int | None:
    """The token outside of `taken` that is most like a token, the first of equals; None without any."""
    _, frequency, place = np.abs(function.like - function.like[token]).T
    size = function.last - function.first
    alike = (size == size[token]) & (frequency <= FREQUENCY_APART) & (place <= PLACE_APART) & (function.first >= 0)
    alike[taken] = False
    apart = np.where(alike, frequency + place, np.inf)
    return int(apart.argmin()) if alike.any() and function.first[token] >= 0 else None
