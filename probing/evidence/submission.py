"""Submissions: the results of one model, by one instrument on one config, which `submit` sends and
boards read from people whom nobody knows.

A submission has the files that a run leaves: of each split a result, for readers, and its ledger,
which is all that a board believes to be claimed. Nothing in it is derived: means, intervals and
ranks are computed from ledgers and data when somebody asks, with the functions that reports use.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from codesyntax_dataset.arguments import Paths
from codesyntax_dataset.errors import HubError, SubmissionError
from codesyntax_dataset.languages import CONFIGS
from probing.evidence.gather import by_instrument, find
from probing.evidence.headlines import Headline, Means
from probing.instruments.registry import INSTRUMENTS
from probing.models.location import reference_of
from probing.runs.ledger_file import ATTENTION
from probing.runs.records import PLAIN, JsonObject, shown
from probing.stats.intervals import Estimate

_PART = r"(?![-.])(?!.*(--|\.\.))[\w.-]{1,96}(?<![-.])"

MODEL_NAME = re.compile(rf"{_PART}(/{_PART})?(?<!\.git)", re.ASCII)
"""USER/MODEL, or the name of a local model, as the Hub allows it: no two look alike but by case."""

_REVISION = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}(\+[0-9a-f]{64})?")
_TEXT = re.compile(f"{PLAIN}{{0,200}}")

_OF_MODEL = {"model", "revision", "begin", "data", "labels", "split"}
"""Settings in which the rows of one table may differ, or which follow from the data."""


@dataclass(frozen=True)
class Submission:
    """Results by split: `results`; `files`: their JSON, if they were found as files."""

    results: Mapping[str, Any]
    files: Mapping[str, Path] = field(default_factory=dict)

    @property
    def result(self) -> Any:
        """That on the split that is scored, or the first one if there is none."""
        return self.results.get("test", next(iter(self.results.values())))

    @property
    def settings(self) -> Any:
        return self.result.settings

    @property
    def headline(self) -> Headline:
        """Raises SubmissionError for what no board takes."""
        return headline_of(self.result.instrument)

    @cached_property
    def table(self) -> dict[str, str]:
        """What the rows of its table share."""
        return table_of(self.result.instrument, self.result.PROVENANCE.of(self.result.ledger))

    @property
    def made(self) -> JsonObject:
        """Split -> how its ledger was made."""
        return {split: dict(each.ledger.settings) for split, each in self.results.items()}

    @cached_property
    def name(self) -> str:
        """The name of its table on boards, and a digest of the ledgers."""
        digests = [result.ledger.digest() for result in self.results.values()]
        digest = hashlib.sha256("".join(digests).encode()).hexdigest()[:12]
        return f"{name_of(self.table)}.{digest}"

    def check(self) -> None:
        """Raise SubmissionError for what no board takes: another instrument, settings such as those
        of a control, and results of other splits than a headline needs, or that differ in more."""
        needed = {*self.headline.splits}
        for result in self.results.values():
            check_settings(result.settings)
        if {*self.results} != needed:
            lacking = " and ".join(sorted(needed - {*self.results}))
            raise SubmissionError(f"there is no result on the split {lacking} of the same settings")
        if len({alike(result.settings) for result in self.results.values()}) > 1:
            raise SubmissionError("the results on both splits have other settings")


def alike(settings: Any) -> str:
    """What the results of a submission share."""
    return str(settings.model_dump_json(exclude={"split", "labels"}))


def submissions_in(paths: Paths) -> list[Submission]:
    """The submissions that the results in files and folders make.

    Raises what `find` does, and SubmissionError for results of instruments that no board takes.
    """
    files = by_instrument(paths)
    probed = files.pop(ATTENTION)
    submissions = [
        Submission({"test": pair.test, "validation": pair.validation}, pair.files)
        for pair in (find(probed) if probed else [])
    ]
    for name, of_instrument in files.items():
        if of_instrument:
            headline_of(name)
        for file in of_instrument:
            result = INSTRUMENTS[name].result.load(file)
            split = result.settings.split
            submissions.append(Submission({split: result}, {split: file}))
    return submissions


def headline_of(instrument: Any) -> Headline:
    """Raises SubmissionError for what no board takes."""
    known = [name for name, each in INSTRUMENTS.items() if each.submits]
    if instrument not in known:
        raise SubmissionError(
            f"boards take {', '.join(known[:-1])} and {known[-1]}, not {shown(instrument)}: publish the result with "
            "its ledger, two files that `codesyntax verify` checks"
        )
    return INSTRUMENTS[instrument].headline


def check_settings(settings: Any) -> None:
    """Raise SubmissionError for settings that no board takes, such as those of a control."""
    reason = ""
    if not MODEL_NAME.fullmatch(settings.model):
        reason = (
            f"model is {shown(settings.model)}, expected USER/MODEL or the name of a local model, of letters, digits, "
            "and - _ . between them, as the Hub allows it"
        )
    elif not _REVISION.fullmatch(settings.revision):
        reason = f"revision is {shown(settings.revision)}, expected a commit or a SHA-256"
    elif settings.config not in CONFIGS:
        reason = f"config is {shown(settings.config)}, expected one that `codesyntax build` knows"
    elif settings.deviations or getattr(settings, "random_weights", False):
        reason = f"{', '.join(settings.deviations) or 'random weights'}: a control is not a model"
    elif settings.limit is not None:
        reason = "a partial run is not published: run the whole split"
    elif not all(_TEXT.fullmatch(text) for text in _texts(settings.model_dump(mode="json"))):
        reason = "a setting is no plain text of at most 200 characters"
    if reason:
        raise SubmissionError(reason)


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for inside in value.values() if isinstance(value, dict) else value:
            yield from _texts(inside)


def table_of(instrument: str, provenance: Any) -> dict[str, str]:
    """What the rows of a table share: all settings that are not of the model or of the data, and the
    versions on which numbers depend; `provenance`: of the ledger on the split that is scored."""
    settings = provenance.settings.model_dump(mode="json", exclude=_OF_MODEL)
    parser = getattr(provenance.run, "parser", None)
    version = {"version": provenance.VERSION, "parser": parser}
    shared = {"instrument": instrument, **settings, **version}
    return {
        name: ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        for name, value in shared.items()
        if value is not None
    }


def name_of(shared: Mapping[str, str]) -> str:
    """The name of a table, of letters, digits and `._-`."""
    text = json.dumps(shared, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return f"{shared['config']}.{shared['instrument']}.{digest}"


def branch_of(model: str, commit: str) -> str:
    """The branch or tag of a model's repository that has a commit.

    Raises SubmissionError if none has it, as those of pull requests, and HubError if the Hub does
    not say.
    """
    try:
        branch = reference_of(model, commit)
    except Exception as error:  # which one depends on the HTTP client of huggingface_hub
        reason = " ".join(str(error).split())[:200]
        raise HubError(
            f"the Hub does not say which branch of {model} has {commit}: {reason}"
        ) from error
    if branch is None:
        raise SubmissionError(f"{commit} is on no branch or tag of {model}, as of a pull request")
    return branch


def scores(means: Means, system: str, against: str | None = None) -> dict[Any, Estimate]:
    """The name of a mean and a measure -> the mean of a system, or the difference to that of
    another; without those that have no number."""
    every = {}
    for name, mean in means.items():
        if mean.hits.counted:
            estimate = mean.hits.mean(system, against)
            for row, measure in enumerate(mean.hits.measures):
                every[name, measure] = estimate.at(row)
    return every
