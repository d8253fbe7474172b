"""CuBERT's tokenizer: its lexers for code, its vocabulary, and both as a tokenizer of transformers.

`lex` gives the unified tokens of CuBERT, with the characters that each stands for, `pieces` the
pieces into which CuBERT splits a token, and `Vocabulary` the sub-tokens of a piece; the tokenizer
records the characters of each.

The lexers are those of the labels, which do not depend on the interpreter: Python's `tokenize` as
up to 3.11, and javalang.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from transformers import BatchEncoding, PreTrainedTokenizer

from codesyntax_dataset import safe_files
from codesyntax_dataset.arguments import StrPath
from codesyntax_dataset.atomic import write
from codesyntax_dataset.errors import ModelError, ParseError, UnknownName
from codesyntax_dataset.languages.java import tokens as java_tokens
from codesyntax_dataset.languages.python import tokens as python_tokens
from probing.models.cubert import LANGUAGES

_LINE_BREAK = re.compile(r"\r?\n")


class Lexeme(NamedTuple):
    """A token: how it is spelled, and from which character to which (exclusive) of the code it is.

    `name` is the name between triple underscores that goes before the spelling of tokens without a
    text of their own, such as line breaks. It stands for all characters of the token, the spelling
    behind it for none.
    """

    spelling: str
    start: int
    end: int
    name: str = ""


def lex(language: str, code: str) -> tuple[list[Lexeme], Sequence[int]]:
    """The tokens of code in one of LANGUAGES, and the place in the code of every character that
    they count.

    Code that cannot be tokenized is one token, ERROR; blank code has none.
    """
    places = range(len(code) + 1)
    if not code.strip():
        return [], places
    try:
        if language == "python":
            return list(_python_lexemes(code)), places
        decoded = java_tokens.DecodedCode(code)
        return list(_java_lexemes(decoded)), decoded.places
    except ParseError:
        return [Lexeme("", 0, len(code), "ERROR")], places


def _python_lexemes(code: str) -> Iterator[Lexeme]:
    text = code.rstrip()
    depth = blocks = 0  # of brackets, and of indentation
    blank = True  # nothing but comments yet on a logical line
    for token, start, end in python_tokens.tokenize(text):
        if start == end == len(text):  # the tokens of the end
            break
        if not token:
            blocks -= 1
            yield Lexeme("", start, end, "DEDENT")
        elif token.endswith("\n"):
            yield Lexeme("", start, end, "NL" if depth or blank else "NEWLINE")
            blank = blank or not depth
        elif blank and token.isspace():
            blocks += 1
            yield Lexeme(token, start, end, "INDENT")
        else:
            depth += (token in "([{") - (token in ")]}")
            blank = blank and token.startswith("#")
            yield Lexeme(token, start, end)
    for name in ["NL"] * blank + ["DEDENT"] * blocks:
        yield Lexeme("", len(text), len(text), name)
    line_break = _LINE_BREAK.search(code, len(text))
    start, end = line_break.span() if line_break else (len(text), len(text))
    yield Lexeme("", start, end, "NEWLINE")


def _java_lexemes(decoded: java_tokens.DecodedCode) -> Iterator[Lexeme]:
    text, reached = decoded.text, 0
    for token, start, end in java_tokens.scan(decoded, everything=True):
        yield from _java_gap(text, reached, start)
        if token.startswith("//"):
            end += text.startswith("\n", end)  # a comment to the end of the line has its line break
        reached = end
        yield Lexeme(text[start:end], start, end)
    yield from _java_gap(text, reached, len(text))


def _java_gap(text: str, start: int, end: int) -> Iterator[Lexeme]:
    """The pieces between two tokens: a NEWLINE for each line break, and the blanks behind the last
    one, as spaces."""
    for line_break in _LINE_BREAK.finditer(text, start, end):
        yield Lexeme("", *line_break.span(), "NEWLINE")
        start = line_break.end()
    if start < end:
        yield Lexeme(" " * (end - start), start, end)


_LONGEST_PIECE = 15
"""Characters of a piece."""

_NUMBER = re.compile(r"\.?\d")
_NAME = re.compile(r"[A-Za-z_$]|[^\x00-\x7f]")

_PARTS_OF_NAME = re.compile(  # with underscores behind each; a run of capitals ends before the one that begins a word
    """ [A-Z]? [^A-Z_]+ _*  |  [A-Z]+ (?=[A-Z][^A-Z_])  |  [A-Z]+ _*  |  _+ """, re.VERBOSE
)

_PARTS_OF_WORDS = re.compile(r"U?L+|U+(?!L)|D+|O+| {1,20}|\t{1,20}|S")
"""The runs of the classes of characters: a capital goes with the small letters behind it, and only
the same blank or tab stays together."""


def pieces(token: str) -> Iterator[str]:
    """The pieces of a token, in order; together they are the token.

    Numbers are cut for their length only, names where a word begins, and all others, such as
    literals and comments, where the class of characters changes.
    """
    if _NUMBER.match(token):
        parts = [token]
    elif _NAME.match(token) and not token.endswith(('"', "'")):
        parts = _PARTS_OF_NAME.findall(token)
    else:
        runs = _PARTS_OF_WORDS.finditer("".join(map(_class, token)))
        parts = [token[run.start() : run.end()] for run in runs]
    for part in parts:
        for start in range(0, len(part), _LONGEST_PIECE):
            yield part[start : start + _LONGEST_PIECE]


def _class(character: str) -> str:
    """The class of a character, one of those in _PARTS_OF_WORDS."""
    if character.isupper():
        return "U"
    if character.islower():
        return "L"
    if character.isdigit():
        return "D"
    if character in " \t":
        return character
    return "S" if character.isspace() else "O"


_LARGEST_VOCABULARY = 1 << 24  # bytes of a vocabulary

_UNKNOWN = "[UNK]_"
"""The entry that is never produced."""

_SPECIAL = {
    "pad_token": "<pad>_",
    "cls_token": "[CLS]_",
    "sep_token": "[SEP]_",
    "mask_token": "[MASK]_",
    "unk_token": _UNKNOWN,
}
"""Entries that stand for no text."""

GOES_ON, ENDS = "^", "_"
"""The end of a piece: ENDS, after GOES_ON if the code token has further pieces."""

_ESCAPES = {
    "\\": "\\\\",
    "_": "\\u",
    "\n": r"\u\u\uNLCHAR\u\u\u",
    "\r": r"\u\u\uCR\u\u\u",
    "^": r"\u\u\uCARET\u\u\u",
}
"""How characters are spelled; three of them by a name."""

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
        spelling = self._alphabet.union("^_;0123456789", *_ESCAPES.values())
        needed = [*_SPECIAL.values(), *sorted(spelling)]
        if lost := [entry for entry in needed if entry not in self.ids]:
            raise ModelError(
                f"the vocabulary lacks the entry {lost[0]!r}: expected one of CuBERT's, an entry in each line, and "
                "among them every character"
            )
        self._longest = max(map(len, entries))
        self.encode = functools.lru_cache(maxsize=1 << 16)(self._encode)

    def _encode(self, piece: str, goes_on: bool) -> list[tuple[int, int, int]]:
        """The sub-tokens of a piece: the id, and the first and last (inclusive) character of the
        piece that it spells.

        What ends the piece belongs to its last character, as it spells nothing of its own.
        """
        texts = [self._escaped(character) for character in piece]
        texts[-1] += GOES_ON + ENDS if goes_on else ENDS
        escaped = "".join(texts)
        places = [number for number, text in enumerate(texts) for _ in text]
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
        known = character if character in self._alphabet else f"\\{ord(character)};"
        return _ESCAPES.get(character, known)


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

    def __init__(self, vocab_file: StrPath, language: str, **options: Any):
        if language not in LANGUAGES:
            raise UnknownName("language of CuBERT", language, LANGUAGES)
        if dropped := options.pop("drop", None):
            raise ModelError(f"its tokenizer drops {dropped}, which is gone: convert CuBERT again")
        self.language = language
        self.vocabulary = read_vocabulary(vocab_file)
        options |= {"language": language, "special_tokens_pattern": "cls_sep"} | _SPECIAL
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
        if lexemes and lexemes[-1].name != "NEWLINE":
            behind = lexemes[-1].end
            lexemes.append(Lexeme("", behind, behind, "NEWLINE"))
        for spelling, start, end, name in lexemes:
            if name:
                marker = named(name)
                for number, first, _ in self.vocabulary.encode(marker + spelling, False):
                    yield number, places[start if first < len(marker) else end], places[end]
                continue
            parts = list(pieces(spelling))
            for count, part in enumerate(parts, 1):
                for number, first, last in self.vocabulary.encode(part, count < len(parts)):
                    yield number, places[start + first], places[start + last + 1]
                start += len(part)

    def tokenize(self, text: str, *arguments: Any, **options: Any) -> list[str]:
        return [self.vocabulary.entries[number] for number, _, _ in self.subtokens(text)]

    def _encode_plus(self, text: Any, *arguments: Any, **options: Any) -> BatchEncoding:
        # of several texts, transformers calls this again for each
        with_offsets = isinstance(text, str) and options.pop("return_offsets_mapping", False)
        encoding = super()._encode_plus(text, *arguments, **options)
        if with_offsets:
            added = [(0, 0)] if options.get("add_special_tokens", True) else []
            offsets = [(start, end) for _, start, end in self.subtokens(text)]
            encoding["offset_mapping"] = [*added, *offsets, *added]
        return encoding

    def _convert_token_to_id(self, token: str) -> int:
        return self.vocabulary.ids.get(token, self.vocabulary.ids[_UNKNOWN])

    def _convert_id_to_token(self, index: int) -> str:
        return self.vocabulary.entries[index] if 0 <= index < self.vocab_size else _UNKNOWN

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        """The text that sub-tokens spell: without what ends a piece, and with a line break for what
        is named so."""
        text = "".join(tokens).replace(GOES_ON + ENDS, "").replace(ENDS, "")
        text = _UNESCAPED.sub(_unescaped, text)
        text = re.sub("___(?:NL|NEWLINE|NLCHAR)(?:___|$)", "\n", text).replace(named("CR"), "\r")
        return re.sub("___(?:INDENT|DEDENT)___", "", text).replace(named("CARET"), "^")

    def save_vocabulary(
        self, save_directory: str, filename_prefix: str | None = None
    ) -> tuple[str, ...]:
        entries = "\n".join(self.vocabulary.entries)
        return (str(write(Path(save_directory, "vocab.txt"), entries)),)


def read_vocabulary(file: StrPath) -> Vocabulary:
    """The vocabulary in a file of a release; raises ModelError if there is none."""
    try:
        return Vocabulary(safe_files.read(file, _LARGEST_VOCABULARY).decode())
    except (OSError, UnicodeDecodeError, TypeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ModelError(
            f"the vocabulary {file} cannot be read: {reason}; expected a text file in UTF-8"
        ) from error


def _unescaped(escape: re.Match[str]) -> str:
    if escape[1] is None:
        return "_" if escape[0] == "\\u" else "\\"
    return chr(int(escape[1])) if int(escape[1]) < 0x110000 else "\ufffd"
