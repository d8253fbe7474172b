"""The functions in a Python file, delimited as in CodeSearchNet."""

from __future__ import annotations

import ast
import io
import tokenize
import warnings
from collections.abc import Iterable, Iterator

from codesyntax_dataset.errors import ParseError
from codesyntax_dataset.languages.language import UNREAD_FUNCTION, Definition, Unread


def decode(data: bytes) -> str:
    """Decode like Python: by byte-order mark or declaration (PEP 263), otherwise as UTF-8."""
    encoding, _ = tokenize.detect_encoding(iter(data.splitlines(keepends=True)).__next__)
    return data.decode(encoding)


def definitions(text: str, branches: bool = True) -> Iterable[Definition | Unread]:
    """The module-level functions of a file and the methods of its classes, from `def` or `async
    def` on.

    With `branches`, these may stand in `if`, `try` and other statements, which CodeSearchNet leaves
    out.

    Of a file that this interpreter cannot parse, such as one for a later version, the functions
    that exact labels can read, and what they cannot. Raises SyntaxError or ValueError if nobody can
    read it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # for example about an invalid escape in the file
        try:
            return _by_interpreter(text, ast.parse(text), branches)
        except SyntaxError:
            if "\0" in text:
                raise
            return _by_grammar(text)


def _by_grammar(text: str) -> Iterator[Definition | Unread]:
    from codesyntax_dataset.languages.python.exact import TABLE
    from codesyntax_dataset.languages.tables import definitions, labels

    exact = labels.Labels(TABLE)
    for definition in definitions.definitions(text, exact):
        if isinstance(definition, Definition):
            try:
                exact.annotate(definition.code)
            except ParseError:  # such as a statement of Python 2
                definition = Unread(UNREAD_FUNCTION, definition.first_line)
        yield definition


def _inside(node: ast.stmt) -> list[ast.stmt]:
    """The statements right inside of a statement, in order."""
    parts = [node, *getattr(node, "handlers", ()), *getattr(node, "cases", ())]
    statements = [
        each
        for part in parts
        for name in ("body", "orelse", "finalbody")
        for each in getattr(part, name, ())
    ]
    return sorted(statements, key=lambda each: each.lineno)


def _by_interpreter(text: str, module: ast.Module, branches: bool) -> Iterator[Definition]:
    # counted as by the parser: \n, \r\n and \r end a line, \f does not
    lines = list(io.StringIO(text, newline=""))

    def functions(body: list[ast.stmt], prefix: str) -> Iterator[Definition]:
        for node in body:
            if isinstance(node, ast.ClassDef):
                yield from functions(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                block = lines[node.lineno - 1 : node.end_lineno]
                # columns of the tree count bytes
                block[-1] = block[-1].encode()[: node.end_col_offset].decode()
                block[0] = block[0].encode()[node.col_offset :].decode()
                yield Definition(
                    f"{prefix}{node.name}",
                    node.lineno,
                    node.lineno + len(block) - 1,
                    "".join(block),
                )
            elif branches:
                yield from functions(_inside(node), prefix)

    return functions(module.body, "")
