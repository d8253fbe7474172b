"""A toy instrument, which counts the sub-tokens that head tokens attend to: what an instrument must say, and what it gets.

It has resuming, shards, cache, result, signature, scoring, verification and what commands print, with no line on how.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.commands import run as command

from probing import scores
from probing.evidence.verify import verify
from probing.instruments.attention.probe import Probing
from probing.instruments.plain import PlainLedger, PlainResult
from probing.instruments.registry import INSTRUMENTS, Instrument
from probing.report.report import report
from probing.runs.data import read_functions
from probing.runs.experiment import Experiment, run
from probing.runs.session import Session
from probing.stats.hits import Hits

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]

# --- the instrument


class CountLedger(PlainLedger):
    """One row per function and relation: the `attended` sub-tokens of each of its `edges`, the mean over heads."""

    INSTRUMENT, GROUP_COLUMN = "counting", "relation"
    ROW = np.dtype(
        [("function", "<i4"), ("relation", "<i4"), ("edges", "<i4"), ("attended", "<f8")]
    )

    def hits(self) -> dict[str, Hits]:
        names = np.array(self.names)[self.rows["relation"]]
        attended = {"heads": (self.rows["attended"] * self.rows["edges"])[None]}
        counted = Hits.of_rows(
            self.function, names, attended, ["attended"], self.rows["edges"], unit="sub-tokens"
        )
        return {"attended": counted}


class CountResult(PlainResult):
    """The mean number of attended sub-tokens of each relation."""

    LEDGER = CountLedger


class Counting(Experiment):
    """Counts the sub-tokens to which a head token attends with more than an equal share."""

    RESULT = CountResult

    def prepare(self):
        probing = Probing(self.session, self.data)
        self.encoder, (functions, self.relations, skips) = probing.encoder, probing.encoded
        return self.prepared(self.encoder, functions, skips, "has edges")

    def run(self, part, bar) -> CountLedger:
        rows = []
        for function in part:
            maps = [
                layer[0].numpy() for layer in self.encoder.maps(self.encoder.inputs([function.ids]))
            ]
            attended = np.mean(
                [(layer > 1 / len(function.ids)).sum(axis=-1).mean(axis=0) for layer in maps],
                axis=0,
            )
            edges = function.edges
            for relation in np.unique(edges.relation):
                readers = function.alignment.first[edges.head[edges.relation == relation]]
                rows.append((function.index, relation, len(readers), attended[readers].mean()))
            bar.update()
        return CountLedger(self.relations, np.array(rows, CountLedger.ROW), self.made).sorted()


# --- what it gets


@pytest.fixture(autouse=True)
def known(monkeypatch):
    """One line makes the commands know an instrument."""
    monkeypatch.setitem(
        INSTRUMENTS, "counting", Instrument(f"{__name__}:Counting", f"{__name__}:CountResult")
    )


@pytest.fixture(scope="module")
def session(tiny_model):
    return Session(tiny_model)


@pytest.fixture
def counting(session, dataset_folder):
    return lambda: Counting(session, read_functions(dataset_folder, "python", "test", limit=20))


@pytest.fixture
def whole(counting, tmp_path):
    """The files of a run without any interruption."""
    run(counting(), tmp_path / "whole")
    return files(tmp_path / "whole")


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def test_counts(counting):
    result = run(counting())
    assert result.functions > 16 and all(
        1 <= attended < 511 for attended in result.scores["attended"]["heads"].values()
    )
    assert result.signature.startswith("counting|model:tiny@") and result.signature.endswith(
        "|partial:20"
    )
    assert "PARTIAL: first 20 functions" in result.title


def test_scored_and_verified(whole, tiny_model, tmp_path):
    file = next((tmp_path / "whole").glob("*[0-9a-f].json"))
    ledger = file.with_name(file.name.replace(".json", ".ledger.parquet"))
    assert '"attended"' in command("score", ledger, "--json").stdout
    printed = command("score", ledger).stdout
    assert "attended" in printed and "If:if->test" in printed and "counting|model:tiny@" in printed
    assert verify(file, model=tiny_model, functions=5, seed=0).accepted
    honest = CountResult.load(file)
    rows = honest.ledger.rows.copy()
    rows["attended"] += 1
    CountResult.from_ledger(CountLedger(honest.ledger.names, rows, honest.ledger.settings)).save(
        tmp_path / "forged"
    )
    forged = verify(
        next((tmp_path / "forged").glob("*.json")),
        model=tiny_model,
        data="codesyntax",
        functions=5,
    )
    assert not forged.accepted


def test_in_the_frame(whole, tmp_path):
    """Its scores are means over edges, with intervals over functions."""
    (file,) = (tmp_path / "whole").glob("*[0-9a-f].json")
    frame, ledger = scores(file), CountResult.load(file).ledger
    assert set(frame["instrument"]) == {"counting"} and set(frame["measure"]) == {"attended"}
    rows = ledger.rows[ledger.rows["relation"] == ledger.names.index("If:if->test")]
    (row,) = frame[frame["group"] == "If:if->test"].itertuples()
    assert row.value == pytest.approx(np.average(rows["attended"], weights=rows["edges"]))
    assert (row.system, row.n, row.items) == ("heads", len(rows), rows["edges"].sum())
    (mean,) = frame[frame["group"] == "mean"].itertuples()
    assert mean.value == pytest.approx(frame["value"][:-1].mean())
    assert mean.low < mean.value < mean.high


def test_reported(session, dataset_folder, tmp_path):
    """Its section, with no line on how."""
    complete = run(
        Counting(session, read_functions(dataset_folder, "python", "test", limit=20)),
        tmp_path / "results",
    )
    page = report([tmp_path / "results"], tmp_path / "report").read_text()
    assert complete.title in page and "If:if-&gt;test" in page
