"""What edits keep of the functions of a source, and what fixed offsets lose by them.

    python tests/benchmarks/edits.py [SOURCE] [LANGUAGE ...]

For each edit: the functions with labels, the share of them that is kept, and of these the share whose stored edges are
among those of their code, annotated anew, with as many edges of each relation as before the edit. Then the top-1 score
of the offset baseline before and after, on the functions that are kept: published, mean over relations and pooled over
edges, and held-out.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

import datasets
import numpy as np

from codesyntax_dataset import annotate
from codesyntax_dataset.build import build
from codesyntax_dataset.folder import read_split
from codesyntax_dataset.protocol import EDITS, SPLITS
from probing.evidence import baselines
from probing.evidence.baselines import Edges
from probing.evidence.protocols import ONE_GUESS, ChosenHits

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "codesearchnet"


def labels(row: dict) -> Counter:
    return Counter(tuple(edge.values()) for edge in row["relations"])


def is_image(before: dict, after: dict, language: str) -> bool:
    """Whether the edges of the edited row are annotated in its code, as many of each relation as before."""
    anew = Counter(map(tuple, annotate(after["code"], language).edges))
    relations = [[edge["relation"] for edge in row["relations"]] for row in (before, after)]
    return labels(after) <= anew and relations[0] == relations[1]


def scores(edges: dict[str, Edges]) -> tuple[float, float, float]:
    """The offset baseline's: published mean, published pooled, held-out mean."""
    on_test = baselines.ledger(edges["test"], baselines.pick(edges["test"]))
    published = baselines.published(baselines.only(on_test, "offset"), "offset")
    _, held_out = baselines.chosen_on(edges["validation"], edges["test"])
    return *both(published), both(held_out["offset"])[0]


def both(chosen: ChosenHits) -> tuple[float, float]:
    """The mean over relations, and the score pooled over their edges."""
    hits = chosen.at(ONE_GUESS).hits
    hits = hits.where(groups=hits.counted)
    pooled = 100 * hits.total(chosen.system).sum() / hits.n.sum()
    return float(hits.mean(chosen.system).value[0]), float(pooled)


def main() -> None:
    source, *languages = sys.argv[1:] or [str(SHARED) if SHARED.is_dir() else "sample"]
    datasets.disable_progress_bars()
    with tempfile.TemporaryDirectory() as folder:
        data = f"{folder}/data"
        built = build(source, languages or ["python", "java"], data, edits=list(EDITS))
        for language in languages or ["python", "java"]:
            print(
                f"{language}, {source}\nedit             functions   kept  image  published     pooled        held-out"
            )
            plain = {
                split: list(read_split(built.output, language, split, list(_COLUMNS))[0])
                for split in SPLITS
            }
            for edit in EDITS:
                config, kept, image, total = f"{language}_{edit.replace('-', '_')}", {}, 0, 0
                for split, rows in plain.items():
                    edited = list(read_split(built.output, config, split, list(_COLUMNS))[0])
                    kept[split] = np.flatnonzero([bool(row["relations"]) for row in edited])
                    image += sum(
                        is_image(rows[place], edited[place], language)
                        for place in kept[split].tolist()
                    )
                    total += sum(bool(row["relations"]) for row in rows)
                before, after = (
                    scores(
                        {
                            split: baselines.read_edges(data, name, split, kept[split])
                            for split in SPLITS
                        }
                    )
                    for name in (language, config)
                )
                number = sum(map(len, kept.values()))
                changes = "  ".join(
                    f"{one:4.1f} -> {other:4.1f}" for one, other in zip(before, after)
                )
                print(
                    f"{edit:16} {total:9,} {number / total:6.1%} {image / number:6.1%}  {changes}"
                )


_COLUMNS = ("code", "relations")

if __name__ == "__main__":
    main()
