"""Statistics of a dataset: against counts by hand, a plain loop, and the published procedure's best offsets."""

from __future__ import annotations

import json

import datasets
import pytest
from support.commands import run

from codesyntax_dataset import paper
from codesyntax_dataset.build import build
from codesyntax_dataset.errors import DatasetError, LedgerError
from codesyntax_dataset.features import FEATURES
from codesyntax_dataset.statistics import statistics
from probing.report.dataset import (
    BINS_NAMED,
    FILES,
    DatasetStatistics,
    collect,
    offsets_figure,
    save,
)


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
    ((reason, count),) = report.configs["python"].skips.counts.items()
    found = collect(tmp_path / "out", ["python"])
    assert found.left_out["python"].startswith(f"{reason}: {count} (")


def heights(axis) -> list[dict[str, float]]:
    """Bin -> its number of relations, of those in the mean and of the others."""
    ticks = [label.get_text() for label in axis.get_xticklabels()]
    return [dict(zip(ticks, [bar.get_height() for bar in bars])) for bars in axis.containers]


@pytest.mark.slow
def test_figure_has_each_relation_at_its_mean_offset():
    """Bins for backwards are shown only where a mean is there."""
    edges = [("If:if->test", 0, first, first) for first in (1, 2, 2, 8, 9)]
    (axis,) = offsets_figure({"python": statistics(dataset_of(("a", 20, edges)))}).axes
    inside, _ = heights(axis)
    assert list(inside) == ["1", "2", "3", "4", "5-9", "10-19", "20-49", "50-99", "> 99"]
    assert [name for name, height in inside.items() if height] == ["4"]  # a mean of 4.4
    backwards = [("If:if->test", 5, 1, 1), ("If:if->test", 5, 6, 6)]  # a mean of -1.5
    (axis,) = offsets_figure({"python": statistics(dataset_of(("a", 20, backwards)))}).axes
    inside, _ = heights(axis)
    assert list(inside)[:4] == ["−2", "−1", "0", "1"] and inside["−2"] == 1


@pytest.mark.slow
def test_figure_tells_relations_at_ten_tokens_and_those_outside_the_mean():
    """A mean of 9.5 stands before the paper's threshold and one of 10 behind it; `Slice:lower->upper` is in no mean."""
    near = [("If:if->test", 0, 9, 9), ("If:if->test", 0, 10, 10)]
    far = [("If:if->body", 0, 10, 10), ("Slice:lower->upper", 0, 12, 12)]
    (axis,) = offsets_figure({"python": statistics(dataset_of(("a", 20, near + far)))}).axes
    assert [text.get_text() for text in axis.get_legend().get_texts()] == [
        "in the mean: 1 of 2 at 10 or more",
        "not in the mean: 1 of 1 at 10 or more",
    ]
    inside, outside = heights(axis)
    assert {name: height for name, height in inside.items() if height} == {"5-9": 1, "10-19": 1}
    assert {name: height for name, height in outside.items() if height} == {"10-19": 1}
    between = (BINS_NAMED.index("5-9") + BINS_NAMED.index("10-19")) / 2
    assert axis.lines[0].get_xdata()[0] == between


@pytest.mark.slow
def test_command(dataset_folder, tmp_path):
    output = tmp_path / "stats"
    arguments = ("stats --data", dataset_folder, "--config python --config java")
    printed = run(*arguments, "--output", output)
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
    assert (output / "statistics.json").read_text() == told.stdout
    content = json.loads(told.stdout)["configs"]
    assert content["java"]["paper"]["edges"] == paper.edges("java")
    assert (output / "offsets.svg").read_text().startswith("<?xml")
    assert sorted(path.name for path in output.iterdir()) == ["offsets.svg", "statistics.json"]


def test_both_splits_and_bad_names(dataset_folder):
    splits = "--split test --split validation"
    content = json.loads(run("stats --data", dataset_folder, splits, "--json").stdout)
    rows = datasets.load_dataset(str(dataset_folder), "python")
    assert content["splits"] == ["test", "validation"]
    assert content["configs"]["python"]["functions"] == len(rows["test"]) + len(rows["validation"])
    refused = run("stats --data", dataset_folder, "--config pyhton", status=1)
    assert "did you mean 'python'?" in refused.stderr


@pytest.mark.slow
def test_files_of_others_are_not_replaced(tmp_path):
    """A later call replaces what an earlier one wrote; whatever else has one of the names is left as it is."""
    found = statistics(dataset_of(("a", 4, [("If:if->test", 0, 1, 1)])))
    collected = DatasetStatistics({"python": "mine"}, ["test"], {"python": found}, {"python": None})
    (tmp_path / "notes.txt").write_text("mine")
    for name, content in (
        ("offsets.svg", "<svg/>"),
        ("statistics.json", '{"splits": []}'),
        ("statistics.json", "["),
    ):
        (tmp_path / name).write_text(content)
        with pytest.raises(LedgerError, match=f"{name} was not made by `codesyntax stats`"):
            save(collected, tmp_path)
        assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
            "notes.txt": "mine",
            name: content,
        }
        (tmp_path / name).unlink()
    (tmp_path / "statistics.json").write_text('{"made_by": "codesyntax stats"}')
    assert sorted(path.name for path in save(collected, tmp_path)) == sorted(FILES)
    assert (tmp_path / "statistics.json").read_text() == collected.to_json()
    assert (tmp_path / "notes.txt").read_text() == "mine"
