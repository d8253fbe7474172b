"""What models of a reproduction are measured on, if they read different functions."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import probing
from codesyntax_dataset.errors import LedgerError
from codesyntax_metric.topk_uas import NOT_IN_MEAN
from probing.paper.measured import OFFSET, _common_functions, measure

pytestmark = pytest.mark.slow

MODELS = "microsoft/codebert-base", "mine"


@pytest.fixture(scope="module")
def whole(tiny_model, fewer_functions):
    """The ranks of a model on all functions that it reads."""
    return probing.probe(tiny_model, fewer_functions, "python").ledger


@pytest.fixture
def ledgers(whole, tmp_path):
    """A file with the ranks of each model, by its name; arguments: the functions that each read."""

    def save(*read):
        files = {name: tmp_path / f"{number}.parquet" for number, name in enumerate(MODELS)}
        for file, functions in zip(files.values(), read):
            whole.only(functions).save(file)
        return files

    return save


def means(values):
    return float(np.mean([value for name, value in values.items() if name not in NOT_IN_MEAN]))


def test_all_are_measured_on_the_functions_that_each_model_read(whole, ledgers, fewer_functions):
    """So that one that could not read the longest has no easier ones than the others, or than the baselines."""
    places = np.unique(whole.function)
    common = np.isin(whole.function, places[2:-3])
    assert 0 < common.sum() < len(common)
    measured = measure(fewer_functions, "python", ledgers(places[:-3], places[2:]), None)
    found, offsets = {}, {}
    for number, name in enumerate(whole.relations):
        of = common & (whole.relation == number)
        if of.any():
            hits = np.asarray(whole.ranks)[0, of] == 0
            found[name] = 100 * hits.mean(axis=0).max()
            most = Counter((whole.first - whole.head)[of].tolist()).most_common(1)[0][1]
            offsets[name] = 100 * most / of.sum()
    assert [(name, model.name) for name, model in measured.models.items()] == [
        ("CodeBERT", MODELS[0]),
        ("mine", MODELS[1]),
    ]
    for system, expected in (("CodeBERT", found), ("mine", found), (OFFSET, offsets)):
        rows = {
            row.group: row.value
            for row in measured.rows
            if (row.system, row.rule, row.k) == (system, "first", 1)
        }
        assert rows.pop("mean") == pytest.approx(means(expected))
        assert rows == pytest.approx(
            {name: value for name, value in expected.items() if name not in NOT_IN_MEAN}
        )


def test_without_models_the_functions_are_those_of_the_limit(ledgers, whole):
    assert _common_functions("python", {}, None) is None
    assert _common_functions("python", {}, 3).tolist() == [0, 1, 2]
    one, two, three = np.unique(whole.function)[:3].tolist()
    read = _common_functions("python", ledgers([one, two], [two, three]), 3)
    assert read is not None
    assert read.tolist() == [two]


def test_models_that_read_no_function_in_common_are_told(ledgers, whole):
    one, two = np.unique(whole.function)[:2].tolist()
    with pytest.raises(LedgerError, match="codebert-base, mine have no function of java in common"):
        _common_functions("java", ledgers([one], [two]), None)
