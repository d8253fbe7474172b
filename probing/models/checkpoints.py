"""The checkpoints of a training run: revisions of one model, in the order of their steps; needs no torch."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from codesyntax_dataset import safe_files
from codesyntax_dataset.errors import ArgumentError, ModelError
from probing.models.location import EMBEDDED_MODELS, REQUEST, checkpoints_in, loading, locate

_LARGEST_LIST = 1 << 20  # bytes


class Checkpoint(NamedTuple):
    """A revision of a model, None for its newest, and its step in training, None if nothing says it."""

    revision: str | None
    step: int | None


def step_of(revision: str | None) -> int | None:
    """The step in the name of a revision, such as `step-000128`, `step1000` or `checkpoint-500`; None without one."""
    found = re.search(r"(?:step|checkpoint)[-_]?(\d{1,15})(?!\d)", revision or "")
    return int(found[1]) if found else None


def checkpoints(model: str, revisions: Sequence[str] = ()) -> list[Checkpoint]:
    """The checkpoints that these revisions of a model name, each once; without revisions its newest.

    A folder of checkpoints that is not a model itself stands for all of them. Steps are read from the names, and if one
    has none, or two have the same, a step is the place in the order given, from 1.

    Raises ModelError for a revision that does not exist, and for two that are one commit.
    """
    folder = Path(model)
    names = list(dict.fromkeys(revisions))
    if names and model in EMBEDDED_MODELS:
        raise ModelError(f"{model} comes as a package and has no revision {names[0]!r}: leave it out")
    if not names and folder.is_dir() and not (folder / "config.json").exists():
        names = sorted(checkpoints_in(folder), key=lambda name: (step_of(name) or 0, name))
    if len(names) < 2:
        name = names[0] if names else None
        return [Checkpoint(name, step_of(name))]
    commits: dict[str, str] = {}
    with loading(model):  # a wrong name is told before hours of probing
        for name in names:
            commit = locate(model, name).commit
            if commit and (same := commits.setdefault(commit, name)) != name:
                raise ModelError(f"its revisions {same} and {name} are one commit, {commit[:12]}: give one of them")
    steps = [step_of(name) for name in names]
    if None in steps or len(set(steps)) < len(steps):
        steps = list(range(1, len(names) + 1))
    return [Checkpoint(name, step) for name, step in zip(names, steps)]


def trainings(models: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Each model of a list once, with the revisions that NAME@REVISION gives it; without one, it is there by itself.

    A folder whose name has an `@`, and a model on the Hub at `refs/pr/N`, are the model of that name.
    """
    found: dict[tuple[str, bool], dict[str, None]] = {}
    for text in models:
        name, _, revision = text.rpartition("@")
        if not name or not revision or revision.startswith(REQUEST) or os.path.isdir(text):
            name, revision = text, ""
        named = found.setdefault((name, bool(revision)), {})
        if revision:
            named[revision] = None
    return [(name, list(revisions)) for (name, _), revisions in found.items()]


def read_models(file: str | os.PathLike) -> list[str]:
    """The models in a text file: one a line, without blank lines, and what stands behind a `#` after a blank.

    Raises ArgumentError for a file that cannot be read, or names no model.
    """
    try:
        text = safe_files.read(file, _LARGEST_LIST).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"cannot read the models in {file}: {error}; expected a line of UTF-8 for each") from error
    lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in text.splitlines())
    if not (models := [line for line in lines if line]):
        raise ArgumentError(f"{file} names no model: expected one per line, such as USER/MODEL or USER/MODEL@REVISION")
    return models
