"""The real functions of the reference material."""

from __future__ import annotations

import gzip
import json
from pathlib import Path


def read_rows(path: Path) -> list[dict]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def slice_of_codesearchnet(shared: Path, language: str, split: str) -> dict[str, str]:
    """URL -> code; `split`: test or valid."""
    folder = shared / f"data/codesearchnet/{language}/final/jsonl/{split}"
    return {row["url"]: row["code"] for row in read_rows(folder / f"{language}_{split}_0.jsonl.gz")}
