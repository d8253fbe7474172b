"""Where boards find submissions: folders of results, and results repositories on the Hub.

In a repository, a submission is a folder, `submissions/USER/MODEL/NAME`, with the files of its
results; in a folder of one's own, results may lie anywhere, as runs write them. Nothing but the
headers of ledgers is read before somebody asks for more: what was read once need not be downloaded
or computed again.
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
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from codesyntax_dataset.atomic import temporary_folder
from codesyntax_dataset.errors import SubmissionError, UnknownName
from codesyntax_dataset.safe_files import printable
from probing.evidence.submission import alike, name_of, table_of
from probing.instruments.registry import INSTRUMENTS
from probing.runs.ledger_file import kind_of

SUBMISSIONS = "submissions"

SUFFIX = ".ledger.parquet"

LARGEST_LEDGER = 2 * 2**30
"""The most bytes of a ledger that a board reads."""

_IN_REPOSITORY = re.compile(
    rf"({SUBMISSIONS}/([\w.-]+/[\w.-]+)/([\w.-]+)\.[0-9a-f]{{12}})/[\w.-]+{re.escape(SUFFIX)}",
    re.ASCII,
)


class LeftOut(NamedTuple):
    """A file that is not on the board, and the reason."""

    file: str
    reason: str


class _Origin(NamedTuple):
    """What the ledgers of a submission share: the `place` of its files; the `model` of the
    repository's folder that they are in, empty elsewhere; its `owner`, and the name of its `table`,
    as far as can be said before it is read."""

    place: str
    model: str
    owner: str
    table: str


class _File(NamedTuple):
    """A ledger: its `name` in the source, its size in `bytes`, the `date` on which it was sent, in
    seconds, `known_by`: what is another if its content is, and what gets it."""

    name: str
    bytes: float
    date: float
    known_by: str
    get: Callable[[], Path]

    @property
    def in_repository(self) -> _Origin | None:
        match = _IN_REPOSITORY.fullmatch(self.name)
        return match and _Origin(match[1], match[2], match[2].partition("/")[0], match[3])

    @property
    def in_folder(self) -> _Origin:
        """By what its header says."""
        instrument, made = kind_of(self.get())
        with contextlib.suppress(ValidationError, KeyError, UnknownName):
            provenance = INSTRUMENTS[str(instrument)].result.PROVENANCE.model_validate(made)
            settings = provenance.settings
            place = f"{Path(self.name).parent} {instrument} {alike(settings)}"
            table = name_of(table_of(str(instrument), provenance))
            return _Origin(place, "", settings.model.rpartition("/")[0], table)
        return _Origin(self.name, "", "", "")


@dataclass(frozen=True)
class Found:
    """A submission that is claimed, not read yet; `called`: its name."""

    called: str
    origin: _Origin
    files: list[_File]

    @property
    def date(self) -> float:
        """When it was sent, in seconds."""
        return max(file.date for file in self.files)

    @property
    def known_by(self) -> str:
        """What is another if the model or one of the files is."""
        return json.dumps([self.origin.model, sorted(file.known_by for file in self.files)])


def opened(source: str, stack: ExitStack) -> tuple[list[Found], list[LeftOut]]:
    """The submissions of a source, and the files that are not read; `stack` closes what was opened.

    Raises SubmissionError for a source that is none, HubError for one that cannot be reached.
    """
    path = Path(source)
    local = os.path.isdir(path)
    if local:
        called, files = path.resolve().name, _local_ledgers(path)
    elif re.fullmatch(r"[\w.-]+/[\w.-]+(@.+)?", source) and not path.parent.exists():
        folder = stack.enter_context(temporary_folder(Path(tempfile.gettempdir())))
        called, files = source, _ledgers_on_the_hub(source, folder)
    else:
        raise SubmissionError(
            f"no folder {source}: expected a folder of results, or a results repository on the Hub, user/results"
        )
    groups: defaultdict[_Origin, list[_File]] = defaultdict(list)
    left_out = []
    for file in files:
        origin = file.in_repository
        reason = ""
        if not file.bytes >= 0:
            reason = "this is a link or a folder, expected a regular file"
        elif file.bytes > LARGEST_LEDGER:
            reason = f"larger than {LARGEST_LEDGER:,} bytes"
        elif not origin and not local:
            reason = f"expected {SUBMISSIONS}/USER/MODEL/NAME/FILE{SUFFIX}, as `submit` sends it"
        if reason:
            left_out.append(LeftOut(printable(f"{called}/{file.name}"), reason))
        else:
            groups[origin or file.in_folder].append(file)
    found = [
        Found(printable(f"{called}/{files[0].name}"), origin, files)
        for origin, files in groups.items()
    ]
    return found, left_out


def _local_ledgers(folder: Path) -> Iterator[_File]:
    inside = folder / SUBMISSIONS
    within = folder if inside.is_symlink() or not inside.is_dir() else inside
    for path in sorted(within.rglob(f"*{SUFFIX}")):
        status = path.lstat()
        regular = path.is_file() and not path.is_symlink()
        size = status.st_size if regular else math.nan
        # a file that was written again has other times
        known_by = [status.st_dev, status.st_ino, status.st_size]
        known_by += [status.st_mtime_ns, status.st_ctime_ns]
        name = path.relative_to(folder).as_posix()
        yield _File(name, size, status.st_mtime, f"{known_by}", partial(Path, path))


def _ledgers_on_the_hub(source: str, folder: Path) -> Iterator[_File]:
    """The ledgers of a results repository at one commit, which are downloaded when they are asked
    for."""
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

    def download(name: str) -> Path:
        with plain_errors(repo):
            return Path(
                api.hf_hub_download(
                    repo, name, repo_type="dataset", revision=commit, local_dir=folder
                )
            )

    for name, item in sorted(files.items()):
        if name.endswith(SUFFIX):
            date = item.last_commit.date.timestamp() if item.last_commit else 0.0
            digest = item.lfs.sha256 if item.lfs else item.blob_id
            size = item.size or math.inf
            yield _File(name, size, date, str(digest), partial(download, name))


def requests_of(repo: str) -> Iterator[int]:
    """The numbers of the open pull requests of a results repository."""
    from huggingface_hub import HfApi

    from probing.publish.client import plain_errors

    with plain_errors(repo):
        for request in HfApi().get_repo_discussions(repo, repo_type="dataset"):
            if request.is_pull_request and request.status == "open":
                yield request.num
