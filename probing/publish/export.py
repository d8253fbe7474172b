"""Export results for other tools: as entries, as one CSV file, or for the store of Every Eval Ever (schema 0.3.0).

All three are written from entries, so that their numbers are those of boards. In the store, a result is a JSON file of
metrics with a file of instances beside it: what the model scores in each function, without the text of the function.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset import atomic
from codesyntax_dataset.arguments import checked
from codesyntax_dataset.errors import ArgumentError, LedgerError
from codesyntax_dataset.owned_folder import check_owned
from codesyntax_dataset.protocol import HELD_OUT
from codesyntax_dataset.tasks import RESTORED, RULE, K
from probing.evidence.entry import Entry, Score, instead_of_board, load
from probing.evidence.entry_attention import AttentionEntry, AttentionScores, Cell
from probing.evidence.entry_masked import ARMS, MaskedEntry, MaskedScores
from probing.evidence.gather import by_instrument, entry_of, find, of_file
from probing.runs.ledger_file import ATTENTION, MASKING

FORMATS = ENTRY, CSV, EVERY_EVAL_EVER = "entry", "csv", "every-eval-ever"

RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")
"""Between those who evaluated and those who made the model, in the terms of the store."""

SCHEMA = "0.3.0"

TABLE = "results.csv"

_HEADLINE: Cell = (HELD_OUT, RULE, K)
_BEGINNING = b'{"format":'  # of every entry
_BOUNDS = {"percent": (0, 100), "nats": ("-Infinity", 0)}
_MARK = 10  # so many characters tell our files from foreign ones

PARAMETERS = ("protocol", "rule", "k", "relation", "head", "outcome", "node_type")


class Number(NamedTuple):
    """A number of an entry. `id`: unique in it; `name`: what it measures; `parameters`: some of PARAMETERS; `unit`:
    percent or nats."""

    id: str
    name: str
    parameters: dict[str, str]
    unit: str
    score: Score


class Instance(NamedTuple):
    """The share, from 0 to 1, that a model gets right of the edges or nodes `asked` in one function, at `place` in the
    split; `number`: the id of the number that it belongs to."""

    place: int
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
    """Write `results` into the folder `output`; return the files.

    `results`: files or folders of `probe`, for test and validation, and of `mask`; or entries. `data`: the dataset, if
    not the one in the results. `format`: `entry`, what boards read; `csv`, one file with a row for each number;
    `every-eval-ever`, for which `organization` says who evaluated, and `relationship`, one of RELATIONSHIPS, how they
    are related to the makers of the model.

    Raises ArgumentError for other formats and relationships, or no organization; LedgerError and EntryError for results
    that are damaged, partial, of controls or of other instruments, and for a foreign file where one would be written.
    """
    for name, value, known in (("format", format, FORMATS), ("relationship", relationship, RELATIONSHIPS)):
        if value not in known:
            raise ArgumentError(f"{name} is {value!r}, expected one of {', '.join(known)}")
    if format == EVERY_EVAL_EVER and not organization:
        raise ArgumentError(
            "the organization is missing: Every Eval Ever asks who evaluated the model (--organization NAME)"
        )
    entries = read(results, data)
    if format == ENTRY:
        texts = {entry.file_name: entry.to_json() for entry in entries}
    elif format == CSV:
        texts = {TABLE: table(entries)}
    else:
        texts = {}
        for entry in entries:
            texts |= for_store(entry, str(organization), relationship, int(time.time()))
    files = {Path(output) / name: text for name, text in texts.items()}
    for file, text in files.items():
        check_owned(file.parent, "export", (file.name, text[:_MARK]), only=[file.name])
    return [atomic.write(file, text) for file, text in files.items()]


def read(results: Sequence[str | os.PathLike[str]], data: Any = None) -> list[Entry]:
    """The entries among `results`, and those of the others."""
    entries, others = [], []
    for path in map(Path, results):
        files = sorted(path.glob("*.json")) if path.is_dir() else [path]
        if files and all(file.is_file() and _begins_as_entry(file) for file in files):
            entries += [load(file) for file in files]
        else:
            others.append(path)
    found = by_instrument(others)
    left = found.pop(ATTENTION, [])
    for one in find(left) if left else []:
        entries.append(entry_of(one, data))
    masked = found.pop(MASKING, [])
    for name, files in found.items():
        if files:
            raise LedgerError(f"{files[0]}: {instead_of_board(name)}, or take the CSV tables of `codesyntax report`")
    entries += [of_file(file, data) for file in masked]
    if not entries:
        raise LedgerError(
            f"{', '.join(map(str, results))} has nothing to export: expected results of `probe`, for test and "
            "validation, or of `mask`"
        )
    return entries


def _begins_as_entry(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(len(_BEGINNING)) == _BEGINNING


def numbers(entry: Entry) -> Iterator[Number]:
    """Every mean of an entry, then, by relation or node type, what the first of them is a mean of."""
    scores = entry.scores()
    if isinstance(scores, AttentionScores):
        for cell, score in scores.cells.items():
            if score is not None:
                yield _uas(cell, score)
        for relation, found in scores.relations.items():
            if (head := found.found.get(_HEADLINE)) is not None:
                yield _uas(_HEADLINE, Score(head.score), relation=relation, head=f"{head.layer}-{head.head}")
    elif isinstance(scores, MaskedScores):
        for outcome, score in scores.cells.items():
            if score is not None:
                yield _masked(outcome, score)
        for name, of_type in scores.node_types.items():
            for outcome, score in of_type.cells.items():
                yield _masked(outcome, score, node_type=name)


def _uas(cell: Cell, score: Score, **best_head: str) -> Number:
    """The number of a mean, or of a relation, with its `best_head`."""
    mean, rule, k = cell
    parameters = {"protocol": mean, "rule": rule, "k": k, **best_head}
    return Number(_id_of(cell, best_head.get("relation")), f"top-{k} UAS", parameters, "percent", score)


def _id_of(cell: Cell, relation: str | None = None) -> str:
    parts = cell if relation is None else (*cell, relation)
    return ".".join(parts).replace(", ", "-")


def _masked(outcome: str, score: Score, **node_type: str) -> Number:
    parameters = {"outcome": outcome, **node_type}
    unit = "nats" if outcome == "log_probability" else "percent"
    return Number(_masked_id(outcome, *node_type.values()), f"{ARMS[0]} {outcome}", parameters, unit, score)


def _masked_id(*parts: str) -> str:
    return ".".join([MASKING, *parts])


def instances(entry: Entry) -> Iterator[Instance]:
    """The successes of the model in each function: of held-out top-1 UAS, by relation; or of restored sub-tokens, by
    node type."""
    if isinstance(entry, AttentionEntry):
        counted = entry.counted()[HELD_OUT]
        for name, found, hits in zip(counted.relations, counted.edges, counted.by_relation("model")):
            edges = found[found > 0]
            for place, share, asked in zip(counted.functions[found > 0], hits[0, 0] / edges, edges):
                yield Instance(int(place), _id_of(_HEADLINE, name), float(share), int(asked))
    elif isinstance(entry, MaskedEntry):
        pairs = entry.pairs()
        for node_type, place, share in zip(pairs.node_type, pairs.places, pairs.arms[RESTORED][0]):
            yield Instance(int(place), _masked_id(RESTORED, pairs.node_types[node_type]), float(share), 1)


# ------------------------------------------------------------------------------------------------------------------ CSV


def table(entries: Sequence[Entry]) -> str:
    """CSV with a row for each number; values are exact."""
    rows = [_row(entry, number) for entry in entries for number in numbers(entry)]
    columns = list(rows[0])
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _row(entry: Entry, number: Number) -> dict[str, object]:
    settings = entry.settings
    row = {name: getattr(settings, name) for name in ("model", "revision", "data", "config", "split")}
    row |= {"number": number.id, "name": number.name, "unit": number.unit}
    row |= {name: number.parameters.get(name) for name in PARAMETERS}
    for part in ("mean", "reference", "difference"):
        interval = getattr(number.score, part)
        row |= {f"{part}{suffix}": value for suffix, value in zip(("", ", low", ", high"), interval or (None,) * 3)}
    return row | {"p": number.score.p, "signature": entry.signature}


# ------------------------------------------------------------------------------------------------------ Every Eval Ever


def for_store(entry: Entry, organization: str, relationship: str, now: int) -> dict[str, str]:
    """Path -> text of the two files of an entry in the store; `now`: seconds since 1970."""
    settings = entry.settings
    developer, slash, name = str(settings.model).rpartition("/")
    benchmark = f"codesyntax-{entry.instrument}"
    unique = uuid.UUID(bytes=hashlib.sha256(entry.to_json().encode()).digest()[:16], version=4)
    folder = f"data/{benchmark}/{developer if slash else 'unknown'}/{name}"
    shared = {"schema_version": SCHEMA, "evaluation_id": f"{benchmark}.{settings.config}/{settings.model}/{now}"}
    measured = list(numbers(entry))
    called = {number.id: f"{benchmark}.{settings.config}.{number.id}" for number in measured}
    lines = [_instance(entry, one, called[one.number]) | shared for one in instances(entry)]
    samples = "".join(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n" for line in lines)
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


def _metric(entry: Entry, number: Number, name: str) -> dict[str, object]:
    settings, score = entry.settings, number.score
    low, high = _BOUNDS[number.unit]
    bounds = {"min_score": low, "max_score": high}
    functions = _functions(entry)
    uncertainty: dict[str, object] = {"num_samples": functions}
    if score.mean.low is not None and score.mean.high is not None:
        uncertainty |= {
            "confidence_interval": {
                "lower": score.mean.low,
                "upper": score.mean.high,
                "confidence_level": 0.95,
                "method": "Student's t over functions, after Hall's transformation",
            }
        }
    details = {f"{part} {end}": value for part in ("reference", "difference") for end, value in _ends(score, part)}
    hub = {"hf_repo": repo} if "/" in (repo := settings.data.partition("@")[0]) else {}
    return {
        "evaluation_result_id": number.id,
        "evaluation_name": name,
        "source_data": {
            "dataset_name": "CodeSyntax",
            "source_type": "hf_dataset" if hub else "other",
            **({**hub, "hf_split": settings.split, "samples_number": functions} if hub else {}),
            "additional_details": _texts(settings.model_dump(include={"data", "labels", "config", "split"})),
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
            "score": score.mean.value,
            "details": _texts({**details, "p": score.p}),
            "uncertainty": uncertainty,
        },
        "generation_config": {
            "generation_args": {},
            "additional_details": _texts({**settings.model_dump(mode="json"), "signature": entry.signature}),
        },
    }


_DESCRIPTIONS = {
    "attention": "Share of syntactic edges whose token is among the k that an attention head attends to most. "
    "reference: the best offset or keyword.",
    "masking": "The share of masked sub-tokens that a masked language model restores when all nodes of a type are "
    "masked (T1). reference: as many sub-tokens masked by the control (T0).",
}


def _functions(entry: Entry) -> int:
    """The number of functions in the numbers, those that the model could not read among them."""
    if isinstance(entry, AttentionEntry):
        return entry.scored
    return int(entry.scores().shares.shape[1])


def _ends(score: Score, part: str) -> list[tuple[str, float | None]]:
    return list(zip(("value", "low", "high"), getattr(score, part) or ()))


def _texts(values: dict[str, object]) -> dict[str, str]:
    """Values as text, as the store wants them; without those that are None."""
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in values.items()
        if value is not None
    }


def _instance(entry: Entry, one: Instance, name: str) -> dict[str, object]:
    settings = entry.settings
    sample = f"{settings.data}/{settings.config}/{settings.split}/{one.place}"
    share = float(np.round(one.share, 6))
    return {
        "model_id": settings.model,
        "evaluation_name": name,
        "evaluation_result_id": one.number,
        "sample_id": sample,
        "sample_hash": hashlib.sha256(sample.encode()).hexdigest(),
        "interaction_type": "single_turn",
        "input": {"raw": sample, "reference": []},
        "output": {"raw": [str(share)]},
        "answer_attribution": [],
        "evaluation": {"score": share, "is_correct": share == 1},
        "metadata": {"asked": str(one.asked)},
    }
