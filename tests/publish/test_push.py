"""What is pushed is true to its data, and is there as a whole or not at all.

That others can load it in one line is shown by tests/project/test_end_to_end.py.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import huggingface_hub
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner
from huggingface_hub import HfApi, constants
from support.hub.loopback_hub import READ_ONLY, Fault, LoopbackHub
from support.hub.loopback_hub import contents as files

from codesyntax_dataset import metadata
from codesyntax_dataset.build import build
from codesyntax_dataset.check import check_folder
from codesyntax_dataset.errors import DatasetError, HubError, UnknownName
from codesyntax_dataset.features import PAIR_FEATURES
from codesyntax_dataset.languages import CONFIGS
from codesyntax_dataset.protocol import DIRECTIONS
from codesyntax_dataset.schema import LABELS
from codesyntax_dataset.tasks import mask_task_id, task_id, tasks
from codesyntax_metric import topk_uas
from probing.cli import main
from probing.publish.push import push_dataset, push_metric

TOKEN = "hf_aTokenThatNobodyMayEverSee"
DATASET, METRIC = "user/codesyntax", "user/codesyntax_metric"


def published(folder: Path) -> dict[str, bytes]:
    """The files of a dataset as they are pushed: its card loads the repository."""
    contents = files(folder)
    card = re.sub(
        r'load_dataset\("codesyntax", (.*?\))  # .*',
        rf'load_dataset("{DATASET}", \1',
        contents["README.md"].decode(),
    )
    assert f'load_dataset("{DATASET}", "' in card
    before = hashlib.sha256(contents["README.md"]).hexdigest()
    contents["README.md"] = card.encode()
    sums = (
        contents["SHA256SUMS"].decode().replace(before, hashlib.sha256(card.encode()).hexdigest())
    )
    return contents | {"SHA256SUMS": sums.encode()}


def pushed(
    hub: LoopbackHub, name: str = DATASET, type: str = "dataset", revision: str = "main"
) -> dict[str, bytes]:
    """What is in a repository, but for the file that is there from the beginning."""
    return {
        path: data
        for path, data in hub.files(name, type, revision).items()
        if path != ".gitattributes"
    }


@pytest.fixture
def connect(monkeypatch, tmp_path):
    """Makes the real client of this process talk to a Hub; returns the list of the seconds that it would have slept."""

    def to(hub: LoopbackHub) -> list[float]:
        waits: list[float] = []
        hub.connect(monkeypatch, tmp_path / "cache")
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        monkeypatch.setattr(time, "sleep", waits.append)
        return waits

    return to


def run(*arguments):
    return CliRunner().invoke(
        main, [str(argument) for argument in arguments], catch_exceptions=False
    )


def test_a_dry_run_lists_files_and_sizes_and_sends_nothing(connect, dataset_folder):
    with LoopbackHub() as hub:
        connect(hub)
        listed = run("push", "dataset", dataset_folder, "--repo", DATASET, "--dry-run")
        assert run("push", "metric", "--repo", METRIC, "--dry-run").exit_code == 0
        assert hub.requests == []
    lines = [line.split() for line in listed.stdout.splitlines()]
    sizes = {name: len(data) for name, data in published(dataset_folder).items()}
    assert {name: int(size.replace(",", "")) for size, name in lines[:-1]} == sizes
    assert int(lines[-1][0].replace(",", "")) == sum(sizes.values())


@pytest.mark.slow
@pytest.mark.parametrize("lfs", [False, True], ids=["regular", "lfs"])
def test_a_pull_request_changes_nothing_until_it_is_merged(connect, dataset_folder, lfs):
    """With the client's own functions for pull requests, as the results of models need them."""
    with LoopbackHub(lfs) as hub:
        connect(hub)
        hub.add(DATASET, {"notes.md": b"mine"})
        address = push_dataset(dataset_folder, DATASET).send(create_pr=True)
        assert address == f"{hub.url}/datasets/{DATASET}/discussions/1"
        assert pushed(hub) == {"notes.md": b"mine"}
        assert pushed(hub, revision="refs/pr/1") == {"notes.md": b"mine"} | published(
            dataset_folder
        )
        api, where = HfApi(token=TOKEN), {"repo_id": DATASET, "repo_type": "dataset"}
        (opened,) = api.get_repo_discussions(**where)
        assert opened.is_pull_request
        assert (opened.num, opened.status, opened.author) == (1, "open", "user")
        closed = api.change_discussion_status(discussion_num=1, new_status="closed", **where)
        assert closed.new_status == "closed"
        assert api.get_discussion_details(discussion_num=1, **where).status == "closed"
        api.merge_pull_request(discussion_num=1, **where)
        assert pushed(hub) == {"notes.md": b"mine"} | published(dataset_folder)
        assert api.get_discussion_details(discussion_num=1, **where).status == "merged"


@pytest.mark.slow
def test_a_second_push_sends_what_changed_and_deletes_what_is_gone(
    connect, tmp_path, dataset_folder
):
    build("sample", ["java"], tmp_path / "java")
    with LoopbackHub() as hub:
        connect(hub)
        hub.add(DATASET, {"notes.md": b"mine"})
        push_dataset(dataset_folder, DATASET).send()
        push_dataset(tmp_path / "java", DATASET).send()
        assert pushed(hub) == {"notes.md": b"mine"} | published(tmp_path / "java")
        commits = len(hub.repositories["dataset", DATASET].commits)
        push_dataset(tmp_path / "java", DATASET).send()
        assert len(hub.repositories["dataset", DATASET].commits) == commits


@pytest.mark.slow
def test_private_holds_for_new_repositories_and_never_lies_about_old_ones(connect, dataset_folder):
    with LoopbackHub() as hub:
        connect(hub)
        push_metric(METRIC).send(private=True)
        assert hub.repositories["space", METRIC].private
        hub.add(DATASET, {})
        with pytest.raises(HubError, match="already exists and is public"):
            push_dataset(dataset_folder, DATASET).send(private=True)
        assert pushed(hub) == {}


# ------------------------------------------------------------------------------------------------------- interruptions

FOREVER = math.inf


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        (Fault("PUT|commit", FOREVER, after=1), "the connection to "),  # gone after the first file
        (Fault("PUT", FOREVER, status=500), "status 500"),
        (Fault("preupload", FOREVER, status=503), "status 503"),
        (Fault("commit", status=500), "status 500 (ordered by the test)"),
        (Fault("repos/create", status=502), "status 502"),
        (Fault("commit", FOREVER, status=429), "wait some minutes"),
        (Fault("repos/create", FOREVER, status=429), "wait some minutes"),
        (Fault("preupload", status=403), "refuses user/codesyntax, status 403"),
        (Fault("validate-yaml", status=400), "status 400"),
    ],
    ids=lambda value: f"{value.on} {value.status}" if isinstance(value, Fault) else "",
)
def test_an_interrupted_push_publishes_nothing_and_says_why_and_the_same_command_completes_it(
    connect, dataset_folder, capsys, fault, complaint
):
    with LoopbackHub(lfs=True) as hub:
        waits = connect(hub)
        hub.faults, first = [fault], fault.after
        failed = run("push", "dataset", dataset_folder, "--repo", DATASET)
        assert failed.exit_code == 1
        error = failed.stderr.strip().splitlines()[-1]
        assert error.startswith("Error: ") and complaint in error
        assert failed.stdout == ""
        if first:
            assert len(hub.uploads) == first
        if ("dataset", DATASET) in hub.repositories:
            assert pushed(hub) == {}
        assert sum(waits) < 700
        hub.faults = []
        assert run("push", "dataset", dataset_folder, "--repo", DATASET).exit_code == 0
        assert pushed(hub) == published(dataset_folder)
    printed = "".join(capsys.readouterr())  # the client's log, too
    assert TOKEN not in printed and "://" not in printed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "waited"),
    [
        # the client's own patience adds 1
        (
            Fault("preupload", 1, status=429, headers={"Retry-After": "7"}),
            [8],
        ),
        (Fault("PUT", 1, status=429, headers={"Retry-After": "7"}), [8]),
        (Fault("PUT", 1, status=500), [1]),
        (Fault("PUT", 1), [1]),  # the first large file breaks in the middle
    ],
    ids=lambda value: f"{value.on} {value.status}" if isinstance(value, Fault) else "",
)
def test_a_passing_fault_is_waited_for_as_long_as_the_hub_asks(
    connect, dataset_folder, fault, waited
):
    with LoopbackHub(lfs=True) as hub:
        waits = connect(hub)
        hub.faults = [fault]
        push_dataset(dataset_folder, DATASET).send(create_pr=True)
        assert waits == waited
        assert pushed(hub, revision="refs/pr/1") == published(dataset_folder)
        assert len(hub.repositories["dataset", DATASET].discussions) == 1


def test_a_hub_that_is_not_there_is_told_in_a_line(connect, dataset_folder):
    with LoopbackHub() as hub:
        connect(hub)
    with pytest.raises(
        HubError, match=rf"the connection to {hub.url} .* failed \(ConnectionRefused"
    ):
        push_dataset(dataset_folder, DATASET).send()


# ------------------------------------------------------------------------------------------------ tokens, names, rights


@pytest.mark.parametrize(
    ("token", "complaint"),
    [
        ("", "no token"),
        ("hf_two words", "invalid characters"),
        (READ_ONLY, "the token needs the role `write`"),
    ],
)
def test_a_token_that_cannot_push_is_refused_before_anything_is_there(
    connect, monkeypatch, token, complaint
):
    with LoopbackHub() as hub:
        connect(hub)
        monkeypatch.setenv("HF_TOKEN", token)
        refused = run("push", "metric", "--repo", METRIC)
        assert hub.repositories == {}
    assert refused.exit_code == 1 and complaint in refused.stderr
    assert not token or token not in refused.output


def test_a_token_that_the_hub_knows_no_more_is_not_printed_even_if_the_hub_does(connect):
    with LoopbackHub() as hub:
        connect(hub)
        expired = {"X-Error-Message": f"{TOKEN} has expired"}
        hub.faults = [Fault("create", FOREVER, status=401, headers=expired)]
        refused = run("push", "metric", "--repo", METRIC)
    assert "status 401 ([token] has expired): log in again" in refused.stderr
    assert TOKEN not in refused.output


@pytest.mark.parametrize(
    "repo",
    [
        "codesyntax",
        "a/b/c",
        "user/",
        "/name",
        "user/na me",
        "user/..",
        "user/x.git",
        "../user/x",
        "",
    ],
)
def test_an_impossible_repository_is_refused_without_asking(dataset_folder, repo):
    with pytest.raises(HubError, match="is not a valid repository name, expected USER/NAME"):
        push_dataset(dataset_folder, repo)


def test_the_metric_only_goes_where_evaluate_finds_it():
    with pytest.raises(
        HubError, match="of its name, USER/codesyntax_metric or USER/ast_similarity"
    ):
        push_metric("user/my_metric")


LOAD = """
import json, sys
unused = "transformers", "scipy"  # it imports them where it can: seconds, for nothing here
sys.modules |= dict.fromkeys(unused)
import evaluate
for name in unused:
    del sys.modules[name]
metric = evaluate.load("user/ast_similarity")
print(json.dumps([type(metric).__module__, metric.compute(predictions=["f(x)"], references=["f(x, y)"])["jaccard"]]))
"""


@pytest.mark.slow
def test_evaluate_loads_the_similarity_of_trees_from_its_space(connect, tmp_path):
    """The other metric is loaded in tests/project/test_end_to_end.py."""
    with LoopbackHub() as hub:
        connect(hub)
        pushed_to = run("push", "metric", "--repo", "user/ast_similarity")
        assert pushed_to.stdout.startswith(f"{hub.url}/spaces/user/ast_similarity/")
        expected = files(Path(topk_uas.__file__).with_name("ast_similarity"))
        sent = pushed(hub, "user/ast_similarity", "space")
        assert sent == {name: expected[name] for name in sent}
        stems = {Path(name).stem for name in sent}
        assert stems == {"README", "app", "ast_similarity", "requirements", "similarity"}
        names = {"PATH", "SYSTEMROOT", "LD_LIBRARY_PATH"} & set(os.environ)
        environment = {name: os.environ[name] for name in names}
        environment |= {"HOME": str(tmp_path / "home"), "HF_ENDPOINT": hub.url}
        environment["HF_UPDATE_DOWNLOAD_COUNTS"] = "0"  # evaluate counts with a host of its own
        command = [sys.executable, "-c", LOAD]
        done = subprocess.run(
            command, check=False, cwd=tmp_path, env=environment, capture_output=True, text=True
        )
    assert done.returncode == 0, done.stderr
    module, jaccard = json.loads(done.stdout)
    assert module.startswith("evaluate_modules.metrics.user--ast_similarity.")
    assert jaccard == 0.8  # 4 of 5 nodes, as in the metric's card


PAIRS = """
import json, datasets
rows = datasets.load_dataset("user/codesyntax", "go_pairs", split="test")
print(json.dumps([rows.to_list(), str(rows.features), str(rows.info.version)]))
"""


@pytest.mark.long
def test_load_dataset_loads_minimal_pairs_from_their_repository(connect, tmp_path):
    """The rows, their types and version as built; the card counts them by phenomenon, and has the task for lm-eval."""
    folder = tmp_path / "codesyntax"
    build("sample", ["go_pairs"], folder)
    with LoopbackHub() as hub:
        connect(hub)
        assert run("push", "dataset", folder, "--repo", DATASET).exit_code == 0
        sent = pushed(hub)
        variables = {"HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "0"}
        variables = os.environ | variables | {"HF_ENDPOINT": hub.url}
        command = [sys.executable, "-c", PAIRS]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows, features, version = json.loads(done.stdout)
    assert rows == pq.read_table(folder / "go_pairs/test.parquet").to_pylist() and len(rows) > 20
    assert features == str(PAIR_FEATURES) and version.startswith(f"{LABELS}.")
    for phenomenon, count in Counter(row["phenomenon"] for row in rows).items():
        assert re.search(
            rf"^\| `{phenomenon}` .*\| {count} \|", sent["README.md"].decode(), flags=re.MULTILINE
        )
    assert sent.keys() - files(folder).keys() == {"lm_eval/codesyntax_go_pairs.yaml"}


def test_offline_means_offline(monkeypatch, dataset_folder):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(HubError, match="HF_HUB_OFFLINE is set"):
        push_dataset(dataset_folder, DATASET).send()


# --------------------------------------------------------------------------------------- a folder that is not as built


def with_sums(change):
    """The same change, and checksums that agree with it."""

    def changed(folder: Path) -> None:
        change(folder)
        lines = [
            f"{hashlib.sha256(data).hexdigest()}  {name}\n"
            for name, data in sorted(files(folder).items())
            if name != "SHA256SUMS"
        ]
        (folder / "SHA256SUMS").write_text("".join(lines))

    return changed


def edited(name: str, before: str, after: str):
    def edit(folder: Path) -> None:
        text = (folder / name).read_text(encoding="utf-8")
        assert before in text
        (folder / name).write_text(text.replace(before, after, 1), encoding="utf-8")

    return edit


def rewritten(change):
    """Another table in place of python/test.parquet."""

    def rewrite(folder: Path) -> None:
        file = folder / "python/test.parquet"
        pq.write_table(change(pq.read_table(file)), file)

    return rewrite


def flip_a_byte(folder: Path) -> None:
    file = folder / "java/test.parquet"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def write(name: str, text: str = "x"):
    return lambda folder: (folder / name).write_text(text)


def with_ids(ids):
    def change(table: pa.Table) -> pa.Table:
        return table.set_column(
            0, table.schema.field("id"), pa.array(ids(table["id"].to_pylist()), pa.int64())
        )

    return change


def without_code(table: pa.Table) -> pa.Table:
    place = table.schema.get_field_index("code")
    return table.set_column(place, table.schema.field("code"), pa.nulls(len(table), pa.string()))


def without(name: str):
    return lambda folder: (folder / name).unlink()


def another_config(folder: Path) -> None:
    shutil.copytree(folder / "java", folder / "java_skip_semicolon")


def link(folder: Path) -> None:
    shutil.move(folder / "java/test.parquet", folder.parent / "elsewhere.parquet")
    (folder / "java/test.parquet").symlink_to(folder.parent / "elsewhere.parquet")


YAML, DEEP = "does not begin with the YAML header of a dataset", f"deep: {'[' * 1500}\nconfigs:"
MADE = "was not made by `codesyntax build`"
HEADER = {"huggingface": "{"}, {"huggingface": "[" * 100_000}

# fmt: off
TAMPERED = [
    (flip_a_byte, "java/test.parquet does not have the checksum that SHA256SUMS lists"),
    (write("notes.txt"), "notes.txt does not belong there"),
    (write("codesyntax.py"), "codesyntax.py does not belong there"),
    (write("java/.DS_Store"), "java/.DS_Store does not belong there"),
    (lambda folder: (folder / "java/empty").mkdir(), "java/empty does not belong there"),
    (link, "java/test.parquet is a symbolic link"),
    (without("java/test.parquet"), "java/test.parquet, which SHA256SUMS lists, is missing"),
    (without("README.md"), "README.md is missing"),
    (without("SHA256SUMS"), "SHA256SUMS is missing"),
]
"""What is done to a folder, and why it is refused."""

WITH_SUMS = [
    (flip_a_byte, "java"),  # a broken page, or other rows than the card tells
    (without("java/test.parquet"), "README.md says"),
    (lambda folder: shutil.rmtree(folder / "java"), "there is no java/*.parquet"),
    (without("eval.yaml"), "eval.yaml is missing"),
    (another_config, "java_skip_semicolon/test.parquet belongs to a config that the card does not name"),
    (write("README.md", "Made by hand"), "was not made by"),
    (lambda folder: (folder / "eval.yaml").write_bytes(b"\xff"), "eval.yaml is not UTF-8 text"),
    (write("python/test.parquet"), "python cannot be read"),
    (rewritten(lambda table: table.slice(1)), "| 140 |"),
    (rewritten(lambda table: table.drop_columns(["url"])), "has the columns id int64, code"),
    (rewritten(with_ids(lambda ids: [ids[1], *ids[1:]])), "python has the id 1 2 times"),
    (rewritten(with_ids(lambda ids: ids[::-1])), f"README.md says '| `python` | {LABELS}."),
    (rewritten(lambda table: table.replace_schema_metadata(HEADER[0])), "cannot be read"),
    (rewritten(lambda table: table.replace_schema_metadata(HEADER[1])), "cannot be read"),
    (rewritten(without_code), "python cannot be read"),
    (edited("eval.yaml", "java-held-out", "java-best"), "id: java-best-dependent-to-head"),
    (edited("README.md", "num_examples: 141", "num_examples: 140"), "140', but its Parquet"),
    (edited("README.md", "| 141 |", "| 142 |"), "| 142 |"),
    (edited("README.md", f"version: {LABELS}.", "version: 0.1."), "version: 0.1."),
    (edited("README.md", "split: test", "split: train"), "split: train"),
    (edited("README.md", "config_name: java", "config_name: jawa"), "names a config 'jawa'"),
    (edited("README.md", "config_name: java", "config_name: [java]"), "names a config ['java']"),
    (edited("README.md", "| `If:if->test` | ", "| `If:if->test` | 1"), "`If:if->test`"),
    (edited("README.md", "Made by", "Written by"), MADE),
    (edited("README.md", "configs:", "configs: ["), YAML),
    (edited("README.md", "configs:", "date: 2026-99-99\nconfigs:"), YAML),
    (edited("README.md", "configs:", DEEP), YAML),
]
"""The same, with checksums that agree with it."""
# fmt: on


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tamper", "reason"),
    [*TAMPERED, *((with_sums(tamper), reason) for tamper, reason in WITH_SUMS)],
)
def test_a_folder_that_is_not_as_built_is_refused_with_its_reason(
    tmp_path, dataset_folder, tamper, reason
):
    folder = tmp_path / "codesyntax"
    shutil.copytree(dataset_folder, folder)
    tamper(folder)
    with pytest.raises(DatasetError) as refused:
        push_dataset(folder, DATASET)
    assert reason in str(refused.value)
    assert len(str(refused.value)) < 1000


def test_what_is_no_folder_is_refused_in_a_line(tmp_path):
    refused = run("push", "dataset", tmp_path / "nowhere", "--repo", DATASET)
    assert refused.exit_code == 1
    why = "is not a folder: expected a dataset that `codesyntax build` wrote"
    assert refused.stderr == f"Error: {tmp_path / 'nowhere'} {why}\n"


# --------------------------------------------------------------------------------------------- metadata beside the data


def test_every_file_has_its_checksum(dataset_folder):
    lines = [line.split("  ") for line in (dataset_folder / "SHA256SUMS").read_text().splitlines()]
    contents = files(dataset_folder)
    del contents["SHA256SUMS"]
    assert {name: checksum for checksum, name in lines} == {
        name: hashlib.sha256(data).hexdigest() for name, data in contents.items()
    }
    if shutil.which("sha256sum"):
        subprocess.run(
            ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"],
            cwd=dataset_folder,
            check=True,
        )


def test_the_tasks_of_the_benchmark_are_those_of_its_configs(dataset_folder):
    """The ids by hand; the keys are those that the Hub reads."""
    told = yaml.safe_load((dataset_folder / "eval.yaml").read_text(encoding="utf-8"))
    assert list(told) == ["name", "description", "tasks"]
    assert all(
        list(task) == ["id", "config", "split"] and task["split"] == "test"
        for task in told["tasks"]
    )
    assert [(task["id"], task["config"]) for task in told["tasks"]] == [
        ("python-beyond-offset-dependent-to-head", "python"),
        ("python-held-out-dependent-to-head", "python"),
        ("java-beyond-offset-dependent-to-head", "java"),
        ("java-held-out-dependent-to-head", "java"),
        ("python-mask-restored", "python"),
        ("java-mask-restored", "java"),
    ]


def test_a_dataset_without_validation_has_no_held_out_tasks_and_one_without_test_none(tmp_path):
    for split, repository in (("test", "one"), ("validation", "two")):
        (tmp_path / "source" / split / repository).mkdir(parents=True)
        (tmp_path / "source" / split / repository / "a.py").write_text(
            "def f(x):\n    return x.y\n"
        )
    for excluded, expected in (("two", ["python-mask-restored"]), ("one", None)):
        (tmp_path / "list").write_text(excluded)
        options = {"exclude_repositories": tmp_path / "list", "overwrite": True}
        build(str(tmp_path / "source"), ["python"], tmp_path / "out", **options)
        check_folder(tmp_path / "out")
        file = tmp_path / "out" / "eval.yaml"
        there = yaml.safe_load(file.read_text())["tasks"] if file.exists() else None
        assert there == expected or [task["id"] for task in there] == expected


def test_task_ids_are_unique_and_refuse_what_does_not_exist():
    """A dataset of all configs has at most eight leaderboards."""
    # written again, for the dataset does not import the metric
    assert DIRECTIONS == topk_uas.DIRECTIONS
    ids = [task.id for task in tasks(CONFIGS)]
    assert len(set(ids)) == len(ids) <= 8
    other = task_id("java_skip_semicolon", "held-out", "head-to-dependent")
    assert other == "java_skip_semicolon-held-out"
    assert mask_task_id("ruby") == "ruby-mask-restored"
    with pytest.raises(UnknownName):
        mask_task_id("pyton")
    for wrong in (
        ("pyton", "held-out", "head-to-dependent"),
        ("python", "published", "head-to-dependent"),
        ("python", "held-out", "both"),
    ):
        with pytest.raises(UnknownName):
            task_id(*wrong)


def test_the_yaml_of_the_card_is_what_datasets_and_the_hub_client_read(dataset_folder):
    from datasets.info import DatasetInfosDict
    from datasets.utils.metadata import MetadataConfigs

    card = huggingface_hub.DatasetCard.load(dataset_folder / "README.md")
    configs = MetadataConfigs.from_dataset_card_data(card.data)
    infos = DatasetInfosDict.from_dataset_card_data(card.data)
    assert set(configs) == set(infos) == {"python", "java"}
    assert configs.get_default_config_name() == "python"


def test_all_names_that_a_dataset_may_have_are_ours(dataset_folder):
    assert set(files(dataset_folder)) <= metadata.files()


# ------------------------------------------------------------------------------------------------- the metric's page


@pytest.fixture
def app(monkeypatch, tmp_path):
    """The page's module as a Space has it: only what is pushed lies beside it, without our packages' names."""
    for name, content in push_metric(METRIC).files.items():
        (tmp_path / name).write_bytes(content)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "topk_uas", raising=False)
    module = importlib.import_module("app")
    yield module
    del sys.modules["app"], sys.modules["topk_uas"]


def test_the_page_scores_an_example(app):
    """By hand: from token 1, head 1 attends most to token 2, where the test begins, and head 0 to token 3, its last."""
    row = ["If:if->test", 1, 100.0, 100.0, 100.0, 100.0]
    for rule, head in (("first", 1), ("any", 0), ("last", 0)):
        sentence, rows = app.score_example(app.EXAMPLE, rule)
        assert (
            sentence
            == "Mean over relations at k = 1, 3, 10, 20: 100.0, 100.0, 100.0, 100.0 percent."
        )
        assert rows == [[*row, f"layer 0, head {head}"]]
    assert app.score_example('{"attention": [[[[0]]]], "edges": []}', "first") == (
        "Mean over relations at k = 1, 3, 10, 20: none, none, none, none percent.",
        [],
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Expecting value"),
        ("[1]", "JSON object"),
        ('{"attention": [[[[0]]]]}', "JSON object"),
        ('{"attention": [[[0]]], "edges": []}', "has the shape (1, 1, 1)"),
        ('{"attention": [[[[NaN]]]], "edges": []}', "not finite numbers"),
        ('{"attention": [[[[0]]]], "edges": 3}', '"edges" is not a list'),
        ('{"attention": [[[[0]]]], "edges": [["a", 0, 0, 1]]}', "tokens below 1"),
        ('{"attention": [[[[0]]]], "edges": [[0, 0, 0, 0]]}', "edge 0"),
        ('{"attention": [[[["a"]]]], "edges": []}', "weights that are not finite numbers"),
        ('{"attention": %s, "edges": []}' % ("9" * 6000), "This cannot be scored"),
        ("[" * 100_000, "nested too deeply"),
        (" " * 1_000_001, "1,000,001 characters"),
    ],
)
def test_the_page_tells_what_is_wrong_with_an_example(app, text, reason):
    sentence, rows = app.score_example(text, "first")
    assert sentence.startswith("This cannot be scored: ") and reason in sentence
    assert rows == []


def test_the_card_of_the_space_names_the_page(app):
    front = yaml.safe_load(
        (Path(app.__file__).with_name("README.md")).read_text(encoding="utf-8").split("---\n")[1]
    )
    assert (front["sdk"], front["app_file"]) == ("gradio", "app.py")
    assert json.loads(app.EXAMPLE)["edges"] == [["If:if->test", 1, 2, 3]]
