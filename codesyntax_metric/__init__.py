"""CodeSyntax, the metric: top-k UAS of attention heads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codesyntax_metric.codesyntax_metric import CodesyntaxMetric

__all__ = ["load"]


def load(**kwargs: Any) -> CodesyntaxMetric:
    """The metric from the installed package: what `evaluate.load("codesyntax_metric")` gives, without a copied script.

    `kwargs` are those of `evaluate.Metric`, such as `num_process`, `process_id` and `experiment_id`.
    """
    from codesyntax_metric.codesyntax_metric import CodesyntaxMetric  # imports evaluate: seconds

    return CodesyntaxMetric(**kwargs)
