"""Do heads that find a relation carry the syntax that rests on it? The best heads of each relation
are silenced while the model reads minimal pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm import tqdm

from codesyntax_dataset.arguments import Natural, Positive, StrPath, checked
from codesyntax_dataset.errors import ArgumentError, UnknownName
from codesyntax_dataset.languages import language_of, variant_of
from probing.instruments.attention.probe import Probing, default_direction
from probing.instruments.likelihood.likelihood import changed
from probing.instruments.likelihood.result import DECIMALS
from probing.instruments.masking.fill import Copy, pass_key
from probing.instruments.silencing import sets
from probing.instruments.silencing.ablate import REFERENCE
from probing.instruments.silencing.carried import (
    CarryingLedger,
    CarryingResult,
)
from probing.instruments.silencing.choose import heads_that_find
from probing.instruments.silencing.sets import HeadSet, column_of
from probing.instruments.silencing.silence import Predictor
from probing.models.language_model import MEAN, STAND_INS
from probing.models.location import ModelSource
from probing.models.subtokens import check_language
from probing.runs.data import Functions, pair_rows, read_functions, read_validation
from probing.runs.experiment import Experiment, Prepared, run
from probing.runs.session import Session

if TYPE_CHECKING:
    import torch

    from probing.models.language_model import LanguageModel

SHARES = (1, 5, 10)
"""Percent of all heads that are silenced together."""

DRAWN_SETS = 20
"""Sets of other heads that each set of best ones is compared with."""


@checked
def carry(
    model: ModelSource | Session,
    data: Any,
    config: str = "python_pairs",
    *,
    relations: Sequence[str] | None = None,
    heads: Sequence[Any] = (),
    shares: Sequence[int] = SHARES,
    draws: Positive = DRAWN_SETS,
    seed: Natural = 0,
    stand_in: str = MEAN,
    revision: str | None = None,
    device: str | torch.device | None = None,
    limit: Positive | None = None,
    sample: Positive | None = None,
    direction: str | None = None,
    max_length: Positive | None = None,
    output: StrPath | None = None,
    shard: str | None = None,
) -> CarryingResult | None:
    """Measure how much of the preference for valid code is lost if the heads of a relation are
    silenced.

    The margin of a minimal pair is the log-probability of its valid text less that of the invalid
    one, in nats; of a masked language model, that of the sub-tokens in which they differ, all
    masked together. Heads are chosen on the split `validation` of the language's functions, which
    the probe reads first: those that find most dependents of a relation that are not at its best
    offset. Beside each set, as many other heads of the same layers are silenced, and the heads best
    at the relation's best offset, and for rules without any syntax
    (`probing.instruments.silencing.sets`). The model runs in float32.

    A repeated run is answered from the cache (see `probing.models.cache_dir`), unless the model is
    a pair. Under `accelerate launch` or `torchrun` the processes share the work; the main process
    returns the result of a single one, the others None.

    Args:
        model: a Hub id, a local folder or file, the name of an embedded model, or a (model,
            tokenizer) pair, with a masked-LM or causal-LM head; or a `probing.Session` in float32,
            which loads it once for several calls.
        data: a folder that `codesyntax build` wrote, a dataset id on the Hub, or a loaded
            `DatasetDict`, with the language's own config beside the pairs.
        config: minimal pairs of a language, such as `python_pairs`.
        relations: whose heads are silenced, by default those on which pairs of the config rest.
        heads: heads of one's own, silenced together, such as `["3-9", (4, 6)]`: layer and head from
            0.
        shares: percent of all heads in a set, at least one head.
        draws: how many sets of other heads are silenced beside each set.
        seed: of `draws` and `sample`.
        stand_in: what silenced heads put out: `mean`, `zero` or `resampled`.
        revision: a branch, tag or commit on the Hub, or the name of a checkpoint in a local folder.
        device: such as `cpu` or `cuda:1`; by default a CUDA GPU if there is one, and for a pair
            where it is.
        limit: only the first so many pairs; the result says so.
        sample: only so many pairs, drawn by `seed`.
        direction: `head-to-dependent`, as published for code, or `dependent-to-head`, as published
            for natural language and the only one of models that cannot see later tokens; by default
            that of the language, if the model supports it.
        max_length: the most sub-tokens of a text, special tokens included: by default 511, as in
            the paper. Longer ones are skipped and counted.
        output: a folder for the result and its ledger, in which an interrupted run continues where
            it stopped.
        shard: such as `2/7`: run only the second of seven shards of the pairs, and write it to
            `output` for `probing.merge`.

    Returns:
        The result, whose `ledger` has the log-probabilities of both texts of each pair for each
        set, in nats; None with a `shard`, and in other processes than the main one.

    Raises:
        ArgumentError: an argument of another kind, or one that contradicts another.
        UnknownName: a config, split or other name that does not exist.
        DatasetError: data that do not exist, are damaged, or lack what is asked for.
        ModelError: a model that cannot be loaded, or does not fit.
        LedgerError: nothing can be scored, or `output` has damaged or other files.

    Examples:
        >>> import probing
        >>> result = probing.carry(
        ...     "tiny-code-lm",
        ...     "codesyntax",
        ...     relations=["If:if->body"],
        ...     shares=[10],
        ...     draws=1,
        ...     limit=2,
        ... )
        >>> {heads.kind for heads in result.sets} >= {"best", "matched"}
        True
    """
    if stand_in not in STAND_INS:
        raise UnknownName("stand_in", stand_in, STAND_INS)
    if not variant_of(config).pairs:
        raise ArgumentError(
            f"config is {config!r}, expected one of minimal pairs, such as {language_of(config).name}_pairs"
        )
    if not shares or not all(0 < share <= 100 for share in shares):
        raise ArgumentError(
            f"shares are {list(shares)}, expected percent of heads, such as [1, 5, 10]"
        )
    session = Session.of(
        model, revision=revision, dtype="float32", device=device, max_length=max_length
    )
    read = read_functions(data, config, "test", limit=limit, sample=sample, seed=seed)
    asked = None if relations is None else tuple(relations)
    own = sets.parsed(heads)
    carrying = Carrying(session, read, direction, asked, own, tuple(shares), draws, seed, stand_in)
    return run(carrying, output, shard)


@dataclass(frozen=True)
class ReadPair:
    """A minimal pair as the model reads it: its place in the split, the passes over its texts while
    nothing is silenced, and `about`: phenomenon and repository, as in the ledger."""

    index: int
    good: Copy
    bad: Copy
    about: tuple[int, int]

    @property
    def ids(self) -> np.ndarray:
        """The longer text."""
        return max(self.good.ids, self.bad.ids, key=len)


@dataclass
class Carrying(Experiment[ReadPair, CarryingResult]):
    """Silences sets of heads in both texts of minimal pairs; arguments as of `carry`."""

    RESULT = CarryingResult

    direction: str | None = None
    relations: tuple[str, ...] | None = None
    own: tuple[tuple[int, int], ...] = ()
    shares: tuple[int, ...] = SHARES
    draws: int = DRAWN_SETS
    seed: int = 0
    stand_in: str = MEAN

    @property
    def learned_from(self) -> Mapping[str, str | None]:
        return {"chosen_on": self.validation.data.labels}

    @cached_property
    def model(self) -> LanguageModel:
        return self.session.language_model()

    @cached_property
    def validation(self) -> Probing:
        """The probe of the functions on which heads are chosen."""
        language = language_of(self.data.config).name
        functions = read_validation(self.data._replace(config=language))
        return Probing(self.session, functions, self.direction)

    @cached_property
    def heads(self) -> list[HeadSet]:
        """The sets that are silenced, chosen in the main process."""
        shape = (self.model.layers, self.model.heads)
        for head in self.own:
            if head[0] >= shape[0] or head[1] >= shape[1]:
                raise ArgumentError(
                    f"a head is {'-'.join(map(str, head))}, but {self.model.name} has {shape[0]} layers of "
                    f"{shape[1]} heads, counted from 0"
                )
        validation = run(self.validation)
        ruled = self.validation.data
        direction = self.validation.direction or default_direction(self.model, ruled.config)
        with_rules: Functions = sets.with_rules(ruled, direction)
        rules = run(Probing(self.session, with_rules, self.direction))
        chosen = None
        if validation is not None and rules is not None:
            seekers = sets.relation_seekers(validation.ledger, self._relations(validation.ledger))
            seekers |= heads_that_find(rules.ledger)
            chosen = sets.head_sets(seekers, shape, self.shares, self.draws, self.seed, self.own)
        return self.session.processes.share(chosen)

    def _relations(self, validation: Any) -> Sequence[str]:
        """Those asked for, or on which pairs rest."""
        known = validation.relations
        if self.relations is None:
            return [
                name
                for name in known
                if any(sets.rests_on(column, name) for column in self.columns)
            ]
        for name in self.relations:
            if name not in known:
                raise UnknownName("relation", name, known)
        return self.relations

    @cached_property
    def _rows(self) -> list[dict[str, Any]]:
        return list(pair_rows(self.data.table, self.data.limit))

    @cached_property
    def columns(self) -> list[str]:
        """The groups of pairs."""
        return sorted({column_of(row["phenomenon"], row["relation"]) for row in self._rows})

    def prepare(self) -> Prepared[ReadPair]:
        model = self.model
        check_language(model.tokenizer, model.name, language_of(self.data.config).name)
        encoded = list(self._pairs_read())
        readable = [pair for pair in encoded if len(pair.ids) <= model.longest]
        masked = model.mask is not None
        return self.prepared(
            model,
            readable,
            Counter({f"more than {model.longest} sub-tokens": len(encoded) - len(readable)}),
            "can be read",
            settings={
                "revision": model.with_head,
                "begin": model.begin,
                "direction": self.direction or default_direction(model, self.data.config),
            },
            run={
                "predicts": "masked" if masked else "next",
                "layers": model.layers,
                "heads": model.heads,
            },
            sets=tuple(self.heads),
        )

    def _pairs_read(self) -> Iterator[ReadPair]:
        repository: dict[str, int] = {}
        masked = self.model.mask is not None
        for row in self._rows:
            read = self.model.scoring.read([row["good"], row["bad"]])
            good, bad = (Copy(text.ids, text.positions) for text in read)
            if masked:  # restores what differs
                of_good, of_bad = changed(good, bad)
                good = Copy(good.ids, good.positions[of_good])
                bad = Copy(bad.ids, bad.positions[of_bad])
            column = column_of(row["phenomenon"], row["relation"])
            about = (
                self.columns.index(column),
                repository.setdefault(row["repo"], len(repository)),
            )
            yield ReadPair(row["index"], good, bad, about)

    @cached_property
    def _predictor(self) -> Predictor:
        reference = [function.ids for function in self.validation.encoded.functions[:REFERENCE]]
        return Predictor(self.model, self.model.stand_ins(reference, self.stand_in))

    @cached_property
    def parts(self) -> Sequence[Sequence[ReadPair]]:
        """The pairs of each valid text, which is read once, and of the others what follows on a
        change."""
        of_text: dict[bytes, list[ReadPair]] = {}
        for pair in self.functions:
            of_text.setdefault(pair.good.ids.tobytes(), []).append(pair)
        return [*of_text.values()]

    def run(self, part: Sequence[ReadPair], bar: tqdm) -> CarryingLedger:
        silenced = [(), *(heads.heads for heads in self.provenance.sets)]
        texts = {pass_key(text): text for pair in part for text in (pair.good, pair.bad)}
        by_text = dict(zip(texts, self._predictor.find([*texts.values()], silenced)))
        cells = []
        for pair in part:
            sums = [
                by_text[pass_key(text)].sum(axis=1).round(DECIMALS)
                for text in (pair.good, pair.bad)
            ]
            cells += [
                (pair.index, number, *pair.about, *both) for number, both in enumerate(zip(*sums))
            ]
        bar.update(len(part))
        return self.ledger(self.columns, cells)
