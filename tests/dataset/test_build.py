"""A built folder is what `load_dataset` reads, whole or not there, and its card tells what is in it."""

from __future__ import annotations

import contextlib
import errno
import gzip
import json
import os
import re
import select
import signal
import time
import weakref
from collections import Counter
from functools import partial
from itertools import pairwise
from pathlib import Path

import datasets
import pyarrow.parquet as pq
import pytest
from support.commands import python
from support.processes import ended, start

from codesyntax_dataset import annotate, atomic, card, corpus, safe_files, shards, tokenize
from codesyntax_dataset.build import build
from codesyntax_dataset.builder import CodeSyntax
from codesyntax_dataset.check import check_folder
from codesyntax_dataset.errors import DatasetError, SourceError, UnknownName
from codesyntax_dataset.folder import read_split
from codesyntax_dataset.languages import CONFIGS
from codesyntax_dataset.schema import LABELS, Skips

FIRST = "def first(x):\n    return x.y"
SECOND = "def second(a, b):\n    if a:\n        return b\n    return a + b"
THIRD = "async def third(self):\n        return [x for x in self.all() if x]"
JAVA = "class A { int f(int x) { return x + 1; } int g() { if (ok()) { return 1; } return 2; } }"

SOURCE = {
    "test/one/a.py": f"{FIRST}\n\n\n{SECOND}\n",
    "test/one/A.java": JAVA,
    "validation/two/b.py": f"class B:\n    {THIRD}\n",
    "validation/two/B.java": "class B { void h() { use(x); } }",
}


def write(folder, files):
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return str(folder)


@pytest.fixture
def source(tmp_path):
    return write(tmp_path / "source", SOURCE)


@pytest.fixture
def output(tmp_path):
    return tmp_path / "out"


@pytest.fixture
def out(output, source):
    """The functions in Python, built."""
    return build(source, ["python"], output).output


def write_codesearchnet(folder, test, validation):
    """Python functions, given by their code, in the layout of CodeSearchNet v2."""
    for name, functions in (("test", test), ("valid", validation)):
        file = folder / f"python/final/jsonl/{name}/python_{name}_0.jsonl.gz"
        file.parent.mkdir(parents=True)
        rows = (
            {"repo": "o/n", "path": "p", "func_name": "f", "language": "python"}
            | {"code": code, "url": f"{name}/{number}", "partition": name}
            for number, code in enumerate(functions)
        )
        file.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    return str(folder)


@pytest.fixture
def codesearchnet(tmp_path):
    return partial(write_codesearchnet, tmp_path / "source")


def files(folder):
    """Every file under `folder`, hidden ones and links included."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or not path.is_dir()
    }


def card_of(output):
    return (output / "README.md").read_text(encoding="utf-8")


def listed(folder):
    return sorted(path.name for path in folder.iterdir())


def rows(output, config="python", split="test"):
    return pq.read_table(output / config / f"{split}.parquet").to_pylist()


# ------------------------------------------------------------------------------------ what is built


@pytest.mark.slow
def test_a_row_is_a_function_with_the_annotators_labels(output, source):
    build(source, ["python", "python_with_new_lines", "java"], output)
    first, second = rows(output)
    tokens, edges = annotate(FIRST, "python")
    assert first == {
        "id": 0,
        "code": FIRST,
        "tokens": [token.text for token in tokens],
        "token_start": [token.start for token in tokens],
        "token_end": [token.end for token in tokens],
        "relations": [edge._asdict() for edge in edges],
        "repo": "one",
        "path": "a.py",
        "func_name": "first",
        "url": "test/one/a.py#L1-L2",
        "language": "python",
        "twin_of": 0,
    }
    assert edges
    assert (second["id"], second["code"]) == (1, SECOND)
    (third,) = rows(output, "python_with_new_lines", "validation")
    assert (third["id"], third["code"]) == (2, THIRD)
    assert third["tokens"] == [token.text for token in tokenize(THIRD, "python", "with_new_lines")]
    java = rows(output, "java") + rows(output, "java", "validation")
    assert [row["id"] for row in java] == [0, 1, 2]


def test_only_parquet_the_card_and_metadata_are_written(tmp_path, output, source):
    build(source, ["java", "python"], output)
    assert sorted(files(output)) == [
        *("README.md", "SHA256SUMS", "eval.yaml"),
        *(
            "java/test.parquet",
            "java/validation.parquet",
            "python/test.parquet",
            "python/validation.parquet",
        ),
    ]
    assert listed(tmp_path) == ["out", "source"]


@pytest.mark.slow
def test_the_same_input_gives_the_same_bytes_however_many_processes_annotate(
    tmp_path, codesearchnet, monkeypatch
):
    monkeypatch.setattr(shards, "SHARD", 3)
    monkeypatch.setattr("codesyntax_dataset.build.ROW_GROUP", 7)
    code = [f"def f{number}(x):\n    return x.y + {number}" for number in range(20)]
    source = codesearchnet(code, code[:7])
    for num_proc in (None, 1, 2):
        build(source, ["python"], tmp_path / f"out{num_proc}", num_proc=num_proc)
    first, second, third = (files(tmp_path / f"out{num_proc}") for num_proc in (None, 1, 2))
    assert first == second == third
    test, validation = rows(tmp_path / "out2"), rows(tmp_path / "out2", split="validation")
    assert [row["id"] for row in test + validation] == list(range(27))
    assert [row["code"] for row in test] == code
    table = pq.read_metadata(tmp_path / "out2/python/test.parquet")
    groups = map(table.row_group, range(table.num_row_groups))
    assert [group.num_rows for group in groups] == [7, 7, 6]


@pytest.mark.slow
@pytest.mark.parametrize("num_proc, most", [(1, 5), (2, 9 + 5)])
def test_only_some_functions_are_in_memory_at_a_time(
    codesearchnet, output, monkeypatch, num_proc, most
):
    """Shards that wait, the one at work and the next."""
    read, alive, found = corpus.read, weakref.WeakSet(), []

    def watched(*arguments):
        for function in read(*arguments):
            alive.add(function)
            found.append(len(alive))
            yield function

    monkeypatch.setattr(corpus, "read", watched)
    monkeypatch.setattr(shards, "SHARD", 8)
    source = codesearchnet([FIRST] * 400, [SECOND])
    build(source, ["python"], output, num_proc=num_proc)
    assert len(found) == 401
    assert max(found) <= 8 * most


@pytest.mark.slow
def test_row_groups_end_early_where_functions_are_long(tmp_path, codesearchnet, monkeypatch):
    source = codesearchnet([FIRST, SECOND] * 10, [THIRD])
    plain = build(source, ["python"], tmp_path / "plain").configs["python"]
    monkeypatch.setattr("codesyntax_dataset.build._LARGEST_ROW_GROUP", 5000)
    monkeypatch.setattr(shards, "CHARACTERS", 100)
    short = build(source, ["python"], tmp_path / "short").configs["python"]
    assert pq.ParquetFile(tmp_path / "short/python/test.parquet").num_row_groups > 1
    assert rows(tmp_path / "short") == rows(tmp_path / "plain")
    assert (short.digest, short.version) == (plain.digest, plain.version)
    check_folder(tmp_path / "short")


def test_functions_that_do_not_parse_keep_their_rows_and_are_counted(codesearchnet, output):
    unparsable, no_tokens = "def f(x):\n    return x +", 'def f(x):\n    return """'
    source = codesearchnet([unparsable, FIRST, no_tokens], [unparsable, "def f():\n    pass"])
    report = build(source, ["python"], output)
    test, validation = rows(output), rows(output, split="validation")
    assert test[0]["tokens"] == [token.text for token in tokenize(unparsable, "python")]
    assert [bool(row["tokens"]) for row in test] == [True, True, False]
    assert [bool(row["relations"]) for row in test + validation] == [
        False,
        True,
        False,
        False,
        False,
    ]
    skips = report.configs["python"].skips
    reason = "Python 3.9's grammar cannot read it"
    assert skips.counts == {reason: 2, f"{reason}, and its tokens are unknown": 1}
    assert list(skips.names.values()) == [
        ["function 0 (test/0) at line 2", "function 3 (valid/0) at line 2"],
        ["function 2 (test/2) at line 2"],
    ]
    assert (
        f"{reason}: 2 (function 0 (test/0) at line 2, function 3 (valid/0) at line 2)"
        in card_of(output)
    )
    assert (
        f"  {reason}: 2 (first: function 0 (test/0) at line 2, function 3 (valid/0) at line 2)"
        in report.text().splitlines()
    )


def test_the_first_five_functions_of_a_reason_are_named():
    skips, names = Skips(), {"why": [*"01234"]}
    for number in range(6):
        skips.add("why", number)
    assert skips == Skips({"why": 6}, names)
    skips.extend(skips)
    assert skips == Skips({"why": 12}, names)


def test_published_labels_are_built_as_they_are(tmp_path, output):
    entry = {
        "code": "def f(a):\n  a.b",
        "tokens": ["def", "f", "(", "a", ")", ":", "\n", "  ", "a", ".", "b", "", "", ""],
        "id": 41,
        "relns": {"Attribute:value->attr": [[8, 10, 10]], "not one of ours": [[1, 2, 3]]},
    }
    bare = {"code": "def f(", "tokens": ["def", "f", "("], "id": 9000, "relns": {}}
    (tmp_path / "CodeSyntax_python.json").write_text(json.dumps([entry, bare]), encoding="utf-8")
    report = build(str(tmp_path / "CodeSyntax_python.json"), ["python"], output)
    (row,) = rows(output)
    assert (row["id"], row["tokens"]) == (41, entry["tokens"])
    assert [tuple(edge.values()) for edge in row["relations"]] == [
        ("Attribute:value->attr", 8, 10, 10),
        ("not one of ours", 1, 2, 3),
    ]
    assert [row["id"] for row in rows(output, split="validation")] == [9000]
    assert report.configs["python"].skips.counts == {}
    assert "as published by the authors" in card_of(output)


def test_excluded_repositories_are_counted_in_report_and_card(tmp_path, output):
    source = write(tmp_path / "source", SOURCE)
    (tmp_path / "list").write_text("one\nother\n", encoding="utf-8")
    report = build(source, ["python"], output, exclude_repositories=tmp_path / "list")
    assert report.configs["python"].functions == {"validation": 1}
    assert report.configs["python"].skips.counts == {"repository is excluded": 2}
    card = card_of(output)
    assert "Excluded repositories: 2, from a list with SHA-256" in card
    assert "repository is excluded: 2 (test/one/a.py#L1-L2, test/one/a.py#L5-L8)" in card


# ----------------------------------------------------------------------------------------- the card


def test_size_categories_begin_at_powers_of_ten():
    names = ["n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "n>1M"]
    for power, (below, name) in enumerate(pairwise(names), 3):
        assert (card._size(10**power - 1), card._size(10**power)) == (below, name)


@pytest.mark.slow
def test_the_card_tells_the_counts_of_the_parquet_files(dataset_folder):
    card = card_of(dataset_folder)
    lines = [line for line in card.splitlines() if line.startswith("|")]
    table = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines]
    header = next(cells for cells in table if cells[0] == "relation")
    columns = [name.replace("`", "").split() for name in header[1:]]
    told = {cells[0]: cells[1:] for cells in table if "->" in cells[0]}
    counted = {
        (config, split): Counter(
            edge["relation"]
            for row in rows(dataset_folder, config, split)
            for edge in row["relations"]
        )
        for config in ("python", "java")
        for split in ("test", "validation")
    }
    assert [tuple(column) for column in columns] == list(counted)
    assert set(told) == {relation for counts in counted.values() for relation in counts}
    for relation, cells in told.items():
        assert cells == [
            f"{counts[relation]:,}" if counts[relation] else "-" for counts in counted.values()
        ]
    configs = {cells[0]: cells for cells in table if cells[0] in CONFIGS}
    for config, cells in configs.items():
        expected = []
        for split in ("test", "validation"):
            expected += [len(rows(dataset_folder, config, split)), counted[config, split].total()]
        assert cells[2:6] == [f"{count:,}" for count in expected]
    assert set(configs) == {"python", "java"}


def test_the_card_names_the_source_without_the_folders_it_lies_in(tmp_path, source, out):
    card = card_of(out)
    assert "folder of source files, `source`" in card
    assert str(tmp_path) not in card


@pytest.mark.slow
def test_the_digest_of_the_functions_depends_on_them_and_the_version_on_their_labels(
    tmp_path, codesearchnet, output, monkeypatch
):
    source = codesearchnet([FIRST, SECOND], [THIRD])
    again = write_codesearchnet(tmp_path / "again", [FIRST, SECOND], [THIRD])
    swapped = write_codesearchnet(tmp_path / "swapped", [SECOND, FIRST], [THIRD])
    moved = write_codesearchnet(tmp_path / "moved", [FIRST], [SECOND, THIRD])
    reports = [
        build(path, ["python"], tmp_path / Path(path).name / "out").configs["python"]
        for path in (source, again, swapped, moved)
    ]
    assert reports[0].digest == reports[1].digest
    assert reports[0].version == reports[1].version
    assert (
        len({report.digest for report in reports})
        == len({report.version for report in reports})
        == 3
    )
    versions = {reports[0].version}
    for relabel in (lambda edges: [], lambda edges: [edge._replace(head=2) for edge in edges]):
        monkeypatch.setattr(
            corpus,
            "annotate",
            lambda *of, relabel=relabel: (found := annotate(*of))._replace(
                edges=relabel(found.edges)
            ),
        )
        relabelled = build(source, ["python"], output).configs["python"]
        assert relabelled.digest == reports[0].digest
        assert re.fullmatch(rf"{re.escape(LABELS)}\.\d+", relabelled.version)
        versions.add(relabelled.version)
    assert len(versions) == 3


# ---------------------------------------------------------------------------------- reading it back


def load(folder):
    """What is in its folder `codesyntax`, by a cache that lies beside it."""
    return datasets.load_dataset(str(folder / "codesyntax"), cache_dir=str(folder / "cache"))


@pytest.mark.slow
def test_load_dataset_takes_the_first_config_where_python_is_not_built(tmp_path, source):
    build(source, ["java_skip_semicolon", "java"], tmp_path / "codesyntax")
    assert load(tmp_path)["test"].config_name == "java"


@pytest.mark.slow
def test_load_dataset_sees_a_rebuild_with_other_functions(tmp_path):
    for code in (FIRST, SECOND.replace("second", "first")):
        source = write(tmp_path / "source", {"a.py": code})
        build(source, ["python"], tmp_path / "codesyntax", overwrite=True)
        assert load(tmp_path)["test"]["code"][:] == [code]


@pytest.mark.slow
def test_own_code_is_split_by_file_and_the_card_says_how(tmp_path, output):
    source = write(
        tmp_path / "source", {f"{name}.py": f"{FIRST}\n\n\n{SECOND}\n" for name in "abcde"}
    )
    report = build(source, ["python"], output)
    assert report.configs["python"].functions == {"validation": 2, "test": 8}
    assert "by file, 0.2 of them for validation" in card_of(output)
    with pytest.raises(DatasetError, match="holds python from .* how they are split differ"):
        build(source, ["python"], output, validation_fraction=0.5)
    report = build(source, ["python"], output, validation_fraction=0, overwrite=True)
    assert report.configs["python"].functions == {"test": 10}
    assert "0 of them for validation" in card_of(output)


def test_a_source_without_validation_functions_has_no_such_split_and_says_what_that_means(tmp_path):
    report = build(write(tmp_path / "source", {"a.py": FIRST}), ["python"], tmp_path / "codesyntax")
    lack = "no validation split: held-out scores need it to choose attention heads"
    assert f"  warning: {lack}" in report.text()
    assert f"`python` has {lack}" in card_of(tmp_path / "codesyntax")
    assert list(load(tmp_path)) == ["test"]


# ------------------------------------------------------------------------------- writing it, or not


@pytest.mark.slow
def test_configs_from_one_source_come_together_in_any_number_of_steps(tmp_path, output, source):
    for config in ("java", "python", "java"):
        report = build(source, [config], output)
    assert list(report.configs) == ["python", "java"]
    build(source, ["java", "python"], tmp_path / "fresh")
    assert files(output) == files(tmp_path / "fresh")
    check_folder(output)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes, options, config",
    [
        pytest.param({"test/one/a.py": f"{FIRST}.z\n"}, {}, "python", id="edited"),
        pytest.param({"test/one/c.py": f"{FIRST}\n"}, {}, "java", id="another function"),
        pytest.param({}, {"exclude_repositories": "two"}, "python", id="other settings"),
        pytest.param(None, {}, "java", id="no Python, and Java is added"),
        pytest.param(None, {}, "python", id="no Python"),
    ],
)
def test_a_dataset_from_another_source_is_replaced_on_request_only(
    tmp_path, source, out, changes, options, config
):
    before = files(out)
    other = write(tmp_path / "other", {"A.java": JAVA} if changes is None else SOURCE | changes)
    if options:
        (tmp_path / "list").write_text(options["exclude_repositories"], encoding="utf-8")
        options = {"exclude_repositories": tmp_path / "list"}
    wanted = [config, "java"] if changes is None else [config]
    refused = SourceError if changes is None and config == "python" else DatasetError
    with pytest.raises(refused) as raised:
        build(other, wanted, out, **options)
    if refused is DatasetError:
        assert "holds python from folder of source files, `source`, and" in str(raised.value)
        assert "--overwrite" in str(raised.value)
    assert files(out) == before
    assert {path.name for path in tmp_path.iterdir()} <= {"out", "source", "other", "list"}
    report = build(other, ["java"], out, overwrite=True, **options)
    assert list(report.configs) == ["java"]
    assert not (out / "python").exists()


@pytest.mark.slow
def test_a_dataset_that_unpacks_to_far_more_than_code_does_is_refused(
    codesearchnet, output, monkeypatch
):
    source = codesearchnet(["def f(x):\n" + "    x = x\n" * 10_000], [FIRST])
    folder = build(source, ["python"], output).output
    monkeypatch.setattr(safe_files, "_LEAST", 1000)
    monkeypatch.setattr(safe_files, "_PACKED_ALIKE", 1)
    for read in (check_folder, lambda folder: read_split(folder, "python", "test", ["code"])):
        with pytest.raises(DatasetError, match=r"row group 0 unpacks to [\d,]+ bytes, from"):
            read(folder)


@pytest.mark.slow
def test_a_dataset_that_cannot_be_read_is_not_added_to(tmp_path, source, out):
    (tmp_path / "out/python/test.parquet").write_bytes(b"PAR1")
    with pytest.raises(DatasetError, match="config python that cannot be read"):
        build(source, ["java"], out)
    build(source, ["java"], out, overwrite=True)


@pytest.mark.slow
def test_what_another_build_wrote_meanwhile_is_not_lost(output, monkeypatch, source):
    render = card.render

    def while_another_builds(*arguments):
        monkeypatch.setattr(card, "render", render)
        build(source, ["java"], output)
        return render(*arguments)

    monkeypatch.setattr(card, "render", while_another_builds)
    with pytest.raises(DatasetError, match="another build changed"):
        build(source, ["python"], output)
    assert list(check_folder(output).configs) == ["java"]


@pytest.mark.slow
def test_an_empty_folder_and_missing_parents_are_fine(tmp_path, source):
    (tmp_path / "empty").mkdir()
    build(source, ["python"], tmp_path / "empty")
    build(source, ["python"], tmp_path / "a" / "b" / "out")
    assert files(tmp_path / "empty") == files(tmp_path / "a" / "b" / "out")


@pytest.mark.parametrize(
    "prepare, complaint",
    [
        (lambda out: out.write_text("x"), "is a file"),
        (lambda out: write(out, {"README.md": "# mine"}), "was not made by `codesyntax build`"),
        (
            lambda out: write(out, {"python/test.parquet": "mine"}),
            "was not made by `codesyntax build`",
        ),
        (lambda out: write(out, {".git/config": "mine"}), "was not made by `codesyntax build`"),
    ],
)
def test_anything_else_at_the_output_is_refused_and_left_as_it_is(
    tmp_path, output, source, prepare, complaint
):
    out = output
    prepare(out)
    before = files(tmp_path)
    with pytest.raises(DatasetError, match=complaint):
        build(source, ["python"], out)
    assert files(tmp_path) == before


def test_a_file_added_to_a_dataset_of_ours_is_not_thrown_away(tmp_path, source, out):
    (out / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(DatasetError, match=r"notes\.txt was not made by"):
        build(source, ["python"], out)


def no_space(*arguments, **options):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.slow
@pytest.mark.parametrize(
    "function, num_proc",
    [
        ("pyarrow.parquet.ParquetWriter.write_table", 1),
        ("pyarrow.parquet.ParquetWriter.write_table", 2),
        ("pathlib.Path.write_text", 1),
    ],
)
def test_a_full_disk_is_told_in_a_line_and_leaves_what_was_there(
    tmp_path, codesearchnet, output, monkeypatch, function, num_proc
):
    monkeypatch.setattr(shards, "SHARD", 1)
    source = codesearchnet([FIRST, SECOND], [THIRD])
    build(source, ["python"], output)
    before = files(tmp_path)
    with monkeypatch.context() as patch, pytest.raises(DatasetError) as raised:
        patch.setattr(function, no_space)
        build(source, ["python"], output, num_proc=num_proc)
    assert str(raised.value) == f"cannot write {tmp_path / 'out'}: No space left on device"
    assert files(tmp_path) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "when",
    [
        "codesyntax_dataset.corpus.annotate",
        "codesyntax_dataset.card.render",
        "codesyntax_dataset.atomic._exchanged",
        "pathlib.Path.rename",
    ],
)
def test_an_interrupt_leaves_what_was_there_and_nothing_else(
    tmp_path, monkeypatch, source, out, when
):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    before = files(tmp_path)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(atomic, "_exchanged", lambda *folders: False)
        patch.setattr(when, interrupt)
        build(source, ["java"], out)
    assert files(tmp_path) == before


@pytest.mark.slow
def test_what_was_there_comes_back_if_the_new_folder_cannot_take_its_place(
    tmp_path, monkeypatch, source, out
):
    before = files(tmp_path)
    rename = Path.rename

    def refuse_the_new(path, target):
        if path.name == "dataset":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return rename(path, target)

    with (
        monkeypatch.context() as patch,
        pytest.raises(DatasetError, match=r"cannot write .*out: .*Permission denied"),
    ):
        patch.setattr(atomic, "_exchanged", lambda *folders: False)
        patch.setattr(Path, "rename", refuse_the_new)
        build(source, ["java"], out)
    assert files(tmp_path) == before


@pytest.mark.slow
@pytest.mark.parametrize("exchanges", [True, False])
def test_a_dataset_is_replaced_with_and_without_an_exchange(
    tmp_path, monkeypatch, source, out, exchanges
):
    if not exchanges:
        monkeypatch.setattr(atomic, "_exchanged", lambda *folders: False)
    build(source, ["java"], out, overwrite=True)
    assert sorted(path.name for path in out.iterdir() if path.is_dir()) == ["java"]
    assert [path for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def building_at_leisure(folder, source):
    """The id of a process that builds `source` with two that annotate, of which one has begun a function that takes a minute."""

    def label(function, variant):
        (folder / "labelling").touch()
        time.sleep(60)

    def work():
        corpus.label = label
        try:
            build(source, ["python"], folder / "out", num_proc=2)
        except KeyboardInterrupt:
            print("interrupted")

    process = start(work, folder / "log", folder / "errors")
    deadline = time.monotonic() + 60
    while not (folder / "labelling").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return process


@pytest.mark.slow
def test_an_interrupt_from_the_keyboard_stops_all_processes_and_leaves_nothing(tmp_path, source):
    process = building_at_leisure(tmp_path, source)
    os.killpg(process, signal.SIGINT)  # to all of its processes, as a terminal does
    ended(process)
    assert (tmp_path / "log").read_text() == "interrupted\n"
    left = listed(tmp_path)
    assert left == ["errors", "labelling", "log", "source"]


@pytest.mark.slow
def test_processes_that_annotate_end_with_the_one_that_began_them(tmp_path, source):
    heard, held = os.pipe()  # which all of them hold
    process = building_at_leisure(tmp_path, source)
    os.close(held)
    assert not select.select([heard], [], [], 0)[0]
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    all_ended, _, _ = select.select([heard], [], [], 60)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    os.close(heard)
    assert all_ended


def test_a_process_that_annotates_and_is_killed_is_told(tmp_path, output, monkeypatch, source):
    monkeypatch.setattr(
        corpus, "label", lambda function, variant: os.kill(os.getpid(), signal.SIGKILL)
    )
    with pytest.raises(DatasetError, match=r"a labelling process was killed.* try fewer"):
        build(source, ["python"], output, num_proc=2)
    assert listed(tmp_path) == ["source"]


def test_labels_that_do_not_fit_the_code_stop_the_build_and_name_the_function(
    output, monkeypatch, source
):
    def beyond(code, language, variant):
        tokens, edges = annotate(code, language, variant)
        return corpus.Annotation(tokens, [edge._replace(last=len(tokens)) for edge in edges])

    monkeypatch.setattr(corpus, "annotate", beyond)
    with pytest.raises(DatasetError, match=r"python function 0 \(test/one/a.py#L1-L2\): edge 0"):
        build(source, ["python"], output)
    assert not output.exists()


def test_an_unknown_config_is_refused_with_the_nearest(output, source):
    with pytest.raises(UnknownName, match=r"unknown config 'pyton': did you mean 'python'\?"):
        build(source, ["java", "pyton"], output)
    with pytest.raises(DatasetError, match="no config to build"):
        build(source, [], output)


# ------------------------------------------------------------------------------- the builder itself


def test_the_builder_never_serves_what_an_older_source_had(tmp_path):
    for code in ([FIRST], [FIRST, SECOND]):
        source = write(tmp_path / "source", {"a.py": "\n".join(code)})
        made = CodeSyntax(cache_dir=str(tmp_path / "cache"), config_name="python", source=source)
        made.download_and_prepare()
        assert made.as_dataset(split="test")["code"][:] == code


def test_the_builder_has_all_configs_and_python_by_default(source):
    assert list(CodeSyntax.builder_configs) == list(CONFIGS)
    assert CodeSyntax(source=source).config.name == "python"
    assert isinstance(CodeSyntax(source=source), datasets.GeneratorBasedBuilder)


@pytest.mark.slow
def test_annotating_alone_imports_neither_datasets_nor_arrow():
    script = (
        "import sys, codesyntax_dataset as c; c.annotate('int f() { return 1; }', 'java'); "
        "print(sorted({'datasets', 'pyarrow', 'torch'} & set(sys.modules)))"
    )
    assert python(script).stdout == "[]\n"
