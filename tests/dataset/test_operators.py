"""Operators beside those of the same or the next precedence: labels are those of the code with brackets around them.

Brackets that only group are in no edge, so that the expected labels need no other parser: brackets stand where the
tables of `tests/support/labels/operators` say. `tests/benchmarks/compare.py` holds all pairs against the language's own.
"""

from __future__ import annotations

from collections import Counter

import pytest
from support.labels.operators import filled, named, syntax_of
from support.references.reference_parsers import places

from codesyntax_dataset import annotate
from codesyntax_dataset.languages.variants import EXACT

OPEN, CLOSE = "⦅⦆"


def neighbours(syntax):
    """Infix operators beside each other: the text, and with marks around the part that groups first."""
    infix = [operator for operator in syntax.operators if operator.is_infix]
    levels = sorted({operator.precedence for operator in infix})
    for first in infix:
        for second in infix:
            if second.text.endswith("= _") and (".." in first.text or "? _ : _" in first.text):
                continue  # `a..b = c` in Rust and `a ? b : c = d`, which are assigned to by nobody
            if {first.text, second.text} == {"_ ?? _", "_ || _"}:
                continue  # in JavaScript not without brackets
            apart = levels.index(first.precedence) - levels.index(second.precedence)
            if abs(apart) > 1 or (apart == 0 and first.associativity == "none"):
                continue
            text = filled(first.text, first.operands - 1, second.text)
            yield text, marked(first, second, apart)


def marked(first, second, apart):
    if apart > 0 or (apart == 0 and first.associativity == "left"):
        return filled(second.text, 0, f"{OPEN}{first.text}{CLOSE}")
    return filled(first.text, first.operands - 1, f"{OPEN}{second.text}{CLOSE}")


def bracketed(code, language):
    """The edges of code with brackets in place of the marks, as places in the code without them."""
    marks = [index for index, character in enumerate(code) if character in (OPEN, CLOSE)]
    found = places(annotate(code.replace(OPEN, "(").replace(CLOSE, ")"), language, EXACT.name))

    def moved(place):
        return place - sum(mark < place for mark in marks)

    return Counter(
        {
            (relation, moved(head), moved(start), moved(end)): n
            for (relation, head, start, end), n in found.items()
        }
    )


@pytest.mark.parametrize("language", "python java javascript typescript go php ruby rust".split())
def test_neighbours_in_precedence_group_as_the_language_says(language):
    syntax = syntax_of(language)
    cases, wrong = 0, []
    for text, marks in neighbours(syntax):
        code, expected = (
            filled(syntax.frames[0], 0, f"({named(one, syntax)})") for one in (text, marks)
        )
        cases += 1
        if places(annotate(code, language, EXACT.name)) != bracketed(expected, language):
            wrong.append((code, expected))
    assert cases > 50
    assert not wrong, wrong
