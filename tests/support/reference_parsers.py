"""The edges of a language's own parser, next to ours: both as places in the code.

A reference is a module or program in `tests/reference` that reads the language's own tree. It gives, for each function,
edges as `(relation, head, start, end)`: the offset of the head token's first character (of its end, for a relation whose
head is a last token), and the offsets of the dependent's first character and of its end. Offsets count characters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from codesyntax_dataset.languages.tables.constructs import CHILDREN, FROM_LAST_TOKEN
from codesyntax_dataset.schema import Annotation, Token

Place = tuple[str, int, int, int]


def places(annotation: Annotation) -> Counter[Place]:
    """Our edges but for those of any nodes, which each parser has its own of."""
    tokens, edges = annotation
    return Counter(
        (
            edge.relation,
            tokens[edge.head].end if edge.relation in FROM_LAST_TOKEN else tokens[edge.head].start,
            tokens[edge.first].start,
            tokens[edge.last].end,
        )
        for edge in edges
        if edge.relation != CHILDREN
    )


def balanced(tokens: Sequence[Token], start: int, end: int) -> tuple[int, int]:
    """The span with the brackets whose partner is inside: `a), (b` of `f((a), (b))` becomes `(a), (b)`.

    Trees without nodes for brackets that only group tell where the first of several elements is inside them.
    """
    inside = [index for index, token in enumerate(tokens) if start <= token.start and token.end <= end]
    first, last, depth, missing = inside[0], inside[-1], 0, 0
    for index in inside:
        depth += (tokens[index].text in ("(", "[", "{")) - (tokens[index].text in (")", "]", "}"))
        missing = max(missing, -depth)
    for _ in range(missing):
        first -= 1
    for _ in range(depth + missing):
        last += 1
    return tokens[first].start, tokens[last].end
