"""Submit results: open a pull request on the model's repository and, if requested, one on a board's.

Everything is checked before anything is sent: the results are complete and not of controls, their numbers follow from
their ledgers, the model is the one in the repository, the labels are those of the dataset on the Hub, and a part of
each result is probed again.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from huggingface_hub import (
    CommitOperationAdd,
    EvalResult,
    EvalResultEntry,
    HfApi,
    ModelCard,
    ModelCardData,
    eval_result_entries_to_yaml,
)
from huggingface_hub.errors import EntryNotFoundError

from codesyntax_dataset.arguments import checked
from codesyntax_dataset.errors import HubError, LedgerError
from codesyntax_dataset.protocol import HELD_OUT, PAPER_LENGTH, PROTOCOLS
from codesyntax_dataset.tasks import task_id
from probing.attention.result import ProbeResult
from probing.evidence import entry
from probing.evidence.checks import REJECTED, UNCHECKED, Verification
from probing.evidence.gather import Probed, find, gather
from probing.evidence.schema import Entry, Verified
from probing.evidence.verify import verify
from probing.models.location import Location
from probing.publish.client import check_repo, client, plain_errors, retry_when_rate_limited
from probing.runs.data import label_digest, load_functions
from probing.runs.settings import Settings

FILE = ".eval_results/codesyntax.yaml"
"""Where the Hub looks for results in a model's repository."""

_DESCRIPTION = (
    "Top-1 UAS of the model's attention heads on CodeSyntax, in percent. Sent by `codesyntax submit`, which has "
    "checked the results and probed part of them again; `codesyntax submit --undo` closes this."
)

RULE, K = "first", "1"
"""The rule and k of the headline number."""

_ALIKE = " over the relations of held-out"


class Headline(NamedTuple):
    """The number of a task, in percent, and its entry.

    `alike`: for a published one, the mean over the relations of held-out, which compares with the held-out number; None
    if these are all relations.
    """

    value: float
    alike: float | None
    entry: Entry

    @property
    def notes(self) -> str:
        return self.entry.signature + ("" if self.alike is None else f"; {self.alike}{_ALIKE}")


@dataclass(frozen=True)
class PullRequest:
    """A planned pull request on the `kind` (model or dataset) `repo`: `files`, path in the repository -> content."""

    repo: str
    kind: str
    title: str
    files: dict[str, str]

    def text(self) -> str:
        """Its repository and title, and its files in full."""
        where = f"pull request on the {self.kind} {self.repo}: {self.title}"
        return "\n".join([where, *(f"--- {path}\n{content}" for path, content in self.files.items())])

    def open(self) -> str:
        """Open it and return its address, or say why there is nothing to open.

        Raises HubError if the Hub refuses.
        """
        if not self.files:
            return f"nothing to send: {self.repo} already has these results"
        with plain_errors(self.repo):
            api = client()
            if already := _opened(api, self.repo, self.kind, self.title):
                return f"already open: {already[0].url}; --undo closes it"
            operations = [CommitOperationAdd(path, content.encode()) for path, content in self.files.items()]
            made = retry_when_rate_limited(
                lambda: api.create_commit(
                    self.repo,
                    operations,
                    commit_message=self.title,
                    commit_description=_DESCRIPTION,
                    repo_type=self.kind,
                    create_pr=True,
                )
            )
            assert made.pr_url  # a pull request was asked for
            return made.pr_url


@checked
def submission(
    results: Sequence[str | os.PathLike[str]],
    model: str,
    dataset: str,
    *,
    source_url: str | None = None,
    model_index: bool = False,
    board: str | None = None,
    device: str | None = None,
) -> list[PullRequest]:
    """The pull requests that submit `results` (files or folders, as in `find`), after all checks have passed.

    `model`: the repository of the model, USER/MODEL, which gets FILE and, with `model_index`, the results in its card
    in the older format. `dataset`: the dataset on the Hub with the labels of the results. `source_url`: a page with
    more about them. `board`: a dataset repository that gets the entries. `device`: for probing again.

    Raises LedgerError for results that fail a check, EntryError for entries that a board would reject, HubError if the
    Hub cannot be reached.
    """
    for repo in (model, dataset, *([board] if board else [])):
        check_repo(repo)
    if source_url is not None and not re.fullmatch(r"https?://[!-;=?-~]+", source_url):
        raise HubError(f"{source_url!r} is not an address, expected https://...")
    probed = _complete(find(results))
    commit, data = _dataset_on_the_hub(dataset)
    for one in probed:
        for result in (one.test, one.validation):
            _check_labels(result, dataset, data)
    _check_tasks(probed, dataset, data)
    entries = [_entry(gather([one], data)[0].entry()) for one in probed]
    tasks = _headlines(entries)
    for place, one in enumerate(probed):
        where = _model_on_the_hub(one.test.settings, model)
        again = [_probe_again(file, where, data, device) for file in one.files.values()]
        verified = Verified(functions=sum(part.functions for part in again), of=sum(part.of for part in again))
        entries[place] = entries[place].model_copy(update={"verified": verified})
    title = _title(model, probed)
    api = client()
    ours = [
        EvalResultEntry(
            dataset_id=dataset,
            task_id=task,
            value=headline.value,
            dataset_revision=commit,
            source_url=source_url,
            notes=headline.notes,
        )
        for task, headline in tasks.items()
    ]
    with plain_errors(model):
        files = {FILE: _merged(_there(api, model, "model", FILE), eval_result_entries_to_yaml(ours))}
        if model_index:
            files["README.md"] = _card(
                _there(api, model, "model", "README.md"), model, dataset, commit, tasks, source_url
            )
        requests = [_request(api, model, "model", title, files)]
    if board:
        with plain_errors(board):
            files = {f"entries/{entry.file_name(of.settings.probed)}": entry.to_json(of) for of in entries}
            requests.append(_request(api, board, "dataset", title, files))
    return requests


@checked
def undo(results: Sequence[str | os.PathLike[str]], model: str, board: str | None = None) -> list[str]:
    """Close the pull requests that this user opened for these results; return their addresses."""
    title = _title(model, find(results))
    closed = []
    for repo, kind in ((model, "model"), *([(board, "dataset")] if board else [])):
        check_repo(repo)
        with plain_errors(repo):
            api = client()
            for request in _opened(api, repo, kind, title):
                api.change_discussion_status(
                    repo, request.num, "closed", comment="Closed by codesyntax submit --undo.", repo_type=kind
                )
                closed.append(request.url)
    return closed


# ------------------------------------------------------------------------------------------------------------- checks


def _entry(made: dict[str, Any]) -> Entry:
    """What a board would read; raises EntryError for what it would reject."""
    read = entry.load(entry.to_json(made).encode())
    assert isinstance(read, Entry)
    return read


def _complete(probed: list[Probed]) -> list[Probed]:
    """Return `probed` after checking that each result can be submitted.

    Raises LedgerError for controls, partial runs, functions other than those of a task, several precisions, and two
    results for one task.
    """
    seen: dict[str, Path] = {}
    for one in probed:
        file, settings = one.files["test"], one.test.settings
        if settings.control is not None:
            raise LedgerError(
                f"{file} is of the control {settings.control}, not of a model: name the model's own result"
            )
        for split, result in (("test", one.test), ("validation", one.validation)):
            if result.settings.limit is not None:
                raise LedgerError(f"{one.files[split]} is of a partial run: probe without --limit")
            _check_functions(one.files[split], result)
        task = task_id(settings.config, HELD_OUT, settings.direction)
        if task in seen:
            raise LedgerError(f"{seen[task]} and {file} are both for {task}: name one of them")
        seen[task] = file
    if len(precisions := {one.test.settings.dtype for one in probed}) > 1:
        raise LedgerError(f"results of different precisions, {' and '.join(sorted(precisions))}: submit those of one")
    return probed


def _check_functions(file: Path, result: ProbeResult) -> None:
    """Raise LedgerError unless all functions of a task were scored: those within the paper's length limit."""
    length, others = result.settings.max_length, result.settings.also_fits
    if length != PAPER_LENGTH or others:
        made = [f"--max-length {length}"] * (length != PAPER_LENGTH) + [f"--also-fits {name}" for name in others]
        raise LedgerError(
            f"{file} was probed with {' '.join(made)}, but a task scores all functions of at most {PAPER_LENGTH} "
            "sub-tokens: probe without these options"
        )
    known = {"no relations", f"more than {PAPER_LENGTH} sub-tokens"}
    for reason in result.skips:
        if re.fullmatch(r"more than \d+ sub-tokens", reason) and reason not in known:
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
            api.snapshot_download(dataset, repo_type="dataset", revision=commit, allow_patterns=patterns)
        )


def _check_labels(result: ProbeResult, dataset: str, data: Path) -> None:
    settings = result.settings
    functions, name = load_functions(data, settings.config, settings.split)
    told = f"version {settings.data.rpartition('@')[2]}, labels {settings.labels}"
    here = f"version {name.rpartition('@')[2]}, labels {label_digest(functions)}"
    if told != here:
        raise LedgerError(
            f"the result is of {settings.config}/{settings.split} in {told}, but {dataset} has {here}: "
            "probe with the dataset that is on the Hub"
        )
    skipped = sum(result.skips.values())
    if result.functions + skipped != len(functions):
        raise LedgerError(
            f"the result is of {result.functions} functions and skipped {skipped}, but "
            f"{settings.config}/{settings.split} has {len(functions)}: its ledger was altered, probe again"
        )


def _check_tasks(probed: list[Probed], dataset: str, data: Path) -> None:
    try:
        known = {task["id"] for task in yaml.safe_load((data / "eval.yaml").read_text(encoding="utf-8"))["tasks"]}
    except (OSError, ValueError, yaml.YAMLError, KeyError, TypeError, RecursionError) as error:
        raise HubError(
            f"{dataset} has no eval.yaml that names its tasks: publish it with `codesyntax push dataset`"
        ) from error
    for settings in (one.test.settings for one in probed):
        for protocol in PROTOCOLS:
            task = task_id(settings.config, protocol, settings.direction)
            if task not in known:
                raise HubError(
                    f"{dataset} has no task {task}, its eval.yaml names {', '.join(sorted(map(str, known)))}"
                )


def _headlines(entries: list[Entry]) -> dict[str, Headline]:
    """By task id."""
    found = {}
    for of in entries:
        in_mean = {
            protocol: {name for name, relation in of.protocols[protocol]["relations"].items() if relation["in_mean"]}
            for protocol in PROTOCOLS
        }
        for protocol in PROTOCOLS:
            task = task_id(of.settings.config, protocol, of.settings.direction)
            mean = of.protocols[protocol]["scores"][RULE][K]
            if mean is None:
                raise LedgerError(
                    f"there is no number for {task}: no relation that counts has edges to choose a head on"
                )
            lacks = protocol == "published" and in_mean["published"] != in_mean["held-out"]
            alike = round(of.same_relations["scores"][RULE][K][0], 2) if lacks else None
            found[task] = Headline(round(mean[0], 2), alike, of)
    return found


def _model_on_the_hub(settings: Settings, model: str) -> str | None:
    """A folder with the files of the model's repository, or None if the result names a commit of it."""
    name, revision = settings.model, settings.revision
    with plain_errors(model):
        api = client()
        if name.lower() == model.lower():  # as the Hub finds repositories
            # a commit of a pull request is there, too, and anybody may open one
            refs = api.list_repo_refs(model)
            for ref in (*refs.branches, *refs.tags):
                if any(commit.commit_id == revision for commit in api.list_repo_commits(model, revision=ref.ref)):
                    return None
            raise LedgerError(
                f"the result is of {model} at {revision}, which is no commit of its branches there: probe it again"
            )
        # a local model is tied to the repository by the digest of its configuration, tokenizer and weights
        patterns = ["*.json", "*.txt", "*.model", "*.safetensors"]
        below = ["*/*.json", "*/*.txt", "*/*.model"]  # but shards may be in folders
        folder = api.snapshot_download(model, allow_patterns=patterns, ignore_patterns=below)
    there = Location(folder, name, None).revision()
    if there != revision:
        raise LedgerError(
            f"the result is of the model {name} with the digest {revision}, but the files of {model} have {there}: "
            f"probe {model} itself, or upload the model's files first"
        )
    return folder


def _probe_again(file: Path, model: str | None, data: Path, device: str | None) -> Verification:
    verification = verify(file, model=model, data=str(data), device=device)
    if not verification.accepted:
        reasons = "; ".join(f"{check.name}: {check.found}" for check in verification.checks if not check.passed)
        said = "was probed again and is not what it says" if verification.verdict == REJECTED else UNCHECKED
        raise LedgerError(f"{file} {said} ({reasons})")
    return verification


# ---------------------------------------------------------------------------------------------------------- the files


def _title(model: str, probed: list[Probed]) -> str:
    """The same for the same results, so that pull requests are found again."""
    signatures = sorted(result.signature for one in probed for result in (one.test, one.validation))
    return f"CodeSyntax results of {model} [{hashlib.sha256(''.join(signatures).encode()).hexdigest()[:8]}]"


def _opened(api: HfApi, repo: str, kind: str, title: str) -> list:
    """The open pull requests of this user with this title."""
    user = api.whoami()["name"]
    return [
        found
        for found in api.get_repo_discussions(repo, author=user, repo_type=kind)
        if found.is_pull_request and (found.author, found.title, found.status) == (user, title, "open")
    ]


def _request(api: HfApi, repo: str, kind: str, title: str, files: dict[str, str]) -> PullRequest:
    """With those files that are not there already."""
    new = {path: content for path, content in files.items() if _there(api, repo, kind, path) != content}
    return PullRequest(repo, kind, title, new)


def _there(api: HfApi, repo: str, kind: str, path: str) -> str | None:
    """The text of a file in a repository, or None."""
    try:
        file = Path(api.hf_hub_download(repo, path, repo_type=kind))
    except EntryNotFoundError:
        return None
    try:
        return file.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise HubError(f"{path} in {repo} is no text in UTF-8: {error}; mend it first") from error


def _merged(there: str | None, ours: list[dict[str, Any]]) -> str:
    """Our results in FILE: in the place of older ones of the same tasks, other results stay as they are."""
    tasks = [_task(of) for of in ours]
    kept = [of for of in _results(there) if _task(of) not in tasks]
    return yaml.safe_dump([*kept, *ours], sort_keys=False, allow_unicode=True, width=10**6)


def _task(result: dict[str, Any]) -> tuple[Any, Any]:
    return result["dataset"]["id"], result["dataset"]["task_id"]


def _results(text: str | None) -> list[dict[str, Any]]:
    if text is None:
        return []
    try:
        found = yaml.safe_load(text) or []
        if not isinstance(found, list) or any(not {"id", "task_id"} <= of["dataset"].keys() for of in found):
            raise ValueError("expected a list of results, each with its dataset and task")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise HubError(
            f"{FILE} in the model's repository is not what the Hub reads: {reason}; mend it first"
        ) from error
    return found


def _metric(task: str) -> str:
    """The name of a task's number in `model-index`, whose readers see no other."""
    return f"{task}: top-{K} UAS, {RULE} token of the dependent"


def _card(
    there: str | None,
    model: str,
    dataset: str,
    commit: str,
    tasks: dict[str, Headline],
    source_url: str | None,
) -> str:
    """The model's card with our results in its `model-index`, in the place of older ones; the rest stays."""
    numbers: list[tuple[str, float | None, Entry]]
    numbers = [(_metric(task), headline.value, headline.entry) for task, headline in tasks.items()]
    numbers += [(_metric(task) + _ALIKE, headline.alike, headline.entry) for task, headline in tasks.items()]
    ours = [
        EvalResult(
            task_type="feature-extraction",
            dataset_type=dataset,
            dataset_name="CodeSyntax",
            dataset_config=of.settings.config,
            dataset_split="test",
            dataset_revision=commit,
            metric_type="top-k-uas",
            metric_name=name,
            metric_value=value,
            source_name="CodeSyntax" if source_url else None,
            source_url=source_url,
        )
        for name, value, of in numbers
        if value is not None
    ]
    replaced = [(dataset, name) for name, _, _ in numbers]
    try:
        card = ModelCard(there if there is not None else "---\n---\n")
        if there and card.text == there and there.lstrip("\ufeff").startswith("---"):  # we would add a second block
            raise ValueError("it is not between two lines ---, the first of which begins the file")
        assert isinstance(card.data, ModelCardData)
        kept = [of for of in card.data.eval_results or [] if (of.dataset_type, of.metric_name) not in replaced]
        card.data.model_name = card.data.model_name or model.split("/")[1]
        card.data.eval_results = [*kept, *ours]
        return card.content
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, yaml.YAMLError) as error:
        raise HubError(
            f"the card of {model} has metadata that cannot be read: {' '.join(str(error).split())}; mend it first"
        ) from error
