"""Statistics of a dataset: against counts by hand, a plain loop, and the published procedure's best offsets."""

from __future__ import annotations

import json

import datasets
import pytest
from support.commands import run

from codesyntax_dataset import paper
from codesyntax_dataset.build import build
from codesyntax_dataset.errors import DatasetError
from codesyntax_dataset.features import FEATURES
from codesyntax_dataset.statistics import statistics
from probing.report.dataset import collect, offsets_figure


def dataset_of(*functions):
    """Functions as (code, tokens, edges): tokens are numbers of one-character tokens, edges (relation, head, first, last)."""
    rows = [
        {
            "id": number,
            "code": code,
            "token_start": list(range(tokens)),
            "token_end": list(range(1, tokens + 1)),
            "relations": [dict(zip(("relation", "head", "first", "last"), edge)) for edge in edges],
        }
        for number, (code, tokens, edges) in enumerate(functions)
    ]
    columns = ("id", "code", "token_start", "token_end", "relations")
    return datasets.Dataset.from_list(
        rows, datasets.Features({name: FEATURES[name] for name in columns})
    )


def test_a_dataset_counted_by_hand():
    found = statistics(
        dataset_of(
            (
                "naïve😀",
                6,
                [("If:if->test", 0, 1, 1), ("If:if->test", 2, 4, 5), ("If:if->body", 0, 5, 5)],
            ),
            ("bb", 10, [("If:if->test", 1, 9, 9), ("If:if->test", 0, 2, 5)]),
            ("does not parse", 3, []),
            ("nor do its tokens", 0, []),
        )
    )
    assert (found.functions, found.without_relations, found.without_tokens) == (4, 2, 1)
    assert found.tokens._fields == ("mean", "min", "q1", "median", "q3", "max")
    assert tuple(found.tokens) == (4.75, 0, 2.25, 4.5, 7, 10)
    assert tuple(found.characters) == (9.75, 2, 5, 10, 14.75, 17)
    assert tuple(found.edges) == (1.25, 0, 0, 1, 2.25, 3)
    assert tuple(found.dependent) == (1.8, 1, 1, 1, 2, 4)
    assert list(found.relations) == ["If:if->body", "If:if->test"]
    test = found.relations["If:if->test"]
    assert (test.edges, test.functions, test.mode, test.mode_share) == (4, 2, 2, 50)
    assert test.offsets == {1: 1, 2: 2, 8: 1}
    assert tuple(test.offset) == (3.25, 1, 1.75, 2, 3.5, 8)
    assert tuple(test.dependent) == (2, 1, 1, 1.5, 2.5, 4)


def test_nothing_and_no_edges():
    found = statistics(dataset_of(("a", 1, [])))
    assert (found.functions, found.without_relations, found.relations, found.dependent) == (
        1,
        1,
        {},
        None,
    )
    assert found.tokens.max == 1
    found = statistics(dataset_of(("a", 1, [])).select([]))
    assert (found.functions, found.tokens, found.edges) == (0, None, None)


def test_splits_count_together_and_selections_count_alone():
    """A selection keeps all rows in memory and an index beside them: only the selected ones count."""
    one = dataset_of(("a", 4, [("If:if->test", 0, 1, 1)]), ("b", 4, [("If:if->test", 0, 3, 3)]))
    both = statistics([one, one.select([1])])
    assert both.functions == 3
    assert both.relations["If:if->test"].offsets == {1: 1, 3: 2}
    assert both.relations["If:if->test"].functions == 3


def test_what_is_no_dataset_of_ours():
    with pytest.raises(DatasetError, match="token_start, relations"):
        statistics(datasets.Dataset.from_dict({"code": ["a"]}))


def test_a_card_of_a_build_with_something_left_out(tmp_path):
    """The template writes what `left_out` reads."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code/a.py").write_text("def f(x):\n    return x.y\n")
    (tmp_path / "code/b.py").write_text("def g(:\n")
    report = build(str(tmp_path / "code"), ["python"], tmp_path / "out")
    (reason, count), _ = report.configs["python"].skips.counts.items()
    found = collect(tmp_path / "out", ["python"], ["test"])
    assert found.left_out["python"].startswith(f"{reason}: {count} (")


@pytest.mark.slow
def test_figure_has_each_relation_at_its_mean_offset():
    edges = [("If:if->test", 0, first, first) for first in (1, 2, 2, 8, 9)]  # a mean of 4.4
    edges += [("If:if->body", 5, 1, 1), ("If:if->body", 5, 6, 6)]  # a mean of -1.5
    counted = statistics(dataset_of(("a", 20, edges)))
    (axis,) = offsets_figure({"python": counted}).axes
    bars = {bar.get_x(): bar.get_height() for bar in axis.patches if bar.get_height()}
    assert axis.get_title() == "python"
    assert list(bars.values()) == [1, 1]
    assert min(bars) == pytest.approx(-1.5)
    assert max(bars) < 4.4


@pytest.mark.slow
def test_command(dataset_folder):
    arguments = ("stats --data", dataset_folder, "--config python --config java")
    printed = run(*arguments)
    for words in (
        "python/test",
        "java/test",
        "652,417",
        "569,499",
        "18,701 functions",
        "functions without relations: 0",
    ):
        assert words in printed.stdout
    told = run(*arguments, "--json")
    content = json.loads(told.stdout)["configs"]
    assert content["java"]["paper"]["edges"] == paper.edges("java")


def test_both_splits_and_bad_names(dataset_folder):
    splits = "--split test --split validation"
    content = json.loads(run("stats --data", dataset_folder, splits, "--json").stdout)
    rows = datasets.load_dataset(str(dataset_folder), "python")
    assert content["splits"] == ["test", "validation"]
    assert content["configs"]["python"]["functions"] == len(rows["test"]) + len(rows["validation"])
    refused = run("stats --data", dataset_folder, "--config pyhton", status=1)
    assert "did you mean 'python'?" in refused.stderr
