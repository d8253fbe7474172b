"""GGUF files, llama.cpp's format of quantized models: checked first, then converted once by
transformers' own loader.

The package gguf makes an object of each string in a file, and believes every length in it. So the
file's structure is read here first, within limits (the specification: ggml/docs/gguf.md).
transformers parses the file four times, and renames each tensor by a table that it builds anew for
each module, which takes most of a minute: the dequantized weights and the tokenizer are therefore
kept in the cache, under the digest of the file.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import mmap
import re
import struct
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import torch
from transformers import AutoModel, AutoModelForCausalLM, AutoTokenizer, PreTrainedConfig
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from codesyntax_dataset.errors import ModelError
from codesyntax_dataset.safe_files import opened
from probing.models import cache_dir
from probing.models.gguf_config import ROTARY_FACTORS, configuration
from probing.models.loaded import check_weights
from probing.models.location import JOIN
from probing.models.untrusted import check_asked, check_growth, check_parts

_LARGEST_GGUF_HEADER = 1 << 28  # bytes; that of the largest vocabulary has a twentieth
_MOST_TENSORS = 100_000  # the largest known models have a few thousand
_MOST_FIELDS = 10_000  # known files have some fifty
# in arrays, each an object for gguf: a vocabulary and its merges have up to 1.4 million
_MOST_VALUES = 1 << 21
_LONGEST_NAME = 1 << 10  # bytes; llama.cpp allows 64
_LONGEST_TEXT = 1 << 22  # bytes, of a chat template
# squared lengths of tokens: without merges, transformers tries every split of every token
_MOST_PIECES = 1 << 28
_LARGEST_DIMENSION = 1 << 40

# numbers that are read, of layers or frequencies: known ones have a few hundred
_MOST_LISTED_NUMBERS = 1 << 12

_NUMBER_FORMATS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
"""The types of values that are numbers, as `struct` reads them."""

_STRING, _ARRAY = 8, 9

CONVERTED = ".gguf"
"""The end of the names of folders in the cache."""


class Header(NamedTuple):
    """What a GGUF file says of itself.

    `fields`: its metadata that are texts, numbers, or lists of numbers; `shapes`: those of its
    tensors, in the order of ggml; `factors`: the values of the tensors of ROTARY_FACTORS;
    `quantization`: the type of the file, such as Q4_K_M, or where it says none, that of most
    weights; empty for F32.
    """

    fields: dict[str, Any]
    shapes: dict[str, list[int]]
    factors: dict[str, list[float]]
    quantization: str

    @property
    def weights(self) -> int:
        """How many weights of the model it has."""
        return sum(prod(shape) for name, shape in self.shapes.items() if name not in self.factors)


class _Bytes:
    """Reads one value after the other; raises ValueError at the end."""

    def __init__(self, data: mmap.mmap):
        self.data, self.place, self.end = data, 0, min(len(data), _LARGEST_GGUF_HEADER)

    def take(self, size: int) -> int:
        """The place of the next `size` bytes."""
        start = self.place
        if size > self.end - start:
            raise ValueError("it is cut off, or its header is too large")
        self.place = start + size
        return start

    def number(self, form: str) -> Any:
        return struct.unpack_from(form, self.data, self.take(struct.calcsize(form)))[0]

    def size(self, most: int, what: str) -> int:
        number = self.number("<Q")
        if number > most:
            raise ValueError(f"{what} {number:,}, expected at most {most:,}")
        return number

    def text(self, most: int, what: str) -> str:
        size = self.size(most, f"the bytes of {what} are")
        return self.data[self.take(size) : self.place].decode("utf-8")


def read_header(file: Path) -> Header:
    """The structure of a GGUF file; raises ModelError for one that is damaged, or larger than any
    model's."""
    _check_installed()
    try:
        with opened(file) as handle, mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _header(data)
    except ModelError:
        raise
    except (OSError, ValueError) as error:
        raise ModelError(
            f"{file.name} is not a GGUF file that can be read: {error}; download it again, or convert it again with a "
            "current llama.cpp"
        ) from error


def _check_installed() -> None:
    if importlib.util.find_spec("gguf") is None:
        raise ModelError(
            'GGUF files are read by the package gguf, which is not installed: pip install -e ".[decoder]"'
        )


def _header(data: mmap.mmap) -> Header:
    read = _Bytes(data)
    if data[:4] != b"GGUF":
        raise ValueError("it does not begin with GGUF")
    read.take(4)
    if (version := read.number("<I")) not in (2, 3):
        raise ValueError(f"its version is {version}, expected 2 or 3 in little-endian")
    tensors = read.size(_MOST_TENSORS, "its number of tensors is")
    fields = _header_fields(read, read.size(_MOST_FIELDS, "its number of fields is"))
    if (parts := fields.get("split.count", 1)) != 1:
        raise ModelError(f"it is one of {parts} parts of a GGUF file: {JOIN}")
    architecture, alignment = (
        fields.get("general.architecture"),
        fields.get("general.alignment", 32),
    )
    if not isinstance(architecture, str) or not re.fullmatch(r"[a-z0-9_-]{1,40}", architecture):
        raise ValueError("it does not say the architecture of its model")
    if type(alignment) is not int or alignment not in [1 << power for power in range(17)]:
        raise ValueError("its alignment is not a power of two up to 65,536")
    tensors_read = [_tensor(read) for _ in range(tensors)]
    shapes = {tensor.name: tensor.shape for tensor in tensors_read}
    if not shapes or len(shapes) < len(tensors_read):
        raise ValueError("it has no tensors, or two of one name")
    start = -(-read.place // alignment) * alignment
    if start + max(tensor.offset + tensor.size for tensor in tensors_read) > len(data):
        raise ValueError("it is cut off: its tensors end behind it")
    kinds: Counter[str] = Counter()
    factors = {}
    for tensor in tensors_read:
        kinds[tensor.kind] += prod(tensor.shape)
        if tensor.name in ROTARY_FACTORS:
            if tensor.kind != "F32" or prod(tensor.shape) > _MOST_LISTED_NUMBERS:
                raise ValueError(
                    f"its tensor {tensor.name} has {prod(tensor.shape):,} numbers of type {tensor.kind}"
                )
            form = f"<{prod(tensor.shape)}f"
            factors[tensor.name] = list(struct.unpack_from(form, data, start + tensor.offset))
    most = kinds.most_common(1)[0][0]
    quantization = _file_type(fields.get("general.file_type")) or most
    return Header(fields, shapes, factors, quantization.removeprefix("F32"))


def _file_type(number: Any) -> str:
    """The name of a type of files, such as Q4_K_M, by its number; empty if the number is unknown,
    or says F32."""
    gguf = importlib.import_module("gguf")  # no dependency of this package: only GGUF files need it
    names = {kind.value: kind.name.removeprefix("MOSTLY_") for kind in gguf.LlamaFileType}
    return names.get(number, "").removeprefix("GUESSED").removeprefix("ALL_F32")


def _header_fields(read: _Bytes, number: int) -> dict[str, Any]:
    """The fields of a file; arrays of texts, and long ones, are checked, and stand there as
    None."""
    fields: dict[str, Any] = {}
    values, pieces = 0, 0
    for _ in range(number):
        name, kind = read.text(_LONGEST_NAME, "a name"), read.number("<I")
        if name in fields:
            raise ValueError(f"its field {name[:60]!r} occurs twice")
        if kind == _STRING:
            fields[name] = read.text(_LONGEST_TEXT, "a text")
        elif kind == _ARRAY:
            fields[name] = None
            kind, length = read.number("<I"), read.size(_MOST_VALUES, "the values of an array are")
            values += length
            if kind == _STRING:
                for _ in range(length):
                    size = read.size(_LONGEST_TEXT, "the bytes of a text are")
                    read.take(size)
                    pieces += size * size
            elif kind in _NUMBER_FORMATS:
                form = f"<{length}{_NUMBER_FORMATS[kind][1]}"
                start = read.take(struct.calcsize(form))
                if length <= _MOST_LISTED_NUMBERS:
                    fields[name] = list(struct.unpack_from(form, read.data, start))
            else:
                raise ValueError(f"an array holds values of type {kind}")
            if values > _MOST_VALUES or pieces > _MOST_PIECES:
                raise ValueError("its vocabulary is larger than any tokenizer's")
        elif kind in _NUMBER_FORMATS:
            fields[name] = read.number(_NUMBER_FORMATS[kind])
        else:
            raise ValueError(f"its field {name[:60]!r} is of type {kind}")
    return fields


class _Tensor(NamedTuple):
    """`offset`, `size`: in bytes, behind the header."""

    name: str
    kind: str
    shape: list[int]
    offset: int
    size: int


def _tensor(read: _Bytes) -> _Tensor:
    gguf = importlib.import_module("gguf")
    name, rank = read.text(_LONGEST_NAME, "a name"), read.number("<I")
    if not 1 <= rank <= 4:
        raise ValueError(f"its tensor {name[:60]!r} has {rank} dimensions")
    shape = [read.size(_LARGEST_DIMENSION, "a dimension is") for _ in range(rank)]
    kind, offset = read.number("<I"), read.number("<Q")
    try:
        block, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(kind)]
    except (KeyError, ValueError):
        raise ValueError(f"its tensor {name[:60]!r} is of the unknown type {kind}") from None
    if not prod(shape) or shape[0] % block:
        raise ValueError(
            f"its tensor {name[:60]!r} has the shape {shape}, expected whole blocks of {block}"
        )
    return _Tensor(
        name, gguf.GGMLQuantizationType(kind).name, shape, offset, prod(shape) // block * size
    )


def config_of(header: Header) -> PreTrainedConfig:
    """The configuration of the model in a GGUF file; raises ModelError if it is not known to be
    read rightly."""
    config = configuration(header.fields, header.shapes, header.factors)
    check_parts(config)
    check_asked(config, header.weights)
    return config


def converted(file: Path, digest: str) -> Path:
    """A folder with the dequantized weights, float32, and the tokenizer of a GGUF file with this
    SHA-256.

    It is kept in the cache, or without one until the process ends. Raises ModelError if the file is
    damaged, and what transformers raises for a model that it does not support.
    """
    _check_installed()
    made_of = ["GGUF, each key", digest, importlib.metadata.version("gguf")]
    return cache_dir.folder_made_of(made_of, CONVERTED, partial(_convert, file))


def _convert(file: Path, output: Path) -> None:
    header = read_header(file)
    config = config_of(header)
    kind: Any = (
        AutoModelForCausalLM
        if config.model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
        else AutoModel
    )
    with _file_alone(file) as folder:
        model, info = kind.from_pretrained(
            folder,
            gguf_file="model.gguf",
            config=config,
            dtype=torch.float32,
            output_loading_info=True,
        )
        check_weights(model, info)
        if (weights := sum(weight.numel() for weight in model.parameters())) != header.weights:
            raise ModelError(
                f"its tensors have {header.weights:,} weights, and transformers' model has {weights:,}: "
                "load the model that the file was made of"
            )
        tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file="model.gguf")
    check_growth(tokenizer)
    # they are no longer quantized, which transformers would refuse to save
    model.hf_quantizer = None
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(output)
    tokenizer.save_pretrained(output)


@contextlib.contextmanager
def _file_alone(file: Path) -> Iterator[str]:
    """A folder with nothing but the file: transformers would read other files beside it, too."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "model.gguf").symlink_to(file.resolve())
        yield folder
