"""Entries of models that nobody trained: a real entry with other numbers, as consistent as those of a probe."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import random
from typing import Any

from probing.result import ProbeSettings, signature

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


def of_model(entry: dict[str, Any], name: str, skill: float, seed: int = 0, **settings: Any) -> dict[str, Any]:
    """`entry` as if the model `name` had been probed: it misses `1 - skill` of what it missed, -1 to 1.

    With a negative skill it misses edges that the other model had found. Counts stay whole numbers, they grow with k
    and from `first` and `last` to `any` as before; intervals keep their width.
    """
    entry, rng = settled(entry, name, seed, **settings), random.Random(f"{name} {seed}")
    share = {
        relation: min(1.0, max(-1.0, rng.gauss(skill, 0.15)))
        for relation in entry["protocols"]["published"]["relations"]
    }
    for protocol, of_protocol in entry["protocols"].items():
        relations = of_protocol["relations"]
        for relation, of_relation in relations.items():
            edges = of_relation["edges"]
            for rule in ("first", "any", "last"):
                for cell in of_relation[rule].values():
                    hits = round(cell["score"][0] * edges / 100)
                    hits += round(share[relation] * (edges - hits if share[relation] > 0 else hits))
                    cell["score"] = _moved(cell["score"], 100 * hits / edges)
        for rule, of_k in of_protocol["scores"].items():
            for k, score in of_k.items():
                counted = [of[rule][k]["score"][0] for of in relations.values() if of["in_mean"]]
                of_k[k] = _moved(score, sum(counted) / len(counted))
                difference = entry["differences"][protocol][rule][k]
                baseline = entry["baselines"][protocol]["combined"]["scores"][rule][k][0]
                difference["difference"] = _moved(difference["difference"], of_k[k][0] - baseline, -100)
                difference["p"] = 0.0001 if abs(of_k[k][0] - baseline) > 4 else 0.1234
    return entry


def settled(entry: dict[str, Any], name: str, seed: int = 0, **settings: Any) -> dict[str, Any]:
    """A copy of `entry` with the same numbers, as of the model `name` and with other settings."""
    entry = json.loads(json.dumps(entry))  # faster than a deep copy
    revision = hashlib.sha1(f"{name} {seed}".encode()).hexdigest()
    entry["settings"] |= {"model": name, "revision": revision, **settings}
    chosen_on = entry["chosen_on"]
    made = ProbeSettings(**{field: entry["settings"][field] for field in ProbeSettings.__dataclass_fields__})
    entry["signature"] = signature(made, entry["functions"], entry["edges"])
    validation = dataclasses.replace(made, split="validation", labels=chosen_on["labels"])
    chosen_on["signature"] = signature(validation, chosen_on["functions"], chosen_on["edges"])
    entry["ledgers"] = {
        split: hashlib.sha256(f"{name} {seed} {split}".encode()).hexdigest() for split in entry["ledgers"]
    }
    return entry


def _moved(score: list[float], to: float, least: float = 0) -> list[float]:
    """A score with an interval as wide as before; none is wide at the ends."""
    if to in (least, 100):
        return [to, to, to]
    was, low, high = score
    return [to, max(least, min(to, to - (was - low))), min(100.0, max(to, to + (high - was)))]
