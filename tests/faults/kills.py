"""Kill commands at random moments, and see what is left.

    python tests/faults --only kills [--seed 0] [--times 210]

A command is killed at a random time, or just before a random change that Python makes to a file or folder, or at a random
byte of a file that it writes; two of three times by SIGKILL (at a byte always by a signal that cannot be caught either),
else by SIGINT or SIGTERM. Then: every file under a final name is the earlier one or the one that the undisturbed command
writes, and what is written as a whole is one of the two as a whole; what else is there has a name that says so (`LEFT`), and can
be removed; and the same command again gives the bytes of the undisturbed one.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from rows import Row
from support.processes import ended
from world import COMMANDS, Tree, World, world

from codesyntax_dataset.atomic import TEMPORARY_FOLDERS

WHOLE = ("data", "another", "report", "Hub: user/codesyntax")
"""What is there as a whole or not at all."""

LEFT = (TEMPORARY_FOLDERS, ".*.parts")
"""Names of what a killed process leaves."""

_CHANGES = {
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.truncate",
    "os.chmod",
    "os.utime",
}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class Undisturbed(NamedTuple):
    """What a command does when nobody kills it: the world before and after, its seconds, how many changes Python makes to
    files, and the sizes of the files that it writes."""

    before: Tree
    after: Tree
    seconds: float
    changes: int
    sizes: list[int]


class Kill(NamedTuple):
    """How a command is killed: `at` is seconds, the number of a change, or the number of a byte, by `what`."""

    what: str
    at: float
    signal: int

    def __str__(self) -> str:
        unit = {"time": "s", "change": "changes", "byte": "bytes of a file"}[self.what]
        return f"{signal.Signals(self.signal).name} after {self.at:g} {unit}"


def changing(act: Callable[[int], None]) -> None:
    """Call `act` with 1, 2, 3, ... just before Python changes a file or folder."""
    count = 0

    def heard(event: str, arguments: tuple) -> None:
        nonlocal count
        if event in _CHANGES or (event == "open" and (arguments[2] or 0) & _WRITES):
            count += 1
            act(count)

    sys.addaudithook(heard)


def undisturbed(of: World, command: str) -> Undisturbed:
    """Run a command twice: once to count what it does, and once to time it; both give the same bytes."""
    of.again()
    before, counted = of.tree(), of.place.parent / "count"
    with counted.open("wb", buffering=0) as file:
        status = ended(of.start(command, lambda: changing(lambda count: file.write(b"."))))
    assert status == 0, of.log.read_text()
    after = of.tree()
    of.again()
    start = time.monotonic()
    assert of.run(command) == 0
    seconds = time.monotonic() - start
    assert of.tree() == after, f"{command} does not repeat: {_difference(of.tree(), after)}"
    sizes = [
        len(content)
        for path, content in after.items()
        if before.get(path) != content and len(content) > 1
    ]
    return Undisturbed(before, after, seconds, counted.stat().st_size, sizes)


def drawn(rng: random.Random, usual: Undisturbed) -> Kill:
    what = rng.choice(["time", "change", "byte"] if usual.changes else ["time"])
    if what == "byte":
        return Kill(what, rng.randrange(1, rng.choice(usual.sizes)), signal.SIGXFSZ)
    sent = rng.choice([signal.SIGKILL] * 4 + [signal.SIGINT, signal.SIGTERM])
    return Kill(
        what,
        rng.uniform(0, usual.seconds) if what == "time" else rng.randint(1, usual.changes),
        sent,
    )


def survive(of: World, command: str, usual: Undisturbed, kill: Kill, remove_first: bool) -> bool:
    """Kill a command and check everything; False if it ended before. Raises AssertionError for what is wrong."""

    def prepare() -> None:
        if kill.what == "change":
            changing(lambda count: count == kill.at and os.kill(os.getpid(), kill.signal))
        elif kill.what == "byte":
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(kill.at), resource.RLIM_INFINITY))

    of.again()
    pid = of.start(command, prepare)
    if kill.what == "time":
        time.sleep(kill.at)
        os.kill(pid, kill.signal)
    status, said = ended(pid), of.log.read_text(errors="replace")
    if status == 0:
        assert _final(of.tree()) == _final(usual.after), (
            f"it ended, but {_difference(of.tree(), usual.after)}"
        )
        return False
    told = {signal.SIGINT: (130, "interrupted"), signal.SIGTERM: (143, "interrupted")}.get(
        kill.signal
    )
    # before the command began
    early = status == -kill.signal or (status, said) == (
        1,
        "\nAborted!\n",
    )
    assert early or (
        told and status == told[0] and said.rpartition("Error: ")[2].startswith(told[1])
    ), f"it ended with {status} and said {said[-2000:]}"
    now = of.tree()
    check_final(now, usual)
    if remove_first:
        _remove(of)
        assert of.tree() == _final(now), f"removed, but {_difference(of.tree(), _final(now))}"
    status = of.run(command)
    assert status == 0, f"again it ended with {status} and said {of.log.read_text()[-2000:]}"
    _remove(of)
    assert of.tree() == usual.after, f"again, but {_difference(of.tree(), usual.after)}"
    return True


def _final(tree: Tree) -> Tree:
    """What has a final name: hidden files and folders are for processes."""
    return {
        path: content
        for path, content in tree.items()
        if not any(part[0] == "." for part in Path(path).parts)
    }


def check_final(now: Tree, usual: Undisturbed) -> None:
    now, before, after = map(_final, (now, usual.before, usual.after))
    for path, content in now.items():
        assert content in (before.get(path), after.get(path)), (
            f"{path} is neither the earlier nor the new one"
        )
    lost = (before.keys() & after.keys()) - now.keys()
    assert not lost, f"{sorted(lost)} were there before"
    for whole in WHOLE:
        parts = [
            {path: tree[path] for path in tree if path.startswith(f"{whole}/")}
            for tree in (now, before, after)
        ]
        assert parts[0] in parts[1:], f"{whole} is neither the earlier nor the new one"


def _remove(of: World) -> None:
    """Remove what killed processes left."""
    for name in LEFT:
        for path in list(of.place.rglob(name)):
            shutil.rmtree(path, ignore_errors=True)  # it may be in another one


def _difference(now: Tree, expected: Tree) -> str:
    parts = {
        "missing": expected.keys() - now.keys(),
        "more": now.keys() - expected.keys(),
        "other": {path for path in now.keys() & expected.keys() if now[path] != expected[path]},
    }
    return (
        ", ".join(f"{name}: {sorted(paths)[:5]}" for name, paths in parts.items() if paths)
        or "nothing differs"
    )


TIMES = 210


def run(seed: int, times: int) -> Row:
    with world() as of:
        usual = {name: undisturbed(of, command) for name, command in COMMANDS.items()}
        struck = trials(of, random.Random(seed), times, usual)
    told = ", ".join(f"{name} {count}" for name, count in sorted(struck.items()))
    return Row(
        "kills at random moments",
        times,
        f"all survived: earlier results intact, then the same bytes ({told})",
    )


def trials(
    of: World, rng: random.Random, times: int, usual: Mapping[str, Undisturbed]
) -> Counter[str]:
    """Kill commands, drawn at random, until as many kills have struck; how many of each did."""
    struck = Counter[str]()
    while struck.total() < times:
        name = rng.choice(tuple(usual))
        kill, remove_first = drawn(rng, usual[name]), rng.random() < 0.5
        try:
            if survive(of, COMMANDS[name], usual[name], kill, remove_first):
                struck[name.split(",")[0]] += 1
        except AssertionError as error:
            raise AssertionError(f"{name}, {kill}: {error}") from None
    return struck
