"""The cache folder: files kept between runs, found again by a digest of everything that they depend
on.

It is the folder `codesyntax` of the Hugging Face cache (`$HF_HOME`), or the one that
CODESYNTAX_CACHE names; if that is empty, nothing is kept or read. It can be deleted at any time.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import importlib.metadata
import json
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from huggingface_hub.constants import HF_HOME

from codesyntax_dataset.atomic import temporary_folder
from codesyntax_dataset.errors import LedgerError
from probing.models.files import sha256

logger = logging.getLogger(__name__)

T = TypeVar("T")

_CODE_FOLDERS = [
    Path(*spec.submodule_search_locations or ())
    for name in ("codesyntax_dataset", "codesyntax_metric", "probing")
    if (spec := find_spec(name))  # nothing is imported
]

VERSIONS = ("codesyntax", "torch", "transformers", "tokenizers", "datasets", "numpy")
"""The packages on which ranks may depend."""


def folder() -> Path | None:
    """The cache folder; None if nothing is kept."""
    name = os.environ.get("CODESYNTAX_CACHE", os.path.join(HF_HOME, "codesyntax"))
    return Path(name) if name else None


def private(folder: Path) -> Path:
    """Create the folder, readable by its owner only, if it does not exist: who can write to it can
    forge results."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def key(made_of: Any) -> str:
    """A digest of `made_of` (any JSON), the versions of all libraries that we require, and our
    code."""
    text = json.dumps([made_of, versions(), _required(), _code_digest()], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def kept(folder: Path, key: str, end: str, read: Callable[[Path], T]) -> T | None:
    """The result of `read` on the file of this key, `<key>-<SHA-256 of the file>` and `end`; None if
    there is none, or only damaged ones."""
    for file in sorted(folder.glob(f"{key}-*{end}")):
        try:
            if file.name == f"{key}-{sha256(file)}{end}":
                result = read(file)
                logger.info("the cache %s has what was made of the very same", folder)
                return result
        except (OSError, LedgerError):
            pass
        logger.warning("%s is damaged: it is made again", file)
    return None


def keep(folder: Path, key: str, end: str, write: Callable[[Path], object]) -> None:
    """Keep the file that `write` writes for `kept`; failing to do so is not an error."""
    try:
        with temporary_folder(private(folder)) as work:
            file = work / f"run{end}"
            write(file)
            os.replace(file, folder / f"{key}-{sha256(file)}{end}")
    except (OSError, LedgerError) as error:
        logger.warning("cannot cache the run: %s", error)


def made_of(
    what: Any,
    end: str,
    make: Callable[[], T],
    write: Callable[[Path, T], object],
    read: Callable[[Path], T],
) -> T:
    """The result of `make`, now or earlier, of which `what` (any JSON) describes all that it depends
    on: kept as a file that `write` writes and `read` reads."""
    named, cache = key(what), folder()
    known = kept(cache, named, end, read) if cache else None
    if known is not None:
        return known
    made = make()
    if cache:
        keep(cache, named, end, lambda file: write(file, made))
    return made


def folder_made_of(made_of: Any, end: str, make: Callable[[Path], None]) -> Path:
    """The folder that `make` filled with a model, now or earlier, from what `made_of` describes.

    `end`: of its name. If nothing can be kept, it is removed when the process ends.
    """
    parent = place()
    target = parent / f"{key(made_of)}{end}"
    if not target.is_dir():
        with temporary_folder(parent) as folder_of_work:
            work = folder_of_work / "model"
            work.mkdir()
            make(work)
            try:
                work.rename(target)
            except OSError:
                if not target.is_dir():  # else another process has made it
                    raise
    return target


def place() -> Path:
    """The cache folder or, if nothing can be kept, one that is removed when the process ends."""
    cache = folder()
    try:
        return private(cache) if cache else _until_the_end()
    except OSError as error:
        logger.warning("cannot write to the cache: %s", error)
        return _until_the_end()


def _until_the_end() -> Path:
    """A new folder, removed when the process ends."""
    scratch = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    return scratch


def versions() -> dict[str, str]:
    """The installed versions of VERSIONS."""
    return {name: _version(name) for name in VERSIONS}


_version = functools.cache(importlib.metadata.version)  # reads files


@functools.cache
def _required() -> dict[str, str]:
    """The installed versions of what we require: grammars and optimisers, too."""
    versions = {}
    for requirement in importlib.metadata.requires("codesyntax") or []:
        name = re.split(r"[^\w.-]", requirement)[0]
        if "extra" not in requirement:
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                versions[name] = _version(name)
    return versions


@functools.cache
def _code_digest() -> str:
    """A digest of the modules that ranks depend on, because code changes between versions."""
    return sha256(*(file for folder in _CODE_FOLDERS for file in sorted(folder.rglob("*.py"))))
