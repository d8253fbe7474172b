"""Functions of random words with random dependents, and a model whose attention is what a test says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import torch

from probing.instruments.attention.align import Alignment
from probing.instruments.attention.edges import EdgeTable
from probing.instruments.attention.encoded import EncodedFunction
from probing.instruments.attention.probe import Encoded
from probing.instruments.information.inform import Informing
from probing.models.capture import rows_of
from probing.runs.data import Functions

Attention = Callable[[int, np.ndarray, np.random.Generator], np.ndarray]
"""From the number of tokens and edges (E, 2), head and dependent, to maps (layers, heads, tokens, tokens)."""

RELATION = "If:if->body"


class Planted:
    """A model of one sub-token a token: the first sub-token of a function is its number."""

    name, revision, precision, family, weights = "planted", "0", "float32", "planted", "attention"
    begin, causal = None, False
    device = torch.device("cpu")

    def __init__(self, maps: dict[int, np.ndarray]):
        self.maps = maps
        self.layers, self.heads = next(iter(maps.values())).shape[:2]

    def inputs(self, ids: Sequence[np.ndarray]) -> dict[str, torch.Tensor]:
        padded = torch.full((len(ids), max(map(len, ids))), -1)
        for row, one in zip(padded, ids):
            row[: len(one)] = torch.from_numpy(one)
        return {"input_ids": padded}

    def forward(self, inputs, listener) -> None:
        batch, length = inputs["input_ids"].shape
        for layer in range(self.layers):
            maps = torch.zeros(batch, self.heads, length, length)
            for place, number in enumerate(inputs["input_ids"][:, 0].tolist()):
                one = torch.from_numpy(self.maps[number][layer])
                maps[place, :, : one.shape[1], : one.shape[1]] = one
            listener(rows_of(maps))


def informing(
    attend: Attention,
    functions: int,
    tokens: int,
    edges: int,
    distance: int | None = None,
    later: int = 0,
    seed: int = 0,
):
    """An experiment on so many functions a split, each of so many tokens and edges.

    Dependents are uniform over the other tokens, or at a `distance`, of test so much `later`. No word tells anything.
    """
    rng, maps, probings = np.random.default_rng(seed), {}, {}
    for split in ("validation", "test"):
        rows, encoded, relations = [], [], []
        apart = (distance or 0) + later * (split == "test")
        for index in range(functions):
            number = len(maps)
            words = rng.choice(["one", "two", "three"], tokens).tolist()
            starts = np.cumsum([0, *(len(word) + 1 for word in words)])
            head = rng.permutation(tokens - apart)[:edges]
            other = rng.integers(tokens - 1, size=edges)
            first = other + (other >= head) if distance is None else head + apart
            cells = [
                {"relation": RELATION, "head": int(h), "first": int(f), "last": int(f)}
                for h, f in zip(head, first)
            ]
            row = {
                "id": index,
                "code": " ".join(words),
                "relations": cells,
                "repo": f"repository {index % 5}",
            }
            row |= {"token_start": starts[:-1].tolist(), "token_end": (starts[1:] - 1).tolist()}
            rows.append(row)
            maps[number] = attend(tokens, np.stack([head, first], 1), rng).astype(np.float32)
            places = np.arange(tokens, dtype=np.int32)
            ids = np.full(tokens, number, np.int64)
            encoded.append(
                EncodedFunction(
                    index,
                    ids,
                    Alignment(places, places),
                    EdgeTable.from_rows([(index, row)], relations),
                )
            )
        data = Functions(
            pa.Table.from_pylist(rows),
            "memory@0.0.0",
            "python",
            split,
            None,
            None,
            0,
            split,
            rows,
            None,
        )
        probings[split] = SimpleNamespace(data=data, encoded=Encoded(encoded, relations, Counter()))
    for probing in probings.values():
        probing.encoder = Planted(maps)
    session = SimpleNamespace(
        max_length=511,
        pool="sum",
        processes=SimpleNamespace(main=True, count=1, rank=0, share=lambda value: value),
    )
    experiment = Informing(session, probings["test"].data, 2000)
    experiment.probing, experiment.validation = probings["test"], probings["validation"]
    return experiment


def noise(layers: int, heads: int) -> Attention:
    """Attention that tells nothing."""
    return lambda tokens, _, rng: rng.dirichlet(np.full(tokens, 0.3), (layers, heads, tokens))
