"""Every error that CodeSyntax raises on purpose.

CodeSyntaxError (a ValueError)
├── ParseError      code that is not a function of its language
├── ArgumentError   an argument of the wrong type or out of range
├── UnknownName     a config, language, variant or relation that does not exist
├── EditError       a function whose labels an edit would not keep
├── SourceError     a source of functions that cannot be read
├── DatasetError    a dataset that is damaged, or an output folder that must not be replaced
│   └── DataNotFound    a dataset that does not exist at its location
├── ModelError      a model that cannot be probed
│   ├── OffsetsError    a tokenizer whose character offsets do not fit the code
│   └── FailedCheck     a model that does not pass the self-check
├── LedgerError     a rank ledger or result that cannot be read, or does not match its data
├── EntryError      a published entry that is malformed or inconsistent
└── HubError        a Hub that cannot be reached, or that rejects a request

The command line prints the message on one line and exits with status 1; any other exception keeps its traceback.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable


class CodeSyntaxError(ValueError):
    """Base class of all errors. The message, one line, says what was given, what was expected and what to try."""

    def __init__(self, message: str = ""):
        lines = (line.strip() for line in re.split("[\r\n]+", message))  # those of libraries may have several
        super().__init__(" ".join(line for line in lines if line))


class ParseError(CodeSyntaxError):
    """Code that does not parse.

    `line` counts from 1 and `column` from 0, in characters, within the given code.
    """

    def __init__(self, message: str, line: int, column: int):
        super().__init__(f"line {line}, column {column}: {message}")
        self.line = line
        self.column = column


class ArgumentError(CodeSyntaxError):
    """An argument of a public function that has the wrong type or is out of range."""


_MOST = 40  # names in a message


class UnknownName(CodeSyntaxError):
    """An unknown name; the message suggests the closest known one."""

    def __init__(self, kind: str, name: str, known: Iterable[str]):
        known = list(known)
        near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}? " if near else ""
        further = [f"{len(known) - _MOST} more"] if len(known) > _MOST else []
        super().__init__(f"unknown {kind} {name!r}: {hint}known are {', '.join(known[:_MOST] + further)}")


class EditError(CodeSyntaxError):
    """A function whose labels an edit does not provably keep; the message is the reason."""


class SourceError(CodeSyntaxError):
    """A source of functions that cannot be read; the message names the file and the line."""


class DatasetError(CodeSyntaxError):
    """A dataset that is not a CodeSyntax dataset, was altered, lacks what was requested, or cannot be written."""


class DataNotFound(DatasetError):
    """A dataset that does not exist at its location; this says nothing about results that were made with it."""


class ModelError(CodeSyntaxError):
    """A model or tokenizer that cannot be loaded or probed."""


class LedgerError(CodeSyntaxError):
    """A rank ledger or a result file that cannot be read or written, or does not match its data."""


class EntryError(CodeSyntaxError):
    """An entry for a board that cannot be read or is inconsistent; the message is the reason."""


class HubError(CodeSyntaxError):
    """A Hub that cannot be reached or rejects a request; the message says what to do and never contains a token."""
