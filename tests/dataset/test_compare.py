"""Two label variants beside each other: what becomes of edges, worked out by hand."""

from __future__ import annotations

import json
from collections import Counter

import pyarrow.parquet as pq
import pytest
from support.commands import run

from codesyntax_dataset import annotate
from codesyntax_dataset.compare import CHANGES, changes, compare
from codesyntax_dataset.errors import ArgumentError, UnknownName
from codesyntax_dataset.languages.tables.constructs import CHILDREN
from codesyntax_dataset.schema import Annotation, Edge, Skips
from codesyntax_dataset.sources import read
from probing.report.dataset import _shortened, compare_labels

BOTH = ["python", "python_exact"]

PYTHON = {  # the body of a function -> what becomes of its edges, but those of any nodes
    "x = g(a)": "Assign:target->value moved, Call:func->args kept",
    "x = [y]": "Assign:target->value moved",
    "x = [y] + z": "Assign:target->value moved, BinOp:left->right moved",
    "return (a +\n        b)": "BinOp:left->right kept, Return:return->value new",
    "x = ('a'\n     'b')": "Assign:target->value moved",
    "m = n = 0": "Assign:target->value kept, Assign:target->value new",
    "return a and b and c": "BoolOp:value->value kept, BoolOp:value->value new, Return:return->value new",
    "return a  # why\n": "Return:return->value new",
    "x: int = 1": "Assign:target->value new",
    "yield a": "Yield:yield->value new",
    "g(a, b, k=1)": "Call:args->keywords moved, Call:func->args kept, Call:func->keywords kept",
    "return sum(a for a in b)": "Call:func->args new, GeneratorExp:elt->generator kept, Return:return->value new, comprehension:target->iter kept",
    "def g(a=b.c): pass": "Attribute:value->attr new, Default:name->value new",
    "@a.b\n    def g(): pass": "Attribute:value->attr new",
    "try: a()\n    except E: b()\n    else:\n        c\n        d": "Try:body->handler moved, Try:body->orelse kept, Try:handler->orelse moved",
}

JAVA = {
    "x = g(a);": "Assign:target->value moved, Call:func->args kept",
    "int x = a;": "Assign:target->value new",
    "x = a + b + c;": "Assign:target->value kept, InfixExpr:left->right kept, InfixExpr:left->right new",
    "x += a;": "Assign:target->value gone, AugAssign:target->value new",
    "x = g();": "Assign:target->value new",
    "g(a.b);": "Attribute:value->attr new, Call:func->args kept",
}


def pairs(text):
    return {tuple(change.split()) for change in text.split(", ")}


def told(code, configs, language="python"):
    first, second = (annotate(code, language, variant) for variant in configs)
    return Counter((one.place.relation, one.kind) for one in changes(first, second))


@pytest.mark.parametrize("body", PYTHON)
def test_what_becomes_of_edges(body):
    """The other way round, what was new is gone."""
    code = f"def f():\n    {body}\n    pass\n"
    found, back = told(code, ["paper", "exact"]), told(code, ["exact", "paper"])
    assert {change for change in found if change[0] != CHILDREN} == pairs(PYTHON[body])
    turned = {"new": "gone", "gone": "new"}
    assert found == {
        (relation, turned.get(kind, kind)): count for (relation, kind), count in back.items()
    }


@pytest.mark.parametrize("body", JAVA)
def test_what_becomes_of_edges_in_java(body):
    found = told(f"void f() {{\n    {body}\n    h(1);\n}}\n", ["paper", "exact"], "java")
    expected = pairs(JAVA[body]) | {("Call:func->args", "kept")}
    assert {change for change in found if change[0] != CHILDREN} == expected


def test_a_text_that_ends_without_a_line_break():
    """The published dependent is an empty token there."""
    found = told("def f(a):\n    return a.b", ["paper", "exact"])
    assert found["Attribute:value->attr", "moved"] == 1


def test_brackets_and_line_breaks_at_the_ends_make_no_other_edge():
    code = "def f():\n    x = a\n    return (b, c)\n"
    assert told(code, ["paper", "with_new_lines"])["Assign:target->value", "kept"] == 1
    assert told(code, ["paper", "exact"])[CHILDREN, "gone"] == 0


def test_the_example_is_the_shortest():
    codes = ["def f():\n    g(a)\n", "def f():\n    gg(a)\n"]
    for order in (codes, codes[::-1]):
        kept = compare(order, BOTH).relations["Call:func->args"]["kept"]
        assert kept.example.code == "g(a"


def test_edges_inside_of_a_string():
    found = told("def f(a):\n    return f'{a.b} {a}' + c.d", ["exact", "interpolated"])
    assert {kind for relation, kind in found if relation == "Attribute:value->attr"} == {
        "kept",
        "new",
    }


@pytest.mark.slow
def test_every_edge_is_counted_once():
    codes = [function.code for function in read("sample", "python", Skips())][::4]
    comparison = compare(codes, BOTH)
    for variant, only in (("paper", "gone"), ("exact", "new")):
        edges = Counter(
            edge.relation for code in codes for edge in annotate(code, "python", variant).edges
        )
        for relation in comparison.relations:
            counted = sum(
                comparison.relations[relation][kind].edges for kind in ("kept", "moved", only)
            )
            assert counted == edges[relation], (relation, variant)
    assert comparison.functions == {"both": len(codes), "first": 0, "second": 0, "neither": 0}


def test_functions_that_only_one_config_reads():
    codes = [
        "def f():\n    match x:\n        case 1: pass\n",
        "def f():\n    print x\n",
        "def f(a): return a",
    ]
    assert compare(codes, BOTH).functions == {"both": 1, "first": 0, "second": 1, "neither": 1}
    assert compare([], BOTH).relations == {}


@pytest.mark.slow
def test_differences_in_the_sample_have_examples():
    done = run("compare-labels --config", BOTH[0], "--config", BOTH[1], "--json -q")
    found, edges = json.loads(done.stdout), Counter()
    for kinds in found["relations"].values():
        assert list(kinds) == list(CHANGES)
        for kind, counted in kinds.items():
            assert bool(counted["edges"]) is bool(counted["example"])
            edges[kind] += counted["edges"]
    assert edges["kept"] > 7000
    assert edges["moved"] > 3000


@pytest.mark.parametrize(
    "configs, error, message",
    [
        (
            ["python"],
            ArgumentError,
            "configs are python, expected two different ones of one language",
        ),
        (["python", "python"], ArgumentError, "two different ones"),
        (["python", "java"], ArgumentError, "two different ones of one language"),
        (["python", "python_layout"], ArgumentError, "python_layout is made of changed functions"),
        (["english", "english_space_after"], ArgumentError, "people label English in treebanks"),
        (["python", "python_exakt"], UnknownName, "did you mean 'python_exact'"),
    ],
)
def test_what_cannot_be_compared_is_refused(configs, error, message):
    with pytest.raises(error, match=message):
        compare_labels(configs)


@pytest.mark.slow
def test_functions_of_a_dataset_are_those_of_its_test_split(dataset_folder):
    comparison = compare_labels(BOTH, data=dataset_folder)
    assert (
        comparison.functions["both"]
        == pq.read_metadata(dataset_folder / "python" / "test.parquet").num_rows
    )
    with pytest.raises(ArgumentError, match="got both"):
        compare_labels(BOTH, source="sample", data=dataset_folder)


BEFORE = {  # code -> edges of labels 1.2 that are others now, by texts, and relations that were not there
    ("rust", "fn f() { g::<T>(&x); A::b; }"): (
        {("Call:func->args", ">", "&", "x")},
        {"Attribute:value->attr", "UnaryOp:op->operand"},
    ),
    ("java", "void f(a.B c) { d(new E<F>(g), B::h); switch (c) { case 1: i(); } }"): (
        {("New:class->args", ">", "g", "g")},
        {"Attribute:value->attr", "Case:test->body"},
    ),
    ("ruby", "def f\n  a.map(&:b)\n  c { [*d] }\nend"): (
        set(),
        {"Call:func->block", "Spread:spread->value", "Call:func->args"},
    ),
    ("ruby", "def f\n  a(b, &c)\nend"): (
        {("Call:func->args", "a", "b", "b")},
        set(),
    ),
    ("go", "func f() { type a = b; c <- d }"): (
        set(),
        {"Assign:target->value", "Send:channel->value"},
    ),
}


@pytest.mark.parametrize("language, code", BEFORE)
def test_labels_of_an_earlier_version(language, code):
    moved, new = BEFORE[language, code]
    tokens, edges = annotate(code, language, "exact")
    texts = [token.text for token in tokens]
    before = [
        edge for edge in edges if edge.relation not in {*new, *(relation for relation, *_ in moved)}
    ]
    before += [Edge(relation, *map(texts.index, places)) for relation, *places in moved]
    found = changes(Annotation(tokens, before), Annotation(tokens, edges))
    differing = {
        kind: {change.place.relation for change in found if change.kind == kind}
        for kind in CHANGES[1:]
    }
    assert differing == {"moved": {relation for relation, *_ in moved}, "new": new, "gone": set()}


def test_texts_of_examples_are_shown_without_their_middle_if_they_are_long():
    assert _shortened("a\n" * 30) == "a " * 29 + "a"
    assert _shortened(f"{'a' * 30} {'b' * 29}") == f"{'a' * 30} {'b' * 29}"
    assert _shortened(f"{'a' * 30} {'b' * 30}") == f"{'a' * 30}…{'b' * 30}"
