"""Shards of a run on their own, put together from their files: the bytes of one process, or a message that says why not."""

from __future__ import annotations

import functools
import shutil
import types
from pathlib import Path

import pytest
import torch
from support.commands import run

from codesyntax_dataset.errors import ArgumentError, LedgerError, ModelError
from probing import merge, probe
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.probe import Probing
from probing.instruments.attention.runner import Runner
from probing.models import load
from probing.models.encoder import Encoder
from probing.runs.data import read_functions
from probing.runs.experiment import checked_shard
from probing.runs.ledger_file import Shard, load_shard, save_shard
from probing.runs.session import processes_of_run

SOME = {"limit": 26}
CONFIGS = ("python", "java")


@pytest.fixture(autouse=True, scope="module")
def small_parts():
    """Small parts, and the model loaded once for all runs, which takes most of their time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Probing, "PART", 6)
        patch.setattr(load, "load", functools.cache(load.load))
        yield


def left_in(folder, *patterns):
    found = {file for pattern in patterns or ["*"] for file in folder.glob(pattern)}
    return {file.name: file.read_bytes() for file in sorted(found) if file.is_file()}


RESULT = ("*.json", "*.ledger.parquet")


@pytest.fixture(scope="module")
def whole(tiny_model, dataset_folder, tmp_path_factory):
    """The files of one process, in both languages."""
    folder = tmp_path_factory.mktemp("run") / "whole"
    for config in CONFIGS:
        # more than 4 parts
        assert probe(tiny_model, dataset_folder, config, output=folder, **SOME).functions > 20
    return left_in(folder)


@pytest.fixture(scope="module")
def three(tiny_model, dataset_folder, tmp_path_factory):
    """The folder of three shards in Python."""
    folder = tmp_path_factory.mktemp("run") / "three"
    for number in (1, 2, 3):
        assert probe(tiny_model, dataset_folder, output=folder, shard=f"{number}/3", **SOME) is None
    return folder


@pytest.fixture
def folder(three, tmp_path):
    """A copy that may be spoiled, beside the data as the first."""
    return Path(shutil.copytree(three, tmp_path / "copy"))


def files(folder):
    return sorted(folder.glob("*.shard-*.parquet"))


@pytest.mark.slow
def test_shards_give_the_bytes_of_one_process(
    whole, tiny_model, dataset_folder, tmp_path_factory, caplog
):
    """In both languages at once, from a folder each, as on several machines; with one shard more than parts."""
    place = tmp_path_factory.mktemp("run")
    folders = [place / str(number % 4) for number in range(7)]
    for number, folder in enumerate(folders, start=1):
        asked = {"output": folder, "shard": f"{number}/7", **SOME}
        for config in CONFIGS:
            assert probe(tiny_model, dataset_folder, config, **asked) is None
        assert not list(folder.glob("*.json"))
        assert not list(folder.glob(".*"))
    assert sum("has nothing to run" in message for message in caplog.messages) == 1 + 2
    assert sum(len(left_in(folder)) for folder in {*folders}) == 6 + 5
    merged = merge(folders, place / "merged")
    assert sorted(result.settings.config for result in merged) == ["java", "python"]
    assert left_in(place / "merged") == whole


@pytest.mark.slow
def test_a_shard_reads_its_own_functions(tiny_model, dataset_folder, tmp_path, monkeypatch):
    """And the longest and the shortest of all; a run that goes on, only those of parts that are left."""
    read, real = [], Encoder.encode

    def encode(self, texts):
        read.extend(texts)
        return real(self, texts)

    monkeypatch.setattr(Encoder, "encode", encode)
    codes = read_functions(dataset_folder, "python", "test", **SOME).table["code"].to_pylist()[:26]
    extremes = [max(codes, key=len), min(codes, key=len)]
    of_shards = []
    for number in (1, 2, 3):
        read.clear()
        probe(tiny_model, dataset_folder, output=tmp_path, shard=f"{number}/3", **SOME)
        assert read[:2] == extremes
        of_shards += read[2:]
    assert sorted(of_shards) == sorted(codes)


@pytest.mark.slow
def test_merged_where_they_are_and_merged_again(whole, folder, tmp_path):
    """Twice, and with a shard that a second job made again elsewhere."""
    shards_of = left_in(folder)
    for _ in range(2):
        ran = run("merge", folder)
        assert ran.stderr.startswith(f"wrote {folder}")
        assert "first" in ran.stdout
        assert len(left_in(folder, *RESULT)) == 2
        assert shards_of.items() <= left_in(folder).items()
    twice = shutil.copytree(
        folder, tmp_path / "twice", ignore=shutil.ignore_patterns("*-1-of-3*", "*.json")
    )
    assert len(list(merge([folder, twice], tmp_path / "new"))) == 1
    for merged in (folder, tmp_path / "new"):
        (ledger,) = merged.glob("*.ledger.parquet")
        assert ledger.read_bytes() == whole[ledger.name]


STOPPED = {
    "as it was": (lambda part: None, 1),
    "damaged": (lambda part: part.write_bytes(part.read_bytes()[:-200]), 2),
    "in the place of another": (lambda part: part.rename(part.with_name("00003.parquet")), 2),
}
"""What becomes of the finished part of two, and how many are run then."""


@pytest.mark.slow
def test_a_stopped_shard_goes_on_and_a_finished_one_is_left(
    tiny_model, dataset_folder, three, tmp_path, monkeypatch
):
    real, runs, stop = Runner.run, [], 2

    def run(self, functions, bar):
        runs.append(len(functions))
        if len(runs) == stop:
            raise KeyboardInterrupt
        return real(self, functions, bar)

    def shard(place):
        runs.clear()
        probe(tiny_model, dataset_folder, output=place, shard="1/3", **SOME)
        return len(runs)

    monkeypatch.setattr(Runner, "run", run)
    with pytest.raises(KeyboardInterrupt, match="run the same command again"):
        shard(tmp_path / "stopped")
    stop = 0
    for name, (change, again) in STOPPED.items():
        place = Path(shutil.copytree(tmp_path / "stopped", tmp_path / name))
        (part,) = place.glob(".*.shard-1-of-3.parts/*.parquet")
        change(part)
        assert shard(place) == again, name
        assert left_in(place) == left_in(three, "*-1-of-3*")
        assert shard(place) == 0


@pytest.mark.slow
def test_two_jobs_with_one_shard_and_two_with_two(
    tiny_model, dataset_folder, three, tmp_path, monkeypatch
):
    """The same shard at the same time: the second is told to wait. Another shard: both go on."""
    real, told, place = Runner.run, [], tmp_path / "new"

    def meanwhile(self, functions, bar):
        monkeypatch.setattr(Runner, "run", real)
        for number in (2, 1):
            try:
                probe(tiny_model, dataset_folder, output=place, shard=f"{number}/3", **SOME)
            except LedgerError as error:
                told.append(str(error))
        return real(self, functions, bar)

    monkeypatch.setattr(Runner, "run", meanwhile)
    probe(tiny_model, dataset_folder, output=place, shard="1/3", **SOME)
    assert [message.split(":")[0] for message in told] == [
        f"another run of the same settings is writing to {place}"
    ]
    assert left_in(place) == left_in(three, "*-[12]-of-3*")


def rewritten(file, change, **record):
    """As an earlier job might have written it: with other settings, or another record."""
    ledger, said = load_shard(file, RankLedger.load)
    for name, changed in change.items():
        ledger.settings[name].update(changed)
    said = said.model_copy(update=record)
    save_shard(ledger, said.shard, said.parts, file, {"data_path": said.data_path})


OTHER_VERSION = {"versions": {"torch": "0.1"}}
OTHER_DTYPE = {"settings": {"dtype": "bfloat16"}}


MISSING = r"1 of 3 shards beside \S*-1-of-3.parquet are missing"
SPOILED = {
    "missing": (
        lambda one, two, three: two.unlink(),
        MISSING + ", 2: run `codesyntax probe` as before with --shard 2/3",
    ),
    "copied": (
        lambda one, two, three: shutil.copy(one, two),
        r"-2-of-3.parquet holds the shard shard-1-of-3",
    ),
    "swapped": (
        lambda one, two, three: (one.rename("x"), two.rename(one)),
        r"-1-of-3.parquet holds the shard shard-2-of-3",
    ),
    "truncated": (
        lambda one, two, three: two.write_bytes(two.read_bytes()[:-9]),
        r"-2-of-3.* is not a shard, or a dam",
    ),
    "empty": (
        lambda one, two, three: two.write_bytes(b""),
        r"-2-of-3.parquet is not a shard, or a damaged one",
    ),
    "a whole ledger": (
        lambda one, two, three: load_shard(two, RankLedger.load)[0].save(two),
        r"-2-of-3.parquet is not a shard: expected a file that a run with --shard wrote",
    ),
    "another version": (
        lambda one, two, three: rewritten(two, OTHER_VERSION),
        r"-1-of-3.parquet and .*-2-of-3.parquet are of different runs, with other versions:",
    ),
    "another precision": (
        lambda one, two, three: rewritten(two, OTHER_DTYPE),
        MISSING,
    ),
    "of more shards": (
        lambda one, two, three: (
            rewritten(two, {}, total=4),
            two.rename(str(two).replace("-3.", "-4.")),
        ),
        r"are of different runs, with other shards:",
    ),
    "of more parts": (
        lambda one, two, three: rewritten(two, {}, parts=99),
        r"are of different runs, with other parts:",
    ),
}


@pytest.mark.parametrize("name", SPOILED)
def test_what_is_not_all_of_one_run_is_refused(name, folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    spoil, reason = SPOILED[name]
    spoil(*files(folder))
    with pytest.raises(LedgerError, match=reason):
        list(merge([folder]))
    assert not left_in(folder, *RESULT)


def test_the_runs_that_are_complete_are_merged_before_the_others_are_told(folder, three, tmp_path):
    for file in files(folder):
        rewritten(file, OTHER_DTYPE)
        file.rename(tmp_path / f"other.{file.name}")
    (tmp_path / files(tmp_path)[1].name).unlink()
    ran = run("merge", tmp_path, three, "--output", tmp_path / "new", status=1)
    assert "Error: 1 of 3 shards beside" in ran.stderr
    assert "as before with --shard 2/3" in ran.stderr
    assert len(left_in(tmp_path / "new")) == 2


@pytest.mark.parametrize("text", ["0/7", "8/7", "1", "1/0", "1/7/9", "1/10001", "١/7", " 1/7"])
def test_a_shard_is_one_of_all_counted_from_1(text):
    with pytest.raises(ArgumentError, match=r"^shard is .*, expected I/N, .*: 1/7 to 7/7"):
        Shard.parse(text)
    assert Shard.parse("10000/10000") == (10_000, 10_000)


def test_where_there_can_be_no_shard(tmp_path):
    assert checked_shard(None, None, types.SimpleNamespace(count=2)) is None
    with pytest.raises(ArgumentError, match="'1/2' without an output: give the folder"):
        checked_shard("1/2", None, types.SimpleNamespace(count=1))
    with pytest.raises(
        ArgumentError,
        match="'1/2' for 2 processes that share the work",
    ):
        checked_shard("1/2", tmp_path, types.SimpleNamespace(count=2))
    for command in ("probe", "mask", "ablate"):
        ran = run(command, "m --shard 1/2 --json", status=2)
        assert "--json prints one result, and a shard has none" in ran.stderr
    with pytest.raises(
        LedgerError,
        match=r"no shard in .*: expected files that `codesyntax",
    ):
        list(merge([tmp_path]))
    with pytest.raises(LedgerError, match="no folder .*none"):
        list(merge([tmp_path / "none"]))
    with pytest.raises(ArgumentError, match="no output for the shards of several folders"):
        list(merge([tmp_path, tmp_path / "b"]))


@pytest.fixture
def process(monkeypatch):
    """Makes this process one of four, by what `torchrun` sets, on a machine of so many GPUs."""

    def become(number, gpus, usable=True):
        monkeypatch.setenv("WORLD_SIZE", "4")
        monkeypatch.setenv("LOCAL_RANK", str(number))
        monkeypatch.setattr(torch.cuda, "is_available", lambda: usable)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)

    return become


def test_each_of_several_processes_computes_and_shares_on_a_gpu_of_its_own(process, monkeypatch):
    process(1, gpus=2)
    calls = []
    for owner, name, answer in (
        (torch.cuda, "set_device", None),
        (torch.distributed, "init_process_group", None),
        (torch.distributed, "get_world_size", 4),
        (torch.distributed, "get_rank", 3),
    ):
        monkeypatch.setattr(
            owner, name, lambda *given, answer=answer: calls.append(given) or answer
        )
    processes = processes_of_run()
    assert calls == [("cuda:1",), ("nccl",), (), ()]
    assert (processes.count, processes.rank, processes.device) == (4, 3, "cuda:1")
    assert processes_of_run(alone=True).device is None
    assert len(calls) == 4


def test_gpus_that_torch_cannot_use_are_none(process, monkeypatch):
    """The driver counts them; it may be too old for torch."""
    process(1, gpus=1, usable=False)
    began = []
    monkeypatch.setattr(torch.distributed, "init_process_group", began.append)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 4)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
    assert processes_of_run().device == "cpu"
    assert began == ["gloo"]


@pytest.mark.parametrize("number", [2, 3])
def test_a_process_without_a_gpu_of_its_own_is_refused(process, number):
    process(number, gpus=2)
    with pytest.raises(ModelError, match=f"process {number}.*no GPU of its own.*there are 2"):
        processes_of_run()
