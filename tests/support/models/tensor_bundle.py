"""Write a TensorFlow checkpoint of the format V2, as `Saver` does: an index in LevelDB's table format, and a data file.

Independent of our reader, with its own protocol buffers. Checksums,
which are not read, are 0.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np

_TYPES = {"float32": 1, "float64": 2, "int64": 9}


def write_bundle(
    prefix: Path, variables: Mapping[str, np.ndarray], block_size: int = 1 << 10, sliced: str = ""
) -> Path:
    """The prefix, with the variables beside it; `sliced` is marked as stored in slices."""
    prefix.parent.mkdir(parents=True, exist_ok=True)
    data = bytearray()
    entries = [(b"", _field(1, 1) + _field(3, _field(1, 1)))]
    for name in sorted(variables, key=str.encode):
        values = variables[name]
        raw = values.tobytes()
        shape = b"".join(_field(2, _field(1, size)) for size in values.shape)
        message = _field(1, _TYPES[values.dtype.name]) + _field(2, shape)
        message += _field(4, len(data)) + _field(5, len(raw)) + b"\x35" + bytes(4)
        message += _field(7, b"") if name == sliced else b""
        entries.append((name.encode(), message))
        data += raw
    prefix.with_name(f"{prefix.name}.data-00000-of-00001").write_bytes(data)
    prefix.with_name(f"{prefix.name}.index").write_bytes(table(entries, block_size))
    return prefix


def table(entries: list[tuple[bytes, bytes]], block_size: int = 1 << 10, times: int = 1) -> bytes:
    """Entries as a table in LevelDB's format, in blocks of about so many bytes, of which the index names each `times`."""
    out, handles, waiting = bytearray(), [], []

    def add(content: list[tuple[bytes, bytes]]) -> bytes:
        raw = _block(content)
        handle = _varint(len(out)) + _varint(len(raw))
        out.extend(raw + bytes(5))  # its compression, which is none, and checksum
        return handle

    for key, value in entries:
        waiting.append((key, value))
        if sum(len(key) + len(value) for key, value in waiting) >= block_size:
            handles.append((key, add(waiting)))
            waiting = []
    if waiting:
        handles.append((waiting[-1][0], add(waiting)))
    meta = add([])
    footer = (meta + add(handles * times)).ljust(40, b"\0")
    return bytes(out + footer + struct.pack("<Q", 0xDB4775248B80FB57))


def _block(entries: list[tuple[bytes, bytes]]) -> bytes:
    out, restarts, before = bytearray(), [0], b""
    for number, (key, value) in enumerate(entries):
        shared = 0
        if number % 16:
            while shared < min(len(key), len(before)) and key[shared] == before[shared]:
                shared += 1
        elif number:
            restarts.append(len(out))
        out += (
            _varint(shared)
            + _varint(len(key) - shared)
            + _varint(len(value))
            + key[shared:]
            + value
        )
        before = key
    return bytes(out) + struct.pack(f"<{len(restarts) + 1}I", *restarts, len(restarts))


def _field(number: int, value: int | bytes) -> bytes:
    """A field of a protocol buffer; numbers that are 0 are left out."""
    if isinstance(value, bytes):
        return _varint(number << 3 | 2) + _varint(len(value)) + value
    return _varint(number << 3) + _varint(value) if value else b""


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])
