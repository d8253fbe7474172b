"""Fuzzing: no input of others ends in an error that is not ours, or takes more time or memory than it may.

    python tests/faults --only fuzz --times 20000 --seed 0

Hypothesis draws the inputs, most of them right ones with a few changes: code for the annotators and edits of every
language, and files of every foreign format. It shows what is wrong as small as it can make it.
"""

from __future__ import annotations

import atexit
import functools
import gzip
import io
import json
import logging
import math
import resource
import shutil
import sys
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rows import Row
from support.models import cubert_release

from codesyntax_dataset import annotate, check, corpus, tokenize
from codesyntax_dataset.edits import edit
from codesyntax_dataset.errors import CodeSyntaxError
from codesyntax_dataset.folder import read_split
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_dataset.metadata import sha256sums
from codesyntax_dataset.protocol import EDITS
from codesyntax_dataset.safe_files import LONGEST_FUNCTION
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

SMALL = Path(__file__).resolve().parents[1] / "data/small"
RESULT = "mouse.python.test.c22e27d8"

TIMES = 20_000
SECONDS = 2.0
"""CPU time of an input of at most 50,000 characters or bytes; of longer ones, for each 50,000."""
MEGABYTES = 500


class Input(NamedTuple):
    """One input: what it is for, its size in characters or bytes, and what is done with it."""

    target: str
    size: int
    work: Callable[[], object]


def tried(one: Input) -> str:
    """Whether an input is `accepted` or `refused`.

    Raises AssertionError if that takes too long or too much memory, and any error that is not ours.
    """
    began, peak, became = time.process_time(), _peak(), "accepted"
    try:
        one.work()
    except CodeSyntaxError:
        became = "refused"
    seconds, megabytes = time.process_time() - began, (_peak() - peak) >> 10
    allowed = SECONDS * max(1, min(one.size, LONGEST_FUNCTION) / 50_000)
    assert seconds <= allowed, f"{one.target}: {seconds:.1f} s for {one.size:,} characters"
    assert megabytes <= MEGABYTES, f"{one.target}: {megabytes:,} MB for {one.size:,} characters"
    return became


def _peak() -> int:
    """The most kilobytes that this process had in memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


# ---------------------------------------------------------------------------------------------- changes


@st.composite
def changed(draw, whole: Sequence, pieces: st.SearchStrategy):
    """A sequence with up to six parts of it left out, doubled or exchanged for others."""
    for _ in range(draw(st.integers(0, 6))):
        begin = draw(st.integers(0, len(whole)))
        end = begin + draw(st.sampled_from([0, 0, 1, 1, 2, 16, 300, len(whole)]))
        part = draw(pieces | st.sampled_from([whole[:0], 2 * whole[begin:end]]))
        whole = whole[:begin] + part + whole[end:]
    return whole


STRANGE = (
    *"\0\x0b\f\r\x1b\x1c\x7f\x85\xa0\u0301\u200b\u200d\u2028\u2029\u202e\u2066\ufeff\ufffd",
    *("\ud800", "\udfff", "\U0001f600", "\U0001d518", "e\u0301\u0301\u0301", "\r\n", "\n\r"),
    *("\\\r\n", "é", "ſ", "ﬁ", "١"),
)
TOKENS = (
    *"()[]{}<>,;:.?!@#$%^&*-+=|\\/~`'\"_ \t\n0aZ",
    *"''' \"\"\" f' rb\" \\N{ \\x \\u{ -> => :: ... .. ?. ?? ** // /* */ <!-- <?php ?> << <<< >> &&".split(),
    *"|| := <=> === 0x 0b1 1e 1_ 1__1 0777 9j 1.e5 r#\" b' #{ ${ %w[ <<~E\n ]] {{ }}".split(" "),
    *"if else for while return def class lambda async await yield match case try except finally with import".split(),
    *"new public static void int final switch default do throw throws catch instanceof assert enum record var".split(),
    *"function const let of in typeof delete interface type extends implements enum func go defer chan range".split(),
    *"fn mut impl trait where unsafe dyn move loop end begin rescue ensure unless until elsif then foreach echo".split(),
)


def often(pieces: st.SearchStrategy) -> st.SearchStrategy:
    """A piece once, or so often that it nests deeply if it opens something."""
    return st.builds(
        lambda piece, times: piece * times, pieces, st.sampled_from([1, 1, 1, 30, 110, 1000])
    )


def in_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


BYTES = often(
    st.binary(max_size=16) | st.sampled_from([*map(in_bytes, STRANGE + TOKENS), b"9" * 5000])
)

DEEP = b"[" * 100_000
NUMBERS = [0, -1, 1, 255, 256, 2**31, 2**63, -(2**64), 10**400, 0.5, 1e308, math.nan, math.inf]
TEXTS = [*STRANGE, "", "../../x", "/dev/zero", "<script>", "\x1b[2J", "a" * 5000, "1", "{}"]
ODD = st.sampled_from([None, True, *NUMBERS, *TEXTS, [], {}, [[]] * 5, [0] * 20_000])


@st.composite
def altered(draw, value: Any) -> Any:
    """A JSON value in which something else stands at one place, or nothing."""
    if not isinstance(value, (dict, list)) or not value or not draw(st.integers(0, 5)):
        return draw(ODD)
    value = value.copy()
    key = draw(st.sampled_from([*value] if isinstance(value, dict) else range(len(value))))
    if draw(st.integers(0, 5)):
        value[key] = draw(altered(value[key]))
    else:
        del value[key]
    return value


@st.composite
def altered_table(draw, data: bytes) -> bytes:
    """A Parquet file with another column, other rows, another number or other metadata."""
    table = pq.read_table(io.BytesIO(data))
    rows, place = len(table), draw(st.integers(0, table.num_columns - 1))
    name, kind = table.column_names[place], table.schema.types[place]
    change = draw(st.sampled_from(["dropped", "column", "rows", "number", "metadata", "metadata"]))
    if change == "dropped":
        table = table.drop_columns(name)
    elif change == "column":
        value = draw(st.sampled_from([None, "x", 1.5, [1], 2**40]))
        table = table.set_column(place, name, pa.array([value] * rows))
    elif change == "rows":
        chosen = draw(st.lists(st.integers(0, rows - 1), max_size=rows))
        table = table.take(pa.array(chosen, pa.int64()))
    elif change == "number" and pa.types.is_int32(kind):
        numbers = table.column(place).to_numpy().copy()
        numbers[draw(st.integers(0, rows - 1))] = draw(
            st.sampled_from([-1, -(2**31), 2**31 - 1, 7])
        )
        table = table.set_column(place, name, pa.array(numbers))
    elif change == "metadata" and table.schema.metadata:
        metadata = dict(table.schema.metadata)
        name = draw(st.sampled_from([*metadata]))
        value = altered(json.loads(metadata[name])).map(json.dumps).map(str.encode)
        table = table.replace_schema_metadata({name: draw(value | st.just(DEEP))})
    written = io.BytesIO()
    pq.write_table(table, written)
    return written.getvalue()


def content_of(path: Path) -> st.SearchStrategy[bytes]:
    """The content of a file with changes, of its bytes or of what they say."""
    data = path.read_bytes()
    if path.suffix == ".parquet":
        return altered_table(data) | changed(data, BYTES)
    if path.suffix == ".json":
        value = altered(json.loads(data)).map(json.dumps).map(str.encode)
        return value | changed(data, BYTES) | st.just(DEEP)
    if path.suffix == ".gz":
        return changed(gzip.decompress(data), BYTES).map(gzip.compress) | changed(data, BYTES)
    return changed(data, BYTES)


# ------------------------------------------------------------------------------------------------- code

LANGUAGES_OF_CODE = [name for name, language in LANGUAGES.items() if not language.of_treebanks]


@functools.cache
def functions(language: str) -> list[tuple[str, ...]]:
    """Some functions of the sample as tokens and what is between them."""
    found = []
    for function in islice(corpus.read("sample", language, Skips()), 20):
        parts, end = [], 0
        for token in tokenize(function.code, language):
            parts += [function.code[end : token.start], token.text]
            end = token.end
        found.append((*parts, function.code[end:]))
    return found


@st.composite
def borrowed(draw) -> tuple[str, ...]:
    """A part of a function, perhaps of another language."""
    function = draw(st.sampled_from(functions(draw(st.sampled_from(LANGUAGES_OF_CODE)))))
    begin = draw(st.integers(0, len(function)))
    return function[begin : begin + draw(st.sampled_from([1, 3, 10, 1000]))]


PIECES = often(st.lists(st.sampled_from(TOKENS + STRANGE), max_size=4).map(tuple)) | borrowed()


@st.composite
def code(draw, language: str) -> str:
    return "".join(draw(changed(draw(st.sampled_from(functions(language))), PIECES)))


@st.composite
def of_code(draw, language: str) -> Input:
    text, variant = draw(code(language)), draw(st.sampled_from(LANGUAGES[language].variant_names))
    works = [
        partial(annotate, text, language, variant),
        partial(tokenize, text, language, variant),
        partial(edit, text, language, draw(st.sampled_from([*EDITS])), variant),
    ]
    return Input(language, len(text), draw(st.sampled_from(works)))


# ------------------------------------------------------------------------------------------------ files


class Format(NamedTuple):
    """Files that are read together: what writes them into a folder, which of them is changed, and what reads the folder."""

    make: Callable[[Path], object]
    changed: str
    readers: Sequence[Callable[[Path], object]]


def files(contents: dict[str, str | bytes]) -> Callable[[Path], object]:
    def make(folder: Path) -> None:
        for name, content in contents.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    return make


def copied(source: Path) -> Callable[[Path], object]:
    return partial(shutil.copytree, source)


def only(folder: Path) -> Path:
    """The one file or folder in a folder."""
    (path,) = folder.iterdir()
    return path


def build_from(folder: Path, config: str) -> None:
    """Read the source in a folder, and label what is in it."""
    for function in corpus.read(str(only(folder)), config, Skips()):
        corpus.to_row(*corpus.label(function, LANGUAGES[function.language].configs[config])[:2])


def builds(*configs: str) -> list[Callable[[Path], object]]:
    return [partial(build_from, config=config) for config in configs]


PYTHON = "def f(x):\n    return x.y\n"
MEMBER = "python/final/jsonl/test/python_test_0.jsonl.gz"
FUNCTION = {"code": PYTHON, "repo": "a/b", "path": "c.py", "func_name": "f", "url": "u"}
LINES = gzip.compress(json.dumps(FUNCTION | {"language": "python", "partition": "test"}).encode())
PUBLISHED = {
    "code": PYTHON,
    "tokens": ["def", "f", "(", "x", ")", ":", "\n", "    ", "return", "x", ".", "y"],
    "id": 0,
    "relns": {"Attribute:value->attr": [[9, 11, 11]], "children:parent->child": [[8, 9, 9]]},
}
SENTENCES = (Path(corpus.__file__).parent / "sample/treebanks").glob("de_*-test.conllu")


def zipped(folder: Path) -> None:
    folder.mkdir()
    with zipfile.ZipFile(folder / "python.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MEMBER, LINES)


def code_folder(language: str) -> Format:
    """A folder of source files, for each of the language's labels but those of edited code."""
    name = f"code/project/a{LANGUAGES[language].suffixes[0]}"
    variants = LANGUAGES[language].configs.items()

    def make(folder: Path) -> None:
        files({name: "\n\n".join("".join(tokens) for tokens in functions(language)[:2])})(folder)

    configs = [config for config, variant in variants if not variant.edit]
    return Format(make, "code/project/*", builds(*configs))


def analysis(folder: Path) -> None:
    found = {"edges": 3, "hits": 1, "errors": 2, "layer": 0, "head": 1}
    found |= {"classes": {"bracket": {"errors": 2, "share": 100.0, "places": {}, "examples": []}}}
    fields = {
        "signature": "s",
        "settings": json.loads(load_result(SMALL / f"results/{RESULT}.json").to_json())["settings"],
        "rules": {"first": {"If:if->test": found}},
        "differing": {"first": 0},
    }
    files({"a.errors.json": json.dumps(fields)})(folder)


def masked(folder: Path) -> None:
    mask(TINY, SMALL / "zoo", limit=2, draws=1, node_types=["parameters"], output=folder)


def silenced(folder: Path) -> None:
    rows = np.zeros(6, SilencingLedger.ROW)
    rows["silenced"], rows["heads"] = [0, 1, 2, 0, 1, 2], [0, 1, 1, 0, 1, 1]
    rows["relation"], rows["log_probability"] = [0, 0, 0, 1, 1, 1], -1
    rows["edges"], rows["sub_tokens"], rows["length"] = 1, 2, 30
    ledger = SilencingLedger(["If:if->test", "For:for->target"], rows, {"seed": 0})
    folder.mkdir()
    ledger.save(folder / "a.ledger.parquet")


def entry(folder: Path) -> None:
    (evidence,) = gather.gather(gather.find([SMALL / "results"]), SMALL / "zoo")
    files({"one.hits.parquet": evidence.submission().to_bytes()})(folder)


def checkpoint(folder: Path) -> None:
    variables = cubert_release.variables(8, 1, 8).items()
    few = {name: values for name, values in variables if values.size < 5000}
    cubert_release.write_bundle(folder / "c.ckpt-1", few)


def read_checkpoint(folder: Path) -> None:
    bundle = TensorBundle(folder / "c.ckpt-1")
    for name in bundle.variables:
        bundle.read(name)


def read_cubert_vocabulary(folder: Path) -> None:
    read_vocabulary(only(folder))
    CubertTokenizer(only(folder), "python")(PYTHON)


FORMATS = {
    "CodeSearchNet": Format(files({f"csn/{MEMBER}": LINES}), f"csn/{MEMBER}", builds("python")),
    "CodeSearchNet, zip": Format(zipped, "*", builds("python")),
    "published labels": Format(
        files({"CodeSyntax_python.json": json.dumps([PUBLISHED] * 2)}), "*", builds("python")
    ),
    "treebank": Format(
        files({"x-test.conllu": next(SENTENCES).read_bytes()[:6000]}),
        "*",
        builds("english", "german", "ud", "english_space_after"),
    ),
    "plain treebank": Format(
        files({"x.txt": "dogs 2-nsubj\nbark 0-root\n\nthe 2-det\ncat 0-root\n"}),
        "*",
        builds("english", "ud"),
    ),
    **{f"folder of {language}": code_folder(language) for language in LANGUAGES_OF_CODE},
    "repositories": Format(
        files({"list.txt": 'a/b\nc/d\n{"repository": "e/f"}\n'}),
        "*",
        [lambda folder: corpus.read_repositories(only(folder))],
    ),
    "models": Format(
        files({"models.txt": "# two\nmicrosoft/codebert-base\nuser/model@refs/pr/1 # one\n"}),
        "*",
        [lambda folder: read_models(only(folder))],
    ),
    "results": Format(
        copied(SMALL / "results"),
        f"{RESULT}.*",
        [
            lambda folder: RankLedger.load(folder / f"{RESULT}.ledger.parquet").counts(),
            lambda folder: load_shard(folder / f"{RESULT}.ledger.parquet", RankLedger.load),
            lambda folder: load_result(folder / f"{RESULT}.json"),
            lambda folder: MaskResult.load(folder / f"{RESULT}.json"),
            lambda folder: gather.find([folder]),
        ],
    ),
    "error analysis": Format(analysis, "*", [lambda folder: errors.load(only(folder))]),
    "masking": Format(
        masked,
        "*",
        [
            lambda folder: MaskingLedger.load(next(folder.glob("*.parquet"))),
            lambda folder: MaskResult.load(next(folder.glob("*.json"))),
        ],
    ),
    "silencing": Format(
        silenced,
        "*",
        [
            lambda folder: SilencingLedger.load(only(folder)),
            lambda folder: SilencingResult.from_file(only(folder)),
        ],
    ),
    "entry": Format(
        entry,
        "*",
        [
            lambda folder: submission.load(only(folder).read_bytes()),
            lambda folder: board.read([folder], str(folder / "nothing")),
        ],
    ),
    "dataset": Format(
        copied(SMALL / "zoo"),
        "**/*.*",
        [
            lambda folder: [*read_split(folder, "python", "test", FUNCTION_COLUMNS)[0]],
            check.check_folder,
        ],
    ),
    "tokenizer": Format(
        copied(SMALL / "mouse"), "*.json", [lambda folder: load_tokenizer(str(folder))]
    ),
    "weights": Format(
        copied(SMALL / "mouse"),
        "*.safetensors",
        [lambda folder: load_model(str(folder), device="cpu")],
    ),
    "CuBERT checkpoint": Format(checkpoint, "*", [read_checkpoint]),
    "CuBERT vocabulary": Format(cubert_release.write_vocabulary, "*", [read_cubert_vocabulary]),
}


@functools.cache
def place() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="codesyntax-fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@st.composite
def of_files(draw, name: str) -> Input:
    """The files of a format, of which one is another; checksums beside them are right, so that it is read."""
    honest, folder = place() / name, place() / "changed"
    if not honest.exists():
        FORMATS[name].make(honest)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(honest, folder)
    path = draw(st.sampled_from(sorted(folder.glob(FORMATS[name].changed))))
    path.write_bytes(draw(content_of(path)))
    sums = folder / "SHA256SUMS"
    if sums.exists():
        sums.write_text(sha256sums(folder))
    read = draw(st.sampled_from(FORMATS[name].readers))
    return Input(name, path.stat().st_size, partial(read, folder))


TARGETS = {language: of_code(language) for language in LANGUAGES_OF_CODE}
TARGETS |= {name: of_files(name) for name in FORMATS}


def tries(target: str, times: int, seed: int) -> Counter[str]:
    """What becomes of so many inputs: how many are accepted and refused."""
    became: Counter[str] = Counter()

    @hypothesis.seed(seed)
    @settings(
        max_examples=times, database=None, deadline=None, suppress_health_check=[*HealthCheck]
    )
    @given(TARGETS[target])
    def each(one: Input) -> None:
        became[tried(one)] += 1

    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            each()
    finally:
        logging.disable(logging.NOTSET)
    return became


def run(seed: int, times: int) -> Row:
    """All inputs, in a row; prints a line for each target."""
    total: Counter[str] = Counter()
    for target in TARGETS:
        became = tries(target, times // len(TARGETS), seed)
        print(f"{target:24} {dict(became)}", flush=True)
        total += became
    outcome = f"{total['refused']:,} refused; errors that are not ours, crashes, hangs: 0"
    return Row("random inputs, in code and in files of every format", total.total(), outcome)
