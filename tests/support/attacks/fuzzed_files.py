"""Random files of every foreign format, most of them right ones with small changes, and what reads them."""

from __future__ import annotations

import atexit
import copy
import functools
import gzip
import hashlib
import io
import json
import random
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from support.attacks.fuzzed_code import LANGUAGES_OF_CODE, STRANGE, code, functions
from support.evidence.hits_files import arrow_table, in_parquet, opened
from support.models import cubert_release

from codesyntax_dataset import check, corpus
from codesyntax_dataset.folder import read_split
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_dataset.schema import Skips
from probing.evidence import gather, submission
from probing.instruments.attention import errors
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.result import load as load_result
from probing.instruments.masking.mask import mask
from probing.instruments.masking.result import MaskingLedger, MaskResult
from probing.instruments.silencing.result import SilencingLedger, SilencingResult
from probing.models.cubert.convert import TensorBundle
from probing.models.cubert.tokenizer import CubertTokenizer, read_vocabulary
from probing.models.load import load as load_model
from probing.models.load import load_tokenizer
from probing.models.location import TINY, read_models
from probing.publish import board
from probing.runs.data import FUNCTION_COLUMNS
from probing.runs.ledger_file import load_shard

SMALL = Path(__file__).resolve().parents[2] / "data/small"
RESULT, VALIDATION = "mouse.python.test.c22e27d8", "mouse.python.validation.5246b551"

Work = Callable[[], object]
File = tuple[str, int, Work]


@functools.cache
def place() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="codesyntax-fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


# ------------------------------------------------------------------------------------------------------------ changes


def bytes_of(rng: random.Random, data: bytes) -> bytes:
    """The data with some bytes changed, left out, doubled or put in."""
    changed = bytearray(data)
    for _ in range(rng.choice([0, 1, 1, 1, 2, 4, 16])):
        at, size = rng.randrange(len(changed) + 1), rng.choice([1, 1, 2, 4, 16, 300])
        kind = rng.randrange(7)
        if kind == 0 and at < len(changed):
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            changed[at : at + size] = (
                rng.choice([b"\0", b"\xff", b"\x80", b"\n", b"[", b"{"]) * size
            )
        elif kind == 2:
            del changed[at : at + size]
        elif kind == 3:
            changed[at:at] = changed[at : at + size]
        elif kind == 4:
            changed[at:at] = rng.randbytes(size)
        elif kind == 5 and rng.random() < 0.3:
            del changed[at:]
        else:
            changed[at : at + 1] = rng.choice(STRANGE).encode("utf-8", "surrogatepass")
    return bytes(changed)


ODD: tuple[Callable[[random.Random], Any], ...] = (
    lambda rng: None,
    lambda rng: rng.choice([True, False]),
    lambda rng: rng.choice([0, -1, 1, 255, 256, 2**31, 2**63, -(2**64), 10**30, 10**400]),
    lambda rng: rng.choice(
        [0.0, -0.0, 1e-320, 0.5, 1e308, float("nan"), float("inf"), -float("inf")]
    ),
    lambda rng: rng.choice(
        [*STRANGE, "", "x", "../../x", "/dev/zero", "<script>", "\x1b[2J", "a" * 5000, "1", "{}"]
    ),
    lambda rng: [],
    lambda rng: {},
    lambda rng: [[]] * 5,
    lambda rng: {rng.choice(STRANGE): 1},
    lambda rng: functools.reduce(lambda inner, _: [inner], range(rng.choice([50, 3000])), 0),
    lambda rng: [0] * rng.choice([100, 20_000]),
)


def changed(rng: random.Random, value: Any) -> Any:
    """A JSON value with other values, fields or elements at one to three random places."""
    value = copy.deepcopy(value)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        holder, key = {"": value}, ""
        while isinstance(holder[key], (dict, list)) and holder[key] and rng.random() < 0.85:
            holder = holder[key]
            key = rng.choice([*holder]) if isinstance(holder, dict) else rng.randrange(len(holder))
        kind = rng.randrange(6)
        if kind == 0 and holder is not value and isinstance(holder, (dict, list)):
            del holder[key]
        elif kind == 1 and isinstance(holder, dict):
            holder[rng.choice([*holder, *STRANGE, "format", "__class__"])] = holder[key]
        elif kind == 2 and isinstance(holder[key], (int, float)):
            holder[key] = holder[key] + rng.choice([-1, 1, 0.5, 1e-9, 1000])
        elif kind == 3 and isinstance(holder[key], list):
            holder[key] = holder[key] * 2
        elif kind == 4 and isinstance(holder[key], str):
            holder[key] = holder[key][: rng.randrange(len(holder[key]) + 1)] + rng.choice(STRANGE)
        else:
            holder[key] = rng.choice(ODD)(rng)
        if key == "":
            value = holder.get("")
    return value


def text_of(rng: random.Random, value: Any) -> bytes:
    """A JSON value, changed as a value or as bytes."""
    if rng.random() < 0.7:
        try:
            return json.dumps(changed(rng, value), ensure_ascii=rng.random() < 0.7).encode(
                "utf-8", "surrogatepass"
            )
        except (RecursionError, ValueError, OverflowError):
            return b"[" * 100_000
    return bytes_of(rng, json.dumps(value).encode()).replace(b'"1"', b"1" * rng.choice([1, 5000]))


def file(name: str, data: bytes) -> Path:
    """A file in a folder of its own, without what was there before."""
    path = place() / "one" / name
    shutil.rmtree(place() / "one", ignore_errors=True)
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    return path


# ------------------------------------------------------------------------------------------------------------ formats


def codesearchnet(rng: random.Random) -> File:
    rows = []
    for _ in range(rng.randint(1, 3)):
        fields = {
            "code": code(rng, "python")[:5000],
            "repo": "a/b",
            "path": "c.py",
            "func_name": "f",
            "url": "u",
        }
        fields |= {"language": "python", "partition": "test"}
        whole = rng.random() < 0.5
        rows.append(json.dumps(fields).encode() if whole else text_of(rng, fields))
    data = gzip.compress(rng.choice([b"\n", b"\r\n", b"\n\n"]).join(rows), 1)
    data = bytes_of(rng, data) if rng.random() < 0.4 else data
    member = "python/final/jsonl/test/python_test_0.jsonl.gz"
    if rng.random() < 0.5:
        path = file(member, data)
        return "CodeSearchNet", len(data), lambda: build_from(path.parents[4], "python")
    packed = io.BytesIO()
    with zipfile.ZipFile(
        packed, "w", rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    ) as archive:
        archive.writestr(member, data)
    zipped = bytes_of(rng, packed.getvalue())
    path = file("python.zip", zipped)
    return "CodeSearchNet, zip", len(zipped), lambda: build_from(path, "python")


def build_from(source: Path, config: str) -> None:
    """Read a source, and label what is in it."""
    for function in corpus.read(str(source), config, Skips()):
        corpus.to_row(*corpus.label(function, LANGUAGES[function.language].configs[config])[:2])


def published(rng: random.Random) -> File:
    entries = [
        {"code": "def f(x):\n    return x.y\n", "tokens": ["def", "f", "(", "x", ")", ":", "return", "x", ".", "y"],
         "id": number, "relns": {"Attribute:value->attr": [[7, 9, 9]], "children:parent->child": [[6, 7, 7]]}}
        for number in range(2)
    ]  # fmt: skip
    data = text_of(rng, entries)
    path = file("CodeSyntax_python.json", data)
    return "published labels", len(data), lambda: build_from(path, "python")


@functools.cache
def treebanks() -> tuple[bytes, ...]:
    folder = Path(corpus.__file__).parent / "sample/treebanks"
    plain = b"dogs 2-nsubj\nbark 0-root\n\nthe 2-det\ncat 0-root\n"
    return (*(path.read_bytes()[:6000] for path in sorted(folder.glob("*.conllu"))), plain)


def treebank(rng: random.Random) -> File:
    seed = rng.choice(treebanks())
    data = bytes_of(rng, seed)
    if rng.random() < 0.4:
        lines = seed.decode().split("\n")
        at = rng.randrange(len(lines))
        fields = lines[at].split("\t")
        fields[rng.randrange(len(fields))] = rng.choice(
            ["", "-1", "0", "1-2", "1.1", "9" * 5000, "_", *STRANGE]
        )
        lines[at] = "\t".join(fields)
        data = "\n".join(lines).encode("utf-8", "surrogatepass")
    path = file(rng.choice(["x-test.conllu", "x.conllu", "x.txt"]), data)
    config = rng.choice(["english", "german", "ud", "english_space_after"])
    return "treebank", len(data), lambda: build_from(path, config)


def folder_of_code(rng: random.Random) -> File:
    language = rng.choice(LANGUAGES_OF_CODE)
    text = (
        code(rng, language)
        if rng.random() < 0.4
        else "\n\n".join(rng.choices(functions(language), k=3))
    )
    data = bytes_of(rng, text.encode("utf-8", "surrogatepass"))
    data = text.encode("utf-16", "surrogatepass") if rng.random() < 0.02 else data
    path = file(f"code/project/a{LANGUAGES[language].suffixes[0]}", data)
    config = rng.choice([*LANGUAGES[language].configs])
    if "_" in config and LANGUAGES[language].configs[config].edit:
        config = next(iter(LANGUAGES[language].configs))
    return f"folder of {language}", len(data), lambda: build_from(path.parents[1], config)


def repositories(rng: random.Random) -> File:
    data = bytes_of(rng, b'a/b\nc/d\n{"repository": "e/f"}\n' * rng.choice([1, 3]))
    path = file("list.txt", data)
    return "list of repositories", len(data), lambda: corpus.read_repositories(path)


def models(rng: random.Random) -> File:
    data = bytes_of(rng, b"# two\nmicrosoft/codebert-base\nuser/model@refs/pr/1 # one\n")
    path = file("models.txt", data)
    return "list of models", len(data), lambda: read_models(path)


def parquet_of(rng: random.Random, path: Path, metadata: bytes) -> bytes:
    """A Parquet file with other bytes, columns, rows or metadata."""
    if rng.random() < 0.35:
        return bytes_of(rng, path.read_bytes())
    table = pq.read_table(path)
    kind = rng.randrange(6)
    if kind == 0:
        table = table.drop_columns(rng.choice(table.column_names))
    elif kind == 1:
        at = rng.randrange(table.num_columns)
        other = rng.choice([pa.nulls(len(table)), pa.array(["x"] * len(table)), pa.array([1.5] * len(table)),
                            pa.array([[1]] * len(table)), pa.array([2**40] * len(table))])  # fmt: skip
        table = table.set_column(at, table.column_names[at], other)
    elif kind == 2:
        table = table.take(
            pa.array(
                [rng.randrange(len(table)) for _ in range(rng.choice([0, 1, len(table)]))],
                pa.int64(),
            )
        )
    elif kind == 3:
        at = rng.randrange(table.num_columns)
        if pa.types.is_integer(table.schema.types[at]):
            numbers = table.column(at).to_numpy().copy()
            numbers[rng.randrange(len(numbers))] = rng.choice([-1, -(2**31), 2**31 - 1, 0, 7])
            table = table.set_column(
                at, table.column_names[at], pa.array(numbers, table.schema.types[at])
            )
    elif table.schema.metadata and metadata in table.schema.metadata:
        header = text_of(rng, json.loads(table.schema.metadata[metadata]))
        table = table.replace_schema_metadata({metadata: header})
    out = io.BytesIO()
    pq.write_table(table, out, compression=rng.choice(["zstd", "none"]))
    return out.getvalue()


def rank_ledger(rng: random.Random) -> File:
    data = parquet_of(rng, SMALL / f"results/{RESULT}.ledger.parquet", b"codesyntax")
    path = file(f"{RESULT}.ledger.parquet", data)
    reads: list[Work] = [
        lambda: RankLedger.load(path).counts(),
        lambda: sources_of_result(path),
        lambda: load_shard(path, RankLedger.load),
    ]
    return "rank ledger", len(data), rng.choice(reads)


def sources_of_result(ledger: Path) -> object:
    """The result beside a ledger, with the text that belongs to the honest ledger."""
    result = ledger.with_name(f"{RESULT}.json")
    shutil.copy(SMALL / f"results/{RESULT}.json", result)
    return load_result(result)


def result(rng: random.Random) -> File:
    data = text_of(rng, json.loads(now()))
    path = file(f"{RESULT}.json", data)
    shutil.copy(SMALL / f"results/{RESULT}.ledger.parquet", path.parent)
    reads: list[Work] = [
        lambda: load_result(path),
        lambda: gather.find([path.parent]),
        lambda: MaskResult.load(path),
    ]
    return "result", len(data), rng.choice(reads)


@functools.cache
def now() -> str:
    return load_result(SMALL / f"results/{RESULT}.json").to_json()


def analysis(rng: random.Random) -> File:
    settings = json.loads(now())["settings"]
    found = {"edges": 3, "hits": 1, "errors": 2, "layer": 0, "head": 1, "classes": {"bracket": {"errors": 2, "share": 100.0,
             "places": {"behind": 2}, "examples": []}}}  # fmt: skip
    fields = {
        "signature": "s",
        "settings": settings,
        "rules": {"first": {"If:if->test": found}},
        "differing": {"first": 0},
    }
    data = text_of(rng, fields)
    path = file("a.errors.json", data)
    return "error analysis", len(data), lambda: errors.load(path)


@functools.cache
def masked() -> Path:
    """A masking result of two functions."""
    result = mask(
        TINY,
        SMALL / "zoo",
        limit=2,
        draws=1,
        node_types=["parameters", "identifier"],
        output=place() / "masked",
    )
    assert result is not None
    return result.paths(place() / "masked")[0]


def masking_result(rng: random.Random) -> File:
    honest = masked()
    ledger = honest.with_name(honest.name.replace(".json", ".ledger.parquet"))
    if rng.random() < 0.5:
        data = parquet_of(rng, ledger, b"codesyntax")
        path = file(ledger.name, data)
        shutil.copy(honest, path.parent)
        return (
            "masking ledger",
            len(data),
            rng.choice(
                [
                    lambda: MaskingLedger.load(path),
                    lambda: MaskResult.load(path.parent / honest.name),
                ]
            ),
        )
    data = text_of(rng, json.loads(honest.read_text()))
    path = file(honest.name, data)
    shutil.copy(ledger, path.parent)
    return "masking result", len(data), lambda: MaskResult.load(path)


@functools.cache
def silenced() -> Path:
    rows = np.zeros(6, SilencingLedger.ROW)
    rows["silenced"], rows["heads"] = [0, 1, 2, 0, 1, 2], [0, 1, 1, 0, 1, 1]
    rows["relation"], rows["log_probability"] = [0, 0, 0, 1, 1, 1], -1
    rows["edges"], rows["sub_tokens"], rows["length"] = 1, 2, 30
    path = place() / "silenced.ledger.parquet"
    SilencingLedger(["If:if->test", "For:for->target"], rows, {"seed": 0}).save(path)
    return path


def silencing_ledger(rng: random.Random) -> File:
    data = parquet_of(rng, silenced(), b"codesyntax")
    path = file("a.ledger.parquet", data)
    return (
        "silencing ledger",
        len(data),
        rng.choice([lambda: SilencingLedger.load(path), lambda: SilencingResult.from_file(path)]),
    )


@functools.cache
def honest_entry() -> dict[str, Any]:
    (probed,) = gather.find([SMALL / "results"])
    (evidence,) = gather.gather([probed], SMALL / "zoo")
    return opened(evidence.submission().to_bytes())


def entry_of_a_board(rng: random.Random) -> File:
    table, about = arrow_table(honest_entry())
    data = in_parquet(table, text_of(rng, about))
    if rng.random() < 0.7:
        return "entry", len(data), lambda: submission.load(data)
    path = file("one.hits.parquet", data)
    return "board", len(data), lambda: board.read([path.parent])


def dataset(rng: random.Random) -> File:
    """A built folder, in which one file is another; its checksum is right, so that it is read."""
    folder = place() / "zoo"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(SMALL / "zoo", folder)
    name = rng.choice(
        [
            "README.md",
            "README.md",
            "python/test.parquet",
            "python/test.parquet",
            "SHA256SUMS",
            "eval.yaml",
        ]
    )
    path = folder / name
    data = (
        parquet_of(rng, path, b"huggingface")
        if path.suffix == ".parquet"
        else bytes_of(rng, path.read_bytes())
    )
    path.write_bytes(data)
    if name != "SHA256SUMS" and rng.random() < 0.9:
        names = ("README.md", "eval.yaml", "python/test.parquet", "python/validation.parquet")
        sums = "".join(
            f"{hashlib.sha256((folder / one).read_bytes()).hexdigest()}  {one}\n" for one in names
        )
        (folder / "SHA256SUMS").write_text(sums)
    if rng.random() < 0.8:
        return (
            "dataset",
            len(data),
            lambda: [*read_split(folder, "python", "test", FUNCTION_COLUMNS)[0]],
        )
    return "dataset to push", len(data), lambda: check.check_folder(folder)


def model(rng: random.Random) -> File:
    """A model's folder, in which one file is another."""
    folder = place() / "mouse"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(SMALL / "mouse", folder)
    weights = rng.random() < 0.1
    name = (
        "model.safetensors"
        if weights
        else rng.choice(["config.json", "tokenizer.json", "tokenizer_config.json"])
    )
    path = folder / name
    data = (
        bytes_of(rng, path.read_bytes()) if weights else text_of(rng, json.loads(path.read_bytes()))
    )
    path.write_bytes(data)
    if weights or rng.random() < 0.03:
        return "model", len(data), lambda: load_model(str(folder), device="cpu")
    return f"model's {name}", len(data), lambda: load_tokenizer(str(folder))


@functools.cache
def cubert() -> Path:
    few = {
        name: values
        for name, values in cubert_release.variables(8, 1, 8).items()
        if values.size < 5000
    }
    return cubert_release.write_bundle(place() / "cubert/model.ckpt-1", few)


def checkpoint(rng: random.Random) -> File:
    prefix = cubert()
    index, data = (
        prefix.with_name(f"{prefix.name}.{end}") for end in ("index", "data-00000-of-00001")
    )
    changed_index = rng.random() < 0.8
    new = bytes_of(rng, (index if changed_index else data).read_bytes())
    path = file(f"c.ckpt-1.{'index' if changed_index else 'data-00000-of-00001'}", new)
    other = data if changed_index else index
    shutil.copy(other, path.with_name(other.name.replace(prefix.name, "c.ckpt-1")))

    def read() -> None:
        found = TensorBundle(path.parent / "c.ckpt-1")
        for name in found.variables:
            found.read(name)

    return "CuBERT checkpoint", len(new), read


def vocabulary(rng: random.Random) -> File:
    cubert_release.write_vocabulary(place() / "vocabulary")
    data = bytes_of(rng, (place() / "vocabulary/vocabulary.txt").read_bytes())
    path, language = file("vocabulary.txt", data), rng.choice(["python", "java"])
    text = code(rng, language)[:20_000]
    return (
        "CuBERT vocabulary",
        len(data) + len(text),
        lambda: (read_vocabulary(path), CubertTokenizer(path, language)(text)),
    )


FORMATS: dict[Callable[[random.Random], File], float] = {
    codesearchnet: 4,
    published: 4,
    treebank: 4,
    folder_of_code: 6,
    repositories: 2,
    models: 2,
    rank_ledger: 4,
    result: 1.5,
    analysis: 3,
    masking_result: 2,
    silencing_ledger: 2,
    entry_of_a_board: 4,
    dataset: 1.5,
    model: 0.6,
    checkpoint: 4,
    vocabulary: 1.5,
}
"""Format -> how often, relative to others."""


def place_all() -> None:
    """Make what takes long to make, so that no input takes the time and the memory for it."""
    for make in (masked, silenced, honest_entry, cubert, now):
        make()


def file_input(rng: random.Random) -> File:
    (one,) = rng.choices([*FORMATS], [*FORMATS.values()])
    return one(rng)
