"""Convert a released checkpoint of CuBERT, written by TensorFlow 1, to a BERT in safetensors with
its tokenizer.

A checkpoint is a table in LevelDB's format, `PREFIX.index`, of protocol buffers that say where in
the file `PREFIX.data-00000-of-00001` each variable is (`Saver`'s format V2, a "tensor bundle").
TensorFlow itself takes half a gigabyte, follows new versions of Python late, and crashes on some
malformed checkpoints; the pure reader on PyPI is not kept any more. Of the format this reads what
the releases have: one data file, no compression, variables stored whole. Checksums are not read: a
download has its own.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from transformers import BertConfig, BertForPreTraining

from codesyntax_dataset import safe_files
from codesyntax_dataset.arguments import StrPath, checked
from codesyntax_dataset.atomic import atomic_path, os_errors_as_ledger_errors
from codesyntax_dataset.errors import ModelError
from probing.models.cubert.tokenizer import CubertTokenizer
from probing.models.loaded import quiet
from probing.models.untrusted import check_parts

_MAGIC = struct.pack("<Q", 0xDB4775248B80FB57)
_FOOTER = 48  # bytes: the places of two blocks, padded, and the magic number
_LARGEST_INDEX = 1 << 24  # bytes; that of BERT-Large with its optimizer has 0.1 MB
_LONGEST_KEY = 1 << 12  # bytes
_FLOAT = 1  # of TensorFlow's data types

HEAD_FEATURES = 64
"""Features of an attention head. The variables do not tell; it is so in every BERT that was
released in this format."""


def variables_of(prefix: Path) -> dict[str, np.ndarray]:
    """The float32 variables of a checkpoint, by name; of the file, what is read later is read then.

    `prefix`: of its files. Raises ModelError if there is none, or it is damaged.
    """
    index, data = (
        prefix.with_name(prefix.name + end) for end in (".index", ".data-00000-of-00001")
    )
    try:
        table = safe_files.read(index, _LARGEST_INDEX)
        with safe_files.opened(data) as file:
            values = np.memmap(file, np.uint8, "c")
        return dict(_variables(table, values))
    except OSError as error:
        raise ModelError(
            f"{error.filename} cannot be read ({error.strerror}): expected a TensorFlow checkpoint, given by the "
            f"prefix of its files {index.name} and {data.name}"
        ) from error
    except (struct.error, IndexError, OverflowError, TypeError, ValueError) as error:
        raise ModelError(
            f"{prefix} is not a checkpoint of CuBERT as released, or is damaged ({error}): download it again"
        ) from error


def _variables(table: bytes, values: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """The variables of an index, of the bytes of its data file."""
    footer = table[-_FOOTER:]
    if not footer.endswith(_MAGIC):
        raise ValueError("its index has another end")
    _, _, offset, size = _numbers(footer, 0, 4)[0]
    behind = 0
    for _, handle in _block(table, offset, size):
        offset, size = _numbers(handle, 0, 2)[0]
        if offset < behind:  # otherwise a small table could have any number of entries
            raise ValueError("the blocks of its index overlap")
        behind = offset + size
        for name, message in _block(table, offset, size):
            fields = _message_fields(message)
            # the header has no name; what is stored in slices has a field 7
            if not name or fields.get(1) != [_FLOAT] or 7 in fields:
                continue
            dimensions = _message_fields(fields.get(2, [b""])[0]).get(2, [])
            shape = [_message_fields(dimension).get(1, [0])[0] for dimension in dimensions]
            start = fields.get(4, [0])[0]
            content = values[start : start + fields.get(5, [0])[0]]
            yield name.decode(), content.view("<f4").reshape(shape)


def _block(table: bytes, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """The keys and values of a block; a key repeats the beginning of the one before it."""
    block = table[offset : offset + size]
    end = size - 4 * (struct.unpack("<I", block[-4:])[0] + 1)  # behind it are places to start from
    key, position = b"", 0
    while position < end:
        (shared, own, length), position = _numbers(block, position, 3)
        if shared + own > _LONGEST_KEY:
            raise ValueError("a key of its index is longer than any name")
        key = key[:shared] + block[position : position + own]
        position += own + length
        yield key, block[position - length : position]


def _numbers(data: bytes, position: int, count: int) -> tuple[list[int], int]:
    """Numbers of variable length, and the place behind them."""
    numbers = []
    for _ in range(count):
        number = 0
        for shift in range(0, 70, 7):
            byte = data[position]
            position += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
        numbers.append(number)
    return numbers, position


def _message_fields(message: bytes) -> dict[int, list]:
    """The values of a protocol buffer, numbers or bytes, by the number of their field."""
    fields: dict[int, list] = {}
    position = 0
    while position < len(message):
        (tag,), position = _numbers(message, position, 1)
        kind, size = tag & 7, 4
        if kind in (0, 2):
            (size,), position = _numbers(message, position, 1)
        elif kind != 5:
            raise ValueError("a field of its index has an unknown type")
        value: int | bytes = size
        if kind != 0:
            value = message[position : position + size]
            position += size
        fields.setdefault(tag >> 3, []).append(value)
    return fields


@checked
def convert(
    checkpoint: StrPath,
    output: StrPath,
    *,
    vocabulary: StrPath,
    language: str,
) -> Path:
    """Write the BERT of a checkpoint, and its tokenizer, to the new folder `output`, which is
    returned.

    `checkpoint`: the prefix of its files; `vocabulary`, `language`: those of `CubertTokenizer`. All
    variables but the optimizer's must be those of BertForPreTraining, with its shapes. In memory
    are all weights at once, 1.4 GB for a release.

    Raises ModelError for a checkpoint or vocabulary that cannot be read, a variable that is
    missing, surplus or of another shape, and for an `output` that exists.
    """
    source, target = Path(checkpoint), Path(output)
    if target.exists():
        raise ModelError(
            f"{target} exists already, expected a new folder: choose another output or remove it"
        )
    variables = variables_of(source)
    tokenizer = CubertTokenizer(vocabulary, language)
    config = _config(variables, source)
    if tokenizer.vocab_size != config.vocab_size:
        raise ModelError(
            f"{vocabulary} has {tokenizer.vocab_size} entries, but {source} has embeddings for "
            f"{config.vocab_size}: use the vocabulary of the same release"
        )
    config.pad_token_id = tokenizer.pad_token_id
    model = _converted(config, variables, source)
    with os_errors_as_ledger_errors(target), atomic_path(target) as folder, quiet():
        tokenizer.save_pretrained(folder)
        try:
            model.save_pretrained(folder)
        except SafetensorError as error:  # such as for a full disk
            raise OSError(str(error)) from error
    return target


def _config(variables: Mapping[str, np.ndarray], source: Path) -> BertConfig:
    """The configuration of the model with these variables; `source` is its name in messages."""
    embeddings = "bert/embeddings/word_embeddings", "bert/embeddings/position_embeddings"
    shapes = [variables[name].shape for name in embeddings if name in variables]
    layers = sum(name.endswith("/intermediate/dense/kernel") for name in variables)
    of_embeddings = [*map(len, shapes)] == [2, 2] and all(shapes[0] + shapes[1])
    hidden = shapes[0][1] if of_embeddings else 0
    if hidden % HEAD_FEATURES or not hidden or not layers:
        raise ModelError(
            f"{source} has {layers} layers and a hidden size of {hidden}, expected those of CuBERT, and a multiple of "
            f"{HEAD_FEATURES}"
        )
    config = BertConfig(
        vocab_size=shapes[0][0],
        max_position_embeddings=shapes[1][0],
        hidden_size=hidden,
        intermediate_size=4 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=hidden // HEAD_FEATURES,
    )
    check_parts(config)
    return config


def _converted(
    config: BertConfig, variables: Mapping[str, np.ndarray], source: Path
) -> BertForPreTraining:
    """The model with these variables; raises ModelError if some are missing, surplus, or of another
    shape."""
    weights = {}
    for name, values in variables.items():
        module, _, part = name.rpartition("/")
        if part in ("adam_m", "adam_v"):
            continue
        if part.endswith("_embeddings"):
            module, part = name, "weight"
        in_bert = f"{module}/{_PARTS.get(part, part)}".replace("/", ".").replace("layer_", "layer.")
        # kernels are (in, out), weights (out, in)
        weights[in_bert] = torch.from_numpy(values.T if part == "kernel" else values)
    # the output layer over the vocabulary has the weights of the embeddings, and a bias of its own
    for tied, part in _TIED.items():
        if part in weights:
            weights[tied] = weights[part]
    with torch.device("meta"):  # shapes are compared before anything takes memory
        model = BertForPreTraining(config)
    try:
        model.load_state_dict(weights, assign=True)
    except RuntimeError as error:
        raise ModelError(
            f"{source} is not a checkpoint of CuBERT, complete: {' '.join(str(error).split())[:300]}"
        ) from error
    for weight in model.parameters():
        weight.data = weight.data.contiguous()
    model.tie_weights()
    return model


_TIED = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}

_PARTS = {
    "kernel": "weight",
    "gamma": "weight",
    "output_weights": "weight",
    "beta": "bias",
    "output_bias": "bias",
}
