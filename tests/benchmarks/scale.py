"""Does building take more memory, or longer a function, for more functions? CPU time and peak resident set by size.

    python tests/benchmarks/scale.py                          # 10 thousand, 100 thousand and a million functions: half an hour
    python tests/benchmarks/scale.py 10000 100000 --language java --num-proc 2

The functions of CodeSearchNet in ../shared (or the folder named by CODESYNTAX_SHARED), or a few of our own where there are none,
again and again, each time with other names. Memory is that of the process, and of each that annotates as much as of the largest.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from codesyntax_dataset import CONFIGS, ParseError, tokenize
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_dataset.schema import Skips, SourceFunction
from codesyntax_dataset.sources import codesearchnet, read

SHARED = (
    Path(os.environ.get("CODESYNTAX_SHARED", Path(__file__).resolve().parents[3] / "shared"))
    / "data/codesearchnet"
)

SIZES = (10_000, 100_000, 1_000_000)


def pieces(function: SourceFunction) -> list[str]:
    """The code, cut so that every second piece is an identifier."""
    found, position = [], 0
    try:
        tokens = tokenize(function.code, function.language)
    except ParseError:
        tokens = []
    for token in tokens:
        if token.text.isidentifier() and token.text not in LANGUAGES[function.language].keywords:
            found += [function.code[position : token.start], token.text]
            position = token.end
    return [*found, function.code[position:]]


def codes(cut: list[list[str]], number: int) -> Iterator[tuple[int, str]]:
    """So many codes, each with the number of its function: the functions as they are, then again and again renamed."""
    for index in range(number):
        turn, which = divmod(index, len(cut))
        parts = cut[which]
        if turn:
            parts = [f"{part}_{turn}" if place % 2 else part for place, part in enumerate(parts)]
        yield which, "".join(parts)


def write(folder: Path, source: str, language: str, number: int) -> None:
    """A source of so many functions in the form of CodeSearchNet."""
    functions = list(read(source, language, Skips()))
    for partition, name in codesearchnet.PARTITIONS.items():
        of_partition = [function for function in functions if function.partition == partition]
        share = round(number * len(of_partition) / len(functions))
        file = folder / f"{language}/final/jsonl/{name}/{language}_{name}_0.jsonl.gz"
        file.parent.mkdir(parents=True)
        with gzip.open(file, "wt", compresslevel=1, encoding="utf-8") as lines:
            for place, (which, code) in enumerate(
                codes([pieces(function) for function in of_partition], share)
            ):
                function = of_partition[which]
                row = {
                    "code": code,
                    "repo": function.repo,
                    "path": function.path,
                    "func_name": function.func_name,
                }
                row |= {"url": f"{function.url}?{place}", "language": language, "partition": name}
                lines.write(json.dumps(row) + "\n")


def build(source: str, language: str, num_proc: int) -> None:
    """Build in this process, and print its functions, CPU seconds and peak memory in bytes."""
    from codesyntax_dataset.build import build

    with tempfile.TemporaryDirectory() as folder:
        report = build(source, [language], f"{folder}/data", num_proc=num_proc)
    own, annotating = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    seconds = sum(part.ru_utime + part.ru_stime for part in (own, annotating))
    peak = own.ru_maxrss + (num_proc if num_proc > 1 else 0) * annotating.ru_maxrss
    print(sum(report.configs[language].functions.values()), seconds, peak * 1024)


def measured(source: str, language: str, number: int, num_proc: int = 1) -> tuple[int, float, int]:
    """Functions built, CPU seconds and peak memory in bytes for a source of `number` functions, in a new process."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), source, language, number)
        command = [
            sys.executable,
            __file__,
            "--build",
            folder,
            "--language",
            language,
            "--num-proc",
            str(num_proc),
        ]
        functions, seconds, peak = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, text=True
        ).stdout.split()
    return int(functions), float(seconds), int(peak)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES, help="numbers of functions")
    parser.add_argument("--language", default="python", choices=list(CONFIGS))
    parser.add_argument("--num-proc", type=int, default=1)
    parser.add_argument("--build", metavar="SOURCE", help="only build from it, in this process")
    args = parser.parse_args()
    if args.build:
        build(args.build, args.language, args.num_proc)
        return
    rates = []
    for size in args.sizes:
        source = str(SHARED) if SHARED.is_dir() else "sample"
        functions, seconds, peak = measured(source, args.language, size, args.num_proc)
        rates.append(functions / seconds)
        print(
            f"{functions:,} {args.language} functions: {rates[-1]:,.0f} a CPU second, peak {peak / 2**30:.2f} GB",
            flush=True,
        )
    print(f"fastest over slowest: {max(rates) / min(rates):.2f}")


if __name__ == "__main__":
    main()
