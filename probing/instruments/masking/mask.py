"""SyntaxEval: mask the nodes of each type in functions, let a model restore them, and compare the
syntax trees.

Copies of a function are masked by `masking`, restored by `fill`, and put back into text and
compared by `restore`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from tqdm import tqdm

from codesyntax_dataset.arguments import Natural, Positive, StrPath, checked
from codesyntax_dataset.errors import ArgumentError, UnknownName
from codesyntax_dataset.languages import grammar, language_of
from codesyntax_metric.ast_similarity.similarity import parser_version
from probing.instruments.masking import masking
from probing.instruments.masking.masking import Maskable, MaskedCopy, Masker, masked_copies
from probing.instruments.masking.restore import Restoration, RestoredCopy
from probing.instruments.masking.result import DROPPED, ROW, MaskingLedger, MaskResult
from probing.models.location import ModelSource
from probing.runs.data import read_functions, rows
from probing.runs.experiment import ANY_BATCHES, NO_SETTING, Experiment, Prepared, run
from probing.runs.session import Session

if TYPE_CHECKING:
    from probing.models.masked import RestoringModel

DRAWS, DRAWS_OF_DECODER = 20, 2
"""How many random controls a masked copy has by default; a decoder writes into one hole after the
other."""


@checked
def mask(
    model: ModelSource | Session,
    data: Any,
    config: str = "python",
    split: str = "test",
    *,
    node_types: Sequence[str] | None = None,
    protocol: str = masking.CURRENT,
    rate: float | int = 1.0,
    control: str = masking.SUB_TOKENS,
    random_weights: bool = False,
    draws: Positive | None = None,
    seed: Natural = 0,
    revision: str | None = None,
    device: str | torch.device | None = None,
    batch_tokens: Positive | None = None,
    limit: Positive | None = None,
    sample: Positive | None = None,
    max_length: Positive | None = None,
    output: StrPath | None = None,
    shard: str | None = None,
) -> MaskResult | None:
    """Have a language model restore functions in which the nodes of a type are masked (Velasco et
    al. 2024).

    For each function and node type, one copy has the outermost nodes of the type masked, T1, and
    `draws` copies have as many random sub-tokens masked, T0. The model restores each, and the tree
    of the restored text is compared with that of the source. Labels are not used. The model runs in
    float32.

    The same arguments give the same result for any number of processes; other batches may decide
    near ties otherwise. A repeated run is answered from the cache (see `probing.models.cache_dir`),
    unless the model is a pair. Under `accelerate launch` or `torchrun` the processes share the
    work; the main process returns the result of a single one, the others None.

    Args:
        model: a Hub id, a local folder or file, the name of an embedded model, or a (model,
            tokenizer) pair, with a masked-LM head, or a decoder with fill-in-the-middle tokens, for
            which the result has the protocol `infilling`; or a `probing.Session` in float32, which
            loads it once for several calls.
        data: a folder that `codesyntax build` wrote, a dataset id on the Hub, or a loaded
            `DatasetDict`.
        config: the functions, such as `python` or `java`.
        split: the split that is scored, `test` or `validation`.
        node_types: names of the language's tree-sitter grammar, or `["all"]`; by default the eleven
            of the study, or their counterparts.
        protocol: `current`, or `published`, which masks what the study masked.
        rate: the share of a function's nodes that is masked, 0 to 1, rounded down.
        control: what T0 masks: `sub-tokens`, as many random ones, or `spans`, random spans of whole
            words as long as the nodes, outside of them.
        random_weights: mask with a randomly initialised copy of the model, drawn by `seed`.
        draws: copies T0 of each function and node type: by default 20, and 2 for a decoder, which
            takes longer.
        seed: of the controls, of a `rate` below 1, of `random_weights` and of `sample`.
        revision: a branch, tag or commit on the Hub, or the name of a checkpoint in a local folder.
        device: such as `cpu` or `cuda:1`; by default a CUDA GPU if there is one, and for a pair
            where it is.
        batch_tokens: sub-tokens in a batch, padding included.
        limit: only the first so many functions of the split; the result says so.
        sample: only so many functions, drawn by `seed`, of controls by 0: the same ones for every
            model.
        max_length: the most sub-tokens of a function, special tokens included: by default 511, as
            in the paper. Longer ones are skipped and counted.
        output: a folder for the result and its ledger, in which an interrupted run continues where
            it stopped.
        shard: such as `2/7`: run only the second of seven shards of the functions, and write it to
            `output` for `probing.merge`.

    Returns:
        By node type, the means of T1 and T0: similarities of trees from 0 to 1, `restored`
        sub-tokens in percent, and their log-probability in nats; None with a `shard`, and in other
        processes than the main one.

    Raises:
        ArgumentError: an argument of another kind, or one that contradicts another.
        UnknownName: a config, split or other name that does not exist.
        DatasetError: data that do not exist, are damaged, or lack what is asked for.
        ModelError: a model that cannot be loaded, or does not fit.
        LedgerError: nothing can be scored, or `output` has damaged or other files.

    Examples:
        >>> import probing
        >>> result = probing.mask(
        ...     "tiny-code-mlm", "codesyntax", node_types=["if_statement"], draws=1, limit=4
        ... )
        >>> scores = result.node_types["if_statement"]
        >>> scores.functions, scores.masked, 0 <= scores.t1.jaccard <= 1
        (4, 307, True)
    """
    session = Session.of(
        model, revision=revision, dtype="float32", device=device, max_length=max_length
    )
    functions = read_functions(data, config, split, limit=limit, sample=sample, seed=seed)
    chosen = chosen_types(language_of(config).name, node_types)
    experiment = Masking(
        session,
        functions,
        chosen,
        protocol,
        float(rate),
        control,
        random_weights,
        draws,
        seed,
        batch_tokens,
    )
    return run(experiment, output, shard)


@dataclass(frozen=True)
class MaskedFunction:
    """A function to mask: its place in the split, code and sub-tokens `ids` (S,), and how many
    copies it has."""

    index: int
    code: str
    ids: np.ndarray
    copies: int


@dataclass
class Masking(Experiment[MaskedFunction, MaskResult]):
    """Restores masked copies of functions; arguments as of `mask`, node types by name."""

    RESULT = MaskResult

    node_types: Sequence[str]
    protocol: str = masking.CURRENT
    rate: float = 1.0
    control: str = masking.SUB_TOKENS
    random_weights: bool = False
    draws: int | None = None
    seed: int = 0
    batch_tokens: int | None = field(default=None, metadata={NO_SETTING: ANY_BATCHES})

    @property
    def _language(self) -> str:
        return language_of(self.data.config).name

    @cached_property
    def model(self) -> RestoringModel:
        return self.session.restoring_model(self.seed if self.random_weights else None)

    @cached_property
    def masker(self) -> Masker:
        """By the protocol, which for a decoder is infilling; raises ArgumentError if the model
        cannot follow it."""
        infills = self.model.mask is None
        if self.protocol == (masking.PUBLISHED if infills else masking.INFILLING):
            kind = (
                "a decoder, which fills holes"
                if infills
                else "a masked language model, which restores masks"
            )
            raise ArgumentError(
                f"protocol is {self.protocol!r}, but {self.model.name} is {kind}: use {masking.CURRENT!r}"
            )
        protocol = masking.INFILLING if infills else self.protocol
        return Masker(self.model.tokenizer, self._language, self.node_types, protocol=protocol)

    def prepare(self) -> Prepared[MaskedFunction]:
        if not 0 < self.rate <= 1:
            raise ArgumentError(
                f"rate is {self.rate}, expected a share of the nodes above 0, at most 1"
            )
        if self.control not in masking.MASKED_IN_T0:
            raise UnknownName("control", self.control, masking.MASKED_IN_T0)
        if self.control == masking.SPANS and self.protocol == masking.PUBLISHED:
            raise ArgumentError(
                f"the protocol {self.protocol} has the control {masking.SUB_TOKENS}: use another protocol, or that one"
            )
        model = self.model
        masker = self.masker
        if self.draws is None:
            self.draws = DRAWS_OF_DECODER if model.mask is None else DRAWS
        functions = []
        skips = Counter[str]()
        dropped = Counter(dict.fromkeys(DROPPED, 0))
        # sub-tokens that are masked, by node type in T1 (False), and in T0
        masked: defaultdict[tuple[int, bool], Counter[int]] = defaultdict(Counter)
        read = 0
        for batch in rows(self.data.table, self.data.limit):
            for row, function in zip(batch, masker.read([row["code"] for row in batch])):
                if len(function.ids) > model.longest:
                    skips[f"more than {model.longest} sub-tokens"] += 1
                    continue
                read += 1
                copies, without = self.copies(function, row["index"])
                dropped.update(without)
                for copy in copies:
                    arm = masked[copy.node_type, copy.number > 0]
                    arm.update(function.ids[copy.positions].tolist())
                if copies:
                    functions.append(
                        MaskedFunction(row["index"], function.code, function.ids, len(copies))
                    )
        return self.prepared(
            model,
            functions,
            skips,
            f"has a node to mask of {', '.join(self.node_types)}",
            settings={"protocol": masker.protocol},
            run={
                "output_layer": "all positions" if model.why else "masked positions",
                "parser": parser_version(self._language),
            },
            functions=read,
            dropped=dropped,
            commonest={
                self.node_types[kind]: (
                    _commonest(masked[kind, False]),
                    _commonest(masked[kind, True]),
                )
                for kind in sorted({kind for kind, _ in masked})
            },
        )

    def copies(self, function: Maskable, index: int) -> tuple[list[MaskedCopy], Counter[str]]:
        """The masked copies of the function at this place in the split, as of `masked_copies`."""
        assert self.draws is not None  # `prepare` chose it
        return masked_copies(
            function, index, self.node_types, self.draws, self.seed, self.rate, self.control
        )

    @cached_property
    def restoration(self) -> Restoration:
        """The model, loaded, with its masker."""
        return Restoration(self.model, self.masker, self.batch_tokens)

    def run(self, part: Sequence[MaskedFunction], bar: tqdm) -> MaskingLedger:
        texts = zip(part, self.masker.read([function.code for function in part]))
        functions = [(text, self.copies(text, function.index)[0]) for function, text in texts]
        cells = []
        for function, restored in zip(part, self.restoration.each(functions, bar)):
            cells += [self._ledger_row(function, copy) for copy in restored]
        return MaskingLedger(list(self.node_types), np.array(cells, ROW), self.made).sorted()

    def _ledger_row(self, function: MaskedFunction, restored: RestoredCopy) -> tuple[float, ...]:
        """The row of the ledger of a copy of a function."""
        copy, filled, similarity, floors = restored
        commonest = self.provenance.commonest[self.node_types[copy.node_type]][copy.number > 0]
        return (
            function.index,
            copy.node_type,
            copy.number,
            copy.seed,
            len(copy.positions),
            filled.hits,
            filled.log_probability,
            int((function.ids[copy.positions] == commonest).sum()),
            *chain(similarity, *floors),
        )


def _commonest(numbers: Counter[int]) -> int:
    """The number that is most frequent, of equals the lowest."""
    return max(sorted(numbers), key=numbers.__getitem__)


def chosen_types(language: str, names: Sequence[str] | None) -> list[str]:
    """The node types of these names; `all` stands for all named ones of the grammar."""
    if names is not None and not names:
        raise ArgumentError("no node type to mask: name some of the language's grammar, or all")
    if list(names or ()) == ["all"]:
        return [name for name in grammar.node_types(language) if name.isidentifier()]
    return grammar.checked_node_types(language, names)
