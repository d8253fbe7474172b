"""The beyond-offset score once more, edge by edge from the rows of two ledgers, as slow and plain as it gets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from probing.instruments.attention.ledger import RankLedger
from probing.stats.intervals import FEW_CLUSTERS


@dataclass
class Plain:
    """`scores`: (relation, k) -> percent by the rule `first`; `hard`, `edges`: relation -> number of these in `test`."""

    offsets: dict[str, int]
    hard: dict[str, int]
    edges: Counter[str]
    scores: dict[tuple[str, int], float] = field(default_factory=dict)
    few: dict[str, int] = field(default_factory=dict)
    unchosen: list[str] = field(default_factory=list)


def plain_beyond(validation: RankLedger, test: RankLedger, ks: Sequence[int]) -> Plain:
    distances: dict[str, Counter[int]] = {}
    for name, distance, *_ in _rows(validation):
        distances.setdefault(name, Counter())[distance] += 1
    offsets = {
        name: min(counts, key=lambda distance: (-counts[distance], abs(distance)))
        for name, counts in distances.items()
    }
    hard: list[dict[str, list]] = [{}, {}]
    for found, ledger in zip(hard, (validation, test)):
        for name, distance, function, ranks in _rows(ledger):
            if distance != offsets.get(name):
                found.setdefault(name, []).append((function, ranks))
    chosen_on, scored = hard
    edges = Counter(name for name, *_ in _rows(test))
    plain = Plain(offsets, {name: len(some) for name, some in scored.items()}, edges)
    for name, some in sorted(scored.items()):
        functions = len({function for function, _ in some})
        if name not in chosen_on:
            plain.unchosen.append(name)
        elif functions < FEW_CLUSTERS:
            plain.few[name] = functions
        else:
            for k in ks:
                best = np.mean([ranks < k for _, ranks in chosen_on[name]], axis=0).argmax()
                plain.scores[name, k] = float(
                    100 * np.mean([ranks.ravel()[best] < k for _, ranks in some])
                )
    return plain


def _rows(ledger: RankLedger) -> Iterator[tuple[str, int, int, np.ndarray]]:
    """Of each edge: relation, offset, function, and ranks by the rule `first` (layers, heads)."""
    ranks = np.asarray(ledger.ranks[0])  # at once: they are in a file
    for place in range(len(ledger)):
        name = ledger.relations[ledger.relation[place]]
        offset = int(ledger.first[place] - ledger.head[place])
        yield name, offset, int(ledger.function[place]), ranks[place]
