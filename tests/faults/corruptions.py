"""Corrupt the files that commands read, and see whether a number changes.

    python tests/faults --only corruptions [--seed 0] [--times 1200]

One file of a small world is truncated, emptied, overwritten in a block, has bits flipped, bytes swapped or rubbish appended,
or has the content of another of its kind. Whatever reads it must then refuse it with an error of our family, leave it out
and say so, or give what it gives for the intact file. Anything else would be a wrong number.
"""

from __future__ import annotations

import gzip
import json
import random
import shutil
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from click.testing import CliRunner
from rows import Row
from world import COMMANDS, World, world

from codesyntax_dataset import sources
from codesyntax_dataset.atomic import write
from codesyntax_dataset.check import check_folder
from codesyntax_dataset.errors import CodeSyntaxError
from codesyntax_dataset.schema import Skips
from probing.cli import main
from probing.cli.options import BESIDE
from probing.instruments.attention import errors
from probing.instruments.attention.result import ProbeResult
from probing.instruments.masking.result import MaskResult
from probing.instruments.silencing.result import SilencingResult
from probing.models.load import load
from probing.models.loaded import TEXTS
from probing.models.location import TINY, embedded_folder
from probing.publish import board as boards
from probing.report.board import document
from probing.report.folder import markdown
from probing.runs.data import load_functions
from probing.runs.experiment import Slot


class LeftOut(CodeSyntaxError):
    """What does not use a file, and says so, raises this here."""


class Files(NamedTuple):
    """Files in the world that are read together: a pattern, and all that is made of them."""

    pattern: str
    read: Callable[[Path], object]


def _rows(place: Path) -> object:
    splits = [load_functions(place / "data", "python", split) for split in ("test", "validation")]
    return [(dataset.to_list(), name) for dataset, name in splits]


def _results(pattern: str) -> Callable[[Path], object]:
    def read(place: Path) -> object:
        return [
            _result(path)
            for path in sorted(place.glob(f"{pattern}.json"))
            if not path.name.endswith(BESIDE)
        ]

    return read


def _result(path: Path) -> object:
    if ".masking." in path.name:
        return MaskResult.load(path).to_json()
    return (SilencingResult if ".silencing." in path.name else ProbeResult).load(path).to_json()


def _scores(place: Path) -> object:
    ran = CliRunner().invoke(main, ["score", *map(str, sorted(place.glob("*/*.ledger.parquet")))])
    if ran.exit_code == 1 and "Error: " in ran.output:
        raise LeftOut(ran.output)
    if ran.exception:
        raise ran.exception
    return ran.output


def _errors(place: Path) -> object:
    found = [errors.load(path) for path in sorted(place.glob("results/*.errors.json"))]
    if len({analysis.settings.name for analysis in found}) < len(found):
        raise LeftOut("reports use the analysis of a result by its settings")
    return [analysis.to_json() for analysis in found]


def _board(place: Path) -> object:
    found = boards.read([str(place / "entries")])
    if found.left_out:
        raise LeftOut(str(found.left_out))
    made = document(found)
    return made.files, markdown(made.sections)


def _source(name: str) -> Callable[[Path], object]:
    def read(place: Path) -> object:
        skips = Skips()
        functions = list(sources.read(str(place / "sources" / name), "python", skips))
        if skips.counts:
            raise LeftOut(str(skips.counts))
        return functions

    return read


def _cache(place: Path) -> object:
    names = sorted(path.stem.split("-")[0] for path in (place / "cache").glob("*.parquet"))
    found = [Slot(place / "cache", name, "").load(lambda path: path.read_bytes()) for name in names]
    if None in found:
        raise LeftOut("not all are used")
    return found


def _model(place: Path) -> object:
    """What a model makes of texts; with another revision in results, it is another model."""
    encoder = load(str(place / "model"))
    if encoder.revision != _revision():
        raise LeftOut(f"results say that they are of {encoder.revision}")
    ids = [ids for ids, _, _ in encoder.encode(TEXTS)]
    return [
        part.tobytes()
        for part in (*ids, *(maps.numpy() for maps in encoder.maps(encoder.inputs(ids))))
    ]


@cache
def _revision() -> str:
    return load(TINY).revision


FILES = {
    "datasets": Files("data/**/*.*", _rows),
    "datasets to be pushed": Files(
        "data/**/*.*", lambda place: check_folder(place / "data").text()
    ),
    "results of attention": Files("results/*", _results("results/*")),
    "results of masking and silencing": Files("*ed/*", _results("*ed/*")),
    "ledgers": Files("*/*.ledger.parquet", _scores),
    "error analyses": Files("results/*.errors.json", _errors),
    "entries": Files("entries/*", _board),
    "gz": Files("sources/gz/**/*.gz", _source("gz")),
    "zip": Files("sources/*.zip", _source("CodeSyntax.zip")),
    "caches": Files("cache/*.*", _cache),
    "models": Files("model/*", _model),
}
"""What is corrupted, and what reads it."""


def furnish(of: World) -> None:
    """Add what an ordinary world does not have: results of masking, and compressed sources.

    Not of silencing: no head of its random model is a candidate.
    """
    probed = min((of.place / "results").glob("*.test.????????.json"))
    for command in (COMMANDS["mask"], f"errors results/{probed.name}"):
        assert of.run(command) == 0, of.log.read_text()
    shutil.copytree(embedded_folder(TINY), of.place / "model")
    for path, content in of.hub.files("user/results").items():
        write(of.place / path, content)
    functions = load_functions(of.place / "data", "python", "test")[0].to_list()
    jsonl = of.place / "sources/gz/python/final/jsonl/test/python_test_0.jsonl.gz"
    jsonl.parent.mkdir(parents=True)
    said = {
        "repo": "a/b",
        "path": "c.py",
        "func_name": "f",
        "url": "u",
        "language": "python",
        "partition": "test",
    }
    lines = [json.dumps(said | {"code": row["code"]}) for row in functions]
    jsonl.write_bytes(gzip.compress("\n".join(lines).encode()))
    labelled = [
        {
            "id": row["id"],
            "code": row["code"],
            "tokens": [
                row["code"][start:end] for start, end in zip(row["token_start"], row["token_end"])
            ],
            "relns": {
                edge["relation"]: [[edge["head"], edge["first"], edge["last"]]]
                for edge in row["relations"]
            },
        }
        for row in functions
    ]
    with zipfile.ZipFile(of.place / "sources/CodeSyntax.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("CodeSyntax_python.json", json.dumps(labelled))


def corrupt(rng: random.Random, content: bytes, others: list[bytes]) -> tuple[str, bytes]:
    """How a content is corrupted, and what becomes of it: never the same; `others` are those of files of its kind."""
    data, size = bytearray(content), len(content)
    at, length = rng.randrange(size), rng.randrange(1, 64)
    match rng.randrange(8):
        case 0:
            return "truncated", content[:at]
        case 1:
            return "a bit flipped", content[:at] + bytes(
                [content[at] ^ 1 << rng.randrange(8)]
            ) + content[at + 1 :]
        case 2:
            for place in rng.choices(range(size), k=length):
                data[place] ^= 1 << rng.randrange(8)
            return "bits flipped", bytes(data)
        case 3:
            other = rng.randrange(size)
            data[at], data[other] = data[other], data[at]
            return "bytes swapped", bytes(data)
        case 4:
            return "a block zeroed", content[:at] + bytes(len(content[at : at + length])) + content[
                at + length :
            ]
        case 5:
            return "rubbish appended", content + rng.randbytes(length)
        case 6:
            return "a block repeated", content[: at + length] + content[at:]
        case _:
            return "another file of its kind", rng.choice(others)


TIMES = 1200


def run(seed: int, times: int) -> Row:
    with world() as of:
        what = trials(of, random.Random(seed), times)
    return Row(
        "corruptions",
        times,
        f"{what['refused']:,} refused, {what['without effect']:,} without effect, wrong numbers: 0",
    )


def trials(
    of: World, rng: random.Random, times: int, files: Sequence[str] = tuple(FILES)
) -> Counter[str]:
    """Corrupt one file after the other; raises AssertionError for a wrong number."""
    what = Counter[str]()
    furnish(of)
    intact = {name: FILES[name].read(of.place) for name in files}
    while what.total() < times:
        what[_one(of, rng, *rng.choice(list(intact.items())))] += 1
    return what


def _one(of: World, rng: random.Random, name: str, intact: object) -> str:
    paths = sorted(path for path in of.place.glob(FILES[name].pattern) if path.is_file())
    path = rng.choice(paths)
    content, others = (
        path.read_bytes(),
        [other.read_bytes() for other in paths if other.suffix == path.suffix],
    )
    how, corrupted = corrupt(rng, content, others)
    path.write_bytes(corrupted)
    try:
        same = FILES[name].read(of.place) == intact
    except CodeSyntaxError:
        return "refused"
    finally:
        path.write_bytes(content)
    assert same, f"{name}, {path.relative_to(of.place)}: {how} goes unnoticed"
    return "without effect"
