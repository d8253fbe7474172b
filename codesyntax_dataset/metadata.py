"""The files of a dataset besides its Parquet files and its card:

- `eval.yaml`, the tasks of a benchmark on the Hub (`codesyntax_dataset.tasks`);
- `SHA256SUMS`, a checksum of every other file, for `sha256sum -c SHA256SUMS`.

Both follow from the Parquet files: `codesyntax_dataset.check` generates them again and compares.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import yaml

from codesyntax_dataset.languages import CONFIGS
from codesyntax_dataset.measure import ConfigReport
from codesyntax_dataset.protocol import CARD, SPLITS, SUMS
from codesyntax_dataset.tasks import tasks

EVAL = "eval.yaml"

_EVAL_DESCRIPTION = """
Which syntactic relations of code do a model's attention heads find, what of syntax does a masked model restore, and
how often is code that parses likelier than code that does not? The value of a task is in percent (0 to 100, higher is
better). beyond-offset: the top-1 UAS, rule first, mean over relations, on the edges that the best offset of the
relation misses, each relation scored with the head that is best on the validation split, reading from dependent to
head as decoders can. held-out: the same on all edges. mask-restored: the share of sub-tokens that a masked language
model predicts exactly when all nodes of a type are masked, mean over node types. pairs-preferred: of minimal pairs,
how often the text that parses is likelier, mean over phenomena.
"""


def eval_yaml(configs: Mapping[str, ConfigReport]) -> str:
    """The text of `eval.yaml`; empty for a dataset without tasks, which has no split `test`."""
    rows = [
        {"id": task.id, "config": task.config, "split": "test"}
        for task in tasks(configs)
        if set(task.splits) <= set(configs[task.config].functions)
    ]
    if not rows:
        return ""
    benchmark = {
        "name": "CodeSyntax",
        "description": " ".join(_EVAL_DESCRIPTION.split()),
        "tasks": rows,
    }
    return yaml.safe_dump(benchmark, sort_keys=False)


def files() -> frozenset[str]:
    """Every file that a dataset may contain."""
    parquet = {f"{config}/{split}.parquet" for config in CONFIGS for split in SPLITS}
    return frozenset({CARD, EVAL, SUMS} | parquet)


def sha256sums(folder: Path) -> str:
    """The checksums of all files under `folder` except `SHA256SUMS`, one per line, sorted by
    name."""
    names = sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )
    return "".join(f"{sha256(folder / name)}  {name}\n" for name in names if name != SUMS)


def sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
