"""Hits of minimal pairs while heads are silenced: what the pairs lose of their margins, and how
much of that rests on the relation whose heads are silenced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

from probing.instruments.likelihood.result import LEAST_PAIRS
from probing.instruments.silencing.carried import CarryingResult, places_of
from probing.instruments.silencing.hits import BEST, MATCHED, WHOLE
from probing.instruments.silencing.result import WHOLE as WHOLE_MODEL
from probing.instruments.silencing.sets import rests_on
from probing.stats.hits import Hits
from probing.stats.intervals import Estimate, corrected

HARMFUL = "as harmful"
"""Of the matched sets the half whose loss of the valid texts' own log-probability is nearest to
that of the best heads: what any damage of this size does to margins."""

_MOST_PERMUTATIONS = 9_999


def system_of(kind: str, seeker: str) -> str:
    """The model without the best heads of a seeker, or without MATCHED or HARMFUL ones."""
    return f"{kind}: {seeker}"


def hits(result: CarryingResult, share: int) -> Hits:
    """The margins of pairs, in nats, by repository and column: WHOLE, and by `system_of` without
    the heads of each seeker."""
    rows = _by_pair(result)
    margins = (rows["good"] - rows["bad"]).T  # (sets, pairs)
    harm = _harm(rows)
    systems = {WHOLE: margins[[WHOLE_MODEL]]}
    for seeker in seekers(result, share):
        best, drawn = places(result, seeker, share)
        nearest = np.argsort(np.abs(harm[drawn] - harm[best]), kind="stable")
        as_harmful = np.array(drawn)[nearest[: (len(drawn) + 1) // 2]]
        for kind, numbers in ((BEST, [best]), (MATCHED, drawn), (HARMFUL, as_harmful)):
            systems[system_of(kind, seeker)] = margins[numbers].mean(axis=0, keepdims=True)
    few = {name for name, margin in result.phenomena.items() if margin.pairs < LEAST_PAIRS}
    return Hits.of_rows(
        rows["repository"][:, 0],
        _column_of_pairs(result, rows),
        systems,
        ("margin",),
        unit="nats",
        left_out=frozenset(few),
    )


def seekers(result: CarryingResult, share: int) -> list[str]:
    """Whose best heads are silenced, so many percent of all."""
    return list(
        dict.fromkeys(silenced.seeker for silenced in result.sets if silenced.share == share)
    )


def shares(result: CarryingResult) -> list[int]:
    """Percent of all heads that were silenced together; 0 for heads that the caller named."""
    return list(dict.fromkeys(silenced.share for silenced in result.sets))


def tested_pairs(result: CarryingResult, share: int) -> list[tuple[str, str]]:
    """The differences of a share, which are one family: of each seeker, what pairs have without
    matched heads and without the best ones."""
    return [
        (system_of(MATCHED, seeker), system_of(BEST, seeker)) for seeker in seekers(result, share)
    ]


def resting(names: Sequence[str], seeker: str) -> list[str]:
    """The columns among these names that rest on a seeker's relation."""
    return [name for name in names if rests_on(name, seeker)]


class Lost(NamedTuple):
    """A seeker of heads, and the pairs of a column in the mean: what is lost of their mean margin,
    in nats.

    `rests`: whether the pairs rest on the seeker's relation; `loss`: without the best heads;
    `matched`, `median`: without matched ones, the mean and the median over sets; `costlier`: how
    many of these cost as much; `difference`: `loss` less `matched`, with p corrected over all
    seekers and columns of the share; `harmful`: `loss` less that of HARMFUL sets.
    """

    seeker: str
    share: int
    column: str
    rests: bool
    loss: Estimate
    matched: float
    median: float
    costlier: int
    difference: Estimate
    harmful: float

    @property
    def stands_out(self) -> bool:
        """Whether more is lost than without any matched set, significantly more than on average."""
        return self.difference.significant and not self.costlier and self.difference.value > 0


class Carried(NamedTuple):
    """The carried share of a relation's heads: how much more margin than without matched heads the
    pairs that rest on the relation lose, less how much more all other pairs do, as percent of the
    whole model's margin on the former; p is corrected over relations.

    p is of these very sets, of which any two differ if there are enough pairs; `as_much`: how many
    of the matched sets carry as much themselves. `harm`: what the valid texts lose of their own
    log-probability without the best heads, in nats, and `matched_harm` without matched ones.
    """

    seeker: str
    share: int
    carried: Estimate
    as_much: int
    harm: float
    matched_harm: float


class Losses(NamedTuple):
    """All of a run at a share. `permutation_p`: how often carried shares are as high on average if
    relations exchange what rests on them; NaN where the same rests on all."""

    share: int
    matrix: list[Lost]
    carried: list[Carried]
    permutation_p: float


def losses_by_share(result: CarryingResult) -> Iterator[Losses]:
    """What minimal pairs lose without the heads of each seeker, by share."""
    rows = _by_pair(result)
    harm = _harm(rows)
    of_pair = _column_of_pairs(result, rows)
    lost_margins = rows["good"][:, :1] - rows["bad"][:, :1] - (rows["good"] - rows["bad"])
    for share in shares(result):
        every = hits(result, share)
        measured = every.where(every.counted)
        names = measured.counted
        # of each column, without each set: (columns, sets)
        costs = np.array([lost_margins[of_pair == name].mean(axis=0) for name in names])
        differences = measured.tested(*tested_pairs(result, share))
        matrix: list[Lost] = []
        carried: list[Carried] = []
        gains, rests = [], []
        for seeker, difference in zip(seekers(result, share), differences):
            best, drawn = places(result, seeker, share)
            systems = [system_of(kind, seeker) for kind in (MATCHED, BEST, HARMFUL)]
            matched_system, of_best, of_harmful = systems
            lost = measured.each(measured.by_group(WHOLE, of_best))
            gained = measured.each(difference)
            harmful = measured.scores(of_harmful) - measured.scores(of_best)
            for name, cost, beyond_harm in zip(names, costs, harmful[0].tolist()):
                matched = cost[drawn]
                matrix.append(
                    Lost(
                        seeker,
                        share,
                        name,
                        rests_on(name, seeker),
                        lost[name],
                        float(matched.mean()),
                        float(np.median(matched)),
                        int((matched >= cost[best]).sum()),
                        gained[name],
                        beyond_harm,
                    )
                )
            on_it = resting(names, seeker)
            if not on_it:
                continue
            rests.append(np.isin(names, on_it))
            gains.append(costs[:, best] - costs[:, drawn].mean(axis=1))
            beyond = _beyond_others(costs, rests[-1])
            carried.append(
                Carried(
                    seeker,
                    share,
                    measured.contrast(matched_system, of_best, on_it, WHOLE),
                    int((beyond[drawn] >= beyond[best]).sum()),
                    float(harm[best]),
                    float(harm[drawn].mean()),
                )
            )
        estimates = corrected([row.carried for row in carried]) if carried else []
        carried = [
            row._replace(carried=estimate.at(0)) for row, estimate in zip(carried, estimates)
        ]
        yield Losses(share, matrix, carried, _permutation_p(gains, rests))


def _beyond_others(costs: np.ndarray, rest: np.ndarray) -> Any:
    """What columns (C, ...) cost that rest on a relation, `rest` (C,), less what the others do, on
    average over each."""
    return costs[rest].mean(axis=0) - (costs[~rest].mean(axis=0) if not rest.all() else 0)


def _by_pair(result: CarryingResult) -> np.ndarray:
    """The rows of the ledger: (pairs, sets), the whole model first."""
    return result.ledger.rows.reshape(-1, len(result.sets) + 1)


def _column_of_pairs(result: CarryingResult, rows: np.ndarray) -> np.ndarray:
    """The column of each pair: (pairs,)."""
    return np.array(result.ledger.names, object)[rows["phenomenon"][:, 0]]


def _harm(rows: np.ndarray) -> np.ndarray:
    """What valid texts lose of their own log-probability on average, without each set: (sets,)."""
    return np.asarray((rows["good"][:, :1] - rows["good"]).mean(axis=0))


def places(result: CarryingResult, seeker: str, share: int) -> tuple[int, list[int]]:
    """The numbers of the best set of a seeker, and of the matched ones."""
    sets = result.sets
    (best,) = places_of(sets, seeker, share, "best")
    return best, places_of(sets, seeker, share, "matched")


def _permutation_p(gains: Sequence[np.ndarray], rests: Sequence[np.ndarray]) -> float:
    """The share of all exchanges of what rests on relations, or of many drawn ones, in which what
    columns lose beyond matched heads is, beyond others, as high on average.

    `gains`: of each relation this loss, in nats, of columns; `rests`: which of them rest on it.
    """
    if len({rest.tobytes() for rest in rests}) < 2:
        return float("nan")
    cells = np.array([[_beyond_others(gained, rest) for rest in rests] for gained in gains])
    numbers = np.arange(len(cells))
    if len(cells) <= 7:
        orders = list(permutations(numbers))
    else:
        rng = np.random.default_rng(0)
        drawn = [tuple(rng.permutation(numbers)) for _ in range(_MOST_PERMUTATIONS)]
        orders = [tuple(numbers), *drawn]
    sums = np.array([cells[numbers, list(order)].sum() for order in orders])
    return float(np.mean(sums >= np.trace(cells) - 1e-9))
