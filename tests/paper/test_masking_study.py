"""SyntaxEval made again: its functions as it read them, its numbers beside ours, and an interrupted run that continues."""

from __future__ import annotations

import shutil
import statistics

import numpy as np
import pytest
from conftest import figures_unrendered
from support.commands import run
from support.files import contents, csv_rows
from support.references.plain_intervals import holm, mean_p

import probing
from codesyntax_dataset.errors import LedgerError, SourceError, UnknownName
from probing.instruments.masking import mask
from probing.instruments.masking.result import MaskResult
from probing.models.location import TINY, embedded_model
from probing.paper import masking_study
from probing.paper import reproduce as module
from probing.paper.inputs import Inputs
from probing.paper.masking_study import Study, published_name, text
from probing.report import figures
from probing.stats.hits import Hits

LIMIT = 6
"""Functions: what is checked are sums that a test works out again, for each node type, whatever their number."""
DRAWS = 3
"""Controls of each masked copy: the study's 20 take seven times as long, and are checked as a number."""
STUDY = "huggingface/CodeBERTa-small-v1"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def fewer_draws():
    with pytest.MonkeyPatch.context() as patch:
        assert "draws" not in masking_study.SETTINGS
        assert mask.DRAWS == 20
        patch.setattr(mask, "DRAWS", DRAWS)
        yield


@pytest.fixture(scope="module")
def named_model(tmp_path_factory):
    """A small model under the name of the study's first."""
    return shutil.copytree(
        embedded_model(TINY), tmp_path_factory.mktemp("hub") / "CodeBERTa-small-v1"
    )


@pytest.fixture(scope="module")
def told():
    return []


@pytest.fixture(scope="module")
def made(named_model, told, tmp_path_factory):
    output = tmp_path_factory.mktemp("made") / "study"
    with figures_unrendered():
        probing.reproduce(
            ["sample"],
            [str(named_model)],
            output,
            study="syntaxeval",
            limit=LIMIT,
            tell=told.append,
        )
    return output


def rows_of(made, name):
    return csv_rows(made / f"report/tables/{name}.csv")


def _result(made):
    return MaskResult.load(next((made / "results").glob("CodeBERTa*.masking.*.json")))


def arms(made, similarity):
    """Node type -> T1 and T0 of its functions, read from the rows of the ledger one by one."""
    result = _result(made)
    copies: dict[tuple[str, int], list[float]] = {}
    for row in result.ledger.rows:
        kind = result.ledger.node_types[row["node_type"]]
        copies.setdefault((kind, int(row["function"])), []).append(float(row[similarity]))
    found: dict[str, list[tuple[float, float]]] = {}
    for (kind, _), values in sorted(copies.items()):
        assert len(values) == 1 + DRAWS
        found.setdefault(kind, []).append((values[0], statistics.fmean(values[1:])))
    return found


def test_functions_are_those_that_the_study_read():
    code = '    def f(a):\n        """Doc\n        of f."""\n        x = \'\'\'y\'\'\'\n        return "z"'
    assert text(code) == 'def f(a):\n        \n        x = \n        return "z"'


def test_what_will_run_is_told_first(told, made):
    assert "sample: CodeBERTa-small-v1" in told[0]


def test_similarities_are_means_over_functions_and_node_types(made):
    rows = {row["rule"]: row for row in rows_of(made, "performance") if row["system"] == STUDY}
    for similarity in ("jaccard", "levenshtein"):
        pairs = [pair for of_type in arms(made, similarity).values() for pair in of_type]
        for place, arm in enumerate(("T1", "T0")):
            values = [pair[place] for pair in pairs]
            assert float(rows[similarity][f"{arm} mean: here"]) == pytest.approx(
                statistics.fmean(values)
            )
            assert float(rows[similarity][f"{arm} deviation: here"]) == pytest.approx(
                statistics.stdev(values)
            )
    row = rows["jaccard"]  # Table 2 of the paper: 0.78 (0.21) and 0.88 (0.17)
    assert [
        row[f"{arm} {what}: paper"] for arm in ("T1", "T0") for what in ("mean", "deviation")
    ] == [*("0.78", "0.21", "0.88", "0.17")]
    here = float(row["T1 mean: here"])
    assert float(row["T1 mean: difference"]) == pytest.approx(round(here, 2) - 0.78)
    (inputs,) = rows_of(made, "inputs")
    assert inputs["differs"] == "parser, data"


def test_models_that_were_not_run_are_in_the_file_of_numbers_alone(made):
    for name in ("performance", "types", "effects"):
        assert {row["system"] for row in rows_of(made, name)} == {STUDY}
    systems = {row["system"] for row in rows_of(made, "numbers")}
    assert systems == {STUDY, "microsoft/codebert-base-mlm"}


def test_p_of_effects_is_corrected(made):
    """Over the node types of a similarity, and over three outcomes."""
    rows = [row for row in rows_of(made, "effects") if row["system"] == STUDY]
    for similarity in ("jaccard", "levenshtein"):
        raw = {
            kind: mean_p([t1 - t0 for t1, t0 in pairs])
            for kind, pairs in arms(made, similarity).items()
        }
        written = {
            row["group"]: float(row["T1 − T0, paired: here, p"])
            for row in rows
            if row["rule"] == similarity and row["group"] in raw
        }
        expected = [min(1, 3 * p) for p in holm(list(raw.values()))]
        assert written == pytest.approx(dict(zip(raw, expected)))
        assert written != pytest.approx(raw)


def test_the_studys_estimator_is_half_the_second_function(made):
    found = arms(made, "jaccard")
    effects = {
        row["group"]: row
        for row in rows_of(made, "effects")
        if (row["rule"], row["system"]) == ("jaccard", STUDY)
    }
    assert set(found) <= set(effects)
    assert len(found) > 5
    for kind, pairs in found.items():
        differences = [t1 - t0 for t1, t0 in pairs]
        mean, row = statistics.fmean(differences), effects[kind]
        assert int(row["functions: here"]) == len(pairs)
        assert float(row["T1 − T0, paired: here"]) == pytest.approx(mean)
        if len(pairs) > 1:
            study = mean / 2 + differences[1] / 2
            assert float(row["study's estimator: here"]) == pytest.approx(study)
            assert float(row["of the second function: here"]) == pytest.approx(differences[1])
    assert effects["string"]["study's estimator: paper"] == "-0.156"  # Table 2 of the paper


def test_a_placebo_has_no_effect(made):
    """The mean of many exchanges is near 0, as far as their deviation lets it be."""
    rows = rows_of(made, "placebo")
    assert len(rows) > 10
    for row in rows:
        mean, deviation = (
            float(row[f"placebo, T1 − T0, paired: {what}: here"]) for what in ("mean", "deviation")
        )
        assert abs(mean) <= 4 * deviation / 10  # of 100 exchanges


def test_every_number_is_in_one_file_and_the_effects_in_a_figure(made):
    rows = rows_of(made, "numbers")
    assert sum(bool(row["paper"]) for row in rows) == 90  # of the study's Table 2
    effects = [row for row in rows_of(made, "effects") if row["system"] == STUDY]
    beside = 12 + sum(
        bool(row["study's estimator: here"] and row["study's estimator: paper"]) for row in effects
    )
    assert sum(bool(row["paper"] and row["value"]) for row in rows) == beside
    drawn = {path.stem for path in (made / "report/figures").glob("*.svg")}
    assert drawn == {"effects", "types"}


def test_figure_2_has_both_arms_of_each_node_type(made, monkeypatch):
    """And Figure 3 no entry for what is not drawn."""
    frame = Study(Inputs({}, {}, {}, None), 0, {"a": _result(made)}).frame
    drawn = []
    monkeypatch.setattr(figures, "dots", lambda names, panels: drawn.append((names, panels)))
    for draw in (masking_study._figure_2, masking_study._figure_3):
        draw(frame[frame["group"] != masking_study.ALL]).draw()
    (kinds, panels), (_, effects) = drawn
    masked, control = panels["a"]
    pairs = arms(made, "jaccard")
    assert kinds == sorted(pairs)
    for place, points in enumerate((masked, control)):
        means = [statistics.fmean(pair[place] for pair in pairs[kind]) for kind in kinds]
        assert points.values == pytest.approx(means)
    assert [points.label for points in effects["a"]] == ["paired, with 95 % intervals"]


def test_bounds_of_similarities_end_where_their_differences_do():
    """Of six functions, the interval of the mean would reach beyond -1."""
    differences = np.array([0.0, -1, -1, -1, -1, -1])
    sums = {"T1": 1 + differences, "T0": np.ones(6)}
    rows = {system: values[None] for system, values in sums.items()}
    limits = {}
    for unit in ("share", "nats"):
        hits = Hits.of_rows(np.arange(6), ["a"] * 6, rows, ("jaccard",), unit=unit)
        limits[unit] = [hits.by_group("T1", "T0").low[0, 0], hits.mean("T1", "T0").low[0]]
    assert limits["share"] == [-1, -1]
    assert max(limits["nats"]) < -1


@pytest.mark.usefixtures("unrendered")
def test_interrupted_it_continues_to_the_same_bytes(made, named_model, tmp_path, monkeypatch):
    output, run, calls = tmp_path / "again", module.mask, []

    def interrupted(*arguments, **options):
        calls.append(arguments)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return run(*arguments, **options)

    monkeypatch.setattr(module, "mask", interrupted)
    with pytest.raises(KeyboardInterrupt):
        probing.reproduce(["sample"], [str(named_model)], output, study="syntaxeval", limit=LIMIT)
    probing.reproduce(["sample"], [str(named_model)], output, study="syntaxeval", limit=LIMIT)
    assert contents(output) == contents(made)


def test_a_folder_of_the_other_study_is_not_replaced(made, named_model):
    with pytest.raises(LedgerError, match="not made by `codesyntax reproduce`"):
        probing.reproduce(["sample"], [str(named_model)], made)


def test_other_studies_and_sources_are_refused(named_model, tmp_path):
    with pytest.raises(UnknownName, match="syntaxeval"):
        probing.reproduce(["sample"], [str(named_model)], tmp_path / "out", study="syntax")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError):
        probing.reproduce(
            [str(tmp_path / "empty")], [str(named_model)], tmp_path / "out", study="syntaxeval"
        )
    done = run("reproduce --source x --models y --study z", status=2)
    assert "'codesyntax', 'syntaxeval'" in done.stderr


def test_models_are_told_by_their_last_name():
    assert published_name("some/where/CODEBERT-base-mlm/") == "microsoft/codebert-base-mlm"
    assert published_name("codebert-base") is None
    assert masking_study.STUDY_FUNCTIONS == 7501
