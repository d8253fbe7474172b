"""Does the head that looks also serve? The best head of each relation is chosen on validation, and
silenced on test."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from codesyntax_dataset.arguments import Natural, Positive, checked
from codesyntax_dataset.errors import UnknownName
from codesyntax_dataset.protocol import ATTENTION, PAPER_LENGTH
from codesyntax_metric.topk_uas import RULES
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.offsets import AVOIDED, best_offsets, is_hard
from probing.instruments.attention.probe import Probing
from probing.instruments.attention.result import ProbeResult
from probing.instruments.silencing.result import (
    READING_END,
    RESTORED,
    Chosen,
    HeadGroup,
    SilencingProvenance,
    SilencingResult,
)
from probing.instruments.silencing.silence import Silencing
from probing.runs.data import read_functions
from probing.runs.experiment import run
from probing.runs.session import Session
from probing.stats.intervals import FEW_CLUSTERS, paired_p, rejected

logger = logging.getLogger(__name__)

DRAWS = 20
"""The most sets of heads that the best are compared with."""

TOGETHER = (1, 3, 10)
"""Sizes of the sets of best heads that are silenced together, because one head may replace
another."""

SETTING_FIELDS = ("draws", "seed", "restored")
"""Settings that a run is asked for, in the order of the fields of `Silencing`."""


@checked
def ablate(
    model: str | os.PathLike | tuple | Session,
    data: Any,
    config: str = "python",
    *,
    restored: str = READING_END,
    draws: Positive = DRAWS,
    seed: Natural = 0,
    revision: str | None = None,
    device: str | torch.device | None = None,
    limit: Positive | None = None,
    sample: Positive | None = None,
    direction: str | None = None,
    max_length: Positive = PAPER_LENGTH,
    weights: str = ATTENTION,
    output: str | os.PathLike | None = None,
    shard: str | None = None,
    tell: Any = logger.info,
) -> SilencingResult | None:
    """Measure the loss of a language model if the best heads of each relation are silenced.

    Both splits are probed as by `probing.probe`, or read from `output` or the cache if they were:
    the best head of each relation (rule first, k = 1) is chosen on the edges of every other
    function of `validation` that are not at the relation's best offset, must beat a guess by
    distance on the rest (`beats_guess`), and is silenced on `test`. A masked language model
    restores the end of the edges whose row of attention the head is, `reading-end`, all those of a
    relation masked together; or, if `restored` says so, the `dependents`, which a silenced head
    then reads masked. A decoder predicts the first token of each dependent that comes after its
    head token. The cost is the mean log-probability of their sub-tokens by the whole model, less
    that with the silenced head, in nats. A silenced head puts out the mean of its outputs over the
    sub-tokens of the first functions of validation, 256 at most. Beside it, `draws` other heads of
    the same layer are silenced in the same way, drawn by `seed`, or all of them if the layer has no
    more. Then the best 3 heads are silenced together, and the best 10, beside `draws` sets of as
    many others, if the model has so many.

    `model`: a Hub id (at `revision`), a local folder, or a (model, tokenizer) pair, with a
    masked-LM or causal-LM head; or a `Session` that keeps it for several calls, and says
    `revision`, `device`, `max_length` and `weights`. `data`, `config`, `direction`, `max_length`,
    `weights`, `output` and `shard`: as of `probing.probe`, but every shard needs both probes whole;
    `limit`, `sample`: silence heads in some functions of test only, which the result says. `tell`
    is called with the number of forward passes before they begin. The model runs in float32.

    The same arguments give the same result for any number of processes. A repeated run is answered
    from the cache (see `probing.models.cache_dir`), unless the model is a pair. Under `accelerate
    launch` or `torchrun`, the main process returns the result and the others None.

    Raises ArgumentError, ModelError, DatasetError, UnknownName or LedgerError, each with a one-line
    message.
    """
    if restored not in RESTORED:
        raise UnknownName("end to restore", restored, RESTORED)
    session = Session.of(
        model, revision=revision, device=device, max_length=max_length, weights=weights
    )
    test = Probing(
        session,
        read_functions(data, config, "test", limit=limit, sample=sample, seed=seed),
        direction,
    )
    validation = Probing(session, read_functions(data, config, "validation"), direction)
    best = partial(_agreed_heads, output=output)
    silencing = Ablation(session, test.data, validation, test, best, draws, seed, restored, tell)
    result = run(silencing, output, shard)
    if output is not None:
        silencing.heads  # noqa: B018 - the probes belong there, even if the cache has the result
    return result


class Ablation(Silencing):
    """Silences the heads that both probes choose."""

    @classmethod
    def again(cls, provenance: SilencingProvenance, session: Session, data: Any) -> Ablation:
        test, validation = (
            Probing(
                session,
                read_functions(data, provenance.settings.config, split, limit=limit),
                provenance.settings.direction,
            )
            for split, limit in (
                (provenance.settings.split, provenance.settings.limit),
                ("validation", None),
            )
        )
        best, asked = (
            partial(_agreed_heads, output=None),
            (getattr(provenance.settings, name) for name in SETTING_FIELDS),
        )
        return cls(session, test.data, validation, test, best, *asked)


def _agreed_heads(
    silencing: Silencing, output: str | os.PathLike | None
) -> dict[str, Chosen] | None:
    """The heads that both probes choose, in the main process."""
    validation, test = run(silencing.validation, output), run(silencing.probing, output)
    return (
        None
        if validation is None or test is None
        else choose(validation, test, silencing.draws, silencing.seed)
    )


def choose(validation: ProbeResult, test: ProbeResult, draws: int, seed: int) -> dict[str, Chosen]:
    """The heads of each relation of `test` that are best beyond the best offset, on every other
    function of `validation`, with the scores of the best on test, and the heads that they are
    compared with.

    Relations have none unless the best head beats a guess by distance on the rest of validation
    (`beats_guess`).
    """
    ledger, offsets = test.ledger, best_offsets(validation.ledger, AVOIDED[0])
    hard = is_hard(ledger, offsets)
    chosen_on, unseen = halves(validation.ledger.take(is_hard(validation.ledger, offsets)))
    ranked = ranked_heads(chosen_on)
    candidates = beats_guess(unseen, chosen_on, ranked)
    hit, shape = _hit_by_best(ledger, ranked), ledger.ranks.shape[2:]
    heads = {}
    for number, name in enumerate(ledger.relations):
        edges = ledger.relation == number
        if edges.any() and name in candidates:
            heads[name] = Chosen(
                groups=tuple(_head_groups(ranked[name], shape, draws, seed)),
                edges=int(edges.sum()),
                score=float(100 * hit[edges].mean()),
                hard=int((edges & hard).sum()),
                beyond=float(100 * hit[edges & hard].mean()) if (edges & hard).any() else None,
            )
    return heads


def halves(ledger: RankLedger) -> tuple[RankLedger, RankLedger]:
    """The edges of every other function, from which heads are chosen, and those of the rest."""
    second = np.unique(ledger.function, return_inverse=True)[1] % 2 == 1
    return ledger.take(~second), ledger.take(second)


def ranked_heads(ledger: RankLedger) -> dict[str, np.ndarray]:
    """Relation -> heads, as numbers over all layers, by their hits with one guess, rule first: the
    best first."""
    hits = np.zeros((len(ledger.relations), *ledger.ranks.shape[2:]), np.int64)
    for part, ranks in ledger.parts():
        np.add.at(hits, ledger.relation[part], ranks[0] == 0)
    return {
        name: np.argsort(-hits_of.reshape(-1), kind="stable")
        for name, hits_of in zip(ledger.relations, hits)
    }


def beats_guess(
    unseen: RankLedger, chosen_on: RankLedger, ranked: Mapping[str, np.ndarray]
) -> set[str]:
    """Relations of which the best head finds more edges of `unseen` functions than a guess that
    ignores the code.

    The guess draws a distance from head to dependent from those of `chosen_on`, as
    `probing.evidence.beyond.guesses`. Paired by function, one-sided at 5 %, corrected (Holm) over
    relations with enough functions in both.
    """
    hit, (drawn, sought) = (
        _hit_by_best(unseen, ranked),
        (table.first - table.head for table in (chosen_on, unseen)),
    )
    p = {}
    for number, name in enumerate(unseen.relations):
        seen, edges = (table.relation == number for table in (chosen_on, unseen))
        functions, function = np.unique(unseen.function[edges], return_inverse=True)
        if min(len(functions), len(np.unique(chosen_on.function[seen]))) < FEW_CLUSTERS:
            continue
        ordered = np.sort(drawn[seen])
        below, reached = (
            np.searchsorted(ordered, sought[edges], side) for side in ("left", "right")
        )
        gained = np.bincount(function, hit[edges] - (reached - below) / len(ordered))
        p[name] = paired_p(gained) / 2 if gained.sum() > 0 else 1.0
    return {name for name, beats in zip(p, rejected(np.array([*p.values()], float))) if beats}


def _hit_by_best(ledger: RankLedger, ranked: Mapping[str, np.ndarray]) -> np.ndarray:
    """Whether the best head of its relation finds each edge with one guess, rule first: (E,)."""
    best = [ranked[name][0] if name in ranked else 0 for name in ledger.relations]
    return ledger.of_heads(*np.unravel_index([best] * len(RULES), ledger.ranks.shape[2:]))[0] == 0


def _head_groups(
    ranked: np.ndarray, shape: tuple[int, ...], draws: int, seed: int
) -> Iterator[HeadGroup]:
    """The best heads, one and several together, and as many others; not of a number of which there
    are fewer others."""
    places = [(int(layer), int(head)) for layer, head in zip(*np.unravel_index(ranked, shape))]
    for number in TOGETHER:
        best, others = places[:number], sorted(places[number:])
        if number == 1:
            others = [head for head in others if head[0] == best[0][0]]
            if len(others) > draws:
                rng = np.random.default_rng([seed, *best[0]])
                others = [
                    others[number]
                    for number in np.sort(rng.choice(len(others), draws, replace=False))
                ]
            yield HeadGroup(best=tuple(best), matched=tuple((head,) for head in others))
        elif number <= len(others):
            rng = np.random.default_rng([seed, *np.ravel(best).tolist()])
            matched = tuple(tuple(sorted(_as_many(best, others, rng))) for _ in range(draws))
            yield HeadGroup(best=tuple(best), matched=matched)


def _as_many(
    best: Sequence[tuple[int, int]], others: Sequence[tuple[int, int]], rng: np.random.Generator
) -> list[tuple[int, int]]:
    """As many other heads, from the same layers as far as these have so many."""
    wanted, drawn = Counter(layer for layer, _ in best), []
    rest = [others[number] for number in rng.permutation(len(others))]
    for head in [*rest]:
        if wanted[head[0]]:
            wanted[head[0]] -= 1
            drawn.append(head)
            rest.remove(head)
    return [*drawn, *rest[: len(best) - len(drawn)]]
