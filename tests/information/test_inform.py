"""The information probe as an instrument: its numbers by hand, resuming, shards, verification, controls, and commands."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from conftest import cut
from support.commands import run
from support.files import csv_rows
from support.references import plain_intervals

import probing
from codesyntax_dataset.errors import LedgerError
from probing.evidence.verify import verify
from probing.instruments.information import learn
from probing.instruments.information.hits import hits
from probing.instruments.information.inform import Informing, _ranked_among
from probing.instruments.information.result import InformationLedger, InformationResult
from probing.report.information import bits_added
from probing.report.report import report
from probing.report.results import parts
from probing.runs.data import assign_dependents, load_functions, read_functions
from probing.runs.saved import ledger_path
from probing.runs.session import Session

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("surfaces_learned_once")]


@pytest.fixture(scope="module")
def session(tiny_model):
    return Session(tiny_model)


@pytest.fixture(scope="module")
def inform(session, dataset_folder):
    """A small probe of a model of random weights, one for all who ask the same; further arguments as of `probing.inform`."""
    return functools.cache(
        lambda **given: probing.inform(
            session, dataset_folder, **{"edges": 30, "limit": 20, **given}
        )
    )


@pytest.fixture(scope="module", autouse=True)
def small_parts():
    """And one penalty, of those that `test_choice.py` chooses among."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Informing, "PART", 8)
        patch.setattr(learn, "SURFACE_PENALTIES", (2.0,))
        yield


@pytest.fixture(scope="module")
def folder(inform, tmp_path_factory):
    place = tmp_path_factory.mktemp("information")
    inform(output=place)
    return place


@pytest.fixture(scope="module")
def result(folder):
    return InformationResult.load(next(folder.glob("*.json")))


def test_numbers_follow_from_the_rows(result):
    rows, names = result.ledger.rows, result.ledger.names
    assert rows.size > 90
    assert len(result.relations) > 3
    assert result.functions == len({*rows["function"]})
    for name, one in result.relations.items():
        of = [row for row in rows if names[row["relation"]] == name]
        assert one.edges == len(of) <= 30
        assert one.adds == pytest.approx(
            sum(row["words_bits"] - row["both_bits"] for row in of) / len(of)
        )
        assert one.words.uas == pytest.approx(
            100 * sum(not row["words_rank"] for row in of) / len(of)
        )
    counted = [one for one in result.relations.values() if one.in_mean]
    assert result.mean.adds == pytest.approx(np.mean([one.adds for one in counted]))
    assert result.mean.share == pytest.approx(
        100 * result.mean.adds / (result.mean.words.bits - result.mean.floor)
    )
    assert result.signature.startswith("bits|model:tiny@")


def test_ranks_and_bits_of_one_head_token_by_hand():
    by_surface = np.log([1.0, 3.0, 1.0, 3.0])
    attention = np.log([[1.0, 1.0, 1.0, 5.0], [1.0, 1 / 3, 2.0, 4 / 3]])
    by_head = np.array([0.5, 0.0, 0.5, 0.0])
    ranks, bits = _ranked_among(by_surface, attention, by_head, np.array([2, 3]))
    # of 1/8 and 3/8; of 1/8 and 5/8; of 2/8 and 4/8
    assert bits.tolist() == [
        [3, 1.415],
        [3, 0.6781],
        [2, 1],
    ]
    assert ranks.tolist() == [[3, 1], [3, 0], [1, 0], [1, 3]]  # of equals the first


def test_the_floor_is_what_a_parser_leaves_open(result, dataset_folder):
    """Of a head token with n dependents nobody can tell which is asked for: n is counted in the data."""
    data = load_functions(dataset_folder, "python", "test")[0].to_pylist()
    rows, names = result.ledger.rows, result.ledger.names
    for row in rows:
        head, name = row["head"], names[row["relation"]]
        edges = [edge for edge in data[int(row["function"])]["relations"] if edge["head"] == head]
        firsts = {edge["first"] for edge in edges if edge["relation"] == name} - {head}
        assert row["dependents"] == len(firsts)
    floor = np.log2(rows["dependents"])
    assert floor.max() >= 1
    assert (floor == 0).any()
    for name, scores in result.relations.items():
        of_relation = rows["relation"] == names.index(name)
        assert scores.floor == pytest.approx(floor[of_relation].mean())


def test_batches_make_no_difference(inform, result, monkeypatch):
    """But for rounding: bits to three decimals."""
    monkeypatch.setitem(probing.runs.batches._TOKENS_ON_DEVICE, "cpu", 1)
    alone = inform.__wrapped__().ledger.rows
    for name in alone.dtype.names:
        if name.endswith("_bits"):
            assert np.abs(alone[name] - result.ledger.rows[name]).max() < 2e-3
        elif not name.endswith("_rank"):
            assert (alone[name] == result.ledger.rows[name]).all()
    assert (alone["words_rank"] == result.ledger.rows["words_rank"]).all()
    assert np.mean(alone["both_rank"] != result.ledger.rows["both_rank"]) < 0.01


def test_verified(folder, result, tiny_model, tmp_path):
    file = next(folder.glob("*[0-9a-f].json"))
    assert verify(file, model=tiny_model).accepted
    rows = result.ledger.rows.copy()
    rows["both_bits"] = np.maximum(rows["both_bits"] - 0.1, 0)
    InformationResult.from_ledger(
        InformationLedger(result.ledger.names, rows, result.ledger.settings)
    ).save(tmp_path)
    assert not verify(
        next(tmp_path.glob("*.json")), model=tiny_model, data=result.data_folder
    ).accepted


def test_rows_that_cannot_be_are_refused(result):
    rows = result.ledger.rows.copy()
    candidates = rows["candidates"][0]
    rows["both_rank"][0], rows["dependents"][0] = candidates - 1, candidates
    InformationLedger.check(rows)
    for name, value, reason in (
        ("both_rank", candidates, "ranks"),
        ("best_rank", -1, "ranks"),
        ("dependents", 0, "numbers of dependents"),
        ("dependents", candidates + 1, "numbers of dependents"),
    ):
        rows = result.ledger.rows.copy()
        rows[name][0] = value
        with pytest.raises(ValueError, match=f"{reason} that cannot be"):
            InformationLedger.check(rows)
    rows = result.ledger.rows.copy()
    rows["relation"] = next(
        n for n, name in enumerate(result.ledger.names) if name not in result.learned
    )
    with pytest.raises(LedgerError, match="was not learned"):
        InformationResult.from_ledger(
            InformationLedger(result.ledger.names, rows, result.ledger.settings)
        )


@pytest.mark.parametrize(
    "control",
    [
        "random-weights",
        pytest.param("redrawn-dependents", marks=pytest.mark.long),
        pytest.param("control-task", marks=pytest.mark.long),
    ],
)
def test_controls(inform, dataset_folder, control):
    """Each says what it is, of both splits, and attention adds nothing: intervals reach down to 0."""
    found = inform(control=control, seed=3)
    split = {"limit": 20, "control": control, "seed": 3}
    validation = read_functions(dataset_folder, "python", "validation", **split)
    assert found.settings.learned_on == validation.with_repositories != validation.labels
    assert f"|control:{control}/3" in found.signature
    assert f"{control} 3" in found.title
    adds = bits_added(hits(found)["bits"])
    assert all(estimate.low <= 0.005 for estimate in adds.values() if estimate.low)


def test_the_control_task_belongs_to_words(dataset_folder):
    """Each head word and relation has one of four places, whatever the function."""
    plain = load_functions(dataset_folder, "python", "test")[0].slice(0, 40)
    places = {}
    for row, original in zip(assign_dependents(plain, 3).to_pylist(), plain.to_pylist()):
        words = [row["code"][start:end] for start, end in zip(row["token_start"], row["token_end"])]
        visible = [place for place, word in enumerate(words) if word.strip()]
        for edge, real in zip(row["relations"], original["relations"]):
            head, first = edge["head"], edge["first"]
            assert (edge["relation"], head, first) == (
                real["relation"],
                real["head"],
                edge["last"],
            )
            assert first != head
            others = [place for place in visible if place != head]
            before, after = ([p for p in others if p < head], [p for p in others if p > head])
            asked = ((before or after[:1])[-1], (after or before[-1:])[0], others[0], others[-1])
            fits = {number for number, place in enumerate(asked) if place == first}
            places.setdefault((edge["relation"], words[head]), {0, 1, 2, 3}).intersection_update(
                fits
            )
    assert all(places.values())
    assert {min(of) for of in places.values()} == {0, 1, 2, 3}
    assert len(places) > 300


def test_intervals_are_of_functions(result):
    """The estimate is the mean; a relation in few functions has no interval; a copy of all functions has a narrower one."""
    measured = hits(result)
    for number, (name, adds) in enumerate(bits_added(measured["bits"]).items()):
        one = result.relations[name]
        assert adds.value == pytest.approx(one.adds)
        assert adds.n == one.functions
        assert measured["uas"].scores("best")[0, number] == pytest.approx(one.best)
        assert np.isnan(adds.low) == (one.functions < 6)
    assert measured["bits"].mean("words", "both").value[0] == pytest.approx(result.mean.adds)
    assert measured["uas"].mean("both").value[0] == pytest.approx(result.mean.both.uas)
    rows = np.concatenate([result.ledger.rows] * 4)
    rows["function"] += np.repeat(np.arange(4) * 10**4, len(result.ledger.rows)).astype(np.int32)
    ledger = InformationLedger(result.ledger.names, rows, result.ledger.settings).sorted()
    of_copies = hits(InformationResult.from_ledger(ledger))
    more, once = (each["uas"].mean("words").at(0) for each in (of_copies, measured))
    assert (more.high - more.low) < 0.6 * (once.high - once.low)


def test_commands(tiny_model, dataset_folder, result, folder, tmp_path):
    asked = ("inform", tiny_model, "--data", dataset_folder, "--edges 30 --limit 20")
    printed = run(*asked, "--output", tmp_path)
    assert "attention adds" in printed.output
    assert "PARTIAL: first 20" in printed.output
    assert "mean of" in printed.output
    assert "skipped:" in printed.output
    scored = run("score", next(folder.glob("*.parquet")), "--json")
    assert '"adds"' in scored.stdout
    table = parts(result)[0]
    assert len(table.rows) == len(result.relations)
    assert len(table.totals) == 1


@pytest.mark.usefixtures("unrendered")
def test_report(folder, result, inform, tmp_path):
    """A section for the model and for its control, each as it is printed, with files of its own."""
    inform(control="random-weights", seed=3).save(tmp_path / "twin")
    page = report([folder, tmp_path / "twin"], tmp_path / "report").read_text("utf-8")
    assert result.title in page
    assert "random-weights" in page
    files = sorted((tmp_path / "report/tables").glob("*-information-models.csv"))
    rows = [csv_rows(file)[0] for file in files]
    assert len(rows) == 2
    (row,) = (row for row in rows if row["model"] == result.title)
    mean = hits(result)["bits"].mean("words", "both").at(0)
    cells = [float(row[f"bits: attention adds{end}"]) for end in ("", ", low", ", high")]
    assert cells == pytest.approx(mean[:3], abs=1e-6)
    assert float(row["bits: closed, %"]) == pytest.approx(result.mean.share)
    tables = sorted((tmp_path / "report/tables").glob("*-information.csv"))
    assert len(tables) == 2
    for file in tables:
        names = {row["relation"].removesuffix(" *") for row in csv_rows(file)}
        assert names >= {*result.relations}  # and the mean


def test_two_runs_of_one_job(folder, result, tmp_path):
    """Equal ones count once; those with other numbers are refused, whichever comes last."""
    same = result.save(tmp_path / "same")
    frame = probing.scores([folder, same])
    assert frame.equals(probing.scores([folder]))
    ledger = InformationLedger.open(ledger_path(same))
    ledger.rows["both_bits"] += 0.5
    other = InformationResult.from_ledger(ledger).save(tmp_path / "other")
    for results in ([folder, other], [other, folder]):
        with pytest.raises(LedgerError, match="two runs of the same job"):
            probing.scores(results)
        with pytest.raises(LedgerError, match="two runs of the same job"):
            report(results, tmp_path / "report")
    assert not (tmp_path / "report").exists()


def test_p_of_scores_is_corrected_over_relations(folder):
    ledger = InformationLedger.open(next(folder.glob("*.ledger.parquet")))
    ledger.rows["words_bits"] += np.random.default_rng(0).exponential(0.3, len(ledger.rows))
    altered = InformationResult.from_ledger(ledger)
    frame = probing.scores(altered)
    rows = frame[(frame["measure"] == "bits") & (frame["against"] == "both")].set_index("group")
    measured = hits(altered)["bits"]
    raw = plain_intervals.groups_p(measured, "words", "both")
    assert rows.loc[measured.names, "p"].tolist() == pytest.approx(plain_intervals.holm(raw))
    assert rows.loc[measured.names, "p"].tolist() != pytest.approx(raw)


def test_a_limit_that_leaves_nothing_out_is_none(session, dataset_folder, tmp_path):
    """Of 20 functions the first 20 are all: validation, which has more, is read whole, and others verify the result."""
    data = cut(dataset_folder, tmp_path / "cut", test=20, validation=21)
    limited = probing.inform(session, data, edges=30, limit=20, output=tmp_path)
    assert len(load_functions(data, "python", "validation")[0]) > 20
    assert limited.settings.limit is None
    (file,) = tmp_path.glob("*.json")
    assert verify(file).accepted


def test_nothing_to_learn_from(inform):
    with pytest.raises(
        LedgerError,
        match="no relation has both edges to learn from",
    ):
        inform(limit=1)
