"""The table of the finding: UAS, closed share and minimal pairs, of models and of randomly
initialised copies of them.

    python tests/benchmarks/finding.py MODEL... --data csn --config python --output finding

MODEL is a Hub id, a folder or a GGUF file; --data a folder that `codesyntax build` wrote with the
configs LANGUAGE and LANGUAGE_pairs, such as that of `corpus.py`. Each row has, on test, with 95 %
intervals: held-out top-1 UAS, beside the best rule; the same beyond the best offset; the closed
share of usable information; the accuracy on all minimal pairs and on those that are read, with
intervals over repositories unless these are few, beside a rival that prefers the text with fewer
unmatched brackets and, where both have as many, what the surface rival does; and CPU seconds. With
--cluster repository, all intervals are over repositories.

Results are kept in --output. On a GPU, leave out --sample and --pairs.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

os.environ["CODESYNTAX_CACHE"] = ""  # CPU seconds are those of the run

import probing
from codesyntax_dataset.errors import ModelError
from codesyntax_dataset.protocol import RANDOM_WEIGHTS
from probing.instruments.information.result import InformationResult
from probing.instruments.likelihood.hits import MODEL
from probing.instruments.likelihood.result import WHOLE, stratum_weights
from probing.report.information import InformedModel
from probing.runs.repositories import clustered_by
from probing.runs.session import Session
from probing.stats.hits import Hits
from probing.stats.intervals import Estimate

COLUMNS = (
    "model",
    "held-out",
    "best rule",
    "beyond",
    "next rule",
    "closed, %",
    "pairs",
    "of those read",
    "rival, of those read",
    "CPU s",
)


def shown(estimate: Any) -> str:
    """Value and interval, if there is one, of an estimate or of a row of the frame."""
    if np.isnan(estimate.low):
        return f"{estimate.value:.1f}"
    return f"{estimate.value:.1f} [{estimate.low:.1f}, {estimate.high:.1f}]"


def attention_cells(frame: pd.DataFrame) -> list[str]:
    """The model and the best rule, on all edges and on those beyond the best offset."""
    means = frame.query("group == 'mean' and rule == 'first' and k == 1 and against == ''")
    return [
        shown(means.query("protocol == @protocol and system == @system").iloc[0])
        for protocol in ("held-out", "beyond-offset")
        for system in ("model", "combined")
    ]


def closed_cell(informed: InformationResult, arguments: argparse.Namespace) -> str:
    """The closed share, with the interval of the bits that attention adds, over the clusters that
    are asked for."""
    with tempfile.TemporaryDirectory() as folder, clustered_by(arguments.cluster, arguments.data):
        adds = InformedModel("", InformationResult.load(informed.save(folder))).adds_mean
    per_bit = informed.mean.share / informed.mean.adds
    low, high = sorted([per_bit * adds.low, per_bit * adds.high])
    return shown(Estimate(informed.mean.share, low, high, adds.p, adds.n))


def pair_cells(
    session: Session, arguments: argparse.Namespace, options: dict[str, Any]
) -> list[str]:
    """Accuracy on all minimal pairs and on those that are read, and that of the rival on these;
    nothing if the model has no head, or no pair is asked for."""
    if arguments.pairs == 0:
        return ["-", "-", "-"]
    options = {**options, "sample": arguments.pairs}
    try:
        preferred = probing.prefer(session, arguments.data, f"{arguments.config}_pairs", **options)
    except ModelError:
        return ["-", "-", "-"]
    rows, by_model = preferred.ledger.rows, preferred.ledger.preferred()[:, 0]
    read = rows["read"] == 1
    told_by_brackets = rows["counted"] != 1
    by_rival = np.where(told_by_brackets, rows["counted"], rows["surface"]) / 2
    return [
        accuracy_cell(rows, by_model),
        accuracy_cell(rows[read], by_model[read]),
        accuracy_cell(rows[read], by_rival[read]),
    ]


def accuracy_cell(rows: np.ndarray, preferred: np.ndarray) -> str:
    """The accuracy on some pairs (N,) of which the good text is `preferred` (N,), with the interval
    over repositories."""
    weights = stratum_weights(rows)
    sums = {MODEL: preferred[None] * weights}
    groups = np.full(len(rows), "all", object)
    hits = Hits.of_rows(rows["repository"], groups, sums, [WHOLE], weights, weighted=True)
    return shown(hits.each(hits.by_group(MODEL))["all"])


def row(model: str, arguments: argparse.Namespace, seed: int | None) -> list[str]:
    """The cells of a model, or of the copy of it that a seed draws."""
    begun = time.process_time()
    control = {} if seed is None else {"control": RANDOM_WEIGHTS, "seed": seed}
    name = Path(model).name if seed is None else f"{Path(model).name}, copy {seed}"
    output = Path(arguments.output) / name.replace(", ", "-")
    options = {"sample": arguments.sample, "output": output, **control}
    session = Session(model)
    results = [
        probing.probe(model, arguments.data, arguments.config, split, **options)
        for split in ("validation", "test")
    ]
    frame = probing.scores(results, arguments.data, cluster=arguments.cluster)
    informed = probing.inform(
        session, arguments.data, arguments.config, edges=arguments.edges, **options
    )
    cells = [name, *attention_cells(frame), closed_cell(informed, arguments)]
    cells += pair_cells(session, arguments, options)
    return [*cells, f"{time.process_time() - begun:.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--data", required=True)
    parser.add_argument("--config", default="python")
    parser.add_argument("--output", required=True)
    parser.add_argument("--sample", type=int, help="functions that are drawn of each split")
    parser.add_argument("--pairs", type=int, help="pairs that are drawn; 0: none are asked for")
    parser.add_argument("--edges", type=int, default=2000)
    parser.add_argument("--copies", type=int, default=3)
    parser.add_argument("--cluster", default="function", choices=("function", "repository"))
    arguments = parser.parse_args()
    print(f"| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}", flush=True)
    for model in arguments.models:
        for seed in (None, *range(arguments.copies)):
            print(f"| {' | '.join(row(model, arguments, seed))} |", flush=True)


if __name__ == "__main__":
    main()
