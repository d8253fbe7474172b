"""The Python annotator on rare and generated code, and against the standard library."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import re
import sys
import tokenize as standard
import warnings
from keyword import iskeyword

import pytest
from conftest import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st
from support.labels.grammars import expand
from support.labels.python_snippets import ALWAYS, BOUNDS, LATER, NEVER

from codesyntax_dataset import ParseError, annotate, tokenize
from codesyntax_dataset.languages.blocks import by_indentation
from codesyntax_dataset.schema import check

PUBLISHED = ["paper", "with_new_lines"]
"""The variants of the published labels; for the exact ones see `test_labels_exact`."""
while_standard = pytest.mark.skipif(
    sys.version_info >= (3, 12),
    reason="from Python 3.12 on, `tokenize` and f-strings are others than those of 3.9",
)

SAMPLE = [
    path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "codesyntax_dataset/sample").glob("**/*.py"))
]


def labels(code, variant="paper"):
    """Our labels, having checked what holds for all of them."""
    annotation = check(annotate(code, "python", variant), code)
    assert annotation.tokens == tokenize(code, "python", variant)
    assert all(code[start:end] == text for text, start, end in annotation.tokens)
    assert all(0 < head < first for _, head, first, _ in annotation.edges)
    return annotation


def plain(annotation):
    return [token.text for token in annotation.tokens], [tuple(edge) for edge in annotation.edges]


# --- Tokens -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code, texts",
    [  # by the rules of the tokenize module's documentation, and what Python 3.9.18 gave
        ('print "a", `b`\n', 'print¦"a"¦,¦ ¦`¦b¦`¦\n¦'),
        ("exec c in d", "exec¦c¦in¦d¦¦"),
        ("0777 + 1L <> 0xFFL", "0¦777¦+¦1¦L¦<¦>¦0xFF¦L¦¦"),
        ("ur'a' !=b $ c", "ur¦'a'¦!=¦b¦ ¦$¦c¦¦"),
        ("x = 'a", "x¦=¦ ¦'¦a¦¦"),
        ("def f((a)):\n  pass\n", "def¦f¦(¦(¦a¦)¦)¦:¦\n¦  ¦pass¦\n¦¦"),
        ("if a:\n\tb\n        c\nd", "if¦a¦:¦\n¦\t¦b¦\n¦c¦\n¦¦d¦¦"),
        ('f"{x}" rb\'\\\'\' F"""{\n}"""', 'f"{x}"¦rb\'\\\'\'¦F"""{\n}"""¦¦'),
        ("x # a\r\n\r\ny", "x¦# a¦\r\n¦\r\n¦y¦¦"),
        ("(\n# a\n\n)\n", "(¦\n¦# a¦\n¦\n¦)¦\n¦"),
        ("x\n   ", "x¦\n¦"),
        ("x\n # a", "x¦\n¦# a¦¦"),
        ('"""\n# a"""', '"""\n# a"""¦'),
        ("", ""),
    ],
)
def test_tokens_of_code_that_need_not_parse(code, texts):
    tokens = tokenize(code, "python")
    assert [token.text for token in tokens] == texts.split("¦")
    assert all(code[start:end] == text for text, start, end in tokens)


@pytest.mark.parametrize(
    "code, line, column",
    [
        ("x = (1,\n     2", 2, 6),
        ("x = 1)\n", 2, 0),
        ("x = 1 \\\n", 2, 0),
        ('é = """a\n', 1, 4),
        ("x = 'a\\\nb", 1, 4),
        ("if x:\n    y\n  z", 3, 2),
        ("x\n  \\\n  = 1", 2, 2),
        ("x = 1\ny\0", 2, 1),
        ("x = 1\ry", 1, 5),
        ("x = '\ud800'", 1, 5),
        ("x = \N{GRINNING FACE}", 1, 4),
    ],
)
def test_where_tokens_cannot_be_told(code, line, column):
    with pytest.raises(ParseError) as caught:
        tokenize(code, "python")
    assert (caught.value.line, caught.value.column) == (line, column)


# --- Generated functions ---------------------------------------------------------------------------------------------

BREAKS = [
    "\n",
    "\n    ",
    "\n        ",
    "\n\t",
    "  # a\n  ",
    "\n\n    ",
    "\n  # a\n",
    " \\\n  ",
    "\n \\\n   ",
    "\n\f  ",
]


def lay_out(words, random):
    """Code of the words: blocks indented somehow, words as near as they may be, and lines broken inside brackets."""
    code, columns, brackets = "", [0], 0
    blank = random.choice("\t   ")
    for word, after in zip(words, [*words[1:], "⏎"]):
        if word in "⏎⇥⇤":
            if word == "⇥":
                columns.append(columns[-1] + random.choice([1, 2, 4, 4, 8]))
            elif word == "⇤":
                columns.pop()
            if word != "⇤":
                code += random.choice(["\n", "\n", "\n", "  # a\n", " \n", "\n\n", "\n  # a\n"])
            continue
        if code.endswith("\n") and not brackets:
            code += blank * columns[-1]
        code += word
        brackets += (word in "([{") - (word in ")]}")
        if after in "⏎⇥":
            continue
        is_one_word = re.match(r"\w\w|[\d.][\w.]", word[-1] + after) or (
            after[0] in "'\"" and not iskeyword(word)
        )
        if brackets and random.random() < 0.15:
            code += random.choice(BREAKS)
        elif is_one_word or random.random() < 0.5:
            code += random.choice([" "] * 8 + ["  ", "\t", " \\\n   "])
    return code


@st.composite
def functions(draw):
    random = draw(st.randoms(use_true_random=False))
    code = lay_out(expand("python", "FUNCTION", random, draw(st.integers(2, 9))), random)
    return draw(
        st.sampled_from(
            [code, code.rstrip(), code.rstrip(), code.rstrip() + "\n   ", code.rstrip() + "\n# a"]
        )
    )


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(functions(), st.sampled_from(PUBLISHED))
def test_line_breaks_of_another_system_give_the_same_labels(code, variant):
    tokens, edges = plain(labels(code, variant))
    tokens = [text.replace("\n", "\r\n") for text in tokens]
    assert plain(labels(code.replace("\n", "\r\n"), variant)) == (tokens, edges)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(functions())
def test_characters_beyond_ascii_give_the_same_labels(code):
    tokens, edges = plain(labels(code))

    def widen(text):
        """The same with characters of two and three bytes."""
        return re.sub(r"\b[yz]\b", lambda name: {"y": "ÿ", "z": "数"}[name[0]], text)

    assert plain(labels(widen(code))) == ([widen(text) for text in tokens], edges)


# --- The standard library --------------------------------------------------------------------------------------------

PIECES = [
    *"a b r f 0 1 . , : = ( ) [ ] { } + * < ! $ ? ` ~ @ \\ # ' \" \t \f é ² ٣ · “".split(" "),
    *"rb x1 01 0x1 0b1 1e5 1. .5 1_0 1__0 1j 1L **= -> := ... <>".split(),
    *('"""', "'''", '"a"', "rb'x'", "\u0301", "# c", "if x:\n    y"),
    *("\\\n", "\n", "\n", "\n    ", "\n  ", "\n\t", " ", "  ", "\r\n", "\\\r\n"),
]


@pytest.mark.slow
@while_standard
@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_tokens_are_the_standard_ones(code):
    try:
        expected = [
            token.string
            for token in standard.generate_tokens(io.StringIO(code, newline="\n").readline)
        ]
    except (standard.TokenError, IndentationError):
        expected = None
    try:
        ours = [token.text for token in tokenize(code, "python")]
    except ParseError as error:
        refused = re.search("this string does not end|starts with a backslash", str(error))
        assert expected is None or refused
    else:
        assert ours == expected


FIELDS = [
    *"{ } {{ }} x y 1 ! = : > < ( ) [ ] , ' \" \\ \n # \t é $".split(" "),
    *"!r !s !x == != >= {x} {x!r:>{w}} {x=} {f'{y}'} (x:=1) *a, a['b']".split(),
    *"\\n \\x41 \\x4 \\{ \\N{BULLET} \"\"\" '''".split(),
    *(" ", "lambda x: 1", "yield x", "# c"),
]


@pytest.mark.slow
@while_standard
@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["f", "F", "rf", "Rf", "fR"]),
    st.sampled_from(["'", '"', "'''", '"""']),
    st.lists(st.sampled_from(FIELDS), max_size=7).map("".join),
    st.sampled_from(["", " 'a'", " b'a'", ' f"{z:3}"']),
)
def test_f_strings_are_accepted_where_the_parser_of_3_9_accepts_them(prefix, quotes, body, after):
    code = f"x = {prefix}{quotes}{body}{quotes}{after}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(code)
            accepted = True
        except SyntaxError:
            accepted = False
    if accepted:
        labels(code)
    else:
        with pytest.raises(ParseError):
            annotate(code, "python")


PINNED = "c6b5ecdcea9b9da9f21639f1a06d5c5015cc04fe66c876e0b82720096cc5bf5c"


# --- One grammar for all interpreters --------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [*LATER.values(), *NEVER.values()], ids=[*LATER, *NEVER])
def test_what_python_3_9_refuses_is_an_error(code):
    with pytest.raises(ParseError):
        annotate(code, "python")


@pytest.mark.parametrize("code", ALWAYS.values(), ids=ALWAYS)
@pytest.mark.slow
def test_what_python_3_9_accepts_is_labelled(code):
    for variant in PUBLISHED:
        labels(code, variant)


@pytest.mark.slow
def test_labels_of_rare_code_are_pinned():
    """All tokens and edges, or that there are none: those of the published procedure, with any interpreter."""
    digest = hashlib.sha256()
    for code in (*LATER.values(), *NEVER.values(), *ALWAYS.values()):
        for variant in PUBLISHED:
            for read in (annotate, tokenize):
                try:
                    found = read(code, "python", variant)
                except ParseError:
                    found = None
                digest.update(json.dumps(found).encode())
    assert digest.hexdigest() == PINNED


@pytest.mark.parametrize("code", SAMPLE)
def test_whole_files_are_labelled(code):
    assert len(labels(code).edges) > 100


@pytest.mark.parametrize("nested, bound, message", BOUNDS.values(), ids=BOUNDS)
def test_nesting_is_bounded(nested, bound, message):
    labels(nested(bound))
    with pytest.raises(ParseError, match=message):
        annotate(nested(bound + 1), "python")


@pytest.mark.parametrize(
    "code", ["x\r\n" * 5001, "x[(\r\n  a := 1)]", "x = [" + "[a], {b}, " * 101 + "]"]
)
@pytest.mark.slow
def test_what_is_neither_long_nor_nested_is_labelled(code):
    labels(code)


@pytest.mark.parametrize("opening, closing", ["()", "[]", "{}"])
def test_a_star_in_an_index_needs_brackets_around_all_of_it(opening, closing):
    labels(f"x[(a, {opening}b{closing}, *c)]")
    with pytest.raises(ParseError):
        annotate(f"x[{opening}b{closing}, *c]", "python")


@pytest.mark.slow
def test_long_runs_of_what_begins_no_token_end_soon():
    """Minutes if each of their characters were tried with all behind it."""
    blanks = " " * 50_000
    tokens = tokenize(f"x = 1{blanks}$", "python")
    assert [token.text for token in tokens[:4]] == ["x", "=", "1", " "]
    assert [token.start for token in tokens[3:50_004]] == list(range(5, 50_006))
    with pytest.raises(ParseError, match="begin no string, more than 100 of them"):
        tokenize('x = "' + '\\"' * 50_000, "python")
    assert len(tokenize('x = "' + '\\"' * 99, "python")) == 4 + 2 * 99 + 2


@pytest.mark.slow
@pytest.mark.parametrize("nested, bound, message", BOUNDS.values(), ids=BOUNDS)
def test_nesting_far_beyond_the_bound_is_refused(nested, bound, message):
    with pytest.raises(ParseError, match=f"{message}|nested too deeply|an expression of more than"):
        annotate(nested(min(30 * bound, 100_000)), "python")


@pytest.mark.parametrize("inside", ["(lambda: x)", "x[a:b]", " {a: b} "])
def test_a_colon_in_brackets_begins_no_format(inside):
    labels(f"f'{{{inside}:>9}}'")


@pytest.mark.parametrize(
    "string, message",
    [
        ("f'{a\n}'", "this string does not end"),
        ('f"{a\n}"', "this string does not end"),
        ("f'{\"}'", "'\"' in an expression"),
        ('f"{\'}"', '"\'" in an expression'),
        ("f'{#}'", "'#' in an expression"),
    ],
)
def test_what_is_wrong_with_a_formatted_string_is_told(string, message):
    with pytest.raises(ParseError, match=message):
        annotate(string, "python")


def test_a_block_is_the_lines_of_at_least_the_same_indentation():
    code = "if a:\n    b\n    c\nd"
    blocks = by_indentation(code, tokenize(code, "python", "exact"))
    assert blocks == [(0, 5)] * 3 + [(3, 4)] * 2 + [(0, 5)]


def test_syntax_error_has_its_place():
    with pytest.raises(ParseError) as caught:
        annotate("def f():\n    é = = 1", "python")
    assert (caught.value.line, caught.value.column) == (2, 8)


def test_warnings_are_neither_given_nor_changed():
    code = r'def f(x): return "\d" + 1if x is 1else f"\d{x}"'
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = list(warnings.filters)
        labels(code)
        assert warnings.filters == before
