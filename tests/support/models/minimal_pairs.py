"""Minimal pairs written by hand, in the columns of a config `LANGUAGE_pairs`, and a decoder that reads bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import datasets
import yaml
from support.models.random_models import byte_decoder

from codesyntax_dataset.metadata import sha256sums
from codesyntax_dataset.protocol import MARKER

REPOSITORIES = 8

LONGEST = 120
"""Positions of the decoder."""


RELATIONS = {"loop": "While:while->body"}


def pair(
    number: int, good: str, bad: str, phenomenon: str, distance: int, depth: int, repo: str
) -> dict:
    about = {
        "phenomenon": phenomenon,
        "relation": RELATIONS.get(phenomenon, ""),
        "distance": distance,
        "depth": depth,
    }
    return {
        "id": f"{number}-0",
        "good": good,
        "bad": bad,
        **about,
        "prefix": False,
        "certified": "ast",
        "refused_by": "parser",
        "repo": repo,
        "path": "a.py",
    }


def written() -> list[dict]:
    """60 pairs of two phenomena, of lengths and distances of their own."""
    rows = []
    for number in range(30):
        repo, lines = (
            f"owner/{number % REPOSITORIES}",
            "".join(f"  a{at} = {number}\n" for at in range(number % 4)),
        )
        good = f"def f():\n while g():\n{lines}  break\n"
        rows.append(
            pair(number, good, good.replace("while", "if"), "loop", 4 * number, number % 3, repo)
        )
        good = f"def f(b):\n{lines.replace('  ', ' ')} return (b, [{number}])\n"
        rows.append(
            pair(number, good, good.replace("])", "))"), "bracket", number, number % 7, repo)
        )
    return rows


PAIRS = written()


def folder_of(place: Path, configs: Mapping[str, Mapping[str, datasets.Dataset]]) -> Path:
    """A dataset folder, as `codesyntax build` writes it, from config -> split -> rows."""
    header = []
    for config, splits in configs.items():
        (place / config).mkdir(parents=True)
        files = []
        for split, rows in splits.items():
            files.append({"split": split, "path": f"{config}/{split}.parquet"})
            rows.to_parquet(place / files[-1]["path"])
        header.append({"config_name": config, "version": "1.0.0", "data_files": files})
    (place / "README.md").write_text(f"---\n{yaml.safe_dump({'configs': header})}---\n{MARKER}\n")
    (place / "SHA256SUMS").write_text(sha256sums(place))
    return place


def pairs_folder(
    folder: Path,
    pairs: datasets.Dataset | None = None,
    validation: Sequence[dict[str, Any]] | None = None,
    functions: Path | None = None,
) -> Path:
    """A dataset folder with the pairs, and with the functions of validation of another folder."""
    splits = {"test": datasets.Dataset.from_list(PAIRS) if pairs is None else pairs}
    if validation is not None:
        splits["validation"] = datasets.Dataset.from_list([*validation])
    configs = {"python_pairs": splits}
    if functions is not None:
        read = datasets.Dataset.from_parquet(str(functions / "python/validation.parquet"))
        configs["python"] = {"validation": read}
    return folder_of(folder, configs)


def tiny_decoder(folder: Path) -> Path:
    return byte_decoder(folder, LONGEST)
