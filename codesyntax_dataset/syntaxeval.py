"""The numbers that Velasco et al. (2024) published, for reference beside computed ones.

They are similarities of syntax trees from 0 to 1, made with the authors' software on 7,501 Python
functions; none of them is computed here. The causal effects are those of the study's own estimator
(`probing.paper.masking_study.published_effect`).
"""

from __future__ import annotations

from typing import NamedTuple

SOURCE = (
    "Velasco et al., Which Syntactic Capabilities Are Statistically Learned by Masked Language Models for Code?, "
    "ICSE-NIER 2024 (arXiv:2401.01512)"
)
"""The citation to show beside the study's numbers."""

CONFIG = "python"
"""The config of the language of the study's functions."""

MODELS = ("huggingface/CodeBERTa-small-v1", "microsoft/codebert-base-mlm")
"""M1 and M2."""

SIMILARITIES = ("jaccard", "levenshtein", "sorensen_dice")


class Performance(NamedTuple):
    """Mean and standard deviation over all functions and node types, in each arm."""

    t1: tuple[float, float]
    t0: tuple[float, float]


_PERFORMANCE = {  # of M1 and M2
    "jaccard": (Performance((0.78, 0.21), (0.88, 0.17)), Performance((0.76, 0.21), (0.84, 0.16))),
    "levenshtein": (
        Performance((0.78, 0.22), (0.87, 0.16)),
        Performance((0.76, 0.21), (0.83, 0.17)),
    ),
    "sorensen_dice": (
        Performance((0.85, 0.17), (0.92, 0.10)),
        Performance((0.84, 0.17), (0.89, 0.12)),
    ),
}

_EFFECTS = {  # of M1 and M2 by each of SIMILARITIES
    "boolean_operator": (-0.083, -0.150, -0.069, -0.136, -0.048, -0.095),
    "comparison_operator": (-0.186, -0.027, -0.179, -0.018, -0.126, -0.015),
    "for_in_clause": (-0.059, -0.053, -0.050, -0.045, -0.034, -0.029),
    "for_statement": (-0.269, -0.101, -0.193, -0.041, -0.243, -0.083),
    "identifier": (0.016, -0.075, 0.001, -0.073, 0.010, -0.039),
    "if_clause": (-0.070, -0.040, -0.058, -0.036, -0.037, -0.022),
    "if_statement": (-0.163, -0.118, -0.140, -0.093, -0.116, -0.095),
    "parameters": (-0.140, -0.048, -0.127, -0.046, -0.087, -0.029),
    "return_statement": (-0.144, -0.121, -0.118, -0.113, -0.087, -0.075),
    "string": (-0.156, -0.168, -0.102, -0.145, -0.118, -0.116),
    "while_statement": (-0.200, -0.096, -0.139, -0.009, -0.186, -0.077),
}


def performance(similarity: str) -> dict[str, Performance]:
    """Each of MODELS -> its performance by one of SIMILARITIES.

    >>> performance("jaccard")["microsoft/codebert-base-mlm"].t1
    (0.76, 0.21)
    """
    return dict(zip(MODELS, _PERFORMANCE[similarity]))


def effects(similarity: str) -> dict[str, dict[str, float]]:
    """Node type -> each of MODELS -> its causal effect by one of SIMILARITIES.

    >>> effects("jaccard")["string"]["microsoft/codebert-base-mlm"]
    -0.168
    """
    first = 2 * SIMILARITIES.index(similarity)
    return {
        name: dict(zip(MODELS, numbers[first : first + 2])) for name, numbers in _EFFECTS.items()
    }
