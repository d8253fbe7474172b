"""The tasks of the benchmark: each is one headline number of a model, as leaderboards show it.

The number is the top-1 UAS in percent: rule `first`, mean over relations, on all functions of the split `test` with at
most 511 sub-tokens (Shen et al. 2022, section 4). Numbers of different protocols or directions do not compare, so each
pair of them is a separate task.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from codesyntax_dataset.errors import UnknownName
from codesyntax_dataset.languages import CONFIGS
from codesyntax_dataset.protocol import DIRECTIONS, HEAD_TO_DEPENDENT, HELD_OUT, PROTOCOLS, SPLITS


class Task(NamedTuple):
    """One headline number: a dataset config scored by a protocol in a direction."""

    config: str
    protocol: str
    direction: str

    @property
    def id(self) -> str:
        return task_id(*self)

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits needed to compute the number."""
        return SPLITS if self.protocol == HELD_OUT else ("test",)


def task_id(config: str, protocol: str, direction: str = HEAD_TO_DEPENDENT) -> str:
    """The id in `eval.yaml` and in result files, such as `python-held-out` or `java-published-dependent-to-head`.

    Raises UnknownName for a config, protocol or direction that does not exist.
    """
    for kind, name, known in (
        ("config", config, CONFIGS),
        ("protocol", protocol, PROTOCOLS),
        ("direction", direction, DIRECTIONS),
    ):
        if name not in known:
            raise UnknownName(kind, name, known)
    return f"{config}-{protocol}" if direction == HEAD_TO_DEPENDENT else f"{config}-{protocol}-{direction}"


def tasks(configs: Iterable[str]) -> list[Task]:
    """All tasks of these configs, in order."""
    return [
        Task(config, protocol, direction) for config in configs for direction in DIRECTIONS for protocol in PROTOCOLS
    ]
