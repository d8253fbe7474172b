"""The long runs of `python tests/faults`, in short, and what else goes wrong around commands: a full disk, a folder that
cannot be written to, a clock that is wrong, and two of them at once."""

from __future__ import annotations

import random
import resource
import subprocess
import time

import corruptions
import kills
import pytest
from conftest import figures_unrendered
from support.processes import ended
from world import COMMANDS, world

pytestmark = pytest.mark.long

QUICK = ("build", "mask", "board")


@pytest.fixture(scope="module")
def of():
    with figures_unrendered(), world() as of:
        yield of


@pytest.fixture(scope="module")
def usual(of):
    return {name: kills.undisturbed(of, COMMANDS[name]) for name in QUICK}


def test_kills_are_survived(of, usual):
    assert (
        kills.trials(of, random.Random(1), 4, {name: usual[name] for name in QUICK[:2]}).total()
        == 4
    )


def test_corruptions_change_no_number(of):
    of.again()
    quick = ("datasets", "datasets to be pushed", "error analyses", "gz", "zip", "caches")
    assert corruptions.trials(of, random.Random(1), 30, quick)["refused"] > 15


def fails(of, command: str, reason: str) -> None:
    """The command ends with one line, and leaves what was there and nothing else."""
    before = of.tree()
    status, said = of.run(command), of.log.read_text()
    assert status == 1 and said.splitlines()[-1].startswith("Error: ") and reason in said, said
    assert of.tree() == before


@pytest.mark.parametrize("name", QUICK)
def test_a_file_that_cannot_be_written_to_its_end_is_none(of, usual, name):
    """As on a full disk: the system refuses what is beyond a limit."""
    of.again()
    limit = max(usual[name].sizes) - 1
    limits = (limit, resource.RLIM_INFINITY)
    status = ended(
        of.start(COMMANDS[name], lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits))
    )
    said, now = of.log.read_text(), of.tree()
    assert status == 1 and "Error: cannot write" in said and "File too large" in said, said
    kills.check_final(now, usual[name])
    assert of.run(COMMANDS[name]) == 0 and of.tree() == usual[name].after


@pytest.mark.parametrize("name", QUICK)
def test_a_full_disk_or_a_read_only_one_is_told_in_a_line(of, name, tmp_path):
    command = COMMANDS[name].replace("--output ", f"--output {tmp_path}/")
    of.again()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8k", "none", tmp_path], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("only root can mount a small disk")
    try:
        fails(of, command, "No space left on device")
        # but parts, from which the same command continues
        assert not list(tmp_path.glob("*/[!.]*"))
        subprocess.run(["mount", "-o", "remount,ro", tmp_path], check=True)
        fails(of, command, "Read-only file system")
    finally:
        subprocess.run(["umount", tmp_path], check=True)


@pytest.mark.parametrize("now", [0.0, 2.0**33], ids=["1970", "2242"])
def test_a_clock_that_is_wrong_changes_no_byte(of, usual, now):
    for name in QUICK:
        of.again()
        assert ended(of.start(COMMANDS[name], lambda: setattr(time, "time", lambda: now))) == 0, (
            of.log.read_text()
        )
        assert of.tree() == usual[name].after


@pytest.mark.parametrize("name", QUICK)
def test_two_at_once_leave_what_one_does(of, usual, name):
    of.again()
    pids = [of.start(COMMANDS[name]) for _ in range(2)]
    statuses = [ended(pid) for pid in pids]
    assert 0 in statuses and set(statuses) <= {0, 1}, statuses
    assert of.tree() == usual[name].after
