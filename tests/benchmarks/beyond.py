"""The beyond-offset score: how often its intervals hold, and a table by relation.

    python tests/benchmarks/beyond.py --data codesyntax                      # intervals, by simulation
    python tests/benchmarks/beyond.py --data codesyntax --results results/   # a table of each model, checked

*Intervals*: of functions drawn from the test split of --config, each hard edge is found with a probability of its
function, 40 % on average; the interval of the mean at k = 1 should hold 40 in 93 to 97 % of the simulations.

*Tables*: the score of each relation at k = 1, and how far it is from that of a plain computation, edge by edge.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.references.plain_beyond import plain_beyond

from codesyntax_metric.topk_uas import RULES
from probing.evidence.baselines import Edges, read_edges
from probing.evidence.beyond import beyond
from probing.evidence.gather import find, gather
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.offsets import AVOIDED, best_offsets, is_hard

FOUND = 0.4


def drawn(edges: Edges, functions: np.ndarray) -> RankLedger:
    """The edges of some functions, which may be drawn twice; found as a head that knows 40 % would."""
    rng = np.random.default_rng(functions.sum())
    starts = np.searchsorted(edges.function, [functions, functions + 1])
    places = np.concatenate([np.arange(start, end) for start, end in starts.T])
    sizes = starts[1] - starts[0]
    likely = np.repeat(rng.beta(4 * FOUND, 4 * (1 - FOUND), len(functions)), sizes)
    ranks = np.where(rng.random(len(places)) < likely, 0, 255).astype(np.uint8)
    columns = {name: column[places] for name, column in edges.columns.items()}
    columns["function"] = np.repeat(np.arange(len(functions), dtype=np.int32), sizes)
    cells = np.broadcast_to(ranks[None, :, None, None], (len(RULES), len(ranks), 1, 1))
    return RankLedger(edges.relations, **columns, ranks=cells, settings={})


def simulated(data: str, config: str, simulations: int, functions: int) -> dict[str, object]:
    validation, test = (read_edges(data, config, split) for split in ("validation", "test"))
    everybody, held = np.unique(test.function), 0
    for seed in range(simulations):
        some = np.random.default_rng(seed).choice(everybody, functions)
        found = beyond(
            drawn(validation, np.unique(validation.function)), drawn(test, some), AVOIDED[0]
        )
        _, low, high = found.estimate.mean[:, 0, 0]
        held += low <= 100 * FOUND <= high
    hard = is_hard(test, best_offsets(validation, AVOIDED[0]))
    return {
        "config": config,
        "simulations": simulations,
        "hard %": round(100 * hard.mean(), 1),
        "held %": 100 * held / simulations,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, help="a dataset folder")
    parser.add_argument("--config", default="python")
    parser.add_argument(
        "--results",
        help="a folder that `probe` wrote: a table of each model instead of simulations",
    )
    parser.add_argument("--simulations", type=int, default=300)
    parser.add_argument("--functions", type=int, default=400)
    args = parser.parse_args()
    if args.results is None:
        print(json.dumps(simulated(args.data, args.config, args.simulations, args.functions)))
        return
    for probed in find([args.results]):
        settings = probed.test.settings
        if settings.config != args.config:
            continue
        (one,) = gather([probed], args.data)
        for avoided in AVOIDED:
            found = beyond(one.probed.validation.ledger, one.probed.test.ledger, avoided)
            print(
                f"\n{settings.model}, {settings.config}, {avoided} avoided: {found.estimate.mean[0, 0, 0]:.1f}, {found.share:.1f} % hard"
            )
            for column, name in enumerate(found.outcomes.relations):
                score, low, high = found.estimate.relations[:, 0, 0, column]
                print(
                    f"  {name:32} {found.edges[name][0]:6} of {found.edges[name][1]:6}  {score:5.1f} [{low:.1f}, {high:.1f}]"
                )
            plain = plain_beyond(
                one.probed.validation.ledger, one.probed.test.ledger, avoided, (1,)
            )
            scores = found.estimate.relations[0, 0, 0]
            apart = [
                abs(scores[column] - plain.scores[name, 1])
                for column, name in enumerate(found.outcomes.relations)
            ]
            print(
                f"  a plain computation differs by at most {max(apart):.1g} points, over {len(apart)} relations"
            )


if __name__ == "__main__":
    main()
