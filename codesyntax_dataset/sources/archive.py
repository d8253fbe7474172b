"""Zip archives, read in memory: nothing is extracted to disk, and only members with expected names
are opened."""

from __future__ import annotations

import contextlib
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from codesyntax_dataset.errors import SourceError
from codesyntax_dataset.safe_files import opened

ERRORS = (
    EOFError,
    NotImplementedError,
    OSError,
    RuntimeError,
    UnicodeDecodeError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
"""Errors of reading compressed data: truncated, unknown method, damaged, encrypted."""


@contextlib.contextmanager
def open_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    """The archive at `path`; raises SourceError if it is not a zip archive."""
    with contextlib.ExitStack() as stack:
        try:
            archive = stack.enter_context(zipfile.ZipFile(stack.enter_context(opened(path))))
        except ERRORS as error:
            raise SourceError(f"{path}: not a zip archive ({error})") from error
        yield archive
