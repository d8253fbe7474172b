"""The similarity of two pieces of code by their syntax trees: an `evaluate` metric of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codesyntax_metric.ast_similarity.ast_similarity import AstSimilarity

__all__ = ["load"]


def load(**kwargs: Any) -> AstSimilarity:
    """The metric from the installed package, as from
    `evaluate.load("codesyntax_metric/ast_similarity")`.

    Args:
        **kwargs: those of `evaluate.Metric`, such as `num_process`, `process_id` and
            `experiment_id`.

    Returns:
        Similarities of syntax trees, from 0 to 1; `add`, `add_batch` and `compute` say what they
        take.

    Raises:
        ValueError: what `evaluate` refuses, such as a `process_id` that is not below `num_process`.

    Examples:
        >>> import codesyntax_metric
        >>> metric = codesyntax_metric.ast_similarity.load()
        >>> metric.compute(predictions=["f(x)"], references=["f(x, y)"])["jaccard"]
        0.8
    """
    # evaluate takes seconds to import
    from codesyntax_metric.ast_similarity.ast_similarity import AstSimilarity

    return AstSimilarity(**kwargs)
