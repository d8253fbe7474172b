"""Mutants of the product: which small mistakes in it the tests do not notice.

    python tests/faults/mutants.py --mutants 100 --seed 0
    python tests/faults/mutants.py --mutants 30 --seed 1 --only probing/stats

A mutant is the product with one edit of `tests/support/attacks/mutations.py`, drawn at random, in a private copy of the repository. It
is killed if a test fails that passes without it, or does not end. Of the tests, those that execute the edited statement are run,
the quickest first, then those that execute anything of its module: what it computes may be in a cache by then. Each mutant has
a process forked from one that has imported the libraries. A mutant that lives is printed as a diff: a test is missing, or nobody
can see what it changes; then it belongs in `equivalent_mutants.py`, with the reason.

Why none of the tools that exist: mutmut leaves out properties, other decorated functions and constants of modules;
cosmic-ray edits the working tree, and starts a process for each mutant, whose imports alone take six seconds here.
"""

from __future__ import annotations

import argparse
import bisect
import compileall
import difflib
import gc
import hashlib
import importlib
import json
import math
import os
import py_compile
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from equivalent_mutants import EQUIVALENT
from support.attacks.mutations import Edit, edits
from support.attacks.tests_by_line import Lines, Selection

ROOT = Path(__file__).resolve().parents[2]

PACKAGES = ("codesyntax_metric", "codesyntax_dataset", "probing")

SAMPLE = "codesyntax_dataset/sample/"

ROOMS = "attention cli dataset evidence information likelihood masking metric models paper publish report runs silencing stats"
"""Of tests. Of those of `faults` some take long, as do those of `project`, and execute everything."""

LIBRARIES = (
    "datasets",
    "hypothesis",
    "matplotlib.pyplot",
    "rich",
    "torch",
    "transformers.models.bert.modeling_bert",
)

QUICK = 3
"""Seconds of tests that are tried before others."""


class Mutant(NamedTuple):
    module: str
    source: str
    edit: Edit

    @property
    def reason(self) -> str | None:
        """Why it is equivalent; None if it is not known to be."""
        return EQUIVALENT.get(self.module, {}).get(self.edit.texts(self.source))

    def diff(self) -> str:
        before, after = (
            text.splitlines(keepends=True) for text in (self.source, self.edit.apply(self.source))
        )
        return "".join(
            difflib.unified_diff(before, after, f"a/{self.module}", f"b/{self.module}", n=1)
        )


def draw(root: Path, modules: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """So many of all mutants of the modules, of each kind as many, in random order.

    Of a line that does not change, the same ones are drawn.
    """
    sources = {module: (root / module).read_text(encoding="utf-8") for module in modules}
    every = [
        Mutant(module, source, edit) for module, source in sources.items() for edit in edits(source)
    ]

    def number(mutant: Mutant) -> bytes:
        what = seed, mutant.module, mutant.edit.new, *mutant.edit.texts(mutant.source)
        return hashlib.sha256(repr(what).encode()).digest()

    drawn: list[tuple[int, bytes, Mutant]] = []
    place_in_kind: Counter[str] = Counter()
    for mutant in sorted(every, key=number):
        drawn.append((place_in_kind[mutant.edit.kind], number(mutant), mutant))
        place_in_kind[mutant.edit.kind] += 1
    return [mutant for *_, mutant in sorted(drawn)[:count]]


class Repository:
    """A private copy of a repository in `folder`, and what its tests execute.

    `seconds`: of tests for each mutant, at most.
    """

    def __init__(
        self,
        root: Path,
        folder: Path,
        modules: Sequence[str],
        tests: Sequence[str],
        seconds: float,
    ):
        self.folder, self.scratch, self.log = (
            folder / "repository",
            folder / "scratch",
            folder / "log",
        )
        self.seconds = seconds
        self.answer = self.scratch / "answer.json"
        self.environment = {
            "CODESYNTAX_SHARED": os.environ.get("CODESYNTAX_SHARED", str(root.parent / "shared")),
            "PYTHONPATH": str(self.folder),
            "PYTHONDONTWRITEBYTECODE": "",
            "TMPDIR": str(self.scratch),
        }
        listed = [
            "git",
            "-C",
            str(root),
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ]
        for name in subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split(
            "\0"
        ):
            if (root / name).is_file():
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(root / name, self.folder / name)
        # by hash: of two mutants of one length, written in the same second, Python would run the first twice
        compileall.compile_dir(
            self.folder, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH
        )
        status, self.known = self._pytest(tests, Lines(self.folder, modules))
        if not self.known.get("fixtures"):
            raise SystemExit(
                f"no test passes without a mutant (status {status}):\n{self.log.read_text()[-2000:]}"
            )

    def fate(self, mutant: Mutant) -> Fate:
        costs = self._costs(mutant)
        sums = list(self._spent(costs))
        quick, most = (max(1, bisect.bisect(sums, seconds)) for seconds in (QUICK, self.seconds))
        path = self.folder / mutant.module
        path.write_text(mutant.edit.apply(mutant.source), encoding="utf-8")
        try:
            for part in (slice(quick), slice(quick, most)):
                tests = dict(list(costs.items())[part])
                files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
                if not files:
                    break
                status, told = self._pytest(["--exitfirst", *files], Selection(tests, self.answer))
                if status < 0:
                    return Fate(
                        mutant,
                        told.get("by", "import"),
                        ended=-status not in (signal.SIGXCPU, signal.SIGALRM),
                    )
                if status in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED):
                    return Fate(mutant, told["by"] or "import")
                if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
                    raise SystemExit(
                        f"pytest ended with the status {status}:\n{self.log.read_text()[-2000:]}"
                    )
        finally:
            path.write_text(mutant.source, encoding="utf-8")
        return Fate(mutant, None)

    def _costs(self, mutant: Mutant) -> dict[str, float]:
        """The tests that execute the edited statement, then those that execute anything of its module, then, of what
        is executed when a module is imported, all others: CPU seconds, from those that cost least on.
        """
        first, last = mutant.edit.lines or (0, math.inf)
        of_module: set[str] = set()
        of_statement: set[str] = set()
        for line, contexts in self.known["lines"][mutant.module].items():
            of_module.update(contexts)
            if first <= int(line) <= last:
                of_statement.update(contexts)
        on_import = mutant.edit.lines is None or not of_statement - {""}
        ordered: list[tuple[bool, bool, float, str]] = []
        for test, used in self.known["fixtures"].items():
            contexts = {test, *used}
            apart = of_statement.isdisjoint(contexts), of_module.isdisjoint(contexts)
            if on_import or not all(apart):
                cost = sum(self.known["seconds"].get(context, 0) for context in contexts)
                ordered.append((*apart, cost, test))
        return {test: cost for *_, cost, test in sorted(ordered)}

    def _spent(self, tests: Iterable[str]) -> Iterator[float]:
        """CPU seconds up to each of some tests; what they share is made once."""
        made: set[str] = set()
        for test in tests:
            made.update((test, *self.known["fixtures"][test]))
            yield sum(self.known["seconds"].get(context, 0) for context in made)

    def _pytest(
        self, arguments: Sequence[str], plugin: Lines | Selection
    ) -> tuple[int, dict[str, Any]]:
        """Run tests in a forked process: its exit status, negative for a signal, and what the plugin told."""
        self.scratch.mkdir()
        child = os.fork()
        if not child:
            status = int(pytest.ExitCode.INTERNAL_ERROR)
            try:
                status = self._in_child(arguments, plugin)
                self.answer.write_text(json.dumps(plugin.told()))
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # processes that its tests started
        told = json.loads(self.answer.read_text()) if self.answer.exists() else {}
        shutil.rmtree(self.scratch)
        return os.waitstatus_to_exitcode(status), told

    def _in_child(self, arguments: Sequence[str], plugin: Lines | Selection) -> int:
        os.setsid()
        # which is ignored in a background job
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(self.folder)
        log = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, sys.stdout.fileno())
        os.dup2(log, sys.stderr.fileno())
        os.environ.update(self.environment)
        sys.dont_write_bytecode = False
        ours = {str(ROOT), *(str(ROOT / folder) for folder in ("tests", "tests/faults"))}
        sys.path[:] = [str(self.folder), *(path for path in sys.path if path not in ours)]
        options = "-p no:xdist -p no:cacheprovider -p no:unraisableexception --assert=plain -o addopts= -q"
        return int(pytest.main([*options.split(), "-m", "not long", *arguments], [plugin]))


@dataclass(frozen=True)
class Fate:
    """What became of a mutant. `by`: the test that noticed it, None if it lives; `ended`: whether that test ended."""

    mutant: Mutant
    by: str | None
    ended: bool = True

    @property
    def name(self) -> str:
        if self.by is None:
            return "lives" if self.mutant.reason is None else "equivalent"
        return "killed" if self.ended else "does not end"


def fates(repository: Repository, mutants: Sequence[Mutant]) -> Iterator[Fate]:
    """The fate of each mutant, told as soon as it is known."""
    for number, mutant in enumerate(mutants, 1):
        begin = time.monotonic()
        fate = repository.fate(mutant)
        line = mutant.source.encode()[: mutant.edit.begin].count(b"\n") + 1
        what = f"{mutant.module}:{line} {mutant.edit.kind}"
        print(
            f"{number}/{len(mutants)} {fate.name:12} {time.monotonic() - begin:5.1f} s  {what}  {fate.by or ''}",
            flush=True,
        )
        yield fate


def modules_of(prefixes: Sequence[str]) -> list[str]:
    """The modules of the product whose paths begin with one of `prefixes`; the sample's are data."""
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    names = [path.relative_to(ROOT).as_posix() for path in paths]
    return [name for name in names if name.startswith(tuple(prefixes)) and SAMPLE not in name]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mutants", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--only", metavar="PREFIX", action="append", help="of modules, such as probing/stats"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=60,
        help="of tests for a mutant; if it outlives them, it lives",
    )
    args = parser.parse_args()
    sys.path.insert(0, str(ROOT / "tests"))
    importlib.import_module("conftest")  # sets what the libraries read when they are imported
    modules = modules_of(args.only or PACKAGES)
    hostile = sorted((ROOT / "tests/faults").glob("test_hostile_*.py"))
    tests = [f"tests/{room}" for room in ROOMS.split()]
    tests += [file.relative_to(ROOT).as_posix() for file in hostile]
    with tempfile.TemporaryDirectory(prefix="codesyntax-mutants-") as name:
        folder = Path(name)
        os.environ["HF_HOME"] = str(folder / "scratch/hf")  # each mutant's own
        os.environ["CI"] = "1"  # hypothesis draws the same examples each time
        for library in LIBRARIES:
            importlib.import_module(library)
        gc.freeze()  # so that collections in each process are cheap
        repository = Repository(ROOT, folder, modules, tests, args.seconds)
        failed = [
            test for test, outcome in repository.known["not passed"].items() if outcome == "failed"
        ]
        print(
            f"{len(repository.known['fixtures'])} tests pass; that fail without a mutant: {', '.join(failed) or 'none'}"
        )
        found = list(fates(repository, draw(ROOT, modules, args.mutants, args.seed)))
    for fate in found:
        if fate.by is None or fate.mutant.reason:
            noticed = " although listed as equivalent" if fate.by else ""
            print(
                f"\n{fate.name}{noticed}: {fate.mutant.reason or 'a test is missing'}\n{fate.mutant.diff()}",
                end="",
            )
    counts = Counter(fate.name for fate in found)
    told = ", ".join(f"{count} {name}" for name, count in counts.items())
    print(f"\n{len(found)} mutants: {told}")
    sys.exit(counts["lives"] > 0)


if __name__ == "__main__":
    main()
