"""What all attacks have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Attack(NamedTuple):
    """An attack on a board, a verification or a submission.

    `round`: of the three in which they were looked for; `gains`: what it would have gained; `forge`: makes it of
    something honest, which it changes; `stopped_by`: a regular expression that the refusal has. Without `forge`, the
    test that makes it and shows what stops it, `path::name`.
    """

    name: str
    round: int
    gains: str
    forge: Callable[..., Any] | None
    stopped_by: str = ""


def attacks(table: list[Attack], round: int, gains: str) -> Callable[..., Any]:
    """A decorator of functions that are attacks of a table; it takes what they are stopped by."""

    def stopped_by(reason: str = "") -> Callable[..., Any]:
        def register(forge: Callable[..., Any]) -> Callable[..., Any]:
            name = forge.__name__.replace("_", " ")
            table.append(Attack(name, round, gains, forge, reason))
            return forge

        return register

    return stopped_by
