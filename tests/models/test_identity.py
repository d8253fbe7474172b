"""Every command sees the data and the model that lie on the disk, and signs nothing that was not probed."""

from __future__ import annotations

import json
import re
import shutil

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.commands import run

from codesyntax_dataset.errors import (
    DataNotFound,
    DatasetError,
    LedgerError,
    ModelError,
    UnknownName,
)
from codesyntax_dataset.metadata import sha256sums
from codesyntax_dataset.protocol import CONTROLS, RANDOM_WEIGHTS, REDRAWN_DEPENDENTS
from codesyntax_dataset.schema import LABELS
from probing import probe
from probing.evidence.baselines import read_edges
from probing.evidence.verify import verify
from probing.instruments.attention.errors import analyse
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.result import ProbeResult, load
from probing.instruments.information.result import InformationSettings
from probing.models.load import load as load_encoder
from probing.models.location import locate
from probing.report.show import show
from probing.runs.data import (
    find_data,
    label_digest,
    labels_read,
    load_functions,
    read_functions,
)
from probing.runs.saved import ledger_path
from probing.runs.settings import Settings

SOME = {"limit": 6}


def without_last_edges(folder):
    """Take the last edge of each function out of the split `test` of Python, in place."""
    file = folder / "python" / "test.parquet"
    table = pq.read_table(file)
    rows = [edges[:-1] for edges in table["relations"].to_pylist()]
    place = table.schema.get_field_index("relations")
    field = table.schema.field("relations")
    pq.write_table(table.set_column(place, field, pa.array(rows, field.type)), file)


@pytest.fixture
def copy(dataset_folder, tmp_path):
    """The dataset in another folder of the same name."""
    return shutil.copytree(dataset_folder, tmp_path / "copy" / dataset_folder.name)


@pytest.fixture(scope="module")
def study(tiny_model, dataset_folder, tmp_path_factory):
    """A folder with results of both splits, and beside them their data in a folder `codesyntax`."""
    folder = tmp_path_factory.mktemp("study")
    data = shutil.copytree(dataset_folder, folder / "codesyntax")
    for split in ("test", "validation"):
        probe(tiny_model, data, split=split, **SOME, output=folder / "results")
    return folder


@pytest.fixture
def results(study, tmp_path):
    return shutil.copytree(study, tmp_path / "study") / "results"


def json_in(folder):
    """The result of the split test."""
    (file,) = folder.glob("*.test.partial.????????.json")
    return file


# Datasets ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_command_reads_the_folder_that_is_named(tiny_model, dataset_folder, copy, tmp_path):
    """Two folders have one name, one card and one version; the labels of the second one are others."""
    without_last_edges(copy)
    (copy / "SHA256SUMS").write_text(sha256sums(copy))
    first, second, third = (
        probe(tiny_model, folder, **SOME, output=tmp_path / "r")
        for folder in (dataset_folder, copy, dataset_folder)
    )
    assert len(second.ledger) == len(first.ledger) - first.functions
    assert third.ledger.digest() == first.ledger.digest()
    folders = dataset_folder, copy, dataset_folder
    edges = [len(read_edges(folder, "python", "test")) for folder in folders]
    assert edges[0] == edges[2] > edges[1]
    path = first.paths(tmp_path / "r")[0]
    assert verify(path, model=tiny_model, data=dataset_folder).accepted
    assert not verify(path, model=tiny_model, data=copy).accepted
    assert analyse(path, model=tiny_model, data=dataset_folder).signature == first.signature
    with pytest.raises(LedgerError, match="made with labels"):
        analyse(path, model=tiny_model, data=copy)
    pages = [show(tiny_model, id=1, data=folder).html for folder in (dataset_folder, copy)]
    assert pages[0] != pages[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "command, file",
    [
        *(
            (command, "python/test.parquet")
            for command in ("probe", "show", "baseline", "stats", "errors", "verify", "report")
        ),
        ("probe", "README.md"),
    ],
)
def test_a_dataset_that_was_edited_in_place_is_refused(
    command, file, tiny_model, results, tmp_path
):
    """By every command, with what to do; load_dataset would give the old rows, or sign them with the new version."""
    data = results.parent / "codesyntax"
    load_functions(data, "python", "test")
    if file == "README.md":
        (data / file).write_text(
            (data / file).read_text().replace(f"version: {LABELS}.", f"version: {LABELS}.1")
        )
    else:
        without_last_edges(data)
    given = {
        "probe": (tiny_model,),
        "show": (tiny_model, "--id", "0", "--output", tmp_path / "page.html"),
        "errors": (json_in(results), "--model", tiny_model),
        "verify": (json_in(results), "--model", tiny_model),
        "report": (results, "--output", tmp_path / "report"),
    }
    status = 3 if command == "verify" else 1
    done = run(command, *given.get(command, ()), "--data", data, status=status)
    assert f"{file} was altered since it was built" in done.output
    assert "build it again" in done.output
    assert not (tmp_path / "page.html").exists()


def test_what_is_no_dataset_of_ours(dataset_folder, copy, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "README.md").write_text("---\nconfigs: []\n---\n")
    with pytest.raises(DatasetError, match="README.md does not say so"):
        load_functions(tmp_path / "other", "python", "test")
    with pytest.raises(UnknownName, match="config of .*known are python, java"):
        load_functions(dataset_folder, "java_skip_semicolon", "test")
    (copy / "SHA256SUMS").unlink()
    with pytest.raises(DatasetError, match="SHA256SUMS cannot be read"):
        load_functions(copy, "python", "test")


@pytest.fixture(scope="module")
def loaded(dataset_folder):
    """As `load_dataset` gives it: a DatasetDict of Python."""
    return datasets.load_dataset(str(dataset_folder), "python")


OTHERS = {
    "the first five": (
        lambda d: d["test"].select(range(5)),
        "has 5 functions, and its split 'test' has 141",
    ),
    "shuffled": (lambda d: d["test"].shuffle(seed=0), "in another order"),
    "one of them twice": (lambda d: d["test"].select([*range(140), 3]), "some of them twice"),
    "both splits": (
        lambda d: datasets.concatenate_datasets([d["test"], d["validation"]]),
        "does not say which split",
    ),
    "validation": (lambda d: d["validation"], "of the split 'validation', not 'test'"),
    "splits swapped": (
        lambda d: datasets.DatasetDict(test=d["validation"]),
        "of the split 'validation'",
    ),
    "streamed": (lambda d: d["test"].to_iterable_dataset(), "streamed"),
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_loaded_dataset_is_whole_or_refused(what, loaded, tiny_model, tmp_path):
    """In every entry point, before any model runs."""
    change, reason = OTHERS[what]
    data = change(loaded)
    for entry in (lambda: probe(tiny_model, data), lambda: read_edges(data, "python", "test")):
        with pytest.raises(DatasetError, match=reason):
            entry()


def test_a_loaded_dataset_has_its_own_config_and_language(dataset_folder, loaded):
    """Of a dataset that was made in memory we know nothing but what its rows say, and its name says so."""
    found, name = load_functions(loaded, "python", "test")
    assert (len(found), name) == (141, f"codesyntax@{loaded['test'].info.version}")
    java = datasets.load_dataset(str(dataset_folder), "java", split="test")
    with pytest.raises(DatasetError, match="has functions in python, but .* are in java"):
        load_functions(loaded, "java", "test")
    with pytest.raises(DatasetError, match="is of the config 'java', not 'java_skip_semicolon'"):
        load_functions(java, "java_skip_semicolon", "test")
    rows = datasets.Dataset.from_list(loaded["validation"].select(range(3)).to_list())
    assert load_functions(rows, "python", "test")[1] == "memory@0.0.0"
    with pytest.raises(DatasetError, match="has functions in python"):
        load_functions(rows, "java", "test")
    both = datasets.Dataset.from_list([*rows.to_list(), java[0]])
    with pytest.raises(DatasetError, match="has functions in java"):
        load_functions(both, "python", "test")


# Results find their data again ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_stray_dataset_of_that_name_is_not_taken(
    tiny_model, dataset_folder, results, copy, tmp_path, monkeypatch
):
    """Nor is the Hub asked for what was a folder; what is not found is no rejection."""
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: pytest.fail("asked the Hub"))
    shutil.rmtree(results.parent / "codesyntax")
    path = json_in(results)
    made = load(path).settings
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataNotFound, match="give its location with --data"):
        find_data(path, made)
    monkeypatch.chdir(copy.parent)
    assert find_data(path, made) == "codesyntax"
    without_last_edges(copy)
    (copy / "SHA256SUMS").write_text(sha256sums(copy))
    with pytest.raises(DataNotFound, match="'codesyntax' has the version .* and the labels"):
        find_data(path, made)
    done = run("verify", path, "--model", tiny_model, status=3)
    assert "REJECTED" not in done.output
    assert "give its location with --data" in done.output


@pytest.mark.slow
def test_a_result_of_redrawn_dependents_finds_its_data(
    tiny_model, dataset_folder, tmp_path, monkeypatch
):
    result = probe(
        tiny_model, dataset_folder, control=REDRAWN_DEPENDENTS, seed=2, **SOME, output=tmp_path
    )
    assert result.settings.labels != label_digest(
        load_functions(dataset_folder, "python", "test")[0], 6
    )
    monkeypatch.chdir(tmp_path)
    assert dataset_folder.samefile(find_data(result.paths(tmp_path)[0], result.settings))


@pytest.mark.parametrize("kind", [Settings, InformationSettings])
@pytest.mark.parametrize("control", [None, *CONTROLS])
def test_the_labels_of_a_control_are_those_that_it_reads(dataset_folder, kind, control):
    settings = kind.model_construct(control=control, seed=2, limit=5)
    table, _ = load_functions(dataset_folder, "python", "test")
    read = read_functions(dataset_folder, "python", "test", limit=5, control=control, seed=2)
    assert labels_read(table, settings) == read.labels
    assert (read.labels == label_digest(table, 5)) == (control in (None, RANDOM_WEIGHTS))


# Models --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def sharded(tiny_model, tmp_path):
    """The tiny model with its weights in a folder below, which an index names."""
    folder = shutil.copytree(tiny_model, tmp_path / "models" / "tiny")
    from safetensors import safe_open

    (folder / "shards").mkdir()
    (folder / "model.safetensors").rename(folder / "shards" / "one.safetensors")
    with safe_open(folder / "shards" / "one.safetensors", "np") as file:
        names = list(file.keys())
    write_index(folder, dict.fromkeys(names, "shards/one.safetensors"))
    return folder


def write_index(folder, weight_map):
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": weight_map})
    )


@pytest.mark.slow
def test_swapped_shards_are_another_model(tiny_model, sharded, tmp_path):
    """For the cache, and in signatures, also where only an index tells where they are."""
    from transformers import AutoModel

    before = locate(str(sharded)).contents(), load_encoder(sharded).revision
    assert before[1] == load_encoder(tiny_model).revision
    model = AutoModel.from_pretrained(tiny_model)
    query = model.encoder.layer[0].attention.self.query.weight
    query.data = query.data.flip(0)
    model.save_pretrained(tmp_path / "other")
    shutil.copy(tmp_path / "other" / "model.safetensors", sharded / "shards" / "one.safetensors")
    assert locate(str(sharded)).contents() != before[0]
    assert load_encoder(sharded).revision != before[1]


@pytest.mark.parametrize(
    "shard", ["../outside.safetensors", "/outside.safetensors", "shards/../../outside.safetensors"]
)
def test_weights_outside_the_folder_are_refused(shard, sharded, dataset_folder):
    shutil.copy(sharded / "shards" / "one.safetensors", sharded.parent / "outside.safetensors")
    write_index(sharded, {"embeddings.LayerNorm.bias": shard})
    with pytest.raises(ModelError, match="names the weights .* which are not in its folder"):
        probe(sharded, dataset_folder, **SOME)


def test_a_model_is_its_files_with_their_names_and_sizes(tiny_model, tmp_path):
    """The same bytes, one behind the other, in other files."""

    def digest(name, **files):
        (tmp_path / name).mkdir()
        for kind, content in files.items():
            end = "txt" if kind in ("vocab", "merges") else "safetensors"
            (tmp_path / name / f"{kind}.{end}").write_bytes(content)
        (tmp_path / name / "config.json").write_text("{}")
        return locate(str(tmp_path / name)).contents()

    digests = [
        digest("a", vocab=b"ab", model=b"cd"),
        digest("b", vocab=b"a", model=b"bcd"),
        digest("c", merges=b"ab", model=b"cd"),
    ]
    assert len(set(digests)) == len(digests)


# Altered ledgers -----------------------------------------------------------------------------------------------------


def left_in(folder):
    """The bytes of each file, without the line of a result that says where its model is: the folder is a copy."""
    place = re.compile(rb'"model_path": "[^"]*"')
    return {file.name: place.sub(b"", file.read_bytes()) for file in folder.iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize("change", ["a rank that no score shows", "the numbers"])
def test_an_altered_result_is_not_taken_as_finished(change, tiny_model, results, caplog):
    """The same probe into the same folder runs again, says why, and leaves what it left before."""
    path = json_in(results)
    before = left_in(results)
    file = ledger_path(json_in(results))
    ledger = RankLedger.load(file)
    ledger.ranks = ledger.ranks.copy()
    if change == "the numbers":
        path.write_text(path.read_text().replace('"functions": ', '"functions": 1'))
    else:
        worst = np.argwhere(ledger.ranks > 20)[0]
        ledger.ranks[tuple(worst)] -= 1 if ledger.ranks[tuple(worst)] > 21 else -1
        assert ProbeResult.from_ledger(ledger).scores == load(path).scores
    ledger.save(file)
    with pytest.raises(LedgerError, match="was altered"):
        load(path)
    again = probe(tiny_model, results.parent / "codesyntax", **SOME, output=results)
    assert left_in(results) == before
    assert again.difference(path.read_text()) is None
    assert "cannot be reused" in caplog.text


def test_a_ledgers_run_does_not_override_its_settings(results):
    """A partial result that says in its `run` that it is whole."""
    file = ledger_path(json_in(results))
    ledger = RankLedger.load(file)
    ledger.settings["run"] |= {"limit": None}
    with pytest.raises(LedgerError, match="run has an unknown field 'limit'"):
        ProbeResult.from_ledger(ledger)
