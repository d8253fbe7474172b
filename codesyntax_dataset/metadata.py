"""The files of a dataset besides its Parquet files and its card:

- `eval.yaml`, the tasks of a benchmark on the Hub (`codesyntax_dataset.tasks`);
- `croissant.json`, the columns and files in Croissant 1.1 (https://docs.mlcommons.org/croissant/);
- `SHA256SUMS`, a checksum of every other file, for `sha256sum -c SHA256SUMS`.

All three follow from the Parquet files: `codesyntax_dataset.check` generates them again and compares.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import datasets
import yaml

from codesyntax_dataset.features import COLUMNS, PAIR_COLUMNS
from codesyntax_dataset.languages import CONFIGS
from codesyntax_dataset.measure import ConfigReport
from codesyntax_dataset.protocol import SPLITS
from codesyntax_dataset.schema import LABELS
from codesyntax_dataset.tasks import tasks

CARD, EVAL, CROISSANT, SUMS = "README.md", "eval.yaml", "croissant.json", "SHA256SUMS"

_SUMMARY = "Syntax of real code as labelled edges between code tokens (Shen et al., Findings of EMNLP 2022)"

_EVAL_DESCRIPTION = """
Which syntactic relations of code do a model's attention heads find, and what of syntax does a masked model restore? The
value of a task is in percent (0 to 100, higher is better). held-out: the top-1 UAS, rule first, mean over relations,
each scored with the head that is best on the validation split, reading from dependent to head as decoders can.
beyond-offset: the same on the edges that the best offset of the relation misses. mask-restored: the share of sub-tokens
that a masked language model predicts exactly when all nodes of a type are masked, mean over node types.
"""

_URL = "https://arxiv.org/abs/2210.14473"

_CITATION = (
    "Shen, Chen, Wang, Sen and Song: Benchmarking Language Models for Code Syntax Understanding. "
    f"Findings of EMNLP 2022. {_URL}"
)

_LICENSE = "https://choosealicense.com/licenses/other/"
"""The address that the Hub gives for the `license: other` of the card."""

_PUBLISHED = "2026-11-23"
"""The date of the current label rules. The date of the build would give the same functions other bytes each day."""

_TERMS = (
    "arrayShape citeAs column conformsTo containedIn equivalentProperty extract field fileObject fileProperty fileSet "
    "format includes isArray isLiveDataset jsonPath key md5 parentField path recordSet references regex repeated "
    "replace samplingRate separator source subField transform"
)
_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    **{term: f"cr:{term}" for term in _TERMS.split()},
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "description": {"@container": "@language"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "name": {"@container": "@language"},
}
"""The terms of Croissant 1.1, which its specification requires every file to define."""

_DATA_TYPES = {"bool": "sc:Boolean", "string": "sc:Text", "int32": "cr:Int32", "int64": "cr:Int64"}


def render(folder: Path, configs: Mapping[str, ConfigReport]) -> dict[str, str]:
    """File name -> text of `eval.yaml` and `croissant.json` for the Parquet files of `configs` in `folder`.

    A dataset without tasks (it has no split `test`) has no `eval.yaml`.
    """
    texts = {CROISSANT: json.dumps(_croissant(folder, configs), indent=1, ensure_ascii=False) + "\n"}
    rows = [
        {"id": task.id, "config": task.config, "split": "test"}
        for task in tasks(configs)
        if set(task.splits) <= set(configs[task.config].functions)
    ]
    if rows:
        benchmark = {"name": "CodeSyntax", "description": " ".join(_EVAL_DESCRIPTION.split()), "tasks": rows}
        texts[EVAL] = yaml.safe_dump(benchmark, sort_keys=False)
    return texts


def files() -> frozenset[str]:
    """Every file that a dataset may contain."""
    parquet = {f"{config}/{split}.parquet" for config in CONFIGS for split in SPLITS}
    return frozenset({CARD, EVAL, CROISSANT, SUMS} | parquet)


def sha256sums(folder: Path) -> str:
    """The checksums of all files under `folder` except `SHA256SUMS`, one per line, sorted by name."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return "".join(f"{sha256(folder / name)}  {name}\n" for name in names if name != SUMS)


def sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _croissant(folder: Path, configs: Mapping[str, ConfigReport]) -> dict[str, Any]:
    """One FileObject per Parquet file and one RecordSet for its rows."""
    files, records = [], []
    for name, config in configs.items():
        units, columns = config.units, PAIR_COLUMNS if config.pairs else COLUMNS
        for split, functions in config.functions.items():
            path = f"{name}/{split}.parquet"
            files.append(
                {
                    "@type": "cr:FileObject",
                    "@id": path,
                    "name": path,
                    "contentUrl": path,
                    "contentSize": f"{(folder / path).stat().st_size} B",
                    "encodingFormat": "application/x-parquet",
                    "sha256": sha256(folder / path),
                }
            )
            rows = f"{name}/{split}"
            records.append(
                {
                    "@type": "cr:RecordSet",
                    "@id": rows,
                    "name": rows,
                    "description": f"{functions} {units}: config {name}, version {config.version}, split {split}",
                    "key": {"@id": f"{rows}/id"},
                    "field": [
                        _field(rows, column, meaning, path, config.info.features[column])
                        for column, meaning in columns.items()
                    ],
                }
            )
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": "CodeSyntax",
        "description": f"{_SUMMARY}.",
        "license": _LICENSE,
        "usageInfo": (
            "Functions keep the licences of their repositories, and sentences the licences of their treebanks."
        ),
        "creator": {"@type": "sc:Organization", "name": "The CodeSyntax developers"},
        "url": _URL,
        "datePublished": _PUBLISHED,
        "version": f"{LABELS}.0",
        "citeAs": _CITATION,
        "keywords": ["code", "syntax", "probing", "attention"],
        "distribution": files,
        "recordSet": records,
    }


def _field(rows: str, column: str, meaning: str, path: str, feature: Any) -> dict[str, Any]:
    source = {"fileObject": {"@id": path}, "extract": {"column": column}}
    field: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": f"{rows}/{column}",
        "name": column,
        "description": meaning,
        "source": source,
    }
    if isinstance(feature, datasets.List):
        field |= {"isArray": True, "arrayShape": "-1"}
        feature = feature.feature
    if not isinstance(feature, dict):
        return field | {"dataType": _DATA_TYPES[feature.dtype]}
    parts = [
        {
            "@type": "cr:Field",
            "@id": f"{rows}/{column}/{name}",
            "name": name,
            "dataType": _DATA_TYPES[part.dtype],
            "source": source | {"transform": {"jsonPath": name}},
        }
        for name, part in feature.items()
    ]
    return field | {"subField": parts}
