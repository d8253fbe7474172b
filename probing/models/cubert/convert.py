"""Convert a released checkpoint of CuBERT, written by TensorFlow 1, to a BERT in safetensors with
its tokenizer.

`TensorBundle` reads the variables of the checkpoint (`Saver`'s format V2, a "tensor bundle")
without TensorFlow. A checkpoint is a table in LevelDB's format, `PREFIX.index`, of protocol buffers
that say where in the files `PREFIX.data-...` each variable is. TensorFlow itself takes half a
gigabyte, follows new versions of Python late, and crashes on some malformed checkpoints; the pure
reader on PyPI is not kept any more. Of the format this reads what `Saver` writes for variables: one
file or several, no compression, variables stored whole. Everything is checked against its CRC-32C
and the sizes of the files, so that a damaged or malicious checkpoint ends in a ModelError.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import save_file
from transformers import BertConfig

from codesyntax_dataset import safe_files
from codesyntax_dataset.arguments import checked
from codesyntax_dataset.atomic import atomic_path, os_errors_as_ledger_errors
from codesyntax_dataset.errors import ModelError
from probing.models.cubert.tokenizer import CubertTokenizer

_MAGIC = 0xDB4775248B80FB57
_FOOTER = 48  # bytes: the places of two blocks, padded, and the magic number
_TRAILER = 5  # bytes behind a block: its compression, and a checksum
_LARGEST_INDEX = 1 << 24  # bytes; that of BERT-Large with its optimizer has 0.1 MB
_LONGEST_KEY = 1 << 12  # bytes
_FLOAT = 1  # of TensorFlow's data types


class Variable(NamedTuple):
    """Where a variable is: its shape, its data file, and its bytes there with their checksum.

    `readable`: whether it is float32, and stored whole.
    """

    shape: tuple[int, ...]
    file: Path
    offset: int
    size: int
    checksum: int
    readable: bool


class TensorBundle:
    """The variables of a checkpoint, by name. Values are read when they are asked for.

    `path`: the prefix of its files, its `.index`, or a folder with one checkpoint. Raises
    ModelError if there is none, or its index is damaged.
    """

    def __init__(self, path: Path):
        self.prefix = _prefix(path)
        index = _read_bytes(self.prefix.with_name(f"{self.prefix.name}.index"))
        try:
            self.variables = self._variables(index)
        except _Malformed as error:
            raise ModelError(
                f"{self.prefix}.index is not the index of a TensorFlow checkpoint, or is damaged: {error}"
            ) from error

    def _variables(self, index: bytes) -> dict[str, Variable]:
        entries = _table_entries(index)
        first, value = next(entries, (None, b""))
        if first != b"":
            raise _Malformed("it does not begin with a header")
        header = _message_fields(value)
        shards = _field_number(header, 1)
        if _field_number(header, 2):
            raise _Malformed("it is big-endian")
        variables = {}
        for key, value in entries:
            fields = _message_fields(value)
            shard = _field_number(fields, 3)
            if shard >= shards:
                raise _Malformed(f"file {shard} of {shards}")
            dimensions = [
                _message_fields(dimension)
                for dimension in _messages(_message_fields(_merged_message(fields, 2)), 2)
            ]
            variables[key.decode(errors="backslashreplace")] = Variable(
                shape=tuple(_field_number(dimension, 1) for dimension in dimensions),
                file=self.prefix.with_name(f"{self.prefix.name}.data-{shard:05}-of-{shards:05}"),
                offset=_field_number(fields, 4),
                size=_field_number(fields, 5),
                checksum=_field_number(fields, 6),
                readable=_field_number(fields, 1) == _FLOAT and 7 not in fields,
            )
        return variables

    def read(self, name: str) -> np.ndarray:
        """The float32 values of a variable; raises ModelError if they are damaged, or of another
        type."""
        variable = self.variables[name]
        if not variable.readable or variable.size != 4 * math.prod(variable.shape):
            raise ModelError(
                f"{self.prefix}: the variable {name!r} is not float32 in one piece, expected every variable to be"
            )
        values = _read_bytes(variable.file, variable.offset, variable.size)
        if _checksum(values) != variable.checksum:
            raise ModelError(
                f"{variable.file}: the variable {name!r} is damaged, its checksum is wrong: download it again"
            )
        return np.frombuffer(values, "<f4").reshape(variable.shape)


class _Malformed(Exception):
    """A malformed index."""


def _prefix(path: Path) -> Path:
    if path.is_dir():
        indices = sorted(path.glob("*.index"))
        if len(indices) != 1:
            names = ", ".join(file.stem for file in indices[:3]) or "none"
            raise ModelError(
                f"{path} has {len(indices)} checkpoints ({names}): give one by the prefix of its files"
            )
        path = indices[0]
    return path.with_suffix("") if path.suffix == ".index" else path


def _read_bytes(file: Path, offset: int = 0, size: int | None = None) -> bytes:
    """Some bytes of a data file, or all of an index; raises ModelError if the file does not have
    them."""
    try:
        with safe_files.opened(file) as stream:
            length = os.fstat(stream.fileno()).st_size
            wanted = min(length, _LARGEST_INDEX) if size is None else size
            if offset + wanted > length:
                raise ModelError(
                    f"{file} ends at byte {length}, expected at least {offset + wanted}: download it again"
                )
            stream.seek(offset)
            return stream.read(wanted)
    except OSError as error:
        raise ModelError(
            f"{file} cannot be read ({error.strerror}): expected a TensorFlow checkpoint, a file NAME.index beside "
            "NAME.data-00000-of-00001"
        ) from error


def _table_entries(table: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The keys and values of a table in LevelDB's format, in order."""
    footer = table[-_FOOTER:]
    if len(footer) < _FOOTER or struct.unpack("<Q", footer[-8:])[0] != _MAGIC:
        raise _Malformed("its last bytes are not those of such a table")
    _, position = _varint(footer, 0)  # of the block of meta data
    _, position = _varint(footer, position)
    behind = 0
    for _, handle in _block(table, *_handle(footer, position)):
        offset, size = _handle(handle, 0)
        if offset < behind:  # otherwise a small table could have any number of entries
            raise _Malformed("its blocks overlap")
        behind = offset + size
        yield from _block(table, offset, size)


def _handle(data: bytes, position: int) -> tuple[int, int]:
    """The offset and size of a block."""
    offset, position = _varint(data, position)
    size, _ = _varint(data, position)
    return offset, size


def _block(table: bytes, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """The keys and values of a block; a key repeats the beginning of the one before it."""
    block, trailer = table[offset : offset + size], table[offset + size : offset + size + _TRAILER]
    if len(trailer) < _TRAILER or size < 4:
        raise _Malformed("a block is beyond its end")
    if struct.unpack("<I", trailer[1:])[0] != _checksum(block + trailer[:1]):
        raise _Malformed("the checksum of a block is wrong")
    if trailer[0]:
        raise _Malformed("it is compressed")
    end = size - 4 * (struct.unpack("<I", block[-4:])[0] + 1)  # behind it are places to start from
    key, position = b"", 0
    while position < end:
        shared, position = _varint(block, position)
        own, position = _varint(block, position)
        length, position = _varint(block, position)
        if shared > len(key) or shared + own > _LONGEST_KEY or position + own + length > end:
            raise _Malformed("an entry is longer than its block, or its key than any name")
        key = key[:shared] + block[position : position + own]
        position += own + length
        yield key, block[position - length : position]


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """A number of variable length, and the place behind it."""
    number = 0
    for shift in range(0, 64, 7):
        if position >= len(data):
            break
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position
    raise _Malformed("a number has no end")


def _message_fields(message: bytes) -> dict[int, list[int | bytes]]:
    """The values of a protocol buffer, by the number of their field."""
    fields: dict[int, list[int | bytes]] = {}
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        value: int | bytes
        if tag & 7 == 0:
            value, position = _varint(message, position)
        else:
            if tag & 7 == 2:
                size, position = _varint(message, position)
            elif tag & 7 in (1, 5):
                size = 8 if tag & 7 == 1 else 4
            else:
                raise _Malformed("a field has an unknown type")
            value, position = message[position : position + size], position + size
            if position > len(message):
                raise _Malformed("a field is beyond the end of its message")
            if tag & 7 != 2:
                value = int.from_bytes(value, "little")
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def _field_number(fields: dict[int, list[int | bytes]], field: int) -> int:
    """The value of a field with one number; 0 if it is not there."""
    value = fields.get(field, [0])[-1]
    if isinstance(value, bytes):
        raise _Malformed(f"field {field} is not a number")
    return value


def _messages(fields: dict[int, list[int | bytes]], field: int) -> list[bytes]:
    """The values of a repeated field of messages."""
    messages = [value for value in fields.get(field, []) if isinstance(value, bytes)]
    if len(messages) < len(fields.get(field, [])):
        raise _Malformed(f"field {field} is not a message")
    return messages


def _merged_message(fields: dict[int, list[int | bytes]], field: int) -> bytes:
    return b"".join(_messages(fields, field))  # messages of one field are merged


def _checksum(data: bytes) -> int:
    """The CRC-32C of some bytes, as LevelDB stores it."""
    try:
        checksum = import_module("google_crc32c").value(data)
    except (
        ImportError
    ) as error:  # no dependency of this package: only those who convert checkpoints need it
        raise ModelError(
            "the checksums of TensorFlow's checkpoints need google-crc32c, which is not installed: pip install "
            "codesyntax[cubert]"
        ) from error
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF


HEAD_FEATURES = 64
"""Features of an attention head. The variables do not tell; it is so in every BERT that was
released in this format."""

_OPTIMIZER = ("adam_m", "adam_v")


class BertSizes(NamedTuple):
    """The sizes of a model, as its variables tell them."""

    vocabulary: int
    positions: int
    hidden: int
    layers: int


@checked
def convert(
    checkpoint: str | os.PathLike,
    output: str | os.PathLike,
    *,
    vocabulary: str | os.PathLike,
    language: str,
    drop: Sequence[str] = (),
) -> Path:
    """Write the BERT of a checkpoint, and its tokenizer, to the new folder `output`, which is
    returned.

    `checkpoint`: the prefix of its files, its `.index`, or a folder with one checkpoint;
    `vocabulary`, `language`, `drop`: those of `CubertTokenizer`. All variables but the optimizer's
    must be those of BertForPreTraining, with its shapes. In memory are all weights at once, 1.4 GB
    for a release.

    Raises ModelError for a checkpoint or vocabulary that cannot be read, a variable that is
    missing, surplus or of another shape, and for an `output` that exists.
    """
    target = Path(output)
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise ModelError(
            f"{target} exists already, expected a new folder: choose another output or remove it"
        )
    source = TensorBundle(Path(checkpoint))
    sizes = sizes_of(
        {name: variable.shape for name, variable in source.variables.items()}, str(source.prefix)
    )
    tokenizer = CubertTokenizer(vocabulary, language, drop)
    if tokenizer.vocab_size != sizes.vocabulary:
        raise ModelError(
            f"{vocabulary} has {tokenizer.vocab_size} entries, but {source.prefix} has embeddings for "
            f"{sizes.vocabulary}: use the vocabulary of the same release"
        )
    config = BertConfig(
        architectures=["BertForPreTraining"],
        vocab_size=sizes.vocabulary,
        max_position_embeddings=sizes.positions,
        hidden_size=sizes.hidden,
        intermediate_size=4 * sizes.hidden,
        num_hidden_layers=sizes.layers,
        num_attention_heads=sizes.hidden // HEAD_FEATURES,
        pad_token_id=tokenizer.pad_token_id,
    )
    weights = {}
    for name in shapes_of(sizes):
        values = source.read(name)
        weights[_in_bert(name)] = (
            np.ascontiguousarray(values.T) if name.endswith("/kernel") else values
        )
    with os_errors_as_ledger_errors(target), atomic_path(target) as folder:
        config.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        try:
            save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        except SafetensorError as error:  # such as for a full disk
            raise OSError(str(error)) from error
    return target


def sizes_of(shapes: Mapping[str, tuple[int, ...]], source: str) -> BertSizes:
    """The sizes of the model with variables of these names and shapes; `source` is its name in
    messages.

    Raises ModelError, which names the variable, for one that is missing, surplus, or of another
    shape.
    """
    embeddings = "bert/embeddings/word_embeddings", "bert/embeddings/position_embeddings"
    for name in embeddings:
        if len(shapes.get(name, (0, 0))) != 2:
            raise ModelError(
                f"{source}: the variable {name!r} has the shape {shapes[name]}, expected two dimensions"
            )
    (vocabulary, hidden), (positions, _) = (shapes.get(name, (0, 0)) for name in embeddings)
    layers = 0
    while any(name.startswith(f"bert/encoder/layer_{layers}/") for name in shapes):
        layers += 1
    sizes = BertSizes(vocabulary, positions, hidden, layers)
    expected = shapes_of(sizes)
    for name, shape in expected.items():
        if name not in shapes:
            raise ModelError(
                f"{source} lacks the variable {name!r}: expected a checkpoint of CuBERT, complete"
            )
        if shapes[name] != shape:
            raise ModelError(
                f"{source}: the variable {name!r} has the shape {shapes[name]}, expected {shape} in a BERT with "
                f"{layers} layers and a hidden size of {hidden}"
            )
    for name in shapes:
        weight, _, suffix = name.rpartition("/")
        if (
            name not in expected
            and name != "global_step"
            and not (suffix in _OPTIMIZER and weight in expected)
        ):
            raise ModelError(
                f"{source} has the variable {name!r}, which CuBERT has not: expected its checkpoint as released"
            )
    if hidden % HEAD_FEATURES or not hidden or not layers:
        raise ModelError(
            f"{source} has {layers} layers and a hidden size of {hidden}, expected a multiple of {HEAD_FEATURES}"
        )
    return sizes


def shapes_of(sizes: BertSizes) -> dict[str, tuple[int, ...]]:
    """The shape of every variable of CuBERT: BERT with both heads of its pretraining (Devlin et al.
    2019).

    The output layer over the vocabulary has the weights of the embeddings, and a bias of its own.
    """
    vocabulary, positions, hidden, layers = sizes
    dense = {
        "bert/pooler/dense": (hidden, hidden),
        "cls/predictions/transform/dense": (hidden, hidden),
    }
    norms = ["bert/embeddings", "cls/predictions/transform"]
    for layer in (f"bert/encoder/layer_{number}" for number in range(layers)):
        for name in ("self/query", "self/key", "self/value", "output/dense"):
            dense[f"{layer}/attention/{name}"] = hidden, hidden
        dense[f"{layer}/intermediate/dense"] = hidden, 4 * hidden
        dense[f"{layer}/output/dense"] = 4 * hidden, hidden
        norms += [f"{layer}/attention/output", f"{layer}/output"]
    shapes: dict[str, tuple[int, ...]] = {
        "bert/embeddings/word_embeddings": (vocabulary, hidden),
        "bert/embeddings/position_embeddings": (positions, hidden),
        "bert/embeddings/token_type_embeddings": (2, hidden),
        "cls/predictions/output_bias": (vocabulary,),
        "cls/seq_relationship/output_weights": (2, hidden),
        "cls/seq_relationship/output_bias": (2,),
    }
    for name, shape in dense.items():
        shapes |= {f"{name}/kernel": shape, f"{name}/bias": shape[1:]}
    for name in norms:
        shapes |= {f"{name}/LayerNorm/gamma": (hidden,), f"{name}/LayerNorm/beta": (hidden,)}
    return shapes


_PARTS = {
    "kernel": "weight",
    "gamma": "weight",
    "output_weights": "weight",
    "beta": "bias",
    "output_bias": "bias",
}


def _in_bert(name: str) -> str:
    """The name in BERT of a variable; kernels are (in, out), weights (out, in)."""
    module, _, part = name.rpartition("/")
    name = (
        f"{name}/weight" if part.endswith("_embeddings") else f"{module}/{_PARTS.get(part, part)}"
    )
    return name.replace("/", ".").replace("layer_", "layer.")
