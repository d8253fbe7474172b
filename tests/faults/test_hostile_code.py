"""Hostile code: what took seconds or minutes, or labels that depended on the interpreter's settings."""

from __future__ import annotations

import os

import pytest
from support.commands import python
from support.cpu_time import within

from codesyntax_dataset import annotate, sources, tokenize
from codesyntax_dataset.edits import edit
from codesyntax_dataset.errors import ParseError
from codesyntax_dataset.schema import Skips

pytestmark = pytest.mark.slow

LONG = {  # seconds only where a square is in it
    "named in subscripts": ("python", "def f(x):\n" + " x[(y := 1)]\n" * 3000),
    "starred in subscripts": ("python", "def f(x):\n" + " x[(1, *a)]\n" * 3000),
    "format specifications": ("python", "def f(x):\n x = [" + "f'{a:{b}}', " * 4000 + "]"),
    "one f-string": ("python", "def f(x):\n x = f'" + "{a:{b}}" * 4000 + "'"),
    "a sum": ("java", "int f() { return " + "1 + " * 15_000 + "1; }"),
    "a sum and a difference": ("java", "int f() { return " + "1 + 1 - " * 7_000 + "1; }"),
    "a sum in JavaScript": ("javascript", "x = " + "1 + " * 15_000 + "1"),
    "a sum in PHP": ("php", "function f() { return " + "1 + " * 15_000 + "1; }"),
    "a sum of texts": ("java", "String f() { return " + '"a" + ' * 4_000 + "a; }"),
}


@pytest.mark.parametrize("language, code", LONG.values(), ids=LONG)
def test_long_code_is_labelled_in_time(language, code):
    with within(10 * len(code) / 100_000):  # ten times what it takes here
        assert annotate(code, language).edges


TOO_LONG = {
    "a longer sum": "int f() { return " + "1+" * 60_000 + "1; }",
    "brackets that crash the parser": "int f() {" + "( ; " * 60_000 + "}",
    "types that fill the memory": "int f() { " + "a<" * 60_000 + " }",
}


@pytest.mark.parametrize("code", TOO_LONG.values(), ids=TOO_LONG)
def test_java_beyond_what_its_parser_survives_is_refused(code):
    with pytest.raises(ParseError, match="more than 100,000 tokens"):
        annotate(code, "java")


def test_code_that_the_parser_recovers_from_again_and_again_is_refused():
    with within(10), pytest.raises(ParseError, match="takes too long"):  # minutes with a square
        annotate("function f() { " + "->]" * 20_000 + " }", "typescript")


def test_short_code_that_the_parser_never_ends_with_is_refused():
    with within(5), pytest.raises(ParseError, match="cannot be read"):  # forever, and 20 GB
        annotate("[,Z" * 14, "typescript")


@pytest.mark.parametrize(
    "language, code",
    [
        ("go", "?>%w[b'" * 7_000),
        ("go", "]" * 7_000 + "?>%w[b'" * 7_000),
        ("go", "?>%w[b')" * 7_000),
        ("php", "==={{/*while" * 17_000),
    ],
)
def test_code_whose_repair_takes_ever_more_memory_is_refused(language, code):
    """A minute, and more than 10 GB."""
    with within(5), pytest.raises(ParseError):
        annotate(code, language)


def test_here_documents_that_crash_the_parser_are_refused():
    """In a process of its own, as a crash would end this one."""
    program = (
        "from codesyntax_dataset import annotate; annotate('x = ' + '/*<<finally<!--' * {}, 'ruby')"
    )
    for times, said in ((60, "something is missing"), (200, "too many here-documents")):
        ran = python(program.format(times), status=1)
        assert "ParseError: line 1" in ran.stderr
        assert said in ran.stderr
    many = (
        "def f\n" + "".join(f"  a{n} = <<~WORDS\n    text\n  WORDS\n" for n in range(300)) + "end"
    )
    assert annotate(many, "ruby").tokens  # one after the other


def test_the_layout_of_deep_brackets_is_edited_in_time():
    code = "def f\n  x = " + "(" * 10_000 + "1" + ")" * 10_000 + "\n  y = 2\nend"
    with within(3):  # seven seconds where a square is in it
        edited, _ = edit(code, "ruby", "layout")
    assert edited != code and code.split("\n")[1].strip() in edited  # what is in brackets stays


def test_a_file_that_the_parser_recovers_from_again_and_again_does_not_parse(tmp_path):
    (tmp_path / "a.ts").write_text("function f() { return 1 }")
    (tmp_path / "b.ts").write_text("->]" * 20_000)
    skips = Skips()
    assert len(list(sources.read(str(tmp_path), "typescript", skips))) == 1
    assert skips.counts == {"file does not parse": 1}


@pytest.mark.parametrize(
    "language, code, comment",
    [
        ("javascript", "function f() { return <p> some words, { x } and more </p>; } ) ]", "//"),
        ("ruby", "def f\n  x = <<~A\n    some text\n  A\nend ) ]", "#"),
    ],
)
def test_long_code_that_does_not_parse_has_the_tokens_of_short_code(language, code, comment):
    tokens = tokenize(code, language)
    # of plain text, whose ends are those of its letters
    assert any(" " in token.text for token in tokens)
    assert tokenize(f"{code}\n{comment}{' a comment' * 300}\n", language) == tokens


@pytest.mark.parametrize("limit", ["0", "640", "4300"])
def test_labels_do_not_depend_on_how_many_digits_are_converted(limit):
    integer = "1_" * 2500 + "1"
    code = f"def f(x):\n    return x + {integer} + f'{{{integer}}}' + {'0' * 5000}\n"
    program = (
        f"from codesyntax_dataset import annotate; print(annotate({code!r}, 'python').edges[-1])"
    )
    ran = python(program, env=os.environ | {"PYTHONINTMAXSTRDIGITS": limit})
    assert (ran.stdout, ran.stderr) == (
        str(annotate(code.replace(integer, "1"), "python").edges[-1]) + "\n",
        "",
    )


def test_a_long_number_that_python_refuses_is_refused():
    with pytest.raises(ParseError):
        annotate(f"def f():\n    return 0{'1' * 5000}\n", "python")


def test_a_long_number_without_a_blank_behind_it_is_refused():
    with pytest.raises(ParseError):
        annotate(f"def f(a):\n    return [{'9' * 5000}for b in g(a)]\n", "python")
