"""The checkpoints of a training run: revisions of one model, in the order of their steps; needs no torch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from codesyntax_dataset.errors import ModelError
from probing.models.location import EMBEDDED_MODELS, checkpoints_in, loading, locate


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

    A folder that holds checkpoints and is no model itself stands for all of them. Steps are read from the names, and if
    one has none, or two have the same, a step is the place in the order given, from 1.

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
