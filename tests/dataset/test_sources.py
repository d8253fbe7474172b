"""Every form of source yields the same rows, in the same order, and says where it is broken."""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import json
import os
import re
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.hub.loopback_hub import LoopbackHub

from codesyntax_dataset import annotate, corpus, safe_files
from codesyntax_dataset.errors import SourceError
from codesyntax_dataset.languages import CONFIGS, LANGUAGES
from codesyntax_dataset.schema import Edge, Skips, SourceFunction, Token
from codesyntax_dataset.sources import codesearchnet, published, read

# --------------------------------------------------------------------------------- CodeSearchNet v2


def row(name, partition="test", language="python", **changes):
    """A row with the fields of CodeSearchNet v2."""
    code = (
        f"def {name}(x):\n    return x"
        if language == "python"
        else f"int {name}(int x) {{\n  return x;\n}}"
    )
    url = f"https://example.org/owner/{name}#L1-L2"
    return {
        "repo": "owner/name",
        "path": f"{name}.src",
        "func_name": name,
        "original_string": code,
        "language": language,
        "code": code,
        "code_tokens": [],
        "docstring": "",
        "docstring_tokens": [],
        "sha": "0",
        "url": url,
        "partition": partition,
    } | changes


def jsonl(rows):
    return gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode())


def members(language="python"):
    """The files of one language: three test functions in two files, `_10` after `_9`, and one to validate."""
    test, valid = (
        f"{language}/final/jsonl/test/{language}_test",
        f"{language}/final/jsonl/valid/{language}_valid",
    )
    return {
        f"{test}_10.jsonl.gz": jsonl([row("third", language=language)]),
        f"{test}_9.jsonl.gz": jsonl(
            [row("first", language=language), row("second", language=language)]
        ),
        f"{valid}_0.jsonl.gz": jsonl([row("fourth", "valid", language)]),
        f"{language}/final/jsonl/train/{language}_train_0.jsonl.gz": b"training data is not even opened",
    }


def write(folder, files):
    for name, data in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return str(folder)


def zipped(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def read_all(source, config="python"):
    return list(read(source, config, Skips()))


EXPECTED = [("first", "test"), ("second", "test"), ("third", "test"), ("fourth", "validation")]


def names(functions):
    return [(function.func_name, function.partition) for function in functions]


@pytest.mark.parametrize("config", ["python", "java_skip_semicolon", "javascript"])
def test_codesearchnet_reads_the_same_from_a_folder_a_language_folder_a_zip_and_a_folder_of_zips(
    tmp_path, config
):
    language = CONFIGS[config][0]
    tree = write(tmp_path / "tree", members("go") | members(language))
    zips = write(
        tmp_path / "zips", {f"{name}.zip": zipped(members(name)) for name in ("go", language)}
    )
    sources = [tree, f"{tree}/{language}", f"{zips}/{language}.zip", zips]
    first, *others = [read_all(source, config) for source in sources]
    assert names(first) == EXPECTED
    assert others == [first] * 3
    expected = row("first", language=language)
    assert first[0] == SourceFunction(
        language, expected["code"], "owner/name", "first.src", "first", expected["url"], "test"
    )


TEST_FILE = "python/final/jsonl/test/python_test_0.jsonl.gz"
GOOD_LINE = json.dumps(row("first")).encode() + b"\n"


def without(field):
    return json.dumps(
        {name: value for name, value in row("second").items() if name != field}
    ).encode()


BROKEN_LINES = {
    "field 'code' is missing": without("code"),
    "field 'repo' is missing": without("repo"),
    "field 'code' is NoneType": json.dumps(row("f", code=None)).encode(),
    "byte 0xff is not UTF-8": b'{"code": "\xff"}',
    "Unterminated string .* expected JSON": GOOD_LINE[:40],
    "Expecting value .* expected JSON": b"\n" + GOOD_LINE,  # an empty line
    "list instead of an object": b"[1]\n",
    "JSON nested too deeply": b"[" * 100_000,
    ".* surrogate": json.dumps(row("f", code="\ud800")).encode(),
    "language 'java'": json.dumps(row("f", language="java")).encode(),
    ".*'valid'": json.dumps(row("f", partition="valid")).encode(),
}


@pytest.mark.parametrize("complaint", BROKEN_LINES)
def test_codesearchnet_names_the_file_and_the_line_that_are_broken(tmp_path, complaint):
    source = write(tmp_path, {TEST_FILE: gzip.compress(GOOD_LINE + BROKEN_LINES[complaint])})
    with pytest.raises(SourceError, match=f"(?s)python_test_0.jsonl.gz, line 2: {complaint}"):
        read_all(source)


@pytest.mark.parametrize(
    "data, complaint",
    [
        (gzip.compress(GOOD_LINE * 50)[:-20], "is the file complete"),
        (GOOD_LINE, "line 1: cannot be read .*gzipped"),
    ],
    ids=["cut", "not compressed"],  # the bytes have the time in them
)
def test_codesearchnet_names_the_file_that_is_no_whole_gzip(tmp_path, data, complaint):
    source = write(tmp_path, {TEST_FILE: data})
    with pytest.raises(SourceError, match=f"(?s)python_test_0.jsonl.gz, .*{complaint}"):
        read_all(source)


def test_a_line_too_long_to_be_a_function_is_refused_before_it_is_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(codesearchnet, "LONGEST_LINE", 1000)
    source = write(tmp_path, {TEST_FILE: gzip.compress(GOOD_LINE + b" " * 10_000_000)})
    with pytest.raises(SourceError, match=r"line 2: longer than 1000 bytes"):
        read_all(source)


def test_codesearchnet_without_test_functions_or_the_language_says_which_file_it_misses(tmp_path):
    source = write(tmp_path, {TEST_FILE: jsonl([row("first")])})
    assert names(read_all(source)) == [("first", "test")]  # a validation partition may be missing
    with pytest.raises(SourceError, match=r"no java functions for test: .*java_test_0.jsonl.gz"):
        read_all(source, "java")


def test_a_damaged_zip_is_refused(tmp_path):
    whole = zipped(members())
    with pytest.raises(SourceError, match=r"python.zip: not a zip archive"):
        read_all(write(tmp_path, {"python.zip": whole[: len(whole) // 2]}))
    middle = whole.index(b"\x1f\x8b") + 30  # in the data of the first member
    with pytest.raises(
        SourceError,
        match=r"python_test_10.jsonl.gz, line 1: cannot be read",
    ):
        read_all(
            write(tmp_path, {"python.zip": whole[:middle] + b"\0\0\0\0" + whole[middle + 4 :]})
        )


# ---------------------------------------------------------------------------- the published dataset

PYTHON = {
    "code": "def f(x):\n    if x:\n        return 'a b'\n    return y",
    "tokens": [
        *("def", "f", "(", "x", ")", ":", "\n", "    ", "if", "x", ":", "\n"),
        *("        ", "return", "'a b'", "\n", "", "return", "y", "", "", ""),
    ],
    "id": 8679,
    "relns": {"If:if->test": [[8, 9, 9]], "If:test->body": [[9, 13, 15]]},
}


def spans(text):
    return [list(map(int, span.split("-"))) for span in text.split()]


PYTHON_OFFSETS = spans(  # counted by hand
    "0-3 4-5 5-6 6-7 7-8 8-9 9-10 10-14 14-16 17-18 18-19 19-20 "
    "20-28 28-34 35-40 40-41 45-45 45-51 52-53 53-53 53-53 53-53"
)
JAVA = {
    "code": "int f() {\n  // f(\n  return /* 1\n */ \\u0061 /b;\n}",
    "tokens": "int f ( ) { ⏎ ⏎ return ⏎ a / b ; ⏎ }".replace("⏎", "\n").split(" "),
    "id": 11009,
    "relns": {"InfixExpr:left->right": [[9, 11, 11]]},
}
JAVA_OFFSETS = spans(  # counted by hand; the break at 29 is in a comment, and \u0061 spells a
    "0-3 4-5 5-6 6-7 8-9 9-10 17-18 20-26 31-32 36-42 43-44 44-45 45-46 46-47 47-48"
)


def labels(*functions):
    return json.dumps(list(functions)).encode()


def test_published_labels_pass_through_with_their_ids_and_the_offsets_of_their_tokens(tmp_path):
    validation = PYTHON | {"id": 8680}
    (first, second) = read_all(
        write(tmp_path, {"CodeSyntax_python.json": labels(validation, PYTHON)})
    )
    assert (first.id, first.partition, second.id, second.partition) == (
        8679,
        "test",
        8680,
        "validation",
    )
    assert first.annotation.tokens == [
        Token(text, *at) for text, at in zip(PYTHON["tokens"], PYTHON_OFFSETS, strict=True)
    ]
    assert first.annotation.edges == [
        Edge("If:if->test", 8, 9, 9),
        Edge("If:test->body", 9, 13, 15),
    ]
    assert first.code == PYTHON["code"]


def test_published_java_tokens_are_found_behind_comments_and_escapes(tmp_path):
    source = write(tmp_path, {"CodeSyntax_java_with_new_lines.json": labels(JAVA)})
    (function,) = read_all(source, "java_with_new_lines")
    assert function.annotation.tokens == [
        Token(text, *at) for text, at in zip(JAVA["tokens"], JAVA_OFFSETS, strict=True)
    ]
    assert (function.id, function.partition) == (11009, "validation")


def test_a_surrogate_pair_of_escapes_is_one_published_character(tmp_path):
    code = 'char[] f() { return "\\ud83d\\ude00"; }'
    entry = {"code": code, "tokens": ["return", '"\U0001f600"', ";"], "id": 0, "relns": {}}
    assert published.locate(entry["tokens"], code[13:], LANGUAGES["java"].between_tokens) == [
        Token("return", 0, 6),
        Token('"\U0001f600"', 7, 21),
        Token(";", 21, 22),
    ]


def test_published_files_are_found_by_config_in_files_zips_and_folders(tmp_path):
    files = {
        "CodeSyntax_python.json": labels(PYTHON),
        "CodeSyntax_python_with_new_lines.json": labels(PYTHON | {"id": 1}),
        "CodeSyntax_java_skip_semicolon.json": labels(JAVA | {"id": 2**63 - 1}),
    }
    write(tmp_path / "folder", files)
    write(
        tmp_path / "zips",
        {"CodeSyntax.zip": zipped({f"CodeSyntax/{name}": data for name, data in files.items()})},
    )
    for source in ("folder", "zips", "zips/CodeSyntax.zip"):
        for config, number in [
            ("python", 8679),
            ("python_with_new_lines", 1),
            ("java_skip_semicolon", 2**63 - 1),
        ]:
            assert [function.id for function in read_all(str(tmp_path / source), config)] == [
                number
            ]
    with pytest.raises(SourceError, match="has the published labels of python, not of java"):
        read_all(str(tmp_path / "folder" / "CodeSyntax_python.json"), "java")


@pytest.mark.parametrize("member", ["CodeSyntax.zip", "CodeSyntax_python.json"])
def test_a_published_file_is_read_up_to_a_size(tmp_path, monkeypatch, member):
    data = labels(PYTHON)
    content = data if member.endswith(".json") else zipped({"CodeSyntax_python.json": data})
    source = write(tmp_path, {member: content})
    monkeypatch.setattr(published, "LARGEST_FILE", len(data))
    assert len(read_all(source)) == 1
    monkeypatch.setattr(published, "LARGEST_FILE", len(data) - 1)
    with pytest.raises(SourceError, match=f"{len(data)} bytes|larger than"):
        read_all(source)


def test_a_published_function_whose_tokens_are_not_in_its_code_is_kept_without_labels_and_counted(
    tmp_path,
):
    skips = Skips()
    wrong = PYTHON | {"id": 7, "tokens": ["def", "g"], "relns": {}}
    found = list(
        read(write(tmp_path, {"CodeSyntax_python.json": labels(PYTHON, wrong)}), "python", skips)
    )
    assert [len(function.annotation.tokens) for function in found] == [22, 0]
    assert skips.counts == {"published tokens are not in the code": 1}
    assert skips.names == {"published tokens are not in the code": ["7"]}


BROKEN_LABELS = {
    "line 1: .*expected JSON": labels(PYTHON)[:-9],
    "line 3: byte 0xe9 is not UTF-8": b"[\n\n\xe9]",
    "dict, expected a list": b"{}",
    "entry 0: field 'code' is missing": labels({}),
    "entry 1: id is '8'": labels(PYTHON, PYTHON | {"id": "8"}),
    f"entry 0: id is {2**63}": labels(PYTHON | {"id": 2**63}),
    "entry 0: id is True": labels(PYTHON | {"id": True}),
    "id 8679: tokens are not": labels(PYTHON | {"tokens": "def"}),
    "id 8679: tokens are not a list of texts": labels(PYTHON | {"tokens": ["\ud800"]}),
    "id 8679: relns is not an object": labels(PYTHON | {"relns": []}),
    r"id 8679: r has \[1, 2\]": labels(PYTHON | {"relns": {"r": [[1, 2]]}}),
    "id 8679: edge 0 .* tokens below 22": labels(PYTHON | {"relns": {"r": [[1, 2, 22]]}}),
    "id 8679: edge 0 .* is 22 -> 1..2": labels(PYTHON | {"relns": {"r": [[22, 1, 2]]}}),
    "id 8679: edge 0 .*first <= last": labels(PYTHON | {"relns": {"r": [[1, 3, 2]]}}),
}


@pytest.mark.parametrize("complaint", BROKEN_LABELS)
def test_a_broken_published_file_is_refused_with_its_name(tmp_path, complaint):
    source = write(tmp_path, {"CodeSyntax_python.json": BROKEN_LABELS[complaint]})
    with pytest.raises(SourceError, match=f"(?s)CodeSyntax_python.json.*{complaint}"):
        read_all(source)


# ------------------------------------------------------------------------- a folder of source files

MODULE = '''\
"""A module."""
import os; π = "π"

@decorated
def first(x):
    """π"""
    def inner():
        return x
    return inner  # not the comment


class Outer(object):
    a = 1

    async def second(self): return "π", 1  # one

    class Inner:
        @property
        def third(self):
            return (1,
  2)
'''
JAVA_FILE = """\
package a;
/** Javadoc. */
public class Outer {
  int field = 1;
  Outer() { }
  /** More. */
  @Override
  public int first(int x) {
    Runnable r = new Runnable() { public void run() { } };
    return x; // π
  }
  abstract void none();
  interface Inner { default void second() { } }
  enum Colour { RED; int third() { return 3; } }
}
"""


def test_python_functions_are_cut_out_as_codesearchnet_does(tmp_path):
    functions = read_all(
        write(tmp_path / "project", {"package/module.py": MODULE.encode(), "notes.txt": b"\xff"})
    )
    assert [(function.func_name, function.url, function.code) for function in functions] == [
        (
            "first",
            "package/module.py#L5-L9",
            'def first(x):\n    """π"""\n    def inner():\n        return x\n    return inner',
        ),
        ("Outer.second", "package/module.py#L15-L15", 'async def second(self): return "π", 1'),
        (
            "Outer.Inner.third",
            "package/module.py#L19-L21",
            "def third(self):\n            return (1,\n  2)",
        ),
    ]
    assert {(function.repo, function.path, function.partition) for function in functions} == {
        ("project", "package/module.py", "test")
    }


def test_python_functions_in_statements_of_a_module_count(tmp_path):
    text = (
        "if A:\n    def f(): return 1\nelse:\n    async def g(): pass\n"
        "try:\n    class C:\n        if B:\n            def h(self): pass\nexcept E:\n    def i(): pass\n"
        "finally:\n    with j:\n        def k(): pass\nmatch l:\n    case 1:\n        def m(): pass\n"
    )
    functions = read_all(write(tmp_path, {"a.py": text.encode()}))
    assert [function.func_name for function in functions] == "f g C.h i k m".split()
    assert functions[0].code == "def f(): return 1"


def test_java_methods_are_cut_out_with_their_modifiers_and_without_their_javadoc(tmp_path):
    functions = read_all(write(tmp_path, {"Outer.java": JAVA_FILE.encode()}), "java")
    assert [(function.func_name, function.url, function.code) for function in functions] == [
        (
            "Outer.first",
            "Outer.java#L7-L11",
            "@Override\n  public int first(int x) {\n    Runnable r = new Runnable() { public void run() { } };\n"
            "    return x; // π\n  }",
        ),
        ("Outer.Inner.second", "Outer.java#L13-L13", "default void second() { }"),
        ("Outer.Colour.third", "Outer.java#L14-L14", "int third() { return 3; }"),
    ]


def test_java_constructors_are_functions_where_labels_are_exact(tmp_path):
    text = "class A {\n  /** It. */\n  A(int x) { this(x, 1); }\n  int f() { return 1; }\n  enum B { C; B() { } }\n}\n"
    source = write(tmp_path, {"A.java": text.encode()})
    constructors = [("A.A", "A(int x) { this(x, 1); }"), ("A.B.B", "B() { }")]
    for config, expected in (
        ("java", []),
        ("java_skip_semicolon", []),
        ("java_exact", constructors),
    ):
        found = {function.func_name: function.code for function in read_all(source, config)}
        assert found.pop("A.f") == "int f() { return 1; }"
        assert found == dict(expected)


CUT_OUT = {}
"""Language -> a file, where its first function stands, and its functions: those that have a name, or are given one."""

CUT_OUT["javascript"] = (
    "a.mjs",
    """\
async function a() { function inner() {} }
const b = () => 1, { c } = d;
exports.e = function (x) {};
module.exports = { f: function* () {}, get g() { return 1 }, h: x => x };
export class I {
  static async j() {} // π
  #k = async () => {};
  [Symbol.iterator]() {}
}
(function () { "π"; var l = function () {}; })();
on("click", function m() {});
export default () => 1;
app.get("/n", async (x) => { return x.y });
const O = memo(forwardRef((p) => { return <p/> })), q = r.map((s) => s + 1);
describe("t", () => { it("u", function () { return 1 }); });
define(["v"], function () { function w() {} });
x.then(y).on(`z`, () => { return 1 });
""",
    "#L1-L1",
    """\
a: async function a() { function inner() {} }
b: () => 1
exports.e: function (x) {}
module.exports.f: function* () {}
module.exports.g: get g() { return 1 }
module.exports.h: x => x
I.j: static async j() {}
I.#k: async () => {}
I.[Symbol.iterator]: [Symbol.iterator]() {}
l: function () {}
m: function m() {}
default: () => 1
app.get("/n"): async (x) => { return x.y }
O: (p) => { return <p/> }
it("u"): function () { return 1 }
w: function w() {}
on(`z`): () => { return 1 }
""",
)
CUT_OUT["typescript"] = (  # without a body it is no function
    "a.ts",
    """\
function a(x: string): void;
function a(x: any): void {}
namespace N { export abstract class C<T> { abstract b(): T; protected async c<U>(): Promise<U> {} d = (): T => {} } }
declare function e(): void;
interface I { f(): void }
""",
    "#L2-L2",
    """\
a: function a(x: any): void {}
N.C.c: protected async c<U>(): Promise<U> {}
N.C.d: (): T => {}
""",
)
CUT_OUT["php"] = (  # and may leave PHP
    "a.php",
    """\
<h1>π</h1>
<?php
namespace N;
if (true) { function a() { return fn() => 1; } }
abstract class B { abstract function c(); public static function d(): int { ?><b><?php } }
trait T { private function e() { return new class { function f() {} }; } }
enum E { case G; function h() {} }
interface I { function i(); }
$j = function () {};
""",
    "#L4-L4",
    """\
a: function a() { return fn() => 1; }
B.d: public static function d(): int { ?><b><?php }
T.e: private function e() { return new class { function f() {} }; }
E.h: function h() {}
$j: function () {}
""",
)
CUT_OUT["ruby"] = (
    "a.rb",
    """\
module M
  class N::O < P
    private def a(é) = é
    def self.b; def c; end; end
    class << self
      def d? = true
    end
  end
end
define_method(:e) { }
def f() g end
__END__
def g; end
""",
    "#L3-L3",
    """\
M.N::O.a: def a(é) = é
M.N::O.b: def self.b; def c; end; end
M.N::O.d?: def d? = true
f: def f() g end
""",
)


@pytest.mark.parametrize("language", CUT_OUT)
def test_functions_are_cut_out_if_they_have_a_name_or_are_given_one(tmp_path, language):
    """Beside a file that does not parse."""
    name, text, lines, expected = CUT_OUT[language]
    source = write(tmp_path, {name: text.encode(), f"b{name[1:]}": b"<?php def ("})
    functions = read_all(source, language)
    assert [f"{function.func_name}: {function.code}" for function in functions] == (
        expected.splitlines()
    )
    assert functions[0].url == name + lines


def test_line_ends_and_a_byte_order_mark_do_not_shift_what_is_cut_out(tmp_path):
    source = "\ufeffx = 1\r\ny = '\x0c'\rdef f():\r\n    return 1\r\n".encode()
    (function,) = read_all(write(tmp_path, {"a.py": source}))
    assert (function.code, function.url) == ("def f():\r\n    return 1", "a.py#L3-L4")


def test_partitions_are_the_folders_test_and_validation_with_one_folder_per_project(tmp_path):
    files = {
        "validation/one/a.py": b"def a(): pass",
        "test/two/sub/b.py": b"def b(): pass",
        "test/two/.hidden/c.py": b"def c(): pass",
        "test/d.py": b"def d(): pass",
        "e.py": b"def e(): pass",
    }
    functions = read_all(write(tmp_path / "mine", files))
    assert [
        (function.partition, function.repo, function.path, function.url) for function in functions
    ] == [
        ("test", "mine", "d.py", "test/d.py#L1-L1"),
        ("test", "two", "sub/b.py", "test/two/sub/b.py#L1-L1"),
        ("validation", "one", "a.py", "validation/one/a.py#L1-L1"),
    ]


def test_a_test_folder_alone_is_no_partition(tmp_path):
    source = write(tmp_path / "mine", {"test/a.py": b"def a(): pass", "b.py": b"def b(): pass"})
    functions = read(source, "python", Skips(), validation_fraction=0)
    assert [(function.partition, function.path) for function in functions] == [
        ("test", "b.py"),
        ("test", "test/a.py"),
    ]


def split(source, config="python", **options):
    """Partition -> its files."""
    found = {"test": set(), "validation": set()}
    for function in read(source, config, Skips(), **options):
        found[function.partition].add(function.url.partition("#")[0])
    return found


def test_own_code_is_split_by_file_whatever_else_is_in_the_folder(tmp_path):
    files = {
        f"{number % 3}/f{number}.py": f"def f{number}(): pass\ndef g(): pass".encode()
        for number in range(10)
    }
    found = split(write(tmp_path / "one", files))
    assert (len(found["test"]), len(found["validation"])) == (8, 2)
    least = sorted(files, key=lambda name: hashlib.sha256(name.encode()).hexdigest())[:2]
    assert found["validation"] == set(least)
    more = {
        "A.java": b"class A { void f() { } }",
        "B.java": b"class B { void f() { } }",
        "empty.py": b"",
    }
    other = write(tmp_path / "two", dict(reversed((files | more).items())))
    assert split(other) == split(other, "python_with_new_lines") == found
    assert [*map(len, split(other, "java").values())] == [1, 1]
    for fraction, validation in ((0.5, 5), (0.99, 9), (0.01, 1), (0, 0)):
        found = split(other, validation_fraction=fraction)
        assert [*map(len, found.values())] == [10 - validation, validation]


def test_one_file_is_for_test(tmp_path):
    assert split(write(tmp_path, {"a.py": b"def f(): pass"})) == {
        "test": {"a.py"},
        "validation": set(),
    }


def test_several_clones_are_split_by_repository(tmp_path):
    clones = [f"owner/repo{number}" for number in range(6)]
    files = {f"{clone}/{name}.py": b"def f(): pass" for clone in clones for name in ("a", "sub/b")}
    source = write(tmp_path / "code", files | {f"{clone}/.git/config": b"" for clone in clones})
    found = split(source)
    repositories = {part: {file.rsplit("/repo")[1][0] for file in found[part]} for part in found}
    assert (len(repositories["test"]), len(repositories["validation"])) == (5, 1)
    assert {(function.repo, function.path) for function in read_all(source)} == {
        (clone, path) for clone in clones for path in ("a.py", "sub/b.py")
    }
    (tmp_path / "code/.git").mkdir()  # now it is one repository, and these are parts of it
    assert {function.repo for function in read_all(source)} == {"code"}


@pytest.mark.parametrize("fraction", [1, -0.1, float("nan"), "0.2"])
def test_a_fraction_that_is_none_or_that_has_nothing_to_split_is_refused(tmp_path, fraction):
    source = write(tmp_path, {"a.py": b"def f(): pass"})
    with pytest.raises(SourceError, match="validation fraction is .* at least 0 and less than 1"):
        read(source, "python", Skips(), validation_fraction=fraction)
    with pytest.raises(SourceError, match="sample already has a validation split"):
        read("sample", "python", Skips(), validation_fraction=0.2)


@pytest.mark.parametrize(
    "config, name, bad",
    [
        ("python", "bad.py", b"def f(:"),
        ("python", "nul.py", b"def f():\n    return '\0'"),
        ("python", "deep.py", b"(" * 100_000),
        ("java", "Bad.java", b"class A { void f( }"),
    ],
)
def test_a_source_file_that_does_not_parse_is_left_out_and_counted(tmp_path, config, name, bad):
    good = {"z.py": b"def f(): pass", "Z.java": b"class Z { void f() { } }"}
    source = write(tmp_path, good | {name: bad})
    (tmp_path / "link.py").symlink_to(tmp_path / "z.py")
    skips = Skips()
    assert [function.func_name.split(".")[-1] for function in read(source, config, skips)] == ["f"]
    (said,) = skips.names["file does not parse"]
    assert re.match(
        rf"{re.escape(name)}(#L1$|: (line 1|source code string cannot contain null bytes))", said
    )
    assert skips.counts.get("file is a symbolic link", 0) == (config == "python")


@pytest.mark.parametrize(
    "config, name, text, expected, lost",
    [
        (
            "javascript",
            "a.js",
            "export { x as };\nfunction f() { return 1 }\nfunction g() { x = = }\nclass A { m() {} }",
            ["f", "A.m"],
            {
                "file has code outside of functions that does not parse": ["a.js#L1"],
                "function does not parse": ["a.js#L3"],
            },
        ),
        (
            "typescript",
            "a.ts",
            "interface I<in out T, out U> { x: T; y }\nclass A<out T> { f(x: I<P>): P { return x.y = x.x } }\ntype { f };\nexport type * from 'a';\n",
            ["A.f"],
            {"file has code outside of functions that does not parse": ["a.ts#L3"]},
        ),
        (
            "typescript",
            "a.tsx",
            "const F = (p: P) => <A b={p.c}>d</A>;\nexport function g() { return <></> }",
            ["F", "g"],
            {},
        ),
        (
            "java",
            "A.java",
            "class A {\n  void f() { x = ; }\n  int g() { return 1; }\n}",
            ["A.g"],
            {"function does not parse": ["A.java#L2"]},
        ),
        (
            "python",
            "a.py",
            "def f(x):\n    print x\n\ndef g(x):\n    return x\n\ndef h(x):\n    return x y\n",
            ["g"],
            {"function does not parse": ["a.py#L1", "a.py#L7"]},
        ),
    ],
)
def test_functions_of_a_file_that_does_not_parse_are_kept_where_they_do(
    tmp_path, config, name, text, expected, lost
):
    skips = Skips()
    source = write(tmp_path, {name: text.encode()})
    functions = list(read(source, config, skips, validation_fraction=0))
    assert [function.func_name for function in functions] == expected
    assert all(
        annotate(function.code, config).edges for function in functions if "=" in function.code
    )
    assert skips.names == lost


LATIN = "def f():\n    return 'é'\n"


UNDECODABLE = {
    "latin-1": LATIN.encode("latin-1"),
    "UTF-16": LATIN.encode("utf-16"),
    "unknown": b"# coding: no-such\n" + LATIN.encode(),
    "no text encoding": b"# coding: rot13\n" + LATIN.encode(),
    "null": b"x = 1\n\n\n\0\n",
    "a mark that contradicts": b"\xef\xbb\xbf# coding: latin-1\n" + LATIN.encode(),
    "half a surrogate pair": b"# coding: raw_unicode_escape\ndef f(): return '\\ud800'\n",
}


@pytest.mark.parametrize("data", UNDECODABLE.values(), ids=UNDECODABLE)
def test_a_file_that_cannot_be_decoded_is_skipped_and_counted(tmp_path, data):
    skips = Skips()
    source = write(tmp_path, {"bad.py": data, "good.py": b"def g(): pass"})
    assert [function.func_name for function in read(source, "python", skips)] == ["g"]
    ((reason, skipped),) = skips.names.items()
    assert skips.counts[reason] == 1
    assert skipped[0].partition(":")[0] == "bad.py"
    assert reason in (
        "file is not text in UTF-8 or the encoding that it declares",
        "file does not parse",
    )


@pytest.mark.parametrize(
    "declared",
    [b"# -*- coding: latin-1 -*-\n", b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\n"],
)
def test_the_encoding_that_a_python_file_declares_is_honoured(tmp_path, declared):
    source = write(tmp_path, {"a.py": declared + LATIN.encode("latin-1")})
    (function,) = read_all(source)
    assert function.code == LATIN.rstrip("\n")
    assert function.url == f"a.py#L{1 + declared.count(10)}-L{2 + declared.count(10)}"


def test_whatever_lies_in_a_folder_the_rest_of_it_is_read(tmp_path, monkeypatch):
    files = {
        "good.py": b"def g(): pass",
        "gone.py": b"def f(): pass",
        "folder.py/a.py": b"def a(): pass",
    }
    source = write(
        tmp_path / "code", files | {"locked/b.py": b"def b(): pass", "elsewhere/.keep": b""}
    )
    (tmp_path / "code/broken.py").symlink_to("nowhere")
    (tmp_path / "code/linked").symlink_to(tmp_path / "code/elsewhere")
    os.mkfifo(tmp_path / "code/pipe.py")
    (tmp_path / "code" / os.fsdecode(b"\xff.py")).write_bytes(b"def h(): pass")
    opened, scandir = safe_files.opened, os.scandir

    def deleted_meanwhile(path):
        if path.name == "gone.py":
            path.unlink()
        return opened(path)

    def locked(path):
        if str(path).endswith("locked"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scandir(path)

    monkeypatch.setattr(safe_files, "opened", deleted_meanwhile)
    monkeypatch.setattr(os, "scandir", locked)
    skips = Skips()
    assert sorted(function.func_name for function in read(source, "python", skips)) == ["a", "g"]
    assert {reason: sorted(skipped) for reason, skipped in skips.names.items()} == {
        "file cannot be read": ["gone.py", "pipe.py"],
        "file has a name that is not UTF-8": ["\\xff.py"],
        "file is a symbolic link": ["broken.py"],
        "folder cannot be read": ["locked"],
        "folder is a symbolic link": ["linked"],
    }


@pytest.mark.parametrize(
    "file, text, names",
    [
        (
            "a.go",
            "package p\nfunc (a *T) f() {}\nfunc (T) g() {}\nfunc (a *T[K]) h() {}\nfunc (a T[K, V]) i() {}\nfunc j() {}\n",
            ["T.f", "T.g", "T.h", "T.i", "j"],
        ),
        (
            "a.js",
            "const a = { f() {}, g: () => {}, b: { h() {} } }; export default { i() {} }; c({ j() {} });",
            ["a.f", "a.g", "a.b.h", "default.i", "j"],
        ),
        ("a.rb", "class A\n  def self.f; end\nend\ndef b.g; end\n", ["A.f", "b.g"]),
    ],
)
def test_names_have_their_receiver_or_object(tmp_path, file, text, names):
    config = {".go": "go", ".js": "javascript", ".rb": "ruby"}[file[1:]]
    functions = read_all(write(tmp_path, {file: text.encode()}), config)
    assert [function.func_name for function in functions] == names


@pytest.mark.parametrize("language", ["python", "java", "javascript", "typescript"])
def test_the_sample_is_what_its_files_say_at_the_lines_that_its_urls_name(language):
    sample = Path(codesearchnet.__file__).parent.parent / "sample"
    functions = read_all("sample", language)
    assert functions
    for function in functions:
        file, _, lines = function.url.partition("#L")
        first, last = map(int, lines.split("-L"))
        text = (sample / file).read_text(encoding="utf-8").split("\n")[first - 1 : last]
        assert function.code in "\n".join(text)
        assert function.code.split("\n")[0].strip() in text[0]
        assert function.code.split("\n")[-1] in text[-1]
        assert file == f"{function.partition}/{function.repo}/{function.path}"


# ------------------------------------------------------------------------------------------ the Hub

CARD = """---
configs:
- config_name: python
  data_files:
  - {split: train, path: python/train-*.parquet}
  - {split: validation, path: python/validation-*.parquet}
  - {split: test, path: python/test-*.parquet}
---
"""


def parquet(rows):
    """Rows under the column names of the Hub dataset."""
    columns = {
        "repository_name": "repo",
        "func_path_in_repository": "path",
        "func_name": "func_name",
        "whole_func_string": "original_string",
        "language": "language",
        "func_code_string": "code",
        "func_code_url": "url",
    }
    table = pa.table({column: [row[field] for row in rows] for column, field in columns.items()})
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


PARQUET = {
    "test": parquet([row("first"), row("second"), row("third")]),
    "validation": parquet([row("fourth")]),
    "train": parquet([row("never")]),
}
CONVERTED = {f"python/{split}-00000-of-00001.parquet": data for split, data in PARQUET.items()}
EXPORTED = {
    f"{config}/{split}/0000.parquet": data
    for config in ("all", "python")
    for split, data in PARQUET.items()
}


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """One that this process talks to, with the dataset of CodeSearchNet at two revisions, and another dataset."""
    other = io.BytesIO()
    pq.write_table(pa.table({"text": ["a"]}), other)
    with LoopbackHub() as hub:
        hub.add("owner/csn", {"README.md": b"", "csn.py": b"raise SystemExit"})
        hub.add("owner/csn", {"README.md": CARD.encode(), **CONVERTED}, revision="refs/pr/15")
        hub.add("owner/csn", EXPORTED, revision="refs/convert/parquet")
        hub.add(
            "owner/other",
            {"README.md": CARD.encode(), **dict.fromkeys(CONVERTED, other.getvalue())},
        )
        hub.connect(monkeypatch, tmp_path / "cache")
        yield hub


@pytest.mark.slow
@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize("revision", ["refs/pr/15", "refs/convert/parquet"])
def test_the_hub_dataset_reads_at_the_revisions_that_have_it_without_a_script(revision, tmp_path):
    source = write(tmp_path / "csn", members())
    for config in ("python", "python_exact"):
        assert read_all(f"owner/csn@{revision}", config) == read_all(source, config)


@pytest.mark.slow
@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize(
    "source, reason",
    [
        ("owner/csn", "scripts are no longer supported"),
        ("owner/csn", "owner/csn@refs/pr/15 or owner/csn@refs/convert/parquet"),
        (
            "owner/nothing",
            "doesn't exist on the Hub or cannot be accessed. Expected a local file or folder of that name",
        ),
        ("owner/other@v9", "Revision 'v9' doesn't exist"),
        ("owner/other", "columns of code-search-net/code_search_net: func_code_string"),
    ],
)
def test_a_hub_dataset_that_is_not_there_or_another_one_is_refused(source, reason):
    with pytest.raises(SourceError, match=re.escape(reason)):
        read_all(source)


def test_without_a_network_the_hub_reader_says_so():
    with pytest.raises(SourceError, match="cannot read owner/name: .*is HF_HUB_OFFLINE unset"):
        read_all("owner/name")


# --------------------------------------------------------------------- which reader, and the corpus


def test_a_file_of_no_known_form_is_refused(tmp_path):
    write(tmp_path, {"functions.csv": b"a,b", "other.json": b"[]", "empty.zip": zipped({"a": b""})})
    for name in ("functions.csv", "other.json", "empty.zip"):
        with pytest.raises(SourceError, match=f"{name}' has none of the known forms"):
            read_all(str(tmp_path / name))


def test_a_folder_without_functions_of_the_language_is_refused(tmp_path):
    with pytest.raises(SourceError, match="has no java functions"):
        next(corpus.read(write(tmp_path, {"a.py": b"def f(): pass"}), "java", Skips()))


@pytest.mark.parametrize(
    "content",
    [
        b"other/one\nowner/second\n\n",
        b'{"repository": "owner/second", "x": 1}\n{"repository": "a"}',
    ],
)
def test_functions_of_excluded_repositories_are_left_out_before_ids_are_given(tmp_path, content):
    rows = [row("first"), row("second", repo="owner/second"), row("third")]
    files = {
        TEST_FILE: jsonl(rows),
        "python/final/jsonl/valid/python_valid_0.jsonl.gz": jsonl([row("fourth", "valid")]),
    }
    (tmp_path / "excluded").write_bytes(content)
    excluded = corpus.read_repositories(tmp_path / "excluded")
    skips = Skips()
    functions = corpus.read(write(tmp_path / "csn", files), "python", skips, excluded)
    assert [(function.id, function.func_name, function.partition) for function in functions] == [
        (0, "first", "test"),
        (1, "third", "test"),
        (2, "fourth", "validation"),
    ]
    assert skips.counts == {"repository is excluded": 1}
    assert skips.names == {"repository is excluded": [rows[1]["url"]]}


@pytest.mark.parametrize(
    "content, complaint",
    [
        (b'a/b\n{"repo": "a"}', "line 2: field 'repository' is missing"),
        (b"a/b\n{", "line 2: .*expected JSON"),
        (b"a/b\n\xff", "line 2: byte 0xff"),
        (None, "cannot be read"),
    ],
)
def test_a_broken_list_of_repositories_is_refused(tmp_path, content, complaint):
    file = tmp_path / "excluded"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SourceError, match=f"(?s)excluded.*{complaint}"):
        corpus.read_repositories(file)


def test_published_functions_name_no_repository_so_none_can_be_excluded(tmp_path):
    source = write(tmp_path, {"CodeSyntax_python.json": labels(PYTHON)})
    with pytest.raises(SourceError, match="does not name the repository"):
        next(corpus.read(source, "python", Skips(), {"a/b"}))


def test_a_source_is_read_up_to_a_size(tmp_path, monkeypatch):
    source = write(tmp_path, {"a.py": b"def f(): pass"})
    monkeypatch.setattr(corpus, "LARGEST_SOURCE", 13)
    assert len([*corpus.read(source, "python", Skips())]) == 1
    monkeypatch.setattr(corpus, "LARGEST_SOURCE", 12)
    with pytest.raises(SourceError, match="more than 12 characters of code"):
        next(corpus.read(source, "python", Skips()))


def test_an_id_that_occurs_twice_is_refused(tmp_path):
    with pytest.raises(SourceError, match="id 8679 occurs twice"):
        list(
            corpus.read(
                write(tmp_path, {"CodeSyntax_python.json": labels(PYTHON, PYTHON)}),
                "python",
                Skips(),
            )
        )
