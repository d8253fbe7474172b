"""Small drawings for pages, as inline SVG: a grid of cells, a score on a scale, curves.

Colours come from the page's style sheet, by class, so that they follow its scheme and print.
Numbers have two digits, so that the same numbers give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

CELL, GAP = 27, 3
"""Pixels of a cell of a grid, and between two."""

MARGIN = 26
"""Pixels beside and below a grid or chart, for its numbers."""


class Cell(NamedTuple):
    """A cell of a grid. `look`: the class of its colour; `strength`: of the colour, from 0 to 1;
    `title`: said on hover, and by a screen reader."""

    text: str = ""
    look: str = ""
    strength: float = 0
    title: str = ""


class Mark(NamedTuple):
    """A number on a scale, with its class and name, and its interval if it is a dot."""

    look: str
    name: str
    value: float | None
    low: float | None = None
    high: float | None = None


class Curve(NamedTuple):
    """A curve: its class, its name and a number for each place, None for gaps."""

    look: str
    name: str
    values: Sequence[float | None]


def _tag(name: str, content: Iterable[Markup | str] | str = "", **attributes: object) -> Markup:
    """An element; `_` in names of attributes is `-`, and `look` is the class."""
    known = {
        ("class" if key == "look" else key.replace("_", "-")): attributes[key] for key in attributes
    }
    written = Markup(" ").join(
        Markup('{}="{}"').format(
            key, f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value
        )
        for key, value in known.items()
        if value is not None
    )
    parts = [content] if isinstance(content, str) else content
    inner = Markup("").join(map(escape, parts))
    return Markup("<{0} {1}>{2}</{0}>").format(Markup(name), written, inner)


def _drawing(
    width: int, height: int, parts: Iterable[Markup], label: str, **attributes: object
) -> Markup:
    box = f"0 0 {width} {height}"
    return _tag(
        "svg", parts, viewBox=box, width=width, height=height, aria_label=label, **attributes
    )


def grid(
    rows: Sequence[str],
    columns: Sequence[str],
    cells: Mapping[tuple[int, int], Cell],
    label: str,
    beside: int = MARGIN,
) -> Markup:
    """Cells in rows and columns, whose names stand `beside` (pixels) and below. A cell that is not
    given is empty. Each is a button, with its row and column as `data-at`."""
    step = CELL + GAP
    parts = []
    for row, name in enumerate(rows):
        middle = row * step + CELL / 2
        parts.append(_tag("text", name, look="name", x=beside - 6, y=middle + 4, text_anchor="end"))
        for column in range(len(columns)):
            cell = cells.get((row, column), Cell())
            x, y = beside + column * step, row * step
            shape = _tag("rect", x=x, y=y, width=CELL, height=CELL, rx=4)
            tint = _tag(
                "rect",
                x=x,
                y=y,
                width=CELL,
                height=CELL,
                rx=4,
                look=f"tint {cell.look}".strip(),
                style=f"opacity: {cell.strength:.2f}",
            )
            number = _tag("text", cell.text, x=x + CELL / 2, y=middle + 4, text_anchor="middle")
            title = _tag("title", cell.title or f"{name}-{columns[column]}")
            parts.append(
                _tag(
                    "g",
                    [title, shape, tint, number],
                    look="cell",
                    role="button",
                    tabindex=-1,
                    data_at=f"{row},{column}",
                )
            )
    for column, name in enumerate(columns):
        across = beside + column * step + CELL / 2
        parts.append(
            _tag("text", name, look="name", x=across, y=len(rows) * step + 13, text_anchor="middle")
        )
    width, height = beside + len(columns) * step, len(rows) * step + 18
    return _drawing(width, height, parts, label, look="grid", role="group")


def scale(dot: Mark, marks: Sequence[Mark], width: int = 400, most: float = 100) -> Markup:
    """A dot with its interval, and a mark for each rival, on one scale from 0."""
    height, middle, left = 18, 9.0, 6.0
    factor = (width - 2 * left) / most

    def x(value: float) -> float:
        return left + factor * min(max(value, 0), most)

    parts = [_tag("line", look="track", x1=left, x2=width - left, y1=middle, y2=middle)]
    said = []
    for mark in (*marks, dot):
        if mark.value is None:
            continue
        said.append(f"{mark.name} {mark.value:.1f}")
        if mark is not dot:
            place = x(mark.value)
            parts.append(
                _tag("line", look=f"mark {mark.look}", x1=place, x2=place, y1=2.0, y2=16.0)
            )
            continue
        if mark.low is not None and mark.high is not None and mark.low == mark.low:
            said[-1] += f" [{mark.low:.1f}, {mark.high:.1f}]"
            parts.append(
                _tag(
                    "line",
                    look=f"bar {mark.look}",
                    x1=x(mark.low),
                    x2=x(mark.high),
                    y1=middle,
                    y2=middle,
                )
            )
        parts.append(_tag("circle", look=f"dot {mark.look}", cx=x(mark.value), cy=middle, r=4.5))
    label = ", ".join(reversed(said)) + " percent"
    return _drawing(width, height, [_tag("title", label), *parts], label, look="scale", role="img")


def chart(
    places: Sequence[str], curves: Sequence[Curve], label: str, below: str, width: int = 340
) -> Markup:
    """Curves over places at equal distances, in percent from 0 to 100; `below`: what the places
    are."""
    height, top, margin = 190, 8, MARGIN + 8
    bottom, right = height - 38, width - 16
    step = (right - margin - 8) / max(1, len(places) - 1)

    def x(place: int) -> float:
        return margin + 8 + step * place

    def y(value: float) -> float:
        return bottom - (bottom - top) * value / 100

    parts = []
    for value in (0, 25, 50, 75, 100):
        parts.append(_tag("line", look="track", x1=margin, x2=right, y1=y(value), y2=y(value)))
        parts.append(
            _tag("text", str(value), look="name", x=margin - 5, y=y(value) + 4, text_anchor="end")
        )
    most = max(1, len(places) // 8)
    for place, name in enumerate(places):
        if place % most == 0:
            parts.append(
                _tag("text", name, look="name", x=x(place), y=bottom + 16, text_anchor="middle")
            )
    parts.append(
        _tag(
            "text", below, look="name", x=(margin + right) / 2, y=bottom + 34, text_anchor="middle"
        )
    )
    for curve in curves:
        known = [
            (x(place), y(value)) for place, value in enumerate(curve.values) if value is not None
        ]
        points = " ".join(f"{across:.1f},{down:.1f}" for across, down in known)
        title = _tag(
            "title",
            f"{curve.name}: "
            + ", ".join(
                f"{name} {value:.1f}"
                for name, value in zip(places, curve.values)
                if value is not None
            ),
        )
        dots = [_tag("circle", cx=across, cy=down, r=2.2) for across, down in known]
        parts.append(
            _tag("g", [title, _tag("polyline", points=points), *dots], look=f"curve {curve.look}")
        )
    return _drawing(width, height, parts, label, look="chart", role="img")
