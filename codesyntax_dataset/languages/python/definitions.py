"""The functions in a Python file, delimited as in CodeSearchNet."""

from __future__ import annotations

import ast
import io
import tokenize
import warnings
from collections.abc import Iterator

from codesyntax_dataset.languages.language import Definition


def decode(data: bytes) -> str:
    """Decode like Python: by byte-order mark or declaration (PEP 263), otherwise as UTF-8."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return data.decode(encoding)


def definitions(text: str) -> Iterator[Definition]:
    """The module-level functions of a file and the methods of its classes, from `def` or `async def` on.

    Raises SyntaxError or ValueError if this interpreter cannot parse the file.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # for example about an invalid escape in the file
        module = ast.parse(text)
    lines = list(io.StringIO(text, newline=""))  # counted as by the parser: \n, \r\n and \r end a line, \f does not

    def functions(body: list[ast.stmt], prefix: str) -> Iterator[Definition]:
        for node in body:
            if isinstance(node, ast.ClassDef):
                yield from functions(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                block = lines[node.lineno - 1 : node.end_lineno]
                block[-1] = block[-1].encode()[: node.end_col_offset].decode()  # columns of the tree count bytes
                block[0] = block[0].encode()[node.col_offset :].decode()
                yield Definition(f"{prefix}{node.name}", node.lineno, node.lineno + len(block) - 1, "".join(block))

    return functions(module.body, "")
