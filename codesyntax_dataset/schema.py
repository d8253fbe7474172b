"""What an annotated function is: tokens, edges, and the row of the dataset that holds them.

A *token* is a code token with its characters; an *edge* is one syntactic relation from a head token to a dependent,
which is a run of tokens (Shen et al. 2022, section 3). Token indices count from 0. Character offsets count from 0 and
their end is excluded; `Edge.last` is the last token of the dependent and is included.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from codesyntax_dataset.errors import CodeSyntaxError

LABELS = "1.0"
"""Version of our label rules: raised when labels change on purpose, by us or by a correction of the tables."""


class Token(NamedTuple):
    """A code token: `code[start:end] == text` unless the text is empty or the source spells it with escapes."""

    text: str
    start: int  # character offset of the first character
    end: int  # character offset behind the last character (excluded)


class Edge(NamedTuple):
    """A relation from the token `head` to the tokens `first` to `last` (included), all token indices from 0."""

    relation: str
    head: int
    first: int
    last: int


class Annotation(NamedTuple):
    """The labels of one function: its tokens and the edges between them."""

    tokens: list[Token]
    edges: list[Edge]


@dataclass(frozen=True)
class SourceFunction:
    """One function as its source has it, untouched.

    Only the published dataset comes with ids and labels of its own; for other sources `codesyntax_dataset.corpus` gives
    the ids and `codesyntax_dataset.languages` the labels.
    """

    language: str
    code: str
    repo: str
    path: str
    func_name: str
    url: str
    partition: str  # "test" or "validation"
    id: int | None = None
    annotation: Annotation | None = None


@dataclass
class Skips:
    """What was left out, or kept without labels: reason -> how many, and the first few of them by name."""

    counts: dict[str, int] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)

    def add(self, reason: str, name: object) -> None:
        self.counts[reason] = self.counts.get(reason, 0) + 1
        names = self.names.setdefault(reason, [])
        if len(names) < 5:
            names.append(str(name))


def check(annotation: Annotation, code: str) -> Annotation:
    """Return `annotation` if its tokens lie in order inside `code` and its edges point at its tokens.

    Raises CodeSyntaxError naming the first token or edge that does not.
    """
    position = 0
    for index, token in enumerate(annotation.tokens):
        if not position <= token.start <= token.end <= len(code):
            raise CodeSyntaxError(
                f"token {index} is {token.text!r} at characters {token.start} to {token.end}, expected a place between "
                f"{position} and {len(code)}: were bytes read as characters?"
            )
        position = token.end
    for index, (relation, head, first, last) in enumerate(annotation.edges):
        if not (0 <= head < len(annotation.tokens) and 0 <= first <= last < len(annotation.tokens)):
            raise CodeSyntaxError(
                f"edge {index} ({relation}) is {head} -> {first}..{last}, expected 0 <= first <= last and tokens below "
                f"{len(annotation.tokens)}"
            )
    return annotation
