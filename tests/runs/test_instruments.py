"""What each instrument has of `probing/runs/experiment.py`: it goes on after an interruption, in shards and from the cache, to
the same bytes, and runs nothing twice."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from support.files import contents
from support.models.minimal_pairs import PAIRS, pairs_folder, tiny_decoder
from support.models.random_models import byte_model

from probing import ablate, carry, inform, mask, merge, prefer, probe, scores, surprise
from probing.evidence.gather import by_instrument
from probing.instruments.information import learn
from probing.instruments.registry import INSTRUMENTS
from probing.instruments.silencing import ablate as silencing
from probing.instruments.silencing import choose as heads_of
from probing.models.location import TINY_DECODER
from probing.report.document import Table
from probing.report.kinds import DIFFERENCE, EFFECT
from probing.report.report import make
from probing.report.results import parts
from probing.runs import data, experiment
from probing.runs.ledger_file import (
    ATTENTION,
    CARRYING,
    INFORMATION,
    MASKING,
    PREFERENCE,
    SILENCING,
    SURPRISAL,
)

pytestmark = pytest.mark.slow

LONGEST = 700

RUNS = {
    ATTENTION: (probe, "tiny", "sample", {"limit": 16}),
    MASKING: (mask, "masked", "sample", {"draws": 1, "limit": 12, "max_length": LONGEST}),
    SILENCING: (ablate, "masked", "sample", {"draws": 2, "limit": 14}),
    INFORMATION: (inform, "tiny", "sample", {"edges": 30, "limit": 20}),
    PREFERENCE: (prefer, "decoder", "pairs", {}),
    SURPRISAL: (surprise, "embedded", "sample", {"limit": 12}),
    CARRYING: (
        carry,
        "embedded",
        "pairs",
        {"relations": ["Call:func->args"], "shares": [10], "draws": 2},
    ),
}
"""Instrument -> its function, model, data, and what else it is given."""

PARTS = {ATTENTION: 5, SILENCING: 2, PREFERENCE: 16, CARRYING: 16}
"""Functions a part, 3 for the others."""


@pytest.fixture(scope="module")
def places(tiny_model, few_functions, tmp_path_factory):
    """Models and data by name."""
    folder = tmp_path_factory.mktemp("places")
    made = {
        "tiny": tiny_model,
        "masked": byte_model(folder / "masked", LONGEST),
        "decoder": tiny_decoder(folder / "decoder"),
        "embedded": TINY_DECODER,
        "sample": few_functions,
        "pairs": pairs_folder(folder / "pairs", validation=PAIRS[::3], functions=few_functions),
    }
    return {name: str(place) for name, place in made.items()}


@pytest.fixture(scope="module", params=INSTRUMENTS)
def instrument(request):
    """In small parts; heads of random weights, which do not beat a guess, are silenced, too; one penalty is tried."""
    with pytest.MonkeyPatch.context() as patch:
        kind = INSTRUMENTS[request.param].experiment
        patch.setattr(kind, "PART", PARTS.get(request.param, 3))
        patch.setattr(silencing, "REFERENCE", 5)
        patch.setattr(learn, "SURFACE_PENALTIES", (2.0,))
        patch.setattr(heads_of, "beats_guess", lambda ledger, *_: {*ledger.relations})
        yield request.param


@pytest.fixture(scope="module")
def measure(instrument, places):
    """The run of an instrument; further arguments as of its function."""
    function, model, data, given = RUNS[instrument]
    return lambda **more: function(places[model], places[data], **given, **more)


@pytest.fixture(scope="module")
def whole(measure, tmp_path_factory):
    """The files of a run without any interruption."""
    folder = tmp_path_factory.mktemp("whole")
    measure(output=folder)
    return contents(folder)


@pytest.fixture
def kind(instrument):
    return INSTRUMENTS[instrument].experiment


def test_an_interrupted_run_goes_on(
    instrument, measure, kind, whole, tmp_path, monkeypatch, capsys
):
    """Stopped in its second part. It says how far it is, and of what."""
    real, parts = kind.run, []

    def run(self, part, bar):
        parts.append([function.index for function in part])
        if len(parts) == 2:
            raise KeyboardInterrupt
        return real(self, part, bar)

    monkeypatch.setattr(kind, "run", run)
    with pytest.raises(KeyboardInterrupt, match="run the same command again"):
        measure(output=tmp_path)
    assert len([*tmp_path.glob(".*.parts/*.parquet")]) == 1
    measure(output=tmp_path)
    assert contents(tmp_path) == whole
    assert not [*tmp_path.glob(".*")]
    assert f"{RUNS[instrument][0].__name__} " in capsys.readouterr().err
    assert parts[1] == parts[2]
    once = [index for part in (parts[0], *parts[2:]) for index in part]
    assert len({*once}) == len(once) > len(parts[0] + parts[1])


def test_shards_are_merged(measure, whole, tmp_path, tmp_path_factory):
    shards = tmp_path_factory.mktemp("shards")
    for number in (2, 1):
        assert measure(output=shards, shard=f"{number}/2") is None
    assert len([*merge([shards], tmp_path)]) == 1
    assert contents(tmp_path).items() <= whole.items()


def test_a_finished_run_is_not_run_again(measure, kind, whole, tmp_path, monkeypatch):
    for name, content in whole.items():
        (tmp_path / name).write_bytes(content)
    monkeypatch.setattr(kind, "run", lambda *_: pytest.fail("run again"))
    measure(output=tmp_path)
    assert contents(tmp_path) == whole


def test_the_cache_has_it(measure, kind, whole, tmp_path_factory, monkeypatch):
    cache, folder = (tmp_path_factory.mktemp(name) for name in ("cache", "new"))
    monkeypatch.setenv("CODESYNTAX_CACHE", str(cache))
    measure()
    monkeypatch.setattr(kind, "prepare", lambda _: pytest.fail("prepared again"))
    measure(output=folder)
    assert contents(folder) == whole


# --- what is in the key of a run


def asked(measure, monkeypatch):
    """The experiment of a run that is not made, and its key."""

    class Found(Exception):
        pass

    def slot(experiment, real=experiment._slot):
        raise Found(experiment, real(experiment).key)

    with monkeypatch.context() as patch, pytest.raises(Found) as found:
        patch.setattr(experiment, "_slot", slot)
        measure()
    return found.value.args


def altered(changed):
    """Loading, with other values in these columns of a split: those of other rows, of each column of others."""

    def load(location, config, split, real=data.load_functions):
        whole, name = real(location, config, split)
        table = whole
        here = [column for of, column in changed if of == split and column in table.column_names]
        for column in here:
            values = whole[{"good": "bad", "bad": "good"}.get(column, column)].to_pylist()
            shift = 1 + sorted(COLUMNS).index(column)
            values = [*values[shift:], *values[:shift]]
            if column == "repo":
                values = [f"{number // 3}" for number in range(len(values))]
            place = table.schema.get_field_index(column)
            table = table.set_column(place, column, pa.array(values, table[column].type))
        return table, name

    return load


COLUMNS = {*data.FUNCTION_COLUMNS, *data.PAIR_COLUMNS, "repo"}


def test_all_that_is_read_is_in_the_key(instrument, measure, whole, places, tmp_path, monkeypatch):
    """Each column of each split alone: other values give another key, or nobody reads them."""
    monkeypatch.setenv("CODESYNTAX_CACHE", str(tmp_path / "cache"))
    config = "python_pairs" if instrument in (PREFERENCE, CARRYING) else "python"
    location = places[RUNS[instrument][2]]
    _, key = asked(measure, monkeypatch)
    unread = set()
    for split in ("test", "validation"):
        table, _ = data.load_functions(location, config, split)
        for column in COLUMNS & {*table.column_names}:
            with monkeypatch.context() as patch:
                patch.setattr(data, "load_functions", altered({(split, column)}))
                if asked(measure, monkeypatch)[1] == key:
                    unread.add((split, column))
    assert ("test", "relations" if config == "python" else "good") not in unread
    monkeypatch.setattr(data, "load_functions", altered(unread))
    monkeypatch.setenv("CODESYNTAX_CACHE", "")
    measure(output=tmp_path)
    assert contents(tmp_path) == whole


def tables_of(instrument, results):
    """All tables of a report on a folder, and those that the command prints of each result in it."""
    every = []
    for section in make([results]).sections:
        for part in (section, *section.sections):
            every += part.all_parts()
    for file in by_instrument([results])[instrument]:
        every += parts(INSTRUMENTS[instrument].result.load(file))
    return [part for part in every if isinstance(part, Table)]


def estimates_in(table):
    """The values with their bounds and, where it is shown, p."""
    shown = set()
    for row in (*table.rows, *table.totals):
        for column, cell in zip(table.columns, row):
            if isinstance(cell, list) and len(cell) > 2 and len(column.kind.parts) > 2:
                shown.add(rounded(cell[: 4 if column.kind in (DIFFERENCE, EFFECT) else 3]))
    return shown


def rounded(numbers):
    return tuple(
        "" if number is None or math.isnan(number) else f"{number:.7g}" for number in numbers
    )


def test_a_claim_has_one_value_interval_and_p_wherever_it_stands(
    instrument, measure, whole, tmp_path
):
    """All numbers with an interval in tables of commands and of a report are rows of the frame."""
    for name, content in whole.items():
        (tmp_path / name).write_bytes(content)
    if instrument == ATTENTION:
        measure(output=tmp_path, split="validation")
    frame = scores(tmp_path)
    rows = zip(frame["value"], frame["low"], frame["high"], frame["p"])
    known = {rounded(row[:number]) for row in rows for number in (3, 4)}
    shown = [estimates_in(table) for table in tables_of(instrument, tmp_path)]
    assert sum(map(len, shown)) > 3
    missing = set().union(*shown) - known
    if (
        instrument == CARRYING
    ):  # losses and carried shares are in its tables alone; differences are in both
        table = next(table for table in tables_of(instrument, tmp_path) if table.name == "carrying")
        missing = {numbers for numbers in estimates_in(table) if len(numbers) == 4} - known
    assert not missing
