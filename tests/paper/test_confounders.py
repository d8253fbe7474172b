"""The confounders: by hand, and as the study's procedure counts them."""

from __future__ import annotations

import gzip
import json

import pytest

from codesyntax_dataset.errors import ArgumentError, CodeSyntaxError, UnknownName
from codesyntax_dataset.languages import LANGUAGES
from probing.paper.masking_study import COMMON_CAUSES, Confounders, confounders

NAMES = {name: "n_whitespaces_" if name == "words" else name for name in Confounders._fields}
"""Ours -> that of the reference and the study."""

LIZARDS = ("complexity", "nloc", "token_counts")


def test_by_hand():
    """`def f(x): return x`, whose tree is

    module > function_definition > def, identifier, parameters > ( identifier ), :, block > return_statement > return,
    identifier: 12 nodes below the root, and 5 on the longest path. lizard: `f ( x ) : return x`, from the name on.
    """
    assert confounders("def f(x):\n    return x\n") == Confounders(
        n_ast_errors=0, ast_levels=5, n_ast_nodes=12, complexity=1, nloc=2, token_counts=7, words=4
    )


def test_what_each_counts():
    plain = confounders("def f(x):\n    return x\n")
    comment = confounders("def f(x):\n\n    # a comment\n    return x\n")
    assert (comment.nloc, comment.words) == (2, 4 + 3) and comment.n_ast_nodes == plain.n_ast_nodes + 1
    branch = confounders("def f(x):\n    if x and x:\n        pass\n    return x\n")
    assert branch.complexity == plain.complexity + 2  # if, and
    assert branch.nloc == plain.nloc + 2
    broken = confounders("def f(x):\n    return x )\n")
    assert broken.n_ast_errors == 1
    nested = confounders("def f(x):\n    def g(y):\n        if y:\n            return y\n    return g\n")
    assert (nested.complexity, nested.nloc) == (1, 3)  # of f alone


def test_java():
    """From the name on: f ( int x ) {, if ( x > 0 ), return 1 ;, return 2 ;, }: 6 + 6 + 3 + 3 + 1 tokens."""
    found = confounders("int f(int x) {\n    if (x > 0) return 1;\n    return 2;\n}\n", "java")
    assert found[3:] == (2, 4, 19, 13)
    assert found.n_ast_errors == 0


def test_code_without_a_function():
    assert confounders("") == Confounders(0, 0, 0, None, None, None, 0)
    assert confounders("x = 1") == Confounders(0, 4, 5, None, None, None, 3)


def test_deep_trees_need_no_recursion():
    """Each pair of brackets is three nodes and a level; below the root and its statement, x is the innermost."""
    found = confounders("(" * 5000 + "x" + ")" * 5000)
    assert (found.n_ast_errors, found.n_ast_nodes, found.ast_levels) == (0, 3 * 5000 + 2, 5000 + 3)


def test_what_cannot_be_counted_is_refused(monkeypatch):
    with pytest.raises(UnknownName, match="did you mean 'python'"):
        confounders("x", "pyton")
    with pytest.raises(CodeSyntaxError, match="lone surrogate"):
        confounders("'\ud800'")
    monkeypatch.setitem(LANGUAGES, "toy", type("Toy", (), {"suffixes": (".toy",)}))
    with pytest.raises(ArgumentError, match="lizard does not read toy"):
        confounders("x", "toy")


def test_equals_the_reference(shared):
    """Today's parsers: all. The study's: all that do not depend on its grammar, but for one f-string of lizard's."""
    packed = (shared / "data/syntaxeval/reference.json.gz").read_bytes()
    functions = json.loads(gzip.decompress(packed))["functions"]
    assert len(functions) == 45
    differ = []
    for function in functions:
        found = confounders(function["code"])._asdict()
        current, published = (function["confounders"][which] for which in ("current", "published"))
        assert found == {name: current[theirs] for name, theirs in NAMES.items()}
        differ += [(name, function["id"]) for name, theirs in NAMES.items() if found[name] != published[theirs]]
    of_tree = [(name, where) for name, where in differ if name == "n_ast_nodes"]
    assert len(of_tree) == 42
    assert [pair for pair in differ if pair not in of_tree] == [
        ("ast_levels", "own-broken"),
        ("token_counts", "test-66"),
    ]


def test_the_published_model_has_six(shared):
    causal = json.loads((shared / "data/syntaxeval/causal.json").read_bytes())
    assert {f"z_{NAMES[name].rstrip('_')}" for name in (*COMMON_CAUSES, "n_ast_errors")} == {
        name for name in causal["columns"] | causal["datasets"]["twins"] if name.startswith("z_")
    }
    assert {*COMMON_CAUSES} == {*Confounders._fields} - {"n_ast_errors"}
