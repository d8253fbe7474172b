"""What edits change: planted heads come back, offsets as a plain count has them, and a report says it with intervals."""

from __future__ import annotations

import copy
import itertools
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import codesyntax_dataset
from codesyntax_dataset.build import build
from codesyntax_dataset.errors import LedgerError
from codesyntax_dataset.languages import language_of
from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT, NOT_IN_MEAN, RULES
from probing.evidence.baselines import evaluate, read_edges
from probing.evidence.compared import WHO, changes
from probing.instruments.attention.ledger import RankLedger
from probing.report import edited as module
from probing.report.document import verdict
from probing.report.folder import markdown
from probing.runs.settings import Settings

pytestmark = pytest.mark.slow
SPLITS = "validation", "test"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Half of the sample's functions in Python, as they are and after two edits."""
    folder = tmp_path_factory.mktemp("edited")
    sample = Path(codesyntax_dataset.__file__).parent / "sample"
    files = [*sample.glob("test/[a-n]*/**/*.py"), *sample.glob("validation/*/**/*.py")]
    for file in files:
        copy = folder / "source" / file.relative_to(sample)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    build(str(folder / "source"), ["python"], folder / "data", edits=["rename-letters", "distance"])
    return str(folder / "data")


class Planted:
    """Two probes of a model with one head, which finds the edges of those functions that `finds` says."""

    def __init__(self, data, config, finds=lambda functions: functions >= 0, kept=None):
        self.files = {"test": f"{config}.json"}
        for split in SPLITS:
            edges = read_edges(data, config, split, kept)
            rank = np.where(finds(edges.function), 0, 9).astype(np.uint8)
            ranks = np.broadcast_to(
                rank[None, :, None, None], (len(RULES), len(edges), 1, 1)
            ).copy()
            settings = SimpleNamespace(config=config, split="test", direction=HEAD_TO_DEPENDENT)
            result = SimpleNamespace(ledger=RankLedger.of(edges, ranks, {}), settings=settings)
            setattr(self, split, result)

    def only(self, test, validation):
        fewer = copy.copy(self)
        for split, functions in (("test", test), ("validation", validation)):
            side = getattr(self, split)
            ledger = side.ledger.only(functions)
            setattr(fewer, split, SimpleNamespace(ledger=ledger, settings=side.settings))
        return fewer


def by_offset(data, config, functions):
    """The mean score of the best offset, which `test_baselines.py` tests."""
    splits = (read_edges(data, config, split, functions[split]) for split in SPLITS)
    return evaluate(*splits).hits["held-out"]["offset"].hits.mean("offset").value[0]


def functions_of(data, config):
    return {split: np.unique(read_edges(data, config, split).function) for split in SPLITS}


def test_planted_heads_and_best_offsets(data):
    """The first function is gone, as where the edit finds nothing to change in it."""
    everything, functions = (functions_of(data, f"python{edit}") for edit in ("", "_distance"))
    functions = {split: places[places > 0] for split, places in functions.items()}
    after = Planted(
        data, "python_distance", lambda places: places % 2 == 0, kept=np.arange(1, 1000)
    )
    found = changes(Planted(data, "python"), after, data)
    assert found.functions == len(functions["test"]) < len(everything["test"])
    assert found.lost == len(everything["test"]) - len(functions["test"])
    heads, offset = found.by["heads"], found.by["offset"]
    edges = read_edges(data, "python", "test", functions["test"])
    names, even = np.array(edges.relations)[edges.relation], edges.function % 2 == 0
    shares = {name: 100 * even[names == name].mean() for name in heads.difference.relations}
    assert found.edges == np.isin(names, [*shares]).sum()
    in_mean = [share for name, share in shares.items() if name not in NOT_IN_MEAN]
    assert heads.means[::-1] == (100, pytest.approx(np.mean(in_mean)))
    assert heads.relations[0].tolist() == pytest.approx([*shares.values()])
    difference, low, high, *_ = heads.difference.mean.at(0)
    assert difference == pytest.approx(heads.means[0] - 100) and low < difference < high < 0
    expected = [by_offset(data, config, functions) for config in ("python_distance", "python")]
    assert offset.means == pytest.approx(expected) and expected[0] < expected[1] - 20


def test_baselines_do_not_change_by_other_words(data):
    found = changes(Planted(data, "python"), Planted(data, "python_rename_letters"), data)
    assert found.lost == 0
    for who in WHO:
        assert found.by[who].means[0] == found.by[who].means[1]
        assert found.by[who].difference.mean.at(0)[:3] == (0, 0, 0)
        assert found.by[who].difference.mean.p[0] == 1


def test_functions_that_are_others_do_not_compare(data, tmp_path):
    with pytest.raises(
        LedgerError, match=r"python\.json and python_distance\.json do not have the same edges"
    ):
        other = Planted(data, "python_distance")
        shifted = other.test.ledger
        other.test.ledger = RankLedger.of(
            shifted.take(np.arange(len(shifted)) != 3), shifted.ranks[:, 1:], {}
        )
        changes(Planted(data, "python"), other, data)
    nothing = Planted(data, "python_distance")
    nothing.test.ledger = nothing.test.ledger.only(np.array([], int))
    assert changes(Planted(data, "python"), nothing, data) is None


def findings(config, *models):
    """Findings on a config of models of these names."""
    settings = {"model": "m", "revision": "r", "data": "sample@1", "labels": "l", "split": "test"}
    settings |= {"direction": HEAD_TO_DEPENDENT, "config": config}
    subjects = [
        SimpleNamespace(
            name=name,
            settings=Settings.model_construct(**{**settings, "model": name}),
            config=config,
        )
        for name in models
    ]
    return SimpleNamespace(
        name=config, title=config, config=config, language=language_of(config), models=subjects
    )


def test_a_report_tells_each_change_with_its_interval(data, monkeypatch):
    def planted(subject):
        every = 2 if subject.config == "python_distance" else 1
        return Planted(data, subject.config, lambda places: places % every == 0)

    monkeypatch.setattr(module, "_probed", planted)
    everything = [findings("python", "one", "two")]
    configs = "python_rename_letters", "python_distance", "java"
    everything += [findings(config, "one") for config in configs]
    edited = module.read_edited(everything, data)
    names = "rename-letters", "distance"
    assert [(one.edit, one.model) for one in edited.pop("python")] == [(of, "one") for of in names]
    assert edited == {}
    (part,) = module.edits(everything, module.read_edited(everything, data))
    assert "the interval shows how large a change may be" in markdown([part])
    (table,) = (of for of in part.all_parts() if getattr(of, "filters", None) == 0)
    systems = "one", "best offset", "best baseline"
    assert [tuple(row[:2]) for row in table.rows] == [*itertools.product(names, systems)]
    assert [verdict(row[-1]) for row in table.rows[::3]] == ["not significant", "lower"]
