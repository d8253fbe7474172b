"""The files of a local model, and their digests."""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path
from typing import Any

from codesyntax_dataset import safe_files
from codesyntax_dataset.errors import ModelError

HEAD_MARK = "+"
"""In the revision of a local language model, between the digest of its body and that of its
head."""

_LARGEST_JSON = 1 << 27  # bytes, of a configuration or index


def files(folder: Path) -> list[str]:
    """The files of a local model: those directly in its folder, and the weights that an index or
    the configuration names, as paths in the folder.

    Raises ModelError for weights outside the folder, and for a pipe or device.
    """
    names = {path.name for path in folder.iterdir() if not path.is_dir()}
    named = {"config.json": [json_object(folder / "config.json").get("transformers_weights")]}
    for index in folder.glob("*.safetensors.index.json"):
        shards = json_object(index).get("weight_map")
        named[index.name] = list(shards.values()) if isinstance(shards, dict) else []
    for source, weights in named.items():
        for name in weights:
            if name is None:
                continue
            path = Path(str(name))
            if path.is_absolute() or ".." in path.parts:
                raise ModelError(
                    f"its {source} names the weights {name!r}, which are not in its folder: copy them there"
                )
            names.add(path.as_posix())
    there = sorted(name for name in names if (folder / name).exists())
    for name in there:
        check_whole(folder / name)
    return there


_POINTER = b"version https://git-lfs"
_LARGEST_POINTER = 1024  # bytes, by the specification of Git LFS


def check_whole(file: Path) -> None:
    """Raise ModelError for what is no regular file, a pointer of Git LFS, or weights without a
    byte."""
    if not file.is_file():
        raise ModelError(f"its {file.name} is a folder, pipe or device, expected a regular file")
    size = file.stat().st_size
    if size == 0 and file.suffix in (".safetensors", ".gguf"):
        raise ModelError(f"its {file.name} is empty: download it again")
    if size <= _LARGEST_POINTER and file.read_bytes().startswith(_POINTER):
        raise ModelError(
            f"its {file.name} is a pointer of Git LFS, not the file: run `git lfs pull` there, or download it"
        )


def json_object(file: Path) -> dict[str, Any]:
    """The JSON object in a file; empty if it is not readable, because transformers will report
    that."""
    try:
        content = json.loads(safe_files.read(file, _LARGEST_JSON))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def digest_of_files(folder: Path) -> str:
    """SHA-256 over the names, sizes and bytes of a model's files, so that different models
    differ."""
    return _digest_of_states(
        folder, tuple((name, _file_state(folder / name)) for name in files(folder))
    )


@functools.lru_cache(maxsize=64)
def _digest_of_states(folder: Path, states: tuple[tuple[str, tuple[int, ...]], ...]) -> str:
    """The digest of files in these states: files that nobody has written to since are read once."""
    digest = hashlib.sha256()
    for name, (size, *_) in states:
        digest.update(f"{len(name.encode())} {name} {size} ".encode())
        _add_to(digest, folder / name)
    return digest.hexdigest()


def _file_state(file: Path) -> tuple[int, ...]:
    """The size of a file, and what changes when it is replaced or written to."""
    status = file.stat()
    return status.st_size, status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def sha256(*paths: Path) -> str:
    """The SHA-256 of the concatenated bytes of some files."""
    digest = hashlib.sha256()
    for path in paths:
        _add_to(digest, path)
    return digest.hexdigest()


def _add_to(digest: hashlib._Hash, path: Path) -> None:
    with path.open("rb") as file:
        hashlib.file_digest(file, lambda: digest)  # continues the digest
