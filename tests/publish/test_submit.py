"""Results reach a model's repository and a board by pull request, once, and only if they are what they say."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from datetime import UTC, date, datetime

import pytest
import yaml
from click.testing import CliRunner
from conftest import cut
from huggingface_hub import HfApi, parse_eval_result_entries
from hypothesis import given, settings
from hypothesis import strategies as st
from support.attacks.results import RESULTS, recomputed, with_settings
from support.files import contents
from support.hub.loopback_hub import READ_ONLY, Fault, LoopbackHub

from codesyntax_dataset.build import build
from codesyntax_dataset.errors import CodeSyntaxError, HubError, LedgerError, SubmissionError
from codesyntax_dataset.tasks import MASK_SETTINGS
from probing import mask, prefer, probe
from probing.cli import main
from probing.evidence.gather import find
from probing.evidence.submission import headline_of, submissions_in
from probing.models.location import TINY, TINY_DECODER
from probing.publish import board, submit
from probing.publish.client import plain_errors

pytestmark = pytest.mark.slow

TOKEN = "hf_aTokenThatNobodyMayEverSee"
DATASET, MODEL, BOARD = "user/codesyntax", "maker/tiny", "lab/results"
PYTHON, JAVA = (f"{config}-held-out-dependent-to-head" for config in ("python", "java"))
WHERE = ("--model", MODEL, "--dataset", DATASET)


@pytest.fixture(scope="module")
def data(dataset_folder, tmp_path_factory):
    """The embedded sample cut to a few functions of each split."""
    return cut(dataset_folder, tmp_path_factory.mktemp("few") / "codesyntax", test=4, validation=4)


@pytest.fixture(scope="module")
def made(tiny_model, data, tmp_path_factory):
    """The tiny model's results, both languages and splits, in a folder for each language."""
    folder = tmp_path_factory.mktemp("results")
    for config in ("python", "java"):
        for split in ("test", "validation"):
            probe(
                str(tiny_model),
                data,
                config,
                split,
                direction="dependent-to-head",
                output=folder / config,
            )
    return folder


@pytest.fixture
def results(made, tmp_path):
    return shutil.copytree(made / "python", tmp_path / "results")


@pytest.fixture
def hub(tiny_model, data, monkeypatch, tmp_path):
    """A Hub with the dataset, the model and an empty board; the real client of this process talks to it."""
    with LoopbackHub() as hub:
        hub.add(DATASET, contents(data))
        hub.add(MODEL, contents(tiny_model), type="model")
        hub.add(BOARD, {})
        hub.connect(monkeypatch, tmp_path / "cache")
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield hub


def run(*arguments):
    outcome = CliRunner().invoke(main, ["submit", *map(str, arguments)], catch_exceptions=False)
    assert TOKEN not in outcome.output
    return outcome


def opened(hub, name=MODEL, type="model"):
    return [one["status"] for one in hub.repositories[type, name].discussions]


def written(hub):
    """Requests that change something."""
    return [
        request for request in hub.requests if re.match("POST .*/(commit|discussions)", request)
    ]


def test_results_are_merged_into_those_of_others(hub, made):
    """Of both languages. What else they say, and the whole way to a board: tests/project/test_end_to_end.py."""
    others = [
        {"dataset": {"id": "cais/hle", "task_id": "default"}, "value": 20.9, "extra": "kept"},
        {"dataset": {"id": DATASET, "task_id": PYTHON}, "value": 99.9},
    ]
    told = {submit.RESULTS_FILE: yaml.safe_dump(others).encode()}
    hub.add(MODEL, hub.files(MODEL, "model") | told, type="model")
    folders, source = [made / "python", made / "java"], "https://a.org/b"
    (request,) = submit.submission(folders, MODEL, DATASET, source_url=source)
    assert written(hub) == []
    address = f"{hub.url}/{MODEL}/discussions/1"
    assert [request.open() for _ in range(2)] == [address, f"already open: {address}"]
    HfApi().merge_pull_request(MODEL, 1)
    raw = yaml.safe_load(hub.files(MODEL, "model")[submit.RESULTS_FILE])
    assert raw[0] == others[0]
    _, *read = parse_eval_result_entries(raw)
    assert [entry.task_id for entry in read] == [PYTHON, JAVA]
    signatures = {result.test.signature for result in find(folders)}
    assert signatures == {entry.notes.partition("; combined ")[0] for entry in read}
    for entry in read:
        assert entry.value < 99
        assert (entry.source_url, entry.source_name) == (source, "CodeSyntax")
        assert 0 <= (datetime.now(UTC).date() - date.fromisoformat(entry.date)).days <= 1


def test_the_command_shows_and_opens(hub, results, monkeypatch):
    """A dry run asks nobody, and has the very files that are sent; not so the results, whose dataset has a commit."""
    model = hub.repositories["model", MODEL]
    model.discuss("CodeSyntax results of somebody else", "", "other", True)
    arguments = (results, *WHERE, "--board", BOARD)
    before = len(hub.requests)
    with monkeypatch.context() as patch:
        patch.delenv("HF_TOKEN")
        dry = run(*arguments, "--dry-run")
    assert (dry.exit_code, hub.requests[before:]) == (0, [])
    assert f"task_id: {PYTHON}" in dry.output
    assert run(*arguments).output.count("/discussions/") == 2
    files = hub.files(BOARD, revision="refs/pr/1")
    assert len(files) == 4
    assert {path.rpartition("/")[0] for path in files} == {*folders_of(files)}
    for path, sent in files.items():
        assert path in dry.output
        assert path.endswith(".json") or f"{len(sent):,} bytes" in dry.output
    assert not any(b"_path" in sent or bytes(results.parent) in sent for sent in files.values())
    told = hub.files(MODEL, "model", "refs/pr/2")[submit.RESULTS_FILE]
    (entry,) = parse_eval_result_entries(yaml.safe_load(told))
    assert entry.source_url == f"{hub.url}/datasets/{BOARD}"
    assert (opened(hub), opened(hub, BOARD, "dataset")) == (["open", "open"], ["open"])
    assert run(*arguments).output.count("already open: ") == 2
    HfApi().merge_pull_request(MODEL, 2)
    assert "nothing to send: maker/tiny already has these results" in run(*arguments).output


def folders_of(files):
    """The folder of a submission, that of its model, and its name: that of the table, and a digest."""
    folder = next(iter(files)).rpartition("/")[0]
    assert re.fullmatch(
        rf"submissions/{MODEL}/python\.attention\.[0-9a-f]{{12}}\.[0-9a-f]{{12}}", folder
    )
    return [folder]


@pytest.mark.parametrize("attack", RESULTS, ids=lambda attack: attack.name)
def test_forged_results(attack, results, data, monkeypatch):
    """What is on the Hub is here."""
    monkeypatch.setattr(submit, "_dataset_on_the_hub", lambda dataset: ("1" * 40, data))
    monkeypatch.setattr(submit, "_check_model", lambda settings, model, device: None)
    attack.forge(results)
    with pytest.raises(CodeSyntaxError, match=attack.stopped_by):
        submit.submission([results], MODEL, DATASET, board=BOARD)


def of_other_precision(results, tmp_path):
    other = shutil.copytree(results, tmp_path / "other")
    recomputed(other, with_settings(dtype="bfloat16", config="java"))
    return [results, other]


def twice(results, tmp_path):
    other = shutil.copytree(results, tmp_path / "other")
    recomputed(other, with_settings(dtype="bfloat16"))
    return [results, other]


def on_the_hub(results, tmp_path):
    """As if the model had been probed under its name on the Hub, at a commit that is not there."""
    recomputed(results, with_settings(model=MODEL, revision="1" * 40))
    return [results]


@pytest.mark.parametrize(
    "change, reason",
    [
        (of_other_precision, "different precisions"),
        (twice, r"\.test\..* and .*\.test\..* are both of attention python .*name one of them"),
        (on_the_hub, "1111 of maker/tiny is on no branch or tag of maker/tiny: probe that again"),
    ],
)
def test_results_that_do_not_go_together(change, reason, hub, results, tmp_path):
    with pytest.raises(LedgerError, match=reason):
        submit.submission(change(results, tmp_path), MODEL, DATASET)
    assert written(hub) == []


def test_a_model_of_the_hub_is_known_by_its_commit(hub, results, data):
    """The result names a commit; what is on main by now does not matter."""
    commit = hub.repositories["model", MODEL].sha("main")
    hub.add(MODEL, {"README.md": b"empty"}, type="model")
    recomputed(results, with_settings(model=MODEL, revision=commit))
    (request,) = submit.submission([results], MODEL, DATASET)
    assert f"{MODEL}@{commit[:12]}" in request.files[submit.RESULTS_FILE]


def test_other_weights_than_those_of_the_repository(hub, results):
    """Which were run: nobody else could run them."""
    config = json.loads(hub.files(MODEL, "model")["config.json"])
    other = {"config.json": json.dumps(config | {"layer_norm_eps": 1e-6}).encode()}
    hub.add(MODEL, hub.files(MODEL, "model") | other, type="model")
    with pytest.raises(
        LedgerError, match="has other weights, another configuration or another tok"
    ):
        submit.submission([results], MODEL, DATASET)
    assert written(hub) == []


@pytest.mark.parametrize("name", [MODEL, f"{MODEL}@refs/pr/1"])
def test_a_pull_request_is_not_the_model(name, hub, results):
    """Its commit is in the repository, but anybody may have put it there."""
    hub.add(MODEL, hub.files(MODEL, "model"), revision="refs/pr/1", type="model")
    commit = hub.repositories["model", MODEL].sha("refs/pr/1")
    recomputed(results, with_settings(model=name, revision=commit))
    with pytest.raises(CodeSyntaxError, match="is on no branch or tag|model is .*refs/pr/1"):
        submit.submission([results], MODEL, DATASET)
    assert written(hub) == []


def test_what_the_hub_says_no_to(hub, results, monkeypatch):
    """One line each, and nothing is sent."""
    for change, reason in (
        (("--model", "nowhere"), "is not a valid repository name"),
        (("--model", "maker/nothing"), "cannot load the model 'maker/nothing': no such folder"),
        (("--dataset", "user/nothing"), "refuses user/nothing, .*does not exist"),
        (("--source-url", "javascript:alert(1)"), "not an address"),
    ):
        outcome = run(results, *WHERE, *change)
        assert outcome.exit_code == 1
        assert re.fullmatch(f"Error: .*{reason}.*\n", outcome.stderr)
    (request,) = submit.submission([results], MODEL, DATASET)
    hub.faults = [Fault("POST .*/commit/", status=500, times=99)]
    with pytest.raises(HubError, match="status 500"):
        request.open()
    hub.faults = []
    monkeypatch.setenv("HF_TOKEN", READ_ONLY)
    with pytest.raises(HubError, match="the token needs the role"):
        request.open()
    assert opened(hub) == []


def test_answers_that_no_hub_gives(hub, results):
    """As from a proxy or another server: {} where fields are expected, and no JSON at all."""
    said = "does not answer like a Hub about maker/tiny"
    request = submit.PullRequest(MODEL, "model", {submit.RESULTS_FILE: "[]"}, "a title")
    for on in ("whoami", "discussions"):
        hub.faults = [Fault(on, status=200, times=99)]
        with pytest.raises(HubError, match=said):
            request.open()
    hub.faults = [Fault("GET /api/models", status=200, times=99)]
    outcome = run(results, *WHERE)
    assert outcome.exit_code == 1
    assert re.fullmatch(f"Error: .* {said} .*\n", outcome.stderr)
    with (
        pytest.raises(
            HubError, match="does not answer like a Hub about maker/tiny .JSONDecodeError"
        ),
        plain_errors(MODEL),
    ):
        json.loads("<html>")


@pytest.mark.parametrize(
    "source, status, headers, reason",
    [
        (BOARD, 403, {"X-Error-Code": "GatedRepo"}, "lab/results, .*accept its terms"),
        # what it says without a token
        (
            BOARD,
            401,
            {"X-Error-Code": "RepoNotFound"},
            "lab/results, .* does not exist",
        ),
        (
            BOARD,
            401,
            {"X-Error-Message": "Invalid credentials in Authorization header"},
            "status 401 .*: log in again",
        ),
        (f"{BOARD}@nothing", None, {}, "lab/results, .*no such revision"),
        ("-/-", None, {}, "is not a valid repository name"),
    ],
)
def test_a_results_repository_that_cannot_be_read(hub, source, status, headers, reason):
    if status is not None:
        hub.faults = [Fault("api/datasets", status=status, headers=headers)]
    with pytest.raises(HubError, match=reason):
        board.read([source], "data")


@pytest.mark.parametrize(
    "content", ["- value: 5\n", "7", "[" * 1500, "- [", "a: {b: c}", "- dataset: 5", b"\xff"]
)
def test_results_in_the_model_repository_that_are_broken(content):
    with pytest.raises(HubError, match="not what the Hub reads; mend it first"):
        submit._merged(content, [])


def test_the_same_results_of_another_day_are_there_already():
    dated = {"dataset": {"id": DATASET, "task_id": PYTHON}, "value": 1.5, "date": "2026-01-01"}
    there = yaml.safe_dump([dated], sort_keys=False)
    assert submit._merged(there, [{**dated, "date": "2026-02-02"}]) == there
    (newer,) = yaml.safe_load(submit._merged(there, [{**dated, "value": 2.5}]))
    assert newer["value"] == 2.5


def test_results_that_look_strange_stay():
    """What others put there is not ours to judge, as long as it can be read."""
    there = [{"dataset": {"id": [1], "task_id": None}, "value": "x"}]
    assert yaml.safe_load(submit._merged(yaml.safe_dump(there), [])) == there


def test_results_that_grow_when_they_are_read_stay_small():
    """Each letter stands for ten of the one before: ten thousand million in all, were they written out."""
    lists = [
        f"    {name}: &{name} [{', '.join([before] * 10)}]\n"
        for name, before in zip("abcdefghij", ["x", *map("*{}".format, "abcdefghi")])
    ]
    there = f"- dataset:\n{''.join(lists)}    id: *j\n    task_id: x\n"
    assert len(submit._merged(there, [])) < 10 * len(there)


def test_a_dataset_without_these_tasks(hub, results):
    """The board takes results that are of no task."""
    data = hub.repositories["dataset", DATASET]
    data.commit("main", {**data.files(), "eval.yaml": b"tasks: [{id: java-held-out}]"})
    why = f"has no task {PYTHON}, .* names java-held-out: send the results to a board"
    with pytest.raises(HubError, match=why):
        submit.submission([results], MODEL, DATASET)
    requests = submit.submission([results], MODEL, DATASET, board=BOARD)
    assert [request.repo for request in requests] == [BOARD]
    data.commit("main", {name: of for name, of in data.files().items() if name != "eval.yaml"})
    with pytest.raises(HubError, match="no eval.yaml"):
        submit.submission([results], MODEL, DATASET)


def changed(json_like, data):
    """One value of the settings is another."""
    place = json_like
    while isinstance(place, dict) and place:
        name = data.draw(st.sampled_from(sorted(place)))
        if not isinstance(place[name], dict) or data.draw(st.booleans()):
            place[name] = data.draw(
                st.none() | st.booleans() | st.integers() | st.text() | st.just([[]])
            )
            return
        place = place[name]


@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_no_ledger_of_a_stranger_raises_anything_else(made, data, tmp_path_factory):
    """Whatever stands in the settings of a ledger, with numbers that follow from it."""
    folder = tmp_path_factory.mktemp("strange")
    shutil.copytree(made / "python", folder, dirs_exist_ok=True)

    def strange(ledger):
        ledger.settings = json.loads(json.dumps(ledger.settings))
        changed(ledger.settings, data)
        return ledger

    try:
        recomputed(folder, strange, ["test"])
        submit._complete([folder], "user/tiny")
    except CodeSyntaxError as refused:
        assert str(refused)


# -------------------------------------------------------------------------------- other instruments


@pytest.fixture(scope="module")
def masked(data, tmp_path_factory):
    """A masking result, with fewer node types than those of a task."""
    folder = tmp_path_factory.mktemp("masked")
    mask(TINY, data, node_types=["parameters"], draws=1, output=folder)
    return folder


@pytest.mark.parametrize(
    "asked, reason",
    [
        ({"seed": 1}, "was made with --seed 0, but a task needs --seed 1"),
        ({"max_length": 510}, "--max-length 511, but a task needs --max-length 510"),
        ({"protocol": "published"}, "--protocol current, but a task needs --protocol published"),
        ({"node_types": ("string",)}, "but a task needs --node-types string"),
    ],
)
def test_other_settings_than_those_of_the_task_are_refused(asked, reason, masked):
    (each,) = submissions_in([masked])
    asks = {**MASK_SETTINGS, "draws": 1, "node_types": ("parameters",)}
    submit._check_asked(each.files["test"], each.settings, asks)
    with pytest.raises(LedgerError, match=reason):
        submit._check_asked(each.files["test"], each.settings, asks | asked)
    with pytest.raises(LedgerError, match="--draws 1, but a task needs --draws 20"):
        submit._complete([masked], TINY)


def test_a_task_is_of_the_split_test(data, tmp_path):
    for split in ("test", "validation"):
        mask(TINY, data, split=split, node_types=["parameters"], draws=1, output=tmp_path / split)
    (each,) = submissions_in([tmp_path / "test"])
    assert each.check() is None
    with pytest.raises(SubmissionError, match="there is no result on the split test"):
        submit._complete([tmp_path / "validation"], TINY)


@pytest.mark.parametrize("draws", [-1, 0, 2, 10**12, 2**70])
def test_no_memory_is_taken_for_controls_that_are_not_there(draws, masked):
    (each,) = submissions_in([masked])
    ledger = with_settings(draws=draws)(each.result.ledger)
    with pytest.raises(LedgerError, match=f"does not have {draws} controls for every masked copy"):
        type(each.result).from_ledger(ledger)


def test_a_model_that_reads_less_than_a_task_has_is_refused(results):
    def less(ledger):
        skips = {"more than 300 sub-tokens": 1}
        return dataclasses.replace(ledger, settings=ledger.settings | {"skips": skips})

    recomputed(results, less)
    with pytest.raises(LedgerError, match="lacks the functions of more than 300 sub-tokens"):
        submit._complete([results], MODEL)


@pytest.mark.long
def test_pairs_are_submitted(dataset_folder, tmp_path):
    """Their task has the number of the result, beside that of the surface rival."""
    build("sample", ["python_pairs"], tmp_path / "data")
    result = prefer(TINY_DECODER, tmp_path / "data", output=tmp_path / "results")
    model_request, board_request = submit.submission(
        [tmp_path / "results"], "maker/decoder", DATASET, board=BOARD, dry_run=True
    )
    (told,) = yaml.safe_load(model_request.files[submit.RESULTS_FILE])
    assert told["dataset"]["task_id"] == "python-pairs-preferred"
    assert told["value"] == pytest.approx(result.mean.whole, abs=0.0051)
    assert told["notes"] == f"{result.signature}; surface rival {result.mean.surface:.2f}"
    assert len(board_request.files) == 2


@pytest.mark.parametrize("instrument", ["silencing", "information", "surprisal"])
def test_what_no_board_takes(instrument):
    with pytest.raises(
        SubmissionError, match=f"attention, masking and preference, not '{instrument}'"
    ):
        headline_of(instrument)
