"""Any folder of source files: its module-level functions and its methods, delimited as in
CodeSearchNet.

A function's code begins at `def` or `async def`, in other languages at the first modifier, and runs
to its last character; its first line loses its indentation, the others keep theirs. Preceding
decorators and comments are excluded, nested functions are part of the outer one, and methods
without a body do not count. A function that is a value, as in JavaScript, counts if it has a name
or is assigned to one, or is a callback with a label or a name in front (`app.get("/", () =>
{...})`) and has no function inside that counts. Names begin with that of the class, receiver or
object that has the function. Python's functions in `if` or `try` count, which CodeSearchNet leaves
out; so do, where labels are exact, Java's constructors and the methods of constants and of values of
fields. Hidden folders are not looked at.

Top-level folders `test` and `validation`, if both exist, are the partitions and hold one folder per
project, whose name is used as the repository. Otherwise whole files are drawn for the validation
partition, or whole repositories if the folder holds several git clones; the repository of a file
outside all clones is the folder itself.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from codesyntax_dataset import safe_files
from codesyntax_dataset.errors import SourceError
from codesyntax_dataset.languages import Definition, Language, language_of
from codesyntax_dataset.safe_files import LARGEST_FILE
from codesyntax_dataset.schema import Skips, SourceFunction
from codesyntax_dataset.sources.files import (
    TOO_LARGE,
    VALIDATION_FRACTION,
    SourceFile,
    definitions,
    drawn,
    functions,
)
from codesyntax_dataset.sources.text import encodable

_VERSIONS = frozenset({".bzr", ".git", ".hg", ".svn"})

FORM = "folder of source files"
LABELS: str | None = None


def fits(source: str, language: Language) -> bool:
    return language.definitions is not None and Path(source).is_dir()


def partitioned(source: str) -> bool:
    """True if the folder `source` has partitions of its own: the folders `test` and
    `validation`."""
    return all(Path(source, partition).is_dir() for partition in ("test", "validation"))


def unit(source: str) -> str:
    """The unit by which an unpartitioned folder `source` is split: `repository` or `file`."""
    return "repository" if _clones(Path(source)) else "file"


def read(
    source: str, config: str, skips: Skips, validation_fraction: float = VALIDATION_FRACTION
) -> Iterator[SourceFunction]:
    """The functions of `config`'s language under the folder `source`, test partition first, by path
    and line.

    If the folder is not partitioned, `validation_fraction` of the files (or repositories) that have
    such functions are drawn for validation, as `sources.files.drawn` does, so the choice does not
    depend on other languages.

    Counted in `skips` are files that are not text in UTF-8 or their declared encoding, cannot be
    read, are too large, or do not parse, and functions that do not, with their line; symbolic links;
    folders that are hidden or cannot be read; and files with a suffix of the language's kin, and
    scripts without any. Raises SourceError if a partition is a link.
    """
    language = language_of(config)
    root = Path(source).resolve()
    if not partitioned(source):
        yield from drawn(_drawable(root, config, skips), language.name, validation_fraction)
        return
    for partition in ("test", "validation"):
        folder = root / partition
        if folder.is_symlink():
            raise SourceError(
                f"{folder} is a symbolic link, which a source must not have: move the folder there"
            )
        for file, parsed in _parsed(root, folder, config, skips):
            project, _, path = file.relative_to(folder).as_posix().partition("/")
            if not path:
                project, path = root.name, project
            url = file.relative_to(root).as_posix()
            yield from functions(
                SourceFile(url, project, path, url, parsed), language.name, partition
            )


def _drawable(root: Path, config: str, skips: Skips) -> Iterator[SourceFile]:
    """The files that have functions, to be drawn by file, or by repository if there are several."""
    clones = _clones(root)
    for file, parsed in _parsed(root, root, config, skips):
        url = file.relative_to(root).as_posix()
        clone = next((clone for clone in clones if url.startswith(f"{clone}/")), None)
        path = url.removeprefix(f"{clone}/") if clone else url
        yield SourceFile(clone or url, clone or root.name, path, url, parsed)


def _clones(root: Path) -> list[str]:
    """The git repositories under `root`, relative to it, if there are several and `root` is not one
    itself."""
    if (root / ".git").exists():
        return []
    clones = []
    for parent, folders, files in os.walk(root):
        if ".git" in folders or ".git" in files:
            clones.append(Path(parent).relative_to(root).as_posix())
            folders.clear()
        folders[:] = [name for name in folders if not name.startswith(".")]
    return sorted(clones) if len(clones) > 1 else []


def _parsed(
    root: Path, folder: Path, config: str, skips: Skips
) -> Iterator[tuple[Path, list[Definition]]]:
    """Yield the files under `folder` that have functions, by path, with the functions; skips are
    named from `root`."""
    language = language_of(config)

    def skip(reason: str, path: Path) -> None:
        skips.add(reason, place(path))

    def place(path: Path) -> str:
        return os.fsencode(path.relative_to(root).as_posix()).decode("utf-8", "backslashreplace")

    for file in _files(folder, language, skip):
        if file.is_symlink():
            skip("file is a symbolic link", file)
            continue
        if not encodable(str(file)):
            skip("file has a name that is not UTF-8", file)
            continue
        try:
            data = safe_files.read(file, LARGEST_FILE)
        except OSError as error:
            skip(TOO_LARGE if error.errno == errno.EFBIG else "file cannot be read", file)
            continue
        if parsed := definitions(_decoded(data, language), config, skips, place(file)):
            yield file, parsed


def _is_script(file: Path, program: str) -> bool:
    """True for a file without a suffix whose first line says that the program runs it."""
    if "." in file.name or not program:
        return False
    try:
        with safe_files.opened(file) as stream:
            first = stream.readline(256)
    except OSError:
        return False
    return first.startswith(b"#!") and program.encode() in first


def _decoded(data: bytes, language: Language) -> str | None:
    """The text of a file; None if it is none."""
    try:
        text = language.text_of(data)
        text.encode()  # a declared encoding may spell unpaired surrogates
        return text
    except (SyntaxError, LookupError, ValueError):
        return None


def _files(folder: Path, language: Language, skip: Callable[[str, Path], None]) -> Iterator[Path]:
    paths: list[str] = []  # shorter than a Path, and there may be millions

    def unreadable(error: OSError) -> None:
        skip("folder cannot be read", Path(error.filename))

    for parent, folders, files in os.walk(folder, onerror=unreadable):
        for name in folders:
            if Path(parent, name).is_symlink():
                skip("folder is a symbolic link", Path(parent, name))
            elif name.startswith(".") and name not in _VERSIONS:
                skip("hidden folder is not looked at", Path(parent, name))
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths += [os.path.join(parent, name) for name in files if name.endswith(language.suffixes)]
        for path in (Path(parent, name) for name in files):
            if path.suffix in language.kindred:
                skip(f"{path.suffix} file is not looked at", path)
            elif _is_script(path, language.program):
                skip("script without a suffix is not looked at", path)
    paths.sort(key=lambda path: path.replace(os.sep, "\0"))  # part by part
    return map(Path, paths)
