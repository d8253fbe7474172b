"""What files have in them."""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path


def contents(folder: Path) -> dict[str, bytes]:
    """The bytes of each file below a folder, by its path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def csv_rows(file: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
