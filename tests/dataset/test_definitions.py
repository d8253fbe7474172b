"""What is labelled alone is a row of a built dataset: in a file, in a class, and beside what cannot be read."""

from __future__ import annotations

import re
from textwrap import indent

import pytest
from support.labels.golden_pairs import cases

from codesyntax_dataset import annotate
from codesyntax_dataset.languages.variants import EXACT
from codesyntax_dataset.schema import Skips
from codesyntax_dataset.sources import read

AROUND = {
    "python": ("{}", "class A:\n{}", "def b(:\n    x\n\n{}", "class A:\n    x = = 1\n\n{}"),
    "java": (
        "class A {{\n{}\n}}",
        "class A {{\n    int b = ;\n{}\n}}",
        "class A {{\n    b( {{ ]\n{}\n}}",
    ),
    "javascript": ("{}", "const b = ;\n{}", "function b( {{ ]\n}}\n{}"),
    "typescript": ("{}", "const b: = 1\n{}", "function b( {{ ]\n}}\n{}"),
    "go": ("package p\n{}", "package p\nfunc b( {{ ]\n}}\n{}"),
    "php": ("<?php\n{}", "<?php\nclass A {{\n{}\n}}", "<?php\nfunction b( {{ ]\n}}\n{}"),
    "ruby": ("{}", "class A\n{}\nend", "module M\n    def b( ]\n    end\n{}\nend"),
    "rust": ("{}", "impl A {{\n{}\n}}", "fn b( {{ ]\n}}\n{}"),
}
"""Language -> files around a function: alone, in a class, behind what cannot be read."""

IN_LINES = re.compile(r"\'\'\'|\"\"\"|`|\\\n|<<|<\w+>\n|=begin|\?>")
"""Strings of several lines, whose indentation is part of them."""

METHOD = "class A {{\n{}\n}}", "class A {{\n    b = ;\n{}\n}}", "class A {{\n    b( {{ ]\n{}\n}}"
SUFFIXES = {
    "python": "py",
    "java": "java",
    "javascript": "js",
    "typescript": "ts",
    "go": "go",
    "php": "php",
    "ruby": "rb",
    "rust": "rs",
}


def config_of(language):
    return f"{language}_exact" if language in ("python", "java") else language


def rows(tmp_path, language, texts):
    """The functions of a folder with these files."""
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.{SUFFIXES[language]}").write_text(text)
    return list(read(str(tmp_path), config_of(language), Skips(), validation_fraction=0))


def files(language, code):
    """The function in each file around it; one without a name is the value of a variable."""
    around = AROUND[language]
    if language in ("javascript", "typescript"):
        if re.match(r"get |add\(|public ", code):
            around = METHOD
        elif not re.match(r"(async )?function\b", code):
            code = f"const f = {code}"
    if language == "php" and re.match(
        r"(public|static|final|#\[|abstract|private|protected)\b", code
    ):
        around = around[1:2]
    inside = re.compile(r"class|<\?php\nclass|impl|module")
    return [text.format(indent(code, "    ") if inside.match(text) else code) for text in around]


@pytest.mark.slow
@pytest.mark.parametrize("language", AROUND)
def test_every_golden_function_is_a_row_of_each_file_around_it(tmp_path, language):
    missing, count = [], 0
    for case in cases(language, of=[EXACT.name]):
        code = case.values[0]
        if code.startswith("const ") or IN_LINES.search(code):
            continue
        alone = annotate(code, language, EXACT.name)
        for text in files(language, code):
            folder = tmp_path / f"{count}"
            folder.mkdir()
            count += 1
            labelled = [
                annotate(function.code, language, EXACT.name)
                for function in rows(folder, language, [text])
            ]
            edges = [edge for annotation in labelled for edge in annotation.edges]
            if sorted(each.relation for each in edges) != sorted(
                each.relation for each in alone.edges
            ):
                missing.append(text)
    assert count > 15
    assert not missing, "\n\n".join(missing)


LOST = {
    "javascript": [
        "class A {\n  m(x) {\n    const g = (f) => { return f }\n\n    [...x].forEach(g)\n  }\n  n() {}\n}",
        "const f = (x) => { return x }\n(function () { g(f) })()\nfunction g() {}",
    ],
    "ruby": [
        "class A\n  def f() = raise E\n  def g(x)\n    x\n  end\n  def h = x y\nend",
        "def f(x, &)\n  g x, &\nend\ndef j(x) = g x do y end\ndef k(x) = x",
    ],
    "typescript": [
        "interface A { (a: b): c\n<T>(d: e): f }\nfunction g() {}",
        "type A = { x: B\n  <U>(b: U): void }\nclass C { in: D\n  m() {} }\nfunction g() {}",
        "const x: {\n  (a: b): c\n  // d\n  <T>(e: T): f\n} = dual<\n  <T>(a: T) => T\n>(1, (a) => {\n  return a!.b\n})\nfunction g() {}",
    ],
    "java": [
        "record A(int x) { A { x = 1; } }\nenum B { C { void m() { } }; int n() { return 1; } }",
        "class A { Runnable r = new B() { public void run() { } }; static { new C() { int m() { return 1; } }; } }",
    ],
}
"""Files that a grammar alone loses functions of."""

NAMES = {
    "javascript": [["A.m", "A.n"], ["f", "g"]],
    "ruby": [["A.f", "A.g", "A.h"], ["f", "j", "k"]],
    "typescript": [["g"], ["C.m", "g"], ["x", "g"]],
    "java": [["A.A", "B.C.m", "B.n"], ["A.run", "A.m"]],
}


@pytest.mark.parametrize("language", LOST)
def test_functions_that_a_grammar_loses_are_rows_with_labels(tmp_path, language):
    functions = rows(tmp_path, language, LOST[language])
    for number, names in enumerate(NAMES[language]):
        of_file = [each for each in functions if each.path.startswith(f"{number}.")]
        assert [each.func_name for each in of_file] == names
    for each in functions:
        assert annotate(each.code, language, EXACT.name).tokens


def test_only_named_types_have_the_methods_of_published_configs(tmp_path):
    (tmp_path / "A.java").write_text("\n".join(LOST["java"]))
    functions = read(str(tmp_path), "java", Skips(), validation_fraction=0)
    assert [function.func_name for function in functions] == ["B.n"]


def test_code_in_comments_and_strings_is_no_function(tmp_path):
    text = "/*\nfunction a() {}\n*/\nconst s = `\nfunction b() {}\n`;\nfunction c( { ]\n}\nfunction d() {}\n"
    assert [each.func_name for each in rows(tmp_path, "javascript", [text])] == ["d"]


def test_what_is_lost_and_what_is_not_looked_at_is_counted(tmp_path):
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".git").mkdir()
    texts = {
        "a.py": "def f(:\n    x\n\ndef g(): pass\nx = = 1\ny = = 1\n",
        "b.py": "def f(:\n    x\n",
        "c.pyi": "",
        "tool": "#!/usr/bin/env python3\n",
        "shell": "#!/bin/sh\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    skips = Skips()
    assert len(list(read(str(tmp_path), "python_exact", skips, validation_fraction=0))) == 1
    assert skips.names == {
        "hidden folder is not looked at": [".hidden"],
        ".pyi file is not looked at": ["c.pyi"],
        "script without a suffix is not looked at": ["tool"],
        "function does not parse": ["a.py#L1", "b.py#L1"],
        "file has code outside of functions that does not parse": ["a.py#L5"],
        "file does not parse": ["b.py#L1"],
    }
