"""A sample of a split: functions drawn by a seed, the same for every model, known by their places in the split."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from support.commands import run

from codesyntax_dataset.errors import ArgumentError
from probing import mask, probe
from probing.evidence.gather import find, gather
from probing.evidence.verify import verify
from probing.instruments.attention.errors import analyse
from probing.models.location import TINY
from probing.runs.data import read_functions
from probing.runs.settings import Sample

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(tiny_model, dataset_folder, tmp_path_factory):
    """The whole probe, and a sample of both splits in a folder."""
    folder = tmp_path_factory.mktemp("sample")
    sampled = {
        split: probe(tiny_model, dataset_folder, split=split, sample=40, seed=3, output=folder)
        for split in ("test", "validation")
    }
    return SimpleNamespace(folder=folder, whole=probe(tiny_model, dataset_folder), **sampled)


def test_ranks_are_those_of_the_whole_run(made):
    """At the same places, spread over the split."""
    places = np.unique(made.test.ledger.function)
    assert made.test.functions + sum(made.test.ledger.settings["skips"].values()) == 40
    assert places[0] < 40
    assert places[-1] >= 100
    assert np.array_equal(made.test.ledger.ranks, made.whole.ledger.only(places).ranks)
    assert np.array_equal(made.test.ledger.head, made.whole.ledger.only(places).head)


def test_it_says_so(made):
    assert made.test.signature.endswith("|partial:40-drawn-by-seed-3")
    assert "PARTIAL: 40 functions drawn by seed 3" in made.test.title
    assert ".partial." in made.test.paths(made.folder)[0].name


def test_another_model_reads_the_same_functions(made, dataset_folder):
    other = probe(TINY, dataset_folder, sample=40, seed=3)
    assert other.settings.labels == made.test.settings.labels
    masked = mask(TINY, dataset_folder, node_types=["if_statement"], draws=1, sample=40, seed=3)
    assert {*masked.ledger.rows["function"]} <= {*Sample(size=40, seed=3).places(141)}
    another = read_functions(dataset_folder, "python", "test", sample=40, seed=4)
    assert another.labels != other.settings.labels


def test_copies_of_several_seeds_read_the_functions_of_the_model(dataset_folder):
    def places(**options):
        return probe(TINY, dataset_folder, sample=12, **options).ledger.function

    whole = places()
    for seed in (1, 2):
        copy = places(control="random-weights", seed=seed)
        assert np.array_equal(copy, whole)
    assert not np.array_equal(places(seed=1), whole)


def test_a_seed_draws_evenly():
    drawn = np.zeros(50)
    for seed in range(400):
        places = Sample(size=10, seed=seed).places(50)
        assert places == sorted({*places})
        assert len(places) == 10
        drawn[places] += 1
    # five standard deviations of a binomial
    assert abs(drawn - 80).max() < 5 * (400 * 0.2 * 0.8) ** 0.5


def test_evidence_verify_and_errors_follow(made, tiny_model, dataset_folder):
    path = made.test.paths(made.folder)[0]
    assert verify(path, model=tiny_model, data=dataset_folder).accepted
    assert sum(analyse(path, model=tiny_model, data=dataset_folder).classes("first").values()) > 0
    (evidence,) = gather(find([made.folder]), dataset_folder)
    assert np.array_equal(
        np.unique(evidence.splits.edges["test"].function), np.unique(made.test.ledger.function)
    )


def test_as_many_as_there_are_is_all(made, tiny_model, dataset_folder):
    assert probe(tiny_model, dataset_folder, sample=141).settings == made.whole.settings


def test_a_limit_and_a_sample(tiny_model, dataset_folder):
    with pytest.raises(ArgumentError, match="limit is 3 and sample is 5, expected one"):
        probe(tiny_model, dataset_folder, limit=3, sample=5)
    done = run("probe", tiny_model, "--data", dataset_folder, "--sample 5 --seed 1 --json")
    assert json.loads(done.stdout)["settings"]["limit"] == {"size": 5, "seed": 1}
