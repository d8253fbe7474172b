"""The same probe again is answered from the cache, with the same bytes; any other probe is not."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields

import datasets
import pyarrow as pa
import pytest
from pydantic import ValidationError
from support.commands import python
from support.files import contents

from codesyntax_dataset.errors import DatasetError
from probing import probe
from probing.evidence.verify import verify
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.probe import Probing
from probing.instruments.attention.result import ProbeResult
from probing.instruments.attention.runner import Runner
from probing.instruments.registry import INSTRUMENTS
from probing.models import cache_dir
from probing.runs import data, experiment
from probing.runs.data import label_digest
from probing.runs.ledger_file import INFORMATION, SILENCING
from probing.runs.session import Session

pytestmark = pytest.mark.slow

SOME = {"limit": 6}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty cache. Elsewhere in the tests there is none."""
    monkeypatch.setenv("CODESYNTAX_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def runs(monkeypatch):
    """How many functions the model has read in each run of it."""
    real, counted = Runner.run, []

    def run(self, functions, *arguments):
        counted.append(len(functions))
        return real(self, functions, *arguments)

    monkeypatch.setattr(Runner, "run", run)
    return counted


def test_the_same_probe_again(place, tiny_model, dataset_folder, tmp_path, monkeypatch):
    """Nothing is loaded or tokenized, and the result and the ledger have the same bytes, whatever the batches."""
    first = probe(tiny_model, dataset_folder, output=tmp_path / "first", **SOME)
    assert len(contents(place)) == 1
    assert place.stat().st_mode & 0o777 == 0o700  # nobody else reads it
    monkeypatch.setattr(Probing, "prepare", lambda *_: pytest.fail("prepared again"))
    again = probe(tiny_model, dataset_folder, batch_tokens=64, **SOME)
    assert again.to_json() == first.to_json()
    probe(tiny_model, dataset_folder, output=tmp_path / "again", **SOME)
    assert contents(tmp_path / "again") == contents(tmp_path / "first")
    assert len(contents(tmp_path / "first")) == 2


def test_an_answer_needs_neither_models_nor_figures(place, tiny_model, dataset_folder):
    """What makes it quick; the time itself is not a test's to measure. Where there is a GPU, torch is asked for it."""
    probe(tiny_model, dataset_folder, device="cpu", **SOME)
    split = "--split test --limit 6 --device cpu"
    arguments = ["probe", str(tiny_model), "--data", str(dataset_folder), *split.split()]
    code = (
        "import sys\nfrom probing.cli import main\n"
        f"main({arguments}, standalone_mode=False)\n"
        "print('imported:', sorted({'torch', 'transformers', 'tokenizers', 'safetensors', 'matplotlib'} & set(sys.modules)))"
    )
    done = python(code)
    assert "mean of" in done.stdout
    assert done.stdout.endswith("imported: []\n")


def slot(model, source, direction=None, **changes):
    """The slot of a probe of the Python test split, but for `changes`."""
    read = {"config": "python", "split": "test", "limit": None, "control": None, "seed": 0}
    read |= {name: changes.pop(name) for name in list(changes) if name in read}
    functions = data.read_functions(source, read.pop("config"), read.pop("split"), **read)
    return experiment._slot(
        Probing(Session(model, **{"device": "cpu", **changes}), functions, direction)
    )


def test_everything_that_matters_is_in_the_key(
    place, tiny_model, dataset_folder, tmp_path, monkeypatch
):
    def key(model=tiny_model, data=dataset_folder, **changes):
        return slot(str(model), data, **changes).key

    def spoiled(name, change):
        folder = shutil.copytree(tiny_model, tmp_path / name / tiny_model.name)
        change(folder)
        return folder

    def longer(file):
        return lambda folder: (folder / file).write_bytes((folder / file).read_bytes() + b" ")

    rows = datasets.load_dataset(str(dataset_folder), "python", split="test").to_list()
    fewer = [{**rows[0], "relations": rows[0]["relations"][:-1]}, *rows[1:]]
    elsewhere = [
        {**rows[0], "token_end": [*rows[0]["token_end"][:-1], rows[0]["token_end"][-1] + 1]},
        *rows[1:],
    ]
    memory, fewer, elsewhere, turned = map(
        datasets.Dataset.from_list, (rows, fewer, elsewhere, rows[::-1])
    )
    keys = {
        "": key(),
        "config": key(config="java"),
        "split": key(split="validation"),
        "data in memory": key(data=memory),
        "an edge less": key(data=fewer),
        "a token's place": key(data=elsewhere),
        "order": key(data=turned),
        "dtype": key(dtype="bfloat16"),
        "device": key(device="cuda"),
        "limit": key(limit=6),
        "step": key(step=6),
        "direction": key(direction="dependent-to-head"),
        "max_length": key(max_length=120),
        "weights": key(spoiled("other weights", longer("model.safetensors"))),
        "configuration": key(spoiled("other config", longer("config.json"))),
        "tokenizer": key(spoiled("other tokenizer", longer("tokenizer.json"))),
        "random weights": key(control="random-weights"),
        "their seed": key(control="random-weights", seed=1),
        "shuffled": key(control="redrawn-dependents"),
        "shuffled otherwise": key(control="redrawn-dependents", seed=1),
    }
    with monkeypatch.context() as patch:
        patch.setattr(cache_dir, "versions", lambda: {"torch": "0.0"})
        keys["versions"] = key()
    with monkeypatch.context() as patch:
        patch.setattr(cache_dir, "_code_digest", lambda: "changed")
        keys["code"] = key()
    assert len(set(keys.values())) == len(keys), keys
    assert key() == keys[""]
    assert key(seed=7) == keys[""]  # nothing is drawn
    assert key(device="cuda:1") == keys["device"]
    with monkeypatch.context() as patch:
        patch.setattr(experiment, "default_device", lambda: "cuda")
        assert key(device=None) == keys["device"]
    assert key(shutil.copytree(tiny_model, tmp_path / "copy" / tiny_model.name)) == keys[""]


def test_a_field_of_an_experiment_counts_unless_it_says_why_not(place, tiny_model, few_functions):
    """In the key; and the settings of the result refuse what they have no field for."""

    @dataclass
    class Toy(Probing):
        factor: int = 1

    functions = data.read_functions(few_functions, "python", "test", limit=2)

    def toy(**given):
        return Toy(Session(str(tiny_model), device="cpu"), functions, **given)

    assert experiment._slot(toy()).key != experiment._slot(toy(factor=100)).key
    assert experiment._slot(toy()).key == experiment._slot(toy(batch_tokens=64)).key
    with pytest.raises(ValidationError, match="factor"):
        experiment.run(toy())


@pytest.mark.parametrize("name", INSTRUMENTS)
def test_what_is_in_no_key_says_why(name):
    kind = INSTRUMENTS[name].experiment
    reasons = {each.name: each.metadata.get(experiment.NO_SETTING) for each in fields(kind)}
    assert {*kind.asked_fields()} == {each for each, reason in reasons.items() if reason is None}
    assert {each for each, reason in reasons.items() if reason is not None} <= {
        *("session", "data", "ran"),
        *("batch_tokens", "probes"),
    }


def test_every_library_that_is_required_is_in_the_key(monkeypatch):
    """A grammar, and the optimiser that fits rivals, are in no VERSIONS."""
    versions = cache_dir._required()
    assert {"scipy", "rapidfuzz", "tree-sitter", "tree-sitter-python", "torch"} <= {*versions}
    assert not {"pytest", "mypy"} & {*versions}
    key = cache_dir.key("x")
    monkeypatch.setattr(cache_dir, "_required", lambda: {**versions, "scipy": "0.0"})
    assert cache_dir.key("x") != key


def test_code_in_every_room_counts(tmp_path, monkeypatch):
    """A module changed anywhere in the packages, in a folder of a folder too, gives other keys."""
    packages = [tmp_path / name for name in ("codesyntax_dataset", "codesyntax_metric", "probing")]
    modules = [
        packages[0] / "languages/java/tree.py",
        packages[1] / "app.py",
        packages[2] / "instruments/attention/align.py",
    ]
    for module in modules:
        module.parent.mkdir(parents=True)
        module.write_text("1\n")
    assert [
        (folder / "__init__.py").exists() and folder.name for folder in cache_dir._CODE_FOLDERS
    ] == [package.name for package in packages]
    monkeypatch.setattr(cache_dir, "_CODE_FOLDERS", packages)
    digests = [cache_dir._code_digest.__wrapped__()]
    for module in modules:
        module.write_text("2\n")
        digests.append(cache_dir._code_digest.__wrapped__())
    assert len(set(digests)) == 4


def test_a_dataset_in_memory_is_known_by_its_labels(place, tiny_model, dataset_folder, runs):
    rows = datasets.load_dataset(str(dataset_folder), "python", split="test").to_list()[:6]
    first = probe(tiny_model, datasets.Dataset.from_list(rows))
    again = probe(tiny_model, datasets.Dataset.from_list(rows))
    assert len(runs) == 1
    assert again.to_json() == first.to_json()
    rows[2]["relations"].pop()
    assert len(probe(tiny_model, datasets.Dataset.from_list(rows)).ledger) == len(first.ledger) - 1


def test_other_labels_have_another_digest():
    """Whatever is moved from one field, edge or function to the next."""

    def digest(*functions):
        return label_digest(
            pa.Table.from_pylist(
                [
                    {
                        "id": number,
                        "code": code,
                        "token_start": starts,
                        "token_end": ends,
                        "relations": [
                            dict(zip(("relation", "head", "first", "last"), edge)) for edge in edges
                        ],
                    }
                    for number, (code, starts, ends, edges) in enumerate(functions)
                ]
            )
        )

    two, one = [("A", 1, 2, 3), ("B", 1, 2, 3)], [("A,1,2,3|B", 1, 2, 3)]
    kept = ("y", [0], [1], two)
    digests = [
        digest(("x", [0, 1], [2, 3], two)),
        digest(("x", [0, 1], [2, 3], one)),
        digest(("x", [0, 1, 2], [3], two)),
        digest(("x\0\0\0\0", [1], [2, 3], two)),
        digest(("x", [0, 1], [2, 3], two), kept),
        digest(("x", [0, 1], [2, 3], [*two, two[0]]), (*kept[:3], two[1:])),
        digest(("xy", [0, 1], [2, 3], two), ("", *kept[1:])),
        digest(("x", [0, 1], [2, 3], [("A", 1, 2, 3), ("B", 1, 3, 2)])),
        digest(("x", [0, 1], [2, 3], [("AB", 1, 2, 3), ("", 1, 2, 3)])),
    ]
    assert len(set(digests)) == len(digests)


def test_a_model_in_memory_is_always_probed(place, tiny_model, dataset_folder, runs):
    from transformers import AutoTokenizer, BertModel

    pair = (BertModel.from_pretrained(tiny_model), AutoTokenizer.from_pretrained(tiny_model))
    for _ in range(2):
        probe(pair, dataset_folder, **SOME)
    assert len(runs) == 2
    assert not place.exists()


@pytest.mark.parametrize("damage", ["truncated", "one bit", "empty", "another's"])
def test_a_damaged_file_is_not_used(damage, place, tiny_model, dataset_folder, runs, caplog):
    first = probe(tiny_model, dataset_folder, **SOME)
    (file,) = place.glob("*.parquet")
    whole = file.read_bytes()
    if damage == "another's":  # a whole ledger, but not the one that the name says
        probe(tiny_model, dataset_folder, limit=5)
        content = next(other for other in place.glob("*.parquet") if other != file).read_bytes()
    else:
        middle = len(whole) // 2
        flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
        content = {"truncated": whole[:middle], "one bit": flipped, "empty": b""}[damage]
    file.write_bytes(content)
    runs.clear()
    assert probe(tiny_model, dataset_folder, **SOME).to_json() == first.to_json()
    assert len(runs) == 1
    assert "is damaged" in caplog.text
    assert file.read_bytes() == whole


def test_a_place_that_cannot_be_written_is_no_error(place, tiny_model, dataset_folder, caplog):
    place.write_text("a file")
    assert probe(tiny_model, dataset_folder, **SOME).functions > 0
    assert "cannot cache the run" in caplog.text


def test_many_at_once(place, tiny_model, dataset_folder):
    """Eight write and read the same slot: each reads the whole ledger or none, and one file is left."""
    result = probe(tiny_model, dataset_folder, **SOME)
    place_of_it = slot(str(tiny_model), dataset_folder, device=None, **SOME)

    def both(_):
        place_of_it.save(result.ledger.save, place_of_it.contents)
        return ProbeResult.from_ledger(place_of_it.load(RankLedger.load)).to_json()

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(both, range(32))) == {result.to_json()}
    assert len(list(place.glob("*.parquet"))) == 1


def test_verify_never_looks_there(place, tiny_model, dataset_folder, runs, tmp_path, monkeypatch):
    path = probe(tiny_model, dataset_folder, output=tmp_path / "r", **SOME).paths(tmp_path / "r")[0]
    runs.clear()
    monkeypatch.setattr(experiment.Slot, "load", lambda *_, **__: pytest.fail("looked"))
    assert verify(path, model=tiny_model, data=dataset_folder).accepted
    assert runs == [json.loads(path.read_text())["functions"]]


HUB = """
import os, sys
sys.path.insert(0, {tests!r})
from support.hub.loopback_hub import LoopbackHub

with LoopbackHub() as hub:
    os.environ.update(HF_ENDPOINT=hub.url, HF_HUB_OFFLINE="0", HF_HOME={home!r}, CODESYNTAX_CACHE={home!r})
    from probing.instruments.attention.probe import Probing
    from probing.runs.data import read_functions
    from probing.runs.experiment import _slot
    from probing.runs.session import Session

    def key(revision=None):
        functions = read_functions({data!r}, "python", "test")
        return _slot(Probing(Session("user/model", revision=revision), functions)).key

    hub.add("user/model", {{"config.json": b"1"}}, type="model")
    hub.add("user/model", {{"config.json": b"2"}}, "v2", type="model")
    before, hub.requests[:] = key(), []
    assert key() == before
    config = "HEAD /user/model/resolve/main/config.json"
    assert hub.requests == ["HEAD /", config], hub.requests
    assert key("v2") != before
    hub.add("user/model", {{"config.json": b"3"}}, type="model")
    after = key()
    assert after not in (before, key("v2"))
    # the commit itself is another name for the same model
    assert key(hub.repositories["model", "user/model"].heads["main"]) == after

    from probing.models.location import locate

    hub.add("user/model", {{"config.json": b"4"}}, "refs/pr/1", type="model")
    request = hub.repositories["model", "user/model"].heads["refs/pr/1"]
    proposed = ("user/model", "user/model@refs/pr/1", request, False, None)
    assert locate("user/model", "refs/pr/1") == locate("user/model@refs/pr/1", request) == proposed
    head = hub.repositories["model", "user/model"].heads["main"]
    assert locate("user/model") == ("user/model", "user/model", head, False, None)
"""


def test_a_model_on_the_hub_is_known_by_its_commit(dataset_folder, tmp_path, request):
    """Two small requests tell that a branch has not moved. Clients read the Hub's address when they are imported."""
    tests = str(request.path.parents[1])
    python(HUB.format(tests=tests, home=str(tmp_path), data=str(dataset_folder)))


@pytest.mark.parametrize("name", [SILENCING, INFORMATION])
def test_one_split_alone_is_not_learned_from_and_scored(name, tiny_model, dataset_folder):
    """It would be both test and validation."""
    rows = datasets.load_dataset(str(dataset_folder), "python", split="test").to_list()[:6]
    alone = data.read_functions(datasets.Dataset.from_list(rows), "python", "test")
    kind = INSTRUMENTS[name].experiment
    given = {"edges": 10} if name == INFORMATION else {}
    with pytest.raises(DatasetError, match="DatasetDict of both"):
        kind(Session(str(tiny_model)), alone, **given).asked  # noqa: B018 - a property
