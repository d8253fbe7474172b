"""The embedded small models: what comes with the package, and that they are what their cards say."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest
from support.models.train_tiny import DECODER_STEPS, STEPS, restored

from codesyntax_dataset import corpus
from codesyntax_dataset.errors import ModelError
from codesyntax_dataset.schema import Skips
from probing.instruments.masking.fill import Copy, Filler
from probing.models import location
from probing.models.load import doctor, load_restoring, load_scoring
from probing.models.location import TINY, TINY_DECODER, embedded_folder, embedded_model, locate

BOTH = pytest.mark.parametrize("name, steps", [(TINY, STEPS), (TINY_DECODER, DECODER_STEPS)])


def card_of(name):
    return (embedded_folder(name) / "README.md").read_text(encoding="utf-8")


@BOTH
def test_they_come_with_the_package(name, steps):
    """Small, and all of their training done."""
    folder = embedded_model(name)
    assert locate(name) == (str(folder), name, None, False, None)
    names = {"README.md", "config.json", "model.safetensors", "tokenizer.json"}
    assert names <= {file.name for file in folder.iterdir()}
    assert sum(file.stat().st_size for file in folder.iterdir()) < 5_200_000
    assert f"{steps:,} of {steps:,} steps" in " ".join(card_of(name).split())


@BOTH
def test_altered_weights_are_refused(tmp_path, monkeypatch, name, steps):
    folder = tmp_path / "model"
    shutil.copytree(embedded_folder(name), folder)
    with (folder / "model.safetensors").open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x00")
    monkeypatch.setattr(location, "embedded_folder", lambda model: folder)
    with pytest.raises(ModelError, match=f"the weights of {name} have the SHA-256"):
        load_restoring(name)


@pytest.mark.slow
def test_the_decoder_can_be_probed_fills_holes_and_scores_texts():
    diagnosis, filling, scoring = (
        doctor(TINY_DECODER),
        load_restoring(TINY_DECODER),
        load_scoring(TINY_DECODER),
    )
    assert diagnosis.path == "captured"
    assert "which see no later sub-tokens" in diagnosis.summary
    assert filling.mask is scoring.mask is None
    assert filling.longest == 511
    (ids, _, _), *_ = filling.encode(["def area(width, height):\n    return width * height\n"])
    ((filled,),) = Filler(filling).fill([[Copy(ids, np.array([3]))]])
    assert filling.tokenizer.decode(filled.predicted) == filling.tokenizer.decode(ids[3:4]) == "("


@pytest.mark.long
@pytest.mark.parametrize("name, part, bound", [(TINY, None, 0.001), (TINY_DECODER, 30, 0.02)])
def test_it_restores_as_much_as_its_card_says(shared, name, part, bound):
    """Of functions from elsewhere. Another machine may round a few predictions otherwise.

    A decoder restores one hole after the other: of the first short functions, the share is near that of all.
    """
    functions = corpus.read(str(shared / "data/codesearchnet"), "python", Skips())
    codes = [function.code for function in functions if function.partition == "test"]
    if part is not None:
        codes = [code for code in codes if len(code) < 600][:part]
    found = restored(load_restoring(name, device="cpu"), codes)
    told, of, functions_told = (
        int(number.replace(",", ""))
        for number in re.search(
            r"\*\*Restores\*\* ([\d,]+) of ([\d,]+) masked .* sub-tokens of ([\d,]+) functions",
            card_of(name),
            re.DOTALL,
        ).groups()
    )
    if part is None:
        assert (found.masked, found.functions) == (of, functions_told)
    assert found.restored / found.masked == pytest.approx(told / of, abs=bound)
    assert found.restored > {TINY: 0.45, TINY_DECODER: 0.03}[name] * found.masked
