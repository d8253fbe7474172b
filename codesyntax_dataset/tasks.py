"""The tasks of the benchmark: each is one headline number of a model, as leaderboards show it.

Of attention heads, the number is the top-1 UAS in percent: rule `first`, mean over relations, on all functions of the
split `test` with at most 511 sub-tokens (Shen et al. 2022, section 4). Numbers of different protocols or directions do
not compare, so each pair of them is a separate task. So is the held-out number of the edges beyond the best offset of
their relation.

Of masked language models it is, in percent, what is left of functions of the same length when the nodes of one type are
masked and restored (T1 in section 3 of Velasco et al. 2024), as a mean over functions, then over the language's node
types: `jaccard`, the similarity of the syntax trees, or `restored`, the share of masked sub-tokens predicted exactly.
Most of a function is never masked, so the similarity is high even where nothing is restored; the share is not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from codesyntax_dataset.errors import UnknownName
from codesyntax_dataset.languages import CONFIGS, language_of
from codesyntax_dataset.protocol import (
    BEYOND_OFFSET,
    DIRECTIONS,
    HEAD_TO_DEPENDENT,
    PAPER_LENGTH,
    PROTOCOLS,
    PUBLISHED,
    SPLITS,
)

TASK_PROTOCOLS = (*PROTOCOLS, BEYOND_OFFSET)

MASK_OUTCOMES = ("jaccard", "restored")
"""What the tasks of masked language models are about."""

MASK_SETTINGS = {
    "protocol": "current",
    "rate": 1.0,
    "control": "sub-tokens",
    "draws": 20,
    "seed": 0,
    "max_length": PAPER_LENGTH,
}
"""The settings of a masking run whose numbers are those of tasks; its node types are the language's own."""


class Task(NamedTuple):
    """One headline number of attention heads: a dataset config scored by a protocol in a direction."""

    config: str
    protocol: str
    direction: str

    @property
    def id(self) -> str:
        return task_id(*self)

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits needed to compute the number."""
        return ("test",) if self.protocol == PUBLISHED else SPLITS


def task_id(config: str, protocol: str, direction: str = HEAD_TO_DEPENDENT) -> str:
    """The id in `eval.yaml` and in result files, such as `python-held-out` or `java-published-dependent-to-head`.

    Raises UnknownName for a config, protocol or direction that does not exist.
    """
    for kind, name, known in (
        ("config", config, CONFIGS),
        ("protocol", protocol, TASK_PROTOCOLS),
        ("direction", direction, DIRECTIONS),
    ):
        if name not in known:
            raise UnknownName(kind, name, known)
    return f"{config}-{protocol}" if direction == HEAD_TO_DEPENDENT else f"{config}-{protocol}-{direction}"


def tasks(configs: Iterable[str]) -> list[Task]:
    """All tasks of attention heads of these configs, in order."""
    return [
        Task(config, protocol, direction)
        for config in configs
        for direction in DIRECTIONS
        for protocol in TASK_PROTOCOLS
    ]


class MaskTask(NamedTuple):
    """One headline number of masked language models: an outcome on a dataset config, of the split `test`."""

    config: str
    outcome: str

    @property
    def id(self) -> str:
        return mask_task_id(*self)


def mask_task_id(config: str, outcome: str) -> str:
    """The id in `eval.yaml` and in result files, such as `python-mask-jaccard`.

    Raises UnknownName for an outcome that does not exist, and for a config that has no such tasks: labels do not matter
    to masks, so there is one config of each language whose node types are known.
    """
    for kind, name, known in (
        ("config with masking tasks", config, mask_configs(CONFIGS)),
        ("outcome", outcome, MASK_OUTCOMES),
    ):
        if name not in known:
            raise UnknownName(kind, name, known)
    return f"{config}-mask-{outcome}"


def mask_configs(configs: Iterable[str]) -> list[str]:
    """Those of `configs` that have masking tasks."""
    return [config for config in configs if language_of(config).name == config and language_of(config).node_types]


def mask_tasks(configs: Iterable[str]) -> list[MaskTask]:
    """All tasks of masked language models of these configs, in order."""
    return [MaskTask(config, outcome) for config in mask_configs(configs) for outcome in MASK_OUTCOMES]
