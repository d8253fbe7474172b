"""A command loads and self-checks its model once."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import pytest
import transformers
from support.commands import run

from probing.models import load
from probing.models.location import TINY
from probing.runs.session import Session

pytestmark = pytest.mark.slow


KINDS = (
    transformers.AutoModel,
    transformers.AutoModelForMaskedLM,
    transformers.AutoModelForCausalLM,
)


@contextmanager
def watched():
    """The mocks of what loads a model, and that of what self-checks one."""
    with ExitStack() as stack:
        loads = [
            stack.enter_context(patch.object(kind, "from_pretrained", wraps=kind.from_pretrained))
            for kind in KINDS
        ]
        yield loads, stack.enter_context(patch.object(load, "self_check", wraps=load.self_check))


COMMANDS = {
    "probe": "--split test --split validation --limit 5",
    "mask": "--split test --split validation --limit 3 --draws 1",
    "ablate": "--limit 2 --draws 1",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_one_load(command, dataset_folder, tmp_path):
    """Of the command, and of the verification of both of its results."""
    given = ["--data", dataset_folder]
    with watched() as (loads, checks):
        run(command, TINY, *given, "--output", tmp_path, COMMANDS[command])
    assert sum(kind.call_count for kind in loads) == 1
    assert checks.call_count == (command != "mask")  # a masked model checks itself
    results = sorted(file for file in tmp_path.glob("*.json") if "silencing" not in file.name)
    with watched() as (loads, _):
        run("verify", *results, *given)
    assert (len(results), sum(kind.call_count for kind in loads)) == (2, 1)


def test_a_checkpoint_is_in_a_folder_of_its_own(tmp_path):
    """Which results name, so that it is found again; what is on the Hub is in none."""
    (tmp_path / "step-1").mkdir()
    assert Session(tmp_path, revision="step-1").place == (tmp_path / "step-1").resolve()
    assert Session(tmp_path).place == tmp_path.resolve()
    assert Session("user/model").place is None
