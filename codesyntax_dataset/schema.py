"""The types of an annotated function: tokens, edges and source functions.

A *token* is a code token with its character offsets; an *edge* is one syntactic relation from a
head token to a dependent, which is a span of tokens (Shen et al. 2022, section 3). Token indices
count from 0. Character offsets count from 0, end exclusive; `Edge.last`, the last token of the
dependent, is inclusive.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypedDict

from codesyntax_dataset.errors import CodeSyntaxError

_NAMED = 5  # of the functions that are left out for a reason

LABELS = "1.7"
"""Version of the label rules: raised when labels change on purpose."""


class Token(NamedTuple):
    """A code token: `code[start:end] == text`, unless the text is empty or the source spells it
    with escapes.

    Attributes:
        text: the token.
        start: character offset of its first character, from 0.
        end: character offset after its last character (exclusive).

    Examples:
        >>> from codesyntax_dataset import tokenize
        >>> tokenize("x = 1", "python")[2]
        Token(text='1', start=4, end=5)
    """

    text: str
    start: int  # character offset of the first character
    end: int  # character offset after the last character (exclusive)


class Edge(NamedTuple):
    """A relation from a head token to its dependent, a span of tokens (Shen et al. 2022, section
    3).

    Attributes:
        relation: its name, such as `Call:func->args`.
        head: index of the head token, from 0.
        first: index of the dependent's first token.
        last: index of the dependent's last token (inclusive).

    Examples:
        >>> from codesyntax_dataset import annotate
        >>> annotate("def f(x):\\n    return len(x)\\n", "python").edges[1]
        Edge(relation='Call:func->args', head=9, first=11, last=11)
    """

    relation: str
    head: int
    first: int
    last: int


class EdgeCell(TypedDict):
    """An edge as a row of the dataset has it."""

    relation: str
    head: int
    first: int
    last: int


class Annotation(NamedTuple):
    """The labels of one function.

    Attributes:
        tokens: its tokens, in the order of the code.
        edges: the relations between them.

    Examples:
        >>> from codesyntax_dataset import annotate
        >>> tokens, edges = annotate("def f(x):\\n    return len(x)\\n", "python")
        >>> tokens[edges[1].head].text, tokens[edges[1].first].text
        ('len', 'x')
    """

    tokens: list[Token]
    edges: list[Edge]


@dataclass(frozen=True)
class SourceFunction:
    """One function, unchanged from its source.

    Only the published dataset comes with its own ids and labels; for other sources
    `codesyntax_dataset.corpus` assigns the ids, and labels come from
    `codesyntax_dataset.languages`.

    Attributes:
        language: of the code, such as `python`.
        code: its text.
        repo: the repository that it is from.
        path: of its file there.
        func_name: its name, with that of its class.
        url: where it can be read.
        partition: `test` or `validation`.
        id: its place in the dataset, from 0.
        annotation: its labels, if the source has them.

    Examples:
        >>> from codesyntax_dataset import SourceFunction
        >>> SourceFunction("python", "def f(): pass", "me/mine", "f.py", "f", "", "test").partition
        'test'
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
    """Functions left out or kept without labels: reason -> how many, and the names of the first
    few."""

    counts: dict[str, int] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)

    def add(self, reason: str, name: object) -> None:
        self.counts[reason] = self.counts.get(reason, 0) + 1
        names = self.names.setdefault(reason, [])
        if len(names) < _NAMED:
            names.append(str(name))

    def extend(self, later: Skips) -> None:
        """Add what was counted later."""
        for reason, count in later.counts.items():
            self.counts[reason] = self.counts.get(reason, 0) + count
            self.names[reason] = (self.names.get(reason, []) + later.names[reason])[:_NAMED]


def check(annotation: Annotation, code: str) -> Annotation:
    """Return `annotation` if its tokens are in order inside `code` and its edges refer to its
    tokens.

    Raises CodeSyntaxError naming the first token or edge that violates this.
    """
    position = 0
    for index, token in enumerate(annotation.tokens):
        if not position <= token.start <= token.end <= len(code):
            raise CodeSyntaxError(
                f"token {index} is {token.text!r} at characters {token.start} to {token.end}, expected it between "
                f"{position} and {len(code)}: were byte offsets taken for character offsets?"
            )
        position = token.end
    for index, (relation, head, first, last) in enumerate(annotation.edges):
        if not (0 <= head < len(annotation.tokens) and 0 <= first <= last < len(annotation.tokens)):
            raise CodeSyntaxError(
                f"edge {index} ({relation}) is {head} -> {first}..{last}, expected 0 <= first <= last and tokens below "
                f"{len(annotation.tokens)}"
            )
    return annotation
