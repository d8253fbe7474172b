"""Both metrics as modules of `evaluate`: their documentation runs, and their cards are what a Space needs."""

from __future__ import annotations

import doctest
import inspect
import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
import yaml
from conftest import ROOT

from codesyntax_metric import codesyntax_metric, load, topk_uas
from codesyntax_metric.ast_similarity import ast_similarity, similarity
from codesyntax_metric.ast_similarity import load as load_similarity

pytestmark = pytest.mark.usefixtures("evaluate")


class Metric(NamedTuple):
    """`script`: what `evaluate` loads; `beside`: the module beside it; `examples`: blocks of its card in Python;
    `pair`: a prediction and a reference; `options` of `compute` that change its result."""

    folder: str
    script: ModuleType
    beside: ModuleType
    load: Callable[[], Any]
    examples: int
    pair: tuple[Any, Any]
    options: dict[str, Any]


ATTENTION = np.eye(5)[None, None] + 0.5
EDGES = [("If:if->test", 0, 1, 3), ("Slice:lower->upper", 3, 1, 1)]

METRICS = [
    Metric(
        *("codesyntax_metric", codesyntax_metric, topk_uas, load),
        *(4, (ATTENTION, EDGES), {"hard": {"If:if->test": [1]}, "k": [1]}),
    ),
    Metric(
        *("codesyntax_metric/ast_similarity", ast_similarity, similarity, load_similarity),
        *(3, ("f(x)", "f(x, y)"), {"anonymous": False}),
    ),
]


@pytest.fixture(params=METRICS, ids=lambda metric: metric.folder)
def metric(request):
    return request.param


@pytest.fixture
def card(metric):
    """The header of its card, and the text."""
    _, header, text = (ROOT / metric.folder / "README.md").read_text("utf-8").split("---\n", 2)
    return yaml.safe_load(header), text


def run_doctest(text):
    result = doctest.DocTestRunner(verbose=False).run(
        doctest.DocTestParser().get_doctest(text, {}, "examples", "examples", 0)
    )
    assert result.attempted > 0
    assert result.failed == 0


def test_the_common_tests_of_evaluate_hold(evaluate, metric, monkeypatch):
    """What tests/test_metric_common.py of evaluate 0.4 asks of each of its metrics."""
    monkeypatch.setattr(doctest, "ELLIPSIS_MARKER", "[...]")
    loaded = evaluate.load(str(ROOT / metric.folder))
    parameters = inspect.signature(loaded._compute).parameters.values()
    assert not any(parameter.kind == inspect.Parameter.VAR_KEYWORD for parameter in parameters)
    module = sys.modules[type(loaded).__module__]
    assert "evaluate_modules" in module.__name__  # the copied script, not the installed one
    result = doctest.testmod(module, raise_on_error=True)
    assert result.attempted > 1
    assert result.failed == 0
    assert metric.script._DESCRIPTION in type(loaded).__doc__
    assert loaded.inputs_description == metric.script._INPUTS


def test_every_call_of_evaluate_gives_the_same(evaluate, metric):
    """Alone and combined, under the names of one function and of several, as the base class takes both."""
    prediction, reference = metric.pair
    several = {"predictions": [prediction], "references": [reference]}
    expected = metric.load().compute(**several)
    others = metric.load().compute(**several, **metric.options)
    assert expected != others
    for both in (metric.load(), evaluate.combine([metric.load()])):
        both.add(prediction=prediction, reference=reference)
        assert both.compute() == expected
        both.add(predictions=prediction, references=reference)
        assert both.compute() == expected
        both.add_batch(**several)
        assert both.compute() == expected
        assert both.compute(**several, **metric.options) == others
    named = evaluate.combine({"one": metric.load(), "other": metric.load()}, force_prefix=True)
    named.add(prediction=prediction, reference=reference)
    assert named.compute() == {
        f"{name}_{key}": expected[key] for name in ("one", "other") for key in expected
    }


def test_examples_run(metric, card, monkeypatch):
    """Those of its inputs, of the module beside it, and of its card."""
    run_doctest(metric.script._INPUTS)
    result = doctest.testmod(metric.beside)
    assert result.attempted > 0
    assert result.failed == 0
    monkeypatch.chdir(ROOT)  # evaluate.load("codesyntax_metric")
    blocks = re.findall(r"```python\n(.*?)```", card[1], re.DOTALL)
    assert len(blocks) == metric.examples
    assert all(">>>" in block for block in blocks)
    run_doctest("\n".join(blocks))


def test_the_card_is_what_a_space_needs(metric, card):
    header, text = card
    assert {"evaluate", "metric"} <= set(header["tags"])
    assert header["sdk"] == "gradio"
    assert (ROOT / metric.folder / header["app_file"]).is_file()
    assert metric.script._CITATION.strip() in text
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    needed = (ROOT / metric.folder / "requirements.txt").read_text().split()
    assert needed
    assert all(f'"{requirement}"' in project for requirement in needed)


def test_the_largest_tree_is_told():
    largest = f"{similarity.MOST_NODES:,} nodes"
    card = (ROOT / "codesyntax_metric/ast_similarity/README.md").read_text("utf-8")
    assert largest in card
    assert largest in ast_similarity._INPUTS
