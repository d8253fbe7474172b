"""The embedded masked language model: what comes with the package, and that it is what its card says."""

from __future__ import annotations

import re
import shutil

import pytest

from codesyntax_dataset import corpus
from codesyntax_dataset.errors import ModelError
from codesyntax_dataset.schema import Skips
from probing.models import location
from probing.models.load import load_restoring
from probing.models.location import TINY, embedded_folder, embedded_model, locate
from probing.models.train_tiny import STEPS, restored

pytestmark = pytest.mark.usefixtures("one_thread")

CARD = (embedded_folder(TINY) / "README.md").read_text(encoding="utf-8")


def test_it_comes_with_the_package():
    """Small, and all of its training done."""
    folder = embedded_model(TINY)
    assert locate(TINY) == (str(folder), TINY, None, False)
    assert {"README.md", "config.json", "model.safetensors", "tokenizer.json"} <= {
        file.name for file in folder.iterdir()
    }
    assert (folder / "model.safetensors").stat().st_size < 6_000_000
    assert f"{STEPS:,} of {STEPS:,} steps" in " ".join(CARD.split())


def test_altered_weights_are_refused(tmp_path, monkeypatch):
    folder = tmp_path / "model"
    shutil.copytree(embedded_folder(TINY), folder)
    with (folder / "model.safetensors").open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x00")
    monkeypatch.setattr(location, "embedded_folder", lambda model: folder)
    with pytest.raises(ModelError, match="the weights of tiny-code-mlm have the SHA-256"):
        load_restoring(TINY)


@pytest.mark.slow
def test_it_restores_as_much_as_its_card_says(shared):
    """Of functions from elsewhere, at least 45 %. Another machine may round a few predictions otherwise."""
    functions = corpus.read(str(shared / "data/codesearchnet"), "python", Skips())
    codes = [function.code for function in functions if function.partition == "test"]
    found = restored(load_restoring(TINY, device="cpu"), codes)
    told, of, functions_told = (
        int(number.replace(",", ""))
        for number in re.search(
            r"\*\*Restores\*\* ([\d,]+) of ([\d,]+) masked .* sub-tokens of ([\d,]+) functions", CARD, re.DOTALL
        ).groups()
    )
    assert (found.masked, found.functions) == (of, functions_told)
    assert found.restored == pytest.approx(told, abs=0.001 * of)
    assert found.restored > 0.45 * found.masked
