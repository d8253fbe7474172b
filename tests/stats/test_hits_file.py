"""Hits that are kept are those that were saved."""

from __future__ import annotations

import numpy as np

from probing.stats.hits import Hits
from probing.stats.hits_file import load, save


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
    )
    save(tmp_path / "kept.npz", {"held-out": counted, "place": weighed}, {"made": {"of": [1]}})
    tables, about = load(tmp_path / "kept.npz")
    assert about == {"made": {"of": [1]}}
    assert list(tables) == ["held-out", "place"]
    for name, hits in (("held-out", counted), ("place", weighed)):
        assert list(tables[name].content()) == list(hits.content())
        assert tables[name].families == hits.families
        assert tables[name].groups.keys() == hits.groups.keys()
    assert tables["place"].groups["c"].worth == weighed.groups["c"].worth
