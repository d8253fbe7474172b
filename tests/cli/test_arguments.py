"""Every public function tried with arguments of a wrong type or size: our errors, in a line that says what was expected."""

from __future__ import annotations

import inspect
import time

import datasets
import pytest
import torch
from huggingface_hub import constants
from transformers import AutoModel, AutoTokenizer

import codesyntax_dataset
import codesyntax_metric
import probing
from codesyntax_dataset import annotate, tokenize
from codesyntax_dataset.build import build
from codesyntax_dataset.errors import CodeSyntaxError, DatasetError, ModelError, SourceError
from codesyntax_dataset.network import hub_answers, is_hub_id
from probing.cli import main
from probing.evidence.verify import verify
from probing.instruments.attention.errors import analyse
from probing.models.load import doctor
from probing.publish.board import read as read_board
from probing.publish.push import push_dataset, push_metric
from probing.publish.submit import submission
from probing.report.dataset import collect
from probing.report.report import report

CODE = "def f(x):\n    return x.y\n"


@pytest.fixture(scope="module")
def pair(tiny_model):
    return AutoModel.from_pretrained(tiny_model), AutoTokenizer.from_pretrained(tiny_model)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: annotate(3, "python"), "code is 3, expected text"),
        (lambda: tokenize(CODE.encode(), "python"), "code is b'def"),
        (lambda: build(None, ["python"], "o"), "source is None, expected text"),
        (
            lambda: build("sample", "python", "o"),
            "configs is 'python', expected a list in which every item is text",
        ),
        (lambda: build("sample", ["python"], 7), "output is 7, expected text or a path"),
        (lambda: collect("d", ["python"], "test"), "splits is 'test', expected a list"),
        (
            lambda: probing.probe(None, "d"),
            "model is None, expected text, a path, a tuple or a probing Session",
        ),
        (
            lambda: probing.probe(("m",), "d", limit="5"),
            "limit is '5', expected a whole number of at least 1 or None",
        ),
        (
            lambda: probing.probe("m", "d", batch_tokens=True),
            "batch_tokens is True, expected a whole number",
        ),
        (
            lambda: probing.probe("m", "d", device=0),
            "device is 0, expected text, a torch device or None",
        ),
        (
            lambda: probing.probe("m", "d", seed=-1),
            "seed is -1, expected a whole number of at least 0",
        ),
        (lambda: probing.show("m", id="3"), "id is '3', expected a whole number or None"),
        (lambda: probing.load(None), "path is None, expected text or a path"),
        (lambda: probing.baseline(3), "the data is a int, expected a folder"),
        (lambda: verify(3), "result is 3, expected text or a path"),
        (lambda: verify("r.json", functions="all"), "functions is 'all', expected a whole number"),
        (lambda: analyse([]), "result is of the type list, expected text or a path"),
        (lambda: report("results", "o"), "results is 'results', expected a list"),
        (lambda: read_board("entries", "data"), "sources is 'entries', expected a list"),
        (lambda: submission("results", "me/m", "me/d"), "results is 'results', expected a list"),
        (lambda: push_dataset(None, "me/d"), "folder is None, expected text or a path"),
        (lambda: push_metric(None), "repo is None, expected text"),
        (lambda: doctor(7), "model is 7, expected text, a path or a tuple"),
        (
            lambda: codesyntax_metric.load().add(prediction=None, reference=None),
            "a function needs a prediction",
        ),
        (
            lambda: codesyntax_metric.load().add_batch(predictions=3, references=[]),
            "as many predictions as references",
        ),
        (lambda: codesyntax_metric.load().compute(k="3"), "k is '3', expected a whole number"),
        (
            lambda: codesyntax_metric.load().compute(rule=None),
            "rule is None, expected one of first",
        ),
    ],
)
def test_wrong_types(call, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CodeSyntaxError, match=words) as raised:
        call()
    assert "\n" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_models_and_data_that_are_nearly_right(pair, tiny_model, dataset_folder):
    model, tokenizer = pair
    for wrong, words in (
        ((model, None), "the tokenizer is a NoneType"),
        ((model,), "a tuple of 1, expected two"),
        ((None, tokenizer), "the model is a NoneType"),
    ):
        with pytest.raises(ModelError, match=words):
            probing.probe(wrong, dataset_folder)
    streamed = datasets.Dataset.from_dict({"id": [0]}).to_iterable_dataset()
    for entry in (probing.probe, lambda _, data: probing.baseline(data)):
        with pytest.raises(DatasetError, match="streamed"):
            entry(str(tiny_model), streamed)


@pytest.mark.slow
def test_what_torch_and_pathlib_have_names_for_is_taken(tiny_model, dataset_folder):
    named = probing.probe(tiny_model, dataset_folder, limit=2, dtype="bfloat16", device="cpu")
    typed = probing.probe(
        tiny_model, dataset_folder, limit=2, dtype=torch.bfloat16, device=torch.device("cpu")
    )
    assert typed == named
    with pytest.raises(ModelError, match="dtype is 'float64', expected one of float32"):
        probing.probe(tiny_model, dataset_folder, dtype=torch.float64)


def test_public_names():
    assert dir(probing) == sorted(probing.__all__)
    assert dir(codesyntax_dataset) == sorted(codesyntax_dataset.__all__)
    assert all(
        getattr(module, name) for module in (probing, codesyntax_dataset) for name in module.__all__
    )
    assert probing.__version__ == codesyntax_dataset.__version__


def test_the_split_that_nobody_names_is_test():
    for name in {*probing.__all__} - {"__version__"}:
        parameters = inspect.signature(getattr(probing, name)).parameters
        defaults = [parameters[of].default for of in ("split", "splits") if of in parameters]
        assert defaults in ([], ["test"], [("test",)]), name
    for name in "inform mask prefer surprise".split():
        (option,) = (of for of in main.commands[name].params if of.name == "splits")
        assert [*option.default] == ["test"], name


# Names, and a network that is not there --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["./model", "../model", "/tmp/model", "a/b/c", "results/", "~/model", "C:\\model", "a b"],
)
def test_names_that_the_hub_cannot_have_are_local_only(name, monkeypatch, dataset_folder):
    assert not is_hub_id(name)
    monkeypatch.setattr(
        "probing.models.location.hub_answers", lambda: pytest.fail("the Hub was asked")
    )
    monkeypatch.setattr("probing.runs.data.hub_answers", lambda: pytest.fail("the Hub was asked"))
    with pytest.raises(ModelError, match="no such folder, and no such model on the Hub"):
        probing.probe(name, dataset_folder)
    with pytest.raises(DatasetError, match="not a valid name of a dataset on the Hub"):
        probing.probe("m", name)
    with pytest.raises(DatasetError, match="USER/NAME"):
        probing.probe("m", "codesyntax-that-nobody-built")


def test_without_a_network_one_line_within_three_seconds(monkeypatch, dataset_folder, tmp_path):
    """Nothing listens on port 9 of this machine; huggingface_hub and datasets would try for 27 seconds."""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert not hub_answers()
    for error, call in (
        (ModelError, lambda: probing.probe("user/model", dataset_folder)),
        (DatasetError, lambda: probing.probe("user/model", "user/codesyntax")),
        (DatasetError, lambda: probing.baseline("user/codesyntax")),
        (SourceError, lambda: build("user/functions", ["python"], tmp_path / "out")),
        (CodeSyntaxError, lambda: read_board(["user/results"], "data")),
    ):
        started = time.monotonic()
        with pytest.raises(error, match="cannot be reached|connection") as raised:
            call()
        assert time.monotonic() - started < 3
        assert "\n" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []
