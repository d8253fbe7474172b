"""The formats of the cells of tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple


class Kind(NamedTuple):
    """The format of the cells of a column. `parts`: the suffixes of its columns in CSV; `look`: its
    CSS class; `least_first`: whether a click sorts the smallest number first."""

    show: Callable[[Any], str]
    parts: tuple[str, ...] = ("",)
    look: str = "n"
    least_first: bool = False

    @property
    def numeric(self) -> bool:
        return self.look == "n"


def _p(p: float) -> str:
    """A p-value with three or four digits, or that it is smaller."""
    if p < 0.0001:
        return "< 0.0001"
    return f"{p:.4f}" if p < 0.001 else f"{p:.3f}"


def _signed(value: float, digits: int = 1) -> str:
    text = f"{value:+.{digits}f}"
    return f"{0:.{digits}f}" if float(text) == 0 else text.replace("-", "−")


TEXT = Kind(str, look="t")
NAME = Kind(str, look="r")  # stays on one line
MARKED = Kind(str, ("", ", marks"), look="r")
LINK = Kind(str, ("", ", page"), look="t")  # a text, and where it leads; or a text alone
CODE = Kind(str, look="c")
SHORT = Kind(str)  # such as an attention head: aligned as numbers are
COUNT = Kind("{:,}".format)
COUNT_DIFFERENCE = Kind(lambda count: f"{count:+,}".replace("-", "−").replace("+0", "0"))
PERCENT = Kind("{:.1f}".format)
SCORE = Kind("{:.1f}".format, ("", ", low", ", high"))
CHOSEN = Kind("{:.1f}".format, ("", ", which"))
POINTS = Kind(_signed)  # a difference without an interval
DIFFERENCE = Kind(_signed, ("", ", low", ", high", ", p"))
SIMILARITY = Kind("{:.3f}".format)
ROUNDED = Kind("{:.2f}".format)  # similarities that were published with two digits
SIGNED = Kind(partial(_signed, digits=3))
EFFECT = Kind(SIGNED.show, (*DIFFERENCE.parts, ", marks"))
COST = Kind(SIGNED.show, SCORE.parts)
NATS = Kind(partial(_signed, digits=2))
P = Kind(_p, least_first=True)
RANK = Kind(str, least_first=True)  # a text: a rank, or the first and the last of a range
QUANTILE = Kind("{:g}".format)
LENGTH = Kind(lambda length: f"{length:,.1f}".removesuffix(".0"))
