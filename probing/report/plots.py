"""A result on matplotlib axes: what a paper or a notebook shows of it alone."""

from __future__ import annotations

from functools import singledispatch

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from probing.attention.result import ProbeResult
from probing.evidence.effect import paired
from probing.prediction.result import MaskResult
from probing.report.figures import COLOURS, Dots, dots, style


@singledispatch
def plot(result: object, axes: Axes | None = None) -> Axes:
    """Draw a result on `axes`, or on new ones of a figure of their own, and return them.

    Of `probe`: the published top-1 UAS of each relation, rule first. Of `mask`: the effect of masking each node type on
    the Jaccard similarity, with 95 % intervals; filled if the test separates it from 0. Raises TypeError for others.
    """
    raise TypeError(f"{type(result).__name__} has no plot: expected a result of probe or mask")


@plot.register
def _attention(result: ProbeResult, axes: Axes | None = None) -> Axes:
    scores = {name: entry["first"]["1"]["score"] for name, entry in result.relations.items()}
    names = sorted(scores, key=lambda name: -scores[name])
    axes = axes or _new(len(names))
    axes.barh(names, [scores[name] for name in names], color=COLOURS[0])
    axes.invert_yaxis()
    axes.set_xlabel("published top-1 UAS, %")
    return axes


@plot.register
def _masking(result: MaskResult, axes: Axes | None = None) -> Axes:
    arms = {name: arm for name, arm in result.arms().items() if len(arm.functions)}
    effects = paired({name: arm.t1 for name, arm in arms.items()}, {name: arm.t0 for name, arm in arms.items()})
    names = sorted(effects, key=lambda name: effects[name].effect.estimate)
    cells = np.array([effects[name].effect for name in names], float).T
    axes = axes or _new(len(names))
    dots(axes, names, [Dots("", cells, COLOURS[0], [effects[name].p_holm < 0.05 for name in names])])
    axes.set_xlabel("T1 − T0, Jaccard similarity")
    return axes


def _new(rows: int) -> Axes:
    with style():
        return Figure(figsize=(6, 0.22 * rows + 1), layout="constrained").subplots()
