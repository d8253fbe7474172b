"""Treebanks: sentences whose words people have linked to their syntactic heads, in one of two
forms.

- CoNLL-U, the form of Universal Dependencies (https://universaldependencies.org/format.html), in
  files `*.conllu`. Words are the rows with a whole number as id; multi-word ranges and empty nodes
  are left out.
- Plain text, `*.txt`, which Clark et al. (2019) used for the Penn Treebank in Stanford
  Dependencies: a word a line with the number of its head and the relation, such as `dogs 2-nsubj`,
  and an empty line behind each sentence.

Words are numbered from 1, and the head of the root is 0. The text of a sentence is its words joined
by single spaces (Shen et al. 2022); in the variant `space_after`, two words that the treebank joins
have no space between them. Each word but the root is the dependent of one edge from its head, with
the relation unchanged.

A source is one file, which is the test partition, or a folder with the files `*-test.conllu` or
`test.txt` for it, and `*-dev.conllu` or `dev.txt` for validation. A name of Universal Dependencies,
such as `de_gsd-ud-test.conllu`, begins with the language: files of another one than the config's
are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import conllu

from codesyntax_dataset import safe_files
from codesyntax_dataset.errors import SourceError
from codesyntax_dataset.languages import Language, language_of, variant_of
from codesyntax_dataset.languages.variants import SPACED
from codesyntax_dataset.schema import Annotation, Edge, Skips, SourceFunction, Token
from codesyntax_dataset.sources.text import decode

FORM = "treebank"
LABELS = (
    "those of the treebank, made by people, unchanged; `root` is no edge, because it has no head"
)

LARGEST_FILE = 1 << 28  # bytes

LONGEST_LINE = 1 << 20
"""Characters; a line is one word, and a sentence with a longer one is left out."""

_UD_NAME = re.compile(r"(?P<treebank>(?P<language>[a-z]{2,3})_\w+)-ud-\w+")
_PARTITIONS = {"test": ("*-test.conllu", "test.txt"), "validation": ("*-dev.conllu", "dev.txt")}
_COLUMNS = 10
# columns that are not used
_TEXT = dict.fromkeys(("xpos", "feats", "deps"), lambda line, column: line[column])
_ROOT = "root"


class _Word(NamedTuple):
    form: str
    head: int  # from 1; 0: none
    relation: str
    joined: bool  # to the next word, without a space


class _Malformed(Exception):
    """A sentence that is left out, and why."""


def fits(source: str, language: Language) -> bool:
    return language.of_treebanks


def read(source: str, config: str, skips: Skips) -> Iterator[SourceFunction]:
    """The sentences of `config`'s language, test partition first, in the order of files and lines.

    A malformed sentence, or one that is not a tree, is left out, and counted in `skips` with its
    file and line. Raises SourceError if there is no file of the language, or for one that cannot be
    read, is not UTF-8 or lacks the spaces that the variant needs.
    """
    language, spaced = language_of(config), variant_of(config) is SPACED
    root = Path(source)
    for partition, files in _files(root, language).items():
        for file in files:
            plain = file.suffix == ".txt"
            if plain and spaced:
                raise SourceError(
                    f"{file} does not say where words are joined, expected CoNLL-U for {config}"
                )
            name = file.name if file == root else file.relative_to(root).as_posix()
            match = _UD_NAME.fullmatch(file.stem)
            for number, line, lines in _sentences(file):
                try:
                    title, words = (_read_plain if plain else _read_conllu)(lines)
                    _check(words, language)
                except _Malformed as reason:
                    skips.add(f"sentence {reason}", f"{name}, line {line}")
                    continue
                text, annotation = _annotated(words, spaced)
                yield SourceFunction(
                    language.name,
                    text,
                    match["treebank"] if match else file.stem,
                    name,
                    title or str(number),
                    f"{name}#L{line}-L{line + len(lines) - 1}",
                    partition,
                    annotation=annotation,
                )


def _files(source: Path, language: Language) -> dict[str, list[Path]]:
    """Partition -> the files of `language`."""

    def ours(file: Path) -> bool:
        match = _UD_NAME.fullmatch(file.stem)
        return match is None or language.tag in (None, match["language"])

    if source.is_file():
        files = {"test": [source] if source.suffix in (".conllu", ".txt") and ours(source) else []}
    else:
        files = {}
        for partition, patterns in _PARTITIONS.items():
            files[partition] = sorted(
                file for pattern in patterns for file in source.rglob(pattern) if ours(file)
            )
    if not any(files.values()):
        start = f"{language.tag or 'xx'}_"
        raise SourceError(
            f"{source} is not a treebank in {language.title}: expected a CoNLL-U file ({start}name-ud-test.conllu) or "
            "plain text (.txt, lines of `word head-relation`), or a folder with *-test.conllu or test.txt, and "
            "*-dev.conllu or dev.txt for validation"
        )
    return files


def _sentences(file: Path) -> Iterator[tuple[int, int, list[str]]]:
    """Yield (number of the sentence, number of its first line, its lines), all numbers from 1."""
    try:
        text = decode(safe_files.read(file, LARGEST_FILE), str(file))
    except OSError as error:
        raise SourceError(f"{file}: cannot be read ({error.strerror})") from error
    number, lines = 0, []
    for line_number, line in enumerate([*text.split("\n"), ""], start=1):
        if not line.isspace() and line:
            lines.append(line.removesuffix("\r"))
        elif lines:
            number += 1
            yield number, line_number - len(lines), lines
            lines = []


def _read_conllu(lines: Sequence[str]) -> tuple[str, list[_Word]]:
    """The `sent_id` and the words of a sentence in CoNLL-U."""
    _check_lengths(lines)
    if any(line.count("\t") != _COLUMNS - 1 for line in lines if not line.startswith("#")):
        raise _Malformed("has a line without ten columns")
    try:
        (sentence,) = conllu.parse("\n".join(lines), field_parsers=_TEXT)
    except (conllu.exceptions.ParseException, ValueError) as error:
        raise _Malformed("has an id or a head that is not a number") from error
    rows = [row for row in sentence if not isinstance(row["id"], tuple)]
    if [row["id"] for row in rows] != list(range(1, len(rows) + 1)):
        raise _Malformed("has ids that do not count from 1")
    # empty columns at the end of a line are lost
    words = [
        _Word(row["form"].strip(), row.get("head"), row.get("deprel", ""), _ends_joined(row))
        for row in rows
    ]
    end = 0
    for row in sentence:
        match row["id"]:
            case (first, "-", last):  # a multi-word range, which is spaced as a whole
                if first <= end:
                    raise _Malformed("has multi-word ranges that overlap")
                end = last
                part = words[first - 1 : last]
                spelled = "".join(word.form for word in part) == row["form"].strip()
                ends = [spelled] * (len(part) - 1) + [_ends_joined(row)]
                words[first - 1 : last] = [
                    word._replace(joined=end) for word, end in zip(part, ends)
                ]
    return sentence.metadata.get("sent_id") or "", words


def _ends_joined(row: conllu.Token) -> bool:
    return (row.get("misc") or {}).get("SpaceAfter") == "No"


def _read_plain(lines: Sequence[str]) -> tuple[str, list[_Word]]:
    """No name, and the words of a sentence in plain text."""
    _check_lengths(lines)
    words = []
    for line in lines:
        *parts, label = line.split()
        head, _, relation = label.partition("-")
        if not (parts and re.fullmatch("[0-9]{1,6}", head)):
            raise _Malformed("has a line that is not `word head-relation`")
        words.append(_Word(" ".join(parts), int(head), relation, joined=False))
    return "", words


def _check_lengths(lines: Sequence[str]) -> None:
    if any(len(line) > LONGEST_LINE for line in lines):
        raise _Malformed(f"has a line of more than {LONGEST_LINE:,} characters")


def _check(words: Sequence[_Word], language: Language) -> None:
    """Raise _Malformed unless the words are a tree whose relations can be those of `language`."""
    if not all(word.form for word in words):
        raise _Malformed("has a word without text")
    if not all(type(word.head) is int and 0 <= word.head <= len(words) for word in words):
        raise _Malformed("has a head that is none of its words")
    if sum(word.head == 0 for word in words) != 1:
        raise _Malformed("has no root, or several")
    if not all(word.head == 0 or language.has_relation(word.relation) for word in words):
        raise _Malformed("has a relation without a proper name")
    if any(word.head and word.relation == _ROOT for word in words):
        raise _Malformed(f"has the relation {_ROOT} below a word")
    reached = {0}  # by following heads, each word once
    for number in range(1, len(words) + 1):
        path: dict[int, None] = {}
        while number not in reached:
            if number in path:
                raise _Malformed("has heads that run in a circle")
            path[number] = None
            number = words[number - 1].head
        reached.update(path)


def _annotated(words: Sequence[_Word], spaced: bool) -> tuple[str, Annotation]:
    """The text of a sentence, and its tokens and edges; `spaced`: without spaces where words are
    joined."""
    tokens, text = [], ""
    for word in words:
        tokens.append(Token(word.form, len(text), len(text) + len(word.form)))
        text += word.form if spaced and word.joined else f"{word.form} "
    edges = [
        Edge(word.relation, word.head - 1, index, index)
        for index, word in enumerate(words)
        if word.head
    ]
    return text.rstrip(" "), Annotation(tokens, edges)
