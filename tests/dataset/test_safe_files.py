"""Limits of what is read of other people's files: each from both sides, and over every kind of column."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from codesyntax_dataset import batches
from codesyntax_dataset.safe_files import LONGEST_NAME, explodes, is_name, printable, read


def test_a_file_of_the_largest_size_is_read_and_a_byte_more_is_not(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read(path, 5) == b"12345"
    with pytest.raises(OSError, match="larger than 4 bytes"):
        read(path, 4)


def test_only_regular_files_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="regular file"):
        read(tmp_path / "pipe", 5)
    with pytest.raises(IsADirectoryError):
        read(tmp_path, 5)
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "file").write_bytes(b"1")
    assert read(tmp_path / "link", 5) == b"1"


@pytest.mark.parametrize(
    "unpacked, packed, expected",
    [
        (1 << 28, 1, False),
        ((1 << 28) + 1, 1, True),
        (200 * (1 << 21), 1 << 21, False),
        (200 * (1 << 21) + 1, 1 << 21, True),
    ],
)
def test_what_shrinks_like_code_does_not_explode(unpacked, packed, expected):
    assert explodes(unpacked, packed) is expected


@pytest.mark.parametrize(
    "text, expected",
    [
        ("a" * LONGEST_NAME, True),
        ("a" * (LONGEST_NAME + 1), False),
        ("", False),
        ("a\x1b", False),
        (7, False),
    ],
)
def test_names_are_short_and_printable(text, expected):
    assert is_name(text) is expected


def test_printed_text_is_cut_at_its_limit():
    assert printable("abc", 3) == "abc"
    assert printable("abcd", 3) == "ab…"


COLUMNS = {"flat": 0, "list": [0], "struct": {"inner": 0}, "deep": [{"inner": [0]}]}


@pytest.fixture(scope="module")
def zeros(tmp_path_factory):
    """A file in which each of COLUMNS packs to far less than a 200th."""
    file = tmp_path_factory.mktemp("zeros") / "zeros.parquet"
    table = pa.table({name: pa.array([value] * 100_000) for name, value in COLUMNS.items()})
    pq.write_table(table, file, use_dictionary=False, compression="zstd")
    return file


@pytest.fixture
def parquet(zeros, monkeypatch):
    """Where a packed megabyte is too much."""
    file = pq.ParquetFile(zeros)
    monkeypatch.setattr(batches, "explodes", lambda unpacked, packed: unpacked > 700_000)
    return file


@pytest.mark.parametrize("column", COLUMNS)
def test_every_kind_of_column_counts(parquet, column):
    with pytest.raises(pa.ArrowInvalid, match="row group 0 unpacks to"):
        batches.check_row_groups(parquet, [column])


def test_columns_that_are_not_read_do_not_count(parquet):
    batches.check_row_groups(parquet, ["another"])
    with pytest.raises(pa.ArrowInvalid):
        batches.check_row_groups(parquet)


def test_a_row_group_of_the_largest_size_is_read(parquet, monkeypatch):
    monkeypatch.setattr(batches, "explodes", lambda unpacked, packed: False)
    chunk = parquet.metadata.row_group(0).column(0)
    monkeypatch.setattr(batches, "LARGEST_ROW_GROUP", chunk.total_uncompressed_size)
    batches.check_row_groups(parquet, ["flat"])
    monkeypatch.setattr(batches, "LARGEST_ROW_GROUP", chunk.total_uncompressed_size - 1)
    with pytest.raises(pa.ArrowInvalid):
        batches.check_row_groups(parquet, ["flat"])
