"""Any folder of source files: its module-level functions and its methods, as CodeSearchNet cuts them out.

A function's code begins at `def` or `async def`, in Java at the first modifier, and runs to its last character; its
first line loses its indentation, the others keep theirs. Decorators and comments before it are left out, functions
within functions are part of the outer one, Java methods without a body are none. Hidden folders are passed over.

Folders `test` and `validation` at the top, if both are there, are the partitions and hold one folder per project, whose
name stands for the repository. Otherwise whole files are drawn for the validation partition, or whole repositories
where the folder holds several git clones; the repository of a file in none of them is the folder itself.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator
from pathlib import Path

from codesyntax_dataset.languages import Definition, Language, language_of
from codesyntax_dataset.schema import Skips, SourceFunction
from codesyntax_dataset.sources.text import encodable

FORM = "folder of source files"

VALIDATION_FRACTION = 0.2
"""Of the files or repositories of a folder, unless told."""


def fits(source: str) -> bool:
    return Path(source).is_dir()


def partitioned(source: str) -> bool:
    """Whether the folder `source` comes with its partitions: the folders `test` and `validation`."""
    return all(Path(source, partition).is_dir() for partition in ("test", "validation"))


def unit(source: str) -> str:
    """What falls into one partition as a whole, where the folder `source` comes without: `repository` or `file`."""
    return "repository" if _clones(Path(source)) else "file"


def read(
    source: str, config: str, skips: Skips, validation_fraction: float = VALIDATION_FRACTION
) -> Iterator[SourceFunction]:
    """The functions of `config`'s language under the folder `source`, test partition first, by path and line.

    Where the folder is not partitioned, `validation_fraction` of the files (or repositories) that have such functions
    are for validation, to the nearest whole number; of two and more at least one, and at least one stays for test. They
    are those whose paths have the least SHA-256, so neither their order nor other languages play a part.

    What gives no functions is counted in `skips`: a file that is no text in UTF-8 or in the encoding that it declares,
    that cannot be read, or that does not parse; a symbolic link; a folder that cannot be read.
    """
    language = language_of(config)
    root = Path(source).resolve()
    if partitioned(source):
        for partition in ("test", "validation"):
            folder = root / partition
            for file, functions in _parsed(root, folder, language, skips):
                project, _, path = file.relative_to(folder).as_posix().partition("/")
                if not path:
                    project, path = root.name, project
                yield from _rows(functions, language.name, project, path, file.relative_to(root).as_posix(), partition)
        return
    clones = _clones(root)
    found = []
    for file, functions in _parsed(root, root, language, skips):
        path = file.relative_to(root).as_posix()
        clone = next((clone for clone in clones if path.startswith(f"{clone}/")), None)
        shown = path.removeprefix(f"{clone}/") if clone else path
        found.append((clone or path, clone or root.name, shown, path, functions))
    drawn = _drawn({entry[0] for entry in found}, validation_fraction)
    for partition in ("test", "validation"):
        for whole, project, path, url, functions in found:
            if (whole in drawn) == (partition == "validation"):
                yield from _rows(functions, language.name, project, path, url, partition)


def _rows(functions, language: str, project: str, path: str, url: str, partition: str) -> Iterator[SourceFunction]:
    for name, first, last, code in functions:
        yield SourceFunction(language, code, project, path, name, f"{url}#L{first}-L{last}", partition)


def _drawn(units: Collection[str], fraction: float) -> set[str]:
    """The files or repositories that are for validation."""
    number = min(max(round(fraction * len(units)), 1), len(units) - 1) if fraction and units else 0
    return set(sorted(units, key=lambda unit: hashlib.sha256(unit.encode()).digest())[:number])


def _clones(root: Path) -> list[str]:
    """The git repositories under `root`, relative to it, where there are several and it is none itself."""
    if (root / ".git").exists():
        return []
    clones = []
    for parent, folders, files in os.walk(root):
        if ".git" in folders or ".git" in files:
            clones.append(Path(parent).relative_to(root).as_posix())
            folders.clear()
        folders[:] = [name for name in folders if not name.startswith(".")]
    return sorted(clones) if len(clones) > 1 else []


def _parsed(root: Path, folder: Path, language: Language, skips: Skips) -> Iterator[tuple[Path, list[Definition]]]:
    """The files under `folder` that have functions, by path, with these; `root` is what others are named from."""

    def skip(reason: str, path: Path) -> None:
        skips.add(reason, os.fsencode(path.relative_to(root).as_posix()).decode("utf-8", "backslashreplace"))

    for file in _files(folder, language.suffixes, skip):
        if file.is_symlink():
            skip("file is a symbolic link", file)
            continue
        if not encodable(str(file)):
            skip("file has a name that is not UTF-8", file)
            continue
        try:
            if not file.is_file():  # such as a pipe, at which reading would wait for ever
                raise OSError
            data = file.read_bytes()
        except OSError:
            skip("file cannot be read", file)
            continue
        try:
            text = language.decode(data)
            text.encode()  # a declared encoding may spell halves of surrogate pairs
        except (SyntaxError, LookupError, ValueError):
            skip("file is no text in UTF-8 or the encoding that it declares", file)
            continue
        try:
            functions = list(language.definitions(text))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            skip("file does not parse", file)
            continue
        if functions:
            yield file, functions


def _files(folder: Path, suffixes: tuple[str, ...], skip) -> list[Path]:
    found = []

    def unreadable(error: OSError) -> None:
        skip("folder cannot be read", Path(error.filename))

    for parent, folders, files in os.walk(folder, onerror=unreadable):
        for name in folders:
            if Path(parent, name).is_symlink():
                skip("folder is a symbolic link", Path(parent, name))
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(parent, name) for name in files if name.endswith(suffixes)]
    return sorted(found, key=lambda file: file.parts)
