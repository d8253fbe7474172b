"""Other changes: closing brackets, separators, indentation, order and names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from codesyntax_dataset.pairs.code import Code, Node
from codesyntax_dataset.pairs.words import Site, is_function

_OPENING = {")": ("(", "?.("), "]": ("[", "?.["), "}": ("{", "{|"), ">": ("<", "::<")}


def _opening(code: Code, token: Node) -> int | None:
    """The place of the bracket that a token closes."""
    assert token.parent is not None
    before = [
        child
        for child in token.parent.children
        if child.first == child.last and child.last < token.first
    ]
    for child in reversed(before):
        if code.of(child) in _OPENING[code.of(token)]:
            return child.first
    return None


def closers(code: Code) -> Iterator[Site]:
    """A closing bracket becomes one of another kind; in Ruby, `end` and `}` become each other,
    too."""
    has_end = any(token.type == "end" for token in code.tokens)
    for token in code.tokens:
        text = code.of(token)
        if (
            text in (")", "]", "}")
            and token.type == text
            and (opening := _opening(code, token)) is not None
        ):
            others = [other for other in (")", "]", "}") if other != text]
            if has_end and text == "}":
                others.append("end")
            for other in others:
                yield Site(token.start, token.end, other, opening, token.first)
        elif text == "end" and token.type == "end" and token.parent is not None:
            yield Site(token.start, token.end, "}", token.parent.first, token.first)


def type_brackets(code: Code) -> Iterator[Site]:
    """The closing bracket of type arguments becomes another one, or another one becomes it."""
    for token in code.tokens:
        text = code.of(token)
        if token.parent is None or text not in _OPENING or token.type != text:
            continue
        types = token.parent.type in ("type_arguments", "type_parameters")
        if (types if text == ">" else text != "}") and (
            opening := _opening(code, token)
        ) is not None:
            for other in (")", "]") if text == ">" else (">",):
                yield Site(token.start, token.end, other, opening, token.first)


def closer_order(code: Code) -> Iterator[Site]:
    """Two closing brackets of different kinds change places."""
    for first, second in pairwise(code.tokens):
        texts = code.of(first), code.of(second)
        if texts[0] != texts[1] and all(text in (")", "]", "}") for text in texts):
            inner = _opening(code, first) if first.type == texts[0] else None
            if inner is not None and second.type == texts[1]:
                between = code.text[first.end : second.start]
                yield Site(
                    first.start, second.end, texts[1] + between + texts[0], inner, first.first
                )


_LISTS = frozenset(
    "argument_list arguments array array_creation_expression array_expression array_initializer field_initializer_list "
    "formal_parameters literal_value match_block object parameter_list parameters".split()
)


def separators(code: Code) -> Iterator[Site]:
    """A comma of a list becomes a semicolon, or a semicolon between statements or in the header of
    a loop a comma."""
    for token in code.tokens:
        text = code.of(token)
        if text not in (",", ";") or token.parent is None:
            continue
        around = token.parent
        if text == ",":
            if around.type == "match_arm" and around.parent is not None:
                around = around.parent
            if around.type in _LISTS:
                yield Site(token.start, token.end, ";", around.first, token.first)
        else:
            for node in token.ancestors():
                if code.token(node.first) in ("{", "("):
                    yield Site(token.start, token.end, ",", node.first, token.first)
                    break


def conditional_expressions(code: Code) -> Iterator[Site]:
    """The `else` or `:` of a conditional expression becomes `or` or `,`, or one of these becomes
    it."""
    for token in code.tokens:
        text, parent = code.of(token), token.parent
        if parent is None:
            continue
        asks = [child for child in parent.children if child.type in ("if", "?")]
        if parent.type in ("conditional_expression", "ternary_expression", "conditional") and asks:
            others = {"else": ("or", "and"), ":": (",",)}.get(text, ())
            for other in others:
                yield Site(
                    token.start, token.end, other, asks[0].first, token.first, "IfExp:body->orelse"
                )
        elif parent.type == "boolean_operator" and text in ("or", "and"):
            yield Site(
                token.start, token.end, "else", parent.first, token.first, "IfExp:body->orelse"
            )
        elif parent.type in _LISTS and text == ",":
            yield Site(token.start, token.end, ":", parent.first, token.first, "IfExp:body->orelse")


def _function(node: Node) -> Node | None:
    return next(filter(is_function, node.ancestors()), None)


def _own(node: Node, *kinds: str) -> Iterator[Node]:
    """The nodes of these kinds that belong to a function itself, not to one inside it."""
    return (inside for inside in node.descendants(is_function) if inside.type in kinds)


def _is_async(code: Code, function: Node) -> bool:
    return any(child.type == "async" for child in function.children)


def async_functions(code: Code) -> Iterator[Site]:
    """`async` is taken from a function that awaits, or given to one that must not be
    asynchronous."""
    for function in code.nodes:
        if function.type != "function_definition":
            continue
        first = function.children[0]
        if _is_async(code, function):
            waits = [node for node in _own(function, "await", "async") if node.first > first.last]
            if waits:
                licensed = waits[0].first
                behind = function.children[1].start
                yield Site(
                    first.start, behind, "", first.first, licensed, "Await:await->value", True
                )
        else:
            delegates = [
                node for node in _own(function, "yield") if code.token(node.first + 1) == "from"
            ]
            returns = [
                node for node in _own(function, "return_statement") if len(node.children) > 1
            ]
            if not delegates and any(_own(function, "yield")):
                delegates = returns
            if delegates:
                critical = delegates[0].first
                yield Site(
                    first.start,
                    first.start,
                    "async ",
                    first.first,
                    critical,
                    "Yield:yield->value",
                    True,
                )


def await_or_yield(code: Code) -> Iterator[Site]:
    """What an asynchronous function says becomes what a generator says, or the reverse."""
    for token in code.tokens:
        text, node = code.of(token), token.parent
        if text not in ("await", "yield") or node is None or len(node.children) < 2:
            continue
        python = node.type in ("await", "yield")
        function = _function(token)
        if function is None:
            continue
        # before a bracket, the word is a name in sloppy mode
        rule = python or code.token(token.first + 1)[:1].isalpha()
        waits = _is_async(code, function)
        generates = any(child.type == "*" for child in function.children) or python
        if text == "await" and waits and (python or not generates):
            other = "yield from" if python else "yield"
            yield Site(
                token.start,
                token.end,
                other,
                function.first,
                token.first,
                "Await:await->value",
                rule,
            )
        elif text == "yield" and not waits:
            delegates = code.token(token.first + 1) == ("from" if python else "*")
            if delegates == python:
                end = code.tokens[token.first + 1].end if python else token.end
                yield Site(
                    token.start,
                    end,
                    "await",
                    function.first,
                    token.first,
                    "Yield:yield->value",
                    rule,
                )


def argument_order(code: Code) -> Iterator[Site]:
    """The last positional argument or parameter moves behind those with a name or a default."""
    for node in code.nodes:
        if node.type not in ("argument_list", "parameters", "lambda_parameters"):
            continue
        parts = [child for child in node.children if child.type not in ("(", ")", ",")]
        named = ("keyword_argument", "default_parameter", "typed_default_parameter")
        if any(
            part.type.endswith(("splat", "splat_pattern", "separator", "for_in_clause"))
            for part in parts
        ):
            continue
        places = [index for index, part in enumerate(parts) if part.type in named]
        if places and places[0] and places == [*range(places[0], len(parts))]:
            positional, first, last = parts[places[0] - 1], parts[places[0]], parts[-1]
            if code.of(positional) in ("self", "cls"):
                continue
            between = code.text[positional.end : first.start]
            text = code.text[first.start : last.end] + between + code.of(positional)
            relation = (
                "Call:args->keywords" if node.type == "argument_list" else "Default:name->value"
            )
            yield Site(positional.start, last.end, text, first.first, last.last, relation, True)


def _pairs_of_names(code: Code, names: Sequence[Node], relation: str) -> Iterator[Site]:
    """A name becomes that of another one, first or last."""
    if len({code.of(name) for name in names}) < len(names) or len(names) < 2:
        return
    first, last = names[0], names[-1]
    for replaced, other in ((first, last), (last, first)):
        yield Site(
            replaced.start, replaced.end, code.of(other), first.first, last.first, relation, True
        )


_SLOPPY = frozenset(
    "function_declaration function_expression generator_function generator_function_declaration".split()
)
"""Functions of JavaScript whose parameters may have one name, unless the mode is strict."""


def distinct_parameters(code: Code) -> Iterator[Site]:
    """A parameter has the name of another."""
    for node in code.nodes:
        if node.type not in (
            "parameters",
            "method_parameters",
            "formal_parameters",
            "lambda_parameters",
        ):
            continue
        if node.parent is not None and node.parent.type in _SLOPPY:
            continue
        names = []
        for part in node.children:
            inner = part
            while inner.type != "variable_name" and inner.children:
                kinds = [
                    child
                    for child in inner.children
                    if child.type in ("identifier", "variable_name")
                ]
                inner = kinds[0] if kinds else inner.children[0]
            if inner.type in ("identifier", "variable_name"):
                names.append(inner)
        yield from _pairs_of_names(code, names, "")


def distinct_keywords(code: Code) -> Iterator[Site]:
    """A keyword argument has the name of another."""
    for node in code.nodes:
        if node.type == "argument_list":
            names = [
                child.children[0] for child in node.children if child.type == "keyword_argument"
            ]
            yield from _pairs_of_names(code, names, "Call:args->keywords")


def declaration_order(code: Code) -> Iterator[Site]:
    """`global` or `nonlocal` changes places with the statement behind it, which uses the name."""
    for node in code.nodes:
        if node.type in ("global_statement", "nonlocal_statement") and node.parent is not None:
            siblings = node.parent.children
            behind = siblings[siblings.index(node) + 1 :][:1]
            names = {code.of(child) for child in node.children if child.type == "identifier"}
            if behind and "\n" not in code.of(behind[0]):
                uses = [name for name in _own(behind[0], "identifier") if code.of(name) in names]
                if uses:
                    between = code.text[node.end : behind[0].start]
                    text = code.of(behind[0]) + between + code.of(node)
                    yield Site(
                        node.start, behind[0].end, text, uses[0].first, behind[0].last, "", True
                    )


def indentation(code: Code) -> Iterator[Site]:
    """A statement inside a block moves to the level of the block around it, or one deeper."""
    for block in code.nodes:
        if block.type != "block" or block.parent is None:
            continue
        header = block.parent
        for before, node, behind in zip(
            block.children, block.children[1:], [*block.children[2:], None]
        ):
            line = code.text.rfind("\n", 0, node.start) + 1
            blanks = code.text[line : node.start]
            outer_line = code.text.rfind("\n", 0, header.start) + 1
            outer = code.text[outer_line : header.start]
            if (
                blanks.strip()
                or outer.strip()
                or not blanks.startswith(outer)
                or len(blanks) == len(outer)
            ):
                continue
            step = blanks[len(outer) :]
            relation = {
                "if_statement": "If:if->body",
                "for_statement": "For:for->body",
                "while_statement": "While:while->body",
                "with_statement": "With:item->body",
            }.get(header.type, "")
            if behind is not None:  # else it would end the block
                yield Site(line, node.start, outer, header.first, node.first, relation, True)
            # which it might go on
            if not any(inside.type == "block" for inside in before.descendants()):
                yield Site(
                    line, node.start, blanks + step, before.first, node.first, relation, True
                )
