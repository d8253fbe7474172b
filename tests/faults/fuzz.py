"""Fuzzing: no input of others ends in an error that is not ours, or takes more time or memory than it may.

    python tests/faults/fuzz.py --inputs 200000 --seed 0
    python tests/faults/fuzz.py --seed 0 --only 4711      # one input again, with its traceback

An input depends on the seed and its number alone. Inputs are code for the annotators and edits of all languages
(tests/support/attacks/fuzzed_code.py) and files of every foreign format (tests/support/attacks/fuzzed_files.py). A plain generator, not
hypothesis: 200,000 inputs take minutes, and what it finds is small anyway; atheris would guide by the coverage of Python,
but the parsers are C. A process of its own takes the inputs; if it dies or hangs, that counts, and the next goes on.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rows import Row
from support.attacks import fuzzed_code

from codesyntax_dataset import annotate, tokenize
from codesyntax_dataset.edits import edit
from codesyntax_dataset.errors import CodeSyntaxError
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_dataset.protocol import EDITS
from codesyntax_dataset.safe_files import LONGEST_FUNCTION

TIMES = 200_000
SECONDS = 2.0
"""CPU time of an input of at most 50,000 characters or bytes; of longer ones, for each 50,000."""
MEGABYTES = 500
HANGS = 60
"""Seconds after which a process that goes on with one input is ended."""


WRONG = ("foreign exception", "several lines", "the process ended", "too slow", "too large")
"""What must not become of an input: an exception of another family, a message of several lines, ..."""


class Input(NamedTuple):
    """One input: what it is for, its size in characters or bytes, and what is done with it."""

    target: str
    size: int
    work: Callable[[], object]


class Outcome(NamedTuple):
    """What became of an input: `accepted`, `refused`, or what is wrong."""

    number: int
    target: str
    became: str
    seconds: float
    said: str = ""


def code_input(rng: random.Random) -> Input:
    language = rng.choice(fuzzed_code.LANGUAGES_OF_CODE)
    text = fuzzed_code.code(rng, language)
    variant = rng.choice(LANGUAGES[language].variant_names)
    kind = rng.random()
    if kind < 0.8:
        return Input(f"annotate {language}", len(text), lambda: annotate(text, language, variant))
    if kind < 0.9:
        return Input(f"tokenize {language}", len(text), lambda: tokenize(text, language, variant))
    name = rng.choice([*EDITS])
    return Input(f"edit {language}", len(text), lambda: edit(text, language, name, variant))


def input_of(seed: int, number: int, files: bool) -> Input:
    rng = random.Random(f"{seed}-{number}")
    if files and rng.random() < 0.25:
        from support.attacks import fuzzed_files

        return Input(*fuzzed_files.file_input(rng))
    return code_input(rng)


def tried(seed: int, numbers: Iterable[int], files: bool = True) -> Iterator[Outcome]:
    """What becomes of inputs, in this process."""
    if files:
        from support.attacks import fuzzed_files

        fuzzed_files.place_all()
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in numbers:
        one = input_of(seed, number, files)
        held = _resident()
        began, became, said = time.process_time(), "accepted", ""
        try:
            with quiet():
                one.work()
        except CodeSyntaxError as error:
            became = "refused"
            if "\n" in str(error):
                became, said = "several lines", repr(str(error))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # panics of the tokenizers library are no Exceptions
            became = "foreign exception"
            said = "".join(traceback.format_exception_only(error)).strip()[:300] + _where(error)
        seconds = time.process_time() - began
        if became not in WRONG and seconds > SECONDS * max(
            1, min(one.size, LONGEST_FUNCTION) / 50_000
        ):
            became, said = "too slow", f"{seconds:.1f} s for {one.size:,} characters"
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if peak > base and peak > held + MEGABYTES * 1024 and became not in WRONG:
            became, said = "too large", f"{(peak - held) >> 10:,} MB for {one.size:,} characters"
        base = peak
        yield Outcome(number, one.target, became, seconds, said)


def _resident() -> int:
    """Kilobytes in memory now: what inputs before have loaded, such as torch, is not of the next one."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() >> 10


@contextmanager
def quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


def _where(error: BaseException) -> str:
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "/faults/" not in frame.filename
    ]
    return " at " + ", ".join(
        f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames[-3:]
    )


def worker(seed: int, first: int, last: int, progress: str) -> None:
    """Try inputs, and print what became of each; the file `progress` has the number of the one that is tried."""
    told = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # libraries print, too
    with open(progress, "w") as file:

        def numbers() -> Iterator[int]:
            for number in range(first, last):
                os.pwrite(file.fileno(), b"%12d" % number, 0)
                yield number

        for outcome in tried(seed, numbers()):
            print(json.dumps(outcome), file=told)


def outcomes(seed: int, inputs: int) -> Iterator[Outcome]:
    """What becomes of so many inputs, in other processes, which may die or hang."""
    first = 0
    with tempfile.TemporaryDirectory() as folder:
        progress = Path(folder, "number")
        while first < inputs:
            progress.write_text(f"{first:12}")
            command = [
                sys.executable,
                __file__,
                "--work",
                json.dumps([seed, first, inputs, str(progress)]),
            ]
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
            watch = threading.Thread(target=_end_if_it_hangs, args=(process, progress), daemon=True)
            watch.start()
            seen = first - 1
            for line in process.stdout or ():
                outcome = Outcome(*json.loads(line))
                seen = outcome.number
                yield outcome
            first = seen + 1
            if process.wait():
                yield Outcome(
                    first, "unknown", "the process ended", 0.0, f"with status {process.returncode}"
                )
                first += 1


def _end_if_it_hangs(process: subprocess.Popen, progress: Path) -> None:
    before, since = "", time.monotonic()
    while process.poll() is None:
        time.sleep(1)
        now = progress.read_text() if progress.exists() else ""
        if now != before:
            before, since = now, time.monotonic()
        elif time.monotonic() - since > HANGS:
            process.kill()


def run(seed: int, times: int) -> Row:
    """All inputs, in a row; prints what is wrong, and a line for each target."""
    tally: dict[str, Counter[str]] = defaultdict(Counter)
    slowest: dict[str, float] = defaultdict(float)
    wrong: Counter[str] = Counter()
    for one in outcomes(seed, times):
        tally[one.target][one.became] += 1
        slowest[one.target] = max(slowest[one.target], one.seconds)
        if one.became in WRONG:
            wrong[one.became] += 1
            print(f"{one.number}: {one.target}: {one.became}: {one.said}", flush=True)
    for target in sorted(tally):
        counts = ", ".join(f"{became} {count:,}" for became, count in sorted(tally[target].items()))
        print(f"{target:28} {counts}; slowest {slowest[target]:.2f} s")
    total = sum(sum(counts.values()) for counts in tally.values())
    refused = sum(counts["refused"] for counts in tally.values())
    said = ", ".join(f"{what}: {wrong[what]}" for what in WRONG)
    assert not wrong, f"of {total:,} inputs: {said}"
    return Row(
        "Random inputs, in code and in files of every format", total, f"{refused:,} refused, {said}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inputs", type=int, default=TIMES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="the number of one input")
    parser.add_argument("--work", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        worker(*options.work)
    elif options.only is not None:
        one = input_of(options.seed, options.only, True)
        print(one.target, one.size)
        one.work()
    else:
        row = run(options.seed, options.inputs)
        print(f"{row.what}: {row.tried:,}, {row.outcome}")


if __name__ == "__main__":
    main()
