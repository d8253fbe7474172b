"""Files that an earlier version of codesyntax wrote are read, checked and reported as they were then.

`data/small` holds `zoo`, a dataset of 11 functions; `mouse`, a model of 2 layers and 3 heads with random weights;
`results`, its probes of both splits; `partial`, a probe of the first three functions for a control; and `entries`, what
`codesyntax report` made of `results` in format 2, with all numbers.
"""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pyarrow.parquet
import pytest

import probing
from codesyntax_dataset.errors import LedgerError
from codesyntax_dataset.protocol import PUBLISHED
from probing.evidence.gather import PUBLISHED_FIRST, find, gather
from probing.evidence.protocols import MEASURES
from probing.evidence.verify import verify
from probing.publish.board import read
from probing.report.findings import read_findings
from probing.runs.saved import ledger_path

SMALL = Path(__file__).parents[1] / "data" / "small"
FILES = sorted([*SMALL.glob("results/*.json"), *SMALL.glob("partial/*.json")])
ENTRY = json.loads(gzip.decompress(next(SMALL.glob("entries/*.gz")).read_bytes()))

by_file = pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)


@by_file
def test_results_say_what_they_said(file):
    said, result = json.loads(file.read_text()), probing.load(file)
    for name in ("signature", "scores", "relations", "functions", "skips", "ties", "versions"):
        assert result.model_dump()[name] == said[name]
    assert result.ledger.digest() == said["ledger"]
    assert result.paths(file.parent)[0] == file


@pytest.mark.parametrize(
    "change, reason",
    [
        (lambda fields: fields["scores"]["any"].update({"3": 12.5}), "other scores"),
        (lambda fields: fields["settings"].update(dtype="bfloat16"), "other settings"),
        (
            lambda fields: fields["settings"].update(temperature=0.5),
            "settings has an unknown field 'temperature'",
        ),
        (lambda fields: fields.update(ledger="0"), "other ledger"),
        (lambda fields: fields.pop("ledger"), "other ledger"),
        (lambda fields: fields.pop("ties"), "the result lacks the field ties"),
        (lambda fields: fields.pop("format"), "the result lacks the field format"),
        (
            lambda fields: fields.update(format=3),
            "of format 3, made by a newer codesyntax, .*: upgrade codesyntax",
        ),
        (lambda fields: fields.update(format=1), "format is 1, expected 2"),
        (lambda fields: fields.update(format="2"), "format is '2', expected 2"),
    ],
)
def test_what_no_longer_follows_is_refused_with_the_place(change, reason, tmp_path):
    file = Path(shutil.copy(FILES[0], tmp_path))
    shutil.copy(ledger_path(FILES[0]), tmp_path)
    fields = json.loads(file.read_text())
    change(fields)
    file.write_text(json.dumps(fields))
    with pytest.raises(LedgerError, match=reason):
        probing.load(file)


def test_a_loaded_result_is_saved_as_it_was(tmp_path):
    result = probing.load(FILES[0])
    file = result.save(tmp_path)
    same, given = (json.loads(of.read_text()) for of in (file, FILES[0]))
    assert (same.pop("data_path"), given.pop("data_path")) != (None, None)
    assert same == given
    assert file.name == FILES[0].name
    saved, given = (pyarrow.parquet.read_table(ledger_path(of)) for of in (file, FILES[0]))
    assert saved.equals(given, check_metadata=True)  # the bytes also name the version of pyarrow
    assert probing.load(file) == result


@pytest.mark.slow
@by_file
def test_results_are_probed_again_where_they_lie(file):
    assert verify(file, model=SMALL / "mouse").accepted


def assert_scores(chosen, entry, score_of):
    """The means and the scores of relations, but for bounds, which were made otherwise."""
    if not chosen.hits.left_out:  # held-out means are now over relations in three functions
        means = [entry["scores"][rule][str(k)][0] for rule, k in MEASURES]
        assert chosen.hits.mean(chosen.system).value == pytest.approx(means, abs=1e-6)
    assert chosen.relations == sorted(entry["relations"])
    for column, name in enumerate(chosen.relations):
        cells = [score_of(entry["relations"][name][rule][str(k)]) for rule, k in MEASURES]
        assert chosen.hits.scores(chosen.system)[:, column] == pytest.approx(cells, abs=1e-6)


@pytest.mark.slow
def test_evidence_of_results_is_the_entry_that_was_made_of_them():
    """By all numbers of an entry of that time, which had them."""
    (evidence,) = gather(find([SMALL / "results"]))
    for protocol in PUBLISHED_FIRST:
        model = evidence.hits[protocol]
        entry = ENTRY["protocols"][protocol]
        assert_scores(model, entry, lambda cell: cell["score"][0])
        for name, group in model.hits.groups.items():
            then = entry["relations"][name]
            assert (group.total, len(group.places)) == (then["edges"], then["functions"])
            assert group.few == then["few_functions"]
            assert then["in_mean"] or name not in model.hits.counted
            heads = [
                (then[rule][str(k)]["layer"], then[rule][str(k)]["head"]) for rule, k in MEASURES
            ]
            assert [tuple(of.tolist()) for of in model.choice[name].reshape(-1, 2)] == heads
        if protocol != PUBLISHED:  # whose rivals and means are others now
            continue
        for kind, of_kind in ENTRY["baselines"][protocol].items():
            chosen = evidence.splits.baselines.hits[protocol][kind]
            assert_scores(chosen, of_kind, lambda cell: cell)
        then = ENTRY["differences"][protocol]
        differences = [then[rule][str(k)]["difference"][0] for rule, k in MEASURES]
        assert evidence.comparisons[protocol].mean.value == pytest.approx(differences, abs=1e-6)


@pytest.mark.slow
def test_results_are_reported():
    (findings,) = read_findings([SMALL / "results"])
    (subject,) = findings.subjects
    assert (findings.config, findings.functions, subject.edges) == ("python", 7, 81)
    assert (subject.name, findings.kinds[subject.name]) == ("mouse", "model")


@pytest.mark.slow
def test_results_stand_on_a_board():
    board = read([SMALL / "results"], SMALL / "zoo")
    assert [[row.model for row in table.claimed] for table in board.tables] == [["mouse"]]
    assert board.left_out == []
