"""Masking results of models that nobody ran: ledgers with numbers that a model could have."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from probing.instruments.masking.result import (
    DROPPED,
    FILLED,
    ROW,
    SIMILARITIES,
    MaskingLedger,
    MaskProvenance,
    MaskResult,
    MaskRun,
    MaskSettings,
)

TYPES = {"parameters": 1.0, "if_statement": 0.6, "string": 0.3}
"""Node type -> the share of functions that have it."""

VERSIONS = ("codesyntax", "torch", "transformers", "tokenizers", "datasets", "numpy")


def masked(
    name: str = "user/base",
    skill: float = 0.6,
    functions: int = 20,
    draws: int = 2,
    failed: int = 0,
    **settings: Any,
) -> MaskResult:
    """A model that restores a sub-token with about the probability `skill` in T0, and a little less in T1.

    `failed`: pairs of a function and a node type whose T1 could not be compared.
    """
    names = tuple(settings.pop("node_types", TYPES))
    # the same functions for every model
    has = np.random.default_rng(0).random((functions, len(names)))
    pairs = [
        (place, of)
        for place in range(functions)
        for of in range(len(names))
        if has[place, of] < TYPES[names[of]]
    ]
    sizes = np.random.default_rng(1).integers(1, 30, len(pairs))
    rng = np.random.default_rng([*name.encode(), int(1000 * skill)])
    rows = np.zeros((len(pairs), draws + 1), ROW)
    for (place, of), size, copies in zip(pairs, sizes, rows):
        copies["function"], copies["node_type"], copies["copy"] = place, of, np.arange(draws + 1)
        copies["seed"], copies["masked"] = rng.integers(2**40, size=draws + 1), size
        hits = rng.binomial(size, np.where(np.arange(draws + 1) == 0, skill - 0.1, skill))
        copies["hits_1"] = hits
        lost = size - hits
        # nodes of other types, one for each lost sub-token, of 60
        copies["jaccard"] = (60 - lost) / (60 + lost)
        copies["sorensen_dice"] = (60 - lost) / 60
        copies["levenshtein"] = (60 - lost) / 60 * 0.99 ** (lost > 0)
        for filler, kept in (("letter", 0.5), ("deleted", 0.4)):  # of the nodes of what is masked
            nodes = 60 - (1 - kept) * size
            copies[f"{filler}_jaccard"] = nodes / (120 - nodes)
            copies[f"{filler}_sorensen_dice"] = copies[f"{filler}_levenshtein"] = nodes / 60
        copies["commonest"] = size // 10
        copies["log_probability"] = np.round(-3 * lost / size - 0.1, 3)
    for column in (*SIMILARITIES, *FILLED):
        rows[column][:failed, 0] = np.nan
    made = MaskSettings(
        **{
            "model": name,
            "revision": hashlib.sha1(name.encode()).hexdigest(),
            "data": "codesyntax@2.0.abcdef",
            "labels": "0123456789ab",
            "config": "python",
            "split": "test",
            "protocol": "current",
            "node_types": names,
            "rate": 1.0,
            "control": "sub-tokens",
            "random_weights": False,
            "draws": draws,
            "seed": 0,
            "max_length": 511,
            "limit": None,
        }
        | settings
    )
    run = MaskRun(
        family="bert",
        device="cpu",
        output_layer="masked positions",
        parser="tree-sitter 1.2, tree-sitter-python 3.4",
    )
    provenance = MaskProvenance(
        settings=made,
        version=MaskProvenance.VERSION,
        functions=functions,
        skips={"more than 511 sub-tokens": 2},
        dropped=dict(zip(DROPPED, (functions * len(names) - len(pairs), 0, 0, 0))),
        commonest=dict.fromkeys(names, (5, 5)),
        run=run,
        versions=dict.fromkeys(VERSIONS, "1.0"),
    )
    return MaskResult.from_ledger(
        MaskingLedger(list(names), rows.reshape(-1), provenance.model_dump(mode="json"))
    )
