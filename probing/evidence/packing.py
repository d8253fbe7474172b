"""Whole numbers as text in entries: base64 of zlib of 4 bytes each, little-endian; first the lowest bytes of all."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np

from codesyntax_dataset.errors import EntryError
from probing.runs.records import shown

_MOST_NUMBERS = 10**7
"""The most numbers in one list: several times as many as in the largest published config."""


def packed(numbers: np.ndarray) -> str:
    """Numbers from 0 to 2 ** 32 - 1, of any shape, in C order."""
    lowest_first = np.ascontiguousarray(numbers, "<u4").reshape(-1, 1).view(np.uint8).T
    compressor = zlib.compressobj(9, memLevel=9, strategy=zlib.Z_FILTERED)  # of small numbers, 4 % shorter
    return base64.b64encode(compressor.compress(lowest_first.tobytes()) + compressor.flush()).decode()


def unpacked(value: str, at: str, count: int) -> np.ndarray:
    """Exactly `count` numbers, uint32; raises EntryError for any other text."""
    try:
        reading = zlib.decompressobj()
        if count > _MOST_NUMBERS:
            raise ValueError(f"more than {_MOST_NUMBERS:,} numbers")
        data = reading.decompress(base64.b64decode(value, validate=True), 4 * count + 1)
        if len(data) != 4 * count or not reading.eof:
            raise ValueError(f"not {count:,} numbers")
    except (ValueError, zlib.error) as error:
        raise EntryError(f"{at} is {shown(value)}, expected packed numbers: {error}") from error
    return np.frombuffer(data, np.uint8).reshape(4, -1).T.copy().view("<u4").reshape(-1)


def same_numbers(one: Any, other: Any) -> bool:
    """True if two JSON values are equal; packed numbers may be packed in another way."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_numbers(one[name], other[name]) for name in one)
    if isinstance(one, str) and isinstance(other, str) and one != other:
        try:
            return zlib.decompress(base64.b64decode(one)) == zlib.decompress(base64.b64decode(other))
        except (ValueError, zlib.error):
            return False
    return bool(one == other)
