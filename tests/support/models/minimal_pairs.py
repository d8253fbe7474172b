"""Minimal pairs written by hand, in the columns of a config `LANGUAGE_pairs`, and a decoder that reads bytes."""

from __future__ import annotations

from collections.abc import Sequence
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


def pairs_folder(
    folder: Path,
    pairs: datasets.Dataset | None = None,
    validation: Sequence[dict[str, Any]] | None = None,
) -> Path:
    """A dataset folder with the pairs, as `codesyntax build` writes it."""
    (folder / "python_pairs").mkdir(parents=True)
    splits = {"test": datasets.Dataset.from_list(PAIRS) if pairs is None else pairs}
    if validation is not None:
        splits["validation"] = datasets.Dataset.from_list([*validation])
    files = []
    for split, rows in splits.items():
        files.append({"split": split, "path": f"python_pairs/{split}.parquet"})
        rows.to_parquet(folder / files[-1]["path"])
    header = {"configs": [{"config_name": "python_pairs", "version": "1.0.0", "data_files": files}]}
    (folder / "README.md").write_text(f"---\n{yaml.safe_dump(header)}---\n{MARKER}\n")
    (folder / "SHA256SUMS").write_text(sha256sums(folder))
    return folder


def tiny_decoder(folder: Path) -> Path:
    return byte_decoder(folder, LONGEST)
