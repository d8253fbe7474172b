"""What all attacks have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Attack(NamedTuple):
    """An attack on a board, a verification or a submission.

    `forge`: makes it of something honest, which it changes; `stopped_by`: a regular expression that the refusal has.
    """

    name: str
    forge: Callable[..., Any]
    stopped_by: str = ""


def attacks(table: list[Attack]) -> Callable[..., Any]:
    """A decorator of functions that are attacks of a table; it takes what they are stopped by."""

    def stopped_by(reason: str = "") -> Callable[..., Any]:
        def register(forge: Callable[..., Any]) -> Callable[..., Any]:
            name = forge.__name__.replace("_", " ")
            table.append(Attack(name, forge, reason))
            return forge

        return register

    return stopped_by
