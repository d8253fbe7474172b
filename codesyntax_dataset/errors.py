"""Every error that CodeSyntax raises on purpose.

CodeSyntaxError (a ValueError)
├── ParseError      code that is not a function of its language
├── ArgumentError   an argument of another type or size than the function takes
├── UnknownName     a config, language, variant or relation that does not exist
├── SourceError     functions that cannot be read from where they should come from
├── DatasetError    a built dataset that is broken or in the way
│   └── DataNotFound    a dataset that is not where it was looked for
├── ModelError      a model that cannot be probed
├── LedgerError     a rank ledger or result that cannot be read or does not fit
├── EntryError      a published entry that is malformed, or contradicts itself
└── HubError        a Hub that cannot be reached, or does not take what we send

The command line prints the message in one line and exits with status 1; any other exception keeps its traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class CodeSyntaxError(ValueError):
    """Base of the family. The message says what came, what was expected and what to try."""


class ParseError(CodeSyntaxError):
    """Code that does not parse.

    `line` counts from 1 and `column` from 0, in characters, within the code that was given.
    """

    def __init__(self, message: str, line: int, column: int):
        super().__init__(f"line {line}, column {column}: {message}")
        self.line = line
        self.column = column


class ArgumentError(CodeSyntaxError):
    """An argument of a public function that has another type, or is too small, or too large."""


class UnknownName(CodeSyntaxError):
    """A name that is not one of the known ones; the message suggests the nearest."""

    def __init__(self, kind: str, name: str, known: Iterable[str]):
        known = list(known)
        near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}? " if near else ""
        super().__init__(f"unknown {kind} {name!r}: {hint}known are {', '.join(known)}")


class SourceError(CodeSyntaxError):
    """A source of functions that cannot be read; the message names the file and the line."""


class DatasetError(CodeSyntaxError):
    """A dataset that is no CodeSyntax dataset, was altered, does not hold what is asked for, or cannot be written."""


class DataNotFound(DatasetError):
    """A dataset that is not where it was looked for: nothing is said about it, or about results that were made with it."""


class ModelError(CodeSyntaxError):
    """A model or tokenizer that cannot be loaded or probed."""


class LedgerError(CodeSyntaxError):
    """A rank ledger or a result file that cannot be read, written or does not fit its data."""


class EntryError(CodeSyntaxError):
    """An entry for a board that cannot be read or cannot be true; the message is the reason."""


class HubError(CodeSyntaxError):
    """A Hub that cannot be reached or refuses; the message says what to do, and never holds a token."""
