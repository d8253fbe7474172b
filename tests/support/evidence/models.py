"""Results of models that nobody trained: real ones with other ranks."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from codesyntax_metric.topk_uas import WORST_RANK
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.result import ProbeResult

Results = dict[str, Any]


def with_settings(ledger: Any, **changed: Any) -> Any:
    """The ledger, said to be of other settings."""
    settings = {**ledger.settings["settings"], **changed}
    return dataclasses.replace(ledger, settings={**ledger.settings, "settings": settings})


def named(results: Results, name: str, **settings: Any) -> Results:
    """The same numbers, as of the model `name` and with other settings."""
    revision = hashlib.sha1(name.encode()).hexdigest()
    changed = {"model": name, "revision": revision, **settings}
    return {
        split: type(result).from_ledger(with_settings(result.ledger, **changed))
        for split, result in results.items()
    }


def other_model(results: Results, name: str, skill: float, **settings: Any) -> Results:
    """A model to which about `skill` of all edges came easier than to that of the results, -1 to 1; with a negative
    skill they came harder."""
    rng = np.random.default_rng([*name.encode()])

    def changed(ledger: RankLedger) -> RankLedger:
        moved = rng.random(len(ledger)) < np.abs(skill)
        ranks = np.array(ledger.ranks)
        ranks[:, moved] = ranks[:, moved] // 16 if skill > 0 else WORST_RANK
        return dataclasses.replace(ledger, ranks=ranks)

    made = {
        split: ProbeResult.from_ledger(changed(result.ledger)) for split, result in results.items()
    }
    return named(made, name, **settings)


def save(results: Results, folder: Path) -> list[Path]:
    """The results in a folder."""
    return [result.save(folder) for result in results.values()]
