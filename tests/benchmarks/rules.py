"""An attack on the score beyond offsets: rules without a model that are not built in.

    python tests/benchmarks/rules.py DATA CONFIG [--sample 40]

A rule is an offset, or the n-th token of a word class before or behind the token that reads: among
all, or among those of some depth of brackets, of more, less or as much indentation, or that begin a
line. Each relation has the one that finds most hard edges of validation; the mean of their top-1
UAS on hard edges of test stands beside that of the best rule that is built in, an offset or a
keyword.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import product

import numpy as np

from codesyntax_dataset.protocol import DIRECTIONS
from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT, NOT_IN_MEAN
from probing.evidence.baselines import Edges, read_edges
from probing.evidence.beyond import LEAST_HARD_EDGES, rivals
from probing.instruments.attention.offsets import best_offsets, is_hard
from probing.instruments.information.surface import Surface, WordClasses
from probing.runs.data import Row, load_functions
from probing.runs.settings import Sample
from probing.stats.intervals import FEW_CLUSTERS

Rule = tuple[int | None, ...]


def rules(surface: Surface, reader: int, target: int) -> Iterator[Rule]:
    """Of each family the only rule that leads from one token to another."""
    step = 1 if target > reader else -1
    properties = (
        surface.depth - surface.depth[reader],
        np.sign(surface.indent - surface.indent[reader]),
        surface.begins,
    )
    yield (target - reader,)
    path = np.arange(reader + step, target + step, step)
    for family in product((False, True), repeat=len(properties)):
        same = surface.classes[path] == surface.classes[target]
        asked = [int(values[target]) if used else None for used, values in zip(family, properties)]
        for used, values in zip(family, properties):
            same &= (values[path] == values[target]) | (not used)
        yield (*asked, step, int(surface.classes[target]), int(same.sum()))


def hits(
    hard: Edges, rows: dict[int, Row], classes: WordClasses, direction: str
) -> dict[str, list[tuple[int, set[Rule]]]]:
    """Relation -> the function of each hard edge, and the rules that find it."""
    surfaces = {index: Surface.of(row, classes) for index, row in rows.items()}
    found: dict[str, list[tuple[int, set[Rule]]]] = defaultdict(list)
    for index, relation, head, first, *_ in zip(*(c.tolist() for c in hard.columns.values())):
        ends = (head, first) if direction == HEAD_TO_DEPENDENT else (first, head)
        every = {*rules(surfaces[index], *ends)} if head != first else set()
        found[hard.relations[relation]].append((index, every))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data")
    parser.add_argument("config")
    parser.add_argument("--sample", type=int, help="functions that are drawn of each split")
    arguments = parser.parse_args()
    rows, edges = [], []
    for split in ("validation", "test"):
        dataset, _ = load_functions(arguments.data, arguments.config, split)
        places = Sample(size=arguments.sample or len(dataset), seed=0).places(len(dataset))
        rows.append(dict(zip(places, dataset.select(places))))
        edges.append(read_edges(arguments.data, arguments.config, split, np.array(places)))
    classes, offsets = WordClasses(rows[0].values()), best_offsets(edges[0], 1)
    hard = [table.take(is_hard(table, offsets)) for table in edges]
    for direction in DIRECTIONS:
        learned, tested = (hits(*split, classes, direction) for split in zip(hard, rows))
        scores = {}
        for name in tested.keys() & learned.keys() - NOT_IN_MEAN:
            functions = {index for index, _ in tested[name]}
            if len(tested[name]) >= LEAST_HARD_EDGES and len(functions) >= FEW_CLUSTERS:
                counted = Counter(rule for _, every in learned[name] for rule in every)
                best = max(sorted(counted, key=str), key=counted.__getitem__, default=None)
                scores[name] = 100 * np.mean([best in every for _, every in tested[name]])
        built_in = rivals(*edges, 1, direction).hits["combined"].only({*scores})
        print(
            f"{arguments.config}, {direction}, {len(scores)} relations: "
            f"{np.mean([*scores.values()]):.1f}, built in "
            f"{built_in.hits.mean(built_in.system).at(0).value:.1f}"
        )


if __name__ == "__main__":
    main()
