"""The table of a language: its grammar, what its tokens are, and where the parts of its constructs
stand."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from codesyntax_dataset.languages.language import Dialect, Relation
from codesyntax_dataset.languages.tables.constructs import CHILDREN, CONSTRUCTS
from codesyntax_dataset.languages.tables.operators import Operators

Respell = bytes | Callable[[re.Match[bytes]], bytes]

BACKWARD = frozenset(
    "Await:value->await For:iter->target If:body->test IfExp:body->test Spread:value->spread While:body->test".split()
)
"""These point back where a condition, `await` or a sign comes first, and what is iterated over
last."""


@dataclass(frozen=True)
class Rule:
    """Nodes of one type are a construct: where its parts stand, in the notation of `parts`.

    `node` is a type of the grammar, or `parent/type` for nodes inside those of another type.
    """

    node: str
    construct: str
    parts: Mapping[str, str]


@dataclass(frozen=True)
class Table:
    """The rules of a language, in its own node types.

    `grammar`: the package of the tree-sitter grammar, or `package.function` where it has several.
    `dialects`: further grammars for code that this one cannot read, tried in turn. `frames`: texts
    before and after a function, tried in turn, with which it is a whole program; a node from the
    last character of the text before, a bracket, to the end must be there. `rules`: the constructs.
    `brackets`: nodes that, without a comma, do nothing but group; the dependent is what is inside.
    `whole`: nodes that are one token whatever is inside, such as strings. `interpolated`: those of
    them that may have expressions inside, which a variant labels, and the nodes between a string
    and its expressions; `literal`: what else is in both, text and signs. `suffixed`: matches, in
    bytes, a name or closing bracket with a `sign` that changes nothing, for code that the grammar
    can only read with the sign as part of the name or without it. `unread`: matches, in bytes,
    words outside of functions that the grammar cannot read and that change nothing. `enclosed`:
    match, in bytes, what the grammar reads only with brackets around the group `inside`; `begins`:
    matches what is right before a member or statement that the grammar reads only with a `;` before
    it; `completed`: what it reads only with another text behind. `respelled`: match, in bytes, words
    for which others of their length stand in code that it cannot read; `names`: matches, as the
    group `name`, tokens for which one name stands. `trailing`: nodes behind a statement, with which
    no dependent ends. `soft`:
    matches, in bytes, names that the grammar may take for keywords. `chains`: nodes of operators
    that the grammar nests otherwise than the language, from left to right, each with its construct
    and with the nodes inside that are parts of the chain. `operators`: in which order the language
    groups them, where the grammar has another. `text`: nodes of plain text, such as between tags:
    tokens without the white space around them. `flat`: nodes whose children count as those of their
    parent, such as lists of arguments. `refused`: a query of tree-sitter for nodes (`@refused`)
    that the grammar reads but no function in this frame has; code with such nodes is read again
    with brackets around those that are `@bracketed` (from the first to the last of a match), a
    name in place of those that are `@name`, `;` behind each that is `@opened`, and `;` before each
    `@statement` that begins a line, without which it is refused; `suspect`:
    matches, in bytes, what is in all code that has such nodes, and `runs_on` what is in all files where
    they tell where a function ends, by default in none. `functions`: nodes of functions that
    a source file is searched for, each with the path to its name, which must lead somewhere;
    `callbacks`: further ones, which count if they have no function inside that does; `scopes`:
    nodes whose names precede those of functions inside, or of the function that they are;
    `file_grammar`: the grammar of whole files, where that is another; `suites`: further frames, for
    parts of files; `unpublished`: nodes that are no functions for the published procedure, with all
    inside of them. `joins_lines`: whether a line
    break inside any brackets means nothing. `backward`: relations of the constructs whose dependent
    stands before its head in this language, which gives no edge. `examples`: code of each construct
    that has all of its relations, where it stands in a function like the dots of `sketch`.
    """

    grammar: str
    rules: tuple[Rule, ...]
    examples: Mapping[str, str]
    frames: tuple[tuple[str, str], ...] = (("", ""),)
    brackets: frozenset[str] = frozenset()
    chains: Mapping[str, tuple[str, frozenset[str]]] = field(default_factory=dict)
    operators: Operators | None = None
    whole: frozenset[str] = frozenset()
    interpolated: frozenset[str] = frozenset()
    literal: frozenset[str] = frozenset()
    text: frozenset[str] = frozenset()
    flat: frozenset[str] = frozenset()
    refused: str = ""
    suspect: re.Pattern[bytes] | None = None
    runs_on: re.Pattern[bytes] | None = None
    suffixed: re.Pattern[bytes] | None = None
    unread: re.Pattern[bytes] | None = None
    enclosed: tuple[re.Pattern[bytes], ...] = ()
    begins: re.Pattern[bytes] | None = None
    completed: tuple[tuple[re.Pattern[bytes], bytes], ...] = ()
    respelled: tuple[tuple[re.Pattern[bytes], Respell], ...] = ()
    names: re.Pattern[bytes] | None = None
    trailing: frozenset[str] = frozenset()
    soft: re.Pattern[bytes] | None = None
    dialects: tuple[Dialect, ...] = ()
    joins_lines: bool = False
    backward: frozenset[str] = BACKWARD
    sketch: str = "..."
    file_grammar: str | None = None
    suites: tuple[tuple[str, str], ...] = (("", ""),)
    unpublished: frozenset[str] = frozenset()
    functions: Mapping[str, str] = field(default_factory=dict)
    callbacks: Mapping[str, str] = field(default_factory=dict)
    scopes: Mapping[str, str] = field(default_factory=dict)

    @property
    def relations(self) -> tuple[Relation, ...]:
        """The relations that the rules can give, by name."""
        relations = {
            f"{rule.construct}:{relation}": Relation(
                f"{rule.construct}:{relation}",
                CONSTRUCTS[rule.construct].category,
                self.examples[rule.construct],
            )
            for rule in self.rules
            for relation in CONSTRUCTS[rule.construct].relations
            if set(relation.split("->")) <= set(rule.parts)
            and f"{rule.construct}:{relation}" not in self.backward
        }
        tree = Relation(CHILDREN, "tree", "every node => each of its children")
        return tuple(sorted((*relations.values(), tree)))
