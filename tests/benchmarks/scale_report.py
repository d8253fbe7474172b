"""What `codesyntax score`, `verify` and `report` cost on large ledgers: CPU seconds and peak memory of each.

    python tests/benchmarks/scale_report.py --edges 1340000                                    # one model of base size
    python tests/benchmarks/scale_report.py --edges 40000 --models 50 --config python --config java

Writes a dataset, the functions of the embedded sample repeated (or those of the folder --data), and for each model a
result on both splits with about so many edges in both together; ranks are drawn as of heads of which a few know a
relation. `report` runs twice: the second time with what the first one kept. `verify` finds no such model, and stops
after the checks that need none.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from codesyntax_dataset.build import build
from codesyntax_metric.topk_uas import RULES, SCORING_VERSION
from probing.instruments.attention.edges import EdgeTable
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.result import ProbeResult
from probing.runs.data import label_digest, load_functions, rows

SPLITS = ("test", "validation")
LONGEST = 350
"""Tokens of a function that a model of 512 sub-tokens reads, about."""


def repeated(folder: Path, configs: list[str], edges: int) -> None:
    """Repeat the functions of the dataset in `folder` until each config has so many edges, with new ids."""
    for config in configs:
        files = [folder / config / f"{split}.parquet" for split in SPLITS]
        tables = [pq.read_table(file) for file in files]
        lengths = [
            sum(
                len(row["relations"])
                for row in table.to_pylist()
                if len(row["token_start"]) <= LONGEST
            )
            for table in tables
        ]
        times, place = max(1, round(edges / sum(lengths))), tables[0].schema.get_field_index("id")
        for file, table in zip(files, tables):
            table = pa.concat_tables([table] * times)
            ids = pa.array(np.arange(len(table)), table.schema.field(place).type)
            pq.write_table(table.set_column(place, table.schema.field(place), ids), file)
    sums = folder / "SHA256SUMS"
    names = [line.partition("  ")[2] for line in sums.read_text().splitlines()]
    digests = [hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names]
    sums.write_text("".join(f"{digest}  {name}\n" for digest, name in zip(digests, names)))


def drawn(edges: EdgeTable, layers: int, heads: int, seed: int) -> np.ndarray:
    """Ranks (rules, E, layers, heads): most heads find a token anywhere, three of each relation among the first."""
    rng = np.random.default_rng(seed)
    ranks = np.empty((len(RULES), len(edges), layers * heads), np.uint8)
    good = np.random.default_rng(0).integers(0, layers * heads, (len(edges.relations), 3))
    for start in range(0, len(edges), 1 << 14):
        part = slice(start, start + (1 << 14))
        tokens = edges.tokens[part, None].astype(np.float32)
        scale = np.broadcast_to(tokens / 3, (len(tokens), layers * heads)).copy()
        np.put_along_axis(scale, good[edges.relation[part]], 4.0, axis=1)
        found = [
            np.minimum(
                rng.standard_exponential(scale.shape, np.float32) * scale,
                np.minimum(tokens - 1, 255),
            )
            for _ in range(2)
        ]
        first, last = (one.astype(np.uint8) for one in found)
        one_token = (edges.first[part] == edges.last[part])[:, None]
        ranks[0, part], ranks[2, part] = first, np.where(one_token, first, last)
        ranks[1, part] = np.minimum(ranks[0, part], ranks[2, part])
    return ranks.reshape(len(RULES), len(edges), layers, heads)


def write(folder: Path, data: Path, config: str, models: int, layers: int, heads: int) -> int:
    """Write the results of some models into `folder`; return the number of edges of one, both splits together."""
    total = 0
    for seed, split in enumerate(SPLITS):
        dataset, name = load_functions(data, config, split)
        numbered = enumerate(row for batch in rows(dataset, None) for row in batch)
        edges = EdgeTable.from_rows(
            (place, row) for place, row in numbered if len(row["token_start"]) <= LONGEST
        )
        total += len(edges)
        for model in range(models):
            settings = {
                "settings": {
                    "model": f"model-{model:02}",
                    "revision": f"{model:040}",
                    "data": name,
                    "labels": label_digest(dataset),
                    "config": config,
                    "split": split,
                    "direction": "head-to-dependent",
                    "dtype": "float32",
                    "max_length": 512,
                    "also_fits": [],
                    "limit": None,
                    "control": None,
                    "seed": None,
                },
                "scoring": SCORING_VERSION,
                "skips": {},
                "ties": dict.fromkeys(RULES, 0),
                "run": {
                    "family": "bert",
                    "attention": "captured",
                    "attention_why": "",
                    "device": "cpu",
                },
                "versions": {},
            }
            ledger = RankLedger.of(
                edges, drawn(edges, layers, heads, len(SPLITS) * model + seed), settings
            )
            ProbeResult.from_ledger(ledger, data).save(folder)
    return total


def measured(command: str) -> None:
    """Run a command of the command line; print what it cost."""
    before = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "probing", *shlex.split(command)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    cpu, peak = used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20
    said = f"  (exit status {code})" if (code := os.waitstatus_to_exitcode(status)) else ""
    print(
        f"{command.split()[0]:8} {cpu:7.1f} s of CPU {time.monotonic() - before:7.1f} s {peak:6.2f} GB{said}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--edges", type=int, default=1_340_000)
    parser.add_argument("--models", type=int, default=1)
    parser.add_argument("--config", action="append", help="may be repeated; python by default")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument(
        "--work", type=Path, help="a folder that keeps what is written, to run again"
    )
    args = parser.parse_args()
    configs = args.config or ["python"]
    with tempfile.TemporaryDirectory() as temporary:
        work = args.work or Path(temporary)
        os.environ |= {"CODESYNTAX_CACHE": str(work / "cache"), "HF_HUB_OFFLINE": "1"}
        data, results = work / "codesyntax", work / "results"
        if not results.exists():
            build("sample", configs, data)
            repeated(data, configs, args.edges)
            for config in configs:
                edges = write(results, data, config, args.models, args.layers, args.heads)
                print(
                    f"{config}: {edges:,} edges x {args.layers * args.heads} heads x {args.models} models"
                )
        first = sorted(map(str, results.glob(f"model-00.{configs[0]}.*.json")))
        measured("score " + " ".join(name.replace(".json", ".ledger.parquet") for name in first))
        measured("verify " + first[0])
        for _ in range(2):
            measured(f"report {results} --output {work / 'report'}")


if __name__ == "__main__":
    main()
