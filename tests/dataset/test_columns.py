"""Source files in a column of Parquet files, such as The Stack's `content`, on disk and on the Hub."""

from __future__ import annotations

import hashlib
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.hub.loopback_hub import LoopbackHub

from codesyntax_dataset import safe_files, sources
from codesyntax_dataset.build import build
from codesyntax_dataset.errors import SourceError
from codesyntax_dataset.schema import Skips

ONE = "import os\n\n\ndef one(x):\n    return x.y\n\n\nclass A:\n    def two(self):\n        return self\n"
TWO = "\ufeffdef three(): pass\r\n"


def write(file, **columns):
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), file)
    return file


def read(source, column="content", skips=None, **options):
    return list(sources.read(str(source), "python", skips or Skips(), column=column, **options))


def test_a_corpus_with_test_and_validation_is_split_so_and_its_training_data_not_used(tmp_path):
    write(
        tmp_path / "data/train-00000-of-00001.parquet", content=["def never(): pass"], path=["t.py"]
    )
    write(tmp_path / "data/test-00000-of-00001.parquet", content=[ONE], path=["src/one.py"])
    write(
        tmp_path / "data/validation-00000-of-00001.parquet",
        content=["x = 1", TWO],
        path=["x.py", None],
    )
    one, two, three = read(tmp_path)
    assert (one.code, one.func_name, one.partition) == (
        "def one(x):\n    return x.y",
        "one",
        "test",
    )
    assert (one.repo, one.path) == (tmp_path.name, "src/one.py")
    assert one.url == "data/test-00000-of-00001.parquet:0#L4-L5"
    assert (two.code, two.func_name) == ("def two(self):\n        return self", "A.two")
    assert (three.code, three.partition) == ("def three(): pass", "validation")
    assert (
        three.path == "data/validation-00000-of-00001.parquet:1"
        and three.url == f"{three.path}#L1-L1"
    )
    with pytest.raises(SourceError, match="already has a validation split"):
        read(tmp_path, validation_fraction=0.5)


def test_other_corpora_are_drawn_by_repository(tmp_path):
    names = [f"owner/{letter}" for letter in "abcdefgh"]
    content = [f"def f{place}(): pass" for place in range(16)]
    file = write(tmp_path / "some.parquet", content=content, max_stars_repo_name=names * 2)
    chosen = sorted(names, key=lambda name: hashlib.sha256(name.encode()).hexdigest())[:2]
    functions = read(file, validation_fraction=0.25)
    assert [function.partition for function in functions] == ["test"] * 12 + ["validation"] * 4
    assert {function.repo for function in functions[12:]} == set(chosen)
    assert [function.code for function in functions[:12]] == [
        code for code, name in zip(content, names * 2) if name not in chosen
    ]
    assert {function.partition for function in read(file, validation_fraction=0)} == {"test"}
    alone = read(write(tmp_path / "alone.parquet", content=content))
    # a fifth of the rows, rounded
    assert sum(function.partition == "validation" for function in alone) == 3


def test_what_is_no_code_is_left_out_and_counted(tmp_path, monkeypatch):
    from codesyntax_dataset.sources import columns

    monkeypatch.setattr(columns, "LARGEST_FILE", 100)
    not_utf8 = pa.StringArray.from_buffers(
        1, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")
    )
    texts = pa.concat_arrays(
        [pa.array(["", None, "def f(:", "def f(): pass", f"# {'x' * 100}"]), not_utf8]
    )
    skips = Skips()
    assert [
        function.func_name
        for function in read(write(tmp_path / "a.parquet", content=texts), skips=skips)
    ] == ["f"]
    assert skips.names == {
        "row has no text": ["a.parquet:1"],
        "function does not parse": ["a.parquet:2#L1"],
        "file does not parse": ["a.parquet:2#L1"],
        "file is larger than 4,194,304 bytes": ["a.parquet:4"],
        "file is not text in UTF-8 or the encoding that it declares": ["a.parquet:5"],
    }


@pytest.mark.parametrize(
    "column, complaint",
    [
        ("contents", r"a.parquet: the column 'contents' is not there; it has content, size"),
        ("size", r"a.parquet: the column 'size' holds int64, expected text; it has content, size"),
    ],
)
def test_a_column_that_is_missing_or_no_text_is_told_with_those_that_are_there(
    tmp_path, column, complaint
):
    with pytest.raises(SourceError, match=complaint):
        read(write(tmp_path / "a.parquet", content=["x"], size=[1]), column)


def test_a_source_without_columns_is_refused(tmp_path):
    (tmp_path / "a.py").write_text(ONE)
    with pytest.raises(SourceError, match="cannot read"):
        read(tmp_path)
    with pytest.raises(SourceError, match="cannot read"):
        read(tmp_path / "a.py")
    os.mkfifo(tmp_path / "a.parquet")
    for source, config in (
        (tmp_path, "english"),
        (tmp_path / "a.parquet", "python"),
        ("nothing", "python"),
    ):
        with pytest.raises(SourceError, match=f"has no column 'content' for {config}"):
            sources.reader(str(source), config, "content")


def test_a_row_group_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(safe_files, "_LEAST", 1000)
    bomb = tmp_path / "a.parquet"
    pq.write_table(
        pa.table({"content": ["#" * 1_000_000], "other": ["x"]}), bomb, compression="zstd"
    )
    with pytest.raises(SourceError, match=r"row group 0 unpacks to 1,\d+,\d+ bytes, from"):
        read(bomb)
    pq.write_table(
        pa.table({"content": ["def f(): pass"], "other": ["#" * 1_000_000]}),
        bomb,
        compression="zstd",
    )
    assert len(read(bomb)) == 1  # what is not read does not matter


@pytest.mark.slow
def test_a_dataset_of_a_column_is_the_same_each_time_and_its_card_says_what_it_is(tmp_path):
    file = write(
        tmp_path / "some.parquet", content=[ONE, TWO] * 3, repo_name=["a/a", "b/b", "c/c"] * 2
    )
    for output in ("first", "second"):
        report = build(
            str(file), ["python"], tmp_path / output, column="content", validation_fraction=0.3
        )
    assert report.configs["python"].functions == {"test": 6, "validation": 3}
    for name in ("README.md", "SHA256SUMS"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()
    card = (tmp_path / "first/README.md").read_text(encoding="utf-8")
    assert (
        "Functions: Parquet files with the column `content`, `some.parquet`. All of its splits are used."
        in card
    )
    assert "by repository, 0.3 of them for validation" in card
    build(
        str(file), ["python_exact"], tmp_path / "first", column="content", validation_fraction=0.3
    )


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """One that this process talks to, with corpora in folders, in configs and as lines of JSON."""
    content = {"content": ["def f(): pass", "def g(): pass"], "repo": ["a/a", "b/b"]}
    python = write(tmp_path / "python.parquet", **content).read_bytes()
    java = write(tmp_path / "java.parquet", content=["class A {}"]).read_bytes()
    card = "---\nconfigs:\n- {config_name: java, data_files: j/*}\n- {config_name: python, data_files: p/*}\n---\n"
    with LoopbackHub() as hub:
        stack = {"README.md": b"", "data/python/a.parquet": python, "data/java/b.parquet": java}
        hub.add("owner/stack", stack)
        configs = {"README.md": card.encode(), "p/a.parquet": python, "j/b.parquet": java}
        hub.add("owner/configs", configs)
        hub.add("owner/lines", {"README.md": b"", "a.jsonl": b'{"content": "x"}\n'})
        hub.connect(monkeypatch, tmp_path / "cache")
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize(
    "source, file",
    [
        ("owner/stack/data/python@main", "data/python/a.parquet"),
        ("owner/configs", "p/a.parquet"),
    ],
)
def test_corpora_on_the_hub_are_read_by_folder_config_and_revision(source, file):
    functions = read(source)
    in_validation = min("a/a", "b/b", key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    assert {(one.repo, one.url, one.partition == "validation") for one in functions} == {
        ("a/a", f"{file}:0#L1-L1", in_validation == "a/a"),
        ("b/b", f"{file}:1#L1-L1", in_validation == "b/b"),
    }


@pytest.mark.slow
@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize(
    "source, column, reason",
    [
        (
            "owner/configs",
            "code",
            "^p/a.parquet: the column 'code' is not there; it has content, repo$",
        ),
        ("owner/lines", "content", "^owner/lines has a.jsonl, expected Parquet files: "),
        ("owner/nothing", "content", "^cannot read owner/nothing: .*doesn't exist on the Hub"),
    ],
)
def test_what_on_the_hub_is_no_corpus_is_refused(source, column, reason):
    with pytest.raises(SourceError, match=reason):
        read(source, column)
