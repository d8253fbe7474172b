"""The figures of a report, drawn with matplotlib; the same numbers give the same bytes."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from codesyntax_dataset.protocol import KS
from probing.report.words import readable

if TYPE_CHECKING:  # a command that prints tables draws nothing
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure

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


def bounds_of(cells: Iterable[Any]) -> np.ndarray:
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
                _draw_line(axis, np.array(KS)[known], line._replace(scores=line.scores[:, known]))
            axis.set_title(f"{name}, {column}")
    for axis in axes[-1]:
        axis.set_xlabel("k")
        axis.set_xticks([1, 5, 10, 15, 20])
    for row in axes:
        row[0].set_ylabel("top-k UAS, %")
        row[0].set_ylim(0, 100)
    _legend(figure, axes)
    return figure


def _draw_line(axis: Any, places: Any, line: Line) -> None:
    score, *bounds = line.scores
    axis.plot(places, score, color=line.colour, label=line.label, ls=line.style)
    if bounds:
        axis.fill_between(places, *bounds, color=line.colour, alpha=0.18, lw=0)


def over_steps(steps: Sequence[int], title: str, lines: Sequence[Line]) -> Figure:
    """Percent over the steps of a training; lines have a score for each step."""
    figure, axes = _panels(1, 1, 5.4, 3.5)
    axis = axes[0][0]
    for line in lines:
        _draw_line(axis, steps, line)
    axis.set_title(title)
    axis.set_xlabel("step")
    axis.set_ylim(0)
    axis.set_ylabel("%")
    _legend(figure, axes)
    return figure


def histograms(panels: Mapping[str, Sequence[float]]) -> Figure:
    """How many relations have an offset, a panel for each title."""
    figure, axes = _panels(1, len(panels), 3.4 * len(panels) + 1, 3)
    for axis, (title, numbers) in zip(axes[0], panels.items()):
        axis.hist(numbers, bins=20)
        axis.set_title(title)
        axis.set_xlabel("offset: tokens from the head to the dependent")
        axis.locator_params(axis="y", integer=True)
    axes[0][0].set_ylabel("relations")
    return figure


class Dots(NamedTuple):
    """A number or [number, low, high] for each row, None if it is missing: a dot, or a line for
    what needs no model."""

    label: str
    values: Sequence[Any]
    colour: str
    needs_no_model: bool = False


def dots(names: Sequence[str], panels: dict[str, list[Dots]]) -> Figure:
    """Points in rows that all panels share; a panel has its own numbers on its axis."""
    lines = sum(1 + name.count("\n") for name in names)
    height = max(2.4, 0.22 * lines + 1.1)
    places = range(len(names))
    figure, axes = _panels(1, len(panels), 3.1 * len(panels) + 1.2, height, sharey=True)
    for axis, (label, series) in zip(axes[0], panels.items()):
        for points in series:
            values, low, high = bounds_of(points.values)
            axis.hlines(places, low, high, color=points.colour, lw=1.5)
            look = (
                {"s": 110, "marker": "|", "linewidths": 2} if points.needs_no_model else {"s": 24}
            )
            axis.scatter(values, places, label=points.label, color=points.colour, zorder=3, **look)
        axis.set_xlabel(label)
        axis.locator_params(axis="x", nbins=5)
        axis.set_xlim(left=min(0, axis.get_xlim()[0]))
    axes[0][0].set_yticks(places, names)
    axes[0][0].set_ylim(len(names) - 0.5, -0.5)
    _legend(figure, axes)
    return figure


def heat(
    rows: Sequence[str], columns: Sequence[str], values: np.ndarray, marked: np.ndarray, label: str
) -> Figure:
    """Numbers (rows, columns) in colours, those above 0 in one and those below in another, NaN for
    gaps. `marked`: bool, of the same shape: numbers with a frame."""
    from matplotlib.patches import Rectangle

    size = 0.95 * len(columns) + 3.4, 0.27 * len(rows) + 2.1
    figure, axes = _panels(1, 1, *size)
    axis = axes[0][0]
    most = max(float(np.nanmax(np.abs(values), initial=0)), 1e-9)
    image = axis.imshow(values, cmap="PuOr_r", vmin=-most, vmax=most, aspect="auto")
    for row, column in np.argwhere(~np.isnan(values)).tolist():
        number = values[row, column]
        light = abs(number) > 0.55 * most
        text = f"{number:+.2f}".replace("-", "−")
        axis.text(
            column,
            row,
            text,
            ha="center",
            va="center",
            fontsize=8,
            color="#fdfdfd" if light else "#111111",  # on colours that are those of any page
        )
        if marked[row, column]:
            corner = column - 0.48, row - 0.48
            axis.add_patch(Rectangle(corner, 0.96, 0.96, fill=False, lw=2, ec="#111111"))
    axis.set_yticks(range(len(rows)), rows)
    axis.set_xticks(range(len(columns)), columns, rotation=25, ha="right")
    axis.grid(False)
    figure.colorbar(image, ax=axis, label=label, shrink=0.8)
    return figure


def style() -> contextlib.AbstractContextManager:
    """The matplotlib style in which figures are drawn and saved."""
    import matplotlib.style

    return matplotlib.style.context(_STYLE)


def svg_of(draw: Callable[[], Figure]) -> str:
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


def to_svg(figure: Figure) -> str:
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return readable(text.getvalue())


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


def _panels(
    rows: int, columns: int, width: float, height: float, **shared: Any
) -> tuple[Figure, np.ndarray]:
    """A figure of that size, and its axes (rows, columns)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained", dpi=150)
    return figure, figure.subplots(rows, columns, squeeze=False, **shared)


def _legend(figure: Figure, axes: Any) -> None:
    """Each label once, below all panels."""
    labels: dict[str, Artist] = {}
    for axis in np.ravel(axes):
        handles, names = axis.get_legend_handles_labels()
        labels |= dict(zip(names, handles))
    figure.legend([*labels.values()], [*labels], loc="outside lower center", ncols=2)
