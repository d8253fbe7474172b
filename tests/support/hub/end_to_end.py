"""The whole way of a user, from source files to a board, every step in a process of its own (a child of a warm one), against the loopback Hub."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.hub.loopback_hub import LoopbackHub

import codesyntax_dataset
from probing.models.location import TINY, embedded_model

TOKEN = "hf_aTokenThatNobodyMayEverSee"
DATASET, METRIC, MODEL, BOARD = (
    "user/codesyntax",
    "user/codesyntax_metric",
    "user/tiny",
    "user/results",
)

PROJECTS = ("test/spans", "validation/unitconv")
"""The source files: so much of the embedded sample that a probe of it is quick."""

LOAD_DATASET = """
import json
from datasets import load_dataset
dataset = load_dataset("user/codesyntax", "python", split="test")
streamed = load_dataset("user/codesyntax", "python", split="test", streaming=True)
features = {name: repr(feature) for name, feature in dataset.features.items()}
version, splits = str(dataset.info.version), list(load_dataset("user/codesyntax"))
found = {"rows": list(dataset), "streamed": list(streamed), "features": features}
print(json.dumps({**found, "version": version, "splits": splits}))
"""

LOAD_METRIC = """
import json, sys
unused = dict.fromkeys(("transformers", "scipy"))  # evaluate imports them where it can: seconds, for nothing here
sys.modules |= unused
import evaluate
for name in unused:
    del sys.modules[name]
metric = evaluate.load("user/codesyntax_metric")
attention = [[[[0, 0.5, 0.3, 0.2], *[[0, 0, 0, 0]] * 3], [[0, 0.1, 0.3, 0.6], *[[0, 0, 0, 0]] * 3]]]  # 1 layer, 2 heads
found = {"module": type(metric).__module__}
for rule in ("first", "any"):
    metric.add(prediction=attention, reference=[("If:if->test", 0, 1, 1), ("If:if->body", 0, 2, 3)])
    found[rule] = metric.compute(k=[1, 2], rule=rule)["scores"]
print(json.dumps(found))
"""

MERGE_AND_READ = """
import json
from dataclasses import asdict
import yaml
from huggingface_hub import HfApi, hf_hub_download, parse_eval_result_entries
api = HfApi()
for repo, kind in (("user/tiny", "model"), ("user/results", "dataset")):
    [request] = api.get_repo_discussions(repo, repo_type=kind)
    api.merge_pull_request(repo, request.num, repo_type=kind)
with open(hf_hub_download("user/tiny", ".eval_results/codesyntax.yaml"), encoding="utf-8") as file:
    print(json.dumps([asdict(entry) for entry in parse_eval_result_entries(yaml.safe_load(file))]))
"""


@dataclass
class Walk:
    """A user at `hub`, whose home, working folder and temporary files are in `folder`, which begins empty."""

    hub: LoopbackHub
    folder: Path
    said: list[str] = field(default_factory=list)  # what the steps printed, errors included

    def __post_init__(self) -> None:
        self.home, self.work, temporary = (self.folder / name for name in ("home", "work", "tmp"))
        for folder in (self.home, self.work, temporary):
            folder.mkdir(parents=True)
        kept = {
            name: os.environ[name]
            for name in ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH")
            if name in os.environ
        }
        self.environment = {
            **kept,
            "HOME": str(self.home),
            "TMPDIR": str(temporary),
            "HF_ENDPOINT": self.hub.url,
            "HF_TOKEN": TOKEN,
            "HF_UPDATE_DOWNLOAD_COUNTS": "0",  # or `evaluate` calls a host of its own
            "OMP_NUM_THREADS": "1",
            "HF_HUB_DISABLE_XET": "1",  # large files are uploaded by LFS
        }
        self._warm = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("warm.py")],
            cwd=self.work,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    def __enter__(self) -> Walk:
        return self

    def __exit__(self, *error: object) -> None:
        self._warm.communicate()

    def codesyntax(self, *arguments: str) -> str:
        """Run a command of ours and return what it printed on standard output."""
        return self._step(f"codesyntax {' '.join(arguments)}", words=arguments)

    def python(self, title: str, code: str, **environment: str) -> Any:
        """Run `code` and return what it printed as JSON."""
        return json.loads(self._step(title, code=code, environment=environment))

    def _step(
        self,
        title: str,
        words: Sequence[str] = (),
        code: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> str:
        """Take a step in a process of its own, a child of the warm one; return what it printed on standard output."""
        files = {name: str(self.folder / name) for name in ("output", "errors")}
        step = {
            "words": words,
            "code": code,
            "folder": str(self.work),
            "environment": environment or {},
            **files,
        }
        stdin, stdout = self._warm.stdin, self._warm.stdout
        assert stdin
        assert stdout
        stdin.write(json.dumps(step) + "\n")
        stdin.flush()
        status = stdout.readline().strip()
        printed, errors = (Path(file).read_text("utf-8") for file in files.values())
        self.said += [printed, errors]
        if status != "0":
            raise RuntimeError(f"{title} ends with {status}: {errors}")
        return printed


def walk(user: Walk) -> dict[str, Any]:
    """Go the whole way; what was read back, by the name of the step.

    What is published is loaded without a token, as anybody would.
    """
    sample = Path(codesyntax_dataset.__file__).parent / "sample"
    for project in PROJECTS:
        shutil.copytree(sample / project, user.work / "code" / project)
    model = embedded_model(TINY)
    files = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
    user.hub.add(MODEL, {name: (model / name).read_bytes() for name in files}, type="model")
    user.hub.add(BOARD, {})
    found = {}
    user.codesyntax("build", "--source", "code", "--config", "python", "--output", "codesyntax")
    found["pushed"] = [user.codesyntax("push", "dataset", "codesyntax", "--repo", DATASET)]
    found["dataset"] = user.python("load_dataset, and streaming", LOAD_DATASET, HF_TOKEN="")
    found["pushed"] += [user.codesyntax("push", "metric", "--repo", METRIC)]
    found["metric"] = user.python("evaluate.load", LOAD_METRIC, HF_TOKEN="")
    splits = ("--split", "test", "--split", "validation")
    settings = ("--config", "python", *splits, "--direction", "dependent-to-head")
    user.codesyntax("probe", MODEL, "--data", DATASET, *settings, "--output", "results")
    user.codesyntax("submit", "results", "--model", MODEL, "--dataset", DATASET, "--board", BOARD)
    found["entries"] = user.python("merge, and parse_eval_result_entries", MERGE_AND_READ)
    user.codesyntax("board", BOARD, "--data", DATASET, "--output", "board")
    return found
