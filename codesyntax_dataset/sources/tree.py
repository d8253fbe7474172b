"""Any folder of source files: its module-level functions and its methods, as CodeSearchNet cuts them out.

A function's code begins at `def` or `async def`, in Java at the first modifier, and runs to its last character; its
first line loses its indentation, the others keep theirs. Decorators and comments before it are left out, functions
within functions are part of the outer one, Java methods without a body are none. Folders `test` and `validation` at the
top, if both are there, are the partitions and hold one folder per project, whose name stands for the repository;
otherwise everything is `test` and the repository is the folder itself. Hidden folders are passed over.
"""

from __future__ import annotations

import ast
import io
import os
import warnings
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from codesyntax_dataset.errors import SourceError
from codesyntax_dataset.schema import CONFIGS, Skips, SourceFunction
from codesyntax_dataset.sources.text import decode

FORM = "folder of source files"

SUFFIXES = {"python": ".py", "java": ".java"}


class _Function(NamedTuple):
    name: str
    first_line: int  # from 1
    last_line: int  # included
    code: str


def fits(source: str) -> bool:
    return Path(source).is_dir()


def read(source: str, config: str, skips: Skips) -> Iterator[SourceFunction]:
    """The functions of `config`'s language under the folder `source`, test partition first, by path and line.

    A file that does not parse and a symbolic link give no functions and are counted in `skips`. Raises SourceError for
    a file that is not UTF-8 or cannot be read.
    """
    language, _ = CONFIGS[config]
    root = Path(source).resolve()
    partitions = {"test": root / "test", "validation": root / "validation"}
    if not all(folder.is_dir() for folder in partitions.values()):
        partitions = {"test": root}
    for partition, folder in partitions.items():
        for file in _files(folder, SUFFIXES[language]):
            relative = file.relative_to(root).as_posix()
            if file.is_symlink():
                skips.add("file is a symbolic link", relative)
                continue
            text = _text(file)
            try:
                functions = list(_READERS[language](text))
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                skips.add("file does not parse", relative)
                continue
            project, _, path = file.relative_to(folder).as_posix().partition("/")
            if folder == root or not path:
                project, path = root.name, file.relative_to(folder).as_posix()
            for name, first, last, code in functions:
                yield SourceFunction(language, code, project, path, name, f"{relative}#L{first}-L{last}", partition)


def _files(folder: Path, suffix: str) -> list[Path]:
    found = []
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(parent, name) for name in files if name.endswith(suffix)]
    return sorted(found, key=lambda file: file.parts)


def _text(file: Path) -> str:
    try:
        return decode(file.read_bytes(), str(file))
    except OSError as error:
        raise SourceError(f"{file}: cannot be read ({error.strerror})") from error


def _python(source: str) -> Iterator[_Function]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as an invalid escape, which is the file's business
        module = ast.parse(source)
    lines = list(io.StringIO(source, newline=""))  # as the parser counts them: \n, \r\n and \r end a line, \f does not

    def functions(body: list[ast.stmt], prefix: str) -> Iterator[_Function]:
        for node in body:
            if isinstance(node, ast.ClassDef):
                yield from functions(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                block = lines[node.lineno - 1 : node.end_lineno]
                block[-1] = block[-1].encode()[: node.end_col_offset].decode()  # columns of the tree count bytes
                block[0] = block[0].encode()[node.col_offset :].decode()
                yield _Function(f"{prefix}{node.name}", node.lineno, node.end_lineno, "".join(block))

    return functions(module.body, "")


_JAVA_TYPES = {
    "annotation_type_declaration",
    "class_declaration",
    "enum_declaration",
    "interface_declaration",
    "record_declaration",
}


def _java(source: str) -> Iterator[_Function]:
    tree = _java_parser().parse(source.encode())
    if tree.root_node.has_error:
        raise SyntaxError("not Java")

    def methods(parent, prefix: str) -> Iterator[_Function]:
        for node in parent.named_children:
            if node.type in _JAVA_TYPES:
                yield from methods(node.child_by_field_name("body"), f"{prefix}{_name(node)}.")
            elif node.type == "enum_body_declarations":
                yield from methods(node, prefix)
            elif node.type == "method_declaration" and node.child_by_field_name("body"):
                first, last = node.start_point.row + 1, node.end_point.row + 1
                yield _Function(f"{prefix}{_name(node)}", first, last, node.text.decode())

    return methods(tree.root_node, "")


def _name(node) -> str:
    return node.child_by_field_name("name").text.decode()


@lru_cache(maxsize=1)
def _java_parser():
    import tree_sitter
    import tree_sitter_java

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_java.language()))


_READERS = {"python": _python, "java": _java}
