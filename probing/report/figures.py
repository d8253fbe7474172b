"""The figures of a report, drawn with matplotlib; the same numbers give the same bytes."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import cycle
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from codesyntax_dataset.protocol import KS
from probing.report.words import SHOWN

if TYPE_CHECKING:  # a command that prints tables draws nothing
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure, FigureBase

INK, FAINT, PAPER = "#1b1f24", "#808890", "#ffffff"
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
    """Percent over the steps of a training, a panel for each title; lines have a score for each
    step."""
    width = 3.4 * len(panels) + 2
    figure, axes = _panels(1, len(panels), width, 3.5, sharex=True, sharey=True)
    for axis, (title, lines) in zip(axes[0], panels.items()):
        for line in lines:
            _draw(axis, steps, line)
        axis.set_title(title)
        axis.set_xlabel("step")
    scale, first = axes[0][0], min((step for step in steps if step), default=1)
    if steps[-1] > 20 * first:  # early checkpoints are often closer together; one may be of step 0
        from matplotlib.ticker import EngFormatter

        scale.set_xscale("symlog", linthresh=first, linscale=0.4)
        scale.xaxis.set_major_formatter(EngFormatter(sep=""))  # 10k: no formula
    scale.set_ylim(0)
    scale.set_ylabel("%")
    _legend(figure, axes)
    return figure


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
    axis.set_xlabel(label)
    _legend(figure, axis)
    return figure


def _name_rows(axis: Any, names: Sequence[str]) -> None:
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(names) - 0.5, -0.5)


def boxes(node_types: Sequence[str], panels: Mapping[str, Sequence[Any]]) -> Figure:
    """A score of functions by node type, T1 above T0, a panel for each model: (2, functions) of
    each type, None if the model was not run on it."""
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    size = 1.2 + 4.6 * columns, 0.5 + rows * (0.34 * len(node_types) + 0.6)
    figure, axes = _panels(rows, columns, *size, sharex=True, sharey=True)
    for axis, (name, arms), colour in zip(axes.flat, panels.items(), cycle(COLOURS)):
        known = [number for number, scores in enumerate(arms) if scores is not None]
        for arm, (label, face) in enumerate(((f"T1, {name}", colour), ("T0", FAINT))):
            axis.boxplot(
                [arms[number][arm] for number in known],
                positions=np.array(known) + 0.36 * arm - 0.18,
                widths=0.28,
                whis=(5, 95),
                showfliers=False,
                orientation="horizontal",
                patch_artist=True,
                manage_ticks=False,
                boxprops={"facecolor": face},
                medianprops={"color": INK},
                label=label,
            )
        axis.set_title(name)
        axis.set_xlabel("Jaccard similarity")
        axis.grid(axis="y", visible=False)
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    _name_rows(axes[0][0], node_types)
    _legend(figure, axes)
    return figure


class Points(NamedTuple):
    """A number or [number, low, high] for each row, None if it is missing: a dot, or a line for
    what needs no model."""

    label: str
    values: Sequence[Any]
    colour: str
    needs_no_model: bool = False


def rows(names: Sequence[str], panels: dict[str, list[Points]]) -> Figure:
    """Points in rows that all panels share; a panel has its own numbers on its axis."""
    lines = sum(1 + name.count("\n") for name in names)
    height = max(2.4, 0.22 * lines + 1.1)
    figure, axes = _panels(1, len(panels), 3.1 * len(panels) + 1.2, height, sharey=True)
    for axis, (label, series) in zip(axes[0], panels.items()):
        for points in series:
            values, low, high = stacked(points.values)
            axis.hlines(range(len(names)), low, high, color=points.colour, lw=1.5)
            look = (
                {"s": 110, "marker": "|", "linewidths": 2} if points.needs_no_model else {"s": 24}
            )
            places = range(len(names))
            axis.scatter(values, places, label=points.label, color=points.colour, zorder=3, **look)
        axis.set_xlabel(label)
        axis.locator_params(axis="x", nbins=5)
        axis.set_xlim(left=min(0, axis.get_xlim()[0]))
    _name_rows(axes[0][0], names)
    _legend(figure, axes)
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
    # with "none" a placeholder stays, for which each file would be drawn twice
    figure.set_layout_engine(None)
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
    # the page has the style
    svg = re.sub(
        r"<metadata>.*?</metadata>|<style\b.*?</style>|(?<=\n) +", "", svg, flags=re.DOTALL
    )
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)  # nothing refers to groups
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}-", svg)
    return svg.replace(INK, "currentColor").replace(f"fill: {PAPER}", "fill: none")


def _sized_figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", dpi=150)


def _panels(
    rows: int, columns: int, width: float, height: float, **shared: Any
) -> tuple[Figure, np.ndarray]:
    """A figure of that size, and its axes (rows, columns)."""
    figure = _sized_figure(width, height)
    return figure, figure.subplots(rows, columns, squeeze=False, **shared)


def _legend(figure: FigureBase, axes: Any) -> None:
    labels: dict[str, Artist] = {}
    for axis in np.ravel(axes):
        handles, names = axis.get_legend_handles_labels()
        labels |= {fill(name, 46): handle for name, handle in zip(names, handles)}
    # inches
    widest = 0.45 + 0.075 * max(len(line) for label in labels for line in label.split("\n"))
    fitting = max(1, min(4, int(figure.get_figure(root=True).get_figwidth() / widest)))
    rows = -(-len(labels) // fitting)
    columns = -(-len(labels) // rows)  # of equal length, as far as possible
    figure.legend(list(labels.values()), list(labels), loc="outside lower center", ncols=columns)
