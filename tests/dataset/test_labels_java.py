"""The Java annotator against javalang, and on generated methods."""

from __future__ import annotations

import re

import javalang
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.labels.codesearchnet import slice_of_codesearchnet
from support.labels.grammars import expand

from codesyntax_dataset import ParseError, annotate, tokenize
from codesyntax_dataset.languages.java.labels import RULES
from codesyntax_dataset.languages.java.relations import RELATIONS
from codesyntax_dataset.schema import check

PUBLISHED = ["paper", "with_new_lines", "skip_semicolon"]


def test_every_relation_of_java_has_a_rule():
    ruled = [relation for rules in RULES.values() for relation, _, _ in rules]
    assert sorted([*ruled, "children:parent->child"]) == sorted(
        relation.name for relation in RELATIONS
    )


# --- javalang --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_tokens_and_their_places_are_javalangs_on_real_code(shared):
    for code in slice_of_codesearchnet(shared, "java", "test").values():
        assert places_of(code) == javalang_places(code)


def places_of(code):
    """(token, line, column) as javalang counts them, both from 1."""
    return [
        (text, code.count("\n", 0, start) + 1, start - code.rfind("\n", 0, start))
        for text, start, _ in tokenize(code, "java")
    ]


def javalang_places(code):
    return [(token.value, *token.position) for token in javalang.tokenizer.tokenize(code)]


# --- Generated methods -----------------------------------------------------------------------------------------------


SPACES = [" ", " ", "\n", "\t", "  \n", " /* a */ ", " // b\n", "\n/** c\n */\n"]


@st.composite
def methods(draw):
    return expand("java", "METHOD", draw(st.randoms()), draw(st.integers(1, 9)))


def lay_out(words, random):
    return "".join(word + random.choice(SPACES) for word in words)


@pytest.mark.slow
@settings(max_examples=75, deadline=None)
@given(methods(), st.sampled_from(PUBLISHED), st.randoms())
def test_generated_methods_are_labelled_within_their_tokens(words, variant, random):
    code = lay_out(words, random)
    annotation = check(annotate(code, "java", variant), code)
    assert annotation.tokens == tokenize(code, "java", variant)
    assert all(code[start:end] == text for text, start, end in annotation.tokens)
    assert all(0 < head < first for _, head, first, _ in annotation.edges)
    assert {edge.relation for edge in annotation.edges} <= {relation.name for relation in RELATIONS}
    assert len(set(annotation.edges)) == len(annotation.edges)


@pytest.mark.slow
@settings(max_examples=75, deadline=None)
@given(methods(), st.randoms())
def test_white_space_and_comments_change_no_label(words, random):
    plain, loose = " ".join(words), lay_out(words, random)
    assert [token.text for token in tokenize(loose, "java")] == [
        token.text for token in tokenize(plain, "java")
    ]
    assert annotate(loose, "java").edges == annotate(plain, "java").edges


@pytest.mark.slow
@settings(max_examples=75, deadline=None)
@given(methods(), st.randoms())
def test_tokens_and_their_places_are_javalangs_on_generated_methods(words, random):
    code = lay_out(words, random)
    assert places_of(code) == javalang_places(code)


LEVELS = [*map(str.split, "||, &&, |, ^, &, == !=, < >, <<, + -, * / %".split(","))]


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.sampled_from([operator for level in LEVELS for operator in level]),
        min_size=1,
        max_size=9,
    )
)
def test_operator_chains_are_joined_by_the_rule(operators):
    """Against the rule of the published labels taken word for word, on a tree built top down."""
    words = ["a"] + [word for operator in operators for word in (operator, "a")]
    start = 7  # void f ( ) { x = a
    edges = annotate(f"void f() {{ x = {' '.join(words)}; }}", "java").edges
    infix = [edge[1:] for edge in edges if edge.relation == "InfixExpr:left->right"]
    assert infix == [
        tuple(start + index for index in edge) for edge in plain_infix(plain_tree(words))
    ]


def plain_tree(words, offset=0):
    """The index of an operand, or (left, operator, right): split at the last of the operators that bind loosest."""
    for level in LEVELS:
        at = max((index for index, word in enumerate(words) if word in level), default=None)
        if at is not None:
            return (
                plain_tree(words[:at], offset),
                words[at],
                plain_tree(words[at + 1 :], offset + at + 1),
            )
    return offset


def plain_infix(tree):
    """(head, first, last) of the first two operands of every infix node, from the top."""
    if isinstance(tree, int):
        return []
    spine = [tree]
    while isinstance(spine[-1][0], tuple):
        spine.append(spine[-1][0])
    joined = len({operator for _, operator, _ in spine}) == 1 and tree[1] not in ("==", "!=")
    joined = joined and all(isinstance(right, int) for _, _, right in spine[1:])
    operands = (
        [spine[-1][0], *(right for _, _, right in reversed(spine))]
        if joined
        else [tree[0], tree[2]]
    )
    edge = (
        plain_leaves(operands[0])[0],
        plain_leaves(operands[1])[0],
        plain_leaves(operands[1])[-1],
    )
    return [edge, *(inner for operand in operands for inner in plain_infix(operand))]


def plain_leaves(tree):
    return [tree] if isinstance(tree, int) else plain_leaves(tree[0]) + plain_leaves(tree[2])


LITERALS = st.one_of(
    st.from_regex(r"(0|[1-9][0-9]{0,3}(_+[0-9]{1,2})?)[lL]?", fullmatch=True),
    st.from_regex(
        r"0[xX][0-9a-fA-F]{1,4}(_[0-9a-f])?[lL]?|0[bB][01]{1,4}(_1)?[lL]?|0[0-7]{1,3}[lL]?",
        fullmatch=True,
    ),
    st.from_regex(
        r"([0-9]{1,3}\.[0-9]{0,3}|\.[0-9]{1,3})([eE][+-]?[0-9]{1,2})?[fFdD]?", fullmatch=True
    ),
    st.from_regex(
        r"0[xX]([0-9a-f]{1,3}|[0-9a-f]?\.[0-9a-f]{1,3})[pP][+-]?[0-9]{1,2}[fFdD]?", fullmatch=True
    ),
    st.from_regex(r'"([a-z /*\']|é|日|\\[btnfr"\'\\]|\\[0-7]{1,3}){0,5}"', fullmatch=True),
    st.from_regex(r"'([a-z /*\"]|é|\\[btnfr\"'\\]|\\[0-7]{1,3})'", fullmatch=True),
)
WORDS = ["a", "größe", "x\u0663\u0301", "$_1", "int"]
SIGNS = (
    "( ) { } [ ] ; , . @ ... -> :: ? : ~ ! = == != < > <= >= >> >>> << <<= >>= >>>= += -= *= /= %= &= |= ^= "
    "+ - * / % & | ^ && || ++ --"
).split()


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.lists(st.one_of(LITERALS, st.sampled_from([*SIGNS, *WORDS, "/*/ */", "//\n"]))))
def test_literals_and_operators_are_javalangs(words):
    code = " ".join(words) + " ;"
    assert places_of(code) == javalang_places(code)


# --- Escapes, and code that is no method -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source, text",
    [
        (r"'\u0041'", "'A'"),
        (r"'\uuu0041'", "'A'"),
        (r"'\u0000'", "'\0'"),
        (r"\u0061\u0062", "ab"),
        (r'"\\u0041"', r'"\\u0041"'),  # an escaped backslash before a u
        (r'"\ud83d\ude00"', '"\N{GRINNING FACE}"'),
        (r"'\ud83d'", r"'\ud83d'"),  # half a pair: no text can hold it, so it stays spelt out
    ],
)
def test_unicode_escapes_are_decoded_and_keep_their_places(source, text):
    """What the Java language specification (3.3) makes of them; places are those of the code as given."""
    code = f"void f() {{ a = {source}; b(c); }}"
    annotation = check(annotate(code, "java"), code)
    assert annotation.tokens[7] == (text, 15, 15 + len(source))
    assert annotation.tokens[9] == ("b", 17 + len(source), 18 + len(source))
    assert ("Assign:target->value", 5, 7, 7) in annotation.edges
    assert ("Call:func->args", 9, 11, 11) in annotation.edges


@pytest.mark.parametrize(
    "body",
    [
        "int x = ;",
        "x = (1;",
        "a + b;",
        "if (a) { b(); } else",
        "assert a > 0;",
        "assert f();",
        'assert a : "m";',
        "assert false;",
        "assert (a) > b;",
        "x = () -> { assert a > 0; };",
        "enum E { A }",
        "record R(int a) { }",
        "x = 0b1;",
        "x = 1_000;",
        "x = 0x1p3;",
        "switch (a) { case B b -> c(); }",
    ],
)
def test_a_syntax_error_of_java_1_3_empties_the_body(body):
    code = f"static int f(a.B c) {{ g(h); {body} }}"
    # a => B, a.B c => c
    signature = [
        ("children:parent->child", 4, 6, 6),
        ("children:parent->child", 4, 7, 7),
    ]
    assert annotate(code, "java").edges == signature
    assert annotate("static int f(a.B c) { g(h); }", "java").edges[-1] == (
        "children:parent->child",
        10,
        12,
        12,
    )


def test_the_variable_of_a_pattern_may_follow_its_type_at_once():
    code = "void f() { if (a instanceof B<C> b) d(e); }"
    assert annotate(code.replace("> b", ">b"), "java").edges == annotate(code, "java").edges != []


@pytest.mark.parametrize(
    "code, line, column, message",
    [
        ("", 1, 0, "found none"),
        ("  // nothing\n", 1, 0, "found none"),
        ("int x;", 1, 0, "found field declaration"),
        ("class A { void f() { } }", 1, 0, "found class declaration"),
        ("void f() { }\n  void g() { }", 2, 2, "found method declaration"),
        ("void f() { }\nint x = ;", 2, 0, "found 'int' after it"),
        ("void f() { }\nint x; int y;", 2, 0, "found field declaration"),
        ("; void f() { }", 1, 0, "found ;"),
        (";;", 1, 0, "found none"),
        ("void f( { }", 1, 7, "a syntax error"),
        ("void f(int) { a(); }", 1, 7, "a syntax error"),
        ("void f() {\n  if (a) {\n}", 1, 9, "no end"),
        ("void f() { } }", 1, 13, "found '}' after it"),
        ("void f() { } } class B { int x;", 1, 13, "found '}' after it"),
        ("} class B { void f() { }", 1, 10, "no end"),
        ("x + y", 1, 2, "a syntax error"),
        ('void f() {\n  a("b);\n}', 2, 4, "no end"),
        ("void f() { a('\\q'); }", 1, 13, "unknown escape"),
        ("void f() {\n  /* a();\n}", 2, 2, "no end"),
        ("void f() { a(#); }", 1, 13, "'#'"),
        ("void größe() { a — b; }", 1, 17, "'—'"),
        ("void f() {\n a('\\u00zz'); }", 2, 4, "four hexadecimal digits"),
        ("void f() { }\0", 1, 12, "NUL"),
        ('void f() {\n  a("\ud800"); }', 2, 5, "surrogate"),
        ("void f() { \\u0061 # }", 1, 18, "'#'"),
    ],
)
def test_what_is_no_method_is_refused_with_its_place(code, line, column, message):
    with pytest.raises(ParseError, match=re.escape(message)) as refused:
        annotate(code, "java")
    assert (refused.value.line, refused.value.column) == (line, column)


SCRAPS = [
    *SIGNS,
    *"a b.c int void f ( ) class case default if else for do try catch return new this assert".split(),
]


@pytest.mark.slow
@settings(max_examples=75, deadline=None)
@given(
    st.lists(st.one_of(st.sampled_from(SCRAPS), LITERALS), max_size=12),
    st.sampled_from(PUBLISHED),
)
def test_code_that_does_not_compile_has_labels_or_is_refused(words, variant):
    code = f"int f(a.B c) {{ {' '.join(words)} }}"
    try:
        annotation = check(annotate(code, "java", variant), code)
    except ParseError as refused:
        assert refused.line == 1
        assert 0 <= refused.column <= len(code)
    else:
        assert annotation.edges[0] == ("children:parent->child", 3, 5, 5)  # in the type a.B


@pytest.mark.parametrize(
    "code",
    ["void f();", "abstract int f(A a);", "void f() { };", "/** d */ void f() { } // c", "A() { }"],
)
def test_a_method_may_come_without_a_body_and_with_comments(code):
    assert annotate(code, "java").tokens == tokenize(code, "java")


@pytest.mark.parametrize(
    "code", ["", "}", "int x = ;", "class A { void f() { ", "a ? b", "<A", "0"]
)
def test_tokens_can_be_told_where_nothing_parses(code):
    assert "".join(token.text for token in tokenize(code, "java")) == code.replace(" ", "")


DEPTH = 3000


@pytest.mark.parametrize(
    "body, edges",
    [
        # Assign, value, left and right, DEPTH operands behind the first
        (
            "x = a" + " + a" * DEPTH + ";",
            3 + DEPTH,
        ),
        # nested: each two operands, the second of two itself
        (
            "x = a" + " + a * a" * DEPTH + ";",
            2 + 4 * DEPTH,
        ),
        ('x = "a"' + ' + "a"' * DEPTH + ";", 3 + DEPTH),
        # `x = ...f()` ends in brackets: no Assign and no value
        (
            "x = a" + ".f()" * DEPTH + ";",
            2 * DEPTH,
        ),
        ("x = " + "f(" * DEPTH + "a" + ")" * DEPTH + ";", 2 * DEPTH + 2),
        ("x = " + "(" * DEPTH + "a" + ")" * DEPTH + ";", 2),
        ("x = " + "- " * DEPTH + "a;", 2 + DEPTH),
        ("x = " + "(A) " * DEPTH + "a;", 2 + DEPTH),
        ("x = " + "a ? b : " * DEPTH + "c;", 2 + 5 * DEPTH),
        ("if (a) " * DEPTH + ";", 5 * DEPTH),
        ("if (a) b(); else " * DEPTH + "c();", 9 * DEPTH),
        ("{" * DEPTH + "a = b;" + "}" * DEPTH, 2),
        ("x = " + "(" * DEPTH + ";", 0),
    ],
)
def test_nesting_has_no_limit(body, edges):
    """Counted by hand, as the comments say; the last of them is a syntax error."""
    assert len(annotate(f"void f() {{ {body} }}", "java").edges) == edges
