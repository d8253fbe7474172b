"""The Hub's own list of results for a dataset, as its client reads it, beside the entries of a board."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from support.evidence.hits_files import written
from support.evidence.masked_entries import entries, masked
from support.hub.loopback_hub import LoopbackHub

from codesyntax_dataset.errors import HubError
from probing.cli import main
from probing.evidence.submission import load
from probing.publish.board import HubResult, hub_results
from probing.stats.intervals import Estimate

DATASET = "user/codesyntax"
AUTHOR = {
    "type": "user",
    "name": "maker",
    "fullname": "Maker",
    "_id": "1",
    "avatarUrl": "",
    "isPro": False,
}


@pytest.fixture
def hub(monkeypatch, tmp_path):
    with LoopbackHub() as hub:
        hub.connect(monkeypatch, tmp_path / "cache")
        hub.leaderboards = {"lab/other": [], DATASET: []}
        yield hub


def listed(rank: int, model: str, value: object, notes: str | None, verified: bool = False) -> dict:
    return {
        "rank": rank,
        "modelId": model,
        "value": value,
        "filename": ".eval_results/codesyntax.yaml",
        "verified": verified,
        "author": AUTHOR,
        "notes": notes,
    }


def row(model: str, signature: str, *values: float) -> SimpleNamespace:
    """A row whose entry has these numbers for the tasks, and others."""
    scores = [Estimate(value, value, value, 1.0, 9) for value in (*values, 77.0)]
    means = dict(
        zip(
            [("held-out", "first", "1"), ("beyond-offset", "first", "1"), ("held-out", "any", "1")],
            scores,
        )
    )
    entry = SimpleNamespace(signature=signature)
    return SimpleNamespace(file=f"{model}.hits.parquet", model=model, entry=entry, means=means)


def test_results_with_and_without_evidence(hub):
    """The signature in the notes ties a result to an entry, of the same model alone."""
    hub.leaderboards[DATASET] = [
        listed(1, "maker/large", 99.9, None, verified=True),
        listed(2, "maker/small", 40.5, "probe|small; next best offset or keyword 3.1"),
        listed(3, "maker/copy", 40.5, "probe|small"),
    ]
    known = row("Maker/small", "probe|small", 40.4967, 5.0)
    found = hub_results(DATASET, [known])
    assert found == [
        HubResult(1, "maker/large", 99.9, True, "", None),
        HubResult(
            2, "maker/small", 40.5, False, "probe|small; next best offset or keyword 3.1", known
        ),
        HubResult(3, "maker/copy", 40.5, False, "probe|small", None),
    ]
    assert [one.agrees for one in found] == [False, True, False]


@pytest.mark.parametrize(
    "value, agrees", [(40.5, True), (5.0, True), (40.51, False), (77.0, False)]
)
def test_a_value_that_the_entry_does_not_have_has_no_evidence(hub, value, agrees):
    """The entry rounds to 40.50 and 5.00 in the tasks, and has 77 where there is none."""
    hub.leaderboards[DATASET] = [listed(1, "maker/small", value, "probe|small")]
    (one,) = hub_results(DATASET, [row("maker/small", "probe|small", 40.4967, 5.0)])
    assert one.agrees == agrees


def test_a_board_shows_which_results_have_no_evidence(hub, tmp_path):
    entry = load(written(entries([masked()])[0]))
    hub.leaderboards[DATASET] = [
        listed(1, "maker/large", 99.9, None, verified=True),
        listed(
            2,
            entry.settings.model,
            value := entry.scores("T1")["restored"].value,
            f"{entry.signature}; T0",
        ),
        listed(3, entry.settings.model, value + 1, entry.signature),
    ]
    (tmp_path / "entries").mkdir()
    (tmp_path / "entries/one.hits.parquet").write_bytes(entry.to_bytes())
    arguments = [
        "board",
        str(tmp_path),
        "--output",
        str(tmp_path / "board"),
        "--benchmark",
        DATASET,
    ]
    assert CliRunner().invoke(main, arguments, catch_exceptions=False).exit_code == 0
    text = (tmp_path / "board/board.md").read_text(encoding="utf-8")
    assert "The Hub lists 3 results. Nothing on this board supports 2 of them" in text
    starts = ("| 1 | maker/large", f"| 2 | {entry.settings.model}", f"| 3 | {entry.settings.model}")
    large, small, other = (line for line in text.splitlines() if line.startswith(starts))
    assert "verified by the Hub's jobs" in large and "| none |" in large
    assert "sent by somebody" in small and re.search(
        r"claimed: \S*/entries/one\.hits\.parquet", small
    )
    assert re.search(r"none: another number in \S*/entries/one\.hits\.parquet", other)


def test_a_dataset_that_is_no_benchmark(hub):
    with pytest.raises(HubError, match="does not list user/mine among its 2 benchmarks"):
        hub_results("user/mine", [])


@pytest.mark.parametrize("value", ["40", float("inf"), True])
def test_values_that_are_no_numbers(hub, value):
    hub.leaderboards[DATASET] = [listed(1, "maker/small", value, None)]
    with pytest.raises(HubError, match="as a result on user/codesyntax, expected a number"):
        hub_results(DATASET, [])


def test_names_cannot_write_to_a_terminal(hub):
    hub.leaderboards[DATASET] = [listed(1, "maker/\x1b[31mred", 1.0, "\x1b[2J")]
    (one,) = hub_results(DATASET, [])
    assert "\x1b" not in one.model + one.notes


def test_what_is_no_hub_is_said_in_a_line(hub):
    hub.leaderboards[DATASET] = [{"rank": 1}]
    with pytest.raises(HubError, match="does not answer like a Hub about user/codesyntax"):
        hub_results(DATASET, [])
