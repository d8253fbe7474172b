"""Figure 5 of the paper: what one attention head predicts in one function, drawn as lines."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT
from probing.attention.ledger import RankLedger
from probing.models.load import load
from probing.paper.inputs import Model
from probing.paper.measured import Measured
from probing.report.attention_page import attention_over
from probing.report.figures import Predicted
from probing.report.pages import shown
from probing.runs.data import load_functions

TOKENS = (10, 60)
"""The least and the most tokens of a function that is drawn."""


class HeadExample(NamedTuple):
    """The edges of one relation in one function, and the predictions of the best head for it.

    `tokens`: their texts; `head`: layer and head; `score`: top-1 UAS of this head over all functions, in percent.
    """

    model: str
    function: str
    relation: str
    head: tuple[int, int]
    score: float
    tokens: list[str]
    edges: list[Predicted]


def example(model: Model, data: Path, measured: Measured, ledger: Path, device: str | None) -> HeadExample | None:
    """A function for the relation in which a model gains most on the best offset: the one with most of its edges, of
    equals the first; None if no function has any and as many tokens as TOKENS says.

    `data`: the dataset; `ledger`: the file with the model's ranks. The model runs on this function.
    """
    ranks = RankLedger.open(ledger)
    ours, offset = (
        scores["first"]["relations"] for scores in (measured.models[model.name], measured.baselines["offset"])
    )
    gains = {name: one["1"]["score"] - offset[name]["1"]["score"] for name, one in ours.items() if one["in_mean"]}
    for relation in sorted(gains, key=lambda name: (-gains[name], name)):
        fitting = (ranks.tokens >= TOKENS[0]) & (ranks.tokens <= TOKENS[1])
        places = ranks.function[fitting & (ranks.relation == ranks.relations.index(relation))]
        if len(places):
            function, config = int(np.bincount(places).argmax()), measured.config
            best = ours[relation]["1"]
            dataset, _ = load_functions(data, config, "test")
            one = shown(None, dataset[function]["id"], data, config, "test")
            attention = attention_over(load(model.given, device=device), one, config)
            rows = {token: row for row, token in enumerate(attention.readers.tolist())}
            first = attention.tokens[best["layer"], best["head"], :, 0]
            edges = []
            for edge in one.edges:
                if edge.relation == relation:
                    reader, sought = edge.head, edge.first
                    if attention.direction != HEAD_TO_DEPENDENT:
                        reader, sought = sought, reader
                    edges.append(Predicted(reader, sought, int(first[rows[reader]]) if reader in rows else None))
            texts = [one.code[start:end] for start, end in zip(one.start.tolist(), one.end.tolist())]
            head = best["layer"], best["head"]
            return HeadExample(model.name, one.name, relation, head, best["score"], texts, edges)
    return None
