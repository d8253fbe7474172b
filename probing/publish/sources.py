"""Where boards find submissions: folders of results, and results repositories on the Hub.

In a repository, a submission is a folder, `submissions/USER/MODEL/NAME`, with the files of its
results; in a folder of one's own, results may lie anywhere, as runs write them. A file is
known by the digest of its content, so that what was read once need not be downloaded or computed
again.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from codesyntax_dataset.atomic import temporary_folder
from codesyntax_dataset.errors import SubmissionError, UnknownName
from codesyntax_dataset.safe_files import printable
from probing.evidence.submission import name_of, table_of
from probing.instruments.registry import INSTRUMENTS
from probing.models.files import sha256
from probing.runs.ledger_file import kind_of

SUBMISSIONS = "submissions"

SUFFIX = ".ledger.parquet"

LARGEST_LEDGER = 2 * 2**30
"""The most bytes of a ledger that a board reads."""

_IN_REPOSITORY = re.compile(
    rf"{SUBMISSIONS}/([\w.-]+/[\w.-]+)/([\w.-]+)\.[0-9a-f]{{12}}/[\w.-]+{re.escape(SUFFIX)}",
    re.ASCII,
)


class LeftOut(NamedTuple):
    """A file that is not on the board, and the reason."""

    file: str
    reason: str


@dataclass(frozen=True)
class Found:
    """The ledgers of a submission that is claimed, not read yet.

    `called`: its name; `ledgers`: name of a file -> what gets it; `known_by`: what is another if
    one of the files is; `model`: the repository that it is of, None where its results say so;
    `owner`, `table`: of the model, and the name of its table, as far as can be said before it is
    read; `date`: when it was sent, in seconds.
    """

    called: str
    ledgers: dict[str, Callable[[], Path]]
    known_by: str
    model: str | None
    owner: str
    table: str
    date: float


def opened(source: str, stack: ExitStack) -> tuple[list[Found], list[LeftOut]]:
    """The submissions of a source, and the files that are not read; `stack` closes what was opened.

    Raises SubmissionError for a source that is none, HubError for one that cannot be reached.
    """
    path = Path(source)
    if os.path.isdir(path):
        return _submissions_in_folder(path)
    if re.fullmatch(r"[\w.-]+/[\w.-]+(@.+)?", source) and not path.parent.exists():
        folder = stack.enter_context(temporary_folder(Path(tempfile.gettempdir())))
        return _on_the_hub(source, folder)
    raise SubmissionError(
        f"no folder {source}: expected a folder of results, or a results repository on the Hub, user/results"
    )


def _submissions_in_folder(folder: Path) -> tuple[list[Found], list[LeftOut]]:
    inside = folder / SUBMISSIONS
    within = folder if inside.is_symlink() or not inside.is_dir() else inside
    groups: defaultdict[tuple, dict[str, Path]] = defaultdict(dict)
    left_out = []
    for path in sorted(within.rglob(f"*{SUFFIX}")):
        name = path.relative_to(folder).as_posix()
        if reason := _refused(path):
            left_out.append(LeftOut(printable(f"{folder.resolve().name}/{name}"), reason))
            continue
        instrument, made = kind_of(path)
        groups[path.parent, instrument, _alike(made) or name][name] = path
    found = []
    for (_, instrument, _), files in groups.items():
        digests = sorted(map(sha256, files.values()))
        first = next(iter(files))
        match = _IN_REPOSITORY.fullmatch(first)
        model, table = _said(instrument, kind_of(files[first])[1])
        found.append(
            Found(
                printable(f"{folder.resolve().name}/{first}"),
                {name: _local(path) for name, path in files.items()},
                json.dumps([match and match[1], digests]),
                match[1] if match else None,
                (match[1] if match else model).rpartition("/")[0],
                table,
                max(path.stat().st_mtime for path in files.values()),
            )
        )
    return found, left_out


def _said(instrument: str | None, made: Any) -> tuple[str, str]:
    """The model of a ledger, and the name of its table, as its header says; empty if it does not."""
    with contextlib.suppress(ValidationError, KeyError, UnknownName):
        provenance = INSTRUMENTS[str(instrument)].result.PROVENANCE.model_validate(made)
        return provenance.settings.model, name_of(table_of(str(instrument), provenance))
    return "", ""


def _local(path: Path) -> Callable[[], Path]:
    return lambda: path


def _refused(path: Path) -> str:
    if path.is_symlink() or not path.is_file():
        return "this is a link or a folder, expected a regular file"
    return _too_large(path.stat().st_size)


def _too_large(size: float) -> str:
    return f"larger than {LARGEST_LEDGER:,} bytes" if size > LARGEST_LEDGER else ""


def _alike(made: Any) -> str:
    """What the ledgers of a submission share, as their headers say it."""
    with contextlib.suppress(AttributeError, KeyError, TypeError):
        settings = {**made["settings"], "split": None, "labels": None}
        return json.dumps(settings, sort_keys=True)
    return ""


def _on_the_hub(source: str, folder: Path) -> tuple[list[Found], list[LeftOut]]:
    """The submissions of a results repository at one commit; ledgers are downloaded when they are
    asked for."""
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile

    from codesyntax_dataset.network import limit_waiting
    from probing.publish.client import check_repo, plain_errors

    repo, _, revision = source.partition("@")
    check_repo(repo)
    limit_waiting()
    api = HfApi()
    with plain_errors(repo):
        commit = str(api.dataset_info(repo, revision=revision or None).sha)
        tree = api.list_repo_tree(
            repo, repo_type="dataset", revision=commit, recursive=True, expand=True
        )
        files = {item.path: item for item in tree if isinstance(item, RepoFile)}

    def download(name: str) -> Callable[[], Path]:
        def get() -> Path:
            with plain_errors(repo):
                return Path(
                    api.hf_hub_download(
                        repo, name, repo_type="dataset", revision=commit, local_dir=folder
                    )
                )

        return get

    groups: defaultdict[str, list[RepoFile]] = defaultdict(list)
    left_out = []
    for name, item in sorted(files.items()):
        if not name.endswith(SUFFIX):
            continue
        reason = _too_large(item.size or math.inf)
        if not _IN_REPOSITORY.fullmatch(name):
            reason = f"expected {SUBMISSIONS}/USER/MODEL/NAME/FILE{SUFFIX}, as `submit` sends it"
        if reason:
            left_out.append(LeftOut(printable(f"{source}/{name}"), reason))
        else:
            groups[name.rpartition("/")[0]].append(item)
    found = []
    for place, items in groups.items():
        dates = [item.last_commit.date.timestamp() for item in items if item.last_commit]
        digests = [item.lfs.sha256 if item.lfs else item.blob_id for item in items]
        match = _IN_REPOSITORY.fullmatch(items[0].path)
        assert match
        found.append(
            Found(
                printable(f"{source}/{place}"),
                {item.path: download(item.path) for item in items},
                json.dumps([place, sorted(map(str, digests))]),
                match[1],
                match[1].partition("/")[0],
                match[2],
                max(dates, default=0.0),
            )
        )
    return found, left_out


def requests_of(repo: str) -> Iterator[int]:
    """The numbers of the open pull requests of a results repository."""
    from huggingface_hub import HfApi

    from probing.publish.client import plain_errors

    with plain_errors(repo):
        for request in HfApi().get_repo_discussions(repo, repo_type="dataset"):
            if request.is_pull_request and request.status == "open":
                yield request.num
