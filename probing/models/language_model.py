"""A language model with sets of attention heads of its body silenced.

A silenced head puts out, at every position, the mean of its outputs over all sub-tokens of some
reference functions (mean ablation: its weights and the other heads stay as they are), or another of
STAND_INS. The reference
is the same for all functions, so that the mean tells nothing about the function that is read, and
no result depends on which functions share a batch; its functions run one by one, in order, so that
padding is not in the mean.

Nothing is computed twice: sets that silence the same heads up to a layer are one row of the batch
up to there, and a decoder goes on from what texts share at the beginning.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache

from codesyntax_dataset.errors import ModelError
from probing.models import capture
from probing.models.encoder import Encoder, attention_of
from probing.models.loaded import DRIFT, Check, Loaded, error_line, largest_value
from probing.models.masked import EXAMINED_LENGTH, ScoringModel
from probing.models.subtokens import common_prefix
from probing.models.transfer import send

logger = logging.getLogger(__name__)

AttentionHead = tuple[int, int]
"""Layer and query head, both from 0."""

STAND_INS = MEAN, ZERO, RESAMPLED = "mean", "zero", "resampled"
"""What silenced heads put out: the mean of their outputs over some functions, nothing, or their
outputs at other places of these functions."""

_RESAMPLED = 4096
"""The most sub-tokens whose outputs stand in for those of silenced heads."""


class Level(NamedTuple):
    """The rows of a batch in a layer, one for all sets that silence the same heads up to there.

    `origins` (R,): which row of the layer below each goes on from; `rows`, `heads` (N,): whose
    outputs are silenced.
    """

    origins: Tensor
    rows: Tensor
    heads: Tensor


class LanguageModel(Encoder):
    """A language model that predicts single sub-tokens while some of its attention heads are
    silenced.

    `scoring`: the same model with its head; `with_head`: its revision with this head, where
    `revision` is that of an encoder; `mask`: the id of its mask token, None for a decoder;
    `shared`: its layers, of which sets and texts share what is equal; none if each is read alone.
    """

    def __init__(self, loaded: Loaded, masked: bool):
        super().__init__(loaded)
        self.scoring = ScoringModel(loaded, masked)
        self.with_head, self.mask = self.scoring.revision, self.scoring.mask
        self.shared = torch.nn.ModuleList()

    def stand_ins(self, functions: Sequence[np.ndarray], kind: str = MEAN) -> list[Tensor]:
        """What silenced heads put out, from these functions, ids (S,) each, at least one: of each
        layer (N, H, D), one after the other.

        `kind`: MEAN, of their outputs over all sub-tokens; ZERO; or RESAMPLED, their outputs at up
        to _RESAMPLED sub-tokens, which are spread evenly over the functions.
        """
        heard: list[Tensor] = []
        sums: list[Tensor] = []
        drawn: list[list[Tensor]] = []
        total = sum(map(len, functions))
        every = max(1, total // _RESAMPLED)
        for ids in functions:
            heard.clear()
            with capture.edit(lambda outputs: heard.append(outputs[0].clone())):  # (S, H, D)
                self.run(self.inputs([ids]), capture.ATTENTION_NAME)
            if [outputs.shape[1] for outputs in heard] != [self.heads] * self.layers:
                raise ModelError(
                    f"the heads of {self.name} cannot be silenced: its layers have outputs of other forms"
                )
            added = [outputs.double().sum(dim=0) for outputs in heard]
            sums = [before + outputs for before, outputs in zip(sums, added)] if sums else added
            drawn.append([outputs[::every] for outputs in heard])
        if kind == RESAMPLED:
            return [torch.cat(of_layer) for of_layer in zip(*drawn)]
        scale = 0.0 if kind == ZERO else 1 / total
        return [(outputs * scale).float()[None] for outputs in sums]

    def log_probabilities(
        self,
        texts: Sequence[tuple[np.ndarray, np.ndarray]],
        silenced: Sequence[Sequence[AttentionHead]],
        stand_ins: Sequence[Tensor],
    ) -> Tensor:
        """The log-probabilities of true sub-tokens without each of some sets of heads, in nats:
        float64 (sets, M), of one text after the other.

        `texts`: of each, ids (S,) and the positions (m,) that are asked for, sorted. A masked
        language model restores those of a text, all masked together; a decoder predicts each from
        those before it, so that they count from 1. Where its texts begin like the first one, they
        ask for the same positions. `silenced`: the sets, each once; `stand_ins`: what silenced heads
        put out, as of the method of this name.
        """
        (first, asked), *_ = texts
        shares = bool(self.shared) and self.mask is None
        begins = [0, *(max(0, shares * common_prefix(first, ids) - 1) for ids, _ in texts[1:])]
        cache = DynamicCache() if any(begins) else None
        held = 0
        found: dict[int, Tensor] = {}
        with attention_of(self.model, capture.ATTENTION_NAME), self._levels(silenced) as levels:
            read = partial(self._read, len(silenced), levels, stand_ins, cache)
            # those that share most come first, so that the cache is only ever cut
            for number in sorted(
                range(len(texts)), key=lambda number: (number > 0, -begins[number])
            ):
                ids, positions = texts[number]
                begin = begins[number]
                if cache is not None and held > begin:
                    cache.crop(begin - held)
                    held = begin
                known = int(np.searchsorted(positions, begin, "right")) if begin else 0
                parts = []
                if known:
                    parts.append(found[0][:, : np.searchsorted(asked, begin, "right")])
                if known < len(positions):
                    parts.append(read(ids, positions[known:], begin))
                    held = len(ids)
                found[number] = torch.cat(parts, dim=1)
        return torch.cat([found[number] for number in range(len(texts))], dim=1)

    def _read(
        self,
        sets: int,
        levels: Sequence[Level],
        stand_ins: Sequence[Tensor],
        cache: DynamicCache | None,
        ids: np.ndarray,
        positions: np.ndarray,
        begin: int,
    ) -> Tensor:
        """The log-probabilities (sets, m) at some positions of a text that is run from its position
        `begin` on, behind what the cache has."""
        truth, columns = ids[positions], positions - 1 - begin
        if self.mask is not None:
            ids, columns = ids.copy(), positions
            ids[positions] = self.mask
        inputs: dict[str, Any] = {**self.inputs([ids[begin:]] * (1 if self.shared else sets))}
        if cache is not None:
            inputs |= {"past_key_values": cache, "use_cache": True}
            inputs["attention_mask"] = inputs["attention_mask"].new_ones(1, len(ids))
        rows = np.arange(sets).repeat(len(columns))
        places = [rows, *(np.tile(each, sets).astype(np.int64) for each in (columns, truth))]
        with capture.edit(_silencer(levels, stand_ins, begin)):
            return self.scoring.chances(inputs, *(send(each, self.device) for each in places)).view(
                sets, -1
            )

    @contextlib.contextmanager
    def _levels(self, silenced: Sequence[Sequence[AttentionHead]]) -> Iterator[list[Level]]:
        """The levels of all layers, in each of which the rows of the batch become its own."""

        def up_to(heads: Sequence[AttentionHead], layer: int) -> tuple[AttentionHead, ...]:
            return tuple(head for head in heads if head[0] <= layer or not self.shared)

        levels = []
        with contextlib.ExitStack() as hooks:
            below = [*dict.fromkeys(up_to(heads, -1) for heads in silenced)]
            for layer in range(self.layers):
                rows = [*dict.fromkeys(up_to(heads, layer) for heads in silenced)]
                origins = np.array([below.index(up_to(heads, layer - 1)) for heads in rows])
                cells = [
                    (row, head)
                    for row, heads in enumerate(rows)
                    for number, head in heads
                    if number == layer
                ]
                of_layer = np.array(cells, np.int64).reshape(-1, 2).T
                levels.append(Level(*(send(each, self.device) for each in (origins, *of_layer))))
                if len(rows) > len(below):
                    grow = partial(_grow, origins=levels[-1].origins)
                    handle = self.shared[layer].register_forward_pre_hook(grow, with_kwargs=True)
                    hooks.callback(handle.remove)
                below = rows
            yield levels

    def examine(self) -> Self:
        """Check what silencing needs, beside the self-check of attention: the head, with our
        attention function.

        Raises ModelError if the heads cannot be silenced, or there is nothing to compare them with.
        """
        if self.why:
            raise ModelError(
                f"the heads of {self.name} cannot be silenced: silencing needs our attention function, and {self.why}"
            )
        if self.prompt is not None:
            raise ModelError(f"the heads of {self.name} cannot be silenced: it has virtual tokens")
        if self.heads < 2:
            raise ModelError(
                f"{self.name} has one attention head in each layer, and no other to compare it with"
            )
        with attention_of(self.model, capture.ATTENTION_NAME):
            self.scoring.examine()
        if not self.spread:
            self._examine_shared()
        return self

    def _examine_shared(self) -> None:
        """Let sets of heads and texts share what is equal, if that gives what they give alone."""
        (_, first, _), _ = self.examined_texts(EXAMINED_LENGTH)
        half = len(first) // 2
        other = np.concatenate([first[:half], first[:half:-1]])
        texts = [(ids, np.arange(1, len(ids), 3)) for ids in (first, other)]
        asked = texts, [(), ((0, 0),), ((self.layers - 1, 1),)], self.stand_ins([first], ZERO)
        alone = self.log_probabilities(*asked)
        name = "sets of heads and texts share what is equal"
        meaning = "sets of heads are silenced in one text after the other"
        try:
            self.shared = next(
                part
                for part in self.model.modules()
                if isinstance(part, torch.nn.ModuleList) and len(part) == self.layers
            )
            apart = largest_value(self.log_probabilities(*asked) - alone)
            said = "log-probabilities differ by {}"
            check = Check.within(name, apart, DRIFT[self.dtype], said, meaning)
        except Exception as error:  # a model's layers may be called in any way
            check = Check(name, False, error_line(error), meaning)
        self.checks.append(check)
        if not check.passed:
            self.shared = torch.nn.ModuleList()
            logger.warning("%s: %s (%s)", self.name, meaning, check.measured)


def _grow(_: torch.nn.Module, args: Any, named: Any, origins: Tensor) -> tuple[Any, Any]:
    """The arguments of a layer with the rows of its level."""
    if args:
        return (args[0][origins], *args[1:]), named
    return args, {**named, "hidden_states": named["hidden_states"][origins]}


def _silencer(levels: Sequence[Level], stand_ins: Sequence[Tensor], begin: int) -> capture.Editor:
    """Puts stand-ins in place of the outputs of silenced heads, in texts from their position `begin`
    on."""
    layers = zip(stand_ins, levels)

    def silence(outputs: Tensor) -> None:
        stand_in, level = next(layers)
        places = torch.arange(outputs.shape[1], device=outputs.device) + begin
        put = stand_in[places % len(stand_in)][:, level.heads].transpose(0, 1)  # (N, S, D)
        outputs[level.rows, :, level.heads] = put.to(outputs.dtype)

    return silence
