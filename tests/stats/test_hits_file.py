"""Files of hits of any instrument: read back as they were, with any reader of Parquet."""

from __future__ import annotations

import io
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.evidence.hits_files import in_parquet

from codesyntax_dataset.errors import EntryError
from probing.stats.hits import Hits
from probing.stats.hits_file import HitsFile, Layout, save

COUNTS = Layout(("model", "offset"), (("first", 1), ("first", 3)))
BITS = Layout(("words", "both"), ("bits",), unit="millionths")


def counted():
    """Functions 2, 5 and 9; `b` is not in the last."""
    model = np.array([[1, 0, 2, 0, 1], [1, 1, 2, 1, 1]])
    groups = ["a", "b", "a", "b", "a"]
    sums = {"model": model, "offset": 0 * model}
    return Hits.of_rows(
        np.array([2, 2, 5, 5, 9]), groups, sums, COUNTS.measures, np.array([2, 1, 2, 1, 3])
    )


def same(first, second):
    return list(first.content()) == list(second.content())


def test_tables_come_back_as_they_were():
    """One lacks a group, and so has a function without any."""
    tables = {"all": counted(), "b": counted().where(groups=["b"])}
    data = save(tables, COUNTS, {"model": "user/base"})
    file = HitsFile.open(data)
    assert file.about == {"model": "user/base"}
    again = file.tables(COUNTS)
    assert list(again) == ["all", "b"] and all(same(again[name], tables[name]) for name in tables)
    assert again["b"].clusters.tolist() == [2, 5, 9] and again["b"].of("b").tolist() == [2, 5]
    assert save(again, COUNTS, {"model": "user/base"}) == data


def test_rows_by_hand():
    columns = pq.read_table(io.BytesIO(save({"all": counted()}, COUNTS, {}))).to_pydict()
    assert columns["group"] == [0, 0, 0, 1, 1] and columns["cluster"] == [2, 5, 9, 2, 5]
    assert columns["n"] == [2, 2, 3, 1, 1]
    assert (columns["model first 1"], columns["model first 3"]) == (
        [1, 2, 1, 0, 0],
        [1, 2, 1, 1, 1],
    )


def test_amounts_may_be_more_than_things_or_negative():
    """Such as millionths of bits, which are no counts."""
    sums = {"words": np.array([[1, 2, -(10**9)]]), "both": np.array([[10**9, 0, 3]])}
    hits = Hits.of_rows(np.arange(3), ["a"] * 3, sums, ("bits",), unit="millionths")
    (again,) = HitsFile.open(save({"bits": hits}, BITS, {})).tables(BITS).values()
    assert same(again, hits)


def test_a_file_of_another_layout_is_refused():
    data = save({"all": counted()}, COUNTS, {})
    with pytest.raises(EntryError, match="no hits file, or a damaged one .other columns"):
        HitsFile.open(data).tables(BITS)


def listed(array):
    kind = pa.list_(pa.field("element", pa.int32(), nullable=False))
    return pa.array([[value] for value in array.to_pylist()], kind)


OTHER_COLUMNS = {
    "texts": lambda array: array.cast(pa.string()),
    "dates, the same 32 bits": lambda array: array.cast(pa.date32()),
    "numbers that are not whole": lambda array: array.cast(pa.float32()),
    "long numbers": lambda array: array.cast(pa.int64()),
    "numbers of which some may be missing": lambda array: array,
    "lists": listed,
    "a column within it": lambda array: pa.StructArray.from_arrays([array], ["n"]),
}


def with_column(change, name, nullable=False):
    """A file in which a column is another one, or stands there twice if there is no `change`."""
    data = save({"all": counted()}, COUNTS, {})
    text = pq.read_metadata(io.BytesIO(data)).metadata[b"codesyntax"]
    table = pq.read_table(io.BytesIO(data))
    place = table.column_names.index(name)
    if change is None:
        table = table.append_column(table.field(place), table.column(place))
    else:
        array = change(table.column(place).combine_chunks())
        table = table.set_column(place, pa.field(name, array.type, nullable=nullable), array)
    return in_parquet(table, text)


@pytest.mark.parametrize("name", COUNTS.columns)
def test_each_column_has_its_type(name):
    honest = HitsFile.open(with_column(lambda array: array, name)).tables(COUNTS)
    assert same(honest["all"], counted())
    for kind, change in [*OTHER_COLUMNS.items(), ("a column twice", None)]:
        file = HitsFile.open(with_column(change, name, nullable="missing" in kind))
        with pytest.raises(EntryError, match="other columns"):
            file.tables(COUNTS)


NONE = "names of tables or groups that are none, or twice"


@pytest.mark.parametrize("part", ["tables", "groups"])
@pytest.mark.parametrize(
    "names, reason",
    [
        ([], NONE),
        (["a", "a"], NONE),
        (["a\x1b", "b"], NONE),
        (["a", "b", "c"], "not of all of .*c"),
    ],
)
def test_names_that_are_none_or_twice_or_without_rows_are_refused(part, names, reason):
    file = HitsFile.open(save({"all": counted()}, COUNTS, {}))
    forged = replace(file, names={**file.names, part: names})
    with pytest.raises(EntryError, match=reason):
        forged.tables(COUNTS)


CHUNK = ("compression", "num_values", "total_compressed_size")


@pytest.fixture
def claimed(monkeypatch):
    """A file, and what its metadata say of each column, which may be changed: they say what they like."""
    data = save({"all": counted()}, COUNTS, {})
    real = pq.ParquetFile(io.BytesIO(data))
    chunks = []
    for number in range(real.metadata.num_columns):
        chunk = real.metadata.row_group(0).column(number)
        chunks.append(SimpleNamespace(**{name: getattr(chunk, name) for name in CHUNK}))
    group = SimpleNamespace(column=chunks.__getitem__)
    metadata = SimpleNamespace(
        num_columns=real.metadata.num_columns,
        num_row_groups=1,
        num_rows=real.metadata.num_rows,
        row_group=lambda _: group,
    )
    file = SimpleNamespace(metadata=metadata, schema_arrow=real.schema_arrow, read=real.read)
    monkeypatch.setattr("probing.stats.hits_file.parquet_file", lambda _: file)
    return HitsFile(data, {}, {"tables": ["all"], "groups": ["a", "b"]}), chunks


def test_columns_are_no_larger_together_than_their_file(claimed):
    """Several that share bytes are."""
    file, chunks = claimed
    sizes = sum(chunk.total_compressed_size for chunk in chunks)
    chunks[0].total_compressed_size += len(file.data) - sizes
    assert same(file.tables(COUNTS)["all"], counted())
    chunks[0].total_compressed_size += 1
    with pytest.raises(EntryError, match="or that share bytes"):
        file.tables(COUNTS)


def test_a_byte_unpacks_to_20_numbers_at_most(claimed):
    """5 rows of 8 columns are 40 numbers."""
    file, chunks = claimed
    for chunk in chunks:
        chunk.total_compressed_size = 0
    assert same(replace(file, data=bytes(2)).tables(COUNTS)["all"], counted())
    with pytest.raises(EntryError, match="5 rows in 1 bytes"):
        replace(file, data=bytes(1)).tables(COUNTS)


@pytest.mark.parametrize(
    "field, value",
    [
        ("compression", "ZSTD"),
        ("num_values", 6),
        ("total_compressed_size", -1),
    ],
)
def test_each_column_is_looked_at(field, value, claimed):
    """Its codec and its sizes."""
    file, chunks = claimed
    for chunk in chunks:
        honest = getattr(chunk, field)
        setattr(chunk, field, value)
        with pytest.raises(EntryError, match="columns of another codec or size"):
            file.tables(COUNTS)
        setattr(chunk, field, honest)


def test_rows_are_in_the_order_of_clusters_though_one_has_no_group():
    groups = ["b", "a", "b"]
    sums = {"model": np.ones((2, 3), int), "offset": np.zeros((2, 3), int)}
    hits = Hits.of_rows(np.array([2, 5, 5]), groups, sums, COUNTS.measures)
    file = save({"a": hits.where(groups=["a"])}, COUNTS, {})
    columns = pq.read_table(io.BytesIO(file)).to_pydict()
    assert (columns["cluster"], columns["n"]) == ([2, 5], [0, 1])
