"""GGUF files, llama.cpp's format of quantized models: checked first, then converted once by
transformers' own loader.

The package gguf makes an object of each value in a file, and believes every number in it. So it
reads within limits here (the specification: ggml/docs/gguf.md). transformers parses the file four
times, and renames each tensor by a table that it builds anew for each module, which takes most of a
minute: the dequantized weights and the tokenizer are therefore kept in the cache, under the digest
of the file, with the type of its weights.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import struct
import tempfile
from collections import Counter
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
from probing.models.untrusted import check_asked, check_parts

_LARGEST_GGUF_HEADER = 1 << 26  # bytes; that of the largest vocabulary has a fifth
_MOST_TENSORS = 100_000  # the largest known models have a few thousand
_MOST_FIELDS = 10_000  # known files have some fifty
# in arrays, each some objects for gguf: a vocabulary and its merges have up to 1.4 million
_MOST_VALUES = 1 << 21
# squared lengths of tokens: without merges, transformers tries every split of every token
_MOST_PIECES = 1 << 28

# numbers that are read, of layers or frequencies: known ones have a few hundred
_MOST_LISTED_NUMBERS = 1 << 12

CONVERTED = ".gguf"
"""The end of the names of folders in the cache."""

_QUANTIZATION = "quantization.txt"  # in such a folder


class Header(NamedTuple):
    """What a GGUF file says of itself.

    `fields`: its metadata that are texts, numbers, or short lists, others as None; `shapes`: those
    of its tensors, in the order of ggml; `factors`: the values of the tensor ROTARY_FACTORS;
    `quantization`: the type of the file, such as Q4_K_M, or where it says none, that of most
    weights; empty for F32.
    """

    fields: dict[str, Any]
    shapes: dict[str, list[int]]
    factors: list[float]
    quantization: str

    @property
    def weights(self) -> int:
        """How many weights of the model it has."""
        return sum(prod(shape) for name, shape in self.shapes.items() if name != ROTARY_FACTORS)


def read_header(file: Path) -> Header:
    """The structure of a GGUF file; raises ModelError for one that is damaged, or larger than any
    model's."""
    try:
        with opened(file) as handle:
            start = handle.read(24)
        if len(start) < 24 or start[:4] != b"GGUF":
            raise ValueError("it does not begin with GGUF, or is cut off")
        version, tensors, fields = struct.unpack("<IQQ", start[4:])
        if version not in (2, 3):
            raise ValueError(f"its version is {version}, expected 2 or 3 in little-endian")
        if not 0 < tensors <= _MOST_TENSORS or fields > _MOST_FIELDS:
            raise ValueError(f"it has {tensors:,} tensors and {fields:,} fields, unlike any model")
        return _header(_reader(file))
    except ModelError:
        raise
    # what the package gguf raises where a file ends, or says what cannot be
    except (OSError, ValueError, IndexError, KeyError, RecursionError) as error:
        raise ModelError(
            f"{file.name} is not a GGUF file that can be read: {str(error)[:200]}; download it again, or convert it "
            "again with a current llama.cpp"
        ) from error


def _reader(file: Path) -> Any:
    """The package's reader of a file; raises ValueError for arrays of too many values."""
    gguf = importlib.import_module("gguf")  # no dependency of this package: only GGUF files need it

    class Bounded(gguf.GGUFReader):  # type: ignore[name-defined]
        values = 0

        def _get_field_parts(self, orig_offs: int, raw_type: int) -> Any:
            if raw_type == gguf.GGUFValueType.ARRAY:
                self.values += int(self._get(orig_offs + 4, "<u8")[0])
                if self.values > min(_MOST_VALUES, len(self.data)):  # a value has a byte or more
                    raise ValueError("its vocabulary is cut off, or larger than any tokenizer's")
            return super()._get_field_parts(orig_offs, raw_type)

    reader = Bounded(file)
    if reader.data_offset > _LARGEST_GGUF_HEADER:
        raise ValueError(f"its header has {reader.data_offset:,} bytes")
    return reader


def _header(reader: Any) -> Header:
    tokens = reader.fields.get("tokenizer.ggml.tokens")
    if tokens and sum(tokens.parts[index].size ** 2 for index in tokens.data) > _MOST_PIECES:
        raise ValueError("the tokens of its vocabulary are longer than any tokenizer's")
    fields = {
        name: field.contents() if len(field.data) <= _MOST_LISTED_NUMBERS else None
        for name, field in reader.fields.items()
    }
    if (parts := fields.get("split.count", 1)) != 1:
        raise ModelError(f"it is one of {parts} parts of a GGUF file: {JOIN}")
    shapes, kinds = {}, Counter[str]()
    factors: list[float] = []
    for tensor in reader.tensors:
        shapes[tensor.name] = tensor.shape.tolist()
        kinds[tensor.tensor_type.name] += tensor.n_elements
        if tensor.name == ROTARY_FACTORS:
            if tensor.tensor_type.name != "F32" or tensor.n_elements > _MOST_LISTED_NUMBERS:
                raise ValueError(f"its tensor {tensor.name} has {tensor.n_elements:,} numbers")
            factors = tensor.data.tolist()
    types = {kind.value: kind.name for kind in importlib.import_module("gguf").LlamaFileType}
    file_type = types.get(fields.get("general.file_type"), "").removeprefix("MOSTLY_")
    if file_type in ("", "GUESSED", "ALL_F32"):  # it says none, or F32
        file_type = kinds.most_common(1)[0][0].removeprefix("F32")
    return Header(fields, shapes, factors, file_type)


def config_of(header: Header) -> PreTrainedConfig:
    """The configuration of the model in a GGUF file; raises ModelError if it is not known to be
    read rightly."""
    config = configuration(header.fields, header.shapes, header.factors)
    check_parts(config)
    check_asked(config, header.weights)
    return config


def converted(file: Path, digest: str) -> Path:
    """A folder with the dequantized weights, float32, and the tokenizer of a GGUF file with this
    SHA-256; `quantization_of` reads the rest.

    It is kept in the cache, or without one until the process ends. Raises ModelError if the file is
    damaged, and what transformers raises for a model that it does not support.
    """
    if importlib.util.find_spec("gguf") is None:
        raise ModelError(
            'GGUF files are read by the package gguf, which is not installed: pip install -e ".[decoder]"'
        )
    made_of = ["GGUF, each key", digest, importlib.metadata.version("gguf")]
    return cache_dir.folder_made_of(made_of, CONVERTED, partial(_convert, file))


def quantization_of(folder: Path) -> str:
    """As of `Header`, of the file that was converted to this folder."""
    return (folder / _QUANTIZATION).read_text()


def _convert(file: Path, output: Path) -> None:
    header = read_header(file)
    config = config_of(header)
    kind: Any = (
        AutoModelForCausalLM
        if config.model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
        else AutoModel
    )
    # in a folder with nothing else: transformers would read other files beside it, too
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "model.gguf").symlink_to(file.resolve())
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
    # they are no longer quantized, which transformers would refuse to save
    model.hf_quantizer = None
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(output)
    tokenizer.save_pretrained(output)
    (output / _QUANTIZATION).write_text(header.quantization)
