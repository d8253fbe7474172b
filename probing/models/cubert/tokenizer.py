"""CuBERT's tokenizer: its lexers for code, its vocabulary, and both as a tokenizer of transformers.

`lex` gives the unified tokens of CuBERT, with the characters that each stands for, `pieces` the
pieces into which CuBERT splits a token, and `Vocabulary` the sub-tokens of a piece; the tokenizer
records the characters of each.

The lexers are those of the labels, which do not depend on the interpreter: Python's `tokenize` as
up to 3.11, and javalang. Keywords, punctuation and errors are one kind here, because all three stay
whole.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from transformers import BatchEncoding, PreTrainedTokenizer

from codesyntax_dataset import safe_files
from codesyntax_dataset.atomic import write
from codesyntax_dataset.errors import ModelError, ParseError, UnknownName
from codesyntax_dataset.languages.java import tokens as java_tokens
from codesyntax_dataset.languages.python import tokens as python_tokens
from probing.models.cubert import LANGUAGES

IDENTIFIER, LITERAL, COMMENT, NUMBER, WHITESPACE, NEWLINE, WHOLE = range(7)
"""The kinds of tokens, which decide how they are split; a LITERAL is a string or a character."""

_LINE_BREAK = re.compile(r"\r?\n")


class Lexeme(NamedTuple):
    """A token: its kind, how it is spelled, and from which character to which (exclusive) of the
    code it is.

    `name` is the name between triple underscores that goes before the spelling of tokens without a
    text of their own, such as line breaks. It stands for all characters of the token, the spelling
    behind it for none.
    """

    kind: int
    spelling: str
    start: int
    end: int
    name: str = ""


def lex(language: str, code: str) -> tuple[list[Lexeme], Sequence[int]]:
    """The tokens of code in one of LANGUAGES, and the place in the code of every character that
    they count.

    Code that cannot be tokenized is one token, ERROR; blank code has none.
    """
    if not code.strip():
        return [], range(1)
    try:
        return _LEXERS[language](code)
    except ParseError:
        return [Lexeme(WHOLE, "", 0, len(code), "ERROR")], range(len(code) + 1)


def _python(code: str) -> tuple[list[Lexeme], Sequence[int]]:
    text = code.rstrip()
    line_break = _LINE_BREAK.search(code, len(text))
    start, end = line_break.span() if line_break else (len(text), len(text))
    return [*_python_lexemes(text), Lexeme(NEWLINE, "", start, end, "NEWLINE")], range(
        len(code) + 1
    )


def _python_lexemes(text: str) -> Iterator[Lexeme]:
    depth = blocks = 0  # of brackets, and of indentation
    blank = True  # nothing but comments yet on a logical line
    commented = False  # the last token is a comment
    for token, start, end in python_tokens.tokenize(text):
        if start == end == len(text):  # the tokens of the end
            break
        commented = token.startswith("#")
        if not token:
            blocks -= 1
            yield Lexeme(WHOLE, "", start, end, "DEDENT")
        elif token.endswith("\n"):
            yield (
                Lexeme(WHOLE, "", start, end, "NL")
                if depth or blank
                else Lexeme(NEWLINE, "", start, end, "NEWLINE")
            )
            blank = blank or not depth
        elif blank and token.isspace():
            blocks += 1
            yield Lexeme(WHOLE, token, start, end, "INDENT")
        else:
            depth += (token in "([{") - (token in ")]}")
            blank = blank and commented
            yield Lexeme(_python_kind(token), token, start, end)
    if commented and blank:
        yield Lexeme(WHOLE, "", len(text), len(text), "NL")
    for _ in range(blocks):
        yield Lexeme(WHOLE, "", len(text), len(text), "DEDENT")


def _python_kind(token: str) -> int:
    if token[0] == "#":
        return COMMENT
    if token[-1] in "\"'" and len(token) > 1:
        return LITERAL
    return _kind_of_word(token)


def _kind_of_word(token: str) -> int:
    if token[0].isdecimal() or (token[0] == "." and token[1:2].isdecimal()):
        return NUMBER
    return IDENTIFIER if token[0].isidentifier() or token[0] == "$" else WHOLE


def _java(code: str) -> tuple[list[Lexeme], Sequence[int]]:
    decoded = java_tokens.DecodedCode(code)
    return list(_java_lexemes(decoded)), decoded.places


def _java_lexemes(decoded: java_tokens.DecodedCode) -> Iterator[Lexeme]:
    text, reached = decoded.text, 0
    for token, start, end in java_tokens.scan(decoded, everything=True):
        yield from _java_gap(text, reached, start)
        if token.startswith("//"):
            end += text.startswith("\n", end)  # a comment to the end of the line has its line break
        reached = end
        yield Lexeme(_java_kind(token), text[start:end], start, end)
    yield from _java_gap(text, reached, len(text))


def _java_gap(text: str, start: int, end: int) -> Iterator[Lexeme]:
    """The pieces between two tokens: a NEWLINE for each line break, and the blanks behind the last
    one, as spaces."""
    for line_break in _LINE_BREAK.finditer(text, start, end):
        yield Lexeme(NEWLINE, "", *line_break.span(), "NEWLINE")
        start = line_break.end()
    if start < end:
        yield Lexeme(WHITESPACE, " " * (end - start), start, end)


def _java_kind(token: str) -> int:
    if token.startswith(("//", "/*")):
        return COMMENT
    return LITERAL if token[0] in "\"'" and len(token) > 1 else _kind_of_word(token)


_LEXERS: dict[str, Callable[[str], tuple[list[Lexeme], Sequence[int]]]] = dict(
    zip(LANGUAGES, (_python, _java))
)


_LONGEST_PIECE = 15
"""Characters of a piece, of the kinds that are split at all."""

_CASE = re.compile(  # of a name, with underscores behind it; a run of capitals ends before the one that begins a word
    """ [A-Z]? [^A-Z_]+ _*  |  [A-Z]+ (?=[A-Z][^A-Z_])  |  [A-Z]+ _*  |  _+ """, re.VERBOSE
)

# of literals: only the same blank or tab stays together
_BLANKS = re.compile(r"\S+| {1,20}|\t{1,20}|\s")


def pieces(kind: int, text: str) -> Iterator[str]:
    """The pieces of a token of a kind, in order; together they are `text`."""
    if kind == WHOLE:
        yield text
        return
    if kind == NUMBER:
        parts = [text]
    elif kind == IDENTIFIER:
        parts = _CASE.findall(text)
    else:
        parts = list(_by_character(text))
    for part in parts:
        for start in range(0, len(part), _LONGEST_PIECE):
            yield part[start : start + _LONGEST_PIECE]


_UPPER, _LOWER, _DIGIT, _OTHER = range(4)


def _class(character: str) -> int:
    if character.isupper():
        return _UPPER
    if character.islower():
        return _LOWER
    return _DIGIT if character.isdigit() else _OTHER


def _by_character(text: str) -> Iterator[str]:
    """Cut a literal where the class of characters changes; a capital goes with the small letters
    behind it."""
    capital = ""  # a capital for the run behind it
    runs = [(kind, "".join(run)) for kind, run in groupby(text, _class)]
    for (kind, run), (behind, _) in zip(runs, [*runs[1:], (_OTHER, "")]):
        run, capital = capital + run, ""
        if kind == _UPPER and behind == _LOWER:
            run, capital = run[:-1], run[-1]
        if kind == _OTHER:
            yield from _BLANKS.findall(run)
        elif run:
            yield run


_LARGEST_VOCABULARY = 1 << 24  # bytes of a vocabulary

PAD, CLS, SEP, MASK, UNKNOWN = "<pad>_", "[CLS]_", "[SEP]_", "[MASK]_", "[UNK]_"
"""Entries that stand for no text; the last is never produced."""

GOES_ON, ENDS = "^", "_"
"""The end of a piece: ENDS, after GOES_ON if the code token has further pieces."""

_NAMED = {"\n": "NLCHAR", "\r": "CR", "^": "CARET"}
"""Characters that are spelled by a name."""

_ESCAPES = {"\\": "\\\\", "_": "\\u"}
_UNESCAPED = re.compile(r"\\u|\\\\|\\([0-9]{1,7});")


def named(name: str) -> str:
    """The spelling of a token without a text of its own."""
    return f"___{name}___"


class Vocabulary:
    """CuBERT's vocabulary, as of tensor2tensor's SubwordTextEncoder: from the left always the
    longest entry that fits.

    `entries`: each has its place as id.

    Characters that are in no entry are spelled by their code, as the published tokenizer does; the
    text of the pretraining seems to have had one sign, U+2205, for all of them.

    `text`: that of a vocabulary file, one entry a line, with or without single quotes around all of
    them. Raises ModelError if an entry is there twice, or one is missing that every vocabulary has.
    """

    def __init__(self, text: str):
        # control characters are entries, so that no other end counts
        entries = text.removesuffix("\n").split("\n")
        if all(len(entry) > 2 and entry[0] == entry[-1] == "'" for entry in entries):
            entries = [entry[1:-1] for entry in entries]
        self.entries: Sequence[str] = entries
        self.ids = {entry: number for number, entry in enumerate(entries)}
        if len(self.ids) < len(entries):
            twice = next(entry for number, entry in enumerate(entries) if self.ids[entry] != number)
            raise ModelError(
                f"the vocabulary has the entry {twice!r} twice, expected {len(entries)} different ones"
            )
        self._alphabet = {character for entry in entries for character in entry}
        needed = [PAD, CLS, SEP, MASK, UNKNOWN, *sorted(self._alphabet | set("^\\_u;0123456789"))]
        if lost := [entry for entry in needed if entry not in self.ids]:
            raise ModelError(
                f"the vocabulary lacks the entry {lost[0]!r}: expected one of CuBERT's, an entry in each line, and "
                "among them every character"
            )
        self._longest = max(map(len, entries))
        self.encode = functools.lru_cache(maxsize=1 << 16)(self._encode)

    def text(self) -> str:
        """The file's text: the entries, without quotes."""
        return "\n".join(self.entries)

    def _encode(self, piece: str, goes_on: bool) -> list[tuple[int, int, int]]:
        """The sub-tokens of a piece: the id, and the first and last (inclusive) character of the
        piece that it spells.

        What ends the piece belongs to its last character, as it spells nothing of its own.
        """
        spelled: list[str] = []
        places: list[int] = []
        closing = (GOES_ON if goes_on else "") + ENDS
        for position, character in enumerate(piece):
            text = "".join(
                map(self._escaped, named(_NAMED[character]) if character in _NAMED else character)
            )
            spelled.append(text)
            places += [position] * len(text)
        escaped = "".join(spelled) + closing
        places += [max(0, len(piece) - 1)] * len(closing)
        ids = []
        start = 0
        while start < len(escaped):
            end = min(len(escaped), start + self._longest)
            while (number := self.ids.get(escaped[start:end])) is None:
                end -= 1
            ids.append((number, places[start], places[end - 1]))
            start = end
        return ids

    def _escaped(self, character: str) -> str:
        if character in _ESCAPES:
            return _ESCAPES[character]
        return character if character in self._alphabet else f"\\{ord(character)};"


class CubertTokenizer(PreTrainedTokenizer):
    """The tokenizer of CuBERT as of 2021, with which the models of that year and the paper's scores
    were made.

    Its predecessor dropped Python's comments and joined blank lines of Java, its successor splits
    what it cannot lex. The model sees all tokens, as in Shen et al. (2022), though CuBERT was
    pretrained without comments.

    `vocab_file`: the vocabulary of a release; `language`: `python` or `java`.

    An offset says which characters a sub-token stands for. The first sub-token of an indentation
    stands for all of it, and one that only ends a piece for the last character of the piece.
    DEDENT, and a NEWLINE behind the last character of the code, stand for none.

    Raises ModelError for a file that is not a vocabulary, and for a tokenizer saved by an earlier
    version that drops tokens; UnknownName for another language.
    """

    vocab_files_names = {"vocab_file": "vocab.txt"}  # noqa: RUF012 - as in transformers
    model_input_names = ["input_ids", "token_type_ids", "attention_mask"]  # noqa: RUF012
    exact_offsets = True

    def __init__(self, vocab_file: str | os.PathLike, language: str, **options: Any):
        if language not in LANGUAGES:
            raise UnknownName("language of CuBERT", language, LANGUAGES)
        if dropped := options.pop("drop", None):
            raise ModelError(f"its tokenizer drops {dropped}, which is gone: convert CuBERT again")
        self.language = language
        self.vocabulary = read_vocabulary(vocab_file)
        options |= {"language": language, "special_tokens_pattern": "cls_sep"}
        options |= {
            "pad_token": PAD,
            "cls_token": CLS,
            "sep_token": SEP,
            "mask_token": MASK,
            "unk_token": UNKNOWN,
        }
        super().__init__(**options)

    @property
    def vocab_size(self) -> int:
        return len(self.vocabulary.entries)

    def get_vocab(self) -> dict[str, int]:
        return dict(self.vocabulary.ids)

    def subtokens(self, code: str) -> Iterator[tuple[int, int, int]]:
        """The sub-tokens of code: the id, and from which character to which (exclusive) it stands
        for."""
        lexemes, places = lex(self.language, code)
        if lexemes and lexemes[-1].kind != NEWLINE:
            behind = lexemes[-1].end
            lexemes.append(Lexeme(NEWLINE, "", behind, behind, "NEWLINE"))
        for kind, spelling, start, end, name in lexemes:
            if name:
                marker = named(name)
                for number, first, _ in self.vocabulary.encode(marker + spelling, False):
                    yield number, places[start if first < len(marker) else end], places[end]
                continue
            parts = list(pieces(kind, spelling))
            for count, part in enumerate(parts, 1):
                for number, first, last in self.vocabulary.encode(part, count < len(parts)):
                    yield number, places[start + first], places[start + last + 1]
                start += len(part)

    def tokenize(self, text: str, *arguments: Any, **options: Any) -> list[str]:
        return [self.vocabulary.entries[number] for number, _, _ in self.subtokens(text)]

    def _line_offsets(self, code: str) -> list[tuple[int, int]]:
        return [(start, end) for _, start, end in self.subtokens(code)]

    def _encode_plus(self, text: Any, *arguments: Any, **options: Any) -> BatchEncoding:
        with_offsets = options.pop("return_offsets_mapping", False)
        encoding = super()._encode_plus(text, *arguments, **options)
        if with_offsets:
            single = isinstance(text, str)
            added = [(0, 0)] if options.get("add_special_tokens", True) else []
            offsets = [
                [*added, *self._line_offsets(code), *added] for code in ([text] if single else text)
            ]
            encoding["offset_mapping"] = offsets[0] if single else offsets
        return encoding

    def _convert_token_to_id(self, token: str) -> int:
        return self.vocabulary.ids.get(token, self.vocabulary.ids[UNKNOWN])

    def _convert_id_to_token(self, index: int) -> str:
        return self.vocabulary.entries[index] if 0 <= index < self.vocab_size else UNKNOWN

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        return spelled(tokens)

    def save_vocabulary(
        self, save_directory: str, filename_prefix: str | None = None
    ) -> tuple[str, ...]:
        name = f"{filename_prefix}-" if filename_prefix else ""
        return (str(write(Path(save_directory, f"{name}vocab.txt"), self.vocabulary.text())),)


def read_vocabulary(file: str | os.PathLike) -> Vocabulary:
    """The vocabulary in a file of a release; raises ModelError if there is none."""
    try:
        return Vocabulary(safe_files.read(file, _LARGEST_VOCABULARY).decode())
    except (OSError, UnicodeDecodeError, TypeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ModelError(
            f"the vocabulary {file} cannot be read: {reason}; expected a text file in UTF-8"
        ) from error


def spelled(entries: Sequence[str]) -> str:
    """The text that sub-tokens spell: without what ends a piece, and with a line break for what is
    named so."""
    text = "".join(entries).replace(GOES_ON + ENDS, "").replace(ENDS, "")
    text = _UNESCAPED.sub(_unescaped, text)
    text = re.sub("___(?:NL|NEWLINE|NLCHAR)(?:___|$)", "\n", text).replace(named("CR"), "\r")
    return re.sub("___(?:INDENT|DEDENT)___", "", text).replace(named("CARET"), "^")


def _unescaped(escape: re.Match[str]) -> str:
    if escape[1] is None:
        return "_" if escape[0] == "\\u" else "\\"
    return chr(int(escape[1])) if int(escape[1]) < 0x110000 else "\ufffd"
