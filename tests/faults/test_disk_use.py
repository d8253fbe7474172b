"""What killed processes leave is found and removed, and nothing else; the cache is its owner's alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from codesyntax_dataset import atomic
from probing.cli import main
from probing.evidence.statistics import cached, caching
from probing.models import cache_dir
from probing.models.encoder import SelfCheck
from probing.models.selfcheck import recall, remember
from probing.runs.disk_use import items, prune
from probing.runs.experiment import Slot

KILLED = """
import os, signal, sys
from pathlib import Path
import filelock
from codesyntax_dataset import atomic
folder = Path(sys.argv[1])
with atomic.atomic_path(folder / "codesyntax") as place, filelock.FileLock(folder / ".run.parts/lock.0"):
    place.mkdir()
    (place / "README.md").write_text("x" * 1000)
    print("ready", flush=True)
    signal.pause()
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("CODESYNTAX_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path / "cache"


def test_what_a_killed_process_leaves_is_found_in_use_until_then_and_removed(place, tmp_path):
    folder = tmp_path / "results"
    (folder / ".run.parts").mkdir(parents=True)
    (folder / ".run.parts/00000.parquet").write_bytes(b"x" * 500)
    others = [folder / name for name in ("one.json", ".hidden", ".codesyntax-notes", "a.parts")]
    for path in others:
        path.write_text("mine")
    (folder / ".link.parts").symlink_to(tmp_path)
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(folder)], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    found = {item.kind: item for item in items([folder])}
    assert found.keys() == {"interrupted", "unfinished"} and all(one.in_use for one in found.values())
    assert prune(found.values()) == []
    process.send_signal(signal.SIGKILL)
    process.wait()
    unfinished = found["unfinished"].path
    assert [one.in_use for one in items([folder])] == [True, False]  # nobody knows of the first, so for an hour
    for path in (unfinished, *unfinished.rglob("*")):
        os.utime(path, (time.time() - 3601,) * 2)
    ran = CliRunner().invoke(main, ["cache", str(folder), "--prune"])
    assert ran.exit_code == 0 and "unfinished" in ran.output and "interrupted" in ran.output
    assert sorted(os.listdir(folder)) == sorted([".link.parts", *(path.name for path in others)])


def test_the_cache_is_private_listed_and_emptied(place, tmp_path):
    key = "0" * 32
    remember(SelfCheck(1, 1, False, [], "", []), place / f"{key}.self-check.json")
    assert recall(place / f"{key}.self-check.json")
    Slot(place, key, "main").save(lambda file: file.write_bytes(b"ledger"), "main")
    (place / "mine.parquet").write_text("mine")
    with caching():
        cached("score", [b"edges"], lambda: {"mean": np.ones(2)})
    assert place.stat().st_mode & 0o777 == 0o700
    ran = CliRunner().invoke(main, ["cache"])
    assert [line.split()[1] for line in ran.output.splitlines()] == ["cached", "cached", "cached", "bytes"]
    ran = CliRunner().invoke(main, ["cache", "--prune"])
    assert "removed 3" in ran.output and os.listdir(place) == ["mine.parquet"]


def test_what_is_in_the_cache_or_for_a_while_is_found_once_in_whatever_is_named(place, tmp_path):
    works = [folder / ".codesyntax-x.tmp" for folder in (place, tmp_path / "temporary", tmp_path / "results")]
    for hours, work in zip((2, -2, 0), works):  # a clock may have been ahead
        work.mkdir(parents=True)
        os.utime(work, (time.time() - 3600 * hours,) * 2)
    for folders in ([tmp_path], [tmp_path / "results", place, tmp_path, place]):
        found = {one.path: one.in_use for one in items(folders)}
        assert len(list(items(folders))) == 3 and found == dict(zip(works, (False, False, True)))
    assert {one.path for one in items()} == set(works[:2])
    found = list(items([tmp_path]))
    works[0].rmdir()  # by its process, in the meantime
    assert len(prune(found)) == 2 and [work.exists() for work in works] == [False, False, True]


def test_there_may_be_no_cache(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in ("", "/nowhere/at/all"):
        monkeypatch.setenv("CODESYNTAX_CACHE", name)
        assert list(items()) == []
        assert cache_dir.folder() in (None, Path(name))


def test_workplaces_have_the_name_by_which_they_are_found(tmp_path):
    with atomic.temporary_folder(tmp_path) as work:
        assert list(tmp_path.glob(atomic.TEMPORARY_FOLDERS)) == [work]
