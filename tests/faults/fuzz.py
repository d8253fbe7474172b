"""Random inputs: no file or code of others ends in an error that is not ours, or takes more time than it may.

Hypothesis draws the inputs of `tests/faults/test_fuzz.py`, most of them right ones with a few changes: code for the
annotators and edits of every language, and files of every foreign format. A damaged file that is read says what it said.
"""

from __future__ import annotations

import atexit
import functools
import gzip
import json
import math
import shutil
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st
from support.models import cubert_release

from codesyntax_dataset import annotate, check, corpus, tokenize
from codesyntax_dataset.build import build
from codesyntax_dataset.checksummed_json import with_checksum
from codesyntax_dataset.edits import edit
from codesyntax_dataset.errors import CodeSyntaxError
from codesyntax_dataset.folder import read_split
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_dataset.metadata import sha256sums
from codesyntax_dataset.protocol import EDITS
from codesyntax_dataset.safe_files import LONGEST_FUNCTION
from codesyntax_dataset.schema import Skips
from codesyntax_metric.topk_uas import RULES
from probing.evidence import gather
from probing.instruments.attention import errors
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.result import load as load_result
from probing.instruments.masking.mask import mask
from probing.instruments.masking.result import MaskResult
from probing.models.cubert.convert import variables_of
from probing.models.cubert.tokenizer import CubertTokenizer, read_vocabulary
from probing.models.load import described_model
from probing.models.load import load as load_model
from probing.models.location import TINY
from probing.publish import board
from probing.runs.data import FUNCTION_COLUMNS

SMALL = Path(__file__).resolve().parents[1] / "data/small"
RESULT = "mouse.python.test.c22e27d8"

SECONDS = 2.0
"""CPU time of an input of at most 50,000 characters or bytes; of longer ones, for each 50,000."""

Draw = Callable[[st.SearchStrategy], Any]
"""Draws a value of a strategy."""

REFUSED = object()
"""What is read of an input that is refused."""


def tried(size: int, work: Callable[[], object]) -> object:
    """What is read of an input of so many characters or bytes, or REFUSED.

    Raises AssertionError if that takes too long, and any error that is not ours.
    """
    began = time.process_time()
    try:
        read = work()
    except CodeSyntaxError:
        read = REFUSED
    seconds = time.process_time() - began
    allowed = SECONDS * max(1, min(size, LONGEST_FUNCTION) / 50_000)
    assert seconds <= allowed, f"{seconds:.1f} s for {size:,} characters"
    return read


# ------------------------------------------------------------------------------------------ changes


def changed(draw: Draw, whole: Any, pieces: st.SearchStrategy) -> Any:
    """A text or bytes with up to six parts left out, doubled or exchanged for others."""
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


def altered(draw: Draw, value: Any) -> Any:
    """A JSON value in which something else stands at one place, or nothing."""
    if not isinstance(value, (dict, list)) or not value or not draw(st.integers(0, 5)):
        return draw(ODD)
    value = value.copy()
    key = draw(st.sampled_from([*value] if isinstance(value, dict) else range(len(value))))
    if draw(st.integers(0, 5)):
        value[key] = altered(draw, value[key])
    else:
        del value[key]
    return value


def altered_content(draw: Draw, path: Path) -> bytes:
    """The content of a file with changes in what it says, or in its bytes."""
    data, inside = path.read_bytes(), draw(st.booleans())
    if path.suffix == ".json" and inside:
        value = json.loads(data)
        if isinstance(value, dict):
            value.pop("sha256", None)  # without a checksum, the rest is read
        return draw(st.sampled_from([json.dumps(altered(draw, value)).encode(), DEEP]))
    if path.suffix == ".gz" and inside:
        return gzip.compress(changed(draw, gzip.decompress(data), BYTES))
    return changed(draw, data, BYTES)


# --------------------------------------------------------------------------------------------- code

LANGUAGES_OF_CODE = [name for name, language in LANGUAGES.items() if not language.of_treebanks]


@functools.cache
def functions(language: str) -> list[str]:
    """The code of some functions of the sample."""
    read = corpus.read("sample", language, Skips())
    return [function.code for function in islice(read, 20)]


def try_code(draw: Draw, language: str) -> None:
    """Code with changes, some of which put in code of another language."""
    other = draw(st.sampled_from(functions(draw(st.sampled_from(LANGUAGES_OF_CODE)))))
    pieces = often(st.sampled_from(TOKENS + STRANGE)) | st.sampled_from(other.splitlines(True))
    text = changed(draw, draw(st.sampled_from(functions(language))), pieces)
    variant = draw(st.sampled_from(LANGUAGES[language].variant_names))
    works = [
        partial(annotate, text, language, variant),
        partial(tokenize, text, language, variant),
        partial(edit, text, language, draw(st.sampled_from([*EDITS])), variant),
    ]
    tried(len(text), draw(st.sampled_from(works)))


# -------------------------------------------------------------------------------------------- files


class Format(NamedTuple):
    """Files that are read together.

    `make`: writes them into a folder; `changed`: a pattern of those of which one is changed; `readers`: what reads the
    folder; `exact`: readers that give what the files say, and notice any damage to it.
    """

    make: Callable[[Path], object]
    changed: str
    readers: Sequence[Callable[[Path], object]]
    exact: Sequence[Callable[[Path], object]] = ()


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
    """A folder of source files, for each of the language's labels but those of edited code and pairs."""
    name = f"code/project/a{LANGUAGES[language].suffixes[0]}"
    variants = LANGUAGES[language].configs.items()

    def make(folder: Path) -> None:
        start = ["<?php"] if language == "php" else []
        files({name: "\n\n".join([*start, *functions(language)[:2]])})(folder)

    configs = [config for config, variant in variants if not variant.edit and not variant.pairs]
    return Format(make, "code/project/*", builds(*configs))


def dataset(folder: Path) -> None:
    code = place() / "code/test/project"
    shutil.copytree(Path(corpus.__file__).parent / "sample/test/spans", code)
    build(str(code.parents[1]), ["python"], folder)


def analysis(folder: Path) -> None:
    found = {"edges": 3, "hits": 1, "errors": 2, "layer": 0, "head": 1}
    found |= {"classes": {"bracket": {"errors": 2, "share": 100.0}}}
    fields = {
        "signature": "s",
        "settings": json.loads(said(SMALL / f"results/{RESULT}.json"))["settings"],
        "rules": {rule: {"If:if->test": found} for rule in RULES},
        "differing": dict.fromkeys(RULES, 0),
        "attended": {"0-1": {"bracket": 3}},
    }
    files({"a.errors.json": json.dumps(with_checksum(fields))})(folder)


def said(result: Path) -> str:
    return load_result(result).to_json()


def masked(folder: Path) -> None:
    mask(TINY, SMALL / "zoo", limit=2, draws=1, node_types=["parameters"], output=folder)


def checkpoint(folder: Path) -> None:
    variables = cubert_release.variables(8, 1, 8).items()
    few = {name: values for name, values in variables if values.size < 5000}
    cubert_release.write_bundle(folder / "c.ckpt-1", few)


def read_checkpoint(folder: Path) -> None:
    for values in variables_of(folder / "c.ckpt-1").values():
        values.sum()


def read_cubert_vocabulary(folder: Path) -> None:
    read_vocabulary(only(folder))
    CubertTokenizer(only(folder), "python")(PYTHON)


def rows(folder: Path) -> list[Any]:
    return read_split(folder, "python", "test", FUNCTION_COLUMNS)[0].to_pylist()


FORMATS = {
    "CodeSearchNet": Format(files({f"csn/{MEMBER}": LINES}), f"csn/{MEMBER}", builds("python")),
    "CodeSearchNet, zip": Format(zipped, "*", builds("python")),
    "published labels": Format(
        files({"CodeSyntax_python.json": json.dumps([PUBLISHED, PUBLISHED | {"id": 1}])}),
        "*",
        builds("python"),
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
    "results": Format(
        copied(SMALL / "results"),
        f"{RESULT}.*",
        [
            lambda folder: RankLedger.load(folder / f"{RESULT}.ledger.parquet").counts(),
            lambda folder: load_result(folder / f"{RESULT}.json"),
            lambda folder: gather.find([folder]),
        ],
        [lambda folder: said(folder / f"{RESULT}.json")],
    ),
    "error analysis": Format(
        analysis,
        "*",
        [lambda folder: errors.load(only(folder))],
        [lambda folder: errors.load(only(folder)).to_json()],
    ),
    "masking": Format(
        masked,
        "*",
        [lambda folder: MaskResult.load(next(folder.glob("*.json")))],
        [lambda folder: MaskResult.load(next(folder.glob("*.json"))).to_json()],
    ),
    "board": Format(
        copied(SMALL / "results"),
        "*.parquet",
        [lambda folder: board.read([folder], str(SMALL / "zoo"))],
    ),
    "dataset": Format(dataset, "**/*.*", [rows, check.check_folder], [rows]),
    "tokenizer": Format(
        copied(SMALL / "mouse"), "*.json", [lambda folder: described_model(str(folder), None)]
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


@functools.cache
def honest(name: str) -> tuple[Path, list[object]]:
    """The folder of a format as it is, which each reader accepts, and what its exact readers read."""
    folder = place() / name
    FORMATS[name].make(folder)
    for read in FORMATS[name].readers:
        read(folder)
    return folder, [read(folder) for read in FORMATS[name].exact]


def try_files(draw: Draw, name: str) -> None:
    """The files of a format, of which one has changes.

    Checksums beside them are right, so that it is read, but not before an exact reader.
    """
    (folder, expected), another = honest(name), place() / "changed"
    of_format = FORMATS[name]
    shutil.rmtree(another, ignore_errors=True)
    shutil.copytree(folder, another)
    path = draw(st.sampled_from(sorted(another.glob(of_format.changed))))
    if of_format.exact and draw(st.booleans()):
        path.write_bytes(changed(draw, path.read_bytes(), BYTES))
        for read, before in zip(of_format.exact, expected):
            now = tried(path.stat().st_size, partial(read, another))
            assert now is REFUSED or now == before, f"the damage of {path.name} is not noticed"
        return
    path.write_bytes(altered_content(draw, path))
    sums = another / "SHA256SUMS"
    if sums.exists():
        sums.write_text(sha256sums(another))
    tried(path.stat().st_size, partial(draw(st.sampled_from(of_format.readers)), another))


TARGETS = dict.fromkeys(LANGUAGES_OF_CODE, try_code)
TARGETS |= dict.fromkeys(FORMATS, try_files)
