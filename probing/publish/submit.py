"""Submit results: open a pull request on the model's repository and, if requested, one on a
board's.

Sent are results with their ledgers, as they are: a board computes its numbers from the ledgers, or
runs the model itself. What an honest user may have overlooked is checked before: the results are
complete and not of controls, their numbers follow from their ledgers, the model is the one in the
repository, and the labels are those of the dataset on the Hub.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from huggingface_hub import (
    EvalResultEntry,
    HfApi,
    constants,
    eval_result_entries_to_yaml,
)
from huggingface_hub.errors import EntryNotFoundError

from codesyntax_dataset.arguments import Paths, checked
from codesyntax_dataset.atomic import temporary_folder
from codesyntax_dataset.errors import HubError, LedgerError
from codesyntax_dataset.protocol import PAPER_LENGTH
from codesyntax_dataset.tasks import DIRECTION
from probing.evidence.headlines import Means
from probing.evidence.submission import Submission, scores, submissions_in
from probing.models.files import HEAD_MARK
from probing.models.location import reference_of
from probing.publish.client import Upload, check_repo, client, plain_errors
from probing.publish.sources import SUBMISSIONS
from probing.runs.data import find_data, read_functions
from probing.runs.records import JsonObject
from probing.runs.session import Session

RESULTS_FILE = ".eval_results/codesyntax.yaml"
"""Where the Hub looks for results in a model's repository."""

_DESCRIPTION = (
    "Results of the model on the tasks of CodeSyntax, in percent. Sent by `codesyntax submit`; `codesyntax verify` "
    "runs them again."
)

SOURCE_NAME = "CodeSyntax"

_COMMIT = 40  # digits


class HeadlineNumber(NamedTuple):
    """The number of a task, in percent; `notes`: what it belongs to, and what must stand beside
    it."""

    value: float
    notes: str


@dataclass(frozen=True)
class PullRequest(Upload):
    """A planned pull request on the `kind` (model or dataset) `repo`."""

    title: str

    def text(self) -> str:
        """Its repository and title, and its texts in full."""
        where = f"pull request on the {self.kind} {self.repo}: {self.title}"
        lines = [where]
        for path, content in self.files.items():
            text = content if isinstance(content, str) else f"{len(content):,} bytes"
            lines.append(f"--- {path}\n{text}")
        return "\n".join(lines)

    def open(self) -> str:
        """Open it and return its address, or say why there is nothing to open.

        Raises HubError if the Hub refuses.
        """
        if not self.files:
            return f"nothing to send: {self.repo} already has these results"
        with plain_errors(self.repo):
            api = client()
            if already := _open_pull_requests(api, self.repo, self.kind, self.title):
                return f"already open: {already[0].url}"
            commit = self.commit(api, self.title, commit_description=_DESCRIPTION, create_pr=True)
            assert commit.pr_url  # a pull request was asked for
            return commit.pr_url


@checked
def submission(
    results: Paths,
    model: str,
    dataset: str,
    *,
    source_url: str | None = None,
    board: str | None = None,
    device: str | None = None,
    dry_run: bool = False,
) -> list[PullRequest]:
    """Check results, and plan the pull requests that submit them.

    Args:
        results: files or folders of attention probes, as in `find`, and of masking; of several
            models, `model` says which.
        model: the repository of the model, USER/MODEL, which gets the tasks of `dataset` in
            RESULTS_FILE.
        dataset: the dataset on the Hub with the labels of the results.
        source_url: a page with more about them; by default the board's.
        board: a dataset repository that gets the submissions, also of results that are of no task.
        device: where a local model is compared with the one in its repository.
        dry_run: do without the Hub: the data and the model are those of the results, and files have
            neither the dataset's commit nor what is there already.

    Returns:
        One pull request for each repository.

    Raises:
        LedgerError: for results that fail a check.
        SubmissionError: for what a board would reject.
        HubError: if the Hub cannot be reached.
    """
    for repo in (model, dataset, *([board] if board else [])):
        check_repo(repo)
    if source_url is not None and not re.fullmatch(r"https?://[!-;=?-~]+", source_url):
        raise HubError(f"{source_url!r} is not an address, expected https://...")
    complete = _complete(results, model)
    commit = None
    if dry_run:
        folders = [Path(find_data(each.files["test"], each.settings)) for each in complete]
    else:
        commit, data = _dataset_on_the_hub(dataset)
        folders = [data] * len(complete)
    tasks: dict[str, HeadlineNumber] = {}
    for each, folder in zip(complete, folders):
        _check_labels(each, folder)
        tasks |= _tasks(
            each, each.headline.means(each.results, each.headline.whole(folder, each.settings))
        )
    known = {*tasks} if dry_run else _tasks_of(dataset, folders[0])
    names = " or ".join(tasks) or "for these"
    tasks = {task: number for task, number in tasks.items() if task in known}
    if not tasks and not board:
        raise HubError(
            f"{dataset} has no task {names}, its eval.yaml names {', '.join(sorted(known))}: send the results to a "
            f"board, with --board, or probe heads with --direction {DIRECTION}"
        )
    if not dry_run:
        for settings in {each.settings.revision: each.settings for each in complete}.values():
            _check_model(settings, model, device)
    title = _pull_request_title(model, complete)
    api = None if dry_run else client()
    if board and source_url is None:
        source_url = f"{constants.ENDPOINT}/datasets/{board}"
    ours = [
        EvalResultEntry(
            dataset_id=dataset,
            task_id=task,
            value=number.value,
            dataset_revision=commit,
            date=datetime.now(UTC).date().isoformat(),
            source_url=source_url,
            source_name=SOURCE_NAME if source_url else None,
            notes=number.notes,
        )
        for task, number in tasks.items()
    ]
    requests = []
    if tasks:
        with plain_errors(model):
            there = _there(api, model, "model", RESULTS_FILE)
            merged = _merged(there, eval_result_entries_to_yaml(ours))
            requests.append(_request(api, model, "model", title, {RESULTS_FILE: merged}))
    if board:
        files: dict[str, str | bytes] = {}
        for each in complete:
            files |= _files_of(each, f"{SUBMISSIONS}/{model}/{each.name}")
        with plain_errors(board):
            requests.append(_request(api, board, "dataset", title, files))
    return requests


# ------------------------------------------------------------------------------------------- checks


def _results_of(results: Paths, model: str) -> list[Submission]:
    """The submissions; of several models, those of `model` or of a local model with the name of its
    repository.

    Raises LedgerError for several models, none of which is named so.
    """
    submissions = submissions_in(results)
    names = sorted({each.settings.model for each in submissions})
    if len(names) < 2:
        return submissions
    meant = {model.lower(), model.lower().rpartition("/")[2]}
    if chosen := [each for each in submissions if each.settings.model.lower() in meant]:
        return chosen
    raise LedgerError(
        f"these results are of {', '.join(names)}, and none is of {model}: name the results of one model"
    )


def _complete(results: Paths, model: str) -> list[Submission]:
    """The submissions, after checking each.

    Raises LedgerError for functions or masks other than those of a task, several precisions, and
    two results for one task; SubmissionError for what no board takes, such as a partial run.
    """
    submissions = _results_of(results, model)
    seen: dict[tuple, Path] = {}
    for each in submissions:
        each.check()
        for split, result in each.results.items():
            _check_asked(each.files[split], result.settings, each.headline.asks(result.settings))
            _check_skips(each.files[split], result.skips)
        file = each.files["test"]
        settings = each.settings
        task = each.result.instrument, settings.config, getattr(settings, "direction", "")
        if task in seen:
            raise LedgerError(
                f"{seen[task]} and {file} are both of {' '.join(filter(None, task))}: name one of them"
            )
        seen[task] = file
    precisions = {each.settings.dtype for each in submissions if hasattr(each.settings, "dtype")}
    if len(precisions) > 1:
        raise LedgerError(
            f"results of different precisions, {' and '.join(sorted(precisions))}: submit results of one precision"
        )
    return submissions


def _check_asked(file: Path, settings: Any, asked: Mapping[str, Any]) -> None:
    """Raise LedgerError unless a model was asked for what a task needs."""
    for name, value in asked.items():
        claimed = getattr(settings, name)
        if claimed != value:
            option = f"--{name.replace('_', '-')}"
            used = f"{option} {_as_argument(claimed)}"
            needed = f"{option} {_as_argument(value)}"
            raise LedgerError(
                f"{file} was made with {used}, but a task needs {needed}: run it again so"
            )


def _as_argument(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(value)
    return str(value)


def _check_skips(file: Path, skips: Mapping[str, int]) -> None:
    """Raise LedgerError if a model could not read all functions of a task."""
    for reason in skips:
        if (
            re.fullmatch(r"more than \d+ sub-tokens", reason)
            and reason != f"more than {PAPER_LENGTH} sub-tokens"
        ):
            raise LedgerError(
                f"{file} lacks the functions of {reason}, all that the model reads, but a task scores all of at most "
                f"{PAPER_LENGTH}: its scores compare on a board alone (codesyntax board)"
            )


def _check_labels(submission: Submission, data: Path) -> None:
    for split, result in submission.results.items():
        here = read_functions(data, result.settings.config, split).labels
        if result.settings.labels != here:
            raise LedgerError(
                f"{submission.files[split]} is of the labels {result.settings.labels}, but {data.name} has {here}: "
                "run it again on the dataset that is named"
            )


def _files_of(submission: Submission, folder: str) -> dict[str, str | bytes]:
    """The files of a submission: what was read, without places of this computer."""
    files: dict[str, str | bytes] = {}
    for result in submission.results.values():
        name = f"{folder}/{result.settings.name}"
        files[f"{name}.json"] = result.to_json()
        files[f"{name}.ledger.parquet"] = _content(result.ledger)
    return files


def _content(ledger: Any) -> bytes:
    """The file of a ledger that was read, not the one that may be in its place now."""
    with temporary_folder(Path(tempfile.gettempdir())) as folder:
        ledger.save(folder / "ledger.parquet")
        return (folder / "ledger.parquet").read_bytes()


def _dataset_on_the_hub(dataset: str) -> tuple[str, Path]:
    """The current commit of the dataset, and a folder with its data."""
    with plain_errors(dataset):
        api = client()
        commit = api.dataset_info(dataset).sha
        patterns = ["README.md", "SHA256SUMS", "eval.yaml", "*.parquet"]
        assert commit  # the Hub has one of each revision
        return commit, Path(
            api.snapshot_download(
                dataset, repo_type="dataset", revision=commit, allow_patterns=patterns
            )
        )


def _tasks_of(dataset: str, data: Path) -> set[str]:
    """The ids in the dataset's `eval.yaml`."""
    try:
        return {
            str(task["id"])
            for task in yaml.safe_load((data / "eval.yaml").read_text(encoding="utf-8"))["tasks"]
        }
    except (OSError, ValueError, yaml.YAMLError, KeyError, TypeError, RecursionError) as error:
        raise HubError(
            f"{dataset} has no eval.yaml that names its tasks: publish it with `codesyntax push dataset`"
        ) from error


def _tasks(submission: Submission, means: Means) -> dict[str, HeadlineNumber]:
    """Task -> the number, with what the best rival has in the notes."""
    headline = submission.headline
    own = scores(means, headline.system)
    rivals = scores(means, headline.rival)
    tasks = {}
    for name in means:
        task = headline.task(submission.settings, name)
        cell = name, headline.measure
        if task and cell in own:
            rival = f"{headline.rival} {rivals[cell].value:.2f}"
            notes = f"{submission.result.signature}; {rival}"
            tasks[task] = HeadlineNumber(round(own[cell].value, 2), notes)
    return tasks


def _check_model(settings: Any, model: str, device: str | None) -> None:
    """Raise LedgerError unless results are of a model in the repository: of a commit on a branch or
    tag, or of weights, configuration and tokenizer with the digest of those there."""
    from probing.models.identity import is_revision  # torch takes seconds to import

    with plain_errors(model):
        if len(settings.revision) == _COMMIT:
            same = settings.model.lower() == model.lower()  # as the Hub finds repositories
            if same and reference_of(model, settings.revision):
                return
            raise LedgerError(
                f"{settings.revision} of {settings.model} is on no branch or tag of {model}: probe that again"
            )
    session = Session(model, device=device, max_length=settings.max_length)
    loaded = session.scoring_model() if HEAD_MARK in settings.revision else session.encoder()
    if not is_revision(loaded, settings.revision):
        raise LedgerError(
            f"{model} has other weights, another configuration or another tokenizer than {settings.model}, which was "
            "run: send these first, or run what is there"
        )


# ---------------------------------------------------------------------------------------- the files


def _pull_request_title(model: str, sent: list[Submission]) -> str:
    """The same for the same results, so that pull requests are found again."""
    signatures = sorted(result.signature for each in sent for result in each.results.values())
    digest = hashlib.sha256("".join(signatures).encode()).hexdigest()
    return f"CodeSyntax results of {model} [{digest[:8]}]"


def _open_pull_requests(api: HfApi, repo: str, kind: str, title: str) -> list:
    """The open pull requests of this user with this title."""
    user = api.whoami()["name"]
    return [
        request
        for request in api.get_repo_discussions(repo, author=user, repo_type=kind)
        if request.is_pull_request
        and (request.author, request.title, request.status) == (user, title, "open")
    ]


def _request(
    api: HfApi | None, repo: str, kind: str, title: str, files: dict[str, str | bytes]
) -> PullRequest:
    """With those files that are not there already; folders of submissions are named by their
    content. Without `api`: all."""

    def there(path: str, content: str | bytes) -> bool:
        if api is None:
            return False
        if path.startswith(SUBMISSIONS):
            return api.file_exists(repo, path, repo_type=kind)
        data = content.encode() if isinstance(content, str) else content
        return _there(api, repo, kind, path) == data

    new = {path: content for path, content in files.items() if not there(path, content)}
    return PullRequest(repo, kind, new, title)


def _there(api: HfApi | None, repo: str, kind: str, path: str) -> bytes | None:
    """A file in a repository, or None; None without `api`, too."""
    if api is None:
        return None
    try:
        return Path(api.hf_hub_download(repo, path, repo_type=kind)).read_bytes()
    except EntryNotFoundError:
        return None


def _merged(there: bytes | None, ours: list[JsonObject]) -> str:
    """Our results in RESULTS_FILE: in the place of older ones of the same tasks, other results stay
    as they are.

    What is there already, but for its date, keeps it: the same results are sent once.
    """
    there_now = _results_in(there)
    tasks = [_task_of(result) for result in ours]
    merged = [result for result in there_now if _task_of(result) not in tasks]
    for result in ours:
        same = [other for other in there_now if _undated(other) == _undated(result)]
        merged += same[:1] or [result]
    return yaml.safe_dump(merged, sort_keys=False, allow_unicode=True, width=10**6)


def _undated(result: JsonObject) -> JsonObject:
    return {name: value for name, value in result.items() if name != "date"}


def _task_of(result: JsonObject) -> tuple[Any, Any]:
    return result["dataset"]["id"], result["dataset"]["task_id"]


def _results_in(there: bytes | None) -> list[JsonObject]:
    try:
        results = yaml.safe_load(there or b"") or []
        for result in results:
            _task_of(result)
    except (yaml.YAMLError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise HubError(
            f"{RESULTS_FILE} in the model's repository is not what the Hub reads; mend it first"
        ) from error
    return results
