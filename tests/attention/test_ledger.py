"""The rank ledger: files, order, damage."""

from __future__ import annotations

import copy
import errno
import hashlib
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from codesyntax_dataset.errors import LedgerError
from probing.instruments.attention import ledger
from probing.instruments.attention.ledger import RankLedger


def ledger_of(functions, layers=2, heads=3, seed=0, settings=None):
    rng = np.random.default_rng(seed)
    edges = len(functions)
    columns = {
        name: rng.integers(0, 90, edges).astype(np.int32)
        for name in ("head", "first", "last", "tokens")
    }
    return RankLedger(
        relations=["If:if->test", "Call:func->args"],
        function=np.array(functions, np.int32),
        relation=rng.integers(0, 2, edges).astype(np.int32),
        ranks=rng.integers(0, 256, (3, edges, layers, heads)).astype(np.uint8),
        settings=settings or {"settings": {"model": "m"}},
        **columns,
    )


def content(ledger):
    names = np.asarray(ledger.relations)[ledger.relation]
    columns = {**ledger.columns, "relation": names, "ranks": np.asarray(ledger.ranks)}
    return ledger.settings, {name: column.tolist() for name, column in columns.items()}


def same(a, b):
    return content(a) == content(b)


@pytest.mark.parametrize("layers, heads", [(2, 3), (1, 1)])
def test_round_trip_and_same_bytes(tmp_path, layers, heads):
    ledger = ledger_of([0, 0, 1, 4, 4], layers, heads)
    ledger.save(tmp_path / "a.parquet")
    again = RankLedger.load(tmp_path / "a.parquet")
    assert same(again, ledger)
    again.save(tmp_path / "b.parquet")
    RankLedger.load(tmp_path / "b.parquet").save(tmp_path / "c.parquet")
    assert (tmp_path / "b.parquet").read_bytes() == (tmp_path / "c.parquet").read_bytes()


def test_a_folder_whose_name_has_a_colon_is_no_address(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("cuda:0").mkdir()
    ledger = ledger_of([0, 1])
    ledger.save("cuda:0/a.parquet")
    assert same(RankLedger.load("cuda:0/a.parquet"), ledger)


def test_a_byte_stands_where_the_format_says(tmp_path):
    """At place (rule * layers + layer) * heads + head of the column `ranks`, read by pyarrow alone."""
    ledger = ledger_of([0, 1, 2], layers=2, heads=3)
    ledger.save(tmp_path / "a.parquet")
    cells = pq.read_table(tmp_path / "a.parquet")["ranks"][1].as_py()
    assert cells[(2 * 2 + 1) * 3 + 2] == ledger.ranks[2, 1, 1, 2]
    assert len(cells) == 3 * 2 * 3


def test_the_digest_is_that_of_the_content():
    """Its settings, names, numbers and ranks, these for 4096 edges after the other; whatever the order of the names."""
    ledger = ledger_of(np.arange(5000))
    names = ["Call:func->args", "If:if->test"]  # sorted
    header = json.dumps(
        {"relations": names, "settings": {"settings": {"model": "m"}}, "shape": [3, 5000, 2, 3]}
    ).encode()
    digest = hashlib.sha256(len(header).to_bytes(8, "little") + header)
    digest.update(1 - ledger.relation)
    for name in ("function", "head", "first", "last", "tokens"):
        digest.update(getattr(ledger, name))
    digest.update(ledger.ranks[:, :4096].tobytes() + ledger.ranks[:, 4096:].tobytes())
    assert ledger.digest() == digest.hexdigest()


def test_sorted_keeps_the_edges_of_a_function_in_order():
    ledger = ledger_of([3, 3, 1, 1, 2])
    order = [2, 3, 4, 0, 1]
    expected = ledger.ranks[:, order]
    assert ledger.sorted().function.tolist() == [1, 1, 2, 3, 3]
    np.testing.assert_array_equal(ledger.sorted().ranks, expected)
    np.testing.assert_array_equal(ledger.sorted().head, ledger.head[order])


def test_parts_of_different_runs_do_not_mix():
    with pytest.raises(LedgerError, match="do not belong together"):
        RankLedger.concatenate(
            [ledger_of([0]), ledger_of([1], settings={"settings": {"model": "other"}})]
        )


def test_counts_are_hand_counted():
    """Three edges, one head: ranks 0, 4, 4 of the first token."""
    ledger = ledger_of([0, 0, 1], layers=1, heads=1)
    ledger.relation[:] = 0
    ledger.ranks[0, :, 0, 0] = [0, 4, 4]
    counts = ledger.counts(edges_at_once=2)
    assert counts.functions == 2
    assert counts.hits("If:if->test", "first")[0, 0, :6].tolist() == [1, 1, 1, 1, 3, 3]


DAMAGE = {
    "missing": lambda path: path.unlink(),
    "text": lambda path: path.write_text("no parquet"),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-20]),
    "other parquet": lambda path: pq.write_table(pa.table({"head": [1, 2]}), path),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_files_are_refused(tmp_path, damage):
    path = _saved(tmp_path)
    DAMAGE[damage](path)
    said = "is not there" if damage == "missing" else "no rank ledger"
    with pytest.raises(LedgerError, match=said):
        RankLedger.load(path)


def _saved(tmp_path):
    ledger_of([0, 1]).save(tmp_path / "good.parquet")
    return tmp_path / "good.parquet"


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    ledger_of([0, 1]).save(tmp_path / "a.parquet")
    before = (tmp_path / "a.parquet").read_bytes()

    def full(writer, table, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(LedgerError, match="No space left"):
        ledger_of([2]).save(tmp_path / "a.parquet")
    assert [file.name for file in tmp_path.iterdir()] == ["a.parquet"]
    assert (tmp_path / "a.parquet").read_bytes() == before


@pytest.mark.parametrize("at_once", [1, 3, 7, 4096])
def test_parts_of_a_file_are_the_ledger(tmp_path, monkeypatch, at_once):
    """Whatever the size of the parts and of the file's row groups, and whichever edges are taken."""
    # not as many as rules
    whole = ledger_of(sorted(np.random.default_rng(1).integers(0, 9, 40).tolist()), heads=4)
    whole.save(tmp_path / "a.parquet")
    table = pq.read_table(tmp_path / "a.parquet")
    pq.write_table(table, tmp_path / "b.parquet", row_group_size=5)
    mask = np.random.default_rng(2).random(40) < 0.5
    for file in ("a.parquet", "b.parquet"):
        stored = RankLedger.open(tmp_path / file)
        for one, other in ((stored, whole), (stored.take(mask), whole.take(mask))):
            again = one.take(np.arange(2, len(one))), other.take(np.arange(2, len(other)))
            for mine, theirs in (
                (one, other),
                again,
                (one.only(np.array([3, 4])), other.only(np.array([3, 4]))),
            ):
                parts = list(mine.parts(at_once))
                assert [part.stop - part.start for part, _ in parts[:-1]] == [at_once] * (
                    len(parts) - 1
                )
                assert same(mine, theirs)
                assert mine.digest() == theirs.digest()
                counted, expected = mine.counts(at_once), theirs.counts()
                assert counted.counts.keys() == expected.counts.keys()
                assert all(
                    np.array_equal(counted.counts[name], expected.counts[name])
                    for name in counted.counts
                )
        assert same(stored.take(np.array([7, 3])), whole.take(np.array([7, 3])))


@pytest.mark.parametrize("most", [0, 1 << 28])
@pytest.mark.parametrize("at_once", [1, 7, 4096])
def test_the_ledger_of_parts_in_files_is_that_of_parts_in_memory(
    tmp_path, monkeypatch, most, at_once
):
    """Parts with every third function, as of shards; the file of the whole is that of one process."""
    monkeypatch.setattr(ledger, "MOST_IN_MEMORY", most)
    monkeypatch.setattr(ledger, "_EDGES_OF_A_SOURCE", 2)
    functions = np.sort(np.random.default_rng(1).integers(0, 12, 50))
    whole = ledger_of(functions.tolist())
    whole.relation[0] = 0  # relations are in the order in which they come
    stored = []
    for number in range(3):
        whole.take(functions % 3 == number).save(tmp_path / f"{number}.parquet")
        stored.append(RankLedger.open(tmp_path / f"{number}.parquet"))
    joined = RankLedger.concatenate(stored)
    assert isinstance(joined.ranks, np.ndarray) == bool(most)
    parts = [ranks for _, ranks in joined.parts(at_once)]
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), whole.ranks)
    some = np.arange(3, 40, 2)
    assert same(joined.take(some), whole.take(some))
    joined.save(tmp_path / "joined.parquet")
    whole.save(tmp_path / "whole.parquet")
    assert (tmp_path / "joined.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    for number in range(3):
        (tmp_path / f"{number}.parquet").unlink()
    assert same(joined, whole)


def test_counts_of_parts_are_added():
    """Reasons are in order; a rule without a tie stays."""
    made = {"settings": {"model": "m"}}
    skips = [{"long": 1}, {"empty": 2, "long": 3}]
    parts = [
        ledger_of([number], settings={**made, "skips": each, "ties": {"any": 0, "first": number}})
        for number, each in enumerate(skips)
    ]
    whole = RankLedger.concatenate(parts)
    assert whole.settings == {
        **made,
        "skips": {"empty": 2, "long": 4},
        "ties": {"any": 0, "first": 1},
    }
    assert [*whole.settings["skips"]] == ["empty", "long"]


def test_a_ledger_goes_to_another_process_with_its_ranks(tmp_path):
    ledger_of([0, 1]).save(tmp_path / "a.parquet")
    sent = copy.deepcopy(RankLedger.open(tmp_path / "a.parquet"))  # takes it apart as sending does
    (tmp_path / "a.parquet").unlink()
    assert same(sent, ledger_of([0, 1]))


def test_ranks_of_chosen_heads_are_gathered_at_once():
    ledger = ledger_of([0, 0, 1, 2], layers=2, heads=3)
    layer, head = (np.random.default_rng(0).integers(0, most, (5, 3, 2)) for most in (2, 3))
    found = ledger.of_heads(layer, head)
    for guess, rule, edge in np.ndindex(found.shape):
        place = guess, rule, ledger.relation[edge]
        assert found[guess, rule, edge] == ledger.ranks[rule, edge, layer[place], head[place]]


@pytest.mark.parametrize("change", ["replaced", "written to", "gone", "flipped"])
def test_a_file_that_changes_under_us_gives_no_number(tmp_path, change):
    path = tmp_path / "a.parquet"
    ledger_of([0] * 5000).save(path)
    ledger = RankLedger.open(path)
    parts = ledger.parts(1000)
    next(parts)
    if change == "replaced":
        ledger_of([0] * 5000, seed=1).save(path)
    elif change == "gone":
        path.unlink()
    else:
        data = bytearray(path.read_bytes())
        data[len(data) // 2 if change == "flipped" else -1] ^= 1
        path.write_bytes(data)
    if change in ("written to", "flipped"):
        with pytest.raises(LedgerError, match="was written to while"):
            list(parts)
    reason = "is not there" if change == "gone" else "was written to while"
    with pytest.raises(LedgerError, match=reason):
        ledger.counts()


def test_ranks_of_another_size_are_refused(tmp_path):
    path = _saved(tmp_path)
    table = pq.read_table(path)
    ranks = [cells.as_py()[:-1] for cells in table["ranks"]]
    narrower = table.set_column(
        table.schema.get_field_index("ranks"), "ranks", [pa.array(ranks, pa.binary(17))]
    )
    pq.write_table(narrower, path)
    with pytest.raises(LedgerError, match="ranks of 17 bytes, expected 18"):
        RankLedger.open(path)


@pytest.mark.parametrize("replaced", [True, False])
def test_a_ledger_that_replaces_its_own_file_reads_the_new_one(tmp_path, replaced):
    path = tmp_path / "a.parquet"
    ledger_of([0, 1]).save(path)
    ledger = RankLedger.open(path)
    stored = ledger.ranks
    ledger.save(path if replaced else tmp_path / "b.parquet")
    assert (ledger.ranks is not stored) == replaced
    assert same(ledger.take(np.arange(2)), ledger_of([0, 1]))
