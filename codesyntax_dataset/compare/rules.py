"""Why an edge of one label variant is another, or none, in a second variant: the rule, decided by what differs."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

import tree_sitter

from codesyntax_dataset import paper
from codesyntax_dataset.compare.places import CLOSING, OPENING, Place, Side
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_dataset.languages.grammar import parse
from codesyntax_dataset.languages.tables.constructs import CHILDREN

OTHER = "other"
"""The rule of what no rule explains."""

_TREE = "children of the grammar's tree"
_CUT = "cut at the line break"
_LAST_ARGUMENT = "Call:args->keywords"  # the published head is in the first argument
_FIRST_STATEMENT = "Try:handler->orelse"  # the published dependent is the first statement alone (Shen et al. 2022)

_ITSELF = {
    "enhanced_for_statement": "enhanced for",
    "field_access": "field access",
    "named_expression": "assignment expression",
    "variable_declarator": "declaration with an initialiser",
}
"""The type of the smallest node around an edge that only one variant has -> its rule."""

_INSIDE = {
    "decorator": "in a decorator",
    "function_definition": "in the signature",
    "lambda_expression": "inside lambda",
    "resource": "in a resource of try",
}
"""The same for all nodes around an edge, up to the body of a function that it is in."""

_WITH = {"async": "async", "super": "call of super", "type": "declaration with an initialiser"}
"""The same by a child of that smallest node; before `chain`, which the others come after."""

_SINCE = {
    **dict.fromkeys(("scoped_identifier", "scoped_type_identifier"), "dotted name or path"),
    **dict.fromkeys(("type_alias", "type_alias_declaration", "type_item"), "alias of a type"),
    **dict.fromkeys(("begin", "until_modifier", "while_modifier"), "body before its condition"),
    "method_reference": "reference to a method",
    "reference_expression": "borrowed operand",
}
"""The type of the smallest node around an edge -> the rule by which later versions of the labels have it."""

_LATER = frozenset(
    "Await Call:func->block Case Default For:for->orelse Raise Return Send Spread UnaryOp While:while->orelse".split()
)
"""Constructs and relations that the first version of the labels does not have."""

_BODIES = frozenset({"block", "constructor_body"})
_EMPTY_BRACKETS = re.compile(r"[(\[{]\s*[)\]}][)\]}\s]*\Z")
_GLUED = re.compile(r"\w+[(\[{]*")
_TYPES = re.compile(r"\w+(::)?\s*<.*>", re.DOTALL)
_LINE_END = re.compile(r"[^\S\n]*(#.*|//.*|\\)?\r?(\n|\Z)")


class Rules:
    """The rules for the edges of a function that one side has and another."""

    def __init__(self, code: str, language: str, first: Side, second: Side):
        self._code = code
        self._language = language
        self._blocks = LANGUAGES[language].has_relation("Call:func->block")
        self._sides = first, second
        self._starts = [token.start for token in second.tokens]
        self._root: tree_sitter.Node | None = None

    def of(self, before: Place | None, after: Place | None) -> str:
        """The rule that explains why the edge is in another place on the second side, or on one side alone."""
        if before is None:
            assert after is not None
            return self._alone(after, self._sides[0])
        if after is None:
            return self._alone(before, self._sides[1])
        rules = {
            self._beginning(before.head, after.head, before.relation == _LAST_ARGUMENT),
            self._beginning(before.start, after.start),
            self._ending(before, after),
        } - {""}
        if before.relation == CHILDREN and rules & {OTHER, _CUT}:
            return _TREE
        if OTHER in rules:
            return OTHER
        return ", ".join(sorted(rules, reverse=True))

    def _beginning(self, before: int, after: int, several: bool = False) -> str:
        """Why a head, perhaps one of `several` arguments, or a dependent begins at another character."""
        if before == after:
            return ""
        if len(self._code) in (before, after):
            return "empty token at the end"
        between, behind = self._between(before, after), self._between(before + 1, after + 1)
        if behind and behind <= CLOSING:  # of a head that is a last token
            return _bracket("closing", included=after > before)
        if between and between <= OPENING:
            return _bracket("opening", included=after < before)
        if _TYPES.fullmatch(self._code, min(before, after), max(before, after) + 1):
            return f"types {'included' if after > before else 'left out'}"
        if _GLUED.fullmatch(self._code[min(before, after) : max(before, after)]):
            return "glued word"
        if several and "," in between:
            return "head in the last argument"
        return self._cut(before, before + 1, after, after + 1)

    def _ending(self, before: Place, after: Place) -> str:
        """Why a dependent ends at another character."""
        if before.end == after.end:
            return ""
        if (between := self._between(before.end, after.end)) and between <= CLOSING:
            return _bracket("closing", included=after.end > before.end)
        if self._blocks and before.relation.startswith("Call:") and "&" in between:
            return "block as an argument"
        if before.relation == _FIRST_STATEMENT and before.start == after.start:
            return "not the first statement alone"
        return self._cut(*before[2:], *after[2:])

    def _cut(self, start: int, end: int, new_start: int, new_end: int) -> str:
        """True if the one that ends first, before or after, does so because a line or the code ends there."""
        first = slice(start, end) if end < new_end else slice(new_start, new_end)
        if _LINE_END.match(self._code, first.stop) or not self._code[first].strip():
            return f"not {_CUT}" if end < new_end else _CUT
        return OTHER

    def _between(self, one: int, other: int) -> frozenset[str]:
        """The texts of the tokens between two characters."""
        begin, end = (bisect_left(self._starts, place) for place in sorted((one, other)))
        return frozenset(token.text for token in self._sides[1].tokens[begin:end])

    def _alone(self, place: Place, other: Side) -> str:
        """Why the other side lacks an edge."""
        if place.relation == CHILDREN:
            return _TREE
        if any(token.start < place.head and place.end < token.end for token in other.tokens):
            return "inside of a string"
        mine = other.without_brackets(place)
        if any(one[1:] == mine[1:] and one.relation != CHILDREN for one in other.cores):
            return "renamed"
        if (published := paper.edges(self._language)) and place.relation not in published:
            return "construct without published labels"
        if rule := _SINCE.get((around := list(self._around(place)))[0].type, ""):
            return rule
        if not published and {place.relation, place.relation.partition(":")[0]} & _LATER:
            return "construct of later labels"
        if place.relation.startswith("Call:") and self._blocks:
            return "block as an argument"
        if other.tokens and place.head == other.tokens[0].start:
            return "head at token 0"
        if any(_follows_word(self._code, begin) for begin in (place.head, place.start)):
            return "glued word"
        bodies = [index for index, node in enumerate(around) if node.type in _BODIES]
        inside = around[: bodies[0]] if bodies else around
        if named := next((_INSIDE[node.type] for node in inside if node.type in _INSIDE), ""):
            return named
        children = {child.type for child in around[0].children}
        if with_it := next((rule for child, rule in _WITH.items() if child in children), ""):
            return with_it
        if not all(any(self._is_in(around[body], one) for one in other.places) for body in bodies):
            return "body without labels"
        if any(_EMPTY_BRACKETS.search(self._code[place.start : end]) for end in (place.end, mine.end)):
            return "empty brackets at the end"
        same = [one for one in other.cores if one.relation == place.relation]
        if any(one.head == mine.head or one.end == mine.end for one in same):
            return "chain: each operator"
        return _ITSELF.get(around[0].type, OTHER)

    def _around(self, place: Place) -> Iterator[tree_sitter.Node]:
        """The nodes around an edge, the innermost first."""
        if self._root is None:
            self._root = parse(self._code, self._language).root_node
        first, last = self._byte(place.head), self._byte(place.end)
        node = self._root.descendant_for_byte_range(first, last)
        while node is not None:
            yield node
            node = node.parent

    def _is_in(self, node: tree_sitter.Node, place: Place) -> bool:
        return node.start_byte <= self._byte(place.head) < node.end_byte

    def _byte(self, character: int) -> int:
        return len(self._code[:character].encode())


def _follows_word(code: str, place: int) -> bool:
    return code[place] in OPENING and re.match(r"\w", code[place - 1 : place]) is not None


def _bracket(which: str, *, included: bool) -> str:
    return f"{which} bracket {'included' if included else 'left out'}"
