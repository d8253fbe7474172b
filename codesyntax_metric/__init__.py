"""The metrics: top-k UAS of attention heads (`load`), and the similarity of syntax trees
(`ast_similarity.load`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codesyntax_metric import ast_similarity

if TYPE_CHECKING:
    from codesyntax_metric.codesyntax_metric import CodesyntaxMetric

__all__ = ["ast_similarity", "load"]


def load(**kwargs: Any) -> CodesyntaxMetric:
    """The metric from the installed package, as from `evaluate.load("codesyntax_metric")`, without
    copying its script.

    Args:
        **kwargs: those of `evaluate.Metric`, such as `num_process`, `process_id` and
            `experiment_id`.

    Returns:
        Top-k UAS of attention heads, in percent; `add`, `add_batch` and `compute` say what they
        take.

    Raises:
        ValueError: what `evaluate` refuses, such as a `process_id` that is not below `num_process`.

    Examples:
        >>> import codesyntax_metric
        >>> metric = codesyntax_metric.load()
        >>> attention = [[[[0.0, 1.0], [0.5, 0.5]]]]  # (layers, heads, tokens, tokens)
        >>> metric.add(prediction=attention, reference=[("Call:func->args", 0, 1, 1)])
        >>> metric.compute(k=[1])["scores"]
        {'1': 100.0}
    """
    # evaluate takes seconds to import
    from codesyntax_metric.codesyntax_metric import CodesyntaxMetric

    return CodesyntaxMetric(**kwargs)
