"""Intervals and tests over repositories: those of a table whose rows are summed over repositories by hand."""

from __future__ import annotations

import datasets
import numpy as np
import pytest

import probing
from codesyntax_dataset.errors import DatasetError, LedgerError, UnknownName
from probing.evidence.gather import find, gather
from probing.runs.repositories import repositories_of
from probing.stats.hits import PERCENT_UNIT, Hits

SYSTEMS = ("model", "rival")


def table(unit):
    """Rows of a function, a group, its things, and what each system gets right by two measures."""
    rng = np.random.default_rng(3)
    rows = []
    for function in range(24):
        for group in "ab":
            n = int(rng.integers(1, 5))
            draw = rng.binomial if unit == PERCENT_UNIT else rng.normal
            right = {
                name: [float(draw(n, share)) for _ in range(2)]
                for name, share in zip(SYSTEMS, (0.7, 0.5))
            }
            rows.append((function, group, n, right))
    return rows, {"unit": unit}


def hits_of(rows, repositories=None, **fields):
    function, group, n, right = zip(*rows)
    sums = {name: np.array([cells[name] for cells in right]).T for name in SYSTEMS}
    if fields["unit"] == PERCENT_UNIT:
        sums = {name: cells.astype(np.int64) for name, cells in sums.items()}
    return Hits.of_rows(
        np.array(function), group, sums, ["first", "last"], n, repositories=repositories, **fields
    )


def summed(rows, repositories):
    """The same rows by repository, added up by hand."""
    cells: dict[tuple[int, str], list] = {}
    for function, group, n, right in rows:
        cell = cells.setdefault(
            (int(repositories[function]), group), [0, {name: [0.0, 0.0] for name in SYSTEMS}]
        )
        cell[0] += n
        for name in SYSTEMS:
            cell[1][name] = [one + other for one, other in zip(cell[1][name], right[name])]
    return [
        (repository, group, n, right) for (repository, group), (n, right) in sorted(cells.items())
    ]


def equal(one, other):
    return all(
        np.asarray(mine) == pytest.approx(np.asarray(theirs), nan_ok=True)
        for mine, theirs in zip(one, other)
    )


@pytest.mark.parametrize("unit", [PERCENT_UNIT, "bits"])
def test_they_are_those_of_rows_summed_over_repositories(unit):
    rows, fields = table(unit)
    repositories = np.random.default_rng(1).integers(0, 8, 24)
    drawn, by_hand = (
        hits_of(rows, repositories, **fields),
        hits_of(summed(rows, repositories), **fields),
    )
    plain = hits_of(rows, **fields)
    for against in (None, "rival"):
        assert equal(drawn.mean("model", against), by_hand.mean("model", against))
        assert equal(drawn.by_group("model", against), by_hand.by_group("model", against))
        assert drawn.by_group("model", against).value == pytest.approx(
            plain.by_group("model", against).value
        )
    assert drawn.mean("model").n == len(set(repositories.tolist()))
    assert plain.mean("model").n == 24
    assert drawn.mean("model").low != pytest.approx(plain.mean("model").low)


# --------------------------------------------------------------------------- results and their data


@pytest.fixture(scope="module")
def results(evidence):
    return [evidence.probed.files[split] for split in ("test", "validation")]


@pytest.mark.slow
def test_scores_of_attention(results, few_functions):
    names = datasets.load_dataset(str(few_functions), "python", split="test")["repo"][:]
    numbers = np.array([sorted(set(names)).index(name) for name in names])
    frame = probing.scores(results, few_functions, cluster="repository")
    assert set(frame["cluster"]) == {"repository"}
    plain = probing.scores(results, few_functions)["value"]
    assert frame["value"].to_numpy() == pytest.approx(plain.to_numpy())
    chosen = gather(find(results), few_functions)[0].hits["held-out"]
    expected = chosen.hits.clustered(numbers[chosen.hits.clusters]).mean("model").at(0)
    (mean,) = frame.query(
        "protocol == 'held-out' and system == 'model' and against == '' and group == 'mean' "
        "and rule == 'first' and k == 1"
    ).itertuples()
    assert (mean.low, mean.high) == pytest.approx((expected.low, expected.high))
    assert mean.n == expected.n <= len(set(names)) < 40


def settings_of(results):
    return probing.load(results[0]).settings


def test_functions_of_one_repository_are_refused(results, few_functions):
    settings = settings_of(results)
    with pytest.raises(LedgerError, match="intervals over .* at least 2: .* --cluster function"):
        repositories_of(few_functions, results[0], settings, np.array([0, 0]))


def test_data_without_repositories_are_refused(results, few_functions):
    settings = settings_of(results)
    rows = datasets.load_dataset(str(few_functions), "python", split="test").remove_columns("repo")
    with pytest.raises(DatasetError, match="expected a column `repo`"):
        repositories_of(datasets.DatasetDict(test=rows), results[0], settings, np.arange(2))


def test_other_data_are_refused(results, dataset_folder):
    with pytest.raises(LedgerError, match="name its own --data"):
        repositories_of(dataset_folder, results[0], settings_of(results), np.arange(2))


def test_another_cluster_is_refused(results):
    with pytest.raises(UnknownName, match="repository"):
        probing.scores(results, cluster="project")
