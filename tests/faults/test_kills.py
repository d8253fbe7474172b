"""Commands that are killed, run out of space, or run twice at once: what is left is whole, and the same command goes on.

A command runs in a child forked from this process, which has imported everything. It is killed just before some of the
changes that Python makes to files and folders, and in the middle of a file that it writes. Then each file under a final
name is the earlier one or that of the undisturbed command, what is written as a whole is one of the two as a whole, and the
same command again gives the bytes of the undisturbed one.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import figures_unrendered
from support.commands import run
from support.files import contents
from support.processes import changing, codesyntax, ended, start

import codesyntax_dataset
from codesyntax_dataset.atomic import TEMPORARY_FOLDERS
from probing.instruments.attention.probe import Probing
from probing.instruments.masking.mask import Masking

pytestmark = pytest.mark.long

Tree = dict[str, bytes]
"""Path -> content, of all files of a folder."""

_READS = "tiny-code-mlm --data data --config python --quiet"
_MASK = f"mask {_READS} --draws 1 --node-types parameters,if_statement --output masked"
_PROBE = f"probe {_READS} --split test --split validation --output results"

EARLIER = (
    "build --source code --config python --output data",
    _PROBE,
    f"{_MASK} --limit 2",
    "board results --data data --output board",
)
"""What has been done before."""

COMMANDS = {
    "build": "build --source code --config python --config python_exact --output data",
    "probe": f"{_PROBE} --max-length 300",
    "mask": f"{_MASK} --limit 9",
    "board": "board results --data data --output board",
}
"""What is done then: every output has an earlier one, which it replaces or stands beside."""

WHOLE = ("data/", "board/")
"""What is there as a whole or not at all, though it is more than a file."""

LEFT = (TEMPORARY_FOLDERS, ".*.parts")
"""Names of what a killed process leaves."""

SHARES = (0.0, 0.3, 0.6, 0.9, 1.0)
"""Of the changes or bytes of a command, after which it is killed."""


class Usual(NamedTuple):
    """What a command does when nobody kills it.

    The world before and after, how many changes Python makes to files, and the bytes of the largest one that it writes.
    """

    before: Tree
    after: Tree
    changes: int
    largest: int


class World:
    """A place where commands run in children of this process, which begins anew for each."""

    def __init__(self, folder):
        self.place, self._start, self.log = folder / "place", folder / "start", folder / "log"
        self._usual: dict[str, Usual] = {}
        code_in(self.place)
        for arguments in EARLIER:
            assert self.run(arguments) == 0, self.log.read_text()
        # which the next board says that it leaves out
        (self.place / "results/another.ledger.parquet").write_bytes(b"no ledger")
        self.place.rename(self._start)

    def again(self):
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.copytree(self._start, self.place)

    def run(self, arguments):
        """Run a command until it ends, with its output in `log`; return its exit status."""
        return ended(self.start(arguments))

    def start(self, arguments, prepare=lambda: None):
        """Start a command, after `prepare` in its process; return its process id."""

        def inside():
            os.chdir(self.place)
            os.environ |= {"CODESYNTAX_CACHE": "cache", "TMPDIR": str(self.place / "tmp")}
            Path("tmp").mkdir(exist_ok=True)
            tempfile.tempdir = os.environ["TMPDIR"]
            prepare()

        return start(codesyntax(arguments.split()), self.log, prepare=inside)

    def usual(self, name):
        if name not in self._usual:
            self.again()
            before, counted = kept_in(self.place), self.log.with_name("count")
            with counted.open("wb", buffering=0) as file:
                counts = self.start(COMMANDS[name], lambda: changing(lambda _: file.write(b".")))
                assert ended(counts) == 0, self.log.read_text()
            after = kept_in(self.place)
            sizes = [len(after[path]) for path in after if before.get(path) != after[path]]
            self._usual[name] = Usual(before, after, counted.stat().st_size, max(sizes))
        return self._usual[name]

    def goes_on(self, name):
        """What is left of a command that failed is whole, and the same one gives what it gives when nobody kills it."""
        check_whole(kept_in(self.place), self.usual(name))
        assert self.run(COMMANDS[name]) == 0, self.log.read_text()
        for pattern in LEFT:
            for path in list(self.place.rglob(pattern)):
                shutil.rmtree(path, ignore_errors=True)  # it may be in another one
        assert kept_in(self.place) == self.usual(name).after


def kept_in(place):
    """The files of a place, but for what boards keep of ledgers, whose names tell when these were written, here copied."""
    return {path: of for path, of in contents(place).items() if not path.endswith(".npz")}


def code_in(place):
    """Put source files of two projects of the sample into a folder."""
    sample = Path(codesyntax_dataset.__file__).parent / "sample"
    for project in ("test/spans", "validation/unitconv"):
        shutil.copytree(sample / project, place / "code" / project)


def check_whole(now, usual):
    """Under final names there is nothing but what was there, or what comes; hidden files are for processes."""
    final, before, after = (
        {path: content for path, content in files.items() if "/." not in f"/{path}"}
        for files in (now, usual.before, usual.after)
    )
    for path, content in final.items():
        assert content in (before.get(path), after.get(path)), path
    assert before.keys() & after.keys() <= final.keys()
    for whole in WHOLE:
        parts = [
            {path: files[path] for path in files if path.startswith(whole)}
            for files in (final, before, after)
        ]
        assert parts[0] in parts[1:], whole


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A world in which runs are saved in many parts."""
    folder = tmp_path_factory.mktemp("world")
    with figures_unrendered(), pytest.MonkeyPatch.context() as patch:
        for experiment, functions in ((Probing, 4), (Masking, 2)):
            patch.setattr(experiment, "PART", functions)
        patch.setenv("CODESYNTAX_CACHE", "")
        # once in this process, which then has all modules that commands import
        code_in(folder / "warm")
        patch.chdir(folder / "warm")
        run(EARLIER[0]), run(f"{_PROBE} --limit 2"), run(EARLIER[2])
        yield World(folder / "world")


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("name", COMMANDS)
def test_killed_before_a_change_it_goes_on(world, name, share):
    at = max(1, round(share * world.usual(name).changes))

    def prepare():
        changing(lambda count: count == at and os.kill(os.getpid(), signal.SIGKILL))

    world.again()
    assert ended(world.start(COMMANDS[name], prepare)) == -signal.SIGKILL
    world.goes_on(name)


def limited(size, kill):
    """Let the system refuse what is beyond so many bytes of a file, or kill the process that writes it."""

    def prepare():
        if kill:
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    return prepare


@pytest.mark.parametrize("share", SHARES[1:-1])
@pytest.mark.parametrize("name", COMMANDS)
def test_killed_in_the_middle_of_a_file_it_goes_on(world, name, share):
    size = round(share * world.usual(name).largest)
    world.again()
    assert ended(world.start(COMMANDS[name], limited(size, kill=True))) == -signal.SIGXFSZ
    world.goes_on(name)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_file_that_cannot_be_written_to_its_end_is_none(world, name):
    size = world.usual(name).largest - 1
    world.again()
    status = ended(world.start(COMMANDS[name], limited(size, kill=False)))
    said = world.log.read_text()
    assert status == 1 and "Error: cannot write" in said and "File too large" in said, said
    world.goes_on(name)


def fails(world, command, reason):
    """The command ends with one line, and leaves what was there and nothing else, but what is kept of ledgers."""
    before = kept_in(world.place)
    status, said = world.run(command), world.log.read_text()
    assert status == 1 and said.splitlines()[-1].startswith("Error: ") and reason in said, said
    assert kept_in(world.place) == before


@pytest.mark.parametrize("name", ["build", "mask", "board"])
def test_a_full_disk_or_a_read_only_one_is_told_in_a_line(world, name, tmp_path):
    command = COMMANDS[name].replace("--output ", f"--output {tmp_path}/")
    world.again()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8k", "none", tmp_path]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root can mount a small disk")
    try:
        fails(world, command, "No space left on device")
        # but parts, from which the same command continues
        assert not list(tmp_path.glob("*/[!.]*"))
        subprocess.run(["mount", "-o", "remount,ro", tmp_path], check=True)
        fails(world, command, "Read-only file system")
    finally:
        subprocess.run(["umount", tmp_path], check=True)


@pytest.mark.parametrize("name", COMMANDS)
def test_two_at_once_leave_what_one_does(world, name):
    expected = world.usual(name).after
    world.again()
    statuses = {ended(pid) for pid in [world.start(COMMANDS[name]) for _ in range(2)]}
    assert 0 in statuses <= {0, 1}, statuses
    assert kept_in(world.place) == expected


PROGRAM = """
import json, sys, time
given = json.load(sys.stdin)
clock = time.time
time.time = lambda: clock() + given["late"]
from probing.cli import main
from probing.instruments.silencing import choose
choose.beats_guess = lambda ledger, *_: {*ledger.relations}  # of heads so few and small a split, none would be silenced
for arguments in given["commands"]:
    main(arguments.split(), standalone_mode=False)
"""

ALL = (
    *EARLIER[:3],
    f"ablate {_READS} --limit 2 --draws 1 --output silenced",
    "report results masked --output report",
    "report silenced --output report-silenced",
    *EARLIER[3:],
)

OUTPUTS = [words.partition("--output ")[2].split()[0] for words in ALL if "--output" in words]


def done(place, late=0, **environment):
    """What all commands make in a folder, in a process with other circumstances and a clock that is late."""
    code_in(place)
    kept = {name: os.environ.get(name, "") for name in ("PATH", "PYTHONPATH")}
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps({"late": late, "commands": ALL}),
        cwd=place,
        env={
            **kept,
            "HOME": str(place),
            "HF_HUB_OFFLINE": "1",
            "OMP_NUM_THREADS": "1",
            **environment,
        },
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    return {path: content for path, content in contents(place).items() if path[0] != "."}


def test_other_circumstances_give_the_same_bytes(tmp_path):
    """Another hash seed, locale, time zone and folder, and a clock that is wrong by sixty years.

    The number of threads stays: sums of many numbers, as in what a silenced head costs, are rounded otherwise by more.
    """
    first = done(tmp_path / "a", PYTHONHASHSEED="0", LC_ALL="C", TZ="UTC")
    elsewhere = {"LC_ALL": "tr_TR.UTF-8", "TZ": "Pacific/Kiritimati", "PYTHONHASHSEED": "29"}
    second = done(tmp_path / "another folder/b", late=2**31, **elsewhere)
    assert {path.partition("/")[0] for path in first} > {*OUTPUTS}
    assert first == second
