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
    ├── SubmissionError a submission that is malformed, or not of its data
    └── HubError        a Hub that cannot be reached, or that rejects a request

The command line prints the message on one line and exits with status 1; any other exception keeps
its traceback.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable


class CodeSyntaxError(ValueError):
    """Base class of all errors. The message, one line, says what was given, what was expected and
    what to try.

    Args:
        message: the text; what is on several lines is put on one.

    Examples:
        >>> from codesyntax_dataset import CodeSyntaxError, annotate
        >>> try:
        ...     annotate("x = 1", "cobol")
        ... except CodeSyntaxError as error:
        ...     print(type(error).__name__)
        UnknownName
    """

    def __init__(self, message: str = ""):
        # those of libraries may have several
        lines = (line.strip() for line in re.split("[\r\n]+", message))
        super().__init__(" ".join(line for line in lines if line))


class ParseError(CodeSyntaxError):
    """Code that does not parse.

    Args:
        message: what is wrong.
        line: where, from 1, within the given code.
        column: where in the line, from 0, in characters.

    Examples:
        >>> from codesyntax_dataset import ParseError, annotate
        >>> try:
        ...     annotate("def f(:", "python")
        ... except ParseError as error:
        ...     print(error.line)
        1
    """

    def __init__(self, message: str, line: int, column: int):
        super().__init__(f"line {line}, column {column}: {message}")
        self.line = line
        self.column = column


class ArgumentError(CodeSyntaxError):
    """An argument of a public function that has the wrong type or is out of range."""


_MOST_NAMES = 12
"""The most known names in a message."""

_MOST_NEAR = 5
"""The most names in a message that are like the unknown one, if more are known."""


class UnknownName(CodeSyntaxError):
    """An unknown name; the message suggests the closest known ones.

    Args:
        kind: What the name should be one of, such as `config`.
        name: The unknown name.
        known: The known names. If they are many, the message has only those that are like `name`.
        advice: What to try, if the known names are not what is wanted.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], advice: str = ""):
        known = list(known)
        near = difflib.get_close_matches(str(name), known, n=_MOST_NEAR, cutoff=0.5)
        if len(known) <= _MOST_NAMES:
            listed = f"known are {', '.join(known)}" if known else "there are none"
        elif near:
            listed = f"of {len(known)} known, {', '.join(near)} are like it"
        else:
            listed = f"known are {', '.join(known[:_MOST_NAMES])}, {len(known) - _MOST_NAMES} more"
        hint = f"did you mean {near[0]!r}? " if near and not advice else ""
        super().__init__(f"unknown {kind} {name!r}: {hint}{listed}{advice and f'; {advice}'}")


class EditError(CodeSyntaxError):
    """A function whose labels an edit does not provably keep; the message is the reason."""


class SourceError(CodeSyntaxError):
    """A source of functions that cannot be read; the message names the file and the line."""


class DatasetError(CodeSyntaxError):
    """A dataset that is not a CodeSyntax dataset, was altered, lacks what was requested, or cannot
    be written."""


class DataNotFound(DatasetError):
    """A dataset that does not exist at its location; this says nothing about results that were made
    with it."""


class ModelError(CodeSyntaxError):
    """A model or tokenizer that cannot be loaded or probed."""


class LedgerError(CodeSyntaxError):
    """A rank ledger or a result file that cannot be read or written, or does not match its data."""


class SubmissionError(CodeSyntaxError):
    """A submission that no board takes, or a file that is malformed; the message is the reason."""


class HubError(CodeSyntaxError):
    """A Hub that cannot be reached or rejects a request; the message says what to do and never
    contains a token."""
