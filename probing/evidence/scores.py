"""The frame: each score and difference of results, with its interval and p, as a row of one
table."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from codesyntax_dataset.arguments import StrPath, checked
from codesyntax_dataset.protocol import (
    BASELINES,
    BEST_BASELINE,
    BEYOND_OFFSET,
    HELD_OUT,
    KS,
    PUBLISHED,
    RANDOM_WEIGHTS,
)
from codesyntax_metric.topk_uas import RULES
from probing.evidence import gather, masked
from probing.evidence.baselines import KINDS, BaselineResult, kinds_of
from probing.evidence.gather import PUBLISHED_FIRST, Evidence, by_instrument
from probing.evidence.masked import FillerGain, Masked
from probing.evidence.protocols import (
    MEASURES,
    MODEL,
    TABLE_MEASURES,
    ChosenHits,
    apply,
    choose,
)
from probing.evidence.random_attention import expected_by_relation, random_attention
from probing.instruments.information import hits as information
from probing.instruments.information.result import BOTH, WORDS, InformationResult
from probing.instruments.likelihood import hits as likelihood
from probing.instruments.likelihood.result import PreferenceResult, SurprisalResult
from probing.instruments.masking.hits import ARMS, T0, T1
from probing.instruments.masking.masking import SUB_TOKENS
from probing.instruments.masking.result import FLOORS
from probing.instruments.registry import INSTRUMENTS
from probing.instruments.silencing import hits as silencing
from probing.instruments.silencing.result import SilencingResult
from probing.runs.clusters import REPOSITORY, unit_of
from probing.runs.ledger_file import (
    ATTENTION,
    PREFERENCE,
)
from probing.runs.records import Record
from probing.runs.repositories import clustered_by
from probing.runs.saved import Result, scratch_folder
from probing.stats.hits import Hits, Measure
from probing.stats.intervals import Estimate

COLUMNS = {
    "model": "the model, by the name that it was given; empty for what needs no model",
    "revision": "its commit on the Hub, or the digest of its files",
    "step": "its step in training, if it is a checkpoint",
    "control": "what was measured instead of its attention weights: a control, other weights, or spans in T0",
    "config": "the config of the dataset",
    "split": "the split that is scored",
    "direction": "the direction in which heads of attention search",
    "instrument": "attention, masking, silencing, information, preference or surprisal",
    "measure": "what is counted: uas (percent), an outcome of masking (shares, nats), log_probability (nats), bits",
    "protocol": "where heads and baselines are chosen, and on which edges they are scored; or how nodes are masked",
    "rule": "which token of a dependent counts; of surprisal, which tokens of a node",
    "k": "the number of guesses",
    "group": "a relation, node type, phenomenon, distance or depth; or mean, the mean over these",
    "system": "who is scored, such as model, offset, T1 or whole",
    "against": "the system that is subtracted, if the row is a difference; empty if it is a score",
    "value": "the score or difference",
    "low": "the lower bound of its 95 % interval",
    "high": "the upper bound",
    "p": "of a difference, corrected (Holm) for its family of tests, such as all relations",
    "n": "the number of clusters that the interval and p are over",
    "cluster": "what a cluster is: a function or a repository; of minimal pairs always a repository",
    "functions": "the number of functions with the group, of minimal pairs that of repositories",
    "items": "the number of things that are scored in these: edges, functions, pairs or nodes",
    "chosen": "the head (layer-head), offsets, keywords or filler that were chosen",
}
"""The columns of the frame, and what they mean."""

MEAN = "mean"
"""The group that is the mean over all groups which count."""

Row = dict[str, Any]

RowsOfFiles = Callable[[Sequence[Path], Any], Iterator[Row]]

_TEXTS = dict.fromkeys(("model", "revision", "control", "direction", "protocol", "rule"), "")
"""Cells of instruments that say nothing there."""


@checked
def scores(
    results: Sequence[StrPath | Record] | StrPath | Record,
    data: Any = None,
    cluster: str | None = None,
) -> Any:
    """Every score and difference of results as a tidy table: a row is one number, with its interval
    and p.

    Attention needs results on the splits test and validation, and its dataset, for the baselines.
    Models that are probed on the same config are scored on the functions that all of them read, as
    in a report.

    Args:
        results: files or folders that `probe`, `mask`, `ablate`, `inform`, `prefer` or `surprise`
            wrote, or results that these returned, or one of them.
        data: the location of the dataset, if not the one in the results.
        cluster: what intervals and tests are over, `function` or `repository`; by default the
            latter for results on functions of at least six repositories.

    Returns:
        A pandas.DataFrame with the columns of `probing.evidence.scores.COLUMNS`, which says what
        each means and in what unit: model, revision, step, control, config, split, direction,
        instrument, measure, protocol, rule, k, group, system, against, value, low, high, p, n,
        cluster, functions, items, chosen. Texts that do not apply are empty, numbers are NaN.

    Raises:
        LedgerError: what are no results, or do not belong together.
        DataNotFound: the data are not found.

    Examples:
        >>> import probing
        >>> scores = probing.scores("results")
        >>> held_out = scores.query("protocol == 'held-out' and system == 'model' and k == 1")
        >>> sorted(held_out.model.unique())
        ['tiny-code-lm', 'tiny-code-mlm']
    """
    alone = isinstance(results, (str, os.PathLike, Record))
    every: Any = [results] if alone else results
    with scratch_folder() as folder, clustered_by(cluster, data):
        paths = [item.save(folder) if isinstance(item, Result) else item for item in every]
        rows: list[Row] = []
        for instrument, files in by_instrument(paths).items():
            if files:
                rows += INSTRUMENTS[instrument].rows(files, data)
    return frame_of(rows)


def frame_of(rows: Iterable[Row]) -> Any:
    """Rows as a pandas.DataFrame, each once."""
    import pandas

    frame = pandas.DataFrame(rows, columns=list(COLUMNS)).drop_duplicates(ignore_index=True)
    return frame.astype({"step": "Int64", "k": "Int64", "n": int, "functions": int, "items": int})


@dataclass(frozen=True)
class Slice:
    """Hits as rows of the frame. `about`: the cells that all rows share; `of_measure`: those that
    follow from a measure; `chosen`: what was chosen for a group and a measure."""

    hits: Hits
    about: Row
    of_measure: Callable[[Any], Row] = lambda measure: {"measure": measure}
    chosen: Callable[[str, Any], str | None] = lambda group, measure: None

    def rows(
        self,
        estimate: Estimate,
        system: str,
        against: str = "",
        measures: Sequence[Measure] | None = None,
    ) -> Iterator[Row]:
        """Rows of groups (M, G), or of the means (M,) over these, by some measures or all."""
        hits = self.hits
        sizes = {name: (len(group.places), group.total) for name, group in hits.groups.items()}
        shape = np.shape(estimate.value)
        if len(shape) == 1:
            sizes = {MEAN: (len(hits.clusters), sum(sizes[name][1] for name in hits.counted))}
        parts = [np.broadcast_to(part, shape).reshape(*shape[:1], -1) for part in estimate]
        for measure in hits.measures if measures is None else measures:
            of_measure = self.of_measure(measure)
            row = hits.measures.index(measure)
            every = zip(*(part[row].tolist() for part in parts))
            for (name, (functions, items)), numbers in zip(sizes.items(), every):
                cells = dict(zip(Estimate._fields, numbers))
                if not math.isnan(cells["value"]):
                    yield {
                        **_TEXTS,
                        "chosen": "" if name == MEAN else self.chosen(name, measure) or "",
                        **self.about,
                        **of_measure,
                        "system": system,
                        "against": against,
                        "group": name,
                        **cells,
                        "functions": functions,
                        "items": items,
                    }

    def only(self, **some: Any) -> Slice:
        """Some of the `groups` and `measures`."""
        return replace(self, hits=self.hits.where(**some))

    def scored_groups(self, system: str, against: str | None = None) -> Iterator[Row]:
        """Rows of the scores of a system, or of the differences to another."""
        yield from self.rows(self.hits.by_group(system, against), system, against or "")

    def scored_means(self, system: str, against: str | None = None) -> Iterator[Row]:
        yield from self.rows(self.hits.mean(system, against), system, against or "")

    def scored(self, *systems: str, against: str | None = None) -> Iterator[Row]:
        """Rows of groups, and of the means, of each of the systems."""
        for system in systems:
            yield from self.scored_groups(system, against)
            yield from self.scored_means(system, against)

    def by_rule_and_k(self, system: str, groups: bool) -> Iterator[Row]:
        """Rows of means and, if asked for, of groups by the rules and k of tables."""
        if groups:
            yield from self.only(measures=TABLE_MEASURES).scored_groups(system)
        yield from self.scored_means(system)


def shared_cells(result: Any, **cells: Any) -> Row:
    """The cells that all rows of a result share."""
    settings = result.settings
    return {
        "model": settings.model,
        "revision": settings.revision,
        "step": getattr(result.run, "step", None),
        "control": ", ".join(settings.deviations),
        "config": settings.config,
        "split": settings.split,
        "direction": getattr(settings, "direction", ""),
        "instrument": result.instrument,
        "cluster": REPOSITORY if result.instrument == PREFERENCE else unit_of(result.ledger.over),
        **cells,
    }


# ---------------------------------------------------------------------------------------- attention

RANDOM_BEST, RANDOM_HEAD = "random attention", "random head"
"""Systems without a model: the best of as many heads that attend at random, and one of these on
average."""

WITHOUT_MODEL = (*BASELINES, RANDOM_BEST, RANDOM_HEAD)
"""All systems without a model."""


def attention_rows(files: Sequence[Path], data: Any) -> Iterator[Row]:
    """Rows of heads, and of what needs no model."""
    for probed in gather.comparable(files).values():
        evidence = gather.gather(probed, data)
        yield from of_baselines(evidence)
        yield from chain(*of_models(evidence))


def of_models(evidence: Sequence[Evidence], groups: bool = True) -> Iterator[list[Row]]:
    """The rows of each model, or control, on the same functions. `groups`: also of relations, most
    of the work."""
    for member in evidence:
        yield list(_of_model(member, groups))


def _of_model(member: Evidence, groups: bool) -> Iterator[Row]:
    """Rows of a model, and of what needs none on the hard edges of its relations."""
    about = shared_cells(member.probed.test, measure="uas")
    for protocol, chosen in member.hits.items():
        cells = {**about, "protocol": protocol}
        shown = Slice(chosen.hits, cells, _rule_and_k, partial(_head, chosen))
        yield from shown.by_rule_and_k(MODEL, groups)
        if protocol not in member.means:  # it was scored on other edges than the baselines
            continue
        compared = member.comparisons[protocol]
        if groups:
            both = shown.only(groups=compared.hits.groups)
            yield from both.rows(compared.by_relation, MODEL, BEST_BASELINE, TABLE_MEASURES)
        yield from shown.rows(member.means[protocol], MODEL, BEST_BASELINE)
        if protocol == BEYOND_OFFSET:
            cells |= _WITHOUT_MODEL
            for kind in kinds_of(member.probed.settings.config, protocol):
                rival = member.splits.rivals[protocol][kind]
                yield from Slice(rival.hits, cells, _rule_and_k).by_rule_and_k(kind, groups)


_WITHOUT_MODEL: Row = {"model": "", "revision": "", "step": None, "control": ""}


def of_baselines(evidence: Sequence[Evidence], groups: bool = True) -> Iterator[Row]:
    """Rows of what needs no model, on the functions that all of `evidence` share. `groups`: as of
    `of_models`."""
    first = evidence[0]
    yield from of_offsets_and_keywords(first.splits.baselines, groups)
    ledgers = [member.probed.test.ledger for member in evidence]
    heads = max(int(np.prod(ledger.ranks.shape[2:])) for ledger in ledgers)
    about = shared_cells(first.probed.test, measure="uas", **_WITHOUT_MODEL)
    yield from _at_random(first, about, heads)


def of_offsets_and_keywords(known: BaselineResult, groups: bool = True) -> Iterator[Row]:
    """Rows of the baselines. `groups`: as of `of_models`."""
    about = {
        **_WITHOUT_MODEL,
        "config": known.settings.config,
        "split": known.settings.split,
        "direction": known.direction,
        "instrument": ATTENTION,
        "measure": "uas",
        "cluster": unit_of(known.hits[PUBLISHED][BEST_BASELINE].hits.over),
    }
    for protocol in PUBLISHED_FIRST:
        for kind in kinds_of(known.settings.config, protocol):
            hits = known.hits[protocol][kind].hits
            picked = partial(_picked, known, protocol, kind)
            shown = Slice(hits, {**about, "protocol": protocol}, _rule_and_k, picked)
            yield from shown.by_rule_and_k(kind, groups)


def _at_random(first: Evidence, about: Row, heads: int) -> Iterator[Row]:
    """Rows of means of random attention: of the best of so many heads, and of one on average."""
    test = first.splits.edges["test"]
    direction = first.probed.settings.direction
    scored = random_attention(test, direction, heads)
    # the best heads on validation are any heads here: draws of the two splits have nothing in
    # common
    chosen_on_validation = sorted(first.hits[HELD_OUT].choice)
    cells = np.zeros((len(RULES), len(KS), 2), int)
    any_heads = {
        name: cells + (0, number % heads) for number, name in enumerate(chosen_on_validation)
    }
    heads_of = {PUBLISHED: choose(scored), HELD_OUT: any_heads}
    by_chance = expected_by_relation(test, direction)
    for protocol in PUBLISHED_FIRST:
        chosen = first.hits[protocol]
        cells_of = {**about, "protocol": protocol, "chosen": f"best of {heads} heads"}
        shown = Slice(chosen.hits, cells_of, _rule_and_k)
        drawn = apply(scored, heads_of[protocol], protocol=protocol)
        yield from shown.rows(drawn.hits.mean(drawn.system), RANDOM_BEST)
        if counted := chosen.hits.counted:
            expected = np.mean([by_chance[name] for name in counted], axis=0)
            clusters = len(chosen.hits.drawn.clusters)
            unknown = np.full(expected.shape, np.nan)
            estimate = Estimate(expected, unknown, unknown, unknown, clusters)
            yield from shown.rows(estimate, RANDOM_HEAD)


def _rule_and_k(measure: tuple[str, int]) -> Row:
    return {"rule": measure[0], "k": measure[1]}


def _head(chosen: ChosenHits, relation: str, measure: tuple[str, int]) -> str | None:
    """The head that was chosen; none if it finds nothing, so that no head is the best."""
    row = MEASURES.index(measure)
    if not chosen.hits.groups[relation].sums[chosen.system][row].any():
        return None
    layer, head = chosen.choice[relation].reshape(-1, 2)[row]
    return f"{layer}-{head}"


def _picked(
    known: BaselineResult, protocol: str, kind: str, relation: str, measure: tuple[str, int]
) -> str:
    """The first three of the offsets or keywords that were chosen; of the combined baseline, which
    of the others."""
    rule, k = measure
    if kind == BEST_BASELINE:
        choice = known.hits[protocol][kind].choice[relation].reshape(-1, 2)
        return KINDS[choice[MEASURES.index(measure), 1]]
    names = known.picks[protocol].names(kind, rule, relation)[:k]
    return ", ".join(map(str, names[:3])) + (" …" if len(names) > 3 else "")


# -------------------------------------------------------------------------------- other instruments


def masking_rows(files: Sequence[Path], data: Any) -> Iterator[Row]:
    """Rows of masked functions."""
    for group in masked.comparable_masked(files):
        for model in masked.gather_masked(group):
            yield from _masking(model)


def _masking(model: Masked) -> Iterator[Row]:
    settings = model.result.settings
    in_place = [RANDOM_WEIGHTS] if settings.random_weights else []
    if settings.control != SUB_TOKENS:
        in_place.append(settings.control)
    cells = {"protocol": settings.protocol, "control": ", ".join(in_place)}
    about = shared_cells(model.result, **cells)
    for outcome, hits in model.hits.items():
        shown = Slice(hits, about)
        yield from shown.scored(*ARMS)
        yield from shown.scored(T1, against=T0)
        if outcome in FLOORS:
            for arm, gains in zip(ARMS, zip(*model.gains[outcome].values())):
                yield from _over_fillers(shown, dict(zip(hits.groups, gains)), arm)


def _over_fillers(shown: Slice, gains: Mapping[str, FillerGain], arm: str) -> Iterator[Row]:
    filled = replace(shown, chosen=lambda node_type, measure: gains[node_type].filler)
    over = _of_all_groups({name: gain.gain for name, gain in gains.items()})
    yield from filled.rows(over, arm, f"{arm} filled")


def _of_all_groups(estimates: Mapping[str, Estimate]) -> Estimate:
    """Of all groups, (1, G), from group -> estimate."""
    return Estimate(*(np.array(part)[None] for part in zip(*estimates.values())))


def _silencing(result: SilencingResult) -> Iterator[Row]:
    def head(relation: str, measure: Any) -> str:
        return "-".join(map(str, result.heads[relation].best))

    shown = Slice(silencing.hits(result), shared_cells(result), chosen=head)
    yield from shown.scored(*silencing.SYSTEMS)
    yield from shown.scored(silencing.WHOLE, silencing.MATCHED, against=silencing.BEST)


def _information(result: InformationResult) -> Iterator[Row]:
    measured = information.hits(result)
    about = shared_cells(result)
    bits = Slice(measured["bits"], about)
    yield from bits.scored(WORDS, BOTH)
    yield from bits.scored(WORDS, against=BOTH)
    yield from Slice(measured["uas"], about).scored(*information.FINDERS)


def _preference(result: PreferenceResult) -> Iterator[Row]:
    hits = likelihood.of_pairs(result)
    pairs = {name: accuracy.pairs for name, accuracy in result.phenomena.items()}
    pairs[MEAN] = sum(pairs[name] for name in hits.counted)
    for row in Slice(hits, shared_cells(result)).scored(likelihood.MODEL):
        yield {**row, "items": pairs[row["group"]]}  # hits count weights


def _surprisal(result: SurprisalResult) -> Iterator[Row]:
    for role, hits in likelihood.of_surprisal(result).items():
        shown = Slice(hits, shared_cells(result, rule=role))
        yield from shown.scored(likelihood.NODE, likelihood.CONTROL)
        yield from shown.scored(likelihood.CONTROL, against=likelihood.NODE)


def rows_by_result(kind: type[Result], rows_of: Callable[[Any], Iterator[Row]]) -> RowsOfFiles:
    """The rows of files of results of this kind, each by itself."""
    return lambda files, data: chain.from_iterable(map(rows_of, kind.load_each(files)))


silencing_rows = rows_by_result(SilencingResult, _silencing)
information_rows = rows_by_result(InformationResult, _information)
preference_rows = rows_by_result(PreferenceResult, _preference)
surprisal_rows = rows_by_result(SurprisalResult, _surprisal)
