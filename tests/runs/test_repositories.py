"""Intervals and tests over repositories and near copies: those of a table whose rows are summed over them by hand."""

from __future__ import annotations

import datasets
import numpy as np
import pyarrow as pa
import pytest

import probing
from codesyntax_dataset.errors import DatasetError, LedgerError, UnknownName
from probing.evidence.gather import find, gather
from probing.runs.clusters import Clusters, clusters_in_words, reading
from probing.runs.repositories import clustered_by, clusters_of
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


def hits_of(rows, over=None, **fields):
    function, group, n, right = zip(*rows)
    sums = {name: np.array([cells[name] for cells in right]).T for name in SYSTEMS}
    if fields["unit"] == PERCENT_UNIT:
        sums = {name: cells.astype(np.int64) for name, cells in sums.items()}
    return Hits.of_rows(np.array(function), group, sums, ["first", "last"], n, over=over, **fields)


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
        hits_of(rows, Clusters("repository", repositories), **fields),
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


def functions_of(repositories, twins=None):
    columns = {"repo": repositories} | ({} if twins is None else {"twin_of": twins})
    return pa.table(columns)


def test_six_repositories_are_clusters_by_default_and_else_functions_with_near_copies_as_one():
    several = functions_of([*"abcdef"], [0, 0, 2, 3, 4, 5])
    every = np.arange(6)
    assert clusters_of(several, every).unit == "repository"
    few = clusters_of(several, every[:5])
    assert few.unit == "function" and few.number.tolist() == [0, 0, 1, 2, 3, 4]
    assert clusters_of(several, every, "function").unit == "function"


def test_without_near_copies_in_the_data_each_function_is_one():
    assert clusters_of(functions_of([*"abcde"]), np.arange(5)) is None


def test_near_copies_are_one_function_in_intervals():
    rows, fields = table(PERCENT_UNIT)
    twins = np.arange(24) // 2
    drawn = hits_of(rows, Clusters("function", twins), **fields).mean("model", "rival")
    by_hand = hits_of(summed(rows, twins), **fields).mean("model", "rival")
    assert equal(drawn, by_hand) and drawn.n == 12


def read(results, data, functions, unit):
    """The clusters of functions of a result, and how titles name them."""
    settings = probing.load(results[0]).settings
    with clustered_by(unit, data):
        over = reading.get()(results[0], settings, functions)
        return over, clusters_in_words()


def test_functions_of_one_repository_are_refused(results, few_functions):
    with pytest.raises(LedgerError, match="intervals over .* at least 2: .* --cluster function"):
        read(results, few_functions, np.array([0, 0]), "repository")


def without(data, column):
    rows = datasets.load_dataset(str(data), "python", split="test").remove_columns(column)
    return datasets.DatasetDict(test=rows)


def test_data_without_repositories_are_refused(results, few_functions):
    with pytest.raises(DatasetError, match="expected a column `repo`"):
        read(results, without(few_functions, "repo"), np.arange(2), "repository")


def test_older_data_do_not_know_near_copies_and_titles_say_so(results, few_functions):
    older = read(results, without(few_functions, "twin_of"), np.arange(2), None)
    assert older == (None, "functions, of which near copies are unknown")


def test_other_data_are_refused(results, dataset_folder):
    with pytest.raises(LedgerError, match="name its own --data"):
        read(results, dataset_folder, np.arange(2), "repository")
    over, words = read(results, dataset_folder, np.arange(2), None)
    assert over is None and "near copies are unknown" in words


def test_another_cluster_is_refused(results):
    with pytest.raises(UnknownName, match="repository"):
        probing.scores(results, cluster="project")
