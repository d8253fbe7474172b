"""Which function and which head a case of the paper is shown with, of ranks that are planted."""

from __future__ import annotations

import shlex

import numpy as np
import pyarrow as pa
import pytest

from codesyntax_metric.topk_uas import RULES
from probing.instruments.attention.ledger import RankLedger
from probing.paper import cases
from probing.paper.inputs import Model

ARGS, ELSE = "Call:func->args", "If:if->else"
ANY, THIS, THAT = (0, 0), (0, 1), (1, 0)
"""Heads, of two layers of two."""


@pytest.fixture
def cases_of(tmp_path, monkeypatch):
    """The cases of (function, its tokens, relation, head that finds it) for each edge; the ids of functions are from 100."""

    def read(edges, config="python", location="user/model"):
        functions, tokens, relation, heads = zip(*edges)
        ranks = np.full((len(RULES), len(edges), 2, 2), 9, np.uint8)
        for edge, (layer, head) in enumerate(heads):
            ranks[0, edge, layer, head] = 0
            ranks[1:, edge, 1, 1] = 0  # by the other rules another head is the best
        places = np.array(functions, np.int32)
        relations = list(dict.fromkeys(relation))
        RankLedger(
            relations=relations,
            function=places,
            relation=np.array([relations.index(name) for name in relation], np.int32),
            head=0 * places,
            first=0 * places,
            last=0 * places,
            tokens=np.array(tokens, np.int32),
            ranks=ranks,
            settings={},
        ).save(tmp_path / "ledger.parquet")
        ids = pa.table({"id": range(100, 101 + max(functions))})
        monkeypatch.setattr(
            cases, "load_functions", lambda *asked: ({"test": ids}[asked[-1]], "codesyntax@1.0.0")
        )
        model = Model(location, "model", None)
        data = tmp_path / config / "codesyntax"
        return [*cases.case_rows(model, data, config, tmp_path / "ledger.parquet", tmp_path)]

    return read


@pytest.mark.parametrize(
    "config, figures",
    [
        ("python", [(1, ARGS), (5, ELSE), (9, ARGS)]),
        ("java", [(5, ELSE), (10, ARGS), (13, ELSE)]),
        ("java_skip_semicolon", []),
    ],
)
def test_cases_are_of_the_config_and_of_the_relations_that_it_has(config, figures, cases_of):
    shown = cases_of([(place, 20, name, ANY) for place in (0, 1) for name in (ARGS, ELSE)], config)
    assert [(figure, relation) for figure, _, relation, *_ in shown] == figures
    assert {row[1] for row in shown} <= {config}
    only_args = cases_of([(place, 20, ARGS, ANY) for place in (0, 1)], config)
    assert [row[:3] for row in only_args] == [row[:3] for row in shown if row[2] == ARGS]


@pytest.mark.parametrize("tokens, shown", [(9, False), (10, True), (60, True), (61, False)])
def test_a_function_of_10_to_60_tokens_is_shown(tokens, shown, cases_of):
    assert bool(cases_of([(0, tokens, ARGS, ANY), (1, 99, ARGS, ANY)])) == shown


def test_the_head_is_the_best_on_all_other_functions(cases_of):
    """The function has most edges of the relation, of equals it is the first; long ones are among the others."""
    edges = [
        (0, 20, ARGS, THAT),
        *[(0, 20, ELSE, ANY)] * 5,
        *[(1, 20, ARGS, THIS)] * 2,
        *[(2, 20, ARGS, THAT)] * 2,
        *[(3, 61, ARGS, THIS)] * 2,
        (3, 61, ARGS, THAT),
    ]
    of_args, case = (row for row in cases_of(edges) if row[2] == ARGS)
    assert of_args[0] == 1
    assert case[:-2] == [9, "python", ARGS, "15-11"]
    *_, head, command = case
    assert head == "1-0"
    asked = "--data python/codesyntax --id 101 --config python --relation"
    assert shlex.split(command) == [
        *("codesyntax", "show", *asked.split(), ARGS, "--head", "1-0", "user/model")
    ]
    *_, head, command = of_args
    assert head == ""
    assert shlex.split(command)[-2:] == [ARGS, "--labels"]


@pytest.mark.parametrize(
    "edges",
    [
        pytest.param([(2, 20, ARGS, ANY)], id="in one function: no head is chosen elsewhere"),
        pytest.param([(2, 61, ARGS, ANY), (3, 61, ARGS, ANY)], id="in long functions only"),
    ],
)
def test_a_relation_that_no_function_shows_has_no_case(edges, cases_of):
    shown = cases_of([(0, 20, ELSE, ANY), (1, 20, ELSE, ANY), *edges])
    assert [row[2] for row in shown] == [ELSE]


def test_a_model_in_a_folder_is_found_from_where_commands_run(cases_of, tmp_path):
    (tmp_path / "models").mkdir()
    edges = [(0, 20, ELSE, ANY), (1, 20, ELSE, ANY)]
    ((*_, command),) = cases_of(edges, location=str(tmp_path / "models"))
    assert shlex.split(command)[-1] == "models"
