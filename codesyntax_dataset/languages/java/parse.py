"""Parse Java code into the tree-sitter node of its method.

The published labels (Shen et al. 2022, section 3) came from the Eclipse Java development tools
(JDT) with a compiler at source level 1.3. Code that this compiler rejects, or reads differently
from tree-sitter, is handled here, mostly by changing the spelling of the text before it is parsed;
its length stays the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

import tree_sitter
import tree_sitter_java

from codesyntax_dataset.errors import ParseError
from codesyntax_dataset.languages import bounded
from codesyntax_dataset.languages.java.tokens import DecodedCode
from codesyntax_dataset.schema import Token

COMMENTS = {"line_comment", "block_comment"}

_LANGUAGE = tree_sitter.Language(tree_sitter_java.language())
_BEFORE, _AFTER = b"class A {", b"\n}"
_LATER_WORDS = {"assert", "enum", "record", "yield"}  # identifiers in Java 1.3


def parse(text: str) -> tree_sitter.Tree:
    """tree-sitter's tree of a class that contains `text`. The positions of its nodes are bytes in
    the whole class."""
    return bounded.parse(_LANGUAGE, _BEFORE + text.encode() + _AFTER)


def token_positions(tokens: Iterable[Token], text: str) -> list[int]:
    """The start of each token of `text`, in the same positions as the nodes of `parse(text)`."""
    if text.isascii():
        return [token.start + len(_BEFORE) for token in tokens]
    positions = list(
        accumulate((len(character.encode()) for character in text), initial=len(_BEFORE))
    )
    return [positions[token.start] for token in tokens]


def children_of(node: tree_sitter.Node) -> list[tree_sitter.Node]:
    """All children of a node, keywords and brackets included, except comments, which may be
    anywhere."""
    return [child for child in node.children if child.type not in COMMENTS]


def parse_method(decoded: DecodedCode, tokens: list[Token]) -> tree_sitter.Node:
    """The node of the method or constructor in the code.

    A syntax error in the body, by the rules of Java 1.3, empties it: its edges are lost, the
    signature keeps its own. Raises ParseError if the code is not exactly one method: if the
    signature (everything before the first curly bracket outside round ones) does not parse with an
    empty body after it, or the code does not end where the body does.
    """
    text = _as_java_1_3(decoded.text, tokens)
    tree = parse(text)
    method = _only_method(tree)
    if method is not None:
        later = tree_sitter.QueryCursor(_LATER).captures(method.children[-1])
        if "variable" in later:
            method = _only_method(parse(_without(text, later["variable"])))
        if method is not None and not _is_refused(later):
            return method
    elif _is_one_class(tree):
        raise _no_method(decoded, tree)
    body = _find_body(decoded, tokens)
    if body is not None:
        tree = parse(text[:body] + "{}")
    method = _only_method(tree)
    if method is None:
        raise _no_method(decoded, tree)
    return method


def _as_java_1_3(text: str, tokens: list[Token]) -> str:
    """The text with later keywords respelled as identifiers, which they were in Java 1.3.

    So `assert (x);` calls a method, as in the published labels, and `assert x > 0;` is a syntax
    error. A NUL, which only an escape can spell, would end the text for tree-sitter.
    """
    starts = [token.start for token in tokens if token.text in _LATER_WORDS]
    if not starts and "\0" not in text:
        return text
    characters = list(text.replace("\0", "0"))
    for start in starts:
        characters[start] = "_"
    return "".join(characters)


def _without(text: str, nodes: list[tree_sitter.Node]) -> str:
    """The text with blanks in place of nodes."""
    encoded = bytearray(text.encode())
    for node in nodes:
        first, end = node.start_byte - len(_BEFORE), node.end_byte - len(_BEFORE)
        encoded[first:end] = b" " * (end - first)
    return encoded.decode()


def _only_method(tree: tree_sitter.Tree) -> tree_sitter.Node | None:
    """The method, if it is the only member of the tree's class apart from semicolons after it."""
    members = _members(tree) if _is_one_class(tree) else []
    return members[0] if len(members) == 1 and members[0].type in _METHODS else None


_METHODS = {"method_declaration", "constructor_declaration"}


def _is_one_class(tree: tree_sitter.Tree) -> bool:
    """True if the tree has no error and the text no bracket that closes the class around it."""
    return not tree.root_node.has_error and tree.root_node.child_count == 1


def _members(tree: tree_sitter.Tree) -> list[tree_sitter.Node]:
    """The members of the class of a tree, without semicolons at the end."""
    _, *members, _ = children_of(tree.root_node.children[0].children[-1])
    while members and members[-1].type == ";":
        members.pop()
    return members


_LATER = tree_sitter.Query(
    _LANGUAGE,
    """
    ; literals and patterns of later versions
    [(binary_integer_literal) (hex_floating_point_literal) (template_expression) (pattern)] @refused
    ([(decimal_integer_literal) (hex_integer_literal) (octal_integer_literal) (decimal_floating_point_literal)] @refused
     (#match? @refused "_"))

    ; `assert true;` declares a variable now, but none can have that name
    (variable_declarator name: (identifier) @refused (#any-of? @refused "true" "false" "null" "this"))

    ; `b` in `if (a instanceof B b)`: no node of the JDT ends with it
    (instanceof_expression name: (_) @variable)
    (record_pattern_body) @variable

    (expression_statement (_) @expression)
    """,
)
_STATEMENT_EXPRESSIONS = {
    *(
        "assignment_expression",
        "update_expression",
        "method_invocation",
        "object_creation_expression",
    ),
    *("switch_expression", *COMMENTS),
}


def _is_refused(later: dict[str, list[tree_sitter.Node]]) -> bool:
    """True if there is code that only tree-sitter accepts: newer literals, or any expression
    statement."""
    return "refused" in later or any(
        expression.type not in _STATEMENT_EXPRESSIONS and not _is_in_switch_rule(expression)
        for expression in later.get("expression", [])
    )


def _is_in_switch_rule(expression: tree_sitter.Node) -> bool:
    statement = expression.parent
    return bool(statement and statement.parent and statement.parent.type == "switch_rule")


def _find_body(decoded: DecodedCode, tokens: list[Token]) -> int | None:
    """The start of the body; None if there is none. Raises ParseError if the code does not end
    where the body does."""
    depth, begin = 0, None
    for token in tokens:
        if begin is None:
            depth += (token.text == "(") - (token.text == ")")
            if token.text == "{" and depth == 0:
                begin, depth = token.start, 1
        elif depth > 0:
            depth += (token.text == "{") - (token.text == "}")
        elif token.text != ";":
            raise decoded.error(
                f"expected one method and nothing else, found {token.text!r} after it", token.start
            )
    if begin is not None and depth > 0:
        raise decoded.error("the body that begins here has no end", begin)
    return begin


def _no_method(decoded: DecodedCode, tree: tree_sitter.Tree) -> ParseError:
    """The error for code whose tree is not that of one method."""
    node = tree.root_node
    if node.has_error:
        while not (node.is_error or node.is_missing):
            node = next(child for child in node.children if child.has_error)
        culprit = "a syntax error"
    else:
        members = [member for member in _members(tree) if member.type not in _METHODS] or _members(
            tree
        )[1:]
        node = members[0] if members else node.children[0].children[-1]
        culprit = node.type.replace("_", " ") if members else "none"
    before = decoded.text.encode()[: max(node.start_byte - len(_BEFORE), 0)].decode(errors="ignore")
    return decoded.error(f"expected one method and nothing else, found {culprit}", len(before))
