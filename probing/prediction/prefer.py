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
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from tqdm import tqdm

from codesyntax_dataset.arguments import Natural, Positive, checked
from codesyntax_dataset.errors import ArgumentError, LedgerError, UnknownName
from codesyntax_dataset.languages import language_of, variant_of
from codesyntax_dataset.protocol import PAPER_LENGTH, RANDOM_WEIGHTS
from probing.models.cache_dir import versions
from probing.models.subtokens import check_language
from probing.prediction.fill import Copy, FunctionsBar, places_of
from probing.prediction.preference_result import (
    DECIMALS,
    VERSION,
    PreferenceLedger,
    PreferenceProvenance,
    PreferenceResult,
    PreferenceRun,
    PreferenceSettings,
)
from probing.runs.batches import Batches
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

    @property
    def asked(self) -> Mapping[str, object]:
        return {}

    @classmethod
    def again(cls, made: Any, session: Session, data: Any) -> Self:
        one = made.settings
        return cls(
            session,
            read_functions(data, one.config, one.split, limit=one.limit, control=one.control, seed=one.seed or 0),
        )

    @cached_property
    def model(self) -> ScoringModel:
        return self.session.scoring_model(None if self.data.control is None else self.data.seed)

    @cached_property
    def scorer(self) -> Scorer:
        return Scorer(self.model, self.batch_tokens)

    def shared(self, model: ScoringModel) -> dict[str, Any]:
        control = self.data.control
        seed = None if control is None else self.data.seed
        return {**super().shared(model), "dtype": model.precision, "control": control, "seed": seed}


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
        encoded, skips = [*self._encoded(rows)], Counter[str]()
        kept = [pair for pair in encoded if len(pair.ids) <= model.longest]
        if len(kept) < len(encoded):
            skips[f"more than {model.longest} sub-tokens"] = len(encoded) - len(kept)
        if not kept:
            raise LedgerError(
                f"no pair of {data.name}/{data.config}/{data.split} can be scored; skipped: {dict(skips)}"
            )
        kept.sort(key=lambda pair: (-len(pair.ids), pair.index))
        provenance = PreferenceProvenance(
            settings=PreferenceSettings(**self.shared(model)),
            version=VERSION,
            relations=self.relations,
            skips=dict(skips),
            run=PreferenceRun(
                family=model.family,
                device=model.device.type,
                scores="log-probability" if model.mask is None else "pseudo-log-likelihood",
            ),
            versions=versions(),
        )
        return Prepared(provenance, kept)

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
        for pair, scores in zip(part, self.scorer.score([(pair.good, pair.bad) for pair in part], bar)):
            if near and (np.abs(np.subtract(*_sums(pair, scores))) < near).any():
                scores = self.scorer.alone([pair.good, pair.bad])
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


class Scorer(Batches):
    """Runs the model over texts in batches; a masked language model over each text once for each of its sub-tokens."""

    def __init__(self, model: ScoringModel, batch_tokens: int | None = None):
        super().__init__(model, batch_tokens)
        self.model = model

    def score(self, groups: Sequence[Sequence[Copy]], bar: tqdm) -> list[list[np.ndarray]]:
        """The log-probabilities (M,) at the positions of each text, of groups of which the bar counts the finished.

        A text of several groups, as the valid one of a function is, is scored once.
        """
        texts: dict[bytes, Copy] = {}
        passes = []
        for group in groups:
            new = {text.ids.tobytes(): text for text in group if text.ids.tobytes() not in texts}
            passes.append([one for text in new.values() for one in self._passes(text)])
            texts |= new
        of_groups = FunctionsBar(bar, [*map(len, passes)])
        found = torch.cat(self.each([*chain.from_iterable(passes)], of_groups, self._log_probabilities)).numpy()
        ends = np.cumsum([len(text.positions) for text in texts.values()])
        of_texts = dict(zip(texts, np.split(found, ends[:-1])))
        return [[of_texts[text.ids.tobytes()] for text in group] for group in groups]

    def alone(self, texts: Sequence[Copy]) -> list[np.ndarray]:
        """The same of each text, one forward pass after the other."""
        each = [
            [self._log_probabilities([one], self.model.inputs([one.ids])) for one in self._passes(text)]
            for text in texts
        ]
        return [torch.cat(passes).cpu().numpy() for passes in each]

    def _passes(self, text: Copy) -> list[Copy]:
        if self.model.mask is None:
            return [text]
        return [Copy(text.ids, text.positions[at : at + 1]) for at in range(len(text.positions))]

    def _log_probabilities(self, batch: Sequence[Copy], inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        return self.model.log_probabilities(inputs, *places_of(batch, self.model.device))
