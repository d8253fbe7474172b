"""Attention weights times the norm of what they weigh: ‖α f(x)‖ instead of α (Kobayashi et al. 2020, section 2.2).

A head adds α_ij f(x_j) to sub-token i, where f is its value followed by its part of the output projection: a large
weight on a short vector hardly counts. Which module projects is found by what goes in and out, not by its name.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TypeVar

import torch

from codesyntax_dataset.errors import ModelError, UnknownName
from codesyntax_dataset.protocol import NORM, WEIGHTS
from probing.models import capture
from probing.models.encoder import Encoder
from probing.models.loaded import TEXTS

E = TypeVar("E", bound=Encoder)


def weigh(encoder: E, weights: str) -> E:
    """Let an encoder give rows of one of WEIGHTS; raises UnknownName for another, and what `factors_of` does."""
    if weights not in WEIGHTS:
        raise UnknownName("weights", weights, WEIGHTS)
    if weights == NORM:
        encoder.weights, encoder.factors = weights, factors_of(encoder)
    return encoder


def factors_of(encoder: Encoder) -> list[torch.Tensor]:
    """Of each layer and query head a factor R, float32 (H, D, D): the norm of f(x) is that of R applied to the value.

    Raises ModelError for a model that is probed with eager attention maps, or whose heads' outputs are not what a
    linear module of its own receives, as with gates or norms in between.
    """
    projections = _projections(encoder) if encoder.path == "captured" else {}
    if len(projections) < encoder.layers:
        raise ModelError(
            f"{encoder.name} has {encoder.layers} attention layers, and the output projection of {len(projections)} of "
            "them is known, expected all: leave out --weights norm"
        )
    return [_factor(projections[layer], encoder.heads) for layer in range(encoder.layers)]


def _projections(encoder: Encoder) -> dict[int, torch.nn.Module]:
    """Of each layer the first module with a matrix that receives just what the heads give, side by side."""
    given: list[torch.Tensor] = []
    found: dict[int, torch.nn.Module] = {}

    def enter(module: torch.nn.Module, received: tuple) -> None:
        if given and received and isinstance(received[0], torch.Tensor) and torch.equal(received[0], given[-1]):
            found.setdefault(len(given) - 1, module)

    with ExitStack() as stack:
        for module in encoder.model.modules():
            if getattr(getattr(module, "weight", None), "ndim", 0) == 2:
                stack.callback(module.register_forward_pre_hook(enter).remove)
        stack.enter_context(capture.edit(lambda outputs: given.append(outputs.flatten(2).clone())))
        ids, *_ = next(encoder.encode(TEXTS))
        encoder.run(encoder.inputs([ids[: encoder.longest]]), capture.NAME)
    return found


def _factor(projection: torch.nn.Module, heads: int) -> torch.Tensor:
    weight = projection.get_parameter("weight").detach().float()
    if isinstance(projection, torch.nn.Linear):  # otherwise of GPT-2's kind, whose inputs come first
        weight = weight.T
    return torch.linalg.qr(weight.unflatten(0, (heads, -1)).mT, mode="r").R
