"""A toy instrument, of 140 lines and an entry of the registry, from its run to the report: no room has a list of
instruments that leaves it out."""

from __future__ import annotations

import pytest
from support.commands import run as command
from support.files import contents
from support.toy_instrument import NAMES, OTHERS, TOY, Toy, ToyResult, registered

from probing import merge, report, scores
from probing.evidence.verify import verify
from probing.instruments import registry
from probing.runs.data import read_functions
from probing.runs.experiment import run
from probing.runs.session import Session

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setitem(registry.INSTRUMENTS, TOY, registered())


@pytest.fixture(scope="module")
def functions(fewer_functions):
    return read_functions(fewer_functions, "python", "test", limit=8)


@pytest.fixture
def session(tiny_model):
    return Session(str(tiny_model))


@pytest.fixture
def results(session, functions, tmp_path):
    run(Toy(session, functions), tmp_path / "whole")
    return tmp_path / "whole"


def test_it_goes_on_after_an_interruption(session, functions, results, tmp_path, monkeypatch):
    ran = []

    def stopped(self, part, bar, real=Toy.run):
        ran.append(part)
        if len(ran) == 2:
            raise KeyboardInterrupt
        return real(self, part, bar)

    monkeypatch.setattr(Toy, "run", stopped)
    with pytest.raises(KeyboardInterrupt, match="to continue"):
        run(Toy(session, functions), tmp_path / "again")
    run(Toy(session, functions), tmp_path / "again")
    assert len(ran) == 4  # three parts, of which one was stopped
    assert contents(tmp_path / "again") == contents(results)


def test_its_shards_are_merged(session, functions, results, tmp_path):
    for number in (1, 2):
        run(Toy(session, functions), tmp_path / "shards", f"{number}/2")
    (merged,) = merge([tmp_path / "shards"])
    assert merged == ToyResult.load(next(results.glob("*.json")))


def test_the_cache_has_it_by_its_settings(session, functions, tmp_path, monkeypatch):
    monkeypatch.setenv("CODESYNTAX_CACHE", str(tmp_path / "cache"))
    first = run(Toy(session, functions))
    other = Toy(session, functions, longest=2)
    assert run(other).signature != first.signature
    assert other.ran
    again = Toy(session, functions)
    assert run(again) == first
    assert not again.ran


def test_it_is_printed_scored_and_reported(results, tmp_path):
    result = ToyResult.load(next(results.glob("*.json")))
    assert 0 < result.whole[NAMES] < result.whole[OTHERS] <= 100
    said = command("score", results, "--csv", tmp_path / "all.csv")
    assert f"{OTHERS}" in said.stdout
    assert result.signature in said.stdout
    frame = scores(results)
    assert frame["instrument"].unique().tolist() == [TOY]
    by_group = frame.set_index("group")["value"]
    assert by_group[NAMES] == pytest.approx(result.whole[NAMES])
    assert by_group["mean"] == pytest.approx((result.whole[NAMES] + result.whole[OTHERS]) / 2)
    assert len((tmp_path / "all.csv").read_text().splitlines()) == 1 + len(frame)
    page = report([results], tmp_path / "report")
    assert f"{result.whole[NAMES]:.1f}" in page.read_text()


def test_it_is_verified(results, tiny_model, fewer_functions):
    (file,) = results.glob("*.json")
    assert verify(file, model=tiny_model, data=fewer_functions).verdict == "accepted"
    ledger = ToyResult.load(file).ledger
    ledger.rows["whole"][:] = ledger.rows["tokens"]
    ToyResult.from_ledger(ledger).save(results)
    assert verify(file, model=tiny_model, data=fewer_functions).verdict == "rejected"
