"""What the verifications of all instruments share: checks, verdicts, drawing functions, and bias."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

ACCEPTED, REJECTED, UNCHECKED = "accepted", "rejected", "could not be checked"
"""The three verdicts. Missing files are never a rejection."""

FUNCTIONS = 64
"""The default number of functions to probe again."""

MOST_BIASED = 5.0
"""Standard deviations by which differences may favour the result: for one head or score, by chance less than once in
250,000 times (Hoeffding 1963: exp(-MOST_BIASED ** 2 / 2) for sums of independent terms with random signs)."""


class Check(NamedTuple):
    """One check: its name, whether it passed (None: it could not be made), and what was found."""

    name: str
    passed: bool | None
    found: str


@dataclass
class Verification:
    """The checks of one result, and how many functions were probed again: `functions` out of `of`. `ledger`: the digest
    of the ledger that was checked, if it came to that."""

    checks: list[Check]
    functions: int = 0
    of: int = 0
    ledger: str = ""

    @property
    def verdict(self) -> str:
        """ACCEPTED, REJECTED or UNCHECKED."""
        passed = [check.passed for check in self.checks]
        return REJECTED if False in passed else UNCHECKED if None in passed else ACCEPTED

    @property
    def accepted(self) -> bool:
        return self.verdict == ACCEPTED


def same(name: str, theirs: Any, ours: Any, named: bool = True) -> Check:
    """Whether both are equal. If not `named` by the user, a difference may only mean that another one has this name."""
    if theirs == ours:
        return Check(name, True, f"{theirs}")
    difference = f"the result says {theirs}, here it is {ours}"
    return (
        Check(name, False, difference) if named else Check(name, None, f"{difference}: say with --{name} where it is")
    )


def without_replacement(weight: np.ndarray, number: int, rng: np.random.Generator) -> np.ndarray:
    """Draw `number` functions, each with probability proportional to its weight, or 1 if that exceeds 1.

    Systematic sampling in random order (Madow 1949).
    """
    if number >= len(weight):
        return np.arange(len(weight))
    chance = np.zeros(len(weight))
    while True:
        rest = chance < 1
        chance[rest] = np.minimum(1, (number - np.count_nonzero(~rest)) * weight[rest] / weight[rest].sum())
        if not (chance[rest] == 1).any():
            break
    order = rng.permutation(len(weight))
    passed = np.floor(rng.random() + np.concatenate([[0], chance[order].cumsum()]))
    return order[np.diff(passed) > 0]


def in_deviations(differences: np.ndarray) -> np.ndarray:
    """The sum of differences (F, ...) over functions, in standard deviations of sums with random signs."""
    spread = np.sqrt((differences.astype(float) ** 2).sum(axis=0))
    return np.divide(differences.sum(axis=0), spread, out=np.zeros(spread.shape), where=spread > 0)


def report(verification: Verification) -> Sequence[str]:
    """One line per check, and the verdict."""
    mark = {True: "ok  ", False: "FAIL", None: "?   "}
    lines = [f"{mark[check.passed]} {check.name}: {check.found}" for check in verification.checks]
    return [*lines, verification.verdict if verification.accepted else verification.verdict.upper()]
