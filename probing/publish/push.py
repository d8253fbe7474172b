"""Publish the dataset and the metrics: everything is checked first, then uploaded in one commit or
not at all.

With a dataset go tasks of lm-eval (https://github.com/EleutherAI/lm-evaluation-harness) for its
minimal pairs. A task has the two texts of a pair as choices, after an empty context. lm-eval puts
the beginning-of-text token, or else the end-of-text token, in place of an empty context, as
`codesyntax prefer` does, so that its `acc` is the accuracy over all pairs by whole texts, if none
is too long. Of two texts that tie it takes the first, the good one.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import yaml

import codesyntax_metric
from codesyntax_dataset.arguments import StrPath, checked
from codesyntax_dataset.errors import HubError
from codesyntax_dataset.languages import CONFIGS, variant_of
from probing.publish.client import Upload, check_repo, client, plain_errors

METRICS = {
    "codesyntax_metric": frozenset(
        {"README.md", "app.py", "codesyntax_metric.py", "requirements.txt", "topk_uas.py"}
    ),
    "ast_similarity": frozenset(
        {"README.md", "app.py", "ast_similarity.py", "requirements.txt", "similarity.py"}
    ),
}
"""Name -> the files of a metric's Space: `evaluate.load` uses the script and its helper, people the
page."""


@dataclass(frozen=True)
class Push(Upload):
    """A planned upload to the `kind` (dataset or space) `repo`.

    `ours`: all paths that any push may have published there; those that are no longer in `files`
    are deleted.
    """

    ours: frozenset[str]

    def text(self) -> str:
        """The files with their sizes in bytes, and the total."""
        sizes = {name: len(content) for name, content in self.files.items()}
        lines = [f"{size:>13,}  {name}" for name, size in sizes.items()]
        total = sum(sizes.values())
        lines.append(f"{total:>13,}  bytes in {len(sizes)} files for the {self.kind} {self.repo}")
        return "\n".join(lines)

    def send(self, *, private: bool = False, create_pr: bool = False) -> str:
        """Publish in one commit, or open a pull request with it, and return the address of either.

        The repository is created if it does not exist, `private` or public. Files in it that no
        push published are kept. Raises HubError if the Hub cannot be reached or refuses, and if an
        existing repository is public but `private` was requested.
        """
        with plain_errors(self.repo):
            api = client()
            sdk = "gradio" if self.kind == "space" else None
            api.create_repo(
                self.repo,
                repo_type=self.kind,
                private=private or None,
                exist_ok=True,
                space_sdk=sdk,
            )
            info = api.repo_info(self.repo, repo_type=self.kind)
            if private and not info.private:
                raise HubError(
                    f"{self.repo} already exists and is public: make it private on its page, or leave out --private"
                )
            stale = {
                file.rfilename for file in getattr(info, "siblings", None) or ()
            } & self.ours - set(self.files)
            commit = self.commit(api, "Publish with codesyntax push", stale, create_pr=create_pr)
            return commit.pr_url or commit.commit_url


@checked
def push_dataset(folder: StrPath, repo: str) -> Push:
    """Plan the upload of a dataset, with tasks of lm-eval for its minimal pairs.

    Args:
        folder: what `codesyntax build` wrote.
        repo: the dataset repository, USER/NAME.

    Raises:
        DatasetError: for a folder that `codesyntax_dataset.check` rejects.
        HubError: for an invalid name.
    """
    from codesyntax_dataset import metadata
    from codesyntax_dataset.check import published_files

    check_repo(repo)
    files = published_files(folder, repo)
    return Push(
        repo, "dataset", {**files, **lm_eval_tasks(repo, files)}, metadata.files() | lm_eval_files()
    )


@checked
def push_metric(repo: str) -> Push:
    """Plan the upload of an installed metric, for `evaluate.load(repo)`.

    Args:
        repo: the Space, USER/NAME; its name says which metric, because `evaluate` looks for a
        script of this name.

    Raises:
        HubError: for other names.
    """
    check_repo(repo)
    name = repo.split("/")[1]
    if name not in METRICS:
        spaces = " or ".join(f"USER/{known}" for known in METRICS)
        raise HubError(
            f"{repo} cannot hold a metric: `evaluate.load` finds it only in a Space of its name, {spaces}"
        )
    folder = Path(codesyntax_metric.__file__).parent
    if name != codesyntax_metric.__name__:
        folder /= name
    return Push(
        repo,
        "space",
        {file: (folder / file).read_bytes() for file in sorted(METRICS[name])},
        METRICS[name],
    )


PACKAGES = ("codesyntax_dataset", "codesyntax_metric", "probing")
"""What a Space of the app runs: it has no release to install."""

_NOT_SENT = (".safetensors", ".pyc")
"""Of their files: weights, and what Python makes itself."""

_SPACE_README = """---
title: CodeSyntax
sdk: gradio
sdk_version: {gradio}
app_file: app.py
license: apache-2.0
---
What the attention heads of {model} find in your code. Made by `codesyntax push space`.
"""

_PACKAGE_METADATA = "Metadata-Version: 2.1\nName: codesyntax\nVersion: {version}\n"

_SPACE_APP = """from probing.report.explore import app

if __name__ == "__main__":
    app({model!r}).launch()
"""


@checked
def push_space(repo: str, model: str) -> Push:
    """Plan the upload of `codesyntax explore` on a model as a Space.

    Args:
        repo: the Space, USER/NAME.
        model: what the app shows: a Hub id or an embedded model.

    Raises:
        HubError: for an invalid name, or a model in a folder, which a Space does not have.
    """
    from importlib.metadata import requires, version

    check_repo(repo)
    if Path(model).exists():
        raise HubError(f"{model} is a folder here: push the model to the Hub, and give its id")
    needed = [line for line in requires("codesyntax") or () if "extra ==" not in line]
    extras = ("demo", "space")
    needed += [
        line.partition(";")[0].strip()
        for line in requires("codesyntax") or ()
        if any(f'extra == "{extra}"' in line for extra in extras)
    ]
    files = {
        "README.md": _SPACE_README.format(gradio=GRADIO, model=model).encode(),
        "app.py": _SPACE_APP.format(model=model).encode(),
        # datasets that are built say the version
        f"codesyntax-{version('codesyntax')}.dist-info/METADATA": _PACKAGE_METADATA.format(
            version=version("codesyntax")
        ).encode(),
        "requirements.txt": "".join(f"{line}\n" for line in sorted(needed)).encode(),
    }
    root = Path(codesyntax_metric.__file__).parents[1]
    for package in PACKAGES:
        for file in sorted((root / package).rglob("*")):
            if file.is_file() and file.suffix not in _NOT_SENT:
                files[file.relative_to(root).as_posix()] = file.read_bytes()
    return Push(repo, "space", files, frozenset(files))


GRADIO = "6.31.0"
"""The version that a Space asks for, as in `constraints.txt`."""


def lm_eval_tasks(repo: str, files: Collection[str]) -> dict[str, bytes]:
    """Path -> content of the task of each config of minimal pairs that has a split `test` among the
    files of a dataset, which is published as `repo`."""
    configs = [config for config in _for_pairs() if f"{config}/test.parquet" in files]
    return {_path(config): _task(repo, config) for config in configs}


def lm_eval_files() -> frozenset[str]:
    """The path of every task that a dataset may have."""
    return frozenset(map(_path, _for_pairs()))


def _for_pairs() -> list[str]:
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
