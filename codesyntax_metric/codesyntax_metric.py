"""CodeSyntax as an `evaluate` metric: top-k UAS of attention heads (Shen et al., Findings of EMNLP
2022, section 4)."""

from __future__ import annotations

import hashlib
import json
import operator
from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import Any

import datasets
import evaluate
import numpy as np

from .topk_uas import (
    RULES,
    SCORING_VERSION,
    WORST_RANK,
    CodeSyntaxError,
    RankCounts,
    check_k,
    check_rule,
    edge_columns,
    rank_attention,
    score,
)

_DESCRIPTION = """
Which syntactic relations (`if` -> its body, call -> arguments, target -> value) have a model's attention heads learned?
For each relation, top-k UAS is the share of edges whose dependent is among the k tokens to which the head token attends
most, for the best attention head; the metric's score at k is the mean over relations, in percent.
"""

_INPUTS = """
Arguments of `add` (one function) and, in lists, of `add_batch`:
    prediction: word-level attention of one function, (layers, heads, tokens, tokens), rows attend to columns; numpy,
        torch or lists. It is reduced to counts at once and not kept. Or its compact form: a mapping
        {"first": r, "any": r, "last": r} of the rank of each edge's dependent, (edges, layers, heads), 0 = best,
        255 = 255 or worse or never predicted.
    reference: the function's edges, (relation, head, first, last) as tuples or as mappings with these keys (the column
        `relations` of the dataset). Token indices count from 0; `last` is inclusive.
    hard: relation -> offsets from head to first token of the dependent: edges at these are not counted. The same for
        all functions; by default every edge counts.
Arguments of `compute`:
    predictions, references, hard: as of `add_batch`, to add some functions first.
    k (int, or list of int): within how many predictions the dependent must be; default [1, 3, 10, 20], up to 255.
    rule (str): which token of the dependent counts: "first" (default), "any" or "last".
Returns:
    {"scores": {k: mean over relations in percent, or None without any}, "relations": {relation: {"edges": int,
    "in_mean": bool, k: {"score": percent, "layer": int, "head": int}}}, "functions": int, "signature": str}; k as a
    string, layers and heads counted from 0.
Raises:
    ValueError if shapes, weights, ranks or edges are invalid, or nothing was added.
Example:
    >>> import numpy as np
    >>> import codesyntax_metric
    >>> metric = codesyntax_metric.load()
    >>> attention = np.zeros((1, 2, 4, 4))
    >>> attention[0, 0, 1] = [0.1, 0.0, 0.2, 0.7]  # head 0: token 1 attends most to token 3, then to token 2
    >>> attention[0, 1, 1] = [0.1, 0.0, 0.7, 0.2]
    >>> metric.add(prediction=attention, reference=[("If:if->test", 1, 2, 3)])
    >>> metric.compute(k=[1], rule="first")["relations"]["If:if->test"]["1"]
    {'score': 100.0, 'layer': 0, 'head': 1}
"""

_CITATION = """
@inproceedings{shen-etal-2022-benchmarking,
    title = "Benchmarking Language Models for Code Syntax Understanding",
    author = "Shen, Da and Chen, Xinyun and Wang, Chenguang and Sen, Koushik and Song, Dawn",
    booktitle = "Findings of the Association for Computational Linguistics: EMNLP 2022",
    year = "2022",
    url = "https://arxiv.org/abs/2210.14473"
}
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _INPUTS)
class CodesyntaxMetric(evaluate.Metric):
    """Counts ranks as functions are added; only the table of counts passes through Arrow, once per
    process."""

    def _info(self) -> evaluate.MetricInfo:
        # What processes exchange, not what users add: a JSON header and the counts, see `_to_rows`.
        features = datasets.Features(
            {"predictions": datasets.Value("binary"), "references": datasets.Value("string")}
        )
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=features,
            reference_urls=["https://arxiv.org/abs/2210.14473"],
        )

    _counts: RankCounts | None = None
    _hard: str = ""  # a digest of the offsets at which edges do not count; empty if all do

    def add(
        self,
        *,
        prediction: Any = None,
        reference: Iterable[Any] | None = None,
        predictions: Any = None,
        references: Iterable[Any] | None = None,
        hard: Mapping[str, Iterable[int]] | None = None,
    ) -> None:
        """Add one function: its attention, or the ranks of its edges, and its edges.

        `predictions`, `references`: the same, under the names by which `evaluate.combine` gives
        them.
        """
        prediction = prediction if predictions is None else predictions
        reference = reference if references is None else references
        self.add_batch(predictions=[prediction], references=[reference], hard=hard)

    def add_batch(
        self,
        *,
        predictions: Sequence[Any] | None = None,
        references: Sequence[Any] | None = None,
        hard: Mapping[str, Iterable[int]] | None = None,
    ) -> None:
        """Add several functions: a list of attentions, or of ranks, and a list of their edges; all
        of them or none."""
        offsets = _offsets(hard)
        digest = (
            hashlib.sha256(json.dumps(offsets, sort_keys=True).encode()).hexdigest()[:12]
            if offsets
            else ""
        )
        if self._counts is not None and digest != self._hard:
            raise CodeSyntaxError(
                "these functions use other offsets in `hard` than the functions added before"
            )
        sizes = [
            len(part) if isinstance(part, Sized) else type(part).__name__
            for part in (predictions, references)
        ]
        if (
            predictions is None
            or references is None
            or sizes[0] != sizes[1]
            or not isinstance(sizes[0], int)
        ):
            raise CodeSyntaxError(
                f"add_batch needs as many predictions as references, got {sizes[0]} and {sizes[1]}"
            )
        batch = None
        for prediction, reference in zip(predictions, references):
            relations, ranks = _ranked(prediction, reference, offsets)
            batch = batch or RankCounts(*ranks.shape[2:])
            batch.add(relations, ranks)
            batch.functions += 1
        if self._counts is None:
            self._counts, self._hard = batch, digest
        elif batch is not None:
            self._counts.merge(batch)

    def compute(
        self,
        *,
        predictions: Sequence[Any] | None = None,
        references: Sequence[Any] | None = None,
        hard: Mapping[str, Iterable[int]] | None = None,
        k: int | Iterable[int] = (1, 3, 10, 20),
        rule: str = "first",
    ) -> dict[str, Any] | None:
        """The scores of everything added by all processes; None on every process except the
        first."""
        k = check_k(k)
        check_rule(rule)
        if predictions is not None or references is not None:
            self.add_batch(predictions=predictions, references=references, hard=hard)
        elif hard is not None:
            raise CodeSyntaxError(
                "`hard` selects edges when they are added: give it to add or add_batch"
            )
        if self._counts is None and self.num_process == 1:
            raise CodeSyntaxError("nothing to score: call add or add_batch before compute")
        super().add_batch(**_to_rows(self._counts, self._hard))
        self._counts, self._hard = None, ""
        return super().compute(k=k, rule=rule)

    def _compute(
        self, predictions: Iterable[bytes], references: Iterable[str], k: list[int], rule: str
    ) -> dict[str, Any]:
        counts, hard = _from_rows(predictions, references)
        if counts is None:
            raise CodeSyntaxError("nothing to score: no process added a function")
        result = score(counts, k, rule)
        edges = sum(entry["edges"] for entry in result["relations"].values())
        signature = (
            f"uas|rule:{rule}|k:{','.join(result['scores'])}|heads:{counts.layers}x{counts.heads}"
            f"|functions:{counts.functions}|edges:{edges}{f'|hard:{hard}' if hard else ''}|scoring:{SCORING_VERSION}"
        )
        return {**result, "functions": counts.functions, "signature": signature}


def _offsets(hard: Any) -> dict[str, list[int]]:
    """Offsets by relation, in order; none if every edge counts."""
    if hard is None:
        return {}
    try:
        return {
            str(name): sorted({*map(operator.index, offsets)}) for name, offsets in hard.items()
        }
    except (AttributeError, TypeError):
        raise CodeSyntaxError(
            f"hard is {hard!r}, expected relation -> offsets, such as {{'If:if->test': [1]}}: whole numbers from head "
            "to first token of the dependent"
        ) from None


def _ranked(
    prediction: Any, reference: Any, offsets: Mapping[str, list[int]]
) -> tuple[list[str], np.ndarray]:
    """The relations and ranks of one function's edges that are not at these offsets."""
    if prediction is None or not isinstance(reference, Iterable):
        raise CodeSyntaxError(
            "a function needs a prediction (attention or ranks) and a reference (a list of edges), got "
            f"{type(prediction).__name__} and {type(reference).__name__}"
        )
    edges = list(reference)
    ranks = (
        _ranks(prediction) if isinstance(prediction, Mapping) else rank_attention(prediction, edges)
    )
    relations, heads, firsts, _ = edge_columns(edges)
    if not offsets or ranks.shape[1] != len(edges):  # the latter is refused when they are counted
        return relations, ranks
    counted = [
        first - head not in offsets.get(name, ())
        for name, head, first in zip(relations, heads, firsts)
    ]
    return [name for name, keep in zip(relations, counted) if keep], ranks[
        :, np.array(counted, bool)
    ]


def _ranks(prediction: Mapping[str, Any]) -> np.ndarray:
    """The compact form as uint8 (rules, edges, layers, heads)."""
    if set(prediction) != set(RULES):
        raise CodeSyntaxError(
            f"ranks have the keys {list(prediction)}, expected {', '.join(RULES)}"
        )
    try:
        ranks = np.stack([np.asarray(prediction[rule]) for rule in RULES])
    except (TypeError, ValueError, RuntimeError) as error:
        raise CodeSyntaxError(
            f"ranks are not arrays of one shape, (edges, layers, heads): {error}"
        ) from None
    if ranks.ndim != 4 or 0 in ranks.shape[2:] or ranks.dtype.kind not in "iu":
        raise CodeSyntaxError(
            f"ranks have the shape {ranks.shape[1:]} and the type {ranks.dtype}, expected (edges, layers, heads) and "
            "whole numbers for each rule"
        )
    if ((ranks < 0) | (ranks > WORST_RANK)).any():
        raise CodeSyntaxError(
            f"ranks go from {ranks.min()} to {ranks.max()}, expected 0 to {WORST_RANK}"
        )
    return ranks.astype(np.uint8)


def _to_rows(counts: RankCounts | None, hard: str) -> dict[str, list[Any]]:
    """One process's counts as rows for Arrow: a header and, per relation, the bytes of its
    counts."""
    if counts is None:
        return {"predictions": [b""], "references": ["null"]}
    header = {
        "layers": counts.layers,
        "heads": counts.heads,
        "functions": counts.functions,
        "hard": hard,
    }
    return {
        "predictions": [b"", *(table.astype("<i8").tobytes() for table in counts.counts.values())],
        "references": [json.dumps(header), *(json.dumps(relation) for relation in counts.counts)],
    }


def _from_rows(
    predictions: Iterable[bytes], references: Iterable[str]
) -> tuple[RankCounts | None, str]:
    """The inverse of `_to_rows`, over the rows of all processes."""
    total: RankCounts | None = None
    hard = ""
    part: RankCounts | None = None
    for table, reference in zip(predictions, references):
        item = json.loads(reference)
        if isinstance(item, str):
            assert part and total  # a header comes first
            shape = (len(RULES), part.layers, part.heads, -1)
            part.counts = {item: np.frombuffer(table, "<i8").reshape(shape)}
            part.functions = 0
            total.merge(part)
        elif item is not None:
            part = RankCounts(item["layers"], item["heads"])
            part.functions = item["functions"]
            if total is not None and item["hard"] != hard:
                raise CodeSyntaxError(
                    "the processes added functions with different offsets in `hard`"
                )
            total, hard = total or RankCounts(item["layers"], item["heads"]), item["hard"]
            total.merge(part)
    return total, hard
