"""What a call takes, returns and raises stands in its docstring, with an example that runs: of every public name."""

from __future__ import annotations

import doctest
import inspect
import re
from pydoc import locate

import pytest

import codesyntax_dataset
import codesyntax_metric
import probing
from codesyntax_dataset import errors

PUBLIC = {
    f"{package.__name__}.{name}"
    for package in (
        probing,
        codesyntax_dataset,
        codesyntax_metric,
        codesyntax_metric.ast_similarity,
    )
    for name in package.__all__
} - {
    # no calls
    "probing.__version__",
    "codesyntax_dataset.__version__",
    "codesyntax_dataset.CONFIGS",
    "codesyntax_metric.ast_similarity",
}

METHODS = {"probing.ProbeResult.best_heads", "probing.ProbeResult.to_pandas"}

CALLS = sorted(PUBLIC | METHODS)

FUNCTIONS = [name for name in CALLS if name.rpartition(".")[2].islower()]

LONG = ["probing.carry", "probing.evaluate", "probing.inform", "probing.reproduce"]
"""Those whose examples learn, or build datasets, for seconds."""


def documented(name):
    """The function or class; the room `probing.report` is called in place of its function."""
    return locate({"probing.report": "probing.report.report.report"}.get(name, name))


def section(name, title):
    """The lines of a section of a docstring, and the names that have a clause there."""
    text = inspect.getdoc(documented(name)) + "\n"
    lines = re.findall(rf"^{title}:\n((?:(?:    .*)?\n)+)", text, re.MULTILINE)
    return lines, re.findall(r"^    ([*\w]+): \S", "".join(lines), re.MULTILINE)


@pytest.mark.parametrize("name", CALLS)
def test_each_parameter_is_explained(name):
    signature = inspect.signature(documented(name))
    parameters = [str(part).partition(":")[0] for part in signature.parameters.values()]
    explained = section(name, "Args")[1] or section(name, "Attributes")[1]
    assert explained == [part for part in parameters if part != "self"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_returned_is_said(name):
    assert section(name, "(?:Returns|Yields)")[0]


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in METHODS])
def test_what_is_raised_is_said(name):
    raised = {*section(name, "Raises")[1]}
    assert raised
    assert raised <= {*dir(errors), "ValueError"}


@pytest.fixture(scope="module")
def folder_of_examples(tmp_path_factory):
    """A folder with the dataset `codesyntax`, and with results of two models on 20 of its functions."""
    from codesyntax_dataset.build import build

    folder = tmp_path_factory.mktemp("examples")
    build("sample", ["python", "python_pairs"], folder / "codesyntax")
    models = ["tiny-code-lm", "tiny-code-mlm"]
    options = {"limit": 20, "direction": "dependent-to-head", "output": folder / "results"}
    splits = ["test", "validation"]
    for _ in probing.probe_models(models, folder / "codesyntax", ["python"], splits, **options):
        pass
    return folder


@pytest.mark.slow
@pytest.mark.usefixtures("unrendered")
@pytest.mark.parametrize(
    "name",
    [*sorted({*CALLS} - {*LONG}), *(pytest.param(name, marks=pytest.mark.long) for name in LONG)],
)
def test_example(name, folder_of_examples, monkeypatch):
    """It prints what it shows, where the dataset and the results are."""
    monkeypatch.chdir(folder_of_examples)
    [examples] = doctest.DocTestFinder(recurse=False).find(documented(name), name, globs={})
    runner = doctest.DocTestRunner()
    runner.run(examples)
    assert runner.tries
    assert not runner.failures
