"""Similarity of syntax trees as an `evaluate` metric (Velasco et al., ICSE-NIER 2024)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence, Sized
from typing import Any

import datasets
import evaluate
import tree_sitter

from .similarity import CodeSyntaxError, Similarity, compare, grammar, node_types, parser_version

_DESCRIPTION = """
How much of the syntax of a piece of code does a prediction keep? Both are parsed with tree-sitter, and the types of
their nodes are compared: as multisets (Jaccard, Sorensen-Dice) and as sequences in pre-order (normalised Levenshtein).
"""

_INPUTS = """
Arguments of `add` (one pair) and, in lists, of `add_batch` and `compute`:
    prediction, reference: code (str), or its parsed tree (tree_sitter.Tree).
Arguments of `compute`:
    language (str): of the code, any whose grammar is installed as `tree_sitter_<language>`; default "python".
    anonymous (bool): whether keywords, operators and punctuation are nodes, too; default True, as published.
    average (bool): whether means are returned (default), or the similarities of each pair.
Returns:
    {"jaccard": float, "sorensen_dice": float, "levenshtein": float, "pairs": int, "failed": int, "signature": str}; the
    similarities from 0 to 1: their means over the pairs that did not fail, None if all did; without `average`, lists
    with a number for each pair, None for those that failed. A pair fails if either text has no UTF-8 form (a lone
    surrogate), or more than 100,000 nodes, or cannot be repaired in reasonable time. Other code that does not parse
    does not fail: its tree has `ERROR` nodes.
Raises:
    ValueError if nothing was added, for anything but code or trees, and for a language without a grammar.
Example:
    >>> import codesyntax_metric
    >>> metric = codesyntax_metric.ast_similarity.load()
    >>> result = metric.compute(predictions=["f(x)"], references=["f(x, y)"], language="python")
    >>> result["jaccard"], result["pairs"], result["failed"]
    (0.8, 1, 0)
    >>> metric.compute(predictions=["f(x)", "a"], references=["f(x, y)", "a"], average=False)["levenshtein"]
    [0.8, 1.0]
"""

_CITATION = """
@inproceedings{velasco-etal-2024-syntactic,
    title = "Which Syntactic Capabilities Are Statistically Learned by Masked Language Models for Code?",
    author = "Velasco, Alejandro and Palacio, David N. and Rodriguez-Cardenas, Daniel and Poshyvanyk, Denys",
    booktitle = "ICSE-NIER: 46th International Conference on Software Engineering, New Ideas and Emerging Results",
    year = "2024",
    url = "https://arxiv.org/abs/2401.01512"
}
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _INPUTS)
class AstSimilarity(evaluate.Metric):
    """Keeps code as text and trees as the types of their nodes, both as JSON; `compute` parses and
    compares."""

    def _info(self) -> evaluate.MetricInfo:
        features = datasets.Features(
            {"predictions": datasets.Value("string"), "references": datasets.Value("string")}
        )
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=features,
            reference_urls=["https://arxiv.org/abs/2401.01512"],
        )

    _pairs = 0
    _languages: frozenset[tree_sitter.Language] = frozenset()  # of the trees that were added

    def add(
        self,
        *,
        prediction: Any = None,
        reference: Any = None,
        predictions: Any = None,
        references: Any = None,
    ) -> None:
        """Add one pair; `predictions`, `references`: the same, under the names by which
        `evaluate.combine` gives it."""
        prediction = prediction if predictions is None else predictions
        reference = reference if references is None else references
        self.add_batch(predictions=[prediction], references=[reference])

    def add_batch(
        self, *, predictions: Sequence[Any] | None = None, references: Sequence[Any] | None = None
    ) -> None:
        """Add several pairs; all of them or none."""
        sizes = [
            len(part)
            if isinstance(part, Sized) and not isinstance(part, str)
            else type(part).__name__
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
        super().add_batch(
            predictions=[*map(_to_json, predictions)], references=[*map(_to_json, references)]
        )
        self._pairs += sizes[0]
        trees = [
            code
            for codes in (predictions, references)
            for code in codes
            if isinstance(code, tree_sitter.Tree)
        ]
        self._languages |= {tree.language for tree in trees}

    def compute(
        self,
        *,
        predictions: Sequence[Any] | None = None,
        references: Sequence[Any] | None = None,
        language: str = "python",
        anonymous: bool = True,
        average: bool = True,
    ) -> dict[str, Any] | None:
        """The similarities of everything added by all processes; None on every process except the
        first."""
        parsed_as = grammar(language)
        if predictions is not None or references is not None:
            self.add_batch(predictions=predictions, references=references)
        if not self._languages <= {parsed_as}:
            raise CodeSyntaxError(
                f"a tree was parsed with another grammar than that of the language {language!r}"
            )
        if not self._pairs:
            if self.num_process == 1:
                raise CodeSyntaxError("nothing to compare: call add or add_batch before compute")
            # the others wait for what this process has
            super().add_batch(predictions=[], references=[])
        self._pairs, self._languages = 0, frozenset()
        return super().compute(language=language, anonymous=anonymous, average=average)

    def _compute(
        self,
        predictions: Iterable[str],
        references: Iterable[str],
        language: str,
        anonymous: bool,
        average: bool,
    ) -> dict[str, Any]:
        results = [_compared(*pair, language, anonymous) for pair in zip(predictions, references)]
        if not results:
            raise CodeSyntaxError("nothing to compare: no process added a pair")
        compared = [result for result in results if result is not None]
        scores: dict[str, Any] = {}
        for index, name in enumerate(Similarity._fields):
            if average:
                scores[name] = (
                    math.fsum(result[index] for result in compared) / len(compared)
                    if compared
                    else None
                )
            else:
                scores[name] = [None if result is None else result[index] for result in results]
        failed = len(results) - len(compared)
        signature = (
            f"ast|language:{language}|parser:{parser_version(language)}|nodes:{'all' if anonymous else 'named'}"
            f"|pairs:{len(results)}|failed:{failed}"
        )
        return {**scores, "pairs": len(results), "failed": failed, "signature": signature}


def _to_json(code: Any) -> str:
    """Code as a string; a tree as the types of all and of its named nodes, or as null if it has too
    many."""
    if isinstance(code, str):
        return json.dumps(code)
    if not isinstance(code, tree_sitter.Tree):
        raise CodeSyntaxError(
            f"got {type(code).__name__} to compare, expected code (str) or a tree_sitter.Tree"
        )
    try:
        return json.dumps({"all": node_types(code), "named": node_types(code, anonymous=False)})
    except CodeSyntaxError:
        return json.dumps(None)


def _compared(prediction: str, reference: str, language: str, anonymous: bool) -> Similarity | None:
    """The similarity of a pair as from `_to_json`, or None if one of the two cannot be compared."""
    sequences = []
    for code in map(json.loads, (prediction, reference)):
        if isinstance(code, str):
            try:
                sequences.append(node_types(code, language, anonymous=anonymous))
            except CodeSyntaxError:
                return None
        elif code is None:
            return None
        else:
            sequences.append(code["all" if anonymous else "named"])
    return compare(*sequences)
