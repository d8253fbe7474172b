"""The worked examples beside a masking result: which ones, what they say, and whose they are."""

from __future__ import annotations

import json

import datasets
import pytest
from support.models.byte_tokenizer import all_but, byte_model

import codesyntax_metric
from codesyntax_dataset import annotate
from codesyntax_dataset.errors import LedgerError
from probing import mask
from probing.instruments.masking import mask as job
from probing.instruments.masking.examples import RestoredExample, examples_path, load
from probing.instruments.masking.result import MaskResult
from probing.models.masked import MaskedModel

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]

LONG = "def f(a):\n" + "    a\n" * 14 + "    return\n"
CODES = [
    LONG,  # one line too many
    "def f(a):\n    return a\n",
    "def f(a):\n    a = 1\n    return a\n",
    "def f(a):\n    return a.b(1)\n",
    "def f(a):\n    if a:\n        pass\n    return\n",
    "def f(a):\n    return '" + 500 * "a" + "'\n",
    "def f(a):\n    return a\n",
]
LOST = [code.replace("return", "~~~~~~") for code in CODES]
"""What a model restores that loses the letters of `return`, where the nodes of `return_statement` are masked."""

RUN = {"node_types": ["while_statement", "return_statement"], "draws": 1, "max_length": 600}


def row(number: int, code: str) -> dict:
    tokens, _ = annotate(code, "python")
    starts, ends = ([getattr(token, name) for token in tokens] for name in ("start", "end"))
    return {"id": 100 + number, "code": code, "token_start": starts, "token_end": ends, "relations": []}


@pytest.fixture(scope="module")
def data():
    return datasets.Dataset.from_list([row(number, code) for number, code in enumerate(CODES)])


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(byte_model(tmp_path_factory.mktemp("models") / "masked", 600, layers=1))


@pytest.fixture(autouse=True)
def planted(monkeypatch):
    monkeypatch.setattr(MaskedModel, "scores", staticmethod(all_but("return")))


@pytest.fixture
def file(model, data, tmp_path):
    """A result, with its examples."""
    folder = tmp_path / "results"
    return mask(model, data, **RUN, output=folder).paths(folder)[0]


def examples_of(file) -> list[RestoredExample]:
    return [one.example for one in load(examples_path(file), MaskResult.load(file))]


def test_the_lowest_the_median_and_the_highest(file):
    """Of the five short functions; of the two that are alike, the earlier one counts as lower."""
    metric = codesyntax_metric.ast_similarity.load()
    compared = metric.compute(predictions=LOST, references=CODES, average=False)
    order = sorted([1, 2, 3, 4, 6], key=lambda number: (compared["jaccard"][number], number))
    found = load(examples_path(file), MaskResult.load(file))
    assert [one.example.place for one in found] == ["lowest", "median", "highest"]
    assert [one.example.function for one in found] == [order[0], order[2], order[4]]
    for one in found:
        number = one.example.function
        assert (one.example.id, one.example.node_type) == (100 + number, "return_statement")
        assert "".join(part.source for part in one.example.parts) == CODES[number]
        assert "".join(part.text for part in one.example.parts) == LOST[number]
        for name, value in one.similarity._asdict().items():
            assert value == pytest.approx(compared[name][number], abs=1e-12)


def test_parts_and_trees_by_hand(model, data, tmp_path):
    """Of `return a`, without the space in front of it; `~~~~~~ a` is a unary expression."""
    mask(model, data.select([1]), **RUN, output=tmp_path)
    (path,) = tmp_path.glob("*.examples.json")
    (example,) = examples_of(tmp_path / path.name.replace(".examples", ""))
    parts = [(part.source, part.text, part.masked, part.right) for part in example.parts]
    lost = [(letter, "~", 1, 0) for letter in "return"]
    kept = [(letter, letter, 1, 1) for letter in " a"]
    before = "def f(a):\n    "
    assert parts == [(before, before, 0, 0), *lost, *kept, ("\n", "\n", 0, 0)]
    assert example.tree == (
        "module", "  function_definition", "    identifier", "    parameters", "      identifier", "    block",
        "      return_statement", "        identifier",
    )  # fmt: skip
    begins = example.tree[:6]
    assert example.restored_tree[:6] == begins
    assert example.restored_tree[6:] == (
        "      expression_statement",
        *("        " + 2 * number * " " + "unary_operator" for number in range(6)),
        " " * 20 + "identifier",
    )
    assert example.place == "lowest"


def test_a_run_without_output_writes_none(model, data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mask(model, data, **RUN)
    mask(model, data, **RUN, protocol="published", output=tmp_path / "published")  # decodes a function as a whole
    assert not list(tmp_path.rglob("*.examples.json"))


def test_without_short_functions_there_are_none(model, data, tmp_path):
    file = mask(model, data.select([0, 5]), **RUN, output=tmp_path).paths(tmp_path)[0]
    assert examples_of(file) == []


def test_they_are_written_again_unless_they_are_those_of_the_result(model, data, file, monkeypatch):
    """Also where the run itself is not repeated."""
    path = examples_path(file)
    whole = path.read_bytes()
    monkeypatch.setattr(job.Masking, "run", lambda *_: pytest.fail("masked again"))
    for content in (whole.replace(b'"masked": 1', b'"masked": 2', 1), b"{}", None):
        path.unlink() if content is None else path.write_bytes(content)
        mask(model, data, **RUN, output=file.parent)
        assert path.read_bytes() == whole
    made = path.stat().st_mtime_ns
    mask(model, data, **RUN, output=file.parent)
    assert path.stat().st_mtime_ns == made


def test_an_answer_of_the_cache_has_them_too(model, data, file, tmp_path, monkeypatch):
    monkeypatch.setenv("CODESYNTAX_CACHE", str(tmp_path / "cache"))
    mask(model, data, **RUN)
    monkeypatch.setattr(job.Masking, "run", lambda *_: pytest.fail("masked again"))
    mask(model, data, **RUN, output=tmp_path / "other")
    (path,) = (tmp_path / "other").glob("*.examples.json")
    assert path.read_bytes() == examples_path(file).read_bytes()


def test_a_model_that_restores_otherwise_gives_none(model, data, file, monkeypatch, caplog):
    """As on a machine that rounds otherwise: the numbers are those of the ledger, or there is no example."""
    examples_path(file).unlink()
    monkeypatch.setattr(MaskedModel, "scores", staticmethod(all_but("retur")))
    mask(model, data, **RUN, output=file.parent)
    assert not examples_path(file).exists()
    assert "restores other sub-tokens than the ledger says" in caplog.text


@pytest.mark.parametrize(
    ("alter", "message"),
    [
        (lambda found: found | {"ledger": "0" * 64}, "does not belong to the result"),
        (lambda found: found["examples"][0].update(function=0) or found, "does not belong to the result"),
        (lambda found: found["examples"][0].update(node_type="call") or found, "does not belong to the result"),
        (lambda found: found["examples"][0]["parts"][2].update(right=1) or found, "does not belong to the result"),
        (lambda found: found | {"format": 2}, "does not hold the examples .* expected 1"),
        (lambda found: found["examples"][0].update(place="best") or found, "expected 'lowest', 'median' or 'highest'"),
        (lambda found: found["examples"][0].update(tree=[]) or found, "does not hold the examples"),
        (lambda found: found | {"more": 1}, "has an unknown field 'more'"),
        (lambda found: [found], "does not hold the examples"),
    ],
)
def test_what_was_altered_is_refused(file, alter, message):
    path = examples_path(file)
    found = json.loads(path.read_text())
    del found["sha256"]  # as in older files
    path.write_text(json.dumps(alter(found)))
    with pytest.raises(LedgerError, match=message):
        examples_of(file)


def test_a_letter_that_nothing_else_contradicts_is_refused(file):
    path = examples_path(file)
    path.write_text(path.read_text().replace('"tree": [\n    "module"', '"tree": [\n    "modale"', 1))
    with pytest.raises(LedgerError, match="its content was altered"):
        examples_of(file)
