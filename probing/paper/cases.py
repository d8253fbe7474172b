"""The paper's Figures 1, 5 and 9 to 15, what one attention head predicts in one function: which
function and head, and the command that draws them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from codesyntax_dataset import paper
from probing.instruments.attention.ledger import RankLedger
from probing.paper.inputs import Model
from probing.runs.data import load_functions

SHORT_FUNCTION = range(10, 61)
"""The tokens of a function that is shown."""


def case_rows(
    model: Model, data: Path, config: str, ledger: Path, root: Path
) -> Iterator[list[Any]]:
    """The cases of a config: each in the function with most edges of the relation, of those as long
    as SHORT_FUNCTION says, of equals the first; without those that no such function has. The head
    is the best on all other functions.

    `data`: the dataset; `ledger`: the file with the model's ranks; `root`: the folder in which the
    commands run.
    """
    ranks = RankLedger.open(ledger)
    short = np.isin(ranks.tokens, SHORT_FUNCTION)
    ids = load_functions(data, config, "test")[0]["id"].to_pylist()
    location = model.location
    if os.path.exists(location):
        location = os.path.relpath(location, root)
    for case in paper.cases():
        if case.config != config or case.relation not in ranks.relations:
            continue
        named = ranks.relation == ranks.relations.index(case.relation)
        function = np.bincount(ranks.function[named & short], minlength=1).argmax()
        shown = ranks.function == function
        elsewhere = named & ~shown
        if not (named & short & shown).any() or not elsewhere.any():
            continue
        head, drawn = "", ["--labels"]
        if case.head:
            shares = (ranks.take(elsewhere).ranks[0] == 0).mean(axis=0)  # (layers, heads)
            head = "-".join(map(str, np.unravel_index(shares.argmax(), shares.shape)))
            drawn = ["--head", head, location]
        of_function = ["--data", str(data.relative_to(root)), "--id", str(ids[int(function)])]
        of_function += ["--config", config, "--relation", case.relation]
        command = shlex.join(["codesyntax", "show", *of_function, *drawn])
        yield [*case, head, command]
