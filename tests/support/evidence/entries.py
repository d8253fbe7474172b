"""Entries of models that nobody trained: real evidence with other ranks."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Any
from unittest import mock

import numpy as np

from codesyntax_metric.topk_uas import WORST_RANK
from probing.attention.result import ProbeResult, signature_of
from probing.evidence import uncertainty
from probing.evidence.gather import Evidence, Probed
from probing.evidence.uncertainty import compare, compare_means, estimate, mean_score
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


def of_model(evidence: Evidence, name: str, skill: float, seed: int = 0, **settings: Any) -> dict[str, Any]:
    """The entry of a model `name` to which about `skill` of all edges came easier than to that of `evidence`, -1 to 1.

    With a negative skill they came harder. Heads are chosen and scored by ranks as of a probe.
    """
    rng = np.random.default_rng([seed, *name.encode()])
    share = {relation: rng.normal(skill, 0.15) for relation in evidence.outcomes["published"].relations}

    def changed(result: ProbeResult) -> ProbeResult:
        ledger = result.ledger
        of_edge = np.array([share.get(relation, skill) for relation in ledger.relations])[ledger.relation]
        moved = rng.random(len(ledger)) < np.abs(of_edge)
        ranks = np.array(ledger.ranks)
        ranks[:, moved & (of_edge > 0)] //= 16
        ranks[:, moved & (of_edge < 0)] = WORST_RANK
        return ProbeResult.from_ledger(dataclasses.replace(ledger, ranks=ranks))

    probed = evidence.probed
    altered = Probed(changed(probed.test), changed(probed.validation), probed.files)
    made = Evidence(altered, evidence.baselines, evidence.edges, evidence.rivals)
    made.estimates = {protocol: estimate(outcomes, resamples=100) for protocol, outcomes in made.outcomes.items()}
    with mock.patch.object(uncertainty, "RESAMPLES", 100):
        made.comparisons = {
            protocol: compare(outcomes, evidence.baselines.outcomes[protocol]["combined"], permutations=1999)
            for protocol, outcomes in made.outcomes.items()
        }
        alike = made.outcomes["published"].only(made.outcomes["held-out"].relations)
        best = evidence.baselines.outcomes["published"]["combined"]
        (same,) = compare_means([alike, best], [(0, 1)], resamples=100, permutations=1999)
        made.same_relations = mean_score(alike), same
        made.beyond_compared = {
            avoided: compare(model.outcomes, evidence.rivals[avoided].of("combined", model), permutations=1999)
            for avoided, model in made.beyond.items()
        }
    return settled(made.entry(), name, seed, **settings)


def settled(entry: dict[str, Any], name: str, seed: int = 0, **settings: Any) -> dict[str, Any]:
    """A copy of `entry` with the same numbers, as of the model `name` and with other settings."""
    entry = json.loads(json.dumps(entry))  # faster than a deep copy
    revision = hashlib.sha1(f"{name} {seed}".encode()).hexdigest()
    entry["settings"] |= {"model": name, "revision": revision, **settings}
    chosen_on = entry["chosen_on"]
    made = Settings.model_validate({field: entry["settings"][field] for field in Settings.model_fields})
    entry["signature"] = str(signature_of(made, entry["functions"], entry["edges"]))
    validation = made.model_copy(update={"split": "validation", "labels": chosen_on["labels"]})
    chosen_on["signature"] = str(signature_of(validation, chosen_on["functions"], chosen_on["edges"]))
    entry["ledgers"] = {
        split: hashlib.sha256(f"{name} {seed} {split}".encode()).hexdigest() for split in entry["ledgers"]
    }
    return entry
