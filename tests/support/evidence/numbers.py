"""The numbers of the evidence of a model as nested dictionaries, for tests that read other forms of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from codesyntax_dataset.protocol import PUBLISHED
from codesyntax_metric.topk_uas import RULES
from probing.evidence.gather import PUBLISHED_FIRST, Evidence
from probing.evidence.protocols import MEASURES, SAME_RELATIONS, side_by_side
from probing.evidence.summary import each_bounded, means, summary
from probing.stats.intervals import Estimate


def numbers_of(evidence: Evidence) -> dict[str, Any]:
    """Scores and bounds by protocol of the model and of each baseline; differences by rule and k."""
    same = side_by_side(evidence.hits)[SAME_RELATIONS]
    published = evidence.differences.get(PUBLISHED)
    compared = evidence.differences.get(SAME_RELATIONS, published)
    return {
        "protocols": {
            protocol: summary(evidence.hits[protocol]).model_dump() for protocol in PUBLISHED_FIRST
        },
        "baselines": {
            protocol: {kind: summed.model_dump() for kind, summed in of_kinds.items()}
            for protocol, of_kinds in evidence.splits.baselines.summaries.items()
        },
        "differences": {
            protocol: differences(comparison.mean)
            for protocol, comparison in evidence.comparisons.items()
        },
        "same_relations": {
            "scores": means(same.hits.mean(same.system)),
            "baselines": evidence.splits.baselines.same_relations,
            "differences": {} if compared is None else differences(compared),
        },
    }


def differences(tested: Estimate) -> dict[str, dict[str, Any]]:
    """Rule -> k -> difference with its bounds and p, without the k that have none."""
    by_rule: dict[str, dict[str, Any]] = {rule: {} for rule in RULES}
    for number, (rule, k) in enumerate(MEASURES):
        cell = tested.at(number)
        if not np.isnan(cell.value):
            by_rule[rule][str(k)] = {"difference": each_bounded(cell), "p": cell.p}
    return by_rule
