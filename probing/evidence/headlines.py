"""Headlines: what an instrument brings to boards, which know no instrument.

A board shows *means*, name -> `Hits`: of the model and of its rivals, over all functions of a
split, whatever the model read. They follow from the results of a model and from the data alone. The
first system is the model. What it could not read counts as missed, as `completed` says once for all
instruments.

To bring another instrument to boards, add its Headline here, and name it in
`probing.instruments.registry`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset import tasks
from codesyntax_dataset.errors import SubmissionError
from codesyntax_dataset.languages import language_of
from codesyntax_dataset.protocol import (
    BEST_BASELINE,
    BEYOND_OFFSET,
    PAPER_LENGTH,
    PROTOCOLS,
    SPLITS,
)
from probing.evidence import baselines
from probing.evidence.beyond import hits_by_protocol
from probing.evidence.gather import Splits
from probing.evidence.masked import holding
from probing.evidence.protocols import MODEL, TABLE_MEASURES, TABLE_PLACES, ChosenHits
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.likelihood import hits as likelihood
from probing.instruments.likelihood.result import SCORES, UNKNOWN
from probing.instruments.masking import hits as masking
from probing.instruments.masking.result import OUTCOMES
from probing.runs.data import pair_rows, read_functions
from probing.runs.repositories import clusters_of
from probing.stats.hits import Group, Hits

TEST = ("test",)

MISSED_NATS = -20.0
"""The log-probability of sub-tokens that are missed."""


class Mean(NamedTuple):
    """A mean of a submission: the hits that it is over, and what was chosen, such as a head: group
    -> a name by each measure."""

    hits: Hits
    chosen: Mapping[str, list[str]] = {}


Means = dict[str, Mean]
Results = Mapping[str, Any]  # split -> result


@dataclass(frozen=True)
class Headline:
    """What an instrument brings to boards.

    `system`, `rival`: the model, and the system that it is compared with; `splits`: of which it
    needs results; `whole`: data and settings -> what there is to find in the data; `means`: results
    and that -> its means, the first one first, or SubmissionError for other things than are in the
    data; `shown`: the means on the page of all models, by default all; `measure`: by which a task
    counts; `task`: settings and a mean -> the id of a task; `asks`: settings -> those that a task
    needs.
    """

    system: str
    rival: str
    whole: Callable[[Any, Any], Any]
    means: Callable[[Results, Any], Means]
    measure: Any
    task: Callable[[Any, str], str | None]
    asks: Callable[[Any], Mapping[str, Any]] = field(
        default=lambda settings: {"max_length": PAPER_LENGTH}
    )
    splits: tuple[str, ...] = TEST
    shown: tuple[str, ...] = ()


def completed(hits: Hits | None, whole: Hits, systems: tuple[str, ...], missed: float = 0) -> Hits:
    """The hits of `systems` on all that is in `whole`: what they lack has `missed` for each
    thing."""
    groups = {}
    for name, group in whole.groups.items():
        sums = dict(group.sums)
        read = None if hits is None else hits.groups.get(name)
        for system in systems:
            full = np.repeat(missed * group.n[None], len(whole.measures), axis=0)
            if hits is not None and read is not None:
                columns = np.searchsorted(whole.of(name), hits.of(name))
                gained = read.gained(system, None)
                full = full.astype(gained.dtype)
                full[:, columns] = gained
            sums[system] = full
        groups[name] = replace(group, sums=sums)
    redrawn = {} if hits is None else hits.redrawn
    return replace(whole, groups=groups, redrawn={**whole.redrawn, **redrawn})


# --------------------------------------------------------------------------------- attention probes

SHORT_CODE = 1_300
"""Characters of the longest function on which heads are chosen for a board. The embedded encoder,
which has 512 positions, reads 344 of 346 such functions of CodeSearchNet. What a model cannot read
never helps it (`choose_least`)."""


class WholeSplits(Splits):
    """The functions on which the heads of submissions are chosen, all SHORT_CODE ones of
    validation, and scored, all of test, whatever models could read of them. `every`: all edges of
    both."""

    def __init__(self, data: Any, settings: Any):
        config = settings.config
        self.every = {split: baselines.read_edges(data, config, split) for split in SPLITS}
        codes = read_functions(data, config, "validation").table["code"].to_pylist()
        short = np.array([len(code) <= SHORT_CODE for code in codes])
        edges = self.every | {
            "validation": self.every["validation"].take(short[self.every["validation"].function])
        }
        super().__init__(edges, settings.direction)

    @cached_property
    def things(self) -> dict[str, Hits]:
        """Protocol -> what each rival hits of all edges."""
        joined = {}
        for protocol, of_protocol in self.rivals.items():
            first, *others = (chosen.at(TABLE_MEASURES).hits for chosen in of_protocol.values())
            joined[protocol] = reduce(Hits.join, others, first)
        return joined

    def part(self, result: Any) -> RankLedger:
        """The ledger of a result on these functions; raises SubmissionError unless it has all edges
        of the functions that it has, and no other."""
        split = result.settings.split
        ledger, edges = result.ledger, self.every[split]
        here = edges.take(np.isin(edges.function, ledger.function))
        same = np.array_equal(here.relation_names, ledger.relation_names)
        for name in ("function", "head", "first", "last", "tokens"):
            same = same and np.array_equal(getattr(here, name), getattr(ledger, name))
        if not same:
            raise SubmissionError(f"the edges on {split} are not those of the data")
        return ledger.only(self.edges[split].function)


def _of_heads(results: Results, whole: WholeSplits) -> Means:
    test, validation = (whole.part(results[split]) for split in TEST + ("validation",))
    chosen = hits_by_protocol(validation, test, whole.edges["validation"])
    means = {}
    for protocol in (*PROTOCOLS, BEYOND_OFFSET):
        if protocol in whole.things:
            ours = chosen.get(protocol)
            hits = None if ours is None else ours.at(TABLE_MEASURES).hits
            heads = {} if ours is None else dict(_heads_of(ours))
            means[protocol] = Mean(completed(hits, whole.things[protocol], (MODEL,)), heads)
    return means


def _heads_of(chosen: ChosenHits) -> Iterator[tuple[str, list[str]]]:
    """Relation -> layer-head by each measure of tables."""
    for name, heads in chosen.choice.items():
        pairs = heads[:, TABLE_PLACES].reshape(-1, 2).tolist()
        yield name, [f"{layer}-{head}" for layer, head in pairs]


ATTENTION = Headline(
    MODEL,
    BEST_BASELINE,
    WholeSplits,
    _of_heads,
    (tasks.RULE, int(tasks.K)),
    lambda settings, mean: (
        tasks.task_id(settings.config, mean, settings.direction)
        if mean in tasks.TASK_PROTOCOLS
        else None
    ),
    splits=SPLITS,
)

# ------------------------------------------------------------------------------------ masked syntax


def _nodes_in(data: Any, settings: Any) -> Hits:
    """The functions that have nodes of each type, one thing each."""
    held = {name: places for name, places in holding(data, settings).items() if len(places)}
    clusters = np.unique(np.concatenate([*held.values()]))
    groups = {
        name: Group(np.searchsorted(clusters, held[name]), np.ones(len(held[name]), np.int64), {})
        for name in sorted(held)
    }
    table = read_functions(data, settings.config, settings.split).table
    return Hits(clusters, groups, ("",), over=clusters_of(table, clusters))


def _of_masks(results: Results, whole: Hits) -> Means:
    """In percent, and hundredths of a nat."""
    means = {}
    for outcome, hits in masking.hits(results["test"]).items():
        for name in hits.names:
            if np.setdiff1d(hits.of(name), whole.of(name)).size:
                raise SubmissionError(f"{name} was masked in functions that have none in the data")
        scaled = {
            name: replace(group, sums={arm: 100 * group.gained(arm, None) for arm in masking.ARMS})
            for name, group in hits.groups.items()
        }
        missed = 100 * MISSED_NATS if outcome == "log_probability" else 0.0
        of_whole = replace(whole, measures=hits.measures, unit="points", families=hits.families)
        ours = replace(hits, groups=scaled)
        means[outcome] = Mean(completed(ours, of_whole, masking.ARMS, missed))
    return means


MASKING = Headline(
    masking.T1,
    masking.T0,
    _nodes_in,
    _of_masks,
    tasks.RESTORED,
    lambda settings, mean: tasks.mask_task_id(settings.config) if mean == tasks.RESTORED else None,
    lambda settings: {
        **tasks.MASK_SETTINGS,
        "node_types": language_of(settings.config).node_types,
    },
    shown=(OUTCOMES[0], tasks.RESTORED),
)

# ------------------------------------------------------------------------------------ minimal pairs

SURFACE_RIVAL = "surface rival"
"""The system that learns on validation what stands near a change, and needs no model."""


def _pairs_in(data: Any, settings: Any) -> list[tuple[str, str]]:
    """The phenomenon and the repository of each pair."""
    read = read_functions(data, settings.config, settings.split)
    return [(row["phenomenon"], row["repo"]) for row in pair_rows(read.table, None)]


def _of_pairs(results: Results, whole: list[tuple[str, str]]) -> Means:
    """Of whole texts, and of the place in which two differ. The ledger has all pairs, those that
    were not read, too."""
    ledger = results["test"].ledger
    repositories = [repository for _, repository in whole]
    known = dict(zip(dict.fromkeys(repositories), range(len(repositories))))
    same = np.array_equal(ledger.function, np.arange(len(whole)))
    same = same and ledger.group_names.tolist() == [phenomenon for phenomenon, _ in whole]
    same = same and ledger.rows["repository"].tolist() == [known[name] for name in repositories]
    if not same:
        raise SubmissionError("the pairs are not those of the data")
    if (ledger.rows["surface"] == UNKNOWN).any():
        raise SubmissionError(
            "the surface rival is unknown: score the pairs of a dataset with both splits"
        )
    hits = likelihood.of_pairs(results["test"])
    rows = ledger.named()
    groups = {}
    for name, group in hits.groups.items():
        weights = likelihood.stratum_weights(ledger.rows[rows[name]])
        rival = ledger.rows["surface"][rows[name]] / 2 * weights
        places = np.searchsorted(hits.of(name), ledger.rows["repository"][rows[name]])
        sums = np.bincount(places, rival, minlength=len(group.n))
        both = np.repeat(sums[None], len(SCORES), axis=0)
        groups[name] = replace(group, sums={**group.sums, SURFACE_RIVAL: both})
    with_rival = replace(hits, groups=groups)
    return {score: Mean(with_rival.where(measures=[score])) for score in SCORES}


PAIRS = Headline(
    likelihood.MODEL,
    SURFACE_RIVAL,
    _pairs_in,
    _of_pairs,
    SCORES[0],
    lambda settings, mean: tasks.pairs_task_id(settings.config) if mean == SCORES[0] else None,
)
