"""An attack on the score beyond offsets: rules without a model that are not built in.

    python tests/benchmarks/rules.py RESULTS --data csn

RESULTS is a folder of probes of the splits test and validation. A rule is an offset, or the n-th token of a word class before or behind the token that reads: among all, or
among those of some depth of brackets, of more, less or as much indentation, or that begin a line.
Each relation has the one that finds most hard edges of validation. Their top-1 UAS on hard edges of
test stands beside that of the model's heads and of the best baseline that is built in. (Rankers that
need scikit-learn, which is no dependency, are in `probing/docs/findings.md`.)
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import product

import numpy as np

from codesyntax_dataset.protocol import BEST_BASELINE, BEYOND_OFFSET, HEAD_TO_DEPENDENT
from probing.evidence.gather import Probed, find, gather
from probing.instruments.attention.edges import EdgeTable
from probing.instruments.attention.offsets import best_offsets, is_hard
from probing.instruments.information.surface import Surface, WordClasses
from probing.runs.data import Row, load_functions
from probing.stats.hits import Hits

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
    hard: EdgeTable, rows: Mapping[int, Row], classes: WordClasses, direction: str
) -> dict[str, list[tuple[int, set[Rule]]]]:
    """Relation -> the function of each hard edge, and the rules that find it."""
    surfaces = {index: Surface.of(row, classes) for index, row in rows.items()}
    by_relation: dict[str, list[tuple[int, set[Rule]]]] = defaultdict(list)
    for index, relation, head, first, *_ in zip(*(c.tolist() for c in hard.columns.values())):
        ends = (head, first) if direction == HEAD_TO_DEPENDENT else (first, head)
        every = {*rules(surfaces[index], *ends)} if head != first else set()
        by_relation[hard.relations[relation]].append((index, every))
    return by_relation


def attack(probed: Probed, data: str) -> str:
    """The three scores of a model."""
    settings, rows, hard = probed.test.settings, [], []
    ledgers = probed.validation.ledger, probed.test.ledger
    offsets = best_offsets(ledgers[0])
    for split, ledger in zip(("validation", "test"), ledgers):
        table, _ = load_functions(data, settings.config, split)
        places = np.unique(ledger.function).tolist()
        rows.append(dict(zip(places, table.take(places).to_pylist())))
        hard.append(ledger.take(is_hard(ledger, offsets)))
    classes = WordClasses(rows[0].values())
    learned, tested = (hits(*split, classes, settings.direction) for split in zip(hard, rows))
    (evidence,) = gather([probed], data)
    model = evidence.hits[BEYOND_OFFSET]
    built_in = evidence.splits.rivals[BEYOND_OFFSET][BEST_BASELINE]
    scored = []
    for name in model.hits.counted:
        counted = Counter(rule for _, every in learned[name] for rule in every)
        best = max(sorted(counted, key=str), key=counted.__getitem__)
        scored += [(index, name, best in every) for index, every in tested[name]]
    functions, relations, hit = zip(*scored)
    of_rules = Hits.of_rows(
        np.array(functions), relations, {"rules": np.array([hit], np.int64)}, ("uas",)
    )
    scores = {
        "heads": model.hits.mean(model.system).at(0),
        "built in": built_in.hits.mean(built_in.system).at(0),
        "rules": of_rules.mean("rules").at(0),
    }
    shown = ", ".join(
        f"{name} {score.value:.1f} [{score.low:.1f}, {score.high:.1f}]"
        for name, score in scores.items()
    )
    return f"{probed.test.title}, {len(model.in_mean)} relations: {shown}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", nargs="+")
    parser.add_argument("--data", required=True)
    arguments = parser.parse_args()
    for probed in find(arguments.results):
        print(attack(probed, arguments.data), flush=True)


if __name__ == "__main__":
    main()
