"""The syntax tree of Python code, by the grammar of Python 3.9 on every interpreter.

`ast.parse(feature_version=(3, 9))` refuses most of what came later. Here is the rest: what it lets through, f-strings
(since 3.12 they have a grammar of their own, PEP 701), bounds for nesting, and silence about invalid escapes.
"""

from __future__ import annotations

import ast
import re
import unicodedata
import warnings
from itertools import accumulate

from codesyntax_dataset.annotators.python_tokens import error_at, tokenize
from codesyntax_dataset.errors import ParseError
from codesyntax_dataset.schema import Token

MAX_BRACKETS = 100
MAX_DEPTH = 1000
MAX_CHAIN = 10_000
"""More brackets or syntax nodes in each other, or more tokens in an expression without a comma, are a ParseError. Every
interpreter has bounds of its own, or breaks down without one; these are below them all."""

_FSTRING_OR_NAMED = re.compile(r"""[fF][rR]?['"]|\\N""")
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
    """The `ast` tree of `code`, whose tokens are `tokens`; columns are UTF-8 bytes, as always in `ast`.

    An f-string is a plain string in this tree: no token starts inside it, so there is nothing to label in it.

    Raises ParseError where Python 3.9 finds a syntax error, and beyond the bounds above.
    """
    _check_tokens(code, tokens)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(_without_fstrings(code, tokens), mode=mode, feature_version=(3, 9))
        except SyntaxError as error:
            raise ParseError(error.msg, error.lineno or 1, max((error.offset or 1) - 1, 0)) from None
        except (RecursionError, MemoryError):
            raise ParseError("nested too deeply", 1, 0) from None
    _check_nodes(tree, code, tokens)
    return tree


_FIELDS = {  # node class -> its fields that may hold nodes; operators and contexts are not worth a visit
    node_class: tuple(field for field in node_class._fields if field not in ("ctx", "op", "ops"))
    for node_class in vars(ast).values()
    if isinstance(node_class, type) and issubclass(node_class, ast.AST)
}


def children(node: ast.AST) -> list[ast.AST]:
    """The child nodes of `node` in the order of its fields, without operators and contexts."""
    found = []
    for field in _FIELDS[type(node)]:
        value = getattr(node, field)
        if isinstance(value, list):
            found += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


class TokenIndex:
    """Which token starts and which ends where an `ast` node does."""

    def __init__(self, code: str, tokens: list[Token]):
        self._lines = [0, *accumulate(len(line) + 1 for line in code.encode().split(b"\n"))]  # bytes before each line
        starts, ends = [token.start for token in tokens], [token.end for token in tokens]
        if not code.isascii():
            before = [0, *accumulate(len(character.encode()) for character in code)]  # bytes before each character
            starts, ends = [before[start] for start in starts], [before[end] for end in ends]
        # Empty tokens start where the next one does, and the last one ends where they do: the others win.
        self._starting = dict(zip(starts, range(len(tokens))))
        self._ending = dict(zip(reversed(ends), reversed(range(len(tokens)))))

    def start(self, node: ast.AST) -> int:
        """The index of the token that starts where `node` does."""
        return self._starting[self._lines[node.lineno - 1] + node.col_offset]

    def end(self, node: ast.AST) -> int:
        """The index of the token that ends where `node` does."""
        return self._ending[self._lines[node.end_lineno - 1] + node.end_col_offset]


def _check_tokens(code: str, tokens: list[Token]) -> None:
    """Refuse what would bring a parser down, and names that only some interpreters know as such."""
    if sum(map(code.count, "([{")) > MAX_BRACKETS or len(tokens) > MAX_CHAIN:
        chain = [0]  # tokens since the last comma: of the statement, then of each bracket open
        for text, start, _ in tokens:
            if text in ("(", "[", "{"):
                chain.append(0)
                if len(chain) > MAX_BRACKETS + 1:
                    raise error_at(code, start, f"more than {MAX_BRACKETS} brackets in each other")
            elif text in (")", "]", "}") and len(chain) > 1:
                chain.pop()
            elif text == "," or (text in ("\n", "\r\n") and len(chain) == 1):
                chain[-1] = -1
            chain[-1] += 1
            if sum(chain) > MAX_CHAIN:
                raise error_at(code, start, f"an expression of more than {MAX_CHAIN} tokens")
    if not code.isascii():
        for text, start, _ in tokens:
            # Accents and vowel signs are part of a name to the parser, and tokens of their own to `tokenize`.
            stray = len(text) == 1 and not text.isascii() and not text.isalnum()
            if stray and unicodedata.ucd_3_2_0.category(text) not in ("Mn", "Mc"):
                raise error_at(code, start, f"invalid character {text!r}")


def _check_nodes(tree: ast.AST, code: str, tokens: list[Token]) -> None:
    """Refuse what `feature_version` lets pass: deep nesting, and what 3.10 and 3.11 allow in subscripts and `*args`."""
    if 3 * len(tokens) <= MAX_DEPTH and "*" not in code and ":=" not in code:  # a token opens three nodes at most
        return
    places = TokenIndex(code, tokens)
    level, depth = [tree], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise ParseError(f"more than {MAX_DEPTH} syntax nodes in each other", 1, 0)
        for node in level:
            newer = isinstance(node, ast.arg) and isinstance(node.annotation, ast.Starred)
            if newer or (isinstance(node, ast.Subscript) and _is_newer_index(node.slice, tokens, places)):
                raise error_at(code, tokens[places.start(node)].start, "'*' or ':=' where Python 3.9 has none")
        level = [child for node in level for child in children(node)]


def _is_newer_index(index: ast.AST, tokens: list[Token], places: TokenIndex) -> bool:
    """Whether `index` is that of `x[*a]` or `x[a := b]`, without the brackets that Python 3.9 wants around it."""
    items = index.elts if isinstance(index, ast.Tuple) else [index]
    if not any(isinstance(item, (ast.Starred, ast.NamedExpr)) for item in items):
        return False
    if isinstance(index, ast.Tuple):
        texts = [token.text for token in tokens[places.start(index) : places.end(index)]]
        depths = accumulate((text in ("(", "[", "{")) - (text in (")", "]", "}")) for text in texts)
        if 0 not in depths:  # one pair of brackets from end to end
            return False
    for item in items:
        before = places.start(item) - 1
        while tokens[before].text[:1] in ("#", "\r", "\n"):
            before -= 1
        if isinstance(item, ast.Starred) or (isinstance(item, ast.NamedExpr) and tokens[before].text != "("):
            return True
    return False


def _without_fstrings(code: str, tokens: list[Token]) -> str:
    """`code` with plain strings of the same bytes for its f-strings, and no character names in strings.

    Which names there are depends on the interpreter's Unicode version, so every name will do.
    """
    if not _FSTRING_OR_NAMED.search(code):
        return code
    pieces, position = [], 0
    for text, start, end in tokens:
        if match := _STRING.fullmatch(text):
            try:
                plain = _plain_string(*match.groups())
            except (SyntaxError, ParseError) as error:
                raise error_at(code, start, f"f-string: {error}") from None
            pieces += [code[position:start], plain]
            position = end
    return "".join(pieces) + code[position:]


def _plain_string(prefix: str, quotes: str, body: str) -> str:
    raw = "r" in prefix.lower()
    if "f" in prefix.lower():
        body = _without_fields(body, raw)
        prefix, body = ("r", "_" + body) if raw else ("u", body)
    if prefix in ("", "u", "U"):
        body = _ESCAPED.sub(lambda escape: _blank(escape[0]) if escape["name"] else escape[0], body)
    return f"{prefix}{quotes}{body}{quotes}"


def _blank(text: str) -> str:
    """As many bytes and lines as `text`, without its meaning."""
    return re.sub(r"[^\r\n]", lambda character: "_" * len(character[0].encode()), text)


def _without_fields(body: str, raw: bool) -> str:
    """The f-string `body` with its replacement fields blanked; SyntaxError where Python 3.9 has one."""
    pieces: list[str] = []
    position = 0
    while position < len(body):
        text = _TEXT[raw, False].match(body, position)
        pieces.append(text[0])
        position = _field_end(body, text.end(), raw, 1, pieces) if text.end() < len(body) else text.end()
    return "".join(pieces)


def _field_end(body: str, start: int, raw: bool, level: int, pieces: list[str]) -> int:
    """Where the replacement field ends whose brace is at `start`.

    Adds the field to `pieces`, blank but for the text of its format specification. Fields in there have `level` 2.
    """
    if body[start] == "}":
        raise SyntaxError("single '}'")
    if level > 2:
        raise SyntaxError("expressions nested too deeply")
    position = _expression_end(body, start + 1)
    expression = body[start + 1 : position]
    if not expression.strip(" \t\f\r\n"):
        raise SyntaxError("empty expression")
    expression = f"({expression})"
    parse(expression, tokenize(expression), mode="eval")
    if body[position] == "=":
        position = _EQUALS.match(body, position).end()
    if body[position : position + 1] == "!":
        if body[position + 1 : position + 2] not in ("s", "r", "a"):
            raise SyntaxError("the conversion must be 's', 'r' or 'a'")
        position += 2
    pieces.append(_blank(body[start:position]))
    if body[position : position + 1] == ":":
        text = _TEXT[raw, True].match(body, position)
        pieces.append(text[0])
        while body[text.end() : text.end() + 1] == "{":
            text = _TEXT[raw, True].match(body, _field_end(body, text.end(), raw, level + 1, pieces))
            pieces.append(text[0])
        position = text.end()
    if body[position : position + 1] != "}":
        raise SyntaxError("expecting '}'")
    pieces.append("_")
    return position + 1


def _expression_end(body: str, start: int) -> int:
    """Where the expression ends that begins at `start` in a replacement field: always before a character."""
    open_brackets = ""
    for match in _EXPRESSION_PART.finditer(body, start):
        part = match[0]
        if not open_brackets and part in ("!", ":", "}", "="):
            return match.start()
        if part in ("(", "[", "{"):
            open_brackets += part
        elif part in (")", "]", "}"):
            if open_brackets[-1:] + part not in ("()", "[]", "{}"):
                raise SyntaxError(f"unmatched {part!r}")
            open_brackets = open_brackets[:-1]
        elif part in ("'", '"', "#") or "\\" in part:
            raise SyntaxError(f"{part!r} in an expression")
    raise SyntaxError("expecting '}'")
