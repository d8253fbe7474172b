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

    `kwargs` are those of `evaluate.Metric`, such as `num_process`, `process_id` and
    `experiment_id`.
    """
    # evaluate takes seconds to import
    from codesyntax_metric.codesyntax_metric import CodesyntaxMetric

    return CodesyntaxMetric(**kwargs)
