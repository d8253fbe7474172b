"""Submit results: open a pull request on the model's repository and, if requested, one on a
board's.

Everything is checked before anything is sent: the results are complete and not of controls, their
numbers follow from their ledgers, the model is the one in the repository, the labels are those of
the dataset on the Hub, and a part of each result is probed or masked again. Results of attention
probes and of masking may be sent together.
"""

from __future__ import annotations

import hashlib
import math
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
from codesyntax_dataset.languages import language_of
from codesyntax_dataset.protocol import BEYOND_OFFSET, HELD_OUT, PAPER_LENGTH
from codesyntax_dataset.tasks import (
    DIRECTION,
    MASK_SETTINGS,
    RESTORED,
    RULE,
    TASK_PROTOCOLS,
    K,
    mask_task_id,
    task_id,
)
from probing.evidence.gather import EntryResults, results_for_entries, submission_of
from probing.evidence.submission import Submission
from probing.evidence.submission_attention import AttentionSubmission
from probing.evidence.submission_masked import MaskedSubmission
from probing.evidence.verify import REVISION, verify
from probing.instruments.masking.hits import ARMS
from probing.instruments.masking.result import MaskSettings
from probing.publish.client import Upload, check_repo, client, plain_errors
from probing.publish.verified import LEDGERS, ledger_file
from probing.runs.data import find_data
from probing.runs.records import JsonObject
from probing.runs.settings import Settings

RESULTS_FILE = ".eval_results/codesyntax.yaml"
"""Where the Hub looks for results in a model's repository."""

_DESCRIPTION = (
    "Results of the model on the tasks of CodeSyntax, in percent. Sent by `codesyntax submit`, which has checked the "
    "results and run part of them again."
)

SOURCE_NAME = "CodeSyntax"


AnySettings = MaskSettings | Settings


class Headline(NamedTuple):
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
        device: for running them again.
        dry_run: do without the Hub: the data and the model are those of the results, and files have
            neither the dataset's commit nor what is there already.

    Returns:
        One pull request for each repository.

    Raises:
        LedgerError: for results that fail a check.
        EntryError: for what a board would reject.
        HubError: if the Hub cannot be reached.
    """
    for repo in (model, dataset, *([board] if board else [])):
        check_repo(repo)
    if source_url is not None and not re.fullmatch(r"https?://[!-;=?-~]+", source_url):
        raise HubError(f"{source_url!r} is not an address, expected https://...")
    complete = _complete(results, model)
    commit = None
    if dry_run:
        folders = [Path(find_data(run.files["test"], run.settings)) for run in complete]
    else:
        commit, data = _dataset_on_the_hub(dataset)
        folders = [data] * len(complete)
    entries = [submission_of(run, folder) for run, folder in zip(complete, folders)]
    headlines = _headlines(entries)
    known = {*headlines} if dry_run else _tasks_of(dataset, folders[0])
    tasks = {task: headline for task, headline in headlines.items() if task in known}
    if not tasks and not board:
        raise HubError(
            f"{dataset} has no task {' or '.join(headlines) or 'for these'}, its eval.yaml names "
            f"{', '.join(sorted(known))}: send the results to a board, with --board, or probe heads with --direction "
            f"{DIRECTION}"
        )
    for run, folder in zip(complete, folders):
        location = None if dry_run else _model_on_the_hub(run.settings, model)
        _run_again(run.files["test"], location, folder, device, dry_run)
    title = _pull_request_title(model, complete)
    api = None if dry_run else client()
    if board and source_url is None:
        source_url = f"{constants.ENDPOINT}/datasets/{board}"
    ours = [
        EvalResultEntry(
            dataset_id=dataset,
            task_id=task,
            value=headline.value,
            dataset_revision=commit,
            date=datetime.now(UTC).date().isoformat(),
            source_url=source_url,
            source_name=SOURCE_NAME if source_url else None,
            notes=headline.notes,
        )
        for task, headline in tasks.items()
    ]
    requests = []
    if tasks:
        with plain_errors(model):
            files: dict[str, str | bytes] = {
                RESULTS_FILE: _merged(
                    _there(api, model, "model", RESULTS_FILE), eval_result_entries_to_yaml(ours)
                )
            }
            requests.append(_request(api, model, "model", title, files))
    if board:
        with plain_errors(board):
            files = {f"entries/{entry.file_name}": entry.to_bytes() for entry in entries}
            for run in complete:
                for result in run.read.values():
                    files[ledger_file(result.ledger.digest())] = _content(result.ledger)
            requests.append(_request(api, board, "dataset", title, files))
    return requests


# ------------------------------------------------------------------------------------------- checks


def _results_of(results: Paths, model: str) -> list[EntryResults]:
    """The results; of several models, those of `model` or of a local model with the name of its
    repository.

    Raises LedgerError for other instruments, and for several models, none of which is named so.
    """
    runs = results_for_entries(results)
    names = sorted({run.settings.model for run in runs})
    if len(names) < 2:
        return runs
    meant = {model.lower(), model.lower().rpartition("/")[2]}
    if chosen := [run for run in runs if run.settings.model.lower() in meant]:
        return chosen
    raise LedgerError(
        f"these results are of {', '.join(names)}, and none is of {model}: name the results of one model"
    )


def _complete(results: Paths, model: str) -> list[EntryResults]:
    """The results, after checking that each can be submitted.

    Raises LedgerError for functions or masks other than those of a task, several precisions, and
    two results for one task; EntryError for what no board takes, such as a partial run.
    """
    runs = _results_of(results, model)
    seen: dict[str, Path] = {}
    for run in runs:
        for split, result in run.read.items():
            file = run.files[split]
            settings = result.settings
            _check_settings(file, settings)
            _check_skips(file, result.skips)
        kind = MaskedSubmission if isinstance(run.settings, MaskSettings) else AttentionSubmission
        kind.check_settings(run.settings)
        task = _first_task(run.settings)
        file = run.files["test"]
        if task in seen:
            raise LedgerError(f"{seen[task]} and {file} are both for {task}: name one of them")
        seen[task] = file
    precisions = {run.settings.dtype for run in runs if not isinstance(run.settings, MaskSettings)}
    if len(precisions) > 1:
        raise LedgerError(
            f"results of different precisions, {' and '.join(sorted(precisions))}: submit results of one precision"
        )
    return runs


def _first_task(settings: AnySettings) -> str:
    """The id of a task."""
    if isinstance(settings, MaskSettings):
        return mask_task_id(settings.config)
    return task_id(settings.config, HELD_OUT, settings.direction)


def _content(ledger: Any) -> bytes:
    """The file of a ledger that was read, not the one that may be in its place now."""
    with temporary_folder(Path(tempfile.gettempdir())) as folder:
        ledger.save(folder / "ledger.parquet")
        return (folder / "ledger.parquet").read_bytes()


def _check_settings(file: Path, settings: AnySettings) -> None:
    """Raise LedgerError unless a model was asked for all functions of a task, those within the
    paper's length limit; and unless functions were masked as for a task."""
    expected: dict[str, Any] = {"max_length": PAPER_LENGTH}
    if isinstance(settings, MaskSettings):
        expected = {
            **MASK_SETTINGS,
            "node_types": language_of(settings.config).node_types,
            "split": "test",
        }
    for name, value in expected.items():
        claimed = getattr(settings, name, value)
        if claimed != value:
            option = f"--{name.replace('_', '-')}"
            asked = _as_argument(value)
            needed = f"{option} {asked}" if asked else f"no {option}"
            used = f"{option} {_as_argument(claimed)}"
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
                f"{PAPER_LENGTH}: its scores compare on a board alone (codesyntax report, then codesyntax board)"
            )


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


def _headlines(entries: list[Submission]) -> dict[str, Headline]:
    """By task id."""
    headlines: dict[str, Headline] = {}
    for entry in entries:
        if isinstance(entry, AttentionSubmission):
            headlines |= _of_heads(entry)
        elif isinstance(entry, MaskedSubmission):
            headlines |= _of_masks(entry)
    return headlines


def _of_heads(entry: AttentionSubmission) -> dict[str, Headline]:
    """The top-1 UAS of held-out heads; and beyond offsets, with what the best rival finds there."""
    headlines = {}
    scores = entry.scores(entry.SYSTEM)
    rivals = entry.scores(entry.RIVAL)
    for mean in TASK_PROTOCOLS:
        task = task_id(entry.settings.config, mean, entry.settings.direction)
        score = scores.get((mean, RULE, K))
        if score is None and mean == BEYOND_OFFSET:
            continue
        if score is None:
            raise LedgerError(
                f"there is no number for {task}: no relation that counts has edges to choose a head on"
            )
        notes = entry.signature
        if mean == BEYOND_OFFSET:
            notes += f"; best baseline there {round(rivals[mean, RULE, K].value, 2)}"
        headlines[task] = Headline(round(score.value, 2), notes)
    return headlines


def _of_masks(entry: MaskedSubmission) -> dict[str, Headline]:
    """T1, with T0 and the effect in the notes."""
    task = mask_task_id(entry.settings.config)
    t1, t0 = (round(entry.scores(arm)[RESTORED].value, 2) for arm in ARMS)
    effect = entry.scores(*ARMS)[RESTORED]
    notes = f"{entry.signature}; T0 {t0}, T1 - T0 {effect.value:.2f}"
    notes += "" if math.isnan(effect.low) else f" ({effect.low:.2f} to {effect.high:.2f})"
    return {task: Headline(t1, notes)}


def _model_on_the_hub(settings: AnySettings, model: str) -> str | None:
    """A folder with the files of the model's repository, or None if the result names that."""
    if settings.model.lower() == model.lower():  # as the Hub finds repositories
        return None
    # a local model is tied to the repository by the digest of its weights, configuration and
    # tokenizer
    patterns = ["*.json", "*.txt", "*.model", "*.safetensors"]
    below = ["*/*.json", "*/*.txt", "*/*.model"]  # but shards may be in folders
    with plain_errors(model):
        return client().snapshot_download(model, allow_patterns=patterns, ignore_patterns=below)


def _run_again(
    file: Path,
    model: str | None,
    data: Path | str,
    device: str | None,
    dry_run: bool,
) -> None:
    """Raise LedgerError unless a result comes out again."""
    verification = verify(file, model=model, data=str(data), device=device)
    failed = [check.name for check in verification.checks if not check.passed]
    if failed and not (dry_run and failed == [REVISION]):
        raise LedgerError(f"{file}: {verification.verdict} ({verification.reason})")


# ---------------------------------------------------------------------------------------- the files


def _pull_request_title(model: str, runs: list[EntryResults]) -> str:
    """The same for the same results, so that pull requests are found again."""
    signatures = sorted(result.signature for run in runs for result in run.read.values())
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
    """With those files that are not there already; ledgers are named by their content. Without
    `api`: all."""

    def there(path: str, content: str | bytes) -> bool:
        if api is None:
            return False
        if path.startswith(LEDGERS):
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
