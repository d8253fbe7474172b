"""One table in the terminal, in a notebook and as CSV: the same numbers."""

from __future__ import annotations

import csv
import io
import math
from types import SimpleNamespace

import numpy as np
import pytest

from probing.report import document, figures, headline
from probing.report.document import Column, Section, Table, Terminal, in_cell
from probing.report.figures import INK, Line
from probing.report.folder import FIGURE_FORMATS, Report, save
from probing.report.kinds import COUNT, DIFFERENCE, NAME, PERCENT, SCORE
from probing.stats.intervals import FEW_CLUSTERS, Estimate

TABLE = Table(
    "relations",
    "what heads find",
    [
        Column("rule"),
        Column("relation", NAME),
        Column("edges", COUNT, spare=True),
        Column("score", PERCENT, "held-out"),
        Column("vs\nbest", DIFFERENCE, "held-out", spare=True),
    ],
    [
        ["first", "If:if->test", 1234, 92.54, [-1.25, -2.0, 0.5, 0.0312]],
        ["first", "<b>", None, None, None],
        ["last", "If:if->test", 1234, 12.0, None],
    ],
    "Percent.",
    filters=1,
    totals=[["", "mean", "", 46.3, ""]],
)


def in_terminal(table, width):
    """The table as commands print it in a terminal of this width."""
    text = io.StringIO()
    Terminal(file=text, width=width).print(table)
    return text.getvalue()


def lines(width=200):
    return [
        " ".join(line.split())
        for line in in_terminal(TABLE, width).splitlines()
        if line.strip(" ─")
    ]


def test_a_terminal_shows_the_rows_of_the_first_filter_and_a_difference_with_its_interval_and_p():
    assert lines() == [
        "what heads find (rule first)",
        "held-out vs",
        "relation edges score best",
        "If:if->test 1,234 92.5 -1.2 [-2.0, +0.5; p 0.031]",
        "<b> - - -",
        "mean 46.3",
        "Percent.",
    ]


def test_a_narrow_terminal_leaves_spare_columns_out_and_says_so():
    shown = " ".join(lines(40))
    assert "not shown at this width: edges, held-out: vs best (--wide)" in shown
    assert "If:if->test 92.5" in shown
    assert max(map(len, in_terminal(TABLE, 40).splitlines())) <= 40
    assert "(--wide)" not in " ".join(lines(80))


def test_a_heading_spans_the_columns_of_its_group():
    assert TABLE.groups[-2:] == [("", 1), ("held-out", 2)]


def test_a_csv_file_has_all_rows():
    header, *rows = csv.reader(TABLE.to_csv().splitlines())
    assert header[3:6] == ["held-out: score", "held-out: vs best", "held-out: vs best, low"]
    assert rows[0] == "first If:if->test 1234 92.54 -1.25 -2.0 0.5 0.0312".split()
    assert [row[1] for row in rows] == ["If:if->test", "<b>", "If:if->test", "mean"]


def test_an_estimate_without_an_interval_stands_alone_but_in_few_clusters():
    """Nothing is missing where there can be none: of the paper, or where nothing varies."""
    nan, estimate = math.nan, Estimate(5.0, 4.0, 6.0, 0.01, 9)
    alone = Estimate(5.0, nan, nan, nan, FEW_CLUSTERS)
    assert str(in_cell(alone._replace(n=FEW_CLUSTERS - 1), SCORE)) == "[5.0, nan, nan]"
    assert in_cell(alone, SCORE) == in_cell(alone._replace(n=0), SCORE) == 5
    assert in_cell(estimate, SCORE) == [5, 4, 6]
    assert in_cell(estimate, DIFFERENCE) == [5, 4, 6, 0.01]
    assert in_cell(estimate, PERCENT) == in_cell(5.0, PERCENT) == 5


LONG = "python, dependent-to-head, partial, 60 functions drawn by seed 0"


@pytest.mark.parametrize("width", [1400, 400])
def test_long_names_stay_in_their_cells_and_on_the_page(page, tmp_path, width):
    columns = [Column("config"), Column("model", NAME), Column("relation", NAME)]
    rows = [[config, LONG, "If:if->test"] for config in (LONG, f"{LONG} 1")]
    table = Table("scores", "Scores", columns, rows, filters=1)
    report = Report("report", "", "Title", [Section("scores", "Scores", [table])])
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(save(report, tmp_path / "report").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == width
    widths = (
        "[...document.querySelectorAll('td')].map((cell) => [cell.scrollWidth, cell.clientWidth])"
    )
    assert all(text <= cell for text, cell in page.evaluate(widths))


def test_long_configs_take_several_lines_in_the_picture_of_models():
    row = SimpleNamespace(name="m", findings=SimpleNamespace(title=LONG))
    model, *lines = headline._label(row, several_configs=True, several_models=True).split("\n")
    assert model == "m"
    assert " ".join(lines) == LONG
    assert max(map(len, lines)) <= 30


def test_a_picture_drawn_again_has_the_same_bytes():
    def draw():
        return figures.over_steps([1, 2], "panel", [Line("heads", np.array([[30.0, 40.0]]), INK)])

    assert figures.svg_of(draw) == figures.svg_of(draw)
    for form in FIGURE_FORMATS.values():
        assert figures.as_file(draw, form) == figures.as_file(draw, form)


@pytest.mark.parametrize(
    "over, title, shown",
    [
        ("; over b", "Scores, with 95 % intervals.", "Scores, with 95 % intervals; over b."),
        ("; over b", "Scores.", "Scores."),
        ("", "Scores, with 95 % intervals.", "Scores, with 95 % intervals."),
    ],
)
def test_a_figure_with_intervals_says_that_they_are_over_repositories(
    over, title, shown, monkeypatch
):
    monkeypatch.setattr(document, "over_in_words", lambda: over)
    assert document.Figure("name", title, "alt", "table", lambda: None).title == shown
