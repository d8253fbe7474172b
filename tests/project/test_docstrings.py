"""What a call takes, returns and raises stands in its docstring, with an example that runs: of every public name."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re

import pytest

from codesyntax_dataset import errors

PACKAGES = (
    "probing",
    "codesyntax_dataset",
    "codesyntax_metric",
    "codesyntax_metric.ast_similarity",
)

NOT_CALLED = (
    "probing.__version__",
    "codesyntax_dataset.__version__",
    "codesyntax_dataset.CONFIGS",
    "codesyntax_metric.ast_similarity",  # a package, whose own names are here
)

PUBLIC = [
    name
    for package in PACKAGES
    for member in importlib.import_module(package).__all__
    if (name := f"{package}.{member}") not in NOT_CALLED
]

METHODS = ("probing.ProbeResult.best_heads", "probing.ProbeResult.to_pandas")

LONG = ("probing.carry", "probing.evaluate", "probing.inform", "probing.reproduce")
"""Those whose examples learn, or build datasets, for seconds."""


def called(name):
    """The function or class of this name; the room `probing.report` is called in place of its function."""
    if name == "probing.report":
        name = "probing.report.report.report"
    package, _, member = name.rpartition(".")
    if package.endswith("ProbeResult"):
        return getattr(called(package), member)
    return getattr(importlib.import_module(package), member)


def functions(names):
    return [name for name in names if name.rpartition(".")[2][0].islower()]


def section(documented, title):
    """The lines of a section, without its indentation."""
    text = inspect.getdoc(documented) + "\n"
    match = re.search(rf"^{title}:\n((?:(?:    .*)?\n)+)", text, re.MULTILINE)
    return inspect.cleandoc(match[1]).split("\n") if match else []


def explained(documented, *titles):
    """The names that have a clause in these sections."""
    lines = [line for title in titles for line in section(documented, title)]
    return [match[1] for line in lines if (match := re.match(r"([*\w]+): \S", line))]


def parameters(documented):
    """The names of the parameters, as docstrings have them."""
    of_signature = inspect.signature(documented).parameters.values()
    return [
        "**" * (parameter.kind is parameter.VAR_KEYWORD) + parameter.name
        for parameter in of_signature
        if parameter.name != "self"
    ]


@pytest.mark.parametrize("name", [*PUBLIC, *METHODS])
def test_each_parameter_is_explained(name):
    documented = called(name)
    clauses = explained(documented, "Args", "Attributes")
    assert set(parameters(documented)) <= {*clauses}


@pytest.mark.parametrize("name", functions([*PUBLIC, *METHODS]))
def test_no_parameter_is_explained_that_there_is_not(name):
    documented = called(name)
    assert explained(documented, "Args") == parameters(documented)


@pytest.mark.parametrize("name", functions([*PUBLIC, *METHODS]))
def test_what_is_returned_is_said(name):
    documented = called(name)
    assert section(documented, "Returns") or section(documented, "Yields")


@pytest.mark.parametrize("name", functions(PUBLIC))
def test_what_is_raised_is_said(name):
    raised = explained(called(name), "Raises")
    assert raised
    assert {error for error in raised if not hasattr(errors, error)} <= {"ValueError"}


@pytest.mark.parametrize("name", [*PUBLIC, *METHODS])
def test_nothing_is_to_be_looked_up_for_a_parameter(name):
    assert "as of `" not in inspect.getdoc(called(name))


@pytest.mark.parametrize("name", [*PUBLIC, *METHODS])
def test_there_is_an_example(name):
    assert any(line.startswith(">>> ") for line in section(called(name), "Examples"))


@pytest.fixture(scope="module")
def folder_of_examples(tmp_path_factory):
    """A folder with the dataset `codesyntax`, and with results of two models on 20 of its functions."""
    from codesyntax_dataset.build import build
    from probing import probe

    folder = tmp_path_factory.mktemp("examples")
    build("sample", ["python", "python_pairs"], folder / "codesyntax")
    for model in ("tiny-code-lm", "tiny-code-mlm"):
        for split in ("test", "validation"):
            probe(
                model,
                folder / "codesyntax",
                split=split,
                limit=20,
                direction="dependent-to-head",
                output=folder / "results",
            )
    return folder


@pytest.mark.slow
@pytest.mark.usefixtures("unrendered")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long) if name in LONG else name
        for name in [*PUBLIC, *METHODS]
    ],
)
def test_example(name, folder_of_examples, monkeypatch):
    """It prints what it shows, where the dataset and the results are."""
    monkeypatch.chdir(folder_of_examples)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    examples = doctest.DocTestParser().get_doctest(inspect.getdoc(called(name)), {}, name, name, 0)
    runner.run(examples)
    assert runner.tries
    assert runner.failures == 0
