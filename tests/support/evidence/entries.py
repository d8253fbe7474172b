"""Entries of models that nobody trained: real evidence with other ranks."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
from functools import cache
from typing import Any

import numpy as np
from support.evidence.hits_files import opened

from codesyntax_metric.topk_uas import WORST_RANK
from probing.evidence.gather import Evidence, Probed, WholeSplits
from probing.evidence.submission_attention import AttentionSubmission
from probing.instruments.attention.result import ProbeResult
from probing.runs.data import find_data
from probing.runs.settings import Settings

MODELS = (
    ("microsoft/codebert-base", "roberta"),
    ("microsoft/graphcodebert-base", "roberta"),
    ("FacebookAI/roberta-base", "roberta"),
    ("answerdotai/ModernBERT-base", "modernbert"),
    ("google-bert/bert-base-uncased", "bert"),
    ("Salesforce/codet5-base", "t5"),
    ("bigcode/starcoder2-3b", "starcoder2"),
    ("Qwen/Qwen2.5-Coder-1.5B", "qwen2"),
)


def other_model(evidence: Evidence, name: str, skill: float, seed: int = 0) -> Evidence:
    """The evidence on a model `name` to which about `skill` of all edges came easier than to that of `evidence`, -1 to 1.

    With a negative skill they came harder. Heads are chosen and scored by ranks as of a probe.
    """
    rng = np.random.default_rng([seed, *name.encode()])
    share = {relation: rng.normal(skill, 0.15) for relation in evidence.hits["published"].relations}

    def changed(result: ProbeResult) -> ProbeResult:
        ledger = result.ledger
        of_edge = np.array([share.get(relation, skill) for relation in ledger.relations])[
            ledger.relation
        ]
        moved = rng.random(len(ledger)) < np.abs(of_edge)
        ranks = np.array(ledger.ranks)
        ranks[:, moved & (of_edge > 0)] //= 16
        ranks[:, moved & (of_edge < 0)] = WORST_RANK
        return ProbeResult.from_ledger(dataclasses.replace(ledger, ranks=ranks))

    probed = evidence.probed
    altered = Probed(changed(probed.test), changed(probed.validation), probed.files)
    return Evidence(altered, evidence.splits)


whole_splits = cache(WholeSplits)  # read once


def entry_of(evidence: Evidence, data: Any = None) -> AttentionSubmission:
    """What is published of a model, of which `evidence` has all functions that it could read; `data`: as of `gather`."""
    probed = evidence.probed
    settings = probed.test.settings
    AttentionSubmission.check_settings(settings)
    location = find_data(probed.files["test"], settings) if data is None else data
    return whole_splits(location, settings.config, settings.direction).submission(probed)


def of_model(
    evidence: Evidence, name: str, skill: float, seed: int = 0, **settings: Any
) -> dict[str, Any]:
    """The entry of that model, as `hits_files` has it."""
    entry = opened(entry_of(other_model(evidence, name, skill, seed)).to_bytes())
    return settled(entry, name, seed, **settings)


def settled(entry: dict[str, Any], name: str, seed: int = 0, **settings: Any) -> dict[str, Any]:
    """A copy of `entry` with the same numbers, as of the model `name` and with other settings."""
    entry = copy.deepcopy(entry)
    revision = hashlib.sha1(f"{name} {seed}".encode()).hexdigest()
    for field, value in {"model": name, "revision": revision, **settings}.items():
        entry["settings" if field in Settings.model_fields else "run"][field] = value
    entry["ledgers"] = {
        split: hashlib.sha256(f"{name} {seed} {split}".encode()).hexdigest()
        for split in entry["ledgers"]
    }
    return entry
