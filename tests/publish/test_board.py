"""The board: what may stand in one table, ranks, what is left out, and its files."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil

import numpy as np
import pyarrow.parquet as parquet
import pytest
from support.attacks.ledgers import MASKED, RANKS, TEXTS, forged, forged_rows
from support.commands import run
from support.evidence.models import named, other_model, save
from support.files import contents, csv_rows

from codesyntax_dataset.build import build
from codesyntax_dataset.errors import CodeSyntaxError
from codesyntax_dataset.languages import language_of
from codesyntax_dataset.metadata import sha256sums
from codesyntax_dataset.protocol import BEST_BASELINE
from probing import mask, prefer, probe
from probing.evidence.protocols import MODEL
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.probe import Probing
from probing.instruments.attention.result import ProbeResult
from probing.models.location import TINY, TINY_DECODER
from probing.publish import board
from probing.publish.board import MOST_CLAIMED, read
from probing.report.board import save as save_board
from probing.runs.clusters import Clusters
from probing.runs.data import read_functions
from probing.runs.saved import ledger_path
from probing.stats import hits_file
from probing.stats.hits import Hits
from probing.stats.intervals import ranks_of

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """What follows from ledgers is kept there."""
    monkeypatch.setenv("CODESYNTAX_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def results(evidence):
    """The results of the tiny model."""
    return {"test": evidence.probed.test, "validation": evidence.probed.validation}


@pytest.fixture(scope="module")
def data(few_functions):
    return str(few_functions)


@pytest.fixture
def run_here(monkeypatch):
    """Boards find what is claimed when they run a model, which costs none; but for those in the returned list."""
    gone = []

    def ran(self, claimed):
        if claimed.model in gone:
            raise board.ModelError("it is gone")
        return dataclasses.replace(claimed, verified="main", claimed=claimed.means)

    monkeypatch.setattr(board._Reader, "_ran", ran)
    return gone


FIRST = ("held-out", ("first", 1))


def models(rows):
    return [row.model for row in rows]


def test_ranks_are_ranges_by_hand():
    """20 functions, all of which gain; and a model as good as `base` on average that no test can tell from either."""
    base = np.full(20, 2.0)
    swings = base + np.resize([9.0, -9.0], 20)
    assert ranks_of(np.stack([base, base + 1, swings])) == [(2, 3), (1, 2), (1, 3)]
    assert ranks_of(base[None]) == [(1, 1)]


def test_claimed_rows_take_no_part_in_ranks_and_tests(results, data, tmp_path, run_here):
    """Two models that ran have the ranks 1 and 2, beside ten copies of the loser, which are gone."""
    loser, winner = named(results, "user/loser"), other_model(results, "user/winner", 0.9)
    for model in (loser, winner):
        save(model, tmp_path / "sent")
    (alone,) = read([tmp_path / "sent"], data, verify=True).tables
    for number in range(MOST_CLAIMED):
        run_here.append(f"copies/number-{number}")
        save(named(results, run_here[-1]), tmp_path / "sent")
    (table,) = read([tmp_path / "sent"], data, verify=True).tables
    assert models(table.verified) == ["user/loser", "user/winner"]
    assert len(table.claimed) == MOST_CLAIMED
    assert [row.ranks[FIRST] for row in table.verified] == [(2, 2), (1, 1)]
    assert all(row.ranks == {} for row in table.claimed)
    for before, now in zip(alone.verified, table.verified):
        assert before.differences == now.differences
        assert before.ranks == now.ranks


@pytest.mark.parametrize("repositories, ranks", [(3, [(1, 2), (1, 2)]), (6, [(1, 1), (2, 2)])])
def test_ranks_are_over_what_intervals_are_over(repositories, ranks, tmp_path):
    """Of 24 functions, one model finds all edges and the other none: three repositories are too few to tell them
    apart, and six are enough."""
    over = Clusters("repository", np.arange(24) % repositories)
    rows = []
    for number in (1, 0):
        found = {MODEL: np.full((1, 24), number), BEST_BASELINE: np.zeros((1, 24), int)}
        hits = Hits.of_rows(np.arange(24), ["a"] * 24, found, [("first", 1)], over=over)
        kept = tmp_path / f"{number}.npz"
        hits_file.save(kept, {"held-out": hits}, {"chosen": {"held-out": {}}})
        cell = "held-out", ("first", 1)
        means = {cell: hits.mean(MODEL).at(0)}
        differences = {cell: hits.mean(MODEL, BEST_BASELINE).at(0)}
        about = {"instrument": "attention"}
        rows.append(board.BoardRow("sent", kept, about, means, differences, verified="main"))
    assert [[*row.ranks.values()] for row in board._with_ranks(rows)] == [[each] for each in ranks]


def test_p_is_corrected_for_the_models_that_ran(results, data, tmp_path, run_here):
    """Of two models, the smaller p is doubled (Holm)."""
    save(named(results, "user/base"), tmp_path / "one")
    (alone,) = read([tmp_path / "one"], data, verify=True).tables
    save(other_model(results, "user/other", 0.9), tmp_path / "one")
    (table,) = read([tmp_path / "one"], data, verify=True).tables
    known = {row.model: row for row in table.verified}
    uncorrected = {
        name: board.BoardRow.of("file", row.kept, board.hits_file.about_in(row.kept))
        .differences[FIRST]
        .p
        for name, row in known.items()
    }
    smaller = min(uncorrected, key=uncorrected.get)
    assert known[smaller].differences[FIRST].p == pytest.approx(min(1, 2 * uncorrected[smaller]))
    assert alone.verified[0].differences[FIRST].p == pytest.approx(uncorrected["user/base"])


def test_a_table_has_what_compares_and_nothing_else(results, data, tmp_path):
    others = {
        "user/base": {},
        "user/begins": {"begin": 7},  # each decoder has a token of its own in front
        "user/dtype": {"dtype": "bfloat16"},
        "user/length": {"max_length": 510},
    }
    for name, settings in others.items():
        save(named(results, name, **settings), tmp_path / "sent")
    found = read([tmp_path / "sent"], data)
    assert found.left_out == []
    tables = sorted(sorted(models(table.rows)) for table in found.tables)
    assert tables == [["user/base", "user/begins"], ["user/dtype"], ["user/length"]]


def test_at_most_ten_claims_of_an_owner_are_shown_the_newest(results, data, tmp_path, monkeypatch):
    """Older ones are not read; others have their own ten."""
    for number in range(MOST_CLAIMED + 3):
        for file in save(named(results, f"user/model-{number:02}"), tmp_path / "sent"):
            for path in (file, ledger_path(file)):
                os.utime(path, (number, number))
    save(named(results, "other/model"), tmp_path / "sent")
    opened = []
    load = ProbeResult.from_file
    monkeypatch.setattr(
        ProbeResult, "from_file", classmethod(lambda cls, path: opened.append(path) or load(path))
    )
    found = read([tmp_path / "sent"], data)
    (table,) = found.tables
    shown = ["other/model", *(f"user/model-{number:02}" for number in range(3, 13))]
    assert models(table.claimed) == shown
    assert len(opened) == 2 * len(shown)
    assert len(found.left_out) == 3
    assert {reason for _, reason in found.left_out} == {
        "10 newer ones of this owner are shown as claimed"
    }


@pytest.mark.long
def test_neither_folders_nor_settings_are_a_way_around_ten_claims(results, data, tmp_path):
    """Folders that name other tables, and settings that make them. Local models, which have no owner, do not share ten."""
    save(named(results, "local"), tmp_path / "sent")
    for number in range(MOST_CLAIMED + 1):
        name = f"python{number}.attention.{number:012x}.{number:012x}"
        folder = tmp_path / f"sent/submissions/user/model-{number}/{name}"
        shutil.copytree(tmp_path / "sent", folder, ignore=lambda *_: ["submissions"])
        save(named(results, f"local-{number}"), tmp_path / "own")
        save(named(results, f"user/{number}", seed=number), tmp_path / "odd")
    assert len(read([tmp_path / "sent"], data)) == MOST_CLAIMED
    assert len(read([tmp_path / "odd"], data)) == MOST_CLAIMED
    assert len(read([tmp_path / "own"], data)) == MOST_CLAIMED + 1


def test_a_ledger_is_read_once(results, data, tmp_path, monkeypatch):
    """Another board of it opens none, and has the same bytes; one that was interrupted goes on where it was."""
    for name in ("user/one", "user/two", "user/three"):
        save(named(results, name), tmp_path / "sent")
    kept, read_ledgers = board.hits_file.save, []

    def interrupted(path, tables, about):
        if len(read_ledgers) == 2:
            raise KeyboardInterrupt
        read_ledgers.append(about["model"])
        kept(path, tables, about)

    with monkeypatch.context() as patch:
        patch.setattr(board.hits_file, "save", interrupted)
        with pytest.raises(KeyboardInterrupt):
            read([tmp_path / "sent"], data)
    opened = []
    load = ProbeResult.from_file
    monkeypatch.setattr(
        ProbeResult, "from_file", classmethod(lambda cls, path: opened.append(path) or load(path))
    )
    save_board(read([tmp_path / "sent"], data), tmp_path / "first")
    assert len(opened) == 2  # the splits of the third
    save_board(read([tmp_path / "sent"], data), tmp_path / "second")
    assert len(opened) == 2
    assert contents(tmp_path / "first") == contents(tmp_path / "second")
    monkeypatch.setenv("CODESYNTAX_CACHE", "")
    save_board(read([tmp_path / "sent"], data), tmp_path / "third")
    assert contents(tmp_path / "first") == contents(tmp_path / "third")
    (page, *_) = (tmp_path / "first/models").iterdir()
    assert str(tmp_path) not in "".join(
        file.read_text() for file in (page, tmp_path / "first/index.html")
    )


def test_the_numbers_are_those_of_reports(evidence, data, tmp_path):
    """On functions that the model could read, all of them."""
    save(
        named(
            {"test": evidence.probed.test, "validation": evidence.probed.validation}, "user/base"
        ),
        tmp_path / "sent",
    )
    page = save_board(read([tmp_path / "sent"], data), tmp_path / "board")
    (file,) = page.with_name("tables").iterdir()
    rows = {(row["name"], row["rule"], row["k"]): row for row in csv_rows(file)}
    for protocol, compared in evidence.comparisons.items():
        mean = compared.mean
        for place, (rule, k) in enumerate(compared.hits.measures):
            if ("user/base", rule, str(k)) in rows:
                row = rows["user/base", rule, str(k)]
                ends = ("", ", low", ", high", ", p")
                said = [float(row[f"{protocol}: Δ{end}"]) for end in ends]
                assert said == pytest.approx([part[place] for part in mean[:4]], abs=1e-4)
                rival = float(rows["combined baseline", rule, str(k)][f"{protocol}: score"])
                score = float(row[f"{protocol}: score"])
                assert score - rival == pytest.approx(mean.value[place], abs=1e-3)
    baselines = {name for name, *_ in rows if name.endswith(" baseline")}
    assert {"offset baseline", "keyword baseline", "combined baseline"} <= baselines


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """A folder with honest results of three instruments on Ruby, these by instrument, and their data."""
    folder = tmp_path_factory.mktemp("three")
    data, sent = folder / "codesyntax", folder / "sent"
    build("sample", ["ruby", "ruby_pairs"], data)
    types = list(language_of("ruby").node_types[:2])
    made = {
        "attention": {
            split: probe(TINY, data, "ruby", split, output=sent) for split in ("test", "validation")
        },
        "masking": {"test": mask(TINY, data, "ruby", node_types=types, draws=1, output=sent)},
        "preference": {"test": prefer(TINY_DECODER, data, "ruby_pairs", output=sent)},
    }
    return sent, made, str(data)


def test_three_instruments_stand_on_one_board(three, tmp_path):
    sent, made, data = three
    found = read([sent], data)
    assert [table.shared["instrument"] for table in found.tables] == [*made]
    assert found.left_out == []
    page = save_board(found, tmp_path / "board").read_text()
    assert "combined baseline" in page
    assert "restored" in page
    assert "surface rival" in page


def forgeries_of(made):
    """Instrument -> the forged results of each attack."""
    probed = made["attention"]
    ranks = (forged(attack, *(result.ledger for result in probed.values())) for attack in RANKS)
    yield "attention", [dict(zip(probed, map(ProbeResult.from_ledger, of))) for of in ranks]
    for instrument, attacks in (("masking", MASKED), ("preference", TEXTS)):
        result = made[instrument]["test"]
        ledgers = (
            dataclasses.replace(result.ledger, rows=forged_rows(attack, result.ledger.rows))
            for attack in attacks
        )
        yield instrument, [{"test": type(result).from_ledger(ledger)} for ledger in ledgers]


def values(means):
    return {cell: estimate.value for cell, estimate in means.items()}


def digests(results):
    return {split: result.ledger.digest() for split, result in results.items()}


def ran(folder, data):
    """The verified row of the only submission in a folder."""
    (table,) = read([folder], data, verify=True).tables
    (row,) = table.verified
    return row


@pytest.mark.long
def test_no_forged_ledger_gains(three, tmp_path):
    """Of each instrument, whatever is claimed: what came out is the same."""
    _, made, data = three
    for instrument, forgeries in forgeries_of(made):
        save(made[instrument], tmp_path / instrument)
        honest = ran(tmp_path / instrument, data)
        assert values(honest.claimed) == values(honest.means)
        for number, results in enumerate(forgeries):
            save(results, tmp_path / f"{instrument}-{number}")
            row = ran(tmp_path / f"{instrument}-{number}", data)
            assert values(row.means) == values(honest.means)
            assert digests(results) != digests(made[instrument])


def altered(results, split="test", **columns):
    """The results, with other columns of a ledger."""
    ledger = dataclasses.replace(results[split].ledger, **columns)
    return {**results, split: ProbeResult.from_ledger(ledger)}


def of_functions_that_are_not_there(results):
    function = results["test"].ledger.function + 1000
    return altered(results, function=function)


def of_other_relations(results):
    ledger = results["test"].ledger
    return altered(results, relations=[f"{name}x" for name in ledger.relations])


def of_half_the_edges(results):
    ledger = results["test"].ledger
    return {**results, "test": ProbeResult.from_ledger(ledger.take(np.arange(0, len(ledger), 2)))}


def test_a_title_says_if_near_copies_are_unknown(results, data, tmp_path):
    """As they are in data that were built before their column was."""
    save(results, tmp_path / "sent")
    older = shutil.copytree(data, tmp_path / "older")
    for file in older.rglob("*.parquet"):
        parquet.write_table(parquet.read_table(file).drop(["twin_of"]), file)
    (older / "SHA256SUMS").write_text(sha256sums(older))
    titles = []
    for place in (data, str(older)):
        page = save_board(read([tmp_path / "sent"], place), tmp_path / "board").read_text()
        titles += re.findall(r"<h2[^>]*>python, attention, head-to-dependent: \d+ (.*?)</h2>", page)
    assert titles == [
        "functions",
        "functions; intervals and p over functions, of which near copies are unknown",
    ]


def test_a_title_counts_what_is_in_the_data(results, data, tmp_path):
    """Whatever a submission says that its model did not read."""
    sent = named(results, "user/odd")
    skips = {"more than 48 sub-tokens": 10**6}
    for split, result in sent.items():
        ledger = result.ledger
        ledger = dataclasses.replace(ledger, settings={**ledger.settings, "skips": skips})
        sent[split] = ProbeResult.from_ledger(ledger)
    save(sent, tmp_path / "sent")
    page = save_board(read([tmp_path / "sent"], data), tmp_path / "board").read_text()
    (size,) = re.findall(r"<h2[^>]*>python, attention, head-to-dependent: (.*?) functions", page)
    assert size == str(len(read_functions(data, "python", "test").table))


def set_to(**settings):
    return lambda results: named(results, settings.pop("model", "user/odd"), **settings)


ODD = {
    "functions that are not there": (of_functions_that_are_not_there, "not those of the data"),
    "other relations": (of_other_relations, "not those of the data"),
    "half the edges": (of_half_the_edges, "not those of the data"),
    "other labels": (set_to(labels="0" * 12), "its labels are not those of the data"),
    "a control": (set_to(control="random-weights", seed=0), "a control is not a model"),
    "a part": (set_to(limit=5), "a partial run is not published"),
    "a climbing name": (set_to(model="../up"), "model is '../up', expected USER/MODEL"),
    "a name in Cyrillic": (set_to(model="us\u0435r/odd"), "expected USER/MODEL"),
    "HTML in a name": (set_to(model="<b>best</b>"), "expected USER/MODEL"),
    "no revision": (set_to(revision="main"), "expected a commit or a SHA-256"),
    "no such config": (set_to(config="cobol"), "config is 'cobol'"),
    "an advertisement": (set_to(dtype="float32 \x1b[2Jbuy"), "no plain text"),
    "one split": (lambda results: {"test": named(results, "user/odd")["test"]}, "no result on"),
}


@pytest.mark.parametrize("change, reason", ODD.values(), ids=ODD)
def test_what_cannot_stand_on_a_board_is_left_out(change, reason, results, data, tmp_path):
    save(named(results, "user/good"), tmp_path / "sent")
    save(change(named(results, "user/odd")), tmp_path / "odd")
    found = read([tmp_path / "sent", tmp_path / "odd"], data)
    assert [models(table.claimed) for table in found.tables] == [["user/good"]]
    assert found.left_out
    assert all(re.search(reason, said) for _, said in found.left_out)
    assert all(said.isprintable() for _, said in found.left_out)
    assert len(read([tmp_path / "sent", tmp_path / "odd"], data).left_out) == len(found.left_out)


def test_files_that_are_no_ledgers_are_left_out(results, data, tmp_path):
    folder = tmp_path / "sent"
    save(named(results, "user/good"), folder)
    (ledger, *_) = folder.glob("*.ledger.parquet")
    whole = ledger.read_bytes()
    for name, content in {
        "cut": whole[:-9],
        "none": b"PAR1",
        "empty": b"",
        "file<img src=x>\n\u202e|": b"{}",
    }.items():
        (folder / f"{name}.ledger.parquet").write_bytes(content)
    os.mkfifo(folder / "pipe.ledger.parquet")
    (folder / "link.ledger.parquet").symlink_to(ledger)
    (folder / "folder").symlink_to(
        shutil.copytree(
            folder.parent / "sent",
            tmp_path / "elsewhere",
            symlinks=True,
            ignore=lambda *_: ["pipe.ledger.parquet"],
        )
    )
    ran = run("board", folder, "--data", data, "--output", tmp_path / "board")
    *lines, last = ran.stderr.splitlines()
    assert last == "verified: 0, claimed: 1, tables: 1, left out: 6"
    reasons = dict(re.fullmatch(r"left out (.*?\.parquet): (.*)", line).groups() for line in lines)
    assert reasons["sent/link.ledger.parquet"] == reasons["sent/pipe.ledger.parquet"]
    assert "expected a regular file" in reasons["sent/pipe.ledger.parquet"]
    pages = [(tmp_path / "board" / name).read_text() for name in ("index.html", "report.md")]
    assert all("<img" not in page and str(tmp_path) not in page for page in pages)


def test_nothing_can_stand_on_a_board_of_nothing(tmp_path, data):
    (tmp_path / "empty").mkdir()
    for source, said in (
        ("n" * 300, "no folder n"),
        (tmp_path / "empty", "there are no ledgers in"),
    ):
        with pytest.raises(CodeSyntaxError, match=said):
            read([str(source)], data)


def test_a_board_of_other_data_has_none_of_these(results, data, fewer_functions, tmp_path):
    """Nor does what is kept of it tell anything about the board of their own data, before or after."""
    save(results, tmp_path / "sent")
    for _ in range(2):
        with pytest.raises(CodeSyntaxError, match="its labels are not those of the data"):
            read([tmp_path / "sent"], str(fewer_functions))
        assert len(read([tmp_path / "sent"], data)) == 1


def test_two_ledgers_of_a_split_are_no_submission(results, data, tmp_path):
    folder = tmp_path / f"sent/submissions/user/model/python.attention.{0:012x}.{0:012x}"
    save(named(results, "user/model"), folder)
    save(other_model(results, "user/model", 0.9), tmp_path / "other")
    (ledger,) = (tmp_path / "other").glob("*.test.*.parquet")
    shutil.copy(ledger, folder / "again.ledger.parquet")
    with pytest.raises(CodeSyntaxError, match="there are two ledgers of the split test"):
        read([tmp_path / "sent"], data)


def test_a_model_that_ran_stands_once(results, data, tmp_path, monkeypatch):
    """Whether it is claimed by its commit or by the digest of its weights."""
    for revision in ("0" * 40, "0" * 64):
        save(named(results, "user/model", revision=revision), tmp_path / "sent")
    ran = named(results, "user/model", revision="0" * 40)
    monkeypatch.setattr(board, "branch_of", lambda model, commit: "main")
    monkeypatch.setattr(board, "run_kept", lambda experiment: ran[experiment.data.split])
    monkeypatch.setattr(board, "key_of", lambda experiment: experiment.data.split)
    monkeypatch.setattr(board._Reader, "_session", lambda *_: Gone())
    monkeypatch.setattr(Probing, "functions", [], raising=False)
    found = read([tmp_path / "sent"], data, verify=True)
    assert [models(table.rows) for table in found.tables] == [["user/model"]]
    assert [re.sub(" as .*", "", said) for _, said in found.left_out] == [
        "of the same model and settings"
    ]


def test_a_lie_stands_beside_what_came_out(results, data, tmp_path, monkeypatch):
    """The numbers of a row are those of the board's own run; a forgery gains nothing."""
    honest = named(results, "user/model")
    save(honest, tmp_path / "honest")
    save(other_model(results, "user/model", 0.9), tmp_path / "forged")
    ledger = RankLedger.load(next((tmp_path / "forged").glob("*.test.*.parquet")))
    assert not ledger.same_ranks(honest["test"].ledger)
    monkeypatch.setattr(board, "branch_of", lambda model, commit: "main")
    monkeypatch.setattr(board, "run_kept", lambda experiment: honest[experiment.data.split])
    monkeypatch.setattr(board, "key_of", lambda experiment: experiment.data.split)
    monkeypatch.setattr(board._Reader, "_session", lambda *_: Gone())
    (truth,) = read([tmp_path / "honest"], data, verify=True).tables
    (lie,) = read([tmp_path / "forged"], data, verify=True).tables
    for cell, honest_mean in truth.verified[0].means.items():
        assert lie.verified[0].means[cell][:3] == honest_mean[:3]
    assert lie.verified[0].claimed[FIRST].value > lie.verified[0].means[FIRST].value + 1
    page = save_board(read([tmp_path / "forged"], data, verify=True), tmp_path / "board")
    (file,) = page.with_name("tables").iterdir()
    (row,) = (
        row
        for row in csv_rows(file)
        if (row["name"], row["rule"], row["k"]) == ("user/model", "first", "1")
    )
    assert float(row["held-out: score"]) == pytest.approx(
        truth.verified[0].means[FIRST].value, abs=1e-4
    )
    assert re.search(rf"held-out {lie.verified[0].claimed[FIRST].value:.1f}", row["claimed"])
    assert row["branch"] == "main"


class Gone:
    """A session of a model that nobody loads."""

    contents = ""

    def is_of(self, revision):
        return True
