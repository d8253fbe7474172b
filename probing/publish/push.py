"""Publish the dataset and the metric: everything is checked first, and goes to the Hub in one commit or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import CommitOperationAdd, CommitOperationDelete

import codesyntax_metric
from codesyntax_dataset.arguments import checked
from codesyntax_dataset.errors import HubError
from probing.publish.client import check_repo, client, patiently, plain_errors

METRIC_FILES = frozenset({"README.md", "app.py", "codesyntax_metric.py", "requirements.txt", "topk_uas.py"})
"""What makes the metric's Space: `evaluate.load` takes the script and its helper, the page is for people."""


@dataclass(frozen=True)
class Push:
    """What is to be published: `files` (path in the repository -> file) in the `kind` (dataset or space) `repo`.

    `ours` are all paths that we may ever have published there; those that are not in `files` any more are deleted.
    """

    repo: str
    kind: str
    files: Mapping[str, Path]
    ours: frozenset[str]

    def text(self) -> str:
        """The files with their sizes in bytes, and the sum."""
        sizes = {name: file.stat().st_size for name, file in self.files.items()}
        lines = [f"{size:>13,}  {name}" for name, size in sizes.items()]
        return "\n".join(
            [*lines, f"{sum(sizes.values()):>13,}  bytes in {len(sizes)} files for the {self.kind} {self.repo}"]
        )

    def send(self, *, private: bool = False, create_pr: bool = False) -> str:
        """Publish in one commit, or open a pull request with it, and return the address of either.

        The repository is created where there is none, as `private` or for all. Files there that are not ours stay.
        Raises HubError where the Hub cannot be reached or refuses, and where an existing repository is not `private`
        as asked.
        """
        with plain_errors(self.repo):
            api, where = client(), {"repo_id": self.repo, "repo_type": self.kind}
            sdk = {"space_sdk": "gradio"} if self.kind == "space" else {}
            patiently(lambda: api.create_repo(**where, private=private or None, exist_ok=True, **sdk))
            there = patiently(lambda: api.repo_info(**where))
            if private and not there.private:
                raise HubError(
                    f"{self.repo} is already there for all to see: make it private on its page, or leave out --private"
                )
            stale = {file.rfilename for file in there.siblings or ()} & self.ours - set(self.files)
            operations = [
                *(CommitOperationAdd(name, file) for name, file in self.files.items()),
                *(CommitOperationDelete(name) for name in sorted(stale)),
            ]
            message = "Publish with codesyntax push"
            commit = patiently(
                lambda: api.create_commit(**where, operations=operations, commit_message=message, create_pr=create_pr)
            )
            return commit.pr_url or commit.commit_url


@checked
def push_dataset(folder: str | os.PathLike[str], repo: str) -> Push:
    """The push of a dataset that `codesyntax build` wrote to the dataset repository `repo` (USER/NAME).

    Raises DatasetError for a folder that `codesyntax_dataset.check.check_folder` refuses, HubError for an impossible
    name.
    """
    from codesyntax_dataset import metadata
    from codesyntax_dataset.check import check_folder

    check_repo(repo)
    check_folder(folder)
    files = {path.relative_to(folder).as_posix(): path for path in sorted(Path(folder).rglob("*")) if path.is_file()}
    return Push(repo, "dataset", files, metadata.files())


@checked
def push_metric(repo: str) -> Push:
    """The push of the installed metric to the Space `repo`, for `evaluate.load(repo)`.

    Raises HubError for a name that does not end as the script is called: `evaluate` looks for a script of the Space's
    name.
    """
    check_repo(repo)
    name = codesyntax_metric.__name__
    if repo.split("/")[1] != name:
        raise HubError(
            f"{repo} cannot hold the metric: `evaluate.load` takes it from a Space called {name} only, USER/{name}"
        )
    folder = Path(codesyntax_metric.__file__).parent
    return Push(repo, "space", {name: folder / name for name in sorted(METRIC_FILES)}, METRIC_FILES)
