"""Does the head that looks also serve? The best head of each relation is chosen on validation, and silenced on test."""

from __future__ import annotations

import logging
import os
from functools import partial
from typing import Any

import numpy as np
import torch

from codesyntax_dataset.arguments import Natural, Positive, checked
from codesyntax_dataset.protocol import PAPER_LENGTH
from codesyntax_metric.topk_uas import RULES
from probing.attention.probe import Probing
from probing.attention.result import HeadScore, ProbeResult
from probing.evidence.beyond import AVOIDED, best_offsets, is_hard
from probing.evidence.checks import Criterion, Verifier
from probing.evidence.draw import Influence
from probing.prediction.silence import Silencing
from probing.prediction.silencing_result import Chosen, SilencingProvenance, SilencingResult
from probing.runs.data import read_functions
from probing.runs.experiment import run
from probing.runs.session import Session
from probing.runs.settings import limit_of

logger = logging.getLogger(__name__)

DRAWS = 20
"""The most heads that each best head is compared with."""


@checked
def ablate(
    model: str | os.PathLike | tuple | Session,
    data: Any,
    config: str = "python",
    *,
    draws: Positive = DRAWS,
    seed: Natural = 0,
    revision: str | None = None,
    device: str | torch.device | None = None,
    limit: Positive | None = None,
    sample: Positive | None = None,
    direction: str | None = None,
    max_length: Positive = PAPER_LENGTH,
    output: str | os.PathLike | None = None,
    shard: str | None = None,
    tell: Any = logger.info,
) -> SilencingResult | None:
    """What a language model loses of the dependents of each relation if the relation's best head is silenced.

    Both splits are probed as by `probing.probe`, or read from `output` or the cache if they were: the best head of each
    relation (rule first, k = 1) is chosen on `validation`, and silenced on `test`. A masked language model restores the
    dependents of a relation, all masked together; a decoder predicts the first token of each dependent that comes after
    its head token. The cost is the mean log-probability of their sub-tokens by the whole model, less that with the
    silenced head, in nats. A silenced head puts out the mean of its outputs over the sub-tokens of the first functions
    of validation, 256 at most. Beside it, `draws` other heads of the same layer are silenced in the same way, drawn by
    `seed`, or all of them if the layer has no more.

    `model`: a Hub id (at `revision`), a local folder, or a (model, tokenizer) pair, with a masked-LM or causal-LM head;
    or a `Session` that keeps it for several calls, and says `revision`, `device` and `max_length`.
    `data`, `config`, `direction`, `max_length`, `output` and `shard`: as of `probing.probe`, but every shard needs both
    probes whole; `limit`, `sample`: silence heads in some
    functions of test only, which the result says. `tell` is called with the number of forward passes before they begin.
    The model runs in float32.

    The same arguments give the same result for any number of processes. A repeated run is answered from the cache (see
    `probing.runs.cache`), unless the model is a pair. Under `accelerate launch` or `torchrun`, the main process returns
    the result and the others None.

    Raises ArgumentError, ModelError, DatasetError, UnknownName or LedgerError, each with a one-line message.
    """
    session = Session.of(model, revision=revision, device=device, max_length=max_length)
    test = Probing(session, read_functions(data, config, "test", limit=limit_of(limit, sample, seed)), direction)
    validation = Probing(session, read_functions(data, config, "validation"), direction)
    best = partial(_best_heads, output=output)
    silencing = Ablation(session, test.data, validation, test, best, draws, seed, tell)
    result = run(silencing, output, shard)
    if output is not None:
        silencing.heads  # noqa: B018 - the probes belong there, even if the cache has the result
    return result


class Ablation(Silencing):
    """Silences the heads that both probes choose."""

    @classmethod
    def again(cls, made: SilencingProvenance, session: Session, data: Any) -> Ablation:
        test, validation = (
            Probing(session, read_functions(data, made.settings.config, split, limit=limit), made.settings.direction)
            for split, limit in ((made.settings.split, made.settings.limit), ("validation", None))
        )
        best = partial(_best_heads, output=None)
        return cls(session, test.data, validation, test, best, made.settings.draws, made.settings.seed)


class HeadsVerifier(Verifier[Ablation]):
    """Chooses the heads of a silencing result again, and compares the rows of some functions."""

    COUNTED = ("skips", "left_out")

    def counted(self) -> list[Criterion]:
        theirs, ours = self.made.heads, self.experiment.provenance.heads
        other = sorted(name for name in {**theirs, **ours} if theirs.get(name) != ours.get(name))
        found = (
            f"of other relations, or chosen otherwise, for {', '.join(other)}" if other else f"all {len(ours)} again"
        )
        return [*super().counted(), Criterion("heads", not other, found)]

    def influence(self) -> Influence:
        """In hundredths of a nat: what functions contribute to the mean cost over relations, and to the difference."""
        rows = self.ledger.rows
        places = np.unique(rows["function"])
        names = "cost: mean over relations", "cost beyond matched heads: mean over relations"
        found, least, parts = np.zeros((2, len(places))), np.zeros(len(places)), []
        result = SilencingResult.from_ledger(self.ledger)
        for costs in result.costs().values():
            of = np.searchsorted(places, costs.functions)
            both = np.stack([costs.best, costs.best - costs.matched.mean(axis=1)])
            weight = 100 / len(of) / len(result.heads)
            found[:, of] += weight * np.maximum(both, 0)
            least[of] += weight * both.std(axis=1).max()  # what is claimed to be 0 may be less
            parts.append(np.zeros(len(places)))
            parts[-1][of] = 100 / len(of) * np.maximum(costs.best, 0)
        return Influence(places, dict(zip(names, found)), {"cost: any relation": parts}, least)


def _best_heads(silencing: Silencing, output: str | os.PathLike | None) -> dict[str, Chosen] | None:
    """The heads that both probes choose, in the main process."""
    validation, test = run(silencing.validation, output), run(silencing.probing, output)
    return None if validation is None or test is None else choose(validation, test, silencing.draws, silencing.seed)


def choose(validation: ProbeResult, test: ProbeResult, draws: int, seed: int) -> dict[str, Chosen]:
    """The head of each relation of `test` that is best on `validation`, with its scores on test, and its rivals.

    Relations of which no head finds an edge on validation have none. Heads with the same layer and number have the same
    rivals.
    """
    ledger = test.ledger
    hard = is_hard(ledger, best_offsets(validation.ledger, AVOIDED[0]))
    none = HeadScore(score=0, layer=0, head=0)
    best = [
        validation.relations[name].first["1"] if name in validation.relations else none for name in ledger.relations
    ]
    layers, numbers = ([[cell[part] for cell in best]] * len(RULES) for part in ("layer", "head"))
    hit = ledger.of_heads(np.array(layers), np.array(numbers))[0] == 0  # (E,), rule first
    heads = {}
    for number, (name, cell) in enumerate(zip(ledger.relations, best)):
        edges = ledger.relation == number
        if not (edges.any() and cell.score):
            continue
        layer, head = cell.layer, cell.head
        others = np.delete(np.arange(test.heads), head)
        if len(others) > draws:
            others = np.sort(np.random.default_rng([seed, layer, head]).choice(others, draws, replace=False))
        heads[name] = Chosen(
            layer=layer,
            head=head,
            matched=tuple(others.tolist()),
            edges=int(edges.sum()),
            score=float(100 * hit[edges].mean()),
            hard=int((edges & hard).sum()),
            beyond=float(100 * hit[edges & hard].mean()) if (edges & hard).any() else None,
        )
    return heads
