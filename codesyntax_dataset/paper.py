"""The numbers that Shen et al. (2022) published, for reference beside computed ones.

They are percentages on the published dataset, rounded to one decimal, made with the authors'
software; none of them is computed here. The paper covers the configs `python` and `java`, the rules
`first` and `any`, and, with less detail, `english` and `german`; for other configs and rules the
functions below return nothing.
"""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import NamedTuple

_MODELS = {
    "CuBERT": "*cubert*",
    "CodeBERT": "codebert-base",
    "GraphCodeBERT": "graphcodebert-base",
    "RoBERTa": "roberta-base",
    "RoBERTa-base": "roberta-base",
    "BERT-large": "bert-large-cased",
    "Multilingual BERT": "bert-base-multilingual-cased",
    "XLM-RoBERTa-base": "xlm-roberta-base",
}
"""The names of models in the paper's tables, and patterns of those under which they are found
today."""


class Comparison(NamedTuple):
    """CuBERT beside the best single offset on one relation, top-1 UAS in percent."""

    cubert: float
    offset_score: float
    offset: int  # in tokens, from the head to the token that it predicts


class Case(NamedTuple):
    """What a figure shows of one function: edges of a relation, and the `head` of CuBERT that finds
    them, empty for Figure 1, which shows labels over one piece of code."""

    figure: int
    config: str
    relation: str
    head: str


def source() -> str:
    """The citation to show beside the paper's numbers."""
    return _published()["source"]


def scores(config: str, rule: str) -> dict[str, dict[str, float]]:
    """Top-k UAS of models and baselines: model -> k, "1" to "20" -> percent, the mean over
    relations.

    Rule `first` is Tables 3 and 4, rule `any` is Table 5; for GraphCodeBERT the paper gives only k
    = 1 on Python, in its text.

    >>> scores("python", "first")["Combined"]["1"]
    49.4
    """
    return _published()["scores"].get(config, {}).get(rule, {})


def relation_scores(config: str, rule: str) -> dict[str, Comparison]:
    """CuBERT and the best offset by relation, in the order of the paper: largest difference first.

    Tables 9 (Python, `first`), 10 (Python, `any`), 11 (Java, `first`) and 12 (Java, `any`).
    """
    rules = _published()["relations"].get(config, {})
    return {name: Comparison(**row) for name, row in rules.get(rule, {}).items()}


def edges(config: str) -> dict[str, int]:
    """Edges of each relation in the published dataset (Table 8)."""
    return _published()["edges"].get(config, {})


def functions(config: str) -> int | None:
    """Functions or sentences in the published dataset (sections 3 and 4), or None."""
    return _published()["functions"].get(config)


def cases() -> list[Case]:
    """Figures 1, 5 and 9 to 15; Figure 5 shows two."""
    return [Case(**case) for case in _published()["cases"]]


def name_of(model: str, config: str) -> str | None:
    """The paper's name of a model that it probed on `config`, or None.

    It is told by the last part of the model's Hub id, or by the name of its folder.

    >>> name_of("microsoft/codebert-base", "python"), name_of("models/cubert-java", "java"), name_of("gpt2", "java")
    ('CodeBERT', 'CuBERT', None)
    """
    last = model.rstrip("/").rpartition("/")[2].lower()
    return next(
        (name for name in scores(config, "first") if fnmatchcase(last, _MODELS.get(name, ""))), None
    )


@cache
def _published() -> dict:
    return json.loads(Path(__file__).with_name("paper.json").read_text(encoding="utf-8"))
