"""The tasks of the benchmark: the few headline numbers of a model that the Hub shows as
leaderboards.

Each is a number in percent, of a model on the split `test` of Python or Java, texts with at most
511 sub-tokens:

- `beyond-offset`: the top-1 UAS of attention heads that are chosen on validation, rule `first`,
  mean over relations, on the edges that the best offset of their relation misses;
- `held-out`: the same on all edges;
- `mask-restored`: the share of masked sub-tokens that a masked language model predicts exactly
  where the nodes of a type are masked (T1 in section 3 of Velasco et al. 2024), mean over
  functions, then over the language's node types;
- `pairs-preferred`: how often a language model finds the text of a minimal pair that parses likelier
  than the one that does not, mean over phenomena.

Heads are read from dependent to head, the direction that decoders allow, so that all models
compare. All other numbers, of other protocols, directions and languages, are on boards.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from codesyntax_dataset.errors import UnknownName
from codesyntax_dataset.languages import CONFIGS
from codesyntax_dataset.protocol import (
    BEYOND_OFFSET,
    DEPENDENT_TO_HEAD,
    DIRECTIONS,
    HEAD_TO_DEPENDENT,
    HELD_OUT,
    PAPER_LENGTH,
    SPLITS,
)

CONFIGS_OF_TASKS = ("python", "java")

PAIRS_OF_TASKS = ("python_pairs", "java_pairs")

TASK_PROTOCOLS = (BEYOND_OFFSET, HELD_OUT)

DIRECTION = DEPENDENT_TO_HEAD

RULE, K = "first", "1"
"""The rule and k of the top-k UAS that a task takes."""

RESTORED = "restored"
"""The outcome of masked language models that is a task: similarity of trees is high where nothing
is restored."""

MASK_SETTINGS = {
    "protocol": "current",
    "rate": 1.0,
    "control": "sub-tokens",
    "draws": 20,
    "seed": 0,
    "max_length": PAPER_LENGTH,
}
"""The settings of a masking run whose numbers are those of tasks; its node types are the language's
own."""


class Task(NamedTuple):
    """A headline number: its `id` in `eval.yaml` and in result files, such as
    `python-held-out-dependent-to-head`, its dataset config, and the `splits` needed to compute
    it."""

    id: str
    config: str
    splits: tuple[str, ...]


def tasks(configs: Iterable[str]) -> list[Task]:
    """The tasks of these configs, in order."""
    names = list(configs)
    with_tasks = [config for config in names if config in CONFIGS_OF_TASKS]
    of_heads = [
        Task(task_id(config, protocol, DIRECTION), config, SPLITS)
        for config in with_tasks
        for protocol in TASK_PROTOCOLS
    ]
    of_masks = [Task(mask_task_id(config), config, ("test",)) for config in with_tasks]
    with_pairs = [config for config in names if config in PAIRS_OF_TASKS]
    return of_heads + of_masks + [Task(pairs_task_id(name), name, SPLITS) for name in with_pairs]


def task_id(config: str, protocol: str, direction: str) -> str:
    """The name of a headline number of attention heads, be it a task or not, such as
    `java-beyond-offset`.

    Raises UnknownName for a config, protocol or direction that does not exist.
    """
    for kind, name, known in (
        ("config", config, CONFIGS),
        ("protocol", protocol, TASK_PROTOCOLS),
        ("direction", direction, DIRECTIONS),
    ):
        if name not in known:
            raise UnknownName(kind, name, known)
    return (
        f"{config}-{protocol}"
        if direction == HEAD_TO_DEPENDENT
        else f"{config}-{protocol}-{direction}"
    )


def mask_task_id(config: str) -> str:
    """The name of the headline number of masked language models, be it a task or not, such as
    `python-mask-restored`.

    Raises UnknownName for a config that does not exist.
    """
    if config not in CONFIGS:
        raise UnknownName("config", config, CONFIGS)
    return f"{config}-mask-{RESTORED}"


def pairs_task_id(config: str) -> str:
    """The name of the headline number of language models on minimal pairs, be it a task or not, such
    as `python-pairs-preferred`.

    Raises UnknownName for a config that does not exist.
    """
    if config not in CONFIGS:
        raise UnknownName("config", config, CONFIGS)
    return f"{config.replace('_', '-')}-preferred"
