"""Several checkpoints of one training: on the Hub and in a folder, named twice, missing, killed and resumed."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from support.commands import run
from support.files import contents
from support.hub.loopback_hub import LoopbackHub

from codesyntax_dataset.errors import ModelError
from probing import probe, probe_training
from probing.instruments.attention import probe as module
from probing.instruments.attention.probe import Probing
from probing.instruments.attention.result import load
from probing.models.location import Checkpoint, checkpoints, locate, step_of

SOME = {"limit": 6}
STEPS = [0, 8, 300]


@pytest.fixture(scope="module")
def training(tmp_path_factory, tiny_model):
    """A folder of three checkpoints, of one shape and with other random weights."""
    import torch
    from transformers import BertConfig, BertModel

    folder = tmp_path_factory.mktemp("trained") / "run"
    for step in STEPS:
        place = shutil.copytree(tiny_model, folder / f"step-{step:06}")
        torch.manual_seed(step)
        BertModel(BertConfig.from_pretrained(tiny_model)).save_pretrained(place)
    return folder


@pytest.fixture
def hub(training, tmp_path, monkeypatch):
    """A Hub with the same checkpoints as branches, and one of them as another branch, too."""
    with LoopbackHub() as hub:
        for step in STEPS:
            files = contents(training / f"step-{step:06}")
            hub.add("user/run", files, revision=f"step{step}", type="model")
        heads = hub.repositories["model", "user/run"].heads
        heads["newest"] = heads["main"] = heads["step300"]
        hub.connect(monkeypatch, tmp_path / "cache")
        yield hub


@pytest.mark.parametrize(
    "name, step",
    [
        ("step-000128", 128),
        ("step1000", 1000),
        ("checkpoint-500", 500),
        ("global_step7", 7),
        ("stage1-step140000-tokens294B", 140000),
        ("main", None),
        ("v1.0", None),
        (None, None),
        ("step-" + "9" * 15, 10**15 - 1),
        ("step-" + "9" * 16, None),
    ],
)
def test_steps_are_read_from_names(name, step):
    assert step_of(name) == step


@pytest.mark.slow
def test_a_folder_of_checkpoints_stands_for_all_of_them(
    training, dataset_folder, tmp_path, monkeypatch
):
    """In order of steps, on data that are read once; each as if it were probed alone, under the name of the training."""
    read, real = [], module.read_functions
    monkeypatch.setattr(module, "read_functions", lambda *a, **k: read.append(a) or real(*a, **k))
    done = list(probe_training(training, dataset_folder, output=tmp_path, **SOME))
    assert len(read) == 1
    assert [one.run.step for one in done] == STEPS
    assert {one.settings.model for one in done} == {"run"}
    assert len({one.settings.revision for one in done}) == len(list(tmp_path.glob("*.json"))) == 3
    for step, one in zip(STEPS, done):
        assert load(one.paths(tmp_path)[0]).run.step == step
    alone = probe(training / f"step-{STEPS[1]:06}", dataset_folder, **SOME)
    assert np.array_equal(done[1].ledger.ranks, alone.ledger.ranks)
    assert done[1].settings.revision == alone.settings.revision
    assert done[2].title.startswith("run at step 300 on ")


@pytest.mark.slow
def test_revisions_of_a_model_on_the_hub_are_commits(hub, training, dataset_folder, tmp_path):
    done = list(
        probe_training(
            "user/run", dataset_folder, revisions=["step300", "step0", "step300"], **SOME
        )
    )
    assert [one.run.step for one in done] == [300, 0]
    heads = hub.repositories["model", "user/run"].heads
    assert [one.settings.revision for one in done] == [heads["step300"], heads["step0"]]
    local = list(
        probe_training(training, dataset_folder, revisions=["step-000300", "step-000000"], **SOME)
    )
    assert all(
        np.array_equal(one.ledger.ranks, other.ledger.ranks) for one, other in zip(done, local)
    )


@pytest.mark.parametrize(
    "revisions, reason",
    [
        (["step0", "step9"], "'user/run': .*step9"),
        (
            ["step300", "newest"],
            "its revisions step300 and newest are one commit, .*: give one of them",
        ),
    ],
)
def test_a_wrong_revision_is_told_before_anything_is_probed(
    revisions, reason, hub, dataset_folder, monkeypatch
):
    monkeypatch.setattr(Probing, "prepare", lambda *_: pytest.fail("probed"))
    with pytest.raises(ModelError, match=reason):
        list(probe_training("user/run", dataset_folder, revisions=revisions, **SOME))


def test_without_steps_in_all_names_the_order_given_counts(training, tmp_path, hub):
    assert checkpoints("user/run", ["newest", "step8"]) == [
        Checkpoint("newest", 1),
        Checkpoint("step8", 2),
    ]
    assert checkpoints("user/run", ["step8"]) == [Checkpoint("step8", 8)]
    assert checkpoints("user/run") == [Checkpoint(None, None)]
    assert checkpoints(str(training / "step-000008")) == [Checkpoint(None, None)]
    for name in ("early", "late"):
        shutil.copytree(training / "step-000008", tmp_path / "words" / name)
    assert checkpoints(str(tmp_path / "words"), ["late", "early"]) == [
        Checkpoint("late", 1),
        Checkpoint("early", 2),
    ]
    # the model of the last step, as trainers do
    shutil.copy(training / "step-000008" / "config.json", tmp_path / "words")
    assert checkpoints(str(tmp_path / "words")) == [Checkpoint(None, None)]


def test_an_embedded_model_has_no_revisions():
    with pytest.raises(ModelError, match="has no revision 'step8'"):
        locate("tiny-code-mlm", "step8")


def test_a_folder_has_only_the_checkpoints_in_it(training, dataset_folder):
    for name in ("step-9", "..", "step-000008/..", ""):
        with pytest.raises(ModelError, match="one of step-000000, step-000008, step-000300"):
            probe(training, dataset_folder, revision=name)


@pytest.mark.slow
def test_the_command_line(training, dataset_folder, tmp_path):
    """Several revisions, each once; --json prints one."""
    asked = (
        "probe",
        training,
        "--data",
        dataset_folder,
        "--split test --limit 3 --output",
        tmp_path,
    )
    some = "--revision step-000008 --revision step-000000 --revision step-000008"
    done = run(*asked, some)
    assert done.output.count("published top-k UAS") == 2
    assert done.output.index("run at step 8 ") < done.output.index("run at step 0 ")
    for more in (some, ""):
        refused = run(*asked, more, "--json", status=2)
        assert "one revision" in refused.output
