"""What listeners hear of attention between tokens, against full maps and plain loops."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from tqdm import tqdm

from codesyntax_metric.topk_uas import HEAD_TO_DEPENDENT
from probing.instruments.attention.probe import Probing
from probing.instruments.information.learn import drawn
from probing.instruments.information.pairs import (
    GatheredPairs,
    ScoredPairs,
    Scorers,
    listen,
)
from probing.runs.data import read_functions
from probing.runs.session import Session


@pytest.fixture(scope="module")
def probing(tiny_model, dataset_folder):
    return Probing(Session(tiny_model), read_functions(dataset_folder, "python", "test", limit=5))


@pytest.fixture(scope="module")
def functions(probing):
    return drawn(probing.encoded.functions, 40)[0]


@pytest.fixture(scope="module")
def plain(probing, functions):
    """Function -> spread word-level weights (layers, H, T, T) from its full maps."""
    found = {}
    for function in functions:
        maps = [
            layer[0].double().cpu().numpy()
            for layer in probing.encoder.maps(probing.encoder.inputs([function.ids]))
        ]
        tokens = len(function.alignment.first)
        words = np.zeros((len(maps), maps[0].shape[0], tokens, tokens))
        spans = [slice(a, b + 1) for a, b in zip(*function.alignment)]
        for i in np.flatnonzero(function.alignment.mapped):
            for j in np.flatnonzero(function.alignment.mapped):
                if i != j:
                    words[:, :, i, j] = [
                        layer[:, spans[i], spans[j]].sum(2).mean(1) for layer in maps
                    ]
        found[function.index] = np.log1p(1000 * words) / 7
    return found


@pytest.mark.slow
def test_gathered_weights_are_those_of_full_maps(probing, functions, plain):
    rng, asked = np.random.default_rng(0), {}
    for function in functions:
        count = len(function.alignment.first)
        places, tokens = rng.integers(len(function.heads), size=30), rng.integers(count, size=30)
        asked[function.index] = np.stack([places, tokens], axis=1)
    heard: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    make = partial(GatheredPairs, asked=asked, answers=heard)
    listen(probing.encoder, functions, tqdm(disable=True), make)
    for function in functions:
        words, (place, token), (kept, found) = (
            plain[function.index],
            asked[function.index].T,
            heard[function.index],
        )
        head = function.heads[place]
        # (layers, 2, H, P)
        both = np.stack([words[:, :, head, token], words[:, :, token, head]], axis=1)
        assert kept == pytest.approx(np.moveaxis(both, -1, 0), abs=1e-3, rel=1e-3)
        first = np.stack(
            [words[:, :, function.heads], words[:, :, :, function.heads].swapaxes(2, 3)], axis=1
        )
        best, ours = first.max(axis=-1), np.moveaxis(found, 0, -1)  # (layers, 2, H, heads)
        assert np.take_along_axis(first, ours[..., None], -1)[..., 0] == pytest.approx(
            best, abs=1e-6
        )


@pytest.mark.slow
def test_scores_are_sums_over_all_heads(probing, functions, plain):
    encoder, rng = probing.encoder, np.random.default_rng(1)
    relations = len(probing.encoded.relations)
    weights = rng.normal(size=(relations, 2, encoder.layers, 2, encoder.heads)).astype(np.float32)
    sizes = encoder.layers, 2, encoder.heads
    best = np.stack([rng.integers(size, size=relations) for size in sizes], axis=-1)
    asked = {
        function.index: np.stack(
            [rng.integers(relations, size=9), rng.integers(len(function.heads), size=9)], axis=1
        )
        for function in functions
    }
    found: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    make = partial(ScoredPairs, asked=asked, answers=found, scorers=Scorers(weights, best))
    listen(encoder, functions, tqdm(disable=True), make)
    for function in functions:
        words, (scores, by_head) = plain[function.index], found[function.index]
        for number, (relation, place) in enumerate(asked[function.index]):
            head = function.heads[place]
            both = np.stack([words[:, :, head], words[:, :, :, head]], axis=1)  # (layers, 2, H, T)
            for model in range(2):
                expected = (weights[relation, model][..., None] * both).sum(axis=(0, 1, 2))
                assert scores[number, model] == pytest.approx(expected, abs=1e-4)
            assert by_head[number] == pytest.approx(both[tuple(best[relation])], abs=1e-5)


def test_every_token_with_sub_tokens_reads(functions):
    for function in functions:
        assert (
            function.readers(HEAD_TO_DEPENDENT).tolist()
            == np.flatnonzero(function.alignment.mapped).tolist()
        )
