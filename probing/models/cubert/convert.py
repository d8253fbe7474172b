"""Convert a released checkpoint of CuBERT, written by TensorFlow 1, to a BERT in safetensors with its tokenizer."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import save_file
from transformers import BertConfig

from codesyntax_dataset.arguments import checked
from codesyntax_dataset.atomic import atomic_path, os_errors_as_ledger_errors
from codesyntax_dataset.errors import ModelError
from probing.models.cubert.checkpoint import TensorBundle
from probing.models.cubert.tokenizer import CubertTokenizer

HEAD = 64
"""Features of an attention head. The variables do not tell; it is so in every BERT that was released in this format."""

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
    """Write the BERT of a checkpoint, and its tokenizer, to the new folder `output`, which is returned.

    `checkpoint`: the prefix of its files, its `.index`, or a folder with one checkpoint; `vocabulary`, `language`,
    `drop`: those of `CubertTokenizer`. All variables but the optimizer's must be those of BertForPreTraining, with its
    shapes. In memory are all weights at once, 1.4 GB for a release.

    Raises ModelError for a checkpoint or vocabulary that cannot be read, a variable that is missing, surplus or of
    another shape, and for an `output` that exists.
    """
    target = Path(output)
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise ModelError(f"{target} exists already, expected a new folder: choose another output or remove it")
    source = TensorBundle(Path(checkpoint))
    sizes = sizes_of({name: variable.shape for name, variable in source.variables.items()}, str(source.prefix))
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
        num_attention_heads=sizes.hidden // HEAD,
        pad_token_id=tokenizer.pad_token_id,
    )
    weights = {}
    for name in shapes_of(sizes):
        values = source.read(name)
        weights[_in_bert(name)] = np.ascontiguousarray(values.T) if name.endswith("/kernel") else values
    with os_errors_as_ledger_errors(target), atomic_path(target) as place:
        config.save_pretrained(place)
        tokenizer.save_pretrained(place)
        try:
            save_file(weights, place / "model.safetensors", metadata={"format": "pt"})
        except SafetensorError as error:  # such as for a full disk
            raise OSError(str(error)) from error
    return target


def sizes_of(shapes: Mapping[str, tuple[int, ...]], source: str) -> BertSizes:
    """The sizes of the model with variables of these names and shapes; `source` is its name in messages.

    Raises ModelError, which names the variable, for one that is missing, surplus, or of another shape.
    """
    embeddings = "bert/embeddings/word_embeddings", "bert/embeddings/position_embeddings"
    for name in embeddings:
        if len(shapes.get(name, (0, 0))) != 2:
            raise ModelError(f"{source}: the variable {name!r} has the shape {shapes[name]}, expected two dimensions")
    (vocabulary, hidden), (positions, _) = (shapes.get(name, (0, 0)) for name in embeddings)
    layers = 0
    while any(name.startswith(f"bert/encoder/layer_{layers}/") for name in shapes):
        layers += 1
    sizes = BertSizes(vocabulary, positions, hidden, layers)
    expected = shapes_of(sizes)
    for name, shape in expected.items():
        if name not in shapes:
            raise ModelError(f"{source} lacks the variable {name!r}: expected a checkpoint of CuBERT, complete")
        if shapes[name] != shape:
            raise ModelError(
                f"{source}: the variable {name!r} has the shape {shapes[name]}, expected {shape} in a BERT with "
                f"{layers} layers and a hidden size of {hidden}"
            )
    for name in shapes:
        weight, _, suffix = name.rpartition("/")
        if name not in expected and name != "global_step" and not (suffix in _OPTIMIZER and weight in expected):
            raise ModelError(
                f"{source} has the variable {name!r}, which CuBERT has not: expected its checkpoint as released"
            )
    if hidden % HEAD or not hidden or not layers:
        raise ModelError(f"{source} has {layers} layers and a hidden size of {hidden}, expected a multiple of {HEAD}")
    return sizes


def shapes_of(sizes: BertSizes) -> dict[str, tuple[int, ...]]:
    """The shape of every variable of CuBERT: BERT with both heads of its pretraining (Devlin et al. 2019).

    The output layer over the vocabulary has the weights of the embeddings, and a bias of its own.
    """
    vocabulary, positions, hidden, layers = sizes
    dense = {"bert/pooler/dense": (hidden, hidden), "cls/predictions/transform/dense": (hidden, hidden)}
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


_PARTS = {"kernel": "weight", "gamma": "weight", "output_weights": "weight", "beta": "bias", "output_bias": "bias"}


def _in_bert(name: str) -> str:
    """The name in BERT of a variable; kernels are (in, out), weights (out, in)."""
    place, _, part = name.rpartition("/")
    name = f"{name}/weight" if part.endswith("_embeddings") else f"{place}/{_PARTS.get(part, part)}"
    return name.replace("/", ".").replace("layer_", "layer.")
