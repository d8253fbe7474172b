"""Export results for other tools: as submissions to boards, as one CSV file, or for the store of
Every Eval Ever (schema 0.3.0).

All three are written from submissions, so that their numbers are those of boards. In the store, a
result is a JSON file of metrics with a file of instances beside it: what the model scores in each
function, without the text of the function.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import logging
import math
import os
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset import atomic
from codesyntax_dataset.arguments import checked
from codesyntax_dataset.errors import ArgumentError, EntryError, LedgerError
from codesyntax_dataset.owned_folder import check_owned
from codesyntax_dataset.protocol import HELD_OUT
from codesyntax_dataset.tasks import RESTORED, RULE, K
from probing.evidence.gather import results_for_entries, submission_of
from probing.evidence.submission import Submission, load
from probing.evidence.submission_attention import AttentionSubmission, MeanCell
from probing.evidence.submission_masked import MaskedSubmission
from probing.instruments.masking.hits import T1
from probing.runs.ledger_file import MASKING
from probing.stats.hits import PERCENT_UNIT
from probing.stats.hits_file import SUFFIX
from probing.stats.intervals import Estimate

logger = logging.getLogger(__name__)

EXPORT_FORMATS = ENTRY, CSV, EVERY_EVAL_EVER = "entry", "csv", "every-eval-ever"

RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")
"""Between those who evaluated and those who made the model, in the terms of the store."""

SCHEMA = "0.3.0"

TABLE = "results.csv"

_HEADLINE: MeanCell = (HELD_OUT, RULE, K)
_BOUNDS = {"percent": (0, 100), "nats": ("-Infinity", 0)}
_PARQUET = "PAR1"
_MARK = 10  # so many characters tell our files from foreign ones

PARAMETERS = ("protocol", "rule", "k", "relation", "head", "outcome", "node_type")


UNKNOWN_SCORE = Estimate(math.nan, math.nan, math.nan, math.nan, 0)


class Number(NamedTuple):
    """A number of a submission: its `mean`, what that is compared with, `reference`, and the
    `difference`.

    `id`: unique in it; `name`: what it measures; `parameters`: some of PARAMETERS; `unit`: percent
    or nats.
    """

    id: str
    name: str
    parameters: dict[str, str]
    unit: str
    mean: Estimate
    reference: Estimate = UNKNOWN_SCORE
    difference: Estimate = UNKNOWN_SCORE

    @property
    def parts(self) -> dict[str, dict[str, float | None]]:
        """The three estimates, each by `value`, `low` and `high`; None for what is not known."""
        return {part: _ends(getattr(self, part)) for part in ("mean", "reference", "difference")}

    @property
    def p(self) -> float | None:
        """That of the difference."""
        if np.isnan(self.difference.p):
            return None
        return self.difference.p


def _ends(estimate: Estimate) -> dict[str, float | None]:
    ends = zip(("value", "low", "high"), estimate)
    return {name: None if np.isnan(value) else value for name, value in ends}


class Instance(NamedTuple):
    """The share, from 0 to 1, that a model gets right of the edges or nodes `asked` in one
    `function`, by its place in the split; `number`: the id of the number that it belongs to."""

    function: int
    number: str
    share: float
    asked: int


@checked
def export(
    results: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    format: str = CSV,
    data: Any = None,
    organization: str | None = None,
    relationship: str = "third_party",
) -> list[Path]:
    """Write results for other tools.

    Args:
        results: files or folders of `probe`, for test and validation, and of `mask`; or files of
        hits. output: the folder to write to. format: `entry`, the file of hits that boards read;
        `csv`, one file with a row for each number; or
            `every-eval-ever`.
        data: the dataset, if not the one in the results.
        organization: who evaluated, for `every-eval-ever`.
        relationship: one of RELATIONSHIPS, to the makers of the model.

    Returns:
        The files.

    Raises:
        ArgumentError: for other formats and relationships, or no organization. LedgerError: for
        damaged results, those of other instruments, and a foreign file where one would be written.
        EntryError: for partial results and those of controls, if there are no others; otherwise
        these are left out with a warning.
    """
    for name, value, known in (
        ("format", format, EXPORT_FORMATS),
        ("relationship", relationship, RELATIONSHIPS),
    ):
        if value not in known:
            raise ArgumentError(f"{name} is {value!r}, expected one of {', '.join(known)}")
    if format == EVERY_EVAL_EVER and not organization:
        raise ArgumentError(
            "the organization is missing: Every Eval Ever asks who evaluated the model (--organization NAME)"
        )
    entries = read(results, data)
    if format == ENTRY:
        contents: dict[str, str | bytes] = {entry.file_name: entry.to_bytes() for entry in entries}
    elif format == CSV:
        contents = {TABLE: table(entries)}
    else:
        contents = {}
        for entry in entries:
            contents |= for_store(entry, str(organization), relationship, int(time.time()))
    files = {Path(output) / name: content for name, content in contents.items()}
    for file, content in files.items():
        mark = content[:_MARK] if isinstance(content, str) else _PARQUET
        check_owned(file.parent, "export", (file.name, mark), only=[file.name])
    return [atomic.write(file, content) for file, content in files.items()]


def read(results: Sequence[str | os.PathLike[str]], data: Any = None) -> list[Submission]:
    """The submissions among `results`, and those of the others."""
    entries = []
    others = []
    for path in map(Path, results):
        files = sorted(path.glob(f"*{SUFFIX}")) if path.is_dir() else [path]
        if files and all(file.name.endswith(SUFFIX) for file in files):
            entries += [load(file) for file in files]
        else:
            others.append(path)
    refused = {}
    for result in results_for_entries(others):
        try:
            entries.append(submission_of(result, data))
        except EntryError as error:
            refused[result.files["test"]] = error
    if refused and not entries:
        raise next(iter(refused.values()))
    for file, reason in refused.items():
        logger.warning("left out %s: %s", file, reason)
    if not entries:
        raise LedgerError(
            f"{', '.join(map(str, results))} has nothing to export: expected results of `probe`, for test and "
            "validation, or of `mask`"
        )
    return entries


def numbers(entry: Submission) -> Iterator[Number]:
    """Every mean of a submission, then, by relation or node type, what the first of them is a mean
    of."""
    tables = entry.tables
    means = entry.means(tables)
    systems = ((entry.SYSTEM,), (entry.RIVAL,), (entry.SYSTEM, entry.RIVAL))
    scores = [entry.estimates(means, *compared) for compared in systems]
    for cell in scores[0]:
        of_cell = [estimates[cell] for estimates in scores]
        yield (
            _uas(cell, *of_cell)
            if isinstance(entry, AttentionSubmission)
            else _masked_rows(cell, *of_cell)
        )
    if isinstance(entry, AttentionSubmission):
        hits = tables[HELD_OUT]
        headline = hits.where(measures=hits.measures[:1]).by_group(entry.SYSTEM)
        for column, relation in enumerate(hits.names):
            score = headline.at(0, column)
            head = entry.head(HELD_OUT, column, 0)
            yield _uas(_HEADLINE, score, relation=relation, head=head)
    elif isinstance(entry, MaskedSubmission):
        for name, outcomes in entry.by_type(tables).items():
            for outcome, arms in outcomes.items():
                t1, t0 = (UNKNOWN_SCORE._replace(value=value) for value in arms[:2])
                yield _masked_rows(outcome, t1, t0, arms.effect, node_type=name)


def _uas(cell: MeanCell, *scores: Estimate, **best_head: str) -> Number:
    """The number of a mean, or of a relation, with its `best_head`."""
    mean, rule, k = cell
    parameters = {"protocol": mean, "rule": rule, "k": k, **best_head}
    return Number(
        _id_of(cell, best_head.get("relation")), f"top-{k} UAS", parameters, "percent", *scores
    )


def _id_of(cell: MeanCell, relation: str | None = None) -> str:
    parts = cell if relation is None else (*cell, relation)
    return ".".join(parts).replace(", ", "-")


def _masked_rows(outcome: str, *scores: Estimate, **node_type: str) -> Number:
    parameters = {"outcome": outcome, **node_type}
    unit = "nats" if outcome == "log_probability" else "percent"
    return Number(
        _masked_id(outcome, *node_type.values()), f"{T1} {outcome}", parameters, unit, *scores
    )


def _masked_id(*parts: str) -> str:
    return ".".join([MASKING, *parts])


def instances(entry: Submission) -> Iterator[Instance]:
    """The successes of the model in each function: of held-out top-1 UAS, by relation; or of
    restored sub-tokens, by node type."""
    tables = entry.tables
    if isinstance(entry, AttentionSubmission):
        hits = tables[HELD_OUT]
        measure = 0
        ids = {name: _id_of(_HEADLINE, name) for name in hits.groups}
    else:
        (hits,) = entry.means(tables).values()
        measure = hits.measures.index(RESTORED)
        ids = {name: _masked_id(RESTORED, name) for name in hits.groups}
    for name, group in hits.groups.items():
        shares = hits.of_cluster(name, entry.SYSTEM)[measure] / (
            1 if hits.unit == PERCENT_UNIT else 100
        )
        for function, share, asked in zip(hits.of(name), shares, group.n):
            yield Instance(int(function), ids[name], float(share), int(asked))


# ------------------------------------------------------------------------------------------------------------------ CSV


def table(entries: Sequence[Submission]) -> str:
    """CSV with a row for each number; values are exact."""
    rows = [_row(entry, number) for entry in entries for number in numbers(entry)]
    columns = list(rows[0])
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _row(entry: Submission, number: Number) -> dict[str, object]:
    settings = entry.settings
    row = {
        name: getattr(settings, name) for name in ("model", "revision", "data", "config", "split")
    }
    row |= {"number": number.id, "name": number.name, "unit": number.unit}
    row |= {name: number.parameters.get(name) for name in PARAMETERS}
    for part, ends in number.parts.items():
        row |= {part if end == "value" else f"{part}, {end}": value for end, value in ends.items()}
    return row | {"p": number.p, "signature": entry.signature}


# ------------------------------------------------------------------------------------------------------ Every Eval Ever


def for_store(entry: Submission, organization: str, relationship: str, now: int) -> dict[str, str]:
    """Path -> text of the two files of an entry in the store; `now`: seconds since 1970."""
    settings = entry.settings
    developer, slash, name = str(settings.model).rpartition("/")
    benchmark = f"codesyntax-{entry.instrument}"
    unique = uuid.UUID(bytes=hashlib.sha256(entry.to_bytes()).digest()[:16], version=4)
    folder = f"data/{benchmark}/{developer if slash else 'unknown'}/{name}"
    shared = {
        "schema_version": SCHEMA,
        "evaluation_id": f"{benchmark}.{settings.config}/{settings.model}/{now}",
    }
    measured = list(numbers(entry))
    called = {number.id: f"{benchmark}.{settings.config}.{number.id}" for number in measured}
    lines = []
    for instance in instances(entry):
        record = _instance(entry, instance, called[instance.number]) | shared
        lines.append(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")
    samples = "".join(lines)
    record = {
        **shared,
        "retrieved_timestamp": str(now),
        "source_metadata": {
            "source_name": "CodeSyntax",
            "source_type": "evaluation_run",
            "source_organization_name": organization,
            "evaluator_relationship": relationship,
        },
        "eval_library": {
            "name": "codesyntax",
            "version": entry.versions["codesyntax"],
            "additional_details": dict(entry.versions),
        },
        "model_info": {
            "name": settings.model,
            "id": settings.model,
            **({"developer": developer} if slash else {}),
            "additional_details": {
                "deployment_type": "self_deployed",
                "model_availability": "open_weights" if slash else "unknown",
                **_texts({"revision": settings.revision, **entry.run.model_dump()}),
            },
        },
        "evaluation_results": [_metric(entry, number, called[number.id]) for number in measured],
        "detailed_evaluation_results": {
            "format": "jsonl",
            "file_path": f"{folder}/{unique}_samples.jsonl",
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(samples.encode()).hexdigest(),
            "total_rows": len(lines),
        },
    }
    text = json.dumps(record, ensure_ascii=False, allow_nan=False, indent=1) + "\n"
    return {f"{folder}/{unique}.json": text, f"{folder}/{unique}_samples.jsonl": samples}


def _metric(entry: Submission, number: Number, name: str) -> dict[str, object]:
    settings = entry.settings
    parts = number.parts
    low, high = _BOUNDS[number.unit]
    bounds = {"min_score": low, "max_score": high}
    functions = entry.scored
    uncertainty: dict[str, object] = {"num_samples": functions}
    if parts["mean"]["low"] is not None:
        uncertainty |= {
            "confidence_interval": {
                "lower": parts["mean"]["low"],
                "upper": parts["mean"]["high"],
                "confidence_level": 0.95,
                "method": "Student's t over functions, after Hall's transformation",
            }
        }
    details: dict[str, object] = {"p": number.p}
    for part in ("reference", "difference"):
        details |= {f"{part} {end}": value for end, value in parts[part].items()}
    hub = {"hf_repo": repo} if "/" in (repo := settings.data.partition("@")[0]) else {}
    return {
        "evaluation_result_id": number.id,
        "evaluation_name": name,
        "source_data": {
            "dataset_name": "CodeSyntax",
            "source_type": "hf_dataset" if hub else "other",
            **({**hub, "hf_split": settings.split, "samples_number": functions} if hub else {}),
            "additional_details": _texts(
                settings.model_dump(include={"data", "labels", "config", "split"})
            ),
        },
        "metric_config": {
            "evaluation_description": _DESCRIPTIONS[entry.instrument],
            "metric_id": f"codesyntax.{number.name.replace(' ', '_')}",
            "metric_name": number.name,
            "metric_kind": "accuracy" if number.unit == "percent" else "log_likelihood",
            "metric_unit": number.unit,
            "metric_parameters": number.parameters,
            "lower_is_better": False,
            "score_type": "continuous",
            **bounds,
        },
        "score_details": {
            "score": number.mean.value,
            "details": _texts(details),
            "uncertainty": uncertainty,
        },
        "generation_config": {
            "generation_args": {},
            "additional_details": _texts(
                {**settings.model_dump(mode="json"), "signature": entry.signature}
            ),
        },
    }


_DESCRIPTIONS = {
    "attention": "Share of syntactic edges whose token is among the k that an attention head attends to most. "
    "reference: the best offset or keyword.",
    "masking": "The share of masked sub-tokens that a masked language model restores when all nodes of a type are "
    "masked (T1). reference: as many sub-tokens masked by the control (T0).",
}


def _texts(values: dict[str, object]) -> dict[str, str]:
    """Values as text, as the store wants them; without those that are None."""
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in values.items()
        if value is not None
    }


def _instance(entry: Submission, instance: Instance, name: str) -> dict[str, object]:
    settings = entry.settings
    sample = f"{settings.data}/{settings.config}/{settings.split}/{instance.function}"
    share = float(np.round(instance.share, 6))
    return {
        "model_id": settings.model,
        "evaluation_name": name,
        "evaluation_result_id": instance.number,
        "sample_id": sample,
        "sample_hash": hashlib.sha256(sample.encode()).hexdigest(),
        "interaction_type": "single_turn",
        "input": {"raw": sample, "reference": []},
        "output": {"raw": [str(share)]},
        "answer_attribution": [],
        "evaluation": {"score": share, "is_correct": share == 1},
        "metadata": {"asked": str(instance.asked)},
    }
