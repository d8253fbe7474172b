"""The similarity of two pieces of code by their syntax trees: an `evaluate` metric of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codesyntax_metric.ast_similarity.ast_similarity import AstSimilarity

__all__ = ["load"]


def load(**kwargs: Any) -> AstSimilarity:
    """The metric from the installed package, as from
    `evaluate.load("codesyntax_metric/ast_similarity")`.

    `kwargs` are those of `evaluate.Metric`, such as `num_process`, `process_id` and
    `experiment_id`.
    """
    # evaluate takes seconds to import
    from codesyntax_metric.ast_similarity.ast_similarity import AstSimilarity

    return AstSimilarity(**kwargs)
