"""CuBERT's tokenizer: how it splits, which characters each sub-token stands for, and how it is kept."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.labels.codesearchnet import read_rows, slice_of_codesearchnet
from support.models.cubert_release import ENTRIES, write_vocabulary
from support.references.published_cubert import published_alignment

from codesyntax_dataset.errors import ModelError, UnknownName
from codesyntax_dataset.languages import tokenize
from probing.instruments.attention.align import align
from probing.models.cubert.tokenizer import (
    CubertTokenizer,
    Vocabulary,
    lex,
    pieces,
)
from probing.models.subtokens import encode


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory):
    return write_vocabulary(tmp_path_factory.mktemp("release"))


@pytest.fixture(scope="module")
def python(vocabulary):
    return CubertTokenizer(vocabulary, "python")


@pytest.fixture(scope="module")
def java(vocabulary):
    return CubertTokenizer(vocabulary, "java")


def stands_for(tokenizer, code):
    """Every sub-token, and the characters that it stands for; line breaks and tabs are shown as signs."""
    found = "·".join(
        f"{tokenizer.convert_ids_to_tokens(number)}={code[start:end]}"
        for number, start, end in tokenizer.subtokens(code)
    )
    return found.replace("\n", "⏎").replace("\t", "⇥")


@pytest.mark.parametrize(
    "token, split",
    [
        ("fooBarHTTPServer_x2__y", "foo Bar HTTP Server_ x2__ y"),
        ("__init__", "__ init__"),
        ("MAX_VALUE", "MAX_ VALUE"),
        ("_", "_"),
        ("X1größeÄb", "X1größeÄb"),  # only ASCII has capitals, in a name
        ("a" * 16, "aaaaaaaaaaaaaaa a"),
        ("0xDEAD_beef_0123456", "0xDEAD_beef_012 3456"),
        ("f'aBCd__%s9'", "f ' a B Cd __% s 9 '"),
        ("'''x\n\n'''", "'''|x|\n|\n|'''"),
        ("#  \t-- x", "#|  |\t|--| |x"),
        ("#" + 21 * " " + "x", "#|" + 15 * " " + "|     | |x"),
        (18 * " ", 15 * " " + "|   "),
        ("->", "->"),
    ],
)
def test_pieces(token, split):
    assert list(pieces(token)) == split.split("|" if "|" in split else " ")


@pytest.mark.parametrize(
    "code, lexed",
    [
        (
            "def f(\n  a):\n  if a:\n    b # c\n  d\n",
            "def f ( NL a ) : NEWLINE INDENT if a : NEWLINE INDENT b #c NEWLINE DEDENT d DEDENT NEWLINE",
        ),
        ("x\n\n# y", "x NEWLINE NL #y NL NEWLINE"),
        ("x # y", "x #y NEWLINE"),
        ("if x:\n\ty\n# z\nw", "if x : NEWLINE INDENT y NEWLINE #z NL DEDENT w NEWLINE"),
        ("x = $ 'a", "x =  $  ' a NEWLINE"),  # a blank before what is no token is an error, too
        ("(\n $)", "( NL  $ ) NEWLINE"),
        ("x = (", "ERROR"),
        ("'''x", "ERROR"),
        ("if x:\n    y\n  z", "ERROR"),
        # one token each, on any version
        (
            "f'{x!r:>{w}}' '''a\nb'''",
            "f'{x!r:>{w}}' '''a\nb''' NEWLINE",
        ),
        (" \n", ""),
    ],
)
def test_python_lexemes(code, lexed):
    """As of `tokenize` in Python 3.11; line breaks and blocks are shown by their names."""
    found, _ = lex("python", code)
    assert " ".join(lexeme.name or lexeme.spelling.replace(" ", "") for lexeme in found) == lexed


@pytest.mark.parametrize(
    "code, lexed",
    [
        ("a>>b // c\n\n  /*d*/ e", "a > > b . //c| NEWLINE .. /*d*/ . e"),
        ("#1.5f 'x' 0", "# 1.5f . 'x' . 0"),
        ("\\u0061b \n", "ab NEWLINE"),
        ('"a', "ERROR"),
        ("a /* b", "ERROR"),
    ],
)
def test_java_lexemes(code, lexed):
    """As of javalang, with comments and white space; each blank between tokens is a dot here."""
    found, _ = lex("java", code)
    spelled = [
        text.replace(" ", "." if text.isspace() else "").replace("\n", "|") for text, *_ in found
    ]
    assert " ".join(lexeme.name or text for lexeme, text in zip(found, spelled)) == lexed


def test_named_characters(java):
    """A carriage return and a caret have names, so that a caret says only that a code token goes on."""
    joined = "".join(java.tokenize('"\r^"'))
    assert joined == r'"^_\u\u\uCR\u\u\u^_\u\u\uCARET\u\u\u"_\u\u\uNEWLINE\u\u\u_'


def test_python_by_hand(python):
    """Of a function with an indentation, a blank line and a comment; the last line break is that of the last line."""
    expected = (
        r"def_=def·f=f·_=f·(=(·_=(·a=a·^_=a·B=B·_=B·)=)·_=)·:=:·_=:·\u\u\uNEWLINE\u\u\u_=⏎·"
        r"\u\u\uNL\u\u\u_=⏎·#=#·^_=#· = ·^_= ·n=n·o=o·_=o·\u\u\uNL\u\u\u_=⏎·"
        r"\u\u\uINDENT\u\u\u =    ·   _=·return_=return·a=a·\u=_·_=_·\u\u\uDEDENT\u\u\u_=·"
        r"\u\u\uNEWLINE\u\u\u_=⏎"
    )
    assert stands_for(python, "def f(aB):\n\n    # no\n    return a_\n") == expected


def test_java_by_hand(java):
    """A comment has its line break, blanks before one are dropped, a tab is a space, and escapes are decoded."""
    expected = (
        r"int_=int· = ·_= ·a=a·_=a·;=;·_=;· = ·_= ·/=/·/=/·^_=/· = ·^_= ·b=b·^_=b·"
        r'\u\u\uNLCHAR\u\u\u_=⏎·\u\u\uNEWLINE\u\u\u_=⏎· =⇥·_=⇥·x=x·_=x·===·_==·"="·^_="·A=\u0041·'
        r'^_=\u0041·"="·_="·;=;·_=;·\u\u\uNEWLINE\u\u\u_=⏎'
    )
    assert stands_for(java, 'int a; // b\n\n\tx="\\u0041"; \n') == expected


def test_settings_are_kept(vocabulary, tmp_path):
    code = "/** a */ int f() { return 1; } // b"
    tokenizer = CubertTokenizer(vocabulary, "java")
    tokenizer.save_pretrained(tmp_path)
    again = CubertTokenizer.from_pretrained(tmp_path)
    assert again.language == "java"
    assert again(code)["input_ids"] == tokenizer(code)["input_ids"]
    assert again.get_vocab() == {entry: number for number, entry in enumerate(ENTRIES)}
    assert {file.name for file in tmp_path.iterdir()} == {"vocab.txt", "tokenizer_config.json"}
    assert (tmp_path / "vocab.txt").read_bytes().decode().split("\n") == ENTRIES


def test_as_any_tokenizer(python):
    """Padding, special tokens, several texts, and decoding."""
    both = python(["def f", "def"], padding=True, return_tensors="np")
    assert both["input_ids"].shape == (2, 6)
    assert both["attention_mask"].sum(axis=1).tolist() == [
        6,
        4,
    ]
    assert python.convert_ids_to_tokens(both["input_ids"][1].tolist())[-3:] == [
        "[SEP]_",
        "<pad>_",
        "<pad>_",
    ]
    one = python("x", return_offsets_mapping=True, add_special_tokens=False)
    assert (len(one["input_ids"]), one["offset_mapping"]) == (3, [(0, 1), (0, 1), (1, 1)])
    assert python.decode(python("a_b\\").input_ids, skip_special_tokens=True) == "a_b\\\n"


@pytest.mark.parametrize(
    "entries, said",
    [
        ([*ENTRIES, "def_"], "'def_' twice"),
        ([entry for entry in ENTRIES if entry != "[MASK]_"], "lacks the entry '[MASK]_'"),
        ([entry for entry in ENTRIES if entry != "\\"], r"lacks the entry '\\'"),
        ([*ENTRIES, "naïve_"], "lacks the entry 'ï'"),
        ([entry for entry in ENTRIES if "^" not in entry], "lacks the entry '^'"),
        ([""], "lacks the entry '<pad>_'"),
    ],
)
def test_no_vocabulary(tmp_path, entries, said):
    with pytest.raises(ModelError) as error:
        CubertTokenizer(write_vocabulary(tmp_path, entries), "python")
    assert said in str(error.value)


def test_no_vocabulary_file(tmp_path, vocabulary):
    (tmp_path / "latin").write_bytes(b"na\xefve_\n")
    for file in (None, tmp_path, tmp_path / "none", tmp_path / "latin"):
        with pytest.raises(ModelError, match="cannot be read"):
            CubertTokenizer(file, "python")
    with pytest.raises(UnknownName, match="java"):
        CubertTokenizer(vocabulary, "Java")
    with pytest.raises(ModelError, match="drops .*comments.*convert CuBERT again"):
        CubertTokenizer(vocabulary, "java", drop=["comments"])


def test_quotes_are_those_of_the_file():
    """The lists with and without quotes are one; the entry of a quote alone is no quoted file."""
    quoted = Vocabulary("".join(f"'{entry}'\n" for entry in ENTRIES))
    assert quoted.entries == Vocabulary("\n".join(ENTRIES)).entries == ENTRIES


@pytest.mark.slow
@pytest.mark.parametrize("language", ["python", "java"])
def test_any_text(vocabulary, language):
    """Sub-tokens of any text run from left to right, within it, and leave out white space only, whatever it holds."""
    tokenizer = CubertTokenizer(vocabulary, language)
    line = st.text(st.sampled_from("aB_1.'\"#/*\\$ \t\r\n\f(){}:=;ï∅\ud800\0"), max_size=20)
    code = line | st.lists(
        st.sampled_from(["def f(x):\n", "    ", "if x:\n", "int a;", "// c\n", "\\u0041", "'s'"])
    ).map("".join)

    @given(code)
    @example("")
    @example("def f(:")
    @example("\u00a0")
    def check(text):
        found = list(tokenizer.subtokens(text))
        offsets = np.array([(0, 0), *((start, end) for _, start, end in found)])
        assert (np.diff(offsets, axis=0) >= 0).all()
        assert offsets.max() <= len(text)
        covered = {place for _, start, end in found for place in range(start, end)}
        assert all(
            character.isspace() or character == "\\"
            for place, character in enumerate(text)
            if place not in covered
        )
        assert bool(found) == bool(text.strip())

    check()


@pytest.mark.slow
@pytest.mark.parametrize("language", ["python", "java"])
def test_reference(shared, language):
    """Sub-tokens, ids and the published alignment are those of the original, for 200 functions.

    Our own alignment, by characters, differs from the published one only where that one finds nothing, or goes wrong.
    """
    folder = shared / "data" / "cubert"
    tokenizer = CubertTokenizer(folder / f"vocab_{language}.txt", language)
    code = slice_of_codesearchnet(shared, language, "test")
    rows = read_rows(folder / f"{language}.jsonl.gz")
    differences: Counter[str] = Counter()
    for row, (ids, offsets, special) in zip(
        rows, encode(tokenizer, [code[row["url"]] for row in rows])
    ):
        assert ids.tolist() == row["ids"]
        assert tokenizer.convert_ids_to_tokens(ids.tolist()) == row["subtokens"]
        assert (
            published_alignment(tokenizer, row["code_tokens"], row["subtokens"]) == row["alignment"]
        )
        text = code[row["url"]]
        tokens = tokenize(text, language)
        places = np.array([(token.start, token.end) for token in tokens])
        found = align(text, *places.T, offsets, special, exact=True)
        for first, last, positions in zip(found.first, found.last, row["alignment"]):
            ours = list(range(first, last + 1)) if first >= 0 else []
            differences["tokens"] += 1
            if ours != positions:
                differences["wrong" if positions else "not found"] += 1
    assert len(rows) == 200
    # comments, the line breaks behind them, and indentations of rare widths; the 8 are ends of comments
    python = {"tokens": 23075, "not found": 387, "wrong": 8}
    assert differences == (python if language == "python" else {"tokens": 13090})
