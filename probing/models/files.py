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

_FILES = (
    "config.json tokenizer.json tokenizer_config.json special_tokens_map.json added_tokens.json vocab.txt vocab.json "
    "merges.txt spiece.model sentencepiece.bpe.model tokenizer.model spm.model sentencepiece.model adapter_config.json"
).split()


def files(folder: Path) -> list[str]:
    """The files of a local model that transformers may load, as paths in its folder: configuration,
    tokenizer, weights.

    Weights are files in safetensors, including shards in sub-folders that an index or the
    configuration names. Raises ModelError for a file outside the folder, or one that is not a
    regular file.
    """
    names = {*_FILES}
    for pattern in ("tokenizer.*.json", "*.safetensors", "*.safetensors.index.json"):
        names.update(file.name for file in folder.glob(pattern))
    named = json_object(folder / "config.json").get("transformers_weights")
    if named is not None:
        names.add(_inside(named, "config.json"))
    for index in [name for name in names if name.endswith(".index.json")]:
        shards = json_object(folder / index).get("weight_map")
        if isinstance(shards, dict):
            names.update(_inside(shard, index) for shard in shards.values())
    there = sorted(name for name in names if (folder / name).exists())
    for name in there:
        if not (folder / name).is_file():
            raise ModelError(f"its {name} is a folder, pipe or device, expected a regular file")
    return there


def json_object(file: Path) -> dict[str, Any]:
    """The JSON object in a file; empty if it is not readable, because transformers will report
    that."""
    try:
        content = json.loads(safe_files.read(file, _LARGEST_JSON))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _inside(name: Any, source: str) -> str:
    path = Path(str(name))
    if path.is_absolute() or ".." in path.parts:
        raise ModelError(
            f"its {source} names the weights {name!r}, which are not in its folder: copy them there"
        )
    return path.as_posix()


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
        _add(digest, folder / name)
    return digest.hexdigest()


def _file_state(file: Path) -> tuple[int, ...]:
    """The size of a file, and what changes when it is replaced or written to."""
    status = file.stat()
    return status.st_size, status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def sha256(*paths: Path) -> str:
    """The SHA-256 of the concatenated bytes of some files."""
    digest = hashlib.sha256()
    for path in paths:
        _add(digest, path)
    return digest.hexdigest()


def _add(digest: hashlib._Hash, path: Path) -> None:
    with path.open("rb") as file:
        hashlib.file_digest(file, lambda: digest)  # continues the digest
