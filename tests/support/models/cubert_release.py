"""A small CuBERT in the form of its releases: a vocabulary file, and a checkpoint with CuBERT's names and shapes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from support.models.tensor_bundle import write_bundle

NAMES = ("<pad>_", "<EOS>_", "[CLS]_", "[SEP]_", "[MASK]_", "[UNK]_")
NAMED = [
    rf"\u\u\u{name}\u\u\u_"
    for name in ("INDENT", "DEDENT", "NL", "NLCHAR", "CR", "CARET", "NEWLINE")
]
WORDS = (
    r"def_|return_|self_|self^_|self|if_|else_|for_|in_|the^_|ing^_|public_|static_|void_|new_|int_|String_|get^_|^_"
    r"|\u|\u^_|\\|\u\u\uINDENT\u\u\u |   _|\u\u\uNLCHAR\u\u\u^|;..."
).split("|")
ENTRIES = [*NAMES, *NAMED, *(chr(code) for code in range(128) if chr(code) not in "\r\n"), *WORDS]


def write_vocabulary(folder: Path, entries: list[str] = ENTRIES) -> Path:
    """The file that comes with a checkpoint: every entry in quotes."""
    file = folder / "vocabulary.txt"
    folder.mkdir(parents=True, exist_ok=True)
    file.write_bytes("".join(f"'{entry}'\n" for entry in entries).encode())
    return file


def variables(
    positions: int = 512, layers: int = 2, hidden: int = 128, vocabulary: int = len(ENTRIES)
) -> dict[str, np.ndarray]:
    """Random values for every variable of a CuBERT, with those of its optimizer."""
    inner = 4 * hidden
    shapes: dict[str, tuple[int, ...]] = {
        "bert/embeddings/word_embeddings": (vocabulary, hidden),
        "bert/embeddings/position_embeddings": (positions, hidden),
        "bert/embeddings/token_type_embeddings": (2, hidden),
        "bert/pooler/dense/kernel": (hidden, hidden),
        "bert/pooler/dense/bias": (hidden,),
        "cls/predictions/transform/dense/kernel": (hidden, hidden),
        "cls/predictions/transform/dense/bias": (hidden,),
        "cls/predictions/output_bias": (vocabulary,),
        "cls/seq_relationship/output_weights": (2, hidden),
        "cls/seq_relationship/output_bias": (2,),
    }
    norms = ["bert/embeddings", "cls/predictions/transform"]
    for layer in range(layers):
        place = f"bert/encoder/layer_{layer}"
        for name in ("self/query", "self/key", "self/value", "output/dense"):
            shapes[f"{place}/attention/{name}/kernel"] = hidden, hidden
            shapes[f"{place}/attention/{name}/bias"] = (hidden,)
        shapes[f"{place}/intermediate/dense/kernel"], shapes[f"{place}/intermediate/dense/bias"] = (
            (hidden, inner),
            (inner,),
        )
        shapes[f"{place}/output/dense/kernel"], shapes[f"{place}/output/dense/bias"] = (
            (inner, hidden),
            (hidden,),
        )
        norms += [f"{place}/attention/output", f"{place}/output"]
    for norm in norms:
        shapes[f"{norm}/LayerNorm/gamma"] = shapes[f"{norm}/LayerNorm/beta"] = (hidden,)
    random = np.random.default_rng(0)
    return {name: random.normal(0, 0.2, shape).astype(np.float32) for name, shape in shapes.items()}


def with_optimizer(values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The variables of a release, which has those of its optimizer, too; here the latter are small."""
    extra = {
        f"{name}/{part}": np.zeros(1, np.float32)
        for name in values
        for part in ("adam_m", "adam_v")
    }
    return {**values, **extra, "global_step": np.array(7, np.int64)}


def write_release(folder: Path, **sizes: int) -> Path:
    """The prefix of a checkpoint in a folder, with its vocabulary beside it."""
    write_vocabulary(folder)
    return write_bundle(folder / "model.ckpt-7", with_optimizer(variables(**sizes)))
