"""Hits that are kept are those that were saved."""

from __future__ import annotations

import numpy as np
import pytest

from codesyntax_dataset.errors import LedgerError
from probing.runs.clusters import Clusters
from probing.stats.hits import Hits
from probing.stats.hits_file import about_in, load, save


def test_what_is_kept_is_what_was_saved(tmp_path):
    rng = np.random.default_rng(0)
    counted = Hits.of_rows(
        np.array([7, 7, 9]),
        ["a", "b", "a"],
        {"model": rng.integers(0, 2, (2, 3)), "rival": rng.integers(0, 2, (2, 3))},
        [("first", 1), ("last", 3)],
        left_out=frozenset({"b"}),
        families={("model", "rival"): 3},
    )
    weighed = Hits.of_rows(
        np.array([1, 2]),
        ["c", "c"],
        {"T1": rng.random((1, 2))},
        ["x"],
        np.array([2, 5]),
        True,
        unit="nats",
        over=Clusters("repository", np.array([0, 4, 4])),
    )
    save(tmp_path / "kept.npz", {"held-out": counted, "place": weighed}, {"made": {"of": [1]}})
    tables, about = load(tmp_path / "kept.npz")
    assert about == about_in(tmp_path / "kept.npz") == {"made": {"of": [1]}}
    assert list(tables) == ["held-out", "place"]
    for name, hits in (("held-out", counted), ("place", weighed)):
        assert list(tables[name].content()) == list(hits.content())
        assert tables[name].families == hits.families
        assert tables[name].groups.keys() == hits.groups.keys()
    assert tables["held-out"].over is None
    assert tables["place"].over.unit == "repository"
    assert tables["place"].over.number.tolist() == [0, 4, 4]
    assert tables["place"].groups["c"].worth == weighed.groups["c"].worth


def test_a_damaged_file_says_so(tmp_path):
    file = tmp_path / "kept.npz"
    assert about_in(file) is None
    hits = Hits.of_rows(np.array([1]), ["a"], {"model": np.ones((1, 1), int)}, ["x"])
    save(file, {"held-out": hits}, {})
    file.write_bytes(file.read_bytes()[:-9])
    assert about_in(file) is None
    with pytest.raises(LedgerError, match="kept.npz is damaged"):
        load(file)
