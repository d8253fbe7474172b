"""A small world: one of every kind of file that the commands write, and commands run in children of a warm process.

A command that starts from nothing spends seconds on imports. Here one process imports everything and runs each command
once; a child forked from it does the same in a tenth of a second, and can be killed, starved and misled.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # where pytest looks, too
os.environ |= {
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
# a child would wait for the threads of its parent, which it does not have
os.environ["OMP_NUM_THREADS"] = "1"

import pytest
from support.evidence.hits_files import written
from support.evidence.masked_entries import entries, masked
from support.hub.loopback_hub import LoopbackHub
from support.processes import codesyntax, ended, start

import codesyntax_dataset
from probing.cli import main
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.probe import Probing
from probing.instruments.masking.mask import Masking
from probing.instruments.silencing import choose as heads_of
from probing.instruments.silencing.ablate import Ablation

Tree = dict[str, bytes]
"""Path -> content, of all files of a folder."""

_READS = "tiny-code-mlm --data data --config python --quiet"
_MASKS = f"mask {_READS} --draws 1 --node-types parameters,if_statement --output masked"
_PROJECTS = ("test/spans", "validation/unitconv")

EARLIER = {
    "build": "build --source code --config python --output data",
    "probe": f"probe {_READS} --split test --split validation --output results",
    "mask": f"{_MASKS} --limit 2",
    "report": "report results --output report",
    "export": "export results --output entries",
    "board": "board entries --data data --output board",
}
"""What has been done in the world when it begins."""

COMMANDS = {
    "build": "build --source code --config python --config python_exact --output data",
    "build, two processes": "build --source code --config python --num-proc 2 --output another",
    "probe": f"probe {_READS} --split test --split validation --max-length 300 --output results",
    "mask": f"{_MASKS} --limit 9",
    "ablate": f"ablate {_READS} --limit 2 --draws 1 --output silenced",
    "report": "report results masked --output report",
    "push": "push dataset data --repo user/codesyntax",
    "board": "board user/results --data data --output board",
}
"""What is done then: every output has an earlier one, which it replaces or stands beside."""


class World:
    """A world in `folder`: `place` is where commands run, and `hub` the Hub that they see."""

    def __init__(self, folder: Path, hub: LoopbackHub):
        self.place, self._start, self.hub = folder / "place", folder / "start", hub
        self.log = folder / "log"
        hub.server.handle_error = lambda *_: None  # who was asking is dead
        self._start.mkdir(parents=True)
        sample = Path(codesyntax_dataset.__file__).parent / "sample"
        for project in _PROJECTS:
            shutil.copytree(sample / project, self._start / "code" / project)
        self._start.rename(self.place)
        for arguments in EARLIER.values():
            self.run(arguments)
        hub.add(
            "user/results", {f"entries/{path.name}": path.read_bytes() for path in self._entries()}
        )
        hub.add("user/codesyntax", {})
        self._repositories = {name: hub.files(name) for _, name in hub.repositories}
        shutil.copytree(self.place, self._start)

    def _entries(self) -> Iterator[Path]:
        """An entry on attention, and one on masked syntax, of a model that nobody ran."""
        yield from (self.place / "entries").glob("*.hits.parquet")
        with tempfile.TemporaryDirectory() as folder:
            for of_masks in entries([masked()]):
                path = Path(folder, "masked.hits.parquet")
                path.write_bytes(written(of_masks))
                yield path

    def again(self) -> None:
        """Begin anew, in the same place."""
        shutil.rmtree(self.place)
        shutil.copytree(self._start, self.place)
        for name, files in self._repositories.items():
            if self.hub.files(name) != files:
                self.hub.add(name, files)

    def run(self, arguments: str) -> int:
        """Run a command in a child until it ends, with its output in `log`; return its exit status."""
        return ended(self.start(arguments))

    def start(self, arguments: str, prepare: Callable[[], object] = lambda: None) -> int:
        """Start a command in a child, after `prepare` there; return its process id."""

        def inside() -> None:
            os.chdir(self.place)
            os.environ |= {
                "CODESYNTAX_CACHE": str(self.place / "cache"),
                "TMPDIR": str(self.place / "tmp"),
            }
            Path("tmp").mkdir(exist_ok=True)
            tempfile.tempdir = os.environ["TMPDIR"]
            prepare()

        return start(codesyntax(arguments.split()), self.log, prepare=inside)

    def tree(self) -> Tree:
        """Everything in the place and on the Hub."""
        files = {
            str(path.relative_to(self.place)): path.read_bytes()
            for path in self.place.rglob("*")
            if path.is_file()
        }
        for name in self._repositories:
            files |= {
                f"Hub: {name}/{path}": content for path, content in self.hub.files(name).items()
            }
        return files


def any_head(ledger: RankLedger, *_: object) -> set[str]:
    """All relations: in a world so small no head beats a guess, and nothing would be silenced."""
    return {*ledger.relations}


@contextlib.contextmanager
def world() -> Iterator[World]:
    """A world of its own, with a Hub on the loopback interface, and runs that are saved in many parts."""
    with (
        tempfile.TemporaryDirectory(prefix="codesyntax-faults-") as folder,
        LoopbackHub() as hub,
        pytest.MonkeyPatch.context() as patch,
    ):
        hub.connect(patch, Path(folder, "hub"))
        patch.setenv("HF_TOKEN", "hf_anything")
        for experiment, functions in ((Probing, 4), (Masking, 2), (Ablation, 1)):
            patch.setattr(experiment, "PART", functions)
        patch.setattr(heads_of, "beats_guess", any_head)
        _import_everything(Path(folder))
        yield World(Path(folder, "world"), hub)


def _import_everything(folder: Path) -> None:
    """Let this process do once what imports modules where it is needed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CODESYNTAX_CACHE", "")
        patch.chdir(folder)
        shutil.copytree(
            Path(codesyntax_dataset.__file__).parent / "sample/validation/unitconv",
            "code/validation/p",
        )
        shutil.copytree("code/validation", "code/test")
        for arguments in (
            EARLIER["build"],
            EARLIER["probe"] + " --limit 2",
            EARLIER["mask"],
            COMMANDS["report"],
        ):
            with (
                contextlib.redirect_stdout(io.StringIO()),
                contextlib.redirect_stderr(io.StringIO()),
            ):
                main(arguments.split(), standalone_mode=False)
