"""Results as entries: those of reports, without what no board takes, and nothing of another's replaced."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from support.commands import run

import codesyntax_dataset
from codesyntax_dataset.build import build
from codesyntax_dataset.errors import EntryError, LedgerError
from probing import mask, probe
from probing.evidence.submission import load
from probing.models.location import TINY
from probing.publish.export import export

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A dataset of few functions."""
    folder = tmp_path_factory.mktemp("data")
    sample = Path(codesyntax_dataset.__file__).parent / "sample"
    for project in ("test/spans", "validation/cachebox"):
        shutil.copytree(sample / project, folder / "source" / project)
    build(str(folder / "source"), ["python"], folder / "codesyntax")
    return folder / "codesyntax"


@pytest.fixture(scope="module")
def results(tiny_model, data, tmp_path_factory):
    """A model, and a masked model."""
    folder = tmp_path_factory.mktemp("results")
    for split in ("test", "validation"):
        probe(str(tiny_model), data, split=split, output=folder)
    mask(TINY, data, draws=1, node_types=["parameters", "identifier"], output=folder)
    return folder


def test_what_no_board_takes_is_left_out_with_the_reason(results, data, tmp_path, caplog):
    for split in ("test", "validation"):
        probe(TINY, data, "python", split, limit=2, output=tmp_path / "partial")
    with pytest.raises(EntryError, match="a partial run is not published"):
        export([tmp_path / "partial"], tmp_path / "entries")
    assert not caplog.records  # it is said once
    files = export([results, tmp_path / "partial"], tmp_path / "entries")
    assert sorted(load(file).instrument for file in files) == ["attention", "masking"]
    (record,) = caplog.records
    assert re.fullmatch(r"left out .*/partial/.*\.test\..*: .*a partial run.*", record.getMessage())


def test_nothing_local_is_exported(results, tiny_model, data, tmp_path):
    for file in export([results], tmp_path):
        content = file.read_bytes()
        for folder in (results, tiny_model.parent, data, Path.home()):
            assert str(folder).encode() not in content


def test_files_of_others_stay(results, tmp_path):
    one = next(results.glob("*.masking.*[0-9a-f].json"))
    for _ in range(2):  # what it wrote is replaced
        file = Path(run("export", one, "--output", tmp_path / "out").stdout.strip())
        assert file.parent == tmp_path / "out" and load(file).instrument == "masking"
    file.write_text("mine")
    with pytest.raises(LedgerError, match=r"hits.parquet was not made by `codesyntax export`"):
        export([one], tmp_path / "out")
    assert file.read_text() == "mine"
    (tmp_path / "empty").mkdir()
    with pytest.raises(LedgerError, match="has no results"):
        export([tmp_path / "empty"], tmp_path)
