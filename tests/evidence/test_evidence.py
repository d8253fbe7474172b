"""Both protocols and the baselines of one model, from the results that probes left."""

from __future__ import annotations

import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest

from codesyntax_dataset.errors import LedgerError
from probing import probe
from probing.evidence.baselines import baseline
from probing.evidence.gather import PUBLISHED_FIRST, alike, find, gather
from probing.evidence.protocols import MEASURES
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.result import ProbeResult
from probing.runs.saved import ledger_path


@pytest.fixture(scope="module")
def results(tiny_model, few_functions, tmp_path_factory):
    """A folder with the tiny model's results of both splits, and those of its control."""
    folder = tmp_path_factory.mktemp("results")
    for split in ("test", "validation"):
        for control in (None, "redrawn-dependents"):
            probe(str(tiny_model), few_functions, "python", split, control=control, output=folder)
    return folder


@pytest.fixture(scope="module")
def evidence(results, few_functions):
    """Of the model and of its control."""
    return gather(find([results]), few_functions)


@pytest.mark.slow
def test_every_result_finds_its_counterpart(results):
    found = [(both.test.settings, both.validation.settings) for both in find([results])]
    assert {test.control for test, _ in found} == {None, "redrawn-dependents"}
    for test, validation in found:
        assert (test.split, validation.split) == ("test", "validation")
        assert test.control == validation.control
    # the other one lies beside it
    (file,) = results.glob("tiny.python.test.*.json")
    assert len(find([file])) == 1


@pytest.mark.slow
def test_probes_with_any_other_setting_are_no_counterparts(evidence):
    """But of the split, its labels, and how much of it is read."""
    result = evidence[0].probed.test
    names = set(type(result.settings).model_fields) - {"split", "labels", "limit"}
    assert len(names) > 9
    for name in names:
        settings = result.settings.model_copy(update={name: "another"})
        assert alike(SimpleNamespace(settings=settings)) != alike(result), name


@pytest.mark.slow
def test_scores_agree_with_what_they_are_made_of(evidence, few_functions):
    """Published scores are the probe's own; the baselines of all functions are those of `codesyntax baseline`."""
    model, result = evidence[0], evidence[0].probed.test
    published = model.hits["published"].hits.mean("model").value
    for rule, of_k in result.scores.items():
        for k, score in of_k.items():
            assert published[MEASURES.index((rule, int(k)))] == pytest.approx(score)
    # the tiny model reads every function of the sample, but for those that have no relations
    assert set(result.skips) <= {"no relations"}
    expected, place = baseline(few_functions, "python"), MEASURES.index(("any", 3))
    assert model.splits.baselines.picks == expected.picks
    for protocol in PUBLISHED_FIRST:
        baselines = expected.hits[protocol]
        for kind, chosen in model.splits.baselines.hits[protocol].items():
            alone = replace(baselines[kind].hits, over=None)
            assert [*chosen.hits.content()] == [*alone.content()]
        mean = model.hits[protocol].hits.mean("model").value[place]
        best = baselines["combined"].hits.mean("combined").value[place]
        tested = model.comparisons[protocol].mean.at(place)
        assert tested.value == pytest.approx(mean - best)
        assert tested.low <= tested.value <= tested.high


@pytest.mark.slow
def test_redrawn_dependents_have_scores_and_no_comparison(evidence):
    """Their edges are others than the baselines'."""
    (control,) = [one for one in evidence if one.probed.test.settings.control]
    assert control.comparisons == {}


@pytest.mark.slow
def test_validation_alone_cannot_be_gathered(results):
    """Nor test alone, nothing, or altered numbers: `tests/cli/mistakes.txt`."""
    (validation,) = results.glob("tiny.python.validation.*.json")
    with pytest.raises(LedgerError, match="has results of the split validation only"):
        find([validation])


@pytest.mark.slow
def test_other_labels_than_those_that_were_probed(results, few_functions, tmp_path):
    import datasets

    data = datasets.load_dataset(str(few_functions), "python")
    data["test"] = data["test"].map(lambda row: {"relations": row["relations"][1:]})
    with pytest.raises(LedgerError, match="--data"):
        gather(find([results]), data)


@pytest.mark.slow
def test_a_result_that_is_there_twice_is_taken_once(results, tmp_path):
    copies = tmp_path / "copies"
    shutil.copytree(results, copies)
    assert len(find([results, copies, results.resolve()])) == len(find([results])) == 2
    (file,) = copies.glob("tiny.python.test.*.json")
    ledger = RankLedger.load(ledger_path(file))
    ledger.ranks = ledger.ranks[..., ::-1]  # a run that found something else
    ProbeResult.from_ledger(ledger).save(copies)
    with pytest.raises(LedgerError, match="two runs of one probe"):
        find([results, copies])


@pytest.mark.slow
def test_data_is_found_from_the_result_on_test(results, tmp_path):
    """That on validation was moved alone, further from the data."""
    shutil.copytree(results, tmp_path, dirs_exist_ok=True)
    moved = tmp_path / "to" / "another"
    moved.mkdir(parents=True)
    for file in tmp_path.glob("*.validation.*"):
        file.rename(moved / file.name)
    assert len(gather(find([tmp_path, moved]))) == 2


@pytest.mark.slow
def test_results_from_before_there_were_controls(results, evidence, few_functions, tmp_path):
    """Their settings have neither `control` nor `seed`."""
    for file in results.glob("tiny.python.*.json"):
        ledger = RankLedger.load(ledger_path(file))
        for name in ("control", "seed"):
            del ledger.settings["settings"][name]
        ProbeResult.from_ledger(ledger).save(tmp_path)
    (old,) = gather(find([tmp_path]), few_functions)
    (now,) = gather([evidence[0].probed], few_functions)
    for protocol, chosen in now.hits.items():
        assert [*old.hits[protocol].hits.content()] == [*chosen.hits.content()]
