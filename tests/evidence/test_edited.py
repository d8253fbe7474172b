"""What edits change: planted heads come back, and a report says it with intervals."""

from __future__ import annotations

import copy
import shutil
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import codesyntax_dataset
from codesyntax_dataset.build import build
from codesyntax_dataset.errors import LedgerError
from codesyntax_dataset.languages import language_of
from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT, NOT_IN_MEAN, RULES
from probing.evidence.baselines import read_edges
from probing.evidence.compared import compared_heads
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
            self.settings = SimpleNamespace(
                config=config, split="test", direction=HEAD_TO_DEPENDENT, model=config
            )
            ledger = RankLedger.of(edges, ranks, {})
            result = SimpleNamespace(ledger=ledger, settings=self.settings, model=config)
            setattr(self, split, result)

    def only(self, test, validation):
        fewer = copy.copy(self)
        for split, functions in (("test", test), ("validation", validation)):
            side = getattr(self, split)
            setattr(fewer, split, SimpleNamespace(ledger=side.ledger.only(functions)))
        return fewer


def functions_of(data, config):
    return {split: np.unique(read_edges(data, config, split).function) for split in SPLITS}


def test_planted_heads(data):
    before = Planted(data, "python")
    functions = functions_of(data, "python_distance")
    functions = {split: places[places > 0] for split, places in functions.items()}
    # as where the edit finds nothing to change in the first function
    without_first = np.arange(1, 1000)
    after = Planted(data, "python_distance", lambda places: places % 2 == 0, without_first)
    heads = compared_heads(after, before)
    assert heads.functions == len(functions["test"]) < len(functions_of(data, "python")["test"])
    edges = read_edges(data, "python", "test", functions["test"])
    counts = Counter(edges.relations[number] for number in edges.relation)
    assert heads.edges.tolist() == [counts[name] for name in heads.difference.hits.names]
    shares = [
        100 * np.mean(edges.function[edges.relation == edges.relations.index(name)] % 2 == 0)
        for name in heads.difference.hits.names
    ]
    in_mean = [
        share for name, share in zip(heads.difference.hits.names, shares) if name not in NOT_IN_MEAN
    ]
    assert heads.means[::-1] == (100, pytest.approx(np.mean(in_mean)))
    assert heads.relations[0].tolist() == pytest.approx(shares)
    difference, low, high, *_ = heads.difference.mean.at(0)
    assert difference == pytest.approx(heads.means[0] - 100)
    assert low < difference < high < 0
    assert heads.difference.mean.p[0] < 0.001


def test_functions_that_are_others_do_not_compare(data):
    plain, other = (Planted(data, config) for config in ("python", "python_distance"))
    ledger = other.test.ledger
    other.test.ledger = ledger.take(np.arange(len(ledger)) != 3)
    with pytest.raises(LedgerError, match="on different edges"):
        compared_heads(plain, other)
    other.test.ledger = other.test.ledger.only(np.array([], int))
    assert compared_heads(plain, other) is None


def findings(config, functions, *models):
    """Findings on a config of models of these names."""
    settings = {"model": "m", "revision": "r", "data": "sample@1", "labels": "l", "split": "test"}
    settings |= {"direction": HEAD_TO_DEPENDENT, "config": config}
    subjects = [
        SimpleNamespace(
            name=name,
            settings=Settings.model_construct(**{**settings, "model": name}),
            config=config,
            functions=functions,
        )
        for name in models
    ]
    return SimpleNamespace(
        name=config, title=config, config=config, language=language_of(config), models=subjects
    )


def test_a_report_tells_each_change_with_its_interval(data, monkeypatch):
    def planted(before, after):
        every = 2 if after.config == "python_distance" else 1
        kept = np.arange(1, 1000) if after.config == "python_distance" else None
        rows = Planted(data, after.config, lambda places: places % every == 0, kept)
        return compared_heads(rows, Planted(data, before.config))

    monkeypatch.setattr(module, "_compared", planted)
    edited = [f"python{edit}" for edit in ("_rename_letters", "_distance")]
    names = functions_of(data, "python")["test"]
    everything = [findings("python", len(names), "one", "two")]
    everything += [findings(config, len(names), "one") for config in (*edited, "java")]
    (part,) = module.edits(everything)
    text = markdown([part])
    assert "the interval shows how large a change may be" in text
    table = next(part for part in part.all_parts() if getattr(part, "filters", None) == 0)
    assert [row[:4] for row in table.rows] == [
        ["rename-letters", "one", len(names), 0],
        ["distance", "one", len(names[names > 0]), 1],
    ]
    assert [verdict(row[-1]) for row in table.rows] == ["not significant", "lower"]
    assert [round(row[5]) for row in table.rows] == [100, 100]
