"""The course of a training: one picture and one sentence of what `evaluate` found at its steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from codesyntax_dataset.errors import ArgumentError
from probing.report import figures
from probing.report.figures import COLOURS, FAINT, Line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PREFIX = "syntax/"

_PANELS = {
    "edges that heads find": {
        "held_out": ("heads, held-out", COLOURS[0], "-"),
        "best_rule": ("best offset or keyword", FAINT, "--"),
        "beyond_offset": ("heads, beyond the best offset", COLOURS[1], "-"),
    },
    "likelier text parses": {"preference": ("minimal pairs", COLOURS[2], "-")},
    "restored": {"restored": ("sub-tokens of masked nodes", COLOURS[2], "-")},
}
"""Title -> number in percent -> its label, colour and style."""


class TrainingCourse(NamedTuple):
    """What `evaluate` found at the S `steps` of a training, ascending: `numbers`: name, without
    `syntax/`, -> (S,), NaN where there is none."""

    steps: list[int]
    numbers: dict[str, np.ndarray]

    @property
    def sentence(self) -> str:
        """Where the heads are at the end, beside the best rule, and since when they have been above
        it."""
        heads, rule = self.numbers["held_out"], self.numbers["best_rule"]
        (below,) = np.nonzero(~(heads > rule))
        first = int(below[-1]) + 1 if len(below) else 0
        passed = (
            f"pass it from step {self.steps[first]:,} on"
            if first < len(heads)
            else "do not pass it"
        )
        return (
            f"At step {self.steps[-1]:,} the best heads find {heads[-1]:.1f} % of the edges (held-out), the best "
            f"offset or keyword {rule[-1]:.1f} %: they {passed}."
        )

    def plot(self) -> Figure:
        """The numbers in percent over steps."""
        panels = {
            title: [
                Line(label, self.numbers[name][None], colour, style)
                for name, (label, colour, style) in lines.items()
                if name in self.numbers
            ]
            for title, lines in _PANELS.items()
        }
        with figures.style():
            return figures.over_steps(
                self.steps, {title: lines for title, lines in panels.items() if lines}
            )


def course(history: Sequence[Mapping[str, Any]]) -> TrainingCourse:
    """The course of a training from its log.

    Args:
        history: `trainer.state.log_history`, which is also in the `trainer_state.json` of a
        checkpoint, or what a loop
            of your own logged: `step` and the numbers of `evaluate`. Entries without these are left
            out; of several of one step the last counts.

    Raises ArgumentError if no entry has any.
    """
    entries = {int(entry["step"]): entry for entry in history if f"{_PREFIX}held_out" in entry}
    if not entries:
        raise ArgumentError(
            f"none of {len(history)} entries has {_PREFIX}held_out, expected the log of a training with SyntaxCallback"
        )
    steps = sorted(entries)
    names = {name: None for entry in entries.values() for name in entry if name.startswith(_PREFIX)}
    numbers = {
        name: np.array([float(entries[step].get(name, np.nan)) for step in steps]) for name in names
    }
    return TrainingCourse(
        steps, {name.removeprefix(_PREFIX): series for name, series in numbers.items()}
    )
