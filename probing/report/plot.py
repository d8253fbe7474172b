"""The plot of a result on its own."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

from probing.instruments.attention.result import ProbeResult
from probing.instruments.masking.hits import hits
from probing.instruments.masking.result import MaskResult
from probing.report import figures
from probing.report.figures import COLOURS
from probing.report.scored import dots
from probing.report.syntaxeval import SHOWN_SIMILARITY, corrected_effects
from probing.report.words import RULE, K

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@singledispatch
def plot(result: object, axes: Axes | None = None) -> Axes:
    """Draw a result on `axes`, or on new ones of a figure of their own, and return them.

    Of `probe`: the published top-1 UAS of each relation, rule first. Of `mask`: the effect of
    masking each node type on the Jaccard similarity, with 95 % intervals; filled if the test
    separates it from 0. Raises TypeError for others.
    """
    raise TypeError(f"{type(result).__name__} has no plot: expected a result of probe or mask")


@plot.register(ProbeResult)
def _plot_attention(result: ProbeResult, axes: Axes | None = None) -> Axes:
    scores = {name: entry[RULE][K].score for name, entry in result.relations.items()}
    names = sorted(scores, key=lambda name: -scores[name])
    axes = axes or _new(len(names))
    axes.barh(names, [scores[name] for name in names], color=COLOURS[0])
    axes.invert_yaxis()
    axes.set_xlabel("published top-1 UAS, %")
    return axes


@plot.register(MaskResult)
def _plot_masking(result: MaskResult, axes: Axes | None = None) -> Axes:
    effects = corrected_effects(hits(result)[SHOWN_SIMILARITY])
    names = sorted(effects, key=lambda name: effects[name].value)
    axes = axes or _new(len(names))
    figures.dots(axes, names, [dots("", [effects[name] for name in names], COLOURS[0])])
    axes.set_xlabel("T1 − T0, Jaccard similarity")
    return axes


def _new(rows: int) -> Axes:
    from matplotlib.figure import Figure

    with figures.style():
        return Figure(figsize=(6, 0.22 * rows + 1), layout="constrained").subplots()
