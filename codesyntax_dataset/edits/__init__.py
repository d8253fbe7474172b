"""Edits of functions whose labels are known, because the parser says that they are the same as
before.

An edit changes words (`words`), layout (`layout`) or distances (`distance`) and leaves the syntax
as it is, like Jabberwocky. So a difference of scores tells what a model reads: one that reads
syntax does not lose by other words, one that reads positions loses by other distances. What an edit
draws depends on its name and the code alone.

Every edit proves its labels: those of the edited code, computed anew, must be the image of those
before (`changes`).
"""

from __future__ import annotations

from collections.abc import Callable

from codesyntax_dataset.arguments import checked
from codesyntax_dataset.edits import distance, layout, words
from codesyntax_dataset.edits.changes import Change, changed, image
from codesyntax_dataset.edits.function import Function
from codesyntax_dataset.errors import ArgumentError, EditError, ParseError, UnknownName
from codesyntax_dataset.languages import LANGUAGES, annotate
from codesyntax_dataset.protocol import EDITS
from codesyntax_dataset.schema import Annotation

_CHANGES: dict[str, Callable[[Function], list[Change]]] = {
    "rename-words": words.rename_words,
    "rename-nonsense": words.rename_nonsense,
    "rename-letters": words.rename_letters,
    "literals": words.literals,
    "layout": layout.layout,
    "brackets": distance.brackets,
    "distance": distance.distance,
}
"""Edit -> what it changes in a function."""


@checked
def edit(code: str, language: str, name: str, variant: str | None = None) -> tuple[str, Annotation]:
    """The code of a function after the edit `name` of EDITS, and its labels: the image of those
    before.

    `language` and `variant` are as in `codesyntax_dataset.annotate`. The image has an edge for each
    one before, in the same order. Raises UnknownName for an unknown edit, language or variant,
    ArgumentError for a language that has no edits, ParseError for code that does not parse, and
    EditError if the labels of the edited code, made anew, are not the image, or names run out,
    which seldom happens.
    """
    if name not in EDITS:
        raise UnknownName("edit", name, EDITS)
    before = annotate(code, language, variant)
    record = LANGUAGES[language]
    if record.editing is None:
        raise ArgumentError(f"{record.title} cannot be edited: its record has no `editing`")
    variant = variant or record.variant_names[0]
    edited = changed(code, _CHANGES[name](Function(code, record, variant, name)))
    try:
        after = annotate(edited.code, language, variant)
    except ParseError as error:
        raise EditError("its edited code does not parse") from error
    edges = image(before, edited, after)
    if edges is None:
        raise EditError("the edit changes its labels")
    return edited.code, Annotation(after.tokens, edges)
