"""What the baselines and the statistics cost at the size of the published dataset, and whether the intervals hold.

    python tests/benchmarks/baselines.py                        # everything, on the embedded sample and synthetic edges
    python tests/benchmarks/baselines.py --data codesyntax      # the published procedure on that test split

- *natural scale*: synthetic functions with the published number of edges of every Python relation; all offsets and
  keywords, all rules, k = 1 to 20. CPU seconds and peak memory of a process of its own.
- *published procedure*: each predictor of each edge in Python loops, as published, beside ours on the same edges.
- *noise*: 200 models of 12 heads that know nothing of syntax, of two kinds: random attention to all tokens, and to the 20
  tokens behind the one that reads, which is where dependents are. How often the paired test says that such a model is
  better than the best held-out baseline (p at most 0.05), by each rule at k = 1, 3, 10 and 20.
- *coverage*: 500 simulated models whose 12 heads have known accuracies. Of the heads that each protocol chooses, how
  often the 95 % interval holds the true accuracy.
"""

from __future__ import annotations

import argparse
import dataclasses
import resource
import tempfile
import time
from unittest.mock import patch

import numpy as np

from codesyntax_dataset import paper
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_dataset.protocol import KS, TABLE_KS
from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT, RULES, WORST_RANK, score
from probing.evidence.baselines import KINDS, Edges, evaluate, ledger, pick, read_edges
from probing.evidence.protocols import (
    ONE_GUESS,
    TABLE_MEASURES,
    compare,
    compare_means,
    held_out,
    published,
)
from probing.evidence.random_attention import random_attention
from probing.instruments.attention.ledger import RankLedger
from probing.stats import intervals

FUNCTIONS = 18_701
EDGES = paper.edges("python")  # Shen et al. 2022, Table 8


def synthetic(seed: int = 0) -> Edges:
    """Functions of 30 to 1500 tokens, one in ten a keyword; a third of the dependents is long."""
    rng = np.random.default_rng(seed)
    tokens = np.clip(rng.lognormal(np.log(130), 0.7, FUNCTIONS), 30, 1500).astype(int)
    edges = sum(EDGES.values())
    relation = np.repeat(np.arange(len(EDGES)), list(EDGES.values()))
    function = rng.choice(FUNCTIONS, edges, p=tokens / tokens.sum())
    order = np.argsort(function, kind="stable")
    function, relation = function[order], relation[order]
    size = tokens[function]
    head = (rng.random(edges) * (size - 2)).astype(int)
    first = np.minimum(head + rng.geometric(np.where(rng.random(edges) < 0.5, 0.4, 0.04)), size - 1)
    length = rng.geometric(np.choose(rng.integers(0, 3, edges), [1, 0.2, 0.02])) - 1
    keyword = np.where(
        rng.random(tokens.sum()) < 0.1,
        rng.integers(0, len(LANGUAGES["python"].keywords), tokens.sum()),
        -1,
    )
    return Edges(
        list(EDGES),
        function,
        relation,
        head,
        first,
        np.minimum(first + length, size - 1),
        size,
        begin=(tokens.cumsum() - tokens)[function],
        keyword=keyword.astype(np.int8),
        left_out=np.zeros(tokens.sum(), bool),
        language="python",
        settings={
            "data": "synthetic",
            "labels": "",
            "config": "python",
            "split": "test",
            "functions": FUNCTIONS,
        },
    )


class Clock:
    """Prints the CPU seconds since the last line, and the peak memory so far."""

    def __init__(self) -> None:
        self.at = time.process_time()

    def __call__(self, what: str) -> float:
        seconds = time.process_time() - self.at
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{what}: {seconds:.2f} s CPU, peak {peak:.0f} MB", flush=True)
        self.at = time.process_time()
        return seconds


def natural_scale() -> None:
    clock = Clock()
    edges = synthetic()
    clock(f"natural scale: {len(edges):,} edges, {len(EDGES)} relations, made")
    ranked = ledger(edges, pick(edges, HEAD_TO_DEPENDENT))
    counts = ranked.counts()
    for rule in RULES:
        score(counts, KS, rule)
    clock("  baselines, all rules, k = 1 to 20, scored")
    result = evaluate(edges, edges, HEAD_TO_DEPENDENT)
    clock("  both protocols, function by function (6 times)")
    chosen = result.hits["held-out"]
    chosen["combined"].hits.mean("combined")
    chosen["combined"].hits.by_group("combined")
    clock("  intervals of one of them, all rules, k and relations")
    compare(chosen["combined"], chosen["offset"], TABLE_MEASURES)
    clock("  one comparison, 9999 permutations and its intervals")


def published_procedure(data: str) -> None:
    edges = read_edges(data, "python", "test")
    start = time.process_time()
    ranked = ledger(edges, pick(edges, HEAD_TO_DEPENDENT))
    ours = time.process_time() - start
    counts = ranked.counts()
    start = time.process_time()
    for number, name in enumerate(edges.relations):
        of = edges.relation == number
        left = list(zip(edges.head[of].tolist(), edges.first[of].tolist()))
        for k in KS:
            best, most = 0, 0
            for offset in range(1, 513):
                gain = 0
                for head, first in left:
                    if head + offset == first:
                        gain += 1
                if gain > most:
                    best, most = offset, gain
            left = [(head, first) for head, first in left if head + best != first or not most]
            hits, expected = (
                counts.edges(name) - len(left),
                counts.hits(name, "first")[0, KINDS.index("offset"), k - 1],
            )
            if hits != expected:
                raise SystemExit(f"{name}, k = {k}: {hits} hits in loops, {expected} by ours")
    plain = time.process_time() - start
    print(
        f"published procedure, offsets to `first` alone, {len(edges):,} edges: {plain:.2f} s CPU; ours, offsets and "
        f"keywords by all rules: {ours:.2f} s; the hits are the same"
    )


def noise_nearby(edges: Edges, rng: np.random.Generator, heads: int) -> np.ndarray:
    """Ranks (rules, E, 1, heads) of heads that attend to the 20 tokens behind the one that reads, in random order."""
    near = np.arange(20)
    # (E, heads, 20)
    order = rng.permuted(np.tile(near.astype(np.uint8), (len(edges), heads, 1)), axis=-1)
    first, last = ((column - edges.head - 1)[:, None, None] for column in (edges.first, edges.last))
    spans = (first, first), (first, last), (last, last)
    ranks = [
        np.where((begin <= near) & (near <= end), order, WORST_RANK).min(axis=-1)
        for begin, end in spans
    ]
    return np.array(ranks, np.uint8)[:, :, None]


def noise(data: str, simulations: int = 200, heads: int = 12, pool: int = 40) -> None:
    for config in ("python", "java"):
        edges = [read_edges(data, config, split) for split in ("validation", "test")]
        best = evaluate(*edges).hits["held-out"]["combined"].at(TABLE_MEASURES)
        rng = np.random.default_rng(0)
        random = [random_attention(of, heads=pool, seed=seed) for seed, of in enumerate(edges)]

        def drawn(split: int) -> np.ndarray:
            """Of each function other heads: they are independent, so any of them make a model."""
            of = edges[split]
            own = np.array([rng.permutation(pool)[:heads] for _ in range(of.function.max() + 1)])[
                of.function
            ]
            return np.take_along_axis(random[split].ranks, own[None, :, None], axis=-1)

        for kind, ranks in (
            ("all tokens", drawn),
            ("the next 20 tokens", lambda split: noise_nearby(edges[split], rng, heads)),
        ):
            alarms, differences = [], []
            for seed in range(simulations):
                ledgers = [
                    dataclasses.replace(random[split], ranks=ranks(split)) for split in (0, 1)
                ]
                with patch.multiple(intervals, PERMUTATIONS=199, _SEED=seed):
                    found = compare_means(held_out(*ledgers).at(TABLE_MEASURES), best)
                alarms.append(found.significant & (found.value > 0))
                differences.append(found.value)
            by_rule = (np.mean(of, axis=0).reshape(len(RULES), -1) for of in (alarms, differences))
            for rule, alarm, difference in zip(RULES, *by_rule):
                cells = [
                    f"k={k} {100 * a:.1f} % ({d:+.1f})"
                    for k, a, d in zip(TABLE_KS, alarm, difference)
                ]
                print(
                    f"noise on {kind}, {config}, {rule}: better in {', '.join(cells)} of {simulations}",
                    flush=True,
                )


def coverage(simulations: int = 500, functions: int = 150, heads: int = 12) -> None:
    rng = np.random.default_rng(0)
    names = [f"r{number}" for number in range(6)]
    per_function = np.array([3, 2, 4, 1, 2, 0.5])
    inside = {"published": [], "held-out": []}
    means = {"published": [], "held-out": []}
    optimism = {"published": [], "held-out": []}

    def simulate(accuracy: np.ndarray, functions: int) -> RankLedger:
        """`accuracy`: (heads, relations). The functions have accuracies of their own, that on average."""
        edges = rng.poisson(per_function, (functions, len(names)))
        # (F, heads, R)
        own = rng.beta(4 * accuracy, 4 * (1 - accuracy), (functions, *accuracy.shape))
        function, relation = (
            np.repeat(index.ravel(), edges.ravel()) for index in np.indices(edges.shape)
        )
        hit = rng.random((len(function), heads)) < own[function, :, relation]
        ranks = np.where(hit, 0, 255).astype(np.uint8)[None, :, None, :]
        zeros = np.zeros(len(function), np.int32)
        ranks = np.broadcast_to(ranks, (len(RULES), *ranks.shape[1:]))
        return RankLedger(names, function, relation, zeros, zeros, zeros, zeros, ranks, {})

    for _ in range(simulations):
        accuracy = rng.uniform(0.05, 0.95, (1, len(names))) * rng.uniform(
            0.85, 1, (heads, len(names))
        )
        validation, test = simulate(accuracy, functions), simulate(accuracy, functions)
        for protocol, full in (
            ("published", published(test)),
            ("held-out", held_out(validation, test)),
        ):
            heads_of = [full.choice[name][0, 0, 1] for name in names]
            truth = 100 * accuracy[heads_of, np.arange(len(names))]
            hits = full.at(ONE_GUESS).hits
            middle, low, high, *_ = hits.by_group(full.system).at(0)
            mean = hits.mean(full.system).at(0)
            inside[protocol].append((low <= truth) & (truth <= high))
            means[protocol].append(mean.low <= truth.mean() <= mean.high)
            optimism[protocol].append((middle - truth).mean())
    for protocol in inside:
        print(
            f"coverage, {protocol}: relations {100 * np.mean(inside[protocol]):.1f} %, mean "
            f"{100 * np.mean(means[protocol]):.1f} %; scores are {np.mean(optimism[protocol]):+.2f} points off "
            f"({simulations} models, {functions} functions)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="a dataset folder; by default the embedded sample is built")
    parser.add_argument(
        "--only", choices=("natural-scale", "published-procedure", "noise", "coverage")
    )
    args = parser.parse_args()
    if args.only in (None, "natural-scale"):
        natural_scale()
    if args.only in (None, "coverage"):
        coverage()
    if args.only in (None, "published-procedure", "noise"):
        with tempfile.TemporaryDirectory() as folder:
            if args.data is None:
                from codesyntax_dataset.build import build

                args.data = f"{folder}/codesyntax"
                build("sample", ["python", "java"], args.data)
            if args.only != "noise":
                published_procedure(args.data)
            if args.only != "published-procedure":
                noise(args.data)


if __name__ == "__main__":
    main()
