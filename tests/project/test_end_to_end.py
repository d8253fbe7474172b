"""From source files to a board, and the README's recipe, by the real commands and the real clients, from an empty home."""

from __future__ import annotations

import io
import json
import re
import shlex
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.files import csv_rows
from support.hub.end_to_end import (
    BOARD,
    DATASET,
    METRIC,
    MODEL,
    PROJECTS,
    TOKEN,
    Walk,
    walk,
)
from support.hub.loopback_hub import LoopbackHub

import probing
from codesyntax_dataset.check import check_folder
from probing.cli.publish import RECIPE
from probing.models.location import TINY, embedded_model
from probing.publish.push import METRICS

pytestmark = pytest.mark.slow

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")

DIRECTION = "-dependent-to-head"
"""In the ids of tasks."""

CARD = b"""---
configs:
- config_name: python
  data_files:
  - {split: validation, path: python/validation.parquet}
  - {split: test, path: python/test.parquet}
---
"""

COLUMNS = {
    "func_code_string": "code",
    "repository_name": "repo",
    "func_path_in_repository": "path",
    "func_name": "func_name",
    "func_code_url": "url",
}
"""As they are called on the Hub, and by us."""


@pytest.fixture(scope="module")
def walked(dataset_folder):
    """The user who went the whole way and followed the recipe, and what was read back. Homes hold models: none is kept."""
    with (
        TemporaryDirectory(prefix="codesyntax-walk-") as folder,
        LoopbackHub(lfs=True) as hub,
        Walk(hub, Path(folder)) as user,
    ):
        add_codesearchnet(hub, dataset_folder)
        found = walk(user)
        for line in recipe():
            program, *arguments = shlex.split(line)
            assert program == "codesyntax"
            user.codesyntax(*arguments)
        yield user, found


def add_codesearchnet(hub, dataset_folder):
    """Put a small model in CodeBERT's place, and some functions of the sample in that of CodeSearchNet."""
    model = embedded_model(TINY)
    files = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
    weights = {name: (model / name).read_bytes() for name in files}
    hub.add("microsoft/codebert-base", weights, type="model")
    functions = {"README.md": CARD}
    for split, count in (("test", 12), ("validation", 10)):
        rows = pq.read_table(dataset_folder / "python" / f"{split}.parquet").slice(0, count)
        file = io.BytesIO()
        pq.write_table(pa.table({theirs: rows[ours] for theirs, ours in COLUMNS.items()}), file)
        functions[f"python/{split}.parquet"] = file.getvalue()
    hub.add("code-search-net/code_search_net", functions)


def recipe():
    (block,) = re.findall(
        r"```sh\n(codesyntax build --source code-search-net.*?)```", README, flags=re.DOTALL
    )
    return block.splitlines()


def test_what_is_built_and_pushed_is_what_others_load_and_stream(walked):
    """The 15 functions of `spans`, counted by hand; their names as they stand in its files."""
    user, found = walked
    rows = found["dataset"]["rows"]
    files = sorted((user.work / "code" / PROJECTS[0]).glob("*.py"))
    defined = [
        name
        for file in files
        for name in re.findall(r"^ *def (\w+)", file.read_text("utf-8"), re.MULTILINE)
    ]
    assert [row["func_name"].rpartition(".")[2] for row in rows] == defined
    assert (len(rows), {row["repo"] for row in rows}, rows[0]["func_name"]) == (
        15,
        {"spans"},
        "merge",
    )
    assert found["dataset"]["streamed"] == rows
    assert found["dataset"]["splits"] == ["test", "validation"]
    assert (
        found["dataset"]["version"]
        == check_folder(user.work / "codesyntax").configs["python"].version
    )
    [loop] = [edge for edge in rows[0]["relations"] if edge["relation"] == "For:for->target"]
    assert [rows[0]["tokens"][loop[place]] for place in ("head", "first", "last")] == [
        "for",
        "interval",
        "interval",
    ]
    edge = "{'relation': Value('string'), 'head': Value('int32'), 'first': Value('int32'), 'last': Value('int32')}"
    assert found["dataset"]["features"] == {
        **dict.fromkeys(("id", "twin_of"), "Value('int64')"),
        **dict.fromkeys(
            ("code", "repo", "path", "func_name", "url", "language"), "Value('string')"
        ),
        "tokens": "List(Value('string'))",
        **dict.fromkeys(("token_start", "token_end"), "List(Value('int32'))"),
        "relations": f"List({edge})",
    }


def test_the_metric_that_others_load_counts_as_by_hand(walked):
    """Head 0 finds the test first; the first token of the body is second for both heads, its last first for head 1."""
    _, found = walked
    metric = found["metric"]
    # what was downloaded, not what is installed
    assert metric.pop("module").startswith("evaluate_modules.")
    assert metric == {"first": {"1": 50.0, "2": 100.0}, "any": {"1": 100.0, "2": 100.0}}


@pytest.fixture(scope="module")
def means(walked):
    """The mean of each protocol, as `probing.scores` has it of the walk's results."""
    user, _ = walked
    frame = probing.scores([user.work / "results"], user.work / "codesyntax")
    rows = frame.query(
        "system == 'model' and against == '' and group == 'mean' and rule == 'first' and k == 1"
    )
    return dict(zip(rows["protocol"], rows["value"]))


def test_the_merged_entries_say_what_the_ledgers_do(walked, means):
    user, found = walked
    hub = user.hub
    expected = {
        f"python-{protocol}{DIRECTION}": means[protocol]
        for protocol in ("held-out", "beyond-offset")
    }
    entries = found["entries"]
    assert {entry["task_id"]: entry["value"] for entry in entries} == pytest.approx(
        expected, abs=0.005
    )
    [file] = (user.work / "results").glob("*.test.*.json")
    result = json.loads(file.read_text("utf-8"))
    signature = result["signature"]
    rival = re.escape(signature) + r"; combined \d+\.\d+"
    assert all(re.fullmatch(rival, entry["notes"]) for entry in entries)
    first, *_ = hub.repositories["model", MODEL].commits  # before the pull request
    assert result["settings"]["revision"] == first
    assert f"|model:{MODEL}@{first[:12]}|" in result["signature"]
    pushed = hub.repositories["dataset", DATASET].sha("main")
    assert {(entry["dataset_id"], entry["dataset_revision"]) for entry in entries} == {
        (DATASET, pushed)
    }
    assert [of["status"] for of in hub.repositories["model", MODEL].discussions] == ["merged"]


def test_the_board_has_the_merged_scores(walked, means):
    user, found = walked
    (file,) = (user.work / "board" / "tables").iterdir()
    place = MODEL, "first", "1"
    (row,) = (row for row in csv_rows(file) if (row["name"], row["rule"], row["k"]) == place)
    columns = {name: name.removesuffix(": score") for name in row if name.endswith(": score")}
    on_board = {f"python-{of}": round(float(row[name]), 2) for name, of in columns.items()}
    assert on_board.pop("python-published") == pytest.approx(means["published"], abs=0.005)
    sent = {entry["task_id"].removesuffix(DIRECTION): entry["value"] for entry in found["entries"]}
    assert on_board == sent
    assert all(
        MODEL in (user.work / "board" / name).read_text(encoding="utf-8")
        for name in ("index.html", "report.md")
    )
    assert any("verified: 0, claimed: 1, tables: 1, left out: 0" in said for said in user.said)
    assert sum(path.startswith(f"submissions/{MODEL}/") for path in user.hub.files(BOARD)) == 4


def test_what_is_published_is_what_was_built_sent_in_the_way_that_the_hub_wants(walked):
    """`.gitattributes` is there from the beginning."""
    user, found = walked
    for address, place in zip(
        found["pushed"], (f"datasets/{DATASET}", f"spaces/{METRIC}"), strict=True
    ):
        assert address.startswith(f"{user.hub.url}/{place}/")
    built = user.work / "codesyntax"
    files = {
        path.relative_to(built).as_posix(): path.read_bytes()
        for path in built.rglob("*")
        if path.is_file()
    }
    sent = user.hub.files(DATASET)
    loads = (
        sent["README.md"].decode().replace(f'load_dataset("{DATASET}"', 'load_dataset("codesyntax"')
    )
    for name in ("README.md", "SHA256SUMS"):  # the card loads its repository
        assert sent.pop(name) != files.pop(name)
    assert 'load_dataset("codesyntax", "python", split="test")' in loads
    assert {**sent, ".gitattributes": b""} == {**files, ".gitattributes": b""}
    assert set(user.hub.files(METRIC, "space")) == METRICS["codesyntax_metric"] | {".gitattributes"}
    large = {"python/test.parquet", "python/validation.parquet"}
    assert user.hub.repositories["dataset", DATASET].large == large


def test_the_token_is_nowhere(walked):
    """Neither in what was printed, nor in any file, nor in anything that was sent but the header."""
    user, _ = walked
    assert user.hub.tokens == {TOKEN}
    assert not any(TOKEN in said for said in user.said)
    files = [path for path in user.folder.rglob("*") if path.is_file()]
    assert {path.relative_to(user.folder).parts[0] for path in files} >= {"home", "work"}
    assert [path for path in files if TOKEN.encode() in path.read_bytes()] == []
    sent = [
        data
        for repository in user.hub.repositories.values()
        for files in repository.commits.values()
        for data in files.values()
    ]
    assert not any(TOKEN.encode() in data for data in sent)
    assert not any(TOKEN in request for request in user.hub.requests)


def test_the_recipe_goes_from_the_hub_to_a_report(walked):
    """By the README's very commands."""
    user, _ = walked
    page = (user.work / "csn-report" / "index.html").read_text(encoding="utf-8")
    assert "microsoft/codebert-base" in page
    assert "held-out" in page
    assert len(list((user.work / "csn-results").glob("*.ledger.parquet"))) == 2


def test_the_demo_prints_the_same_recipe():
    assert RECIPE == recipe()
