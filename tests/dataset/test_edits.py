"""Edits: what they change, that they prove the labels that stay, and the configs that they make."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path

import javalang
import pyarrow.parquet as pq
import pytest
from support.commands import python, run

from codesyntax_dataset import annotate, tokenize
from codesyntax_dataset.build import build
from codesyntax_dataset.check import check_folder
from codesyntax_dataset.edits import _CHANGES, edit, words
from codesyntax_dataset.edits.changes import Change, changed, image
from codesyntax_dataset.edits.function import Function
from codesyntax_dataset.errors import ArgumentError, EditError, SourceError, UnknownName
from codesyntax_dataset.languages import LANGUAGES, language_of, unedited, variant_of
from codesyntax_dataset.protocol import EDITS
from codesyntax_dataset.schema import Annotation, Edge, Skips, Token
from codesyntax_dataset.sources import read

PYTHON = '''\
def fetch_all(urls, retry=3):
    """Fetch every URL, in order."""
    found = []
    for url in urls:
        if url.startswith("http\\n") and retry > 0x10:
            found.append(read_page(url, timeout=30))
        else:
            retry -= 1
    return found
'''
JAVA = """\
public int sum(List<Integer> terms, int most) {
    int total = 0;
    for (int i = 0; i < most; i++) {
        if (terms.get(i) > 0 && total < 100L) { total += terms.get(i, "none\\n"); } else { return most; }
    }
    return total;
}
"""
CODE = {"python": PYTHON, "java": JAVA}
RENAMINGS = ("rename-words", "rename-nonsense", "rename-letters")
BOTH = pytest.mark.parametrize("language", CODE)
every_renaming = pytest.mark.parametrize("name", RENAMINGS)
both_variants = pytest.mark.parametrize("variant", ["paper", "exact"])


def texts(code, language):
    return [code[token.start : token.end] for token in tokenize(code, language)]


def names(code, language):
    reserved = LANGUAGES[language].keywords
    return [text for text in texts(code, language) if text.isidentifier() and text not in reserved]


def parts(name):
    """The words of a name, in another way than the edits have them: by signs, then at each capital letter."""
    return [
        word
        for chunk in re.split(r"[\W_\d]+", name)
        for word in re.findall(r"[A-Z]*[a-z]*", chunk)
        if word
    ]


# What edits change ---------------------------------------------------------------------------------------------------


def test_every_edit_has_a_meaning():
    assert _CHANGES.keys() == EDITS.keys()


@pytest.mark.slow
@BOTH
@every_renaming
def test_identifiers_are_renamed_one_to_one_and_nothing_else_is(language, name):
    code, (tokens, edges) = edit(CODE[language], language, name)
    before, after = texts(CODE[language], language), texts(code, language)
    renamed = dict(zip(before, after))
    assert [renamed[text] for text in before] == after == [token.text for token in tokens]
    assert len(set(renamed.values())) == len(renamed)
    own = set(names(CODE[language], language))
    assert {text for text, other in renamed.items() if text != other} == own
    assert not own & {renamed[name] for name in own}
    assert edges == annotate(CODE[language], language).edges  # the same tokens, so the same numbers
    for text in own:
        if name == "rename-letters":
            assert len(renamed[text]) == 1
        else:
            assert [len(word) for word in parts(renamed[text])] == [
                len(word) for word in parts(text)
            ]
            assert [word[0].isupper() for word in parts(renamed[text])] == [
                word[0].isupper() for word in parts(text)
            ]


def test_more_identifiers_than_letters():
    code = "def f(x):\n" + "".join(f"    name{number} = x\n" for number in range(70))
    after = names(edit(code, "python", "rename-letters")[0], "python")
    assert len(set(after)) == 72
    assert sorted({len(name) for name in after}) == [1, 2]
    assert not set(after) & set(LANGUAGES["python"].keywords)
    with pytest.raises(EditError, match="more identifiers than there are pairs of letters"):
        edit(
            "def f(x):\n" + "".join(f"    name{number} = x\n" for number in range(800)),
            "python",
            "rename-letters",
        )


@BOTH
@pytest.mark.slow
def test_literals_keep_their_escapes_and_lengths(language):
    code, (_, edges) = edit(CODE[language], language, "literals")
    assert len(code) == len(CODE[language])
    assert names(code, language) == names(CODE[language], language)
    assert edges == annotate(CODE[language], language).edges
    assert "http" not in code
    assert "none" not in code
    assert "30" not in code
    assert code.count("\\n") == 1
    assert ("0x10" in code) == (language == "python")
    assert ("100L" in code) == (language == "java")


@BOTH
def test_layout_leaves_everything_but_comments_line_breaks_and_indentation(language):
    code, _ = edit(CODE[language], language, "layout")
    sign = {"python": "#", "java": "//"}[language]
    lines = [
        line for line in code.splitlines() if line.strip() and not line.strip().startswith(sign)
    ]
    assert [line.strip() for line in lines] == [
        line.strip() for line in CODE[language].splitlines()
    ]
    for line, before in zip(lines, CODE[language].splitlines()):
        assert len(line) - len(line.lstrip()) == 2 * (len(before) - len(before.lstrip()))
    assert len(lines) < len(code.splitlines())


def without_brackets(tokens, edges):
    """The labels, in the words that are left when round brackets are taken out."""
    places = [place for place, token in enumerate(tokens) if token.text not in ("(", ")")]
    number = {place: index for index, place in enumerate(places)}
    return [tokens[place].text for place in places], [
        (edge.relation, *(number.get(place) for place in edge[1:])) for edge in edges
    ]


@BOTH
def test_without_brackets_nothing_is_different(language):
    code, after = edit(CODE[language], language, "brackets")
    assert code.count("(") > CODE[language].count("(") + 5
    assert without_brackets(*after) == without_brackets(*annotate(CODE[language], language))


@BOTH
def test_distance_puts_in_arguments_and_statements(language):
    code, (tokens, edges) = edit(CODE[language], language, "distance")
    no_op = {"python": "pass", "java": ";"}[language]
    before = annotate(CODE[language], language)
    assert texts(code, language).count(no_op) > texts(CODE[language], language).count(no_op) + 3
    assert texts(code, language).count(",") > texts(CODE[language], language).count(",")
    heads = [(edge.relation, tokens[edge.head].text, tokens[edge.first].text) for edge in edges]
    assert heads == [
        (edge.relation, before.tokens[edge.head].text, before.tokens[edge.first].text)
        for edge in before.edges
    ]
    body = next(edge for edge in edges if edge.relation == "If:if->body")
    assert tokens[body.last].text == no_op  # a block ends with the statement put in behind its last


def lines(*statements, times=30):
    """A function with the same statements so many times."""
    return "def f(a, b):\n" + "".join(f"    {one}\n" for one in statements * times) + "    a\n"


def test_brackets_are_up_to_three_and_in_one_line():
    code, _ = edit(lines("x = a", "x = g(\n        b\n    )"), "python", "brackets")
    assert {*re.findall(r"x = (\(*)a", code)} == {"", "(", "((", "((("}
    assert {*re.findall(r"x = (.*)g\(", code)} == {""}
    assert "((b))\n" in code


def test_arguments_stand_behind_the_first_of_a_line():
    """One to three; none in a call that is itself the first of several, where labels begin at its end."""
    statements = "g(h(a))", "g(i(a), b)", "j(a[\n        0\n    ])"
    code, _ = edit(lines(*statements), "python", "distance")
    put_in = r"((?:, \w+)*)"
    calls = re.findall(rf"g\(+h\(+a\)*{put_in}\)+{put_in}\)", code)
    assert len(calls) == 30
    for behind in zip(*calls):
        assert {words.count(",") for words in behind} == {1, 2, 3}
    assert len(re.findall(r"g\(+i\(+a\)+(?:, \w+){1,3}, \(*b\)+", code)) == 30
    assert len(re.findall(r"j\(+a\)*\[\n +\(*0\)*\n +\]\)", code)) == 30


def test_statements_stand_behind_those_that_do_not_end_empty():
    code, _ = edit(lines("g()", "x = [ ]", "x = {}", "g(a)"), "python", "distance")
    assert code.endswith("\n    a\n")  # and what ends the function
    assert code.count("g()\n") == 30
    assert not re.search(r"x = .*; pass", code)
    numbers = [line.count("; pass") for line in code.splitlines() if re.search(r"g\(+a", line)]
    assert len(numbers) == 30
    assert {*numbers} == {1, 2, 3, 4, 5}


PHP = """\
public function read(array $rows): ?Row
{
    $text = 'none';
    foreach ($rows as $row) { if ($row->text === $this->text) { return new Row($text, \\Log\\Level::High); } }
    return null;
}
"""
RUBY = """\
def read?(rows, text: nil)
  note = <<~END
    one
  END
  rows.each do |row|
    @text = row
      .text(%w[
        one
      ])
    return Row.new(:text, note) if row.read?
  end
end
"""


@pytest.mark.parametrize(
    "code, language, words",
    [
        (PHP, "php", r"read rows Row text row Log Level High".split()),
        (RUBY, "ruby", r"read rows text note row each Row new".split()),
    ],
)
@pytest.mark.parametrize("name", ["rename-words", "rename-nonsense"])
def test_names_keep_the_signs_and_the_case_of_their_kind(code, language, words, name):
    after, _ = edit(code, language, name)
    pattern = rf"\b({'|'.join(words)})\b"
    renamed = dict(
        zip(
            re.findall(pattern, code),
            (after[found.start() : found.end()] for found in re.finditer(pattern, code)),
        )
    )
    assert re.sub(pattern, lambda found: renamed[found[0]], code) == after
    assert len(set(renamed.values())) == len(words)
    assert not set(renamed.values()) & set(words)
    assert [word[0].isupper() for word in renamed.values()] == [
        word[0].isupper() for word in renamed
    ]


def test_a_letter_for_a_name_keeps_the_signs_and_the_case_of_its_kind():
    assert re.fullmatch(
        r"public function \w\(array \$(\w)\): \?(\w)\n\{\n    \$(\w) = 'none';\n    foreach \(\$\1 as \$(\w)\) "
        r"\{ if \(\$\4->\3 === \$this->\3\) \{ return new \2\(\$\3, \\\w::\w\); \} \}\n    return null;\n\}\n",
        edit(PHP, "php", "rename-letters")[0],
    )
    ruby = edit(RUBY, "ruby", "rename-letters")[0]
    assert re.search(
        r"return [A-Z]\.[a-z]\(:([a-z]), ([a-z])\) if ([a-z])\.([a-z])\?$", ruby, re.MULTILINE
    )
    assert re.match(r"def [a-z]\?\([a-z], [a-z]: nil\)\n", ruby)


def test_layout_leaves_what_is_text_and_what_continues_a_line():
    lines = edit(RUBY, "ruby", "layout")[0].replace(" ", "")
    assert "<<~END\none\nEND\n" in lines
    assert "@text=row\n.text(%w[\none\n])\n" in lines
    jsx = "function f(a) {\n  return <p>\n    Hello\n    <b>Bold</b>\n\n    {a}\n  </p>;\n}\n"
    after = edit(jsx, "javascript", "layout")[0]
    assert jsx[jsx.index("<p>") : jsx.index(";")] in after
    assert "Bold" in edit(jsx, "javascript", "rename-words")[0]


@pytest.mark.parametrize(
    "language, code, inside",
    [
        ("javascript", "f(é) { 1; }", ["f", "(é)", "é", "{ 1; }", "1;", "1"]),
        ("php", "function f() { 1; }", ["f", "()", "{ 1; }", "1;", "1"]),
        ("php", "fn() => 1", ["()", "1"]),
        ("php", "fn() => 1 1", None),
    ],
)
def test_nodes_are_those_of_a_function_that_parses(language, code, inside):
    """Not of the class, or of the statement, that it is parsed in."""
    function = Function(code, LANGUAGES[language], "exact", "layout")
    texts = [code[slice(*function.span(node))] for node in function.nodes]
    assert texts == ([] if inside is None else [code, *inside])


# The proof -----------------------------------------------------------------------------------------------------------


def spaced(code, *edges):
    """Labels of code whose tokens are its words."""
    tokens = [Token(match[0], *match.span()) for match in re.finditer(r"\S+", code)]
    return Annotation(tokens, [Edge("r", *edge) for edge in edges])


BEFORE = spaced("if a : b else c", (0, 1, 1), (0, 3, 3), (0, 5, 5))
EDITED = changed(
    "if a : b else c", [Change(3, 3, "( "), Change(4, 4, " )"), Change(8, 8, " ; pass")]
)
PROVED = [(0, 2, 2), (0, 5, 7), (0, 9, 9)]


def test_the_image_of_labels():
    assert EDITED.code == "if ( a ) : b ; pass else c"
    assert image(BEFORE, EDITED, spaced(EDITED.code, *PROVED)) == [
        Edge("r", *edge) for edge in PROVED
    ]
    own = spaced(EDITED.code, *PROVED, (0, 7, 7), (7, 9, 9))  # edges of what was put in
    assert image(BEFORE, EDITED, own) == [Edge("r", *edge) for edge in PROVED]
    narrow = [(0, 2, 2), (0, 5, 5), (0, 9, 9)]  # the block may end as before, too
    # a dependent may begin with brackets put in, if they close
    bracketed = [
        (0, 1, 3),
        *PROVED[1:],
    ]
    for edges in (narrow, bracketed):
        assert image(BEFORE, EDITED, spaced(EDITED.code, *edges)) == [
            Edge("r", *edge) for edge in edges
        ]


@pytest.mark.parametrize(
    "edges",
    [
        [(0, 1, 2), *PROVED[1:]],  # a dependent begins with a bracket that does not close
        PROVED[:2],  # an edge is lost
        [*PROVED, (2, 5, 7)],  # there is another
        [*PROVED, (0, 2, 2)],  # there is one twice
        [*PROVED[:2], (0, 7, 9)],  # a dependent begins with what was put in, other than brackets
        [(0, 2, 4), *PROVED[1:]],  # it reaches over a token of before
        [PROVED[0], (0, 5, 8), PROVED[2]],  # it ends with a later token of before
        [PROVED[0], (0, 4, 7), PROVED[2]],  # it begins with an earlier one
        [PROVED[0], (1, 5, 7), PROVED[2]],  # it has another head
    ],
)
def test_other_labels_are_no_image(edges):
    assert image(BEFORE, EDITED, spaced(EDITED.code, *edges)) is None


def test_brackets_close_inside_of_a_dependent_not_before_it_begins():
    before = spaced("if a ) ( b", (0, 1, 4))
    edited = changed("if a ) ( b", [Change(3, 3, "( "), Change(4, 4, " )")])
    assert edited.code == "if ( a ) ) ( b"
    assert image(before, edited, spaced(edited.code, (0, 2, 6))) == [Edge("r", 0, 2, 6)]
    assert image(before, edited, spaced(edited.code, (0, 1, 6))) is None


def test_blanks_and_empty_tokens_stand_where_they_stood():
    """A dependent may end behind them; what is put in before an empty token is no image of it."""
    code = "if a \n b"
    tokens = [Token("if", 0, 2), Token("a", 3, 4), Token("\n", 5, 6), Token("", 7, 7)]
    before = Annotation([*tokens, Token("b", 7, 8)], [Edge("r", 0, 1, 1), Edge("r", 0, 4, 4)])
    edited = changed(code, [Change(7, 7, "c ")])
    put_in = [Token("c", 7, 8), Token("", 9, 9), Token("b", 9, 10)]
    for last in (1, 3):
        edges = [Edge("r", 0, 1, last), Edge("r", 0, 5, 5)]
        assert image(before, edited, Annotation([*tokens[:3], *put_in], edges)) == edges
    edges = [Edge("r", 0, 1, 1), Edge("r", 0, 4, 4)]
    assert image(before, edited, Annotation([*tokens[:3], *put_in], edges)) is None


def test_a_token_that_stands_elsewhere_is_no_image():
    assert image(spaced("a b"), changed("a b", [Change(2, 3, "c")]), spaced("a c")) == []
    assert image(spaced("a b"), changed("a b", [Change(2, 3, "  c")]), spaced("a   c")) is None


def test_tokens_that_are_gone_have_no_image():
    after = spaced(EDITED.code, *PROVED)
    assert image(BEFORE, EDITED, after._replace(tokens=after.tokens[:-1])) is None
    assert (
        image(BEFORE, changed("if a : b else c", [Change(3, 4, "")]), spaced("if  : b else c"))
        is None
    )


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ((PYTHON, "python", "rename-word"), UnknownName, "did you mean 'rename-words'"),
        ((PYTHON, "pyton", "layout"), UnknownName, "did you mean 'python'"),
        (
            ("A dog", "english", "layout"),
            ArgumentError,
            "people label English in treebanks, and no rules do",
        ),
    ],
)
def test_what_cannot_be_edited(arguments, error, message):
    with pytest.raises(error, match=message):
        edit(*arguments)


def sample(language):
    """Every eighth function of the sample."""
    return [function.code for function in read("sample", language, Skips())][::8]


def kept(codes, language, name):
    """The share of functions of which an edit keeps the labels; it has an image for each of their edges."""
    done = 0
    for code in codes:
        try:
            _, (_, edges) = edit(code, language, name)
        except EditError:
            continue
        assert [edge.relation for edge in edges] == relations(code, language)
        done += 1
    return done / len(codes)


@functools.cache
def relations(code, language):
    return [edge.relation for edge in annotate(code, language).edges]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(EDITS.keys() - {*RENAMINGS[1:]}))
@pytest.mark.parametrize("language", [name for name, record in LANGUAGES.items() if record.editing])
def test_nearly_all_functions_of_the_sample_can_be_edited(language, name):
    assert kept(sample(language), language, name) >= (0.95 if name == "distance" else 0.98)


# Sound ---------------------------------------------------------------------------------------------------------------

FIELDS = """\
def f(name, x):
    text = f"{x.name!r:>{name}} name" + "{name} name {{name}}".format(name=x) + '%(name)s' % dict(name=x)
    x.name: str = "\\N{BULLET} tail"
    return text
"""


@every_renaming
@both_variants
def test_names_in_strings_with_fields_are_renamed_with_the_others(name, variant):
    code, _ = edit(FIELDS, "python", name, variant)
    [(first, other)] = re.findall(r"def \w+\((\w+), (\w+)\)", code)
    assert f'f"{{{other}.{first}!r:>{{{first}}}}} name" + "{{{first}}} name {{{{name}}}}"' in code
    assert f"'%({first})s' % " in code
    assert '"\\N{BULLET} tail"' in code


@every_renaming
@both_variants
def test_a_formatted_string_that_is_filled_is_renamed_once(name, variant):
    code, _ = edit(
        'def f(prefix, x):\n    y = f"{prefix}/{{}}".format\n    return y(x)\n',
        "python",
        name,
        variant,
    )
    assert re.search(
        r'def \w+\((\w+), (\w+)\):\n    (\w+) = f"\{\1\}/\{\{\}\}"\.\w+\n    return \3\(\2\)', code
    )


@pytest.mark.parametrize(
    "language, code, kept",
    [
        (
            "javascript",
            "function f(x) { return `${x.name} name` + x.name; }",
            r"`\$\{(\w+)\.(\w+)\} name` \+ \1\.\2",
        ),
        (
            "ruby",
            'def f(x)\n  "#{x.name} name" + x.name\nend',
            r'"#\{(\w+)\.(\w+)\} name" \+ \1\.\2',
        ),
        (
            "php",
            'function f($x) { return "$x {$x->name} x" . $x->name; }',
            r'"\$(\w+) \{\$\1->(\w+)\} x" \. \$\1->\2',
        ),
        (  # names without their sign would be a type, and a word of the language
            "php",
            'function f($int) { return "$int$int $this" . "$this" . $int; }',
            r'"\$((?!int\b)\w+)\$\1 \$this" \. "\$this" \. \$\1;',
        ),
        (
            "rust",
            'fn f(x: i32) { println!("{x:?} {} {{x}}", x); println!(r#"{x}"#); }',
            r'"\{(\w+):\?\} \{\} \{\{x\}\}", \1.*r#"\{\1\}"#',
        ),
    ],
)
def test_names_in_code_inside_strings_are_renamed_with_the_others(language, code, kept):
    for name in RENAMINGS:
        assert re.search(kept, edit(code, language, name)[0])


@pytest.mark.parametrize("name", ["brackets", "distance"])
def test_an_interface_before_super_has_no_brackets(name):
    code = edit("int f(int x) { return Shape.super.area(x) + Shape.super.side; }", "java", name)[0]
    assert "return Shape.super.area((" in code
    assert "+ Shape.super.side" in code


@pytest.mark.parametrize("name", ["brackets", "distance"])
def test_a_name_before_a_sign_becomes_no_cast(name):
    """Of `(a.b) - c` among arguments, the grammar of Java says that `-c` is cast."""
    code = "void f() {" + " g(a.b - c, d + e);" * 20 + " }"
    edited, _ = edit(code, "java", name)
    assert not re.search(r"\([a-z.]+\) [-+] ", edited)
    assert name == "distance" or "(c)" in edited


@pytest.mark.parametrize(
    "language, code, kept",
    [
        ("php", "function f($a) {" + " $a = $a + Double::X;" * 20 + " }", "+ Double::X;"),
        (
            "typescript",
            "function f() {" + " while (a >= 0 && b.c - d[a]!.c < e) a--;" * 20 + " }",
            "while (a >= 0 && ",
        ),
    ],
)
@pytest.mark.slow
def test_what_grammars_misread_gets_no_brackets(language, code, kept):
    """Of PHP's `(Double::X)`, a cast; and of `a && b!.c` in TypeScript, what `!` belongs to."""
    edited, _ = edit(code, language, "brackets")
    assert edited.count(kept) == 20
    assert edited != code


def test_names_with_syntax_of_their_own_are_no_new_names_in_go():
    function = Function("func f(x int) {}", LANGUAGES["go"], "exact", "rename-words")
    assert [
        name for name in ("make", "new", "iota", "nil", "made") if not function.is_taken(name)
    ] == ["made"]


def test_names_that_are_taken():
    """In any case: those in strings, those without their sign, the text between tags; and the language's own."""
    for language, code, taken in (
        ("python", 'def f(a):\n    return f"{deep}" + Wide\n', "a deep DEEP wide Return"),
        ("php", "function f($deep) {}", "deep Deep"),
        ("javascript", "function f() { return <p>Hello</p>; }", "p hello"),
    ):
        function = Function(code, LANGUAGES[language], "exact", "rename-words")
        assert all(function.is_taken(name) for name in taken.split())
        assert not function.is_taken("free")


def test_words_of_the_language_or_of_the_function_become_no_names(monkeypatch):
    vocabulary = {2: "if is in as or ab ok".split()}
    monkeypatch.setattr(words, "_vocabulary", lambda: vocabulary)
    assert edit("def ab(): 1\n", "python", "rename-words")[0] == "def ok(): 1\n"


def test_fields_of_names_that_the_function_does_not_have_stay():
    code = 'def f(x, name):\n    return "{name} {other}".format(**x)\n'
    after = edit(code, "python", "rename-words")[0]
    assert re.search(r', (\w+)\):\n    return "\{\1\} \{other\}"', after)
    assert "name" not in after


def test_a_name_without_a_letter_stays():
    code = edit("def f(a):\n    for _ in a: pass\n", "python", "rename-letters")[0]
    assert re.fullmatch(r"def [^\W_]\(([^\W_])\):\n    for _ in \1: pass\n", code)


def test_two_names_that_would_become_one_are_told():
    function = Function("def f(a): 1\n", LANGUAGES["python"], "exact", "rename-words")
    with pytest.raises(EditError, match="two of its identifiers would become one"):
        words._renamed(function, lambda name: "same")


@pytest.mark.parametrize(
    "word, other, cased",
    [
        ("x", "a", "a"),
        ("X", "a", "A"),
        ("X", "ab", "Ab"),
        ("XY", "abc", "ABC"),
        ("Xy", "ab", "Ab"),
        ("xY", "ab", "ab"),
    ],
)
def test_another_word_has_the_case_of_the_word(word, other, cased):
    assert words._cased_as(word, other) == cased


def test_plain_numbers_become_others_of_their_length():
    """Of up to nine digits, and no two of them one; if all others are taken, a number stays itself."""
    numbers = "1 2 3 4 5 6 7 8 9 10 99 123456789 1.5 20.".split()
    kept = "0 0.5 007 1234567890 0x10 1e5".split()
    code = f"void f() {{ g({', '.join(numbers + kept)}); }}"
    after = re.findall(r"[\w.]+", edit(code, "java", "literals")[0])[3:]
    assert after[len(numbers) :] == kept
    digits = [number.partition(".")[0] for number in after[: len(numbers)]]
    assert [*map(len, digits)] == [len(number.partition(".")[0]) for number in numbers]
    assert not [one for one in digits if one[0] == "0"]
    assert len({*digits}) == len({number.partition(".")[0] for number in numbers})
    assert sum(before == one for before, one in zip(numbers[:9], digits)) <= 1
    assert all(before != one for before, one in zip(numbers[9:], after[9:]))
    assert after[12] == digits[0] + ".5"
    assert digits[11] != "100000000"  # but one of those drawn


@pytest.mark.slow
def test_all_numbers_of_a_length_become_others():
    numbers = [*map(str, range(100, 1000))]
    code, _ = edit(f"void n() {{ g({', '.join(numbers)}); }}", "java", "literals")
    assert sorted(re.findall(r"\d+", code)) == numbers


def test_words_of_two_letters_in_strings_become_others():
    after = edit('def f(): g("a bc def A")\n', "python", "literals")[0]
    assert re.fullmatch(r'def f\(\): g\("a (?!bc)[a-z]{2} (?!def)[a-z]{3} A"\)\n', after)


def test_layout_doubles_what_a_tab_stands_for():
    code = "int f(int a) {\n\ta++;\n  \ta++;\n    return a;\n}\n"
    after = edit(code, "java", "layout")[0]
    found = re.findall(r"^( *)(?:a\+\+|return a);$", after, re.MULTILINE)
    assert [*map(len, found)] == [16, 16, 8]


def test_comments_have_one_to_five_words_and_none_is_in_brackets():
    rows = ["x = [", "  a,", "]", "x = (", "  a,", ")"]
    code = "def f(a):\n" + "".join(f"    {one}\n" for one in rows * 40)
    after = edit(code, "python", "layout")[0]
    comments = re.findall(r"^ +#(.*)$", after, re.MULTILINE)
    assert {len(comment.split()) for comment in comments} == {1, 2, 3, 4, 5}
    assert after.count("x = [\n      a,\n    ]\n") == after.count("x = (\n      a,\n    )\n") == 40


def test_layout_leaves_text_outside_of_php():
    code = "function f($x) {\n    ?>\n<b>\n  c\n</b>\n    <?php\n    return $x;\n}\n"
    edited = edit(code, "php", "layout")[0]
    assert "?>\n<b>\n  c\n</b>\n    <?php" in edited != code


SWITCH = """\
int f(int x) {
    record P(int a) { }
    var y = new P(x);
    return switch (x) { case 1: case 2: case 3: case 4: yield 1; case 5: case 6: case 7: case 8: yield 2; default: yield x; };
}
"""


@both_variants
def test_java_s_words_of_today_are_no_names(variant):
    for name in RENAMINGS:
        code, _ = edit(SWITCH, "java", name, variant)
        assert len(re.findall(r"\b(?:record|var|yield)\b", code)) == 5
        assert "P(" not in code


@both_variants
def test_labels_of_cases_stay_different(variant):
    code, _ = edit(SWITCH, "java", "literals", variant)
    assert len(set(re.findall(r"case (\d):", code))) == 8


def test_literals_keep_names_of_characters_and_fields():
    code, _ = edit(FIELDS, "python", "literals")
    assert '"\\N{BULLET} ' in code
    assert " tail" not in code
    assert '"{name} ' in code
    assert "'%(name)s'" in code
    assert (
        '"\\u{FADE} '
        in edit('function f() { return "\\u{FADE} tail"; }', "javascript", "literals")[0]
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", EDITS)
@pytest.mark.parametrize("variant", [pytest.param("paper", marks=pytest.mark.long), "exact"])
@pytest.mark.parametrize("language", CODE)
def test_edited_code_is_read_by_a_parser_of_its_own(language, name, variant):
    for code in [*sample(language), CODE[language]]:
        try:
            edited, _ = edit(code, language, name, variant)
        except EditError:
            continue
        if language == "python":
            compile(edited, "f", "exec")
        else:
            javalang.parse.parse(f"class A {{ {edited} }}")


# Repeatable ----------------------------------------------------------------------------------------------------------


IN_ANOTHER_PROCESS = """
import json, sys
from codesyntax_dataset.edits import edit
print(json.dumps([edit(*arguments)[0] for arguments in json.load(sys.stdin)]))
"""


@pytest.mark.slow
def test_draws_do_not_depend_on_the_process():
    asked = [(code, language, name) for language, code in CODE.items() for name in EDITS]
    environment = {"PYTHONHASHSEED": "7", "PYTHONPATH": str(Path(__file__).parents[2])}
    told = python(IN_ANOTHER_PROCESS, input=json.dumps(asked), env=environment)
    assert json.loads(told.stdout) == [edit(*arguments)[0] for arguments in asked]


# Configs -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    for number, split in enumerate(("test", "test", "validation")):
        file = folder / split / "project" / f"file{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(
            PYTHON.replace("30", f"{number + 1}1")
            + "\n\n"
            + "def f(x):\n    y = g(x)(x)\n    return y\n"
        )
    return str(folder)


@pytest.mark.slow
def test_configs_of_edits_from_the_command_line_to_load_dataset(source, tmp_path):
    build_it = ("build --source", source, "--config python --output", tmp_path / "data")
    run(*build_it, "--edit distance")
    result = run(*build_it, "--edit distance --edit rename-words --edit rename-words")  # adds to it
    assert (
        "not edited, because the edit changes its labels: 3 (first: function 1 (test/project/file0.py#L12-L14), "
        in result.stderr
    )
    report = check_folder(tmp_path / "data")
    assert list(report.configs) == ["python", "python_rename_words", "python_distance"]
    tables = {
        config: pq.read_table(tmp_path / "data" / config / "test.parquet").to_pylist()
        for config in report.configs
    }
    plain, words, far = tables.values()
    assert (
        [row["id"] for row in plain] == [row["id"] for row in words] == [row["id"] for row in far]
    )
    assert [row["relations"] for row in words] == [row["relations"] for row in plain]
    assert [row["code"] for row in words] == [
        edit(row["code"], "python", "rename-words")[0] for row in plain
    ]
    assert [bool(row["relations"]) for row in far] == [
        True,
        False,
    ] * 2  # what cannot be edited has no labels
    assert [row["code"] == before["code"] for row, before in zip(far, plain)] == [False, True] * 2
    card = (tmp_path / "data" / "README.md").read_text(encoding="utf-8")
    assert f"- `python_distance`: {EDITS['distance']}." in card
    assert "- `python_distance`: not edited, because" in card
    assert "`python_rename_letters`" not in card

    from datasets import load_dataset

    assert (
        load_dataset(
            str(tmp_path / "data"), "python_distance", split="test", cache_dir=tmp_path
        ).num_rows
        == 4
    )


def test_edits_that_there_are_not(source, tmp_path):
    for configs, edits, error, message in (
        (["python"], ["layouts"], UnknownName, "did you mean 'layout'"),
        (
            ["python_with_new_lines"],
            ["layout"],
            ArgumentError,
            "python_with_new_lines has no edits: only python, java",
        ),
        (["english"], ["layout"], ArgumentError, "english has no edits"),
    ):
        with pytest.raises(error, match=message):
            build(source, configs, tmp_path / "data", edits=edits)
    (tmp_path / "CodeSyntax_python.json").write_text("[]")
    with pytest.raises(SourceError, match="python_layout"):
        build(str(tmp_path / "CodeSyntax_python.json"), ["python_layout"], tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_configs_of_edits_are_of_their_language():
    for language in ("python", "java"):
        assert language_of(f"{language}_rename_words").name == language
        assert variant_of(f"{language}_rename_words").edit == "rename-words"
    assert not [config for config in unedited() if variant_of(config).edit]
