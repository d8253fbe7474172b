"""Do everything again under other circumstances, and compare every byte.

    python tests/faults --only reproducibility [--seed 0] [--times 10]

Each run builds a dataset, probes, masks, silences, analyses errors, writes statistics, a report and a board, in a process and
a folder of its own. From run to run vary: the seed of hashes, locale, time zone, working directory, relative or absolute
paths, the order of arguments, the number of processes, umask, home, and the order and times of the files that are read. The number of threads does not: sums of many numbers, as in what a
silenced head costs, are rounded otherwise by two threads than by one.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rows import Row

import codesyntax_dataset

_PROGRAM = """
import glob, json, os, sys
given = json.load(sys.stdin)
os.umask(given["umask"])
from probing.cli import main
from probing.instruments.silencing import choose
choose.beats_guess = lambda ledger, *_: {*ledger.relations}  # of heads so few and small a split, none would be silenced
for arguments in given["commands"]:
    main([path for word in arguments for path in sorted(glob.glob(word)) or [word]], standalone_mode=False)
"""

_READS = "tiny-code-mlm --data {}data --config python --quiet"
COMMANDS = (
    "build --source {}code --config python --config python_exact --num-proc {processes} --output {}data",
    f"probe {_READS} --split test --split validation --output {{}}results",
    f"mask {_READS} --draws 1 --node-types parameters,if_statement --output {{}}masked",
    f"ablate {_READS} --limit 2 --draws 1 --output {{}}silenced",
    "errors {}results/*.test.????????.json",
    "report {}results {}masked --output {}report",
    "report {}silenced --output {}report-silenced",
    "export {}results --format entry --output {}entries",
    "board {}entries --output {}board",
)
OUTPUTS = (
    "data",
    "results",
    "masked",
    "silenced",
    "report",
    "report-silenced",
    "entries",
    "board",
)

TIMES = 10


def circumstances(rng: random.Random, number: int) -> dict[str, Any]:
    """Of one run: the first of each kind in the first run, any of them later."""
    kinds = {
        "seed": ["0", *map(str, rng.sample(range(1, 2**32), 3))],
        "locale": ["C", "C.utf8", "POSIX", "de_DE.UTF-8", "tr_TR.UTF-8"],
        "zone": ["UTC", "Asia/Kolkata", "America/St_Johns", "Pacific/Kiritimati"],
        "relative": [True, False],
        "turned": [False, True],
        "processes": [1, 2],
        "umask": [0o022, 0o077, 0o002],
        "year": [2020, 1981, 2037],
    }
    return {
        kind: values[0] if number == 0 else rng.choice(values) for kind, values in kinds.items()
    }


def do(folder: Path, given: dict[str, Any], rng: random.Random) -> dict[str, bytes]:
    """Run all commands in a folder under these circumstances; path -> content of all outputs."""
    sources = Path(codesyntax_dataset.__file__).parent / "sample"
    files = [
        path
        for name in ("test/spans", "validation/unitconv")
        for path in (sources / name).rglob("*.py")
    ]
    for path in rng.sample(files, len(files)):  # a folder lists its files as they came
        copy = folder / "here/code" / path.relative_to(sources)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        os.utime(copy, (3.15e7 * (given["year"] - 1970) + rng.randrange(10**6),) * 2)
    elsewhere, home = folder / "elsewhere", folder / "home"
    elsewhere.mkdir(), home.mkdir()
    base = "" if given["relative"] else f"{folder}/here/"
    commands = [
        command.replace("{}", base).replace("{processes}", str(given["processes"])).split()
        for command in COMMANDS
    ]
    if given["turned"]:
        commands = [_turned(command) for command in commands]
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "PYTHONHASHSEED": given["seed"],
        "LC_ALL": given["locale"],
        "TZ": given["zone"],
        "OMP_NUM_THREADS": "1",
        "HOME": str(home),
        "HF_HUB_OFFLINE": "1",
    }
    ran = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        input=json.dumps({"umask": given["umask"], "commands": commands}),
        cwd=folder / "here" if given["relative"] else elsewhere,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, f"{given}: {ran.stderr[-2000:]}"
    made = [
        path for name in OUTPUTS for path in (folder / "here" / name).rglob("*") if path.is_file()
    ]
    return {path.relative_to(folder / "here").as_posix(): path.read_bytes() for path in made}


def _turned(command: list[str]) -> list[str]:
    """The same command with its options in another order, and its results, too."""
    name, *rest = command
    at = [place for place, word in enumerate(rest) if word.startswith("--")]
    options = [rest[start:end] for start, end in zip(at, [*at[1:], len(rest)])]
    return [
        name,
        *(word for option in reversed(options) for word in option),
        *reversed(rest[: at[0] if at else None]),
    ]


def run(seed: int, times: int) -> Row:
    """Raises AssertionError for the first file of another content."""
    rng = random.Random(seed)
    first: dict[str, bytes] = {}
    for number in range(times):
        given = circumstances(rng, number)
        with tempfile.TemporaryDirectory(prefix="codesyntax-again-") as folder:
            found = do(Path(folder), given, rng)
        first = first or found
        other = {path for path in first.keys() | found.keys() if first.get(path) != found.get(path)}
        assert not other, (
            f"run {number} of seed {seed}, {given}, has other bytes in {sorted(other)[:10]}"
        )
    return Row(
        "runs under other circumstances", times, f"the same bytes in each of {len(first)} files"
    )
