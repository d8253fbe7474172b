"""Language models one of whose heads solves a relation and carries what the model needs: all instruments must find it."""

from __future__ import annotations

from pathlib import Path
from string import ascii_lowercase

import datasets
import numpy as np
from support.models.copying_models import BYTES, HEADS, planted

from codesyntax_dataset.protocol import BEYOND_OFFSET, HELD_OUT
from probing import ablate, probe
from probing.instruments.silencing.hits import silencing_effects
from probing.report.findings import Findings, read_findings
from probing.report.silencing import MOST, how_it_serves

RELATION = "If:if->test"
_LETTERS = 24
_CARRIED = 0.8  # share of the functions whose capital letter tells the small one


def functions(
    causal: bool, number: int, rng: np.random.Generator, capitals: str = ascii_lowercase
) -> datasets.Dataset:
    """Letters with a capital one, and three times a small one, mostly the same: edges between, as long as chance has
    it. A decoder looks back to the capital letter, a head token; other models look from head tokens to it."""
    rows = []
    for index in range(number):
        letters = rng.choice(list(ascii_lowercase), _LETTERS).tolist()
        capital, *small = rng.choice(_LETTERS, 4, replace=False).tolist()
        if causal:
            capital, *small = sorted([capital, *small])
        sought = rng.choice(list(capitals)).upper()
        for place in small:
            letters[place] = sought.lower() if rng.random() < _CARRIED else letters[place]
        letters[capital] = sought
        ends = [(capital, place) if causal else (place, capital) for place in sorted(small)]
        rows.append(
            {
                "id": index,
                "code": "".join(letters),
                "token_start": list(range(_LETTERS)),
                "token_end": list(range(1, _LETTERS + 1)),
                "relations": [
                    {"relation": RELATION, "head": one, "first": other, "last": other}
                    for one, other in ends
                ],
            }
        )
    return datasets.Dataset.from_list(rows)


def splits(seed: int, number: int = 60) -> datasets.DatasetDict:
    """So many functions a split, for a decoder if the seed is odd. Capital letters of the splits are others, so that
    what is learned of words on validation does not find those of test."""
    rng = np.random.default_rng(seed)
    halves = {"validation": ascii_lowercase[::2], "test": ascii_lowercase[1::2]}
    return datasets.DatasetDict(
        {split: functions(bool(seed % 2), number, rng, of) for split, of in halves.items()}
    )


def found(seed: int, data: datasets.DatasetDict, folder: Path) -> dict[str, bool]:
    """Instrument -> whether it finds the head of a planted model, and says so: the probe beside the best baseline, the
    score beyond offsets beside the next best, and `ablate`, in which it serves most of its layer."""
    copier = seed // 2 % HEADS
    model = planted(bool(seed % 2), copier, seed), BYTES
    for split in data:
        probe(model, data, split=split, output=folder)
    silenced = ablate(model, data, output=folder)
    (findings,) = read_findings(
        [path for path in folder.glob("*.json") if ".silencing." not in path.name], data
    )
    (subject,) = findings.subjects
    effects = silencing_effects(silenced)
    return {
        "probe": _finds(findings, subject.name, HELD_OUT, copier),
        "beyond": _finds(findings, subject.name, BEYOND_OFFSET, copier),
        "ablate": RELATION in effects
        and how_it_serves(effects[RELATION]) == MOST
        and silenced.heads[RELATION].best == (0, copier),
    }


def _finds(findings: Findings, name: str, protocol: str, copier: int) -> bool:
    """Whether the head is the best one, and significantly better than the best baseline."""
    score = findings.score(name, protocol, group=RELATION)
    gain = findings.difference(name, protocol, group=RELATION)
    return (
        bool(score and gain and gain.value > 0 and gain.p < 0.05) and score.chosen == f"0-{copier}"
    )
