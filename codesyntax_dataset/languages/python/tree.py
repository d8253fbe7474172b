"""The syntax tree of Python code, by the grammar of Python 3.9 on every interpreter.

`ast.parse(feature_version=(3, 9))` rejects most of the newer syntax. This module handles the rest:
newer syntax that it accepts, f-strings (which have their own grammar since 3.12, PEP 701), limits
for nesting, and silence about invalid escapes.
"""

from __future__ import annotations

import ast
import re
import unicodedata
import warnings
from bisect import bisect_right
from collections import Counter
from itertools import accumulate

from codesyntax_dataset.errors import ParseError
from codesyntax_dataset.languages.python.tokens import error_at, tokenize
from codesyntax_dataset.schema import Token

PLACED = (ast.stmt, ast.expr, ast.excepthandler, ast.arg, ast.keyword, ast.alias)
Placed = ast.stmt | ast.expr | ast.excepthandler | ast.arg | ast.keyword | ast.alias
"""The nodes of Python 3.9 that have a position."""

MAX_BRACKETS = 100
MAX_DEPTH = 1000
MAX_CHAIN = 10_000
"""More nested brackets or syntax nodes, or more tokens in an expression without a comma, are a
ParseError. Every interpreter has its own limits, or crashes without one; these are below all of
them."""

_TO_RESPELL = re.compile(r"""[fF][rR]?['"]|\\N|[0-9][0-9_]{639}""")
_LONG_INTEGER = re.compile(r"[1-9][0-9_]{639,}")
_STRING = re.compile(r"""([a-zA-Z]*)('''|\"""|'|")(.*)\2""", re.DOTALL)
_ESCAPED = re.compile(r"\\(?:N\{(?P<name>[A-Za-z0-9 -]+)\}|.)", re.DOTALL)
_EXPRESSION_PART = re.compile(r"""'''.*?'''|\""".*?\"""|'[^']*'|"[^"]*"|[!=<>]=|.""", re.DOTALL)
_EQUALS = re.compile(r"=[ \t\n\r\f\v]*")
_ESCAPE = r"\\N\{[^}]*\}?|\\[^{}]|\\"
_TEXT = {  # (raw, inside a replacement field) -> the text up to the next brace that counts
    (False, False): re.compile(rf"(?:{_ESCAPE}|[^\\{{}}]|\{{\{{|\}}\}})*", re.DOTALL),
    (False, True): re.compile(rf"(?:{_ESCAPE}|[^\\{{}}])*", re.DOTALL),
    (True, False): re.compile(r"(?:[^{}]|\{\{|\}\})*"),
    (True, True): re.compile(r"[^{}]*"),
}


def parse(code: str, tokens: list[Token], mode: str = "exec") -> ast.AST:
    """The `ast` tree of `code`, whose tokens are `tokens`; columns are UTF-8 bytes, as always in
    `ast`.

    An f-string, alone or concatenated with other strings, is a `Constant` in this tree, because no
    token starts inside it. Its children are only its format specifications, which have a token up
    to Python 3.11: the f-string itself.

    Raises ParseError if Python 3.9 finds a syntax error, and beyond the limits above.
    """
    _check_tokens(code, tokens)
    source, specifications = _respelled(code, tokens)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(source, mode=mode, feature_version=(3, 9))
        except SyntaxError as error:
            message = f"Python 3.9's grammar, which labels follow, cannot read this ({error.msg})"
            raise ParseError(message, error.lineno or 1, max((error.offset or 1) - 1, 0)) from None
        except (RecursionError, MemoryError):
            raise ParseError("nested too deeply", 1, 0) from None
    _check_nodes(tree, code, tokens)
    if specifications:
        _add_specifications(tree, specifications, TokenIndex(code, tokens))
    return tree


def _fields_of(node_class: type[ast.AST]) -> tuple[str, ...]:
    """The fields that may hold nodes; operators and contexts are not worth a visit."""
    return tuple(field for field in node_class._fields if field not in ("ctx", "op", "ops"))


_FIELDS = {
    node_class: _fields_of(node_class)
    for node_class in vars(ast).values()
    if isinstance(node_class, type) and issubclass(node_class, ast.AST)
}


def children(node: ast.AST) -> list[ast.AST]:
    """The child nodes of `node` in the order of its fields, without operators and contexts."""
    nodes: list[ast.AST] = []
    for field in _FIELDS[type(node)]:
        value = getattr(node, field)
        if isinstance(value, list):
            nodes += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST):
            nodes.append(value)
    return nodes


class TokenIndex:
    """Which token starts and which ends where an `ast` node does."""

    def __init__(self, code: str, tokens: list[Token]):
        # bytes before each line
        self._lines = [
            0,
            *accumulate(len(line) + 1 for line in code.encode().split(b"\n")),
        ]
        starts, ends = [token.start for token in tokens], [token.end for token in tokens]
        if not code.isascii():
            # bytes before each character
            before = [
                0,
                *accumulate(len(character.encode()) for character in code),
            ]
            starts, ends = [before[start] for start in starts], [before[end] for end in ends]
        self._starts, self._ends = starts, ends
        # Empty tokens start where the next one does, and the last one ends where they do: the
        # others win.
        self._starting = dict(zip(starts, range(len(tokens))))
        self._ending = dict(zip(reversed(ends), reversed(range(len(tokens)))))

    def start(self, node: Placed) -> int:
        """The index of the token that starts where `node` does; raises ParseError if none does."""
        try:
            return self._starting[self._lines[node.lineno - 1] + node.col_offset]
        except KeyError:
            raise _disagree(node.lineno, node.col_offset) from None

    def end(self, node: Placed) -> int:
        """The index of the token that ends where `node` does; raises ParseError if none does."""
        # `ast.parse` leaves them to no one else
        assert node.end_lineno is not None and node.end_col_offset is not None
        try:
            return self._ending[self._lines[node.end_lineno - 1] + node.end_col_offset]
        except KeyError:
            raise _disagree(node.end_lineno, node.end_col_offset) from None

    def node(self, token: int) -> ast.JoinedStr:
        """A node that stands where the token does."""
        start, end = self._starts[token], self._ends[token]
        line, end_line = bisect_right(self._lines, start), bisect_right(self._lines, end)
        return ast.JoinedStr(
            values=[],
            lineno=line,
            col_offset=start - self._lines[line - 1],
            end_lineno=end_line,
            end_col_offset=end - self._lines[end_line - 1],
        )


def _disagree(line: int, column: int) -> ParseError:
    """The error of random texts only."""
    return ParseError("the parser and the tokens do not agree here", line, column)


def _check_tokens(code: str, tokens: list[Token]) -> None:
    """Reject code that would crash a parser, and names that are valid only in some interpreters."""
    if sum(map(code.count, "([{")) > MAX_BRACKETS or len(tokens) > MAX_CHAIN:
        chain = [0]  # tokens since the last comma: of the statement, then of each bracket open
        for text, start, _ in tokens:
            if text in ("(", "[", "{"):
                chain.append(0)
                if len(chain) > MAX_BRACKETS + 1:
                    raise error_at(code, start, f"more than {MAX_BRACKETS} nested brackets")
            elif text in (")", "]", "}") and len(chain) > 1:
                chain.pop()
            elif text == "," or (text in ("\n", "\r\n") and len(chain) == 1):
                chain[-1] = -1
            chain[-1] += 1
            if sum(chain) > MAX_CHAIN:
                raise error_at(code, start, f"an expression of more than {MAX_CHAIN} tokens")
    if not code.isascii():
        for text, start, _ in tokens:
            # Accents and vowel signs are part of a name to the parser, and tokens of their own to
            # `tokenize`.
            stray = len(text) == 1 and not text.isascii() and not text.isalnum()
            if stray and unicodedata.ucd_3_2_0.category(text) not in ("Mn", "Mc"):
                raise error_at(code, start, f"invalid character {text!r}")


def _check_nodes(tree: ast.AST, code: str, tokens: list[Token]) -> None:
    """Reject what `feature_version` accepts: deep nesting, and what 3.10 and 3.11 allow in
    subscripts and `*args`."""
    if 3 * len(tokens) <= MAX_DEPTH and {"*", ":="}.isdisjoint(token.text for token in tokens):
        return  # a token opens three nodes at most
    level, depth = [tree], 0
    suspects: list[ast.arg | ast.Subscript] = []
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise ParseError(f"more than {MAX_DEPTH} nested syntax nodes", 1, 0)
        suspects += [
            node
            for node in level
            if isinstance(node, (ast.arg, ast.Subscript)) and _newer_items(node)
        ]
        level = [child for node in level for child in children(node)]
    places = TokenIndex(code, tokens) if suspects else None
    for node in suspects:
        assert places
        if _is_newer(node, tokens, places):
            raise error_at(
                code, tokens[places.start(node)].start, "'*' or ':=' where Python 3.9 has none"
            )


def _newer_items(node: ast.arg | ast.Subscript) -> list[ast.expr]:
    """The starred or named items of a subscript, or a starred annotation: Python 3.9 has neither
    without brackets."""
    inner = node.annotation if isinstance(node, ast.arg) else node.slice
    items = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    return [item for item in items if isinstance(item, (ast.Starred, ast.NamedExpr))]


def _is_newer(node: ast.arg | ast.Subscript, tokens: list[Token], places: TokenIndex) -> bool:
    """True if `node`, which has newer items, is `*args: *a`, or `x[*a]` or `x[a := b]` without the
    brackets that Python 3.9 requires."""
    if isinstance(node, ast.arg):
        return isinstance(node.annotation, ast.Starred)
    if isinstance(node.slice, ast.Tuple):
        texts = [token.text for token in tokens[places.start(node.slice) : places.end(node.slice)]]
        depths = accumulate((text in ("(", "[", "{")) - (text in (")", "]", "}")) for text in texts)
        if 0 not in depths:  # one pair of brackets from end to end
            return False
    for item in _newer_items(node):
        before = places.start(item) - 1
        while tokens[before].text[:1] in ("#", "\r", "\n"):
            before -= 1
        if isinstance(item, ast.Starred) or tokens[before].text != "(":
            return True
    return False


def _add_specifications(tree: ast.AST, specifications: list[int], places: TokenIndex) -> None:
    of_token = Counter(specifications)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            strings = range(places.start(node), places.end(node) + 1)
            # where `children` finds them; no constant has a list for its value
            vars(node)["value"] = [
                places.node(token) for token in strings for _ in range(of_token[token])
            ]


def _respelled(code: str, tokens: list[Token]) -> tuple[str, list[int]]:
    """`code` with each f-string replaced by a plain string of the same length, and the token of
    each format spec.

    In plain strings, names of characters (`\\N{...}`) are replaced, too: which names exist depends
    on the interpreter's Unicode version, so any name is accepted. So are long decimal integers, by
    hexadecimal ones: how many digits are converted depends on PYTHONINTMAXSTRDIGITS.
    """
    if not _TO_RESPELL.search(code):
        return code, []
    pieces, position, specifications = [], 0, []
    for index, (text, start, end) in enumerate(tokens):
        if match := _STRING.fullmatch(text):
            prefix, quotes, body = match.groups()
            raw = "r" in prefix.lower()
            if "f" in prefix.lower():
                fstring = _FString(body, raw)
                try:
                    body = fstring.plain()
                except (SyntaxError, ParseError) as error:
                    raise error_at(code, start, f"f-string: {error}") from None
                specifications += [index] * fstring.specifications
                prefix, body = ("r", "_" + body) if raw else ("u", body)
            if prefix in ("", "u", "U"):
                body = _ESCAPED.sub(
                    lambda escape: _blank(escape[0]) if escape["name"] else escape[0], body
                )
            pieces.append(f"{code[position:start]}{prefix}{quotes}{body}{quotes}")
            position = end
        elif _LONG_INTEGER.fullmatch(text):
            pieces.append(f"{code[position:start]}0x{'1' * (len(text) - 2)}")
            position = end
        elif text in ("'", '"'):  # since Python 3.12, an f-string may go on in the next line
            raise error_at(code, start, "this string does not end")
    return "".join(pieces) + code[position:], specifications


def _blank(text: str) -> str:
    """A meaningless text with as many bytes and lines as `text`."""
    return re.sub(r"[^\r\n]", lambda character: "_" * len(character[0].encode()), text)


class _FString:
    """The content of an f-string, parsed as in Python 3.9; raises SyntaxError where 3.9 does."""

    def __init__(self, body: str, raw: bool):
        self.body = body
        self.ended = body + "\0"  # so that there is always a next character
        self.raw = raw
        self.pieces: list[str] = []  # of the plain string
        self.specifications = 0

    def plain(self) -> str:
        """The text with replacement fields blanked out, except the text of their format
        specifications."""
        position = self._text_end(0, nested=False)
        while position < len(self.body):
            position = self._text_end(self._field_end(position, level=1), nested=False)
        return "".join(self.pieces)

    def _text_end(self, start: int, nested: bool) -> int:
        match = _TEXT[self.raw, nested].match(self.body, start)
        assert match  # the least text is none
        self.pieces.append(match[0])
        return match.end()

    def _field_end(self, start: int, level: int) -> int:
        """The end of the replacement field whose brace is at `start`; in a format specification
        `level` is 2."""
        body = self.ended
        if body[start] == "}":
            raise SyntaxError("single '}'")
        if level > 2:
            raise SyntaxError("expressions nested too deeply")
        position = self._expression_end(start + 1)
        expression = body[start + 1 : position]
        if not expression.strip(" \t\f\r\n"):
            raise SyntaxError("empty expression")
        expression = f"({expression})"
        parse(expression, tokenize(expression), mode="eval")
        if equals := _EQUALS.match(body, position):
            position = equals.end()
        if body[position] == "!":
            if body[position + 1] not in "sra":
                raise SyntaxError("the conversion must be 's', 'r' or 'a'")
            position += 2
        self.pieces.append(_blank(body[start:position]))
        if body[position] == ":":
            self.specifications += 1
            position = self._text_end(position, nested=True)
            while body[position] == "{":
                position = self._text_end(self._field_end(position, level + 1), nested=True)
        if body[position] != "}":
            raise SyntaxError("expecting '}'")
        self.pieces.append("_")
        return position + 1

    def _expression_end(self, start: int) -> int:
        """The end of the expression that begins at `start`, always before a character."""
        brackets = ""
        for match in _EXPRESSION_PART.finditer(self.body, start):
            part = match[0]
            if not brackets and part in ("!", ":", "}", "="):
                return match.start()
            if part in ("(", "[", "{"):
                brackets += part
            elif part in (")", "]", "}"):
                if brackets[-1:] + part not in ("()", "[]", "{}"):
                    raise SyntaxError(f"unmatched {part!r}")
                brackets = brackets[:-1]
            elif part in ("'", '"', "#") or "\\" in part:
                raise SyntaxError(f"{part!r} in an expression")
        raise SyntaxError("expecting '}'")
