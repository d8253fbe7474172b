"""The figures of a report, drawn with matplotlib; the same numbers give the same bytes."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Iterable, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from codesyntax_dataset.protocol import KS
from probing.report.pages import SHOWN

if TYPE_CHECKING:  # a command that prints tables draws nothing
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure, FigureBase

INK, FAINT, PAPER = "#1b1f24", "#808890", "#ffffff"
ON_DARK, ON_BRIGHT = (
    "#fffffe",
    "#000001",
)  # text on cells: neither PAPER nor INK, which the page replaces

COLOURS = ("#1a7fc4", "#d55e00", "#009e73", "#cc79a7", "#a6761d", "#56b4e9", "#7570b3", "#b5a200")
"""Colours of models (after Okabe and Ito), distinguishable for most colour-blind readers, on light
and dark paper."""

_STYLE = {
    "svg.hashsalt": "codesyntax",  # otherwise ids are random
    "svg.fonttype": "none",  # text stays text
    "pdf.fonttype": 42,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana"],  # named at every text of an SVG
    "font.size": 9,
    "text.parse_math": False,  # a name with two dollars is not a formula
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "grid.color": FAINT,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "lines.linewidth": 1.5,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "figure.facecolor": PAPER,
    "figure.autolayout": False,
    "figure.constrained_layout.use": False,
    "axes.facecolor": "none",
}


def stacked(cells: Iterable[Any]) -> np.ndarray:
    """The cells of a table, [value, low, high, ...] or a value alone, as (3, cells); NaN for what
    is missing."""
    bounded = (
        cell[:3] if isinstance(cell, (list, tuple)) else (cell, None, None) for cell in cells
    )
    return np.array(list(bounded), float).T


class Line(NamedTuple):
    """A curve in a panel: `scores` (3, k), score, lower and upper bound, or (1, k) without
    interval; NaN for gaps."""

    label: str
    scores: np.ndarray
    colour: str
    style: str = "-"
    points: bool = False  # markers only, for the paper's numbers


def curves(panels: dict[str, dict[str, list[Line]]]) -> Figure:
    """Score over k = 1 to 20: row -> column -> lines (Shen et al. 2022, Figures 4, 6 to 8 and 16 to
    19)."""
    columns = list(next(iter(panels.values())))
    size = 4.6 * len(columns), 2.7 * len(panels) + 0.75
    figure, axes = _panels(len(panels), len(columns), *size, sharex=True, sharey=True)
    for row, (name, lines) in zip(axes, panels.items()):
        for axis, column in zip(row, columns):
            for line in lines[column]:
                known = ~np.isnan(line.scores[0])
                _draw(axis, np.array(KS)[known], line._replace(scores=line.scores[:, known]))
            axis.set_title(f"{name}, {column}")
    for axis in axes[-1]:
        axis.set_xlabel("k")
        axis.set_xticks([1, 5, 10, 15, 20])
    for row in axes:
        row[0].set_ylabel("top-k UAS, %")
        row[0].set_ylim(0, 100)
    _legend(figure, axes)
    return figure


def _draw(axis: Any, places: Any, line: Line) -> None:
    look = (
        {"marker": "o", "mfc": "none", "ls": "", "ms": 4.5} if line.points else {"ls": line.style}
    )
    score, *bounds = line.scores
    axis.plot(places, score, color=line.colour, label=line.label, **look)
    if bounds:
        axis.fill_between(places, *bounds, color=line.colour, alpha=0.18, lw=0)


def over_steps(steps: Sequence[int], panels: dict[str, list[Line]]) -> Figure:
    """Scores over the steps of a training, a panel for each mean or relation; lines have a score
    for each step."""
    alone = len(panels) == 1
    figure, axes = _grid(
        len(panels), 3, (3.8, 0) if alone else (0, 1.9), (3.5, 0) if alone else (0.9, 1.3)
    )
    columns = axes.shape[1]
    for axis, (name, lines) in zip(axes.flat, panels.items()):
        for line in lines:
            _draw(axis, steps, line)
        axis.set_title(name, fontsize=9.5 if alone else 7.5)
    first = min((step for step in steps if step), default=1)
    if (
        steps[-1] > 20 * first
    ):  # early checkpoints are often closer together; the first may be of step 0
        axes[0][0].set_xscale("symlog", linthresh=first, linscale=0.4)
        powers = 10 ** np.arange(int(np.log10(first)) + 1, int(np.log10(steps[-1])) + 1)
        axes[0][0].set_xticks([0, *powers[:: 1 + len(powers) // 5]])  # as many as fit below a panel
        from matplotlib.ticker import EngFormatter

        axes[0][0].xaxis.set_major_formatter(
            EngFormatter(sep="")
        )  # 10k: no formula, which would stay one
    axes[0][0].set_ylim(0)
    for axis in axes.flat[max(0, len(panels) - columns) : len(panels)]:  # the lowest of each column
        axis.xaxis.set_tick_params(labelbottom=True)
        axis.set_xlabel("step")
    for axis in axes[:, 0]:
        axis.set_ylabel("top-1 UAS, %" if alone else "%")
    _legend(figure, axes)
    return figure


class Bars(NamedTuple):
    """One bar per relation: `scores` (3, relations), score, lower and upper bound, NaN if missing;
    `notes`: the text at each bar."""

    label: str
    scores: np.ndarray
    colour: str
    notes: Sequence[str] = ()


def bars(relations: Sequence[str], columns: dict[str, list[Bars]]) -> Figure:
    """Scores of a few relations side by side, a panel for each protocol (Shen et al. 2022, Figure
    2)."""
    height = 0.42 * len(relations) * max(2, len(next(iter(columns.values())))) / 2 + 1.1
    figure, axes = _panels(1, len(columns), 4.6 * len(columns), height, sharey=True)
    positions = np.arange(len(relations))
    for axis, (name, series) in zip(axes[0], columns.items()):
        height = 0.8 / len(series)
        for number, bar in enumerate(series):
            score, low, high = bar.scores
            where = positions - 0.4 + height * (number + 0.5)
            known = np.flatnonzero(~np.isnan(low))
            spread = np.maximum([score - low, high - score], 0)[:, known]
            axis.barh(
                where,
                np.nan_to_num(score),
                height * 0.9,
                color=bar.colour,
                label=bar.label,
                alpha=0.85,
            )
            axis.errorbar(
                score[known], where[known], xerr=spread, fmt="none", ecolor=INK, elinewidth=0.8
            )
            for end, middle, note in zip(score, where, bar.notes):
                inside = end > 70  # the note would leave the panel
                side = {"ha": "right", "color": ON_BRIGHT} if inside else {"ha": "left"}
                axis.text(
                    end + (-1 if inside else 1), middle, note, va="center", fontsize=7, **side
                )
        axis.set_title(name)
        axis.set_xlabel("top-1 UAS, %")
        axis.set_xlim(0, 103)
        axis.grid(axis="y", visible=False)
    axes[0][0].set_yticks(positions, relations)
    axes[0][0].invert_yaxis()
    _legend(figure, axes)
    return figure


def by_layer(relations: Sequence[str], scores: np.ndarray) -> Figure:
    """The best head of each layer for each relation: `scores` (relations, layers), percent."""
    layers = scores.shape[1]
    figure = _sized_figure(max(5.2, 2.9 + 0.42 * layers), 0.2 * len(relations) + 1.0)
    axis = figure.subplots()
    image = heat(axis, scores, "viridis", 0, 100)
    readable = figure.get_figwidth() - 1.8 > 0.13 * layers
    for (row, layer), score in np.ndenumerate(scores) if readable else ():
        best = score > 0 and layer == scores[row].argmax()
        weight = "bold" if best else "normal"
        write(axis, row, layer, score, dark=score < 60, fontsize=7.5, weight=weight)
    _ticks(axis, range(layers), relations)
    axis.set_xlabel("layer")
    bar = figure.colorbar(image, ax=axis, fraction=0.04, aspect=35)
    bar.set_label("top-1 UAS of its best head, %")
    bar.outline.set_visible(False)
    return figure


def heat(axis: Any, values: np.ndarray, colours: str, low: float, high: float) -> Any:
    """A heat map of values (rows, columns)."""
    shown = {"aspect": "auto", "interpolation": "none"}
    return axis.imshow(values, cmap=colours, vmin=low, vmax=high, **shown)


def write(axis: Any, row: float, column: int, value: Any, dark: Any, **look: Any) -> None:
    """A number in a cell of a heat map, dark or not."""
    look |= {"ha": "center", "va": "center", "color": ON_DARK if dark else ON_BRIGHT}
    axis.text(column, row, f"{value:.0f}", **look)


class Dots(NamedTuple):
    """Effects of a model or baseline: `effects` (3, rows), estimate, lower and upper bound, NaN if
    missing; `filled`: which the test separates from 0."""

    label: str
    effects: np.ndarray
    colour: str
    filled: Sequence[bool]


def effects(rows: Sequence[str], series: Sequence[Dots], label: str) -> Figure:
    """The effects in each row, such as a node type, with their intervals, those of a row below each
    other."""
    figure = _sized_figure(7.2, (0.16 + 0.17 * len(series)) * len(rows) + 1.1)
    axis = figure.subplots()
    dots(axis, rows, series)
    axis.set_xlabel(label)
    _legend(figure, axis)
    return figure


def dots(axis: Any, rows: Sequence[str], series: Sequence[Dots]) -> None:
    axis.axvline(0, color=INK, lw=0.8)
    step = 0.6 / len(series)
    for number, line in enumerate(series):
        where = np.arange(len(rows)) - 0.3 + step * (number + 0.5)
        estimate, low, high = line.effects
        axis.hlines(where, low, high, color=line.colour, lw=1.5)
        faces = [line.colour if filled else PAPER for filled in line.filled]
        axis.scatter(estimate, where, s=24, c=faces, edgecolors=line.colour, zorder=3)
        axis.plot([], [], color=line.colour, marker="o", ms=4.9, label=line.label)
    _name_rows(axis, rows)


def _name_rows(axis: Any, names: Sequence[str]) -> None:
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(names) - 0.5, -0.5)


class ArmPercentiles(NamedTuple):
    """Percentiles of a score over functions in both arms, (percentiles,) each, every fifth from 0
    to 100."""

    t1: np.ndarray
    t0: np.ndarray
    colour: str  # of the model


def boxes(node_types: Sequence[str], panels: dict[str, list[ArmPercentiles | None]]) -> Figure:
    """T1 above T0 by node type, a panel for each model."""
    figure, axes = _grid(len(panels), 2, (1.2, 4.6), (0.5, 0.34 * len(node_types) + 0.6))
    for axis, (name, arms) in zip(axes.flat, panels.items()):
        for number, arm in enumerate(arms):
            if arm is None:
                continue
            for values, away, colour in ((arm.t1, -0.18, arm.colour), (arm.t0, 0.18, FAINT)):
                low, first, middle, third, high = (
                    values[percentile // 5] for percentile in (5, 25, 50, 75, 95)
                )
                stats = {
                    "whislo": low,
                    "q1": first,
                    "med": middle,
                    "q3": third,
                    "whishi": high,
                    "fliers": [],
                }
                axis.bxp(
                    [stats],
                    positions=[number + away],
                    widths=0.28,
                    orientation="horizontal",
                    patch_artist=True,
                    manage_ticks=False,
                    boxprops={"facecolor": colour, "edgecolor": INK, "linewidth": 0.6},
                    medianprops={"color": INK, "linewidth": 1.4},
                    whiskerprops={"color": INK, "linewidth": 0.8},
                    capprops={"color": INK, "linewidth": 0.8},
                )
        colour = next((arm.colour for arm in arms if arm is not None), FAINT)
        axis.plot([], [], color=colour, lw=6, label=f"T1, {name}")
        axis.plot([], [], color=FAINT, lw=6, label="T0")
        axis.set_title(name)
        axis.set_xlabel("Jaccard similarity")
        axis.set_xlim(-0.02, 1.02)
        axis.grid(axis="y", visible=False)
    axes[0][0].set_yticks(range(len(node_types)), node_types)
    axes[0][0].invert_yaxis()
    _legend(figure, axes)
    return figure


class Points(NamedTuple):
    """A number or [number, low, high] for each row, None if it is missing. `mark`: one of DOT,
    CIRCLE and TICK."""

    label: str
    values: Sequence[Any]
    colour: str
    mark: str = "o"


DOT, CIRCLE, TICK = "o", "circle", "|"
"""What a model finds; the same under another condition; what needs no model."""


def rows(names: Sequence[str], panels: dict[str, list[Points]]) -> Figure:
    """Points in rows that all panels share; a panel has its own numbers on its axis."""
    lines = sum(1 + name.count("\n") for name in names)
    listed = max(
        0, *(len(series) - 8 for series in panels.values())
    )  # beyond what there is room for in the legend
    height = max(2.4, 0.22 * lines + 1.1) + 0.18 * listed
    figure, axes = _panels(1, len(panels), 3.1 * len(panels) + 1.2, height, sharey=True)
    for axis, (label, series) in zip(axes[0], panels.items()):
        for points in series:
            values, low, high = stacked(points.values)
            if not np.isnan(low).all():
                axis.hlines(range(len(names)), low, high, color=points.colour, lw=1.5)
            look: dict[str, Any] = {"s": 24, "edgecolors": points.colour}
            if points.mark == TICK:
                look = {"s": 110, "marker": TICK, "linewidths": 2}
            look["c"] = "none" if points.mark == CIRCLE else points.colour
            axis.scatter(values, range(len(names)), label=points.label, zorder=3, **look)
        axis.set_xlabel(label)
        axis.locator_params(axis="x", nbins=5)
        axis.set_xlim(left=min(0, axis.get_xlim()[0]))
    _name_rows(axes[0][0], names)
    _legend(figure, axes)
    return figure


def languages(
    relations: Sequence[str],
    names: Sequence[str],
    scores: np.ndarray,
    baselines: np.ndarray,
) -> Figure:
    """Scores above those of baselines, on the colour of their difference, (relations, languages)
    each, NaN if missing.

    As narrow as the screen of a telephone, if there are not many languages.
    """
    differences = scores - baselines
    figure = _sized_figure(max(3.8, 1.56 + 0.28 * len(names)), 0.27 * len(relations) + 1.9)
    axis = figure.subplots()
    image = heat(axis, differences, "RdBu", -75, 75)
    for (row, column), score in np.ndenumerate(scores):
        if not np.isnan(score):
            dark = abs(differences[row, column]) > 45
            write(axis, row - 0.2, column, score, dark, weight="bold", fontsize=7)
            write(axis, row + 0.24, column, baselines[row, column], dark, fontsize=7)
    _ticks(axis, names, relations, size=7.5)
    axis.tick_params(axis="x", rotation=60, labeltop=True, labelbottom=False)
    bar = figure.colorbar(
        image, ax=axis, orientation="horizontal", fraction=0.03, pad=0.02, aspect=30
    )
    bar.set_label("score less best baseline, points", fontsize=8)
    bar.set_ticks([-50, -25, 0, 25, 50])
    bar.outline.set_visible(False)
    return figure


def style() -> contextlib.AbstractContextManager:
    """The matplotlib style in which figures are drawn and saved."""
    import matplotlib.style

    return matplotlib.style.context(_STYLE)


def drawn(draw: Callable[[], Figure]) -> str:
    """A figure as SVG."""
    with style():
        return to_svg(lay_out(draw()))


_SVG_METADATA = {
    "pdf": dict.fromkeys(("Creator", "Producer", "CreationDate")),
    "png": {"Software": None},
}


def as_file(draw: Callable[[], Figure], format: str) -> bytes:
    """A figure as PDF or PNG."""
    data = io.BytesIO()
    with style():
        lay_out(draw()).savefig(data, format=format, metadata=_SVG_METADATA[format])
    return data.getvalue()


def lay_out(figure: Figure) -> Figure:
    """Compute the layout once: it takes about as long as drawing."""
    if engine := figure.get_layout_engine():
        engine.execute(figure)
    figure.set_layout_engine(
        None
    )  # with "none" a placeholder stays, for which each file would be drawn twice
    return figure


_SPARE = re.compile(r'(?<=\d\.\d\d)\d+| transform="rotate\(-0 [^"]*"')
"""Of the tags of an SVG: digits below a hundredth of a point, and rotations by nothing."""


def to_svg(figure: Figure) -> str:
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return re.sub(r"<[a-z][^>]*>", lambda tag: _SPARE.sub("", tag[0]), text.getvalue()).translate(
        SHOWN
    )


def for_page(svg: str, prefix: str) -> str:
    """Embed an SVG in a page: with unique ids, the text colour of the page, and a transparent
    background."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(
        r"<metadata>.*?</metadata>|<style\b.*?</style>|(?<=\n) +", "", svg, flags=re.DOTALL
    )  # the page has the style
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)  # nothing refers to groups
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}-", svg)
    return svg.replace(INK, "currentColor").replace(f"fill: {PAPER}", "fill: none")


def share_styles(page: str) -> str:
    """Style the figures of a page by its style sheet: few styles occur thousands of times."""
    names: dict[str, str] = {}

    def named(style: re.Match[str]) -> str:
        return f' class="{names.setdefault(style[1], f"f{len(names)}")}"'

    page = re.sub(
        r"<svg.*?</svg>",
        lambda svg: re.sub(r' style="([^"]*)"', named, svg[0]),
        page,
        flags=re.DOTALL,
    )
    rules = "".join(f".{name} {{ {style} }}\n" for style, name in names.items())
    return page.replace("</style>", rules + "</style>", 1)


def _sized_figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", dpi=150)


def _panels(
    rows: int, columns: int, width: float, height: float, **shared: Any
) -> tuple[Figure, np.ndarray]:
    """A figure of that size, and its axes (rows, columns)."""
    figure = _sized_figure(width, height)
    return figure, figure.subplots(rows, columns, squeeze=False, **shared)


def _grid(
    number: int,
    most: int,
    width: tuple[float, float],
    height: tuple[float, float],
    least: float = 0,
) -> tuple[Figure, np.ndarray]:
    """A figure with so many panels, at `most` so many side by side, that share their axes: (rows,
    columns).

    `width`, `height`: of the figure, and added by each column and row; `least`: of its width.
    """
    columns = min(most, number)
    rows = -(-number // columns)
    size = max(least, width[0] + columns * width[1]), height[0] + rows * height[1]
    figure, axes = _panels(rows, columns, *size, sharex=True, sharey=True)
    for axis in axes.flat[number:]:
        axis.set_visible(False)
    return figure, axes


def _legend(figure: FigureBase, axes: Any) -> None:
    labels: dict[str, Artist] = {}
    for axis in np.ravel(axes):
        handles, names = axis.get_legend_handles_labels()
        labels |= {fill(name, 46): handle for name, handle in zip(names, handles)}
    widest = 0.45 + 0.075 * max(
        len(line) for label in labels for line in label.split("\n")
    )  # inches
    fitting = max(1, min(4, int(figure.get_figure(root=True).get_figwidth() / widest)))
    rows = -(-len(labels) // fitting)
    columns = -(-len(labels) // rows)  # of equal length, as far as possible
    figure.legend(list(labels.values()), list(labels), loc="outside lower center", ncols=columns)


def _ticks(axis: Any, columns: Sequence, rows: Sequence, size: float = 8) -> None:
    axis.set_xticks(range(len(columns)), columns, fontsize=size)
    axis.set_yticks(range(len(rows)), rows, fontsize=size)
    axis.grid(visible=False)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
