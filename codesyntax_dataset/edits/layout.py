"""Other layout: blank lines, comments and indentation."""

from __future__ import annotations

import re

from codesyntax_dataset.edits.changes import Change
from codesyntax_dataset.edits.function import Function, covered
from codesyntax_dataset.edits.words import some_words

_LINE = re.compile(r"(?<!\\)\n(?P<blanks>[ \t]*)(?=[^\s]|\r?\n)")


def layout(function: Function) -> list[Change]:
    """Twice the indentation; behind a third of the line breaks a blank line, behind another third a
    comment.

    Equal indentations stay equal, and none stays none: labels of Python depend on that.
    """
    brackets: list[int] = []
    spans = []  # of tokens, or in brackets
    for text, start, end in function.tokens:
        if "\n" in text.strip():
            spans.append((start, end))
        elif text in ("(", "["):
            brackets.append(start)
        elif text in (")", "]") and brackets:
            spans.append((brackets.pop(), end))
    inside = function.verbatim | covered(spans)
    continued = function.editing.continued
    changes = []
    for line in _LINE.finditer(function.code):
        start, end = line.span("blanks")
        if line.start() in inside or (continued and continued.match(function.code, end)):
            continue
        indentation = " " * (2 * len(line["blanks"].expandtabs(8)))
        match function.draws.below(3):
            case 0:
                changes.append(Change(start, start, "\n"))
            case 1:
                words = " ".join(some_words(function, 1 + function.draws.below(5)))
                changes.append(
                    Change(start, start, f"{indentation}{function.editing.comment} {words}\n")
                )
        changes.append(Change(start, end, indentation))
    return changes
