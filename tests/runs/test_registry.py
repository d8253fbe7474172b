"""Every string of the registry leads to the part of its instrument, and to no other's."""

from __future__ import annotations

from dataclasses import fields, replace
from inspect import signature

import pytest
from support.toy_instrument import TOY, registered

from probing.instruments.registry import INSTRUMENTS, Instrument
from probing.runs.experiment import Experiment

PARTS = [part.name for part in fields(Instrument) if part.name != "submits"]


def check(name, known):
    """That all parts belong together, and to the instrument of this name."""
    experiment, result = known.experiment, known.result
    assert issubclass(experiment, Experiment)
    assert experiment.RESULT is result
    assert result.LEDGER.INSTRUMENT == name
    assert known.scores.endswith(f":{name}_rows")
    assert [*signature(known.rows).parameters] == ["files", "data"]
    assert known.publishes.endswith(f":of_{name}")
    assert len(signature(known.numbers).parameters) == 2
    (shown, *_) = signature(known.parts).parameters.values()
    assert shown.annotation == result.__name__


@pytest.mark.parametrize("name", [*INSTRUMENTS, TOY])
def test_each_string_leads_to_its_part(name):
    check(name, {**INSTRUMENTS, TOY: registered()}[name])


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", INSTRUMENTS)
def test_no_other_string_does(name, part):
    """Empty, a name that is not there, and those of the other instruments."""
    known = INSTRUMENTS[name]
    others = {getattr(other, part) for other in INSTRUMENTS.values()} - {getattr(known, part)}
    assert len(others) == len(INSTRUMENTS) - 1
    for wrong in ("", f"{getattr(known, part)}x", *others):
        with pytest.raises((AssertionError, LookupError)):
            check(name, replace(known, **{part: wrong}))


@pytest.mark.parametrize(
    "path, reason",
    [
        ("", "invalid format"),
        ("probing.runs.nothing:Probing", "No module named 'probing.runs.nothing'"),
        ("probing.runs.saved:Nothing", "has no attribute 'Nothing'"),
    ],
)
def test_a_path_that_leads_nowhere_is_named(path, reason):
    with pytest.raises(LookupError, match="leads nowhere") as refused:
        _ = replace(registered(), runs=path).experiment
    assert repr(path) in str(refused.value)
    assert reason in str(refused.value)
    assert "expected module:name, such as" in str(refused.value)
