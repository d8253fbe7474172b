"""Tasks of lm-eval (https://github.com/EleutherAI/lm-evaluation-harness), which evaluates a dataset's minimal pairs.

A task has the two texts of a pair as choices, after an empty context. lm-eval puts the beginning-of-text token, or else
the end-of-text token, in place of an empty context, as `codesyntax prefer` does, so that its `acc` is the accuracy over
all pairs by whole texts, if none is too long. Of two texts that tie it takes the first, the good one.
"""

from __future__ import annotations

from collections.abc import Iterable

import yaml

from codesyntax_dataset.languages import CONFIGS, variant_of


def tasks(repo: str, files: Iterable[str]) -> dict[str, bytes]:
    """Path -> content of the task of each config of minimal pairs that has a split `test` among the files of a dataset,
    which is published as `repo`."""
    configs = {name.removesuffix("/test.parquet") for name in files if name.endswith("/test.parquet")}
    return {_path(config): _task(repo, config) for config in _of_pairs() if config in configs}


def files() -> frozenset[str]:
    """The path of every task that a dataset may have."""
    return frozenset(map(_path, _of_pairs()))


def _of_pairs() -> list[str]:
    return [config for config in sorted(CONFIGS) if variant_of(config).pairs]


def _path(config: str) -> str:
    return f"lm_eval/codesyntax_{config}.yaml"


def _task(repo: str, config: str) -> bytes:
    task = {
        "task": f"codesyntax_{config}",
        "dataset_path": repo,
        "dataset_name": config,
        "test_split": "test",
        "output_type": "multiple_choice",
        "doc_to_text": "",
        "doc_to_choice": "{{[good, bad]}}",
        "doc_to_target": 0,
        "target_delimiter": "",  # by default a space, which would stand before the text
        "num_fewshot": 0,
        "metric_list": [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}],
        "metadata": {"version": 1},
    }
    return yaml.safe_dump(task, sort_keys=False).encode()
