"""The information probe: what the attention of all heads together tells of dependents beyond words
and positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from codesyntax_dataset.arguments import Natural, Positive, StrPath, checked
from codesyntax_dataset.errors import LedgerError
from probing.instruments.attention.edges import EdgeTable
from probing.instruments.attention.probe import Probing
from probing.instruments.information.learn import (
    Learned,
    choice_of,
    drawn,
    learn,
    with_edges,
)
from probing.instruments.information.pairs import ReadFunction, ScoredPairs, Scorers, listen
from probing.instruments.information.result import (
    BITS_DECIMALS,
    NOT_ASKED,
    InformationLedger,
    InformationResult,
)
from probing.instruments.information.rival import rival
from probing.instruments.information.surface import Surface, WordClasses
from probing.models.location import ModelSource
from probing.runs.data import Functions, read_functions, read_validation
from probing.runs.experiment import Experiment, Prepared, run
from probing.runs.progress import progress
from probing.runs.session import Session

EDGES = 2000
"""The most edges that are drawn of a relation and split."""

_ROUNDED = 3
"""The decimals of scores by which candidates are ranked: what batches round differently makes no
difference."""


@checked
def inform(
    model: ModelSource | Session,
    data: Any,
    config: str = "python",
    split: str = "test",
    *,
    edges: Positive = EDGES,
    revision: str | None = None,
    dtype: str | torch.dtype | None = None,
    device: str | torch.device | None = None,
    limit: Positive | None = None,
    sample: Positive | None = None,
    max_length: Positive | None = None,
    control: str | None = None,
    seed: Natural = 0,
    output: StrPath | None = None,
    shard: str | None = None,
) -> InformationResult | None:
    """Measure the bits that the attention of all heads adds to words and positions, by relation
    (usable information).

    For each relation, three log-linear choices of the dependent's first token among all tokens but
    the head token are fitted on `validation` and scored on `split`: by words and positions, which
    need no model; by the attention of every head, from the head token to the candidate and back;
    and by both. What attention adds is the mean log-loss of words and positions less that of both,
    in bits (Xu et al. 2020; Hewitt et al. 2021). Penalties are those of least loss on unseen
    repositories of validation.

    A repeated run is answered from the cache (see `probing.models.cache_dir`), unless the model is
    a pair. Under `accelerate launch` or `torchrun` the processes share the work; the main process
    returns the result of a single one, the others None.

    Args:
        model: a Hub id, a local folder or file, the name of an embedded model, or a (model,
            tokenizer) pair; or a `probing.Session`, which loads it once for several calls.
        data: a folder that `codesyntax build` wrote, a dataset id on the Hub, or a loaded
            `DatasetDict`.
        config: the labels, such as `python`, `java` or `python_exact`.
        split: the split that is scored, `test` or `validation`.
        edges: the most that are drawn of a relation and split, the same ones for all models.
        revision: a branch, tag or commit on the Hub, or the name of a checkpoint in a local folder.
        dtype: precision of the model: `float32`, by default, `bfloat16` or `float16`, as text or
            torch dtype.
        device: such as `cpu` or `cuda:1`; by default a CUDA GPU if there is one, and for a pair
            where it is.
        limit: only the first so many functions of each split; the result says so.
        sample: only so many functions of each split, drawn by `seed`, of controls by 0.
        max_length: the most sub-tokens of a function, special tokens included: by default 511, as
            in the paper. Longer ones are skipped and counted.
        control: what is probed instead, in both splits, such as `random-weights`; see
            `probing.probe`.
        seed: of `sample` and `control`.
        output: a folder for the result and its ledger, in which an interrupted run continues where
            it stopped.
        shard: such as `2/7`: run only the second of seven shards of the functions, and write it to
            `output` for `probing.merge`.

    Returns:
        The bits by relation and their mean, with the top-1 UAS of each choice in percent; None with
        a `shard`, and in other processes than the main one.

    Raises:
        ArgumentError: an argument of another kind, or one that contradicts another.
        UnknownName: a config, split or other name that does not exist.
        DatasetError: data that do not exist, are damaged, or lack what is asked for.
        ModelError: a model that cannot be loaded, or does not fit.
        LedgerError: nothing can be scored, or `output` has damaged or other files.

    Examples:
        >>> import probing
        >>> result = probing.inform("tiny-code-lm", "codesyntax", limit=32, edges=60)
        >>> 0 <= result.mean.words.bits
        True
    """
    session = Session.of(
        model,
        revision=revision,
        dtype=dtype,
        device=device,
        max_length=max_length,
    )
    read = read_functions(
        data, config, split, limit=limit, sample=sample, control=control, seed=seed
    )
    return run(Informing(session, read, edges), output, shard)


@dataclass
class Informing(Experiment[ReadFunction, InformationResult]):
    """Scores the dependents of drawn edges by words, positions and attention; arguments as of
    `inform`."""

    RESULT = InformationResult
    PART = 32

    edges: int

    @property
    def learned_from(self) -> Mapping[str, str | None]:
        return {"learned_on": self.validation.data.with_repositories}

    @cached_property
    def probing(self) -> Probing:
        """The probe of the same functions in the same session, which reads them."""
        return Probing(self.session, self.data)

    @cached_property
    def validation(self) -> Probing:
        """That of the split validation."""
        data = self.data
        functions = read_validation(data, limit=data.limit, control=data.control, seed=data.seed)
        return Probing(self.session, functions)

    @cached_property
    def _word_classes(self) -> WordClasses:
        return WordClasses(self.validation.data.each_row())

    def _surfaces(self, data: Functions, functions: Sequence[ReadFunction]) -> dict[int, Surface]:
        """Features of words and positions of functions, by their places in the split."""
        wanted = {function.index for function in functions}
        return {
            row["index"]: Surface.of(row, self._word_classes)
            for row in data.each_row()
            if row["index"] in wanted
        }

    def _learn(self) -> dict[str, Learned]:
        """What is learned of each relation."""
        validation = self.validation
        encoder = self.probing.encoder
        functions, *_ = drawn(validation.encoded.functions, self.edges)
        table = validation.data.table
        known = "repo" in table.column_names
        repositories = table["repo"].to_pylist() if known else [""] * len(table)
        title = f"learning from {encoder.name}"
        main = self.session.processes.main
        with progress(total=len(functions), desc=title, unit="function", main=main) as bar:
            surfaces = self._surfaces(validation.data, functions)
            return learn(encoder, functions, surfaces, repositories, bar, rival)

    def prepare(self) -> Prepared[ReadFunction]:
        from probing.models.selfcheck import examine_lengths

        data = self.data
        encoder = self.probing.encoder
        encoded, self.relations, skips = self.probing.encoded
        if not (encoded and self.validation.encoded.functions):
            raise LedgerError(
                f"no function of {data.name}/{data.config}, {data.split} or validation, can be scored; skipped: "
                f"{dict(skips + self.validation.encoded.skips)}"
            )
        lengths = sorted(encoded, key=lambda function: len(function.ids))
        examine_lengths(encoder, lengths[-1].ids, lengths[0].ids)
        processes = self.session.processes
        self.learned = processes.share(self._learn() if processes.main else None)
        functions, same, not_drawn = drawn(encoded, self.edges)
        known = np.array([name in self.learned for name in self.relations])
        of_learned = [known[function.edges.relation] for function in functions]
        not_learned = sum(int((~of_function).sum()) for of_function in of_learned)
        functions = with_edges(functions, of_learned)
        if not functions:
            raise LedgerError(
                f"no relation has both edges to learn from in validation and edges to score in {data.split}: "
                f"{not_learned} edges"
            )
        return self.prepared(
            encoder,
            functions,
            skips,
            "has an edge of a relation that is learned",
            settings={"begin": encoder.begin},
            run={"layers": encoder.layers, "heads": encoder.heads},
            left_out=dict(zip(NOT_ASKED, (same, not_drawn, not_learned))),
            learned={name: fitted.outcome for name, fitted in sorted(self.learned.items())},
        )

    @cached_property
    def _scorers(self) -> Scorers:
        """Of each relation of test its best attention head, and the weights of all heads, alone and
        beside words and positions."""
        encoder = self.probing.encoder
        nothing = next(iter(self.learned.values()))  # a relation that is not learned has no edges
        each = [self.learned.get(name, nothing) for name in self.relations]
        weights = np.stack([[fitted.alone, fitted.beside] for fitted in each]).astype(np.float32)
        return Scorers(
            weights.reshape(len(each), 2, encoder.layers, 2, encoder.heads),
            np.array([fitted.outcome.best for fitted in each]),
        )

    @cached_property
    def _surfaces_of_test(self) -> dict[int, Surface]:
        return self._surfaces(self.data, self.functions)

    def run(self, part: Sequence[ReadFunction], bar: tqdm) -> InformationLedger:
        asked = {function.index: _distinct_choices(function) for function in part}
        measured: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        distinct = {index: choices for index, (choices, _) in asked.items()}
        listener = partial(ScoredPairs, asked=distinct, answers=measured, scorers=self._scorers)
        listen(self.probing.encoder, part, bar, listener)
        cells = []
        for function in part:
            index = function.index
            cells += self._cells(function, *asked[index], *measured[index])
        return self.ledger(self.relations, cells)

    @cached_property
    def _all_edges(self) -> dict[int, EdgeTable]:
        """All edges of each function, drawn or not."""
        return {function.index: function.edges for function in self.probing.encoded.functions}

    def _cells(
        self,
        function: ReadFunction,
        distinct: np.ndarray,
        choice: np.ndarray,
        scores: np.ndarray,
        by_head: np.ndarray,
    ) -> list[tuple[float, ...]]:
        """The rows of a function, of whose `distinct` choices (M, 2) `choice` (E,) is that of each
        edge."""
        surface = self._surfaces_of_test[function.index]
        cells = []
        whole = self._all_edges[function.index]
        for number, (relation, row_number) in enumerate(distinct.tolist()):
            learned = self.learned[self.relations[relation]]
            head = int(function.heads[row_number])
            edges = np.flatnonzero(choice == number)
            first = function.edges.first[edges]
            same = (whole.relation == relation) & (whole.head == head) & (whole.first != head)
            dependents = len(np.unique(whole.first[same]))
            attention, weights = (
                np.delete(values[number], head, axis=-1) for values in (scores, by_head)
            )
            by_surface = choice_of(surface, head).scores(learned.surface)
            ranks, bits = _ranked_among(by_surface, attention, weights, first - (first > head))
            candidates = len(surface.word) - 1
            for edge, dependent, of_ranks, of_bits in zip(edges, first, ranks.T, bits.T):
                row = (
                    function.index,
                    edge,
                    relation,
                    head,
                    dependent,
                    dependents,
                    candidates,
                    *of_ranks,
                    *of_bits,
                )
                cells.append(row)
        return cells


def _distinct_choices(function: ReadFunction) -> tuple[np.ndarray, np.ndarray]:
    """The distinct choices of a function, relation and place among its head tokens (M, 2), and that
    of each edge."""
    reader_rows = np.searchsorted(function.heads, function.edges.head)
    distinct, choice = np.unique(
        np.stack([function.edges.relation, reader_rows], axis=1), axis=0, return_inverse=True
    )
    return distinct, choice.reshape(-1)


def _ranked_among(
    by_surface: np.ndarray, attention: np.ndarray, by_head: np.ndarray, chosen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The ranks (4, E) and bits (3, E) of dependents `chosen` (E,) among the P candidates of one
    head token.

    `by_surface`: scores (P,) of the surface baseline; `attention`: (2, P) by attention alone, and
    what it adds to them; `by_head`: weights (P,) of the best head.
    """
    # in the order of CHOICES
    scores = np.stack([by_surface, attention[0], by_surface + attention[1]])
    top = scores.max(axis=1, keepdims=True)
    nats = np.log(np.exp(scores - top).sum(axis=1, keepdims=True)) + top - scores[:, chosen]
    every = np.concatenate([scores.round(_ROUNDED), by_head[None]])
    target = every[:, chosen, None]
    row_numbers = np.arange(every.shape[1])
    before = (every[:, None] > target) | (
        (every[:, None] == target) & (row_numbers < chosen[:, None])
    )
    return before.sum(axis=-1), np.maximum(nats / np.log(2), 0).round(BITS_DECIMALS)
