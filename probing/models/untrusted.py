"""Limits on the requests of a model's files: a small configuration could otherwise take all memory,
or run for ever."""

from __future__ import annotations

import contextlib
import json
import math
import multiprocessing
import os
import re
import signal
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import SafetensorError, safe_open
from transformers import AutoModel
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME, cached_file

from codesyntax_dataset import safe_files
from codesyntax_dataset.errors import ModelError
from probing.models import files
from probing.models.location import Location

MOST_LAYERS = 2000
"""The largest known models have a few hundred; an empty model of so many is built in seconds."""

MOST_EXPERTS = 1_000_000
"""Layers of a model, times the experts in each: doge, whose experts are rows of a table, has
524,288."""

MOST_PARTS = 100_000
"""Of any other kind."""

_SURPLUS = 1 << 25  # weights that may be missing, such as those of a pooler
_BUFFERS = 1 << 30  # numbers that are computed, such as a mask for all positions


LONGEST_BUILD = 60
"""Seconds in which an empty model is built: the largest known ones take two."""

MOST_MEMORY = 4 << 30
"""Bytes that an empty model may take."""

_LARGEST_CONFIG = 16 * 2**20  # bytes

_COUNTS = re.compile(
    "(?!.*vocab).*(attend|block|cell|expert|group|head|label|layer|network|repeat|stage)"
)
"""What a configuration has a number of, each an object to build. A vocabulary is a table."""


def check_raw(source: Location) -> None:
    """Raise ModelError for the JSON of a configuration that asks for more objects than any model
    has, before a class reads it, which may build them."""
    path = cached_file(
        source.path,
        "config.json",
        revision=source.commit,
        _raise_exceptions_for_missing_entries=False,
    )
    if path is None:  # it is told when it is read
        return
    fields = json.loads(safe_files.read(path, _LARGEST_CONFIG))
    for name, number in _whole_numbers(fields if isinstance(fields, dict) else {}):
        if number > MOST_PARTS and _COUNTS.match(name):
            raise ModelError(
                f"its configuration has {name} {number:,}, more than any model: at most {MOST_PARTS:,}"
            )


def check_parts(config: transformers.PreTrainedConfig) -> None:
    """Raise ModelError for a configuration of so many layers that even an empty model takes for
    ever to build."""
    layers = experts = 1
    for name, number in _whole_numbers(config.to_dict()):
        if name.endswith(("layer", "layers")):
            layers = max(layers, number)
        elif name.endswith("experts"):
            experts = max(experts, number)
    if layers > MOST_LAYERS or layers * experts > MOST_EXPERTS:
        raise ModelError(
            f"its configuration has {layers} layers and {experts} experts, more than any model"
        )


def check_size(source: Location, config: transformers.PreTrainedConfig) -> None:
    """Raise ModelError for a configuration that asks for far more weights than there are, before
    they are made."""
    weights = 0
    for file in _files(source):
        try:
            # the header of a file is checked against its size
            with safe_open(file, "pt") as tensors:
                names = tensors.keys()  # it has no other way to go through them
                shapes = (tensors.get_slice(name).get_shape() for name in names)
                weights += sum(map(math.prod, shapes))
        except SafetensorError as error:
            raise ModelError(
                f"its {Path(file).name} is no whole file of weights ({error}): download it again"
            ) from error
    check_asked(config, weights)


def check_asked(config: transformers.PreTrainedConfig, weights: int) -> None:
    """Raise ModelError for a configuration that asks for far more than so many weights, or whose
    empty model takes more than LONGEST_BUILD seconds or MOST_MEMORY bytes to build."""
    asked, computed = _sizes_in_child(config)
    if weights and (asked > 2 * weights + _SURPLUS or computed > 2 * weights + _BUFFERS):
        raise ModelError(
            f"its configuration asks for {max(asked, computed):,} weights, but its files have {weights:,}: do the two "
            "belong together?"
        )


def _sizes_in_child(config: transformers.PreTrainedConfig) -> tuple[int, int]:
    """The parameters and buffers of the empty model, which a child of this process builds where
    there can be one."""
    if not hasattr(os, "fork"):
        return _sizes(config)
    with contextlib.suppress(Exception):
        AutoModel._model_mapping[type(config)]  # imported here, and not again in each child
    receiver, sender = multiprocessing.Pipe(duplex=False)
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            _limit_memory()
            sender.send(_sizes(config))
        os._exit(0)
    sender.close()
    try:
        if receiver.poll(LONGEST_BUILD):
            return receiver.recv()
        reason = f"takes more than {LONGEST_BUILD} seconds"
    except EOFError:  # it ended without an answer
        reason = f"takes more than {MOST_MEMORY >> 30} GiB"
    finally:
        receiver.close()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    raise ModelError(
        f"its configuration asks for a model that {reason} to build, even without weights"
    )


def _limit_memory() -> None:
    """Let this process have so much more memory than it has."""
    import resource  # of Unix alone

    with contextlib.suppress(OSError, ValueError), open("/proc/self/statm") as file:
        here = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (here + MOST_MEMORY, here + MOST_MEMORY))


def _sizes(config: transformers.PreTrainedConfig) -> tuple[int, int]:
    asked = computed = 0
    # an error comes again when the model is loaded
    with contextlib.suppress(Exception), torch.device("meta"):
        empty = AutoModel.from_config(config)
        asked = sum(parameter.numel() for parameter in empty.parameters())
        computed = sum(buffer.numel() for buffer in empty.buffers())
    return asked, computed


def _whole_numbers(fields: Mapping[Any, object]) -> Iterator[tuple[str, int]]:
    """The whole numbers of a configuration, and of those in it, by name."""
    for name, value in fields.items():
        if isinstance(value, dict):
            yield from _whole_numbers(value)
        elif type(value) is int:
            yield str(name), value


def _files(source: Location) -> Iterable[str]:
    """The files of a model's weights in safetensors, downloaded if it is on the Hub."""
    if source.commit is None:
        folder = Path(source.path)
        return [str(folder / name) for name in files.files(folder) if name.endswith(".safetensors")]

    def stored(name: str) -> str | None:
        options = {"revision": source.commit, "_raise_exceptions_for_missing_entries": False}
        return cached_file(source.path, name, **options)

    if single := stored(SAFE_WEIGHTS_NAME):
        return [single]
    index = stored(SAFE_WEIGHTS_INDEX_NAME)
    shards = json.loads(Path(index).read_bytes())["weight_map"].values() if index else ()
    return [file for shard in sorted({*shards}) if (file := stored(shard))]
