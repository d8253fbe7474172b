"""Hostile files: archives, pipes, links and sizes. Each row is one input, and what must happen."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import stat
import struct
import threading
import zipfile
import zlib
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from codesyntax_dataset import annotate, atomic, check, corpus, safe_files, tokenize
from codesyntax_dataset.build import build
from codesyntax_dataset.errors import CodeSyntaxError
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_dataset.schema import Skips
from codesyntax_dataset.sources import read
from probing.instruments.attention.ledger import RankLedger
from probing.models.cubert.convert import variables_of
from probing.models.cubert.tokenizer import read_vocabulary
from probing.models.location import locate
from probing.publish.push import push_dataset
from probing.report.pages import shown
from probing.runs.saved import read_text

MEMBER = "python/final/jsonl/test/python_test_0.jsonl.gz"


def row(code):
    fields = {"code": code, "repo": "a/b", "path": "c.py", "func_name": "f", "url": "u"}
    return json.dumps(fields | {"language": "python", "partition": "test"}).encode() + b"\n"


def zipped(members):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return data.getvalue()


def file(name, content):
    """`content`, or what makes it, where that takes long."""

    def make(folder):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content())
        return folder / name.split("/")[0]

    return make


def in_zip(members):
    return file("python.zip", zipped(members))


def labels_in_zip(content):
    return file("CodeSyntax.zip", zipped({"CodeSyntax_python.json": content}))


def pipe(name):
    def make(folder):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(folder / name)
        return folder / name.split("/")[0]

    return make


def device(folder):
    (folder / "CodeSyntax_python.json").symlink_to("/dev/zero")
    return folder / "CodeSyntax_python.json"


def linked_partition(folder):
    (folder / "code/validation/p").mkdir(parents=True)
    (folder / "secret/p").mkdir(parents=True)
    (folder / "secret/p/a.py").write_text("def secret(): pass")
    (folder / "code/test").symlink_to(folder / "secret")
    return folder / "code"


def a_linked_member():
    link = zipfile.ZipInfo(MEMBER)
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    return zipped({link: b"/etc/passwd"})


GZ = gzip.compress(row("def f(): pass"))
ZIP = zipped({MEMBER: GZ})

SOURCES = {
    "lines of blanks in a gz": (
        file(f"csn/{MEMBER}", gzip.compress((b" " * 9999 + b"\n") * 300)),
        "Expecting value",
    ),
    "a bomb of gz": (
        file(f"csn/{MEMBER}", lambda: gzip.compress(row("def f(): pass") * 30_000)),
        "unpack to more than",
    ),
    "a bomb of gz in a zip": (
        file(
            "python.zip", lambda: zipped({MEMBER: gzip.compress(row("def f(): pass") * 30_000, 1)})
        ),
        "unpack to more than",
    ),
    "a bomb of zip": (
        file(
            "CodeSyntax.zip", lambda: zipped({"CodeSyntax_python.json": b"[" + b" " * 20_000_000})
        ),
        "unpacks to 20000001 bytes",
    ),
    "a line without end in a gz": (
        file(f"csn/{MEMBER}", lambda: gzip.compress(b"a" * (1 << 25))),
        "longer|unpack to more than",
    ),
    "a zip that climbs out": (
        in_zip({f"../../{MEMBER}": b""}),
        "has no python functions",
    ),
    "an absolute path in a zip": (
        in_zip({f"/{MEMBER}": GZ}),
        "has no python functions",
    ),
    "a path with backslashes in a zip": (
        in_zip({f"..\\..\\{MEMBER}": GZ}),
        "has no python functions",
    ),
    "a link in a zip": (file("python.zip", a_linked_member()), "Not a gzipped file"),
    "an encrypted zip": (
        file("python.zip", ZIP.replace(b"\x14\0\0\0\x08", b"\x14\0\1\0\x08")),
        "is encrypted",
    ),
    "no zip": (file("python.zip", b"PK\x03\x04" + bytes(100)), "not a zip archive"),
    "a zip in a zip": (in_zip({"python.zip": ZIP}), "expected"),
    "zeros in a gz": (file(f"csn/{MEMBER}", gzip.compress(bytes(1000))), "Expecting value"),
    "nested JSON in a zip": (
        labels_in_zip(b"[" * 100_000),
        "nested too deeply",
    ),
    "an unpaired surrogate in a zip": (
        labels_in_zip(b'[{"code": "\\ud800", "tokens": [], "id": 0, "relns": {}}]'),
        "unpaired surrogate",
    ),
    "a pipe for a zip": (pipe("python.zip"), "a pipe or device"),
    "a pipe for a gz": (pipe(f"csn/{MEMBER}"), "a pipe or device"),
    "a pipe for labels": (pipe("CodeSyntax_python.json"), "a pipe or device"),
    "a device for labels": (device, "a pipe or device"),
    "a linked partition": (linked_partition, "is a symbolic link"),
    "an id of many digits": (
        file(
            "CodeSyntax_python.json",
            b'[{"code": "", "tokens": [], "id": ' + b"1" * 5000 + b', "relns": {}}]',
        ),
        "digits",
    ),
}


@pytest.mark.parametrize("make, reason", SOURCES.values(), ids=SOURCES)
@pytest.mark.slow
def test_a_hostile_source_is_refused(tmp_path, monkeypatch, make, reason):
    monkeypatch.setattr(safe_files, "_LEAST", 1 << 20)  # otherwise bombs would have to be large
    with pytest.raises(CodeSyntaxError, match=reason):
        list(read(str(make(tmp_path)), "python", Skips()))


@pytest.mark.parametrize(
    "error",
    [
        EOFError(),
        struct.error("header"),
        UnicodeDecodeError("utf-8", b"", 0, 1, "name"),
        zlib.error(),
    ],
    ids=repr,
)
def test_what_reading_an_archive_raises_is_told(error, tmp_path, monkeypatch):
    monkeypatch.setattr(zipfile.ZipFile, "read", Mock(side_effect=error))
    with pytest.raises(CodeSyntaxError, match="is the file complete"):
        list(read(str(labels_in_zip(b"[]")(tmp_path)), "python", Skips()))


LEFT_OUT = {
    "a pipe": (pipe("code/a.py"), "file cannot be read"),
    "a link": (
        lambda folder: (folder / "code/a.py").symlink_to("/etc/passwd"),
        "file is a symbolic link",
    ),
    "a linked folder": (
        lambda folder: (folder / "code/a").symlink_to("/etc"),
        "folder is a symbolic link",
    ),
    "a large file": (
        file("code/a.py", b"#" * (safe_files.LARGEST_FILE + 1)),
        "file is larger than 4,194,304 bytes",
    ),
    "a long function": (
        file("code/a.py", b"def f():\n    return '" + b"a" * safe_files.LONGEST_FUNCTION + b"'"),
        "longer than 1,000,000 characters",
    ),
}


@pytest.mark.parametrize("make, reason", LEFT_OUT.values(), ids=LEFT_OUT)
def test_a_hostile_file_in_a_folder_is_left_out_and_counted(tmp_path, make, reason):
    file("code/z.py", b"def g(): pass")(tmp_path)
    make(tmp_path)
    skips = Skips()
    assert [
        function.func_name for function in corpus.read(str(tmp_path / "code"), "python", skips)
    ] == ["g"]
    assert list(skips.counts) == [reason]


@pytest.mark.parametrize("function", [annotate, tokenize])
@pytest.mark.parametrize(
    "language", [name for name, language in LANGUAGES.items() if not language.of_treebanks]
)
def test_code_of_ten_megabytes_is_refused_at_once(function, language):
    with pytest.raises(CodeSyntaxError, match="longer than 1,000,000 characters"):
        function("x" * 10_000_000, language)


PIPES = {
    "a result": read_text,
    "a ledger": RankLedger.load,
    "a vocabulary": read_vocabulary,
    "a model's weights": lambda path: locate(str(path.parent)),
    "a checkpoint": lambda path: variables_of(path.with_suffix("")),
    "code to show": lambda path: shown(path, None, None, "python", "test"),
    "repositories to exclude": lambda path: build(
        "sample", ["python"], path.parent / "out", exclude_repositories=path
    ),
}


@pytest.mark.parametrize("read_it", PIPES.values(), ids=PIPES)
def test_a_pipe_is_not_waited_for(tmp_path, read_it):
    path = tmp_path / "model.safetensors.index"
    os.mkfifo(path)
    os.mkfifo(tmp_path / "model.safetensors")
    with pytest.raises(CodeSyntaxError, match=r"pipe or device|checkpoint"):
        read_it(path)


@pytest.mark.slow
def test_a_ledger_that_unpacks_to_far_more_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "bomb.parquet"
    rows = 1_000_000
    columns = {
        name: pa.array([0], pa.int32()).take(pa.array([0] * rows)) for name in ("function", "head")
    }
    ranks = pa.array([b"\0" * 432], pa.binary(432))
    with pq.ParquetWriter(
        path, pa.schema([*((name, pa.int32()) for name in columns), ("ranks", ranks.type)])
    ) as file:
        part = pa.table(
            [column.slice(0, 100_000) for column in columns.values()], names=list(columns)
        )
        part = part.append_column("ranks", ranks.take(pa.array([0] * 100_000)))
        for _ in range(rows // 100_000):
            file.write_table(part)
    assert path.stat().st_size < 500_000
    with pytest.raises(CodeSyntaxError, match="bytes unpack to 440,000,000"):
        RankLedger.load(path)


# ---------------------------------------------------------------------------------- what is written


def test_a_link_where_a_file_is_written_is_replaced_and_not_followed(tmp_path):
    victim, target = tmp_path / "victim", tmp_path / "result.json"
    victim.write_text("untouched")
    target.symlink_to(victim)
    atomic.write(target, "new")
    assert (victim.read_text(), target.read_text(), target.is_symlink()) == (
        "untouched",
        "new",
        False,
    )


def test_nobody_knows_or_enters_the_place_of_a_file_before_it_is_complete(tmp_path):
    seen = []
    for _ in range(2):
        with atomic.atomic_path(tmp_path / "result.json") as place:
            seen.append(place.parent)
            assert place.parent.stat().st_mode & 0o077 == 0
            place.write_text("{}")
    assert seen[0] != seen[1]
    assert os.listdir(tmp_path) == ["result.json"]


def test_many_writers_of_one_file_do_not_meet(tmp_path):
    errors = []

    def write(text):
        try:
            for _ in range(100):
                atomic.write(tmp_path / "result.json", text)
        except Exception as error:  # whatever it is, it is seen below
            errors.append(error)

    threads = [threading.Thread(target=write, args=(letter * 1000,)) for letter in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert os.listdir(tmp_path) == ["result.json"]
    assert len(set((tmp_path / "result.json").read_text())) == 1


@pytest.mark.parametrize("name", ["python/secret", "python/test.parquet"])
def test_what_is_linked_in_after_the_check_is_not_pushed(
    dataset_folder, tmp_path, monkeypatch, name
):
    folder, checked = tmp_path / "data", check.check_folder
    shutil.copytree(dataset_folder, folder)
    (tmp_path / "secret").write_text("secret")

    def linked_in_afterwards(folder):
        checked(folder)
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(tmp_path / "secret")

    monkeypatch.setattr(check, "check_folder", linked_in_afterwards)
    try:
        files = push_dataset(folder, "user/data").files
    except CodeSyntaxError as error:
        assert "test.parquet changed while it was checked" in str(error)
    else:
        assert name not in files
        assert b"secret" not in files.values()
