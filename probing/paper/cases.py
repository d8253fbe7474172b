"""The paper's Figures 1, 5 and 9 to 15: what one attention head predicts in one function, as cases
of one page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from probing.instruments.attention.ledger import RankLedger
from probing.models.load import load
from probing.paper.inputs import Model
from probing.report import specs
from probing.report.dataset import labels_case
from probing.report.document import Table
from probing.report.folder import MODELS
from probing.report.pages import shown
from probing.report.show import WEIGHT_BYTES, attention_case
from probing.runs.data import load_functions

SHORT_FUNCTION = (10, 60)
"""The least and the most tokens of a function that is shown."""


class CaseOfPaper(NamedTuple):
    """A case by its number; `head`: the one that the paper shows, of CuBERT."""

    figure: int
    config: str
    relation: str
    head: str = ""


CASES = (
    CaseOfPaper(1, "python", "Call:func->args"),
    CaseOfPaper(5, "python", "If:if->else", "17-2"),
    CaseOfPaper(5, "java", "If:if->else", "17-2"),
    CaseOfPaper(9, "python", "Call:func->args", "15-11"),
    CaseOfPaper(10, "java", "Call:func->args", "19-9"),
    CaseOfPaper(11, "python", "Assign:target->value", "15-10"),
    CaseOfPaper(12, "java", "Assign:target->value", "20-10"),
    CaseOfPaper(13, "java", "If:if->else", "9-10"),
    CaseOfPaper(14, "python", "For:for->body", "18-4"),
    CaseOfPaper(15, "java", "For:for->body", "16-5"),
)
"""Figure 1 has no head: it shows labels over one piece of code."""

CASES_PAGE = f"{MODELS}/cases.html"
"""The page of all cases, in the folder of the report."""


class Case(NamedTuple):
    """A case of a model: its `row` in the table, and its `content` on the page."""

    figure: int
    row: list[Any]
    content: dict[str, Any]


def find(model: Model, data: Path, config: str, ledger: Path, device: str | None) -> Iterator[Case]:
    """The cases of a config: each in the function with most edges of the relation, of those as long
    as SHORT_FUNCTION says, of equals the first; without those that no such function has. The head
    is the best on all other functions.

    `data`: the dataset; `ledger`: the file with the model's ranks. The model runs on these
    functions.
    """
    ranks = RankLedger.open(ledger)
    short = (ranks.tokens >= SHORT_FUNCTION[0]) & (ranks.tokens <= SHORT_FUNCTION[1])
    dataset, _ = load_functions(data, config, "test")
    encoder = load(model.location, device=device)
    for published in CASES:
        relation = published.relation
        if published.config != config or relation not in ranks.relations:
            continue
        named = ranks.relation == ranks.relations.index(relation)
        counts = np.bincount(ranks.function[named & short], minlength=1)
        here = named & (ranks.function == counts.argmax())
        if not counts.any() or here.sum() == named.sum():
            continue
        function = shown(None, dataset[int(counts.argmax())]["id"], data, config, "test")
        head = ""
        elsewhere: float | None = None
        hits: int | None = None
        if published.head:
            shares = (ranks.take(named & ~here).ranks[0] == 0).mean(axis=0)  # (layers, heads)
            best = np.unravel_index(shares.argmax(), shares.shape)
            layer, number = map(int, best)
            head = f"{layer}-{number}"
            elsewhere = 100 * float(shares.max())
            hits = int((ranks.take(here).ranks[0, :, layer, number] == 0).sum())
            content = attention_case(
                encoder,
                function,
                config,
                relation,
                head=(layer, number),
                most_bytes=WEIGHT_BYTES // len(CASES),
            )
        else:
            content = labels_case(function, [config], relation)
        edges = int(here.sum())
        row = [
            *published,
            model.name,
            head,
            elsewhere,
            edges,
            hits,
            function.name,
        ]
        content["name"] = f"Figure {published.figure}, {config}: {relation}"
        yield Case(published.figure, row, content)


def table(cases: Sequence[Case]) -> Table:
    """The cases, with links to the page."""
    rows, there = [], []
    for number, case in enumerate(cases):
        rows.append([*case.row, ["open", f"{CASES_PAGE}#{number}"]])
        there.append(case.row[:2])
    missing = [
        f"{published.figure} ({published.config})"
        for published in CASES
        if [published.figure, published.config] not in there
    ]
    without = f" Without such a function: Figure {', '.join(missing)}." if missing else ""
    return specs.table("cases", rows, tokens=SHORT_FUNCTION, without=without)
