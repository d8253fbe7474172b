"""Write a TensorFlow checkpoint of the format V2, as `Saver` does: an index in LevelDB's table format, and data files.

Independent of our reader: another CRC-32C, and its own protocol buffers. What real TensorFlow 2.21 wrote was read equally.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np

_TYPES = {"float32": 1, "float64": 2, "int64": 9}


def write_bundle(
    prefix: Path,
    variables: Mapping[str, np.ndarray],
    shards: int = 1,
    block_size: int = 1 << 10,
    sliced: str = "",
) -> Path:
    """The prefix, with the variables beside it, dealt out to some data files; `sliced` is marked as stored in slices."""
    prefix.parent.mkdir(parents=True, exist_ok=True)
    data = [bytearray() for _ in range(shards)]
    entries = [(b"", _field(1, shards) + _field(3, _field(1, 1)))]
    for number, name in enumerate(sorted(variables, key=str.encode)):
        values = variables[name]
        raw, shard = values.tobytes(), number % shards
        shape = b"".join(_field(2, _field(1, size)) for size in values.shape)
        message = _field(1, _TYPES[values.dtype.name]) + _field(2, shape) + _field(3, shard)
        message += (
            _field(4, len(data[shard]))
            + _field(5, len(raw))
            + b"\x35"
            + struct.pack("<I", masked(raw))
        )
        message += _field(7, b"") if name == sliced else b""
        entries.append((name.encode(), message))
        data[shard] += raw
    for shard, content in enumerate(data):
        prefix.with_name(f"{prefix.name}.data-{shard:05}-of-{shards:05}").write_bytes(content)
    prefix.with_name(f"{prefix.name}.index").write_bytes(table(entries, block_size))
    return prefix


def table(entries: list[tuple[bytes, bytes]], block_size: int = 1 << 10, times: int = 1) -> bytes:
    """Entries as a table in LevelDB's format, in blocks of about so many bytes, of which the index names each `times`."""
    out, handles, waiting = bytearray(), [], []

    def add(content: list[tuple[bytes, bytes]]) -> bytes:
        raw = _block(content)
        handle = _varint(len(out)) + _varint(len(raw))
        out.extend(raw + b"\0" + struct.pack("<I", masked(raw + b"\0")))
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


def _crc_table() -> list[int]:
    values = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ 0x82F63B78 * (byte & 1)
        values.append(byte)
    return values


_CRC = _crc_table()


def masked(data: bytes) -> int:
    """The CRC-32C (Castagnoli) of some bytes, as LevelDB stores it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
