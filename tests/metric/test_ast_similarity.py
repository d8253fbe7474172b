"""Similarity of syntax trees: against a plain computation, the published procedure's figures, and through `evaluate`."""

from __future__ import annotations

import gzip
import importlib
import json
import shutil
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import tree_sitter
import tree_sitter_java
import tree_sitter_python
from hypothesis import given, settings
from hypothesis import strategies as st
from test_metric import of_two_processes, output, start

import codesyntax_metric
from codesyntax_dataset.errors import CodeSyntaxError
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_metric.ast_similarity import similarity
from codesyntax_metric.ast_similarity.similarity import (
    MOST_NODES,
    Similarity,
    compare,
    grammar,
    node_types,
    parse,
)

pytestmark = pytest.mark.usefixtures("evaluate")

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "codesyntax_metric" / "ast_similarity"
NAMES = Similarity._fields


# A plain computation, which shares nothing with the metric but the grammar: recursion over children, counts in dicts,
# and the whole table of the edit distance.


def plain_types(code, language, anonymous):
    def types(node):
        own = [node.type] if anonymous or node.is_named else []
        return own + [name for child in node.children for name in types(child)]

    module = {"python": tree_sitter_python, "java": tree_sitter_java}[language]
    parser = tree_sitter.Parser(tree_sitter.Language(module.language()))
    return types(parser.parse(code.encode()).root_node)


def plain(one, other):
    names = {*one, *other}
    smaller = sum(min(one.count(name), other.count(name)) for name in names)
    larger = sum(max(one.count(name), other.count(name)) for name in names)
    table = [[max(row, column) for column in range(len(other) + 1)] for row in range(len(one) + 1)]
    for row, mine in enumerate(one, 1):
        for column, theirs in enumerate(other, 1):
            table[row][column] = min(
                table[row - 1][column] + 1,
                table[row][column - 1] + 1,
                table[row - 1][column - 1] + (mine != theirs),
            )
    longer = max(len(one), len(other))
    return smaller / larger, 2 * smaller / (len(one) + len(other)), 1 - table[-1][-1] / longer


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(*[st.lists(st.sampled_from("abcde"), max_size=12)] * 2)
def test_any_two_sequences(one, other):
    """Symmetric, 1 for the same, 0 where nothing is common, and never outside of the two."""
    found = compare(one, other)
    assert found == compare(other, one)
    assert compare(one, one) == (1, 1, 1)
    assert all(0 <= value <= 1 for value in found)
    assert (
        (found.jaccard == 0)
        == (found.sorensen_dice == 0)
        == bool((one or other) and not {*one} & {*other})
    )
    if one or other:
        assert found == pytest.approx(plain(one, other), abs=1e-12)
        assert found.sorensen_dice == pytest.approx(2 * found.jaccard / (1 + found.jaccard))


def test_by_hand():
    """Without anonymous nodes `f(x)` is module, statement, call, f, arguments, x; `f(x, 1)` has one more at the end."""
    one, other = (node_types(code, anonymous=False) for code in ("f(x)", "f(x, 1)"))
    assert one == "module expression_statement call identifier argument_list identifier".split()
    assert compare(one, other) == (6 / 7, 12 / 13, 1 - 1 / 7)
    # the same nodes in another order: as multisets they are the same, as sequences two of six differ
    assert compare(one, one[::-1]) == (1, 1, 1 - 6 / 6)
    assert compare(one, [*one[1::-1], *one[2:]]) == (1, 1, 1 - 2 / 6)
    # two named `a`s against one: a multiset counts them
    assert compare(["r", "a", "a"], ["r", "a"]) == (2 / 3, 4 / 5, 1 - 1 / 3)


def test_nothing_is_a_tree_with_a_root():
    assert node_types("") == node_types(" \n ") == ["module"]
    assert node_types("", "java") == ["program"]
    assert compare(node_types(""), node_types("")) == (1, 1, 1)
    assert compare(node_types(""), node_types("x")) == (1 / 3, 2 / 4, 1 - 2 / 3)


def test_broken_code_is_compared_by_its_errors():
    types = node_types("def f(:\n    return \0 é'\n")
    assert "ERROR" in types
    assert types == plain_types("def f(:\n    return \0 é'\n", "python", True)


def test_deep_trees_need_no_recursion():
    """Deeper than Python may recurse, and as large as is allowed; one node more is refused."""
    deep = "(" * (MOST_NODES - 2)
    assert len(node_types(deep)) == MOST_NODES - 1
    with pytest.raises(CodeSyntaxError, match="100,001 nodes, more than the 100,000"):
        node_types(deep + "((")


def test_every_registered_programming_language_has_a_grammar():
    for language in (name for name, record in LANGUAGES.items() if not record.of_treebanks):
        assert isinstance(grammar(language), tree_sitter.Language)
        assert "unknown" not in similarity.parser_version(language)


def test_packages_with_several_grammars(monkeypatch):
    """As that of TypeScript, whose functions are called after the languages; and one without any."""

    for name in ("tree_sitter_several", "tree_sitter_no_grammar"):
        module = ModuleType(name)
        module.__spec__ = tree_sitter_python.__spec__
        monkeypatch.setitem(sys.modules, name, module)
    sys.modules["tree_sitter_several"].language_several = tree_sitter_python.language
    assert node_types("x", "several") == node_types("x")
    assert similarity.parser_version("several").endswith(", tree-sitter-several of unknown version")
    with pytest.raises(
        CodeSyntaxError,
        match="the grammar tree_sitter_no_grammar cannot be used",
    ):
        grammar("no_grammar")
    similarity._grammar.cache_clear()


@pytest.mark.parametrize(
    "language, message",
    [
        (
            "pyhton",
            "no grammar for the language 'pyhton': did you mean 'python'. installed are .*java, .*python",
        ),
        (
            "cobol",
            "no grammar for the language 'cobol': installed are .*; others come as packages called tree-sitter-",
        ),
        ("a.b", "no grammar for the language 'a.b'"),
        ("", "no grammar for the language ''"),
        (None, "language is None, expected a name, such as 'python'"),
    ],
)
def test_languages_without_a_grammar_are_refused_and_lose_nothing(language, message):
    metric = codesyntax_metric.ast_similarity.load()
    metric.add(prediction="a", reference="a")
    with pytest.raises(CodeSyntaxError, match=message):
        metric.compute(language=language)
    assert metric.compute()["pairs"] == 1


# The reference: similarities of the published procedure with today's parser


@pytest.mark.slow
def test_equals_the_reference(shared):
    """Every text of every case at both rates: what was masked and restored in T1 and in each draw of T0."""
    packed = (shared / "data/syntaxeval/reference.json.gz").read_bytes()
    functions = json.loads(gzip.decompress(packed))["functions"]
    rates, compared = set(), 0
    for function in functions:
        original = node_types(function["code"])
        for case in function["cases"]:
            for run in [case.get("t1"), case.get("t1_current"), *case.get("t0", ())]:
                if run:
                    types, expected = node_types(run["text"]), run["current"]
                    assert (len(original), len(types)) == (
                        expected["len_original"],
                        expected["len_predicted"],
                    )
                    assert compare(original, types) == pytest.approx(
                        [expected[name] for name in NAMES], abs=1e-12
                    )
                    rates.add(case["rate"])
                    compared += 1
    assert rates == {1.0, 0.5}
    assert compared == json.dumps(functions).count('"text": ') > 1000


# The metric


def test_means_and_lists():
    """Mixed code and trees, one by one or together."""
    codes = [("f(x)", "f(x, y)"), ("a = 1", "a = 1"), ("if x:\n    y", "")]
    expected = [compare(*map(node_types, pair)) for pair in codes]
    predictions, references = zip(*codes)
    parsed = [*map(parse, references)]
    metric = codesyntax_metric.ast_similarity.load()
    one = metric.compute(predictions=predictions, references=references)
    metric.add(prediction=predictions[0], reference=parsed[0])
    metric.add_batch(predictions=[*map(parse, predictions[1:])], references=references[1:])
    assert metric.compute(language="python") == one
    versions = similarity.parser_version("python")
    assert one == {
        **{
            name: pytest.approx(sum(result[place] for result in expected) / 3)
            for place, name in enumerate(NAMES)
        },
        "pairs": 3,
        "failed": 0,
        "signature": f"ast|language:python|parser:{versions}|nodes:all|pairs:3|failed:0",
    }
    lists = metric.compute(predictions=predictions, references=parsed, average=False)
    assert [lists[name] for name in NAMES] == [list(column) for column in zip(*expected)]
    named = metric.compute(
        predictions=predictions, references=parsed, anonymous=False, average=False
    )
    assert named["signature"].split("|")[3] == "nodes:named"
    assert (
        named["jaccard"]
        == [
            compare(*(node_types(code, anonymous=False) for code in pair)).jaccard for pair in codes
        ]
        != lists["jaccard"]
    )


@pytest.mark.slow
def test_code_with_which_the_parser_never_ends_is_a_failure():
    endless = "class A {" + "[,Z" * 14 + "\n}"
    with pytest.raises(CodeSyntaxError, match="takes too long to repair"):
        node_types(endless, "typescript")
    metric = codesyntax_metric.ast_similarity.load()
    found = metric.compute(
        predictions=[endless, "f()"], references=["f()", "f()"], language="typescript"
    )
    assert (found["jaccard"], found["failed"]) == (1, 1)


def test_a_parser_is_stopped_after_three_times_the_steps_of_real_code(monkeypatch):
    taken = []

    def endless(code, encoding, progress_callback):
        while not progress_callback(0, False):
            taken.append(code)
        raise ValueError

    monkeypatch.setattr(tree_sitter, "Parser", lambda language: SimpleNamespace(parse=endless))
    with pytest.raises(CodeSyntaxError, match="takes too long to repair"):
        parse("x" * 50_000)
    assert len(taken) == 1_000 + 3_000 + 1


def test_a_failure_is_counted_and_no_zero():
    huge, broken = "(" * MOST_NODES, "a = '\ud800'"
    metric = codesyntax_metric.ast_similarity.load()
    pairs = {
        "predictions": ["f(x)", broken, "f(x)", parse(huge), "f(x)"],
        "references": ["f(x)", "f", huge, "f", "f"],
    }
    lists = metric.compute(**pairs, average=False)
    assert (lists["pairs"], lists["failed"]) == (5, 3)
    for name in NAMES:
        assert lists[name] == [
            1.0,
            None,
            None,
            None,
            getattr(compare(node_types("f(x)"), node_types("f")), name),
        ]
    assert metric.compute(**pairs)["jaccard"] == (lists["jaccard"][0] + lists["jaccard"][4]) / 2
    nothing = metric.compute(predictions=[broken], references=["f"])
    assert nothing == {
        **dict.fromkeys(NAMES),
        "pairs": 1,
        "failed": 1,
        "signature": nothing["signature"],
    }
    assert nothing["signature"].endswith("|pairs:1|failed:1")
    with pytest.raises(
        CodeSyntaxError, match=r"character 5 of the code is the lone surrogate '\\ud800'"
    ):
        node_types(broken)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (
            {"predictions": ["a"], "references": []},
            "as many predictions as references, got 1 and 0",
        ),
        ({"predictions": ["a"]}, "as many predictions as references, got 1 and NoneType"),
        (
            {"predictions": "ab", "references": "ab"},
            "as many predictions as references, got str and str",
        ),
        (
            {"predictions": ["a", b"a"], "references": ["a", "a"]},
            "got bytes to compare, expected code",
        ),
        ({"predictions": [["a"]], "references": ["a"]}, "got list to compare, expected code"),
        (
            {"predictions": [parse("int x;", "java")], "references": ["a"]},
            "another grammar than .* 'python'",
        ),
        (
            {"predictions": ["a"], "references": [parse("int x;", "java")]},
            "another grammar than .* 'python'",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(arguments, message):
    metric = codesyntax_metric.ast_similarity.load()
    with pytest.raises(CodeSyntaxError, match="nothing to compare: call add"):
        metric.compute()
    with pytest.raises(CodeSyntaxError, match=message):
        metric.compute(**arguments)
    if "grammar" in message:  # nothing is lost: with the right language it is compared
        assert metric.compute(language="java")["pairs"] == 1
    else:
        assert metric.compute(predictions=["a"], references=["a"])["pairs"] == 1


# Loading and processes


LOAD = """
import evaluate, json
metric = evaluate.load(sys.argv[1])
print(json.dumps([type(metric).__module__, metric.compute(predictions=["f(x)"], references=["f(x, y)"])]))
try:
    metric.compute(predictions=["a"], references=["a"], language="pythn")
except ValueError as error:
    print(json.dumps(str(error)))
"""


@pytest.mark.slow
def test_evaluate_loads_it_as_on_the_hub(tmp_path):
    """Where our packages are missing, from its two scripts alone."""
    folder = tmp_path / "ast_similarity"
    folder.mkdir()
    for file in ("ast_similarity.py", "similarity.py"):
        shutil.copy(FOLDER / file, folder)
    ((module, result), error) = output(start(LOAD, tmp_path / "home", tmp_path, [folder]))
    assert module.startswith("evaluate_modules.metrics.ast_similarity.")
    assert {name: result[name] for name in NAMES} == {
        "jaccard": 0.8,
        "sorensen_dice": 16 / 18,
        "levenshtein": 0.8,
    }
    assert "did you mean 'python'?" in error


@pytest.mark.parametrize("shares", [(0, 1, 0), (1, 1, 1)])
def test_two_processes_give_the_answer_of_one(shares, tmp_path):
    """One may have nothing."""
    pairs = [("f(x)", "f(x, y)"), ("a = 1", "b"), ("é", parse("x"))]
    predictions, references = zip(*pairs)
    metric = codesyntax_metric.ast_similarity
    expected = metric.load().compute(predictions=predictions, references=references)
    first, second = of_two_processes(metric, pairs, shares, tmp_path)
    assert second.result() is None
    assert first.result() == pytest.approx(expected)
    assert not list(tmp_path.rglob("*.arrow"))


def test_the_page_compares_two_codes(monkeypatch):
    """As a Space runs it, with its siblings under their plain names."""
    monkeypatch.syspath_prepend(FOLDER)
    for name in ("app", "similarity"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    app = importlib.import_module("app")
    assert app.compare_example("f(x)", "f(x, y)", "python", True) == [
        ["jaccard", 0.8],
        ["sorensen_dice", 0.8889],
        ["levenshtein", 0.8],
    ]
    assert app.compare_example("f(x)", "f(x, y)", "python", False)[0] == ["jaccard", 0.8571]
    ((what, why),) = app.compare_example("\ud800", "f", "python", True)
    assert what == "cannot be compared"
    assert "lone surrogate" in why
    needed = (FOLDER / "requirements.txt").read_text()
    assert all(f"tree-sitter-{language}>" in needed for language in app.LANGUAGES)
    for name in ("app", "similarity"):
        del sys.modules[name]
