"""CuBERT's vocabulary, as of tensor2tensor's SubwordTextEncoder: from the left always the longest entry that fits."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from codesyntax_dataset.errors import ModelError

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
    """The entries, of which each has its place as id.

    Characters that are in no entry are spelled by their code, as the published tokenizer does; the text of the
    pretraining seems to have had one sign, U+2205, for all of them.

    `text`: that of a vocabulary file, one entry a line, with or without single quotes around all of them. Raises
    ModelError if an entry is there twice, or one is missing that every vocabulary has.
    """

    def __init__(self, text: str):
        entries = text.removesuffix("\n").split("\n")  # control characters are entries, so that no other end counts
        if all(len(entry) > 2 and entry[0] == entry[-1] == "'" for entry in entries):
            entries = [entry[1:-1] for entry in entries]
        self.entries: Sequence[str] = entries
        self.ids = {entry: number for number, entry in enumerate(entries)}
        if len(self.ids) < len(entries):
            twice = next(entry for number, entry in enumerate(entries) if self.ids[entry] != number)
            raise ModelError(f"the vocabulary has the entry {twice!r} twice, expected {len(entries)} different ones")
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
        """The sub-tokens of a piece: the id, and the first and last (inclusive) character of the piece that it spells.

        What ends the piece belongs to its last character, as it spells nothing of its own.
        """
        spelled: list[str] = []
        places: list[int] = []
        closing = (GOES_ON if goes_on else "") + ENDS
        for place, character in enumerate(piece):
            text = "".join(map(self._escaped, named(_NAMED[character]) if character in _NAMED else character))
            spelled.append(text)
            places += [place] * len(text)
        escaped = "".join(spelled) + closing
        places += [max(0, len(piece) - 1)] * len(closing)
        found = []
        start = 0
        while start < len(escaped):
            end = min(len(escaped), start + self._longest)
            while (number := self.ids.get(escaped[start:end])) is None:
                end -= 1
            found.append((number, places[start], places[end - 1]))
            start = end
        return found

    def _escaped(self, character: str) -> str:
        if character in _ESCAPES:
            return _ESCAPES[character]
        return character if character in self._alphabet else f"\\{ord(character)};"


def spelled(entries: Sequence[str]) -> str:
    """The text that sub-tokens spell: without what ends a piece, and with a line break for what is named so."""
    text = "".join(entries).replace(GOES_ON + ENDS, "").replace(ENDS, "")
    text = _UNESCAPED.sub(_character, text)
    text = re.sub("___(?:NL|NEWLINE|NLCHAR)(?:___|$)", "\n", text).replace(named("CR"), "\r")
    return re.sub("___(?:INDENT|DEDENT)___", "", text).replace(named("CARET"), "^")


def _character(escape: re.Match[str]) -> str:
    if escape[1] is None:
        return "_" if escape[0] == "\\u" else "\\"
    return chr(int(escape[1])) if int(escape[1]) < 0x110000 else "\ufffd"
