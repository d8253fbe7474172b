"""The paper's Figures 1, 5 and 9 to 15: what one attention head predicts in one function, as cases of one page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from probing.instruments.attention.ledger import RankLedger
from probing.models.load import load
from probing.paper.inputs import Model
from probing.report.document import Column, Table
from probing.report.folder import MODELS
from probing.report.kinds import COUNT, LINK, NAME, PERCENT, SHORT
from probing.report.pages import shown
from probing.report.show import BYTES, attention_case
from probing.runs.data import load_functions

TOKENS = (10, 60)
"""The least and the most tokens of a function that is shown."""


class CaseOfPaper(NamedTuple):
    """A case by its number; `head`: the one that the paper shows, of CuBERT."""

    figure: int
    config: str
    relation: str
    head: str = ""


CASES = (
    CaseOfPaper(1, "python", "children:parent->child"),
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
"""Figure 1 has no head: it shows relations over one piece of code."""

FILE = f"{MODELS}/cases.html"
"""The page of all cases, in the folder of the report."""


class Case(NamedTuple):
    """A case of a model. `elsewhere`: what the head finds, in percent, on all other functions, where it was chosen;
    `right`: those of the `edges` here that it finds; `content`: of the page."""

    published: CaseOfPaper
    model: str
    function: str
    head: str
    elsewhere: float
    edges: int
    right: int
    content: dict[str, Any]


def find(model: Model, data: Path, config: str, ledger: Path, device: str | None) -> Iterator[Case]:
    """The cases of a config: each in the function with most edges of the relation, of those that TOKENS allows, of
    equals the first; without those that no such function has. The head is the best one on all other functions.

    `data`: the dataset; `ledger`: the file with the model's ranks. The model runs on these functions.
    """
    ranks = RankLedger.open(ledger)
    short = (ranks.tokens >= TOKENS[0]) & (ranks.tokens <= TOKENS[1])
    dataset, _ = load_functions(data, config, "test")
    encoder = load(model.given, device=device)
    for published in CASES:
        name = published.relation
        with_relation = ranks.relation == (ranks.relations.index(name) if name in ranks.relations else -1)
        counts = np.bincount(ranks.function[short & with_relation])
        chosen = ranks.function == counts.argmax() if len(counts) else short
        elsewhere = with_relation & ~chosen
        if published.config != config or not len(counts) or not elsewhere.any():
            continue
        hits = ranks.take(elsewhere).ranks[0] == 0  # (edges, layers, heads)
        shares = hits.mean(axis=0)
        layer, head = map(int, np.unravel_index(shares.argmax(), shares.shape))
        here = ranks.take(with_relation & chosen).ranks[0, :, layer, head]
        function = shown(None, dataset[int(counts.argmax())]["id"], data, config, "test")
        content = attention_case(encoder, function, config, name, head=(layer, head), most_bytes=BYTES // len(CASES))
        content["name"] = f"Figure {published.figure}, {config}: {name}"
        score = 100 * float(shares[layer, head])
        right = int((here == 0).sum())
        yield Case(
            published,
            model.name,
            function.name,
            f"{layer}-{head}",
            score,
            len(here),
            right,
            content,
        )


def table(cases: Sequence[Case]) -> Table:
    """The cases, with links to the page."""
    rows: list[list[Any]] = []
    for number, case in enumerate(cases):
        link = ["open", f"{FILE}#{number}"]
        heads = [case.published.head, case.head]
        rows.append(
            [
                *case.published[:3],
                case.model,
                *heads,
                case.elsewhere,
                case.edges,
                case.right,
                case.function,
                link,
            ]
        )
    columns = [
        *(
            Column("figure", COUNT),
            Column("config", NAME),
            Column("relation", NAME),
            Column("model"),
        ),
        *Column.each(SHORT, "paper", "here", group="head"),
        Column("found elsewhere", PERCENT),
        *Column.each(COUNT, "edges", "found", group="this function"),
        *(Column("function"), Column("page", LINK)),
    ]
    notes = (
        "The head, layer-head from 0, is the best one on all other functions of the split, where it finds as much as "
        "the column says, in percent. The function is the one with most edges of the relation among those of "
        f"{TOKENS[0]} to {TOKENS[1]} tokens."
    )
    return Table("cases", "Single functions", columns, rows, notes)
