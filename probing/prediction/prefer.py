"""Minimal pairs: does a language model find the text that parses likelier than the one that does not?

The score of a text is the sum of the log-probabilities of its sub-tokens. A decoder predicts each from those before it;
the first from the beginning-of-text token or, in a model without one, from its end-of-text token, which stands before
every text once, whether the tokenizer adds it or not. In a masked language model each sub-token is masked alone, so the
score is a pseudo-log-likelihood (Salazar et al. 2020). The other score, of the place alone, sums over the sub-tokens in
which the two texts differ: all between those that they share at the beginning and at the end, and the next one too
where one text has none there.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from tqdm import tqdm

from codesyntax_dataset.arguments import Natural, Positive, checked
from codesyntax_dataset.errors import ArgumentError, UnknownName
from codesyntax_dataset.languages import language_of, variant_of
from codesyntax_dataset.protocol import PAPER_LENGTH, RANDOM_WEIGHTS
from probing.models.subtokens import check_language
from probing.prediction.fill import Copy, Passes
from probing.prediction.preference_result import DECIMALS, PreferenceLedger, PreferenceResult
from probing.runs.data import pairs, read_functions
from probing.runs.experiment import Experiment, F, Prepared, R, run
from probing.runs.session import Session
from probing.runs.settings import limit_of

if TYPE_CHECKING:
    from probing.models.masked import ScoringModel

NEAR = {"float32": 1e-2, "bfloat16": 0.0}
"""Nats by which other batches may change a score; in bfloat16 by more, and nothing is promised."""


@checked
def prefer(
    model: str | os.PathLike | tuple | Session,
    data: Any,
    config: str = "python_pairs",
    split: str = "test",
    *,
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
) -> PreferenceResult | None:
    """Score minimal pairs of code: how often a language model finds the text that parses likelier.

    `model`: a masked language model or a decoder, with its head. `config`: of minimal pairs, such as `python_pairs`.
    `max_length`: pairs with a longer text are skipped, and counted. `control`: `random-weights`, an untrained twin
    drawn by `seed`. The others as of `probing.probe`; `model` may be a `Session`, which says `revision`, `dtype`,
    `device` and `max_length` itself. A masked language model runs once for each sub-token of a text.

    In float32, other batches change a score in its last digits, and never which text is likelier: pairs in which they
    could are scored again alone.

    Raises ArgumentError, ModelError, DatasetError, UnknownName or LedgerError, each with a one-line message.
    """
    session = Session.of(model, revision=revision, dtype=dtype, device=device, max_length=max_length)
    if control not in (None, RANDOM_WEIGHTS):
        raise UnknownName("control of minimal pairs", control, [RANDOM_WEIGHTS])
    if not variant_of(config).pairs:
        raise ArgumentError(
            f"config is {config!r}, expected one of minimal pairs, such as {language_of(config).name}_pairs"
        )
    read = read_functions(data, config, split, limit=limit_of(limit, sample, seed), control=control, seed=seed)
    return run(Preferring(session, read, batch_tokens), output, shard)


@dataclass(frozen=True)
class EncodedPair:
    """A minimal pair as the model reads it, at the place `index` in the split.

    `good`, `bad`: each the sub-tokens and the positions of those that are scored; `changed`: of each, which of these
    positions the two do not share, bool (M,); `about`: phenomenon, relation, repository, distance, depth, and how a
    counter of brackets decides, as in the ledger.
    """

    index: int
    good: Copy
    bad: Copy
    changed: tuple[np.ndarray, np.ndarray]
    about: tuple[int, ...]

    @property
    def ids(self) -> np.ndarray:
        """The longer text."""
        return max(self.good.ids, self.bad.ids, key=len)


@dataclass
class Scoring(Experiment[F, R]):
    """What reads the log-probabilities of sub-tokens, by a model or its untrained twin."""

    PART = 128

    batch_tokens: int | None = None

    @cached_property
    def model(self) -> ScoringModel:
        return self.session.scoring_model(None if self.data.control is None else self.data.seed)

    @cached_property
    def scorer(self) -> Scorer:
        return Scorer(self.model, self.batch_tokens)


@dataclass
class Preferring(Scoring[EncodedPair, PreferenceResult]):
    """Scores both texts of minimal pairs; arguments as of `prefer`."""

    RESULT = PreferenceResult
    VERB = "scoring pairs with"

    def prepare(self) -> Prepared[EncodedPair]:
        data, model = self.data, self.model
        check_language(model.tokenizer, model.name, language_of(data.config).name)
        rows = [*chain.from_iterable(pairs(data.dataset, data.limit))]
        self.phenomena, self.relations = (sorted({row[name] for row in rows}) for name in ("phenomenon", "relation"))
        encoded, longest = [*self._encoded(rows)], model.longest
        kept = [pair for pair in encoded if len(pair.ids) <= longest]
        return self.prepared(
            model,
            kept,
            Counter({f"more than {longest} sub-tokens": len(encoded) - len(kept)}),
            "can be scored",
            run={"scores": "log-probability" if model.mask is None else "pseudo-log-likelihood"},
            relations=self.relations,
        )

    def _encoded(self, rows: Sequence[Mapping[str, Any]]) -> Iterator[EncodedPair]:
        phenomenon, relation = ({name: at for at, name in enumerate(of)} for of in (self.phenomena, self.relations))
        repository: dict[str, int] = {}
        for row in rows:
            good, bad = (Copy(*read) for read in self.model.read([row["good"], row["bad"]]))
            about = (
                phenomenon[row["phenomenon"]],
                relation[row["relation"]],
                repository.setdefault(row["repo"], len(repository)),
                int(row["distance"]),
                int(row["depth"]),
                1 + int(np.sign(unmatched(row["bad"]) - unmatched(row["good"]))),
            )
            yield EncodedPair(row["place"], good, bad, changed(good, bad), about)

    def run(self, part: Sequence[EncodedPair], bar: tqdm) -> PreferenceLedger:
        near, cells = NEAR[self.model.dtype], []
        for pair, scores in zip(part, self.scorer.find([(pair.good, pair.bad) for pair in part], bar)):
            if near and (np.abs(np.subtract(*_sums(pair, scores))) < near).any():
                scores = [self.scorer.alone(text) for text in (pair.good, pair.bad)]
            tokens = [count for where in pair.changed for count in (len(where), int(where.sum()))]
            cells.append((pair.index, *pair.about, *tokens, *np.concatenate(_sums(pair, scores)).round(DECIMALS)))
        return PreferenceLedger(self.phenomena, np.array(cells, PreferenceLedger.ROW), self.made).sorted()


def _sums(pair: EncodedPair, scores: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Of the good text and of the bad one: the log-probability of all sub-tokens, and of those in `changed`."""
    return [np.array([of.sum(), of[where].sum()]) for of, where in zip(scores, pair.changed)]


def unmatched(text: str) -> int:
    """How many brackets of each kind a text opens and does not close, or closes and does not open, counted alone."""
    return sum(abs(text.count(opens) - text.count(closes)) for opens, closes in ("()", "[]", "{}"))


def changed(good: Copy, bad: Copy) -> tuple[np.ndarray, np.ndarray]:
    """Of each text, which of its positions are in the place where the two differ: bool (M,)."""
    shortest = min(len(good.ids), len(bad.ids))
    first = _alike(good.ids[:shortest], bad.ids[:shortest])
    last = _alike(good.ids[::-1][: shortest - first], bad.ids[::-1][: shortest - first])
    if first + last == shortest and last:  # one text has nothing there
        last -= 1
    here, there = ((text.positions >= first) & (text.positions < len(text.ids) - last) for text in (good, bad))
    return here, there


def _alike(one: np.ndarray, other: np.ndarray) -> int:
    """How many ids, from the first on, are equal."""
    return int(np.append(one != other, True).argmax())


class Scorer(Passes[Copy]):
    """Finds log-probabilities; a masked language model runs over a text once for each of its sub-tokens."""

    model: ScoringModel

    def passes(self, text: Copy) -> list[Copy]:
        if self.model.mask is None:
            return [text]
        return [Copy(text.ids, text.positions[at : at + 1]) for at in range(len(text.positions))]

    def work(self, batch: Sequence[Copy], inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        return self.model.log_probabilities(inputs, *self.places(batch))
