"""A command loads, hashes and self-checks its model once, reads the data once a split, and tokenizes each text once."""

from __future__ import annotations

from collections import Counter

import datasets
import pytest
import transformers
from support.commands import run

from probing.models import files, load
from probing.models.location import TINY
from probing.runs import data
from probing.runs.session import Session

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]


@pytest.fixture
def counted(monkeypatch):
    """How often models were loaded and self-checked, files hashed, splits read, and each text tokenized."""
    counts: Counter[str] = Counter()
    texts: Counter[str] = Counter()

    def counting(owner, name, what, times=lambda *_: 1):
        real = getattr(owner, name)

        def call(*arguments, **named):
            counts[what] += times(*arguments)
            return real(*arguments, **named)

        monkeypatch.setattr(owner, name, call)

    def tokenized(_, given, *rest):
        texts.update([given] if isinstance(given, str) else given)
        return 1

    for kind in (
        transformers.AutoModel,
        transformers.AutoModelForMaskedLM,
        transformers.AutoModelForCausalLM,
    ):
        counting(kind, "from_pretrained", "loads")
    counting(load, "self_check", "self-checks")
    counting(files, "_add", "files hashed", lambda _, path: "tiny-code-mlm" in str(path))
    counting(data, "label_digest", "splits read")
    counting(transformers.PreTrainedTokenizerBase, "__call__", "calls", tokenized)
    files._digest_of_states.cache_clear()
    return counts, texts


COMMANDS = {
    "probe": ["--split", "test", "--split", "validation", "--limit", "5"],
    "mask": ["--split", "test", "--split", "validation", "--limit", "3", "--draws", "1"],
    "ablate": ["--limit", "2", "--draws", "1"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_one_load(command, counted, dataset_folder, tmp_path):
    counts, texts = counted
    codes = set()
    for split in ("test", "validation"):
        codes |= {*datasets.load_dataset(str(dataset_folder), "python", split=split)["code"]}
    given = ["--data", str(dataset_folder), "--output", str(tmp_path)]
    run(command, TINY, *given, *COMMANDS[command])
    assert counts["loads"] == 1
    assert counts["self-checks"] == (command != "mask")  # a masked model checks itself
    assert counts["splits read"] == 2
    once = {name: times for name, times in texts.items() if name in codes}
    assert len(once) > 5 and set(once.values()) == {1}
    verified(counts, given[:2], tmp_path)


def verified(counts: Counter[str], given: list[str], folder) -> None:
    """Verifying both results loads the model once, too."""
    results = sorted(file for file in folder.glob("*.json") if "silencing" not in file.name)
    counts.clear()
    run("verify", *results, *given)
    assert (len(results), counts["loads"]) == (2, 1)


def test_a_checkpoint_is_in_a_folder_of_its_own(tmp_path):
    """Which results name, so that it is found again; what is on the Hub is in none."""
    (tmp_path / "step-1").mkdir()
    assert Session(tmp_path, revision="step-1").place == (tmp_path / "step-1").resolve()
    assert Session(tmp_path).place == tmp_path.resolve()
    assert Session("user/model").place is None
