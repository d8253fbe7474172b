"""The frame: each score and difference of results, with its interval and p, as a row of one table."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from codesyntax_dataset.arguments import checked
from codesyntax_dataset.protocol import BEST_BASELINE, BEYOND_OFFSET, HELD_OUT, PUBLISHED, RANDOM_WEIGHTS
from probing.evidence import gather, masked
from probing.evidence.baselines import KINDS, BaselineResult, kinds_of
from probing.evidence.beyond import Rivals
from probing.evidence.gather import PUBLISHED_FIRST, Evidence, by_instrument
from probing.evidence.masked import FillerGain, Masked
from probing.evidence.protocols import MEASURES, MODEL, SAME_RELATIONS, TABLE_MEASURES, ChosenHits, mean_of, over_models
from probing.instruments.attention.offsets import AVOIDED
from probing.instruments.information import hits as information
from probing.instruments.information.result import BOTH, WORDS, InformationResult
from probing.instruments.likelihood import hits as likelihood
from probing.instruments.likelihood.result import CLOSING, ROLES, PreferenceResult, SurprisalResult
from probing.instruments.masking.hits import ARMS, T0, T1
from probing.instruments.masking.masking import SUB_TOKENS
from probing.instruments.masking.result import FLOORS
from probing.instruments.registry import INSTRUMENTS
from probing.instruments.silencing import hits as silencing
from probing.instruments.silencing.result import SilencingResult
from probing.runs.clusters import FUNCTION, REPOSITORY, cluster_unit
from probing.runs.ledger_file import ATTENTION, INFORMATION, MASKING, PREFERENCE, SILENCING, SURPRISAL
from probing.runs.records import Record
from probing.runs.repositories import clustered_by
from probing.runs.saved import Result
from probing.stats.cache import caching
from probing.stats.hits import Hits, Measure
from probing.stats.intervals import Estimate, corrected

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
    "k": "the number of guesses; of silencing, the number of heads that are silenced together",
    "group": "a relation, node type, phenomenon, distance or depth; or mean, the mean over these",
    "system": "who is scored, such as model, offset, T1 or whole",
    "against": "the system that is subtracted, if the row is a difference; empty if it is a score",
    "value": "the score or difference",
    "low": "the lower bound of its 95 % interval",
    "high": "the upper bound",
    "p": "of a difference, corrected (Holm) for its family of tests, such as all relations",
    "n": "the number of clusters that the interval and p are over",
    "cluster": "what a cluster is: a function or a repository; of minimal pairs always a repository",
    "items": "the number of things that are scored in these: edges, functions, pairs or nodes",
    "chosen": "the attention head (layer-head), offsets, keywords or filler that were chosen",
}
"""The columns of the frame, and what they mean."""

MEAN = "mean"
"""The group that is the mean over all groups which count."""

Row = dict[str, Any]

_TEXTS = dict.fromkeys(("model", "revision", "control", "direction", "protocol", "rule"), "")
"""Cells of instruments that say nothing there."""


@checked
def scores(
    results: Sequence[str | os.PathLike | Record] | str | os.PathLike | Record,
    data: Any = None,
    cluster: str = FUNCTION,
) -> Any:
    """Every score and difference of results as a tidy pandas.DataFrame: a row is one number, with its interval and p.

    `results`: files or folders that `probe`, `mask`, `ablate`, `inform`, `prefer` or `surprise` wrote, or results that
    these returned, or one of them. Attention needs results on the splits test and validation, and its dataset, for the
    baselines. Models that are probed on the same config are scored on the functions that all of them read, as in a
    report. `data`: the location of the dataset, if not the one in the results. `cluster`: what intervals and tests are
    over, function or repository.

    The columns are those of `probing.evidence.scores.COLUMNS`, which says what each means: model, revision, step,
    control, config, split, direction, instrument, measure, protocol, rule, k, group, system, against, value, low, high,
    p, n, cluster, items, chosen. Texts that do not apply are empty, numbers are NaN.

    Raises LedgerError for what are no results, or do not belong together; DataNotFound if the data are not found.
    """
    import pandas

    given: list[Any] = [results] if isinstance(results, (str, os.PathLike, Record)) else list(results)
    with tempfile.TemporaryDirectory() as folder, caching(), clustered_by(cluster, data):
        paths = [one.save(folder) if isinstance(one, Result) else one for one in given]
        files = by_instrument(paths)
        rows = list(_attention(files.pop(ATTENTION), data))
        rows += [row for group in masked.comparable(files.pop(MASKING)) for row in _masking(masked.gather(group))]
        for instrument, of_instrument in files.items():
            of_result = _OF_RESULT.get(instrument, partial(_plain, instrument))
            rows += [row for file in of_instrument for row in of_result(file)]
    frame = pandas.DataFrame(rows, columns=list(COLUMNS)).drop_duplicates(ignore_index=True)
    return frame.astype({"step": "Int64", "k": "Int64", "n": int, "items": int})


@dataclass(frozen=True)
class _Slice:
    """Hits as rows of the frame. `about`: the cells that all rows share; `of_measure`: those that follow from a
    measure; `chosen`: what was chosen for a group and a measure."""

    hits: Hits
    about: Row
    of_measure: Callable[[Any], Row]
    chosen: Callable[[str, Any], str | None] = lambda group, measure: None

    def means(self, estimate: Estimate, system: str, against: str = "") -> Iterator[Row]:
        """Rows of the means (M,) over groups."""
        items = sum(self.hits.groups[name].total for name in self.hits.counted)
        for place, measure in enumerate(self.hits.measures):
            yield from self._row(MEAN, measure, system, against, estimate.at(place), items)

    def groups(
        self, estimate: Estimate, system: str, against: str = "", measures: Sequence[Measure] | None = None
    ) -> Iterator[Row]:
        """Rows of groups (M, G), by some measures or all."""
        for measure in self.hits.measures if measures is None else measures:
            for name, of_group in self.hits.each(estimate, measure).items():
                yield from self._row(name, measure, system, against, of_group, self.hits.groups[name].total)

    def tested(self, system: str, against: str) -> Iterator[Row]:
        """Rows of differences between two systems, p corrected over groups."""
        (difference,) = corrected([self.hits.by_group(system, against)])
        yield from self.groups(difference, system, against)
        yield from self.means(self.hits.mean(system, against), system, against)

    def scored(self, system: str) -> Iterator[Row]:
        """Rows of the scores of a system."""
        yield from self.groups(self.hits.by_group(system), system)
        yield from self.means(self.hits.mean(system), system)

    def _row(
        self, group: str, measure: Any, system: str, against: str, estimate: Estimate, items: int
    ) -> Iterator[Row]:
        if not np.isnan(estimate.value):
            yield {
                **_TEXTS,
                **self.about,
                **self.of_measure(measure),
                "group": group,
                "system": system,
                "against": against,
                **estimate._asdict(),
                "items": items,
                "chosen": "" if group == MEAN else self.chosen(group, measure) or "",
            }


def _about(result: Any, instrument: str, **cells: Any) -> Row:
    """The cells that all rows of a result share."""
    settings = result.settings
    return {
        "model": settings.model,
        "revision": settings.revision,
        "step": getattr(result.run, "step", None),
        "control": ", ".join(settings.instead),
        "config": settings.config,
        "split": settings.split,
        "direction": getattr(settings, "direction", ""),
        "instrument": instrument,
        "cluster": REPOSITORY if instrument == PREFERENCE else cluster_unit(),
        **cells,
    }


# ----------------------------------------------------------------------------------------------------------- attention


def _attention(paths: Sequence[Path], data: Any) -> Iterator[Row]:
    for group in gather.comparable(paths) if paths else ():
        evidence = gather.gather(gather.find(group.files), data)
        yield from _of_baselines(evidence[0])
        models = [one.probed.test.settings.control is None for one in evidence]
        of_means = {
            mean: over_models([one.differences.get(mean) for one in evidence], models)
            for mean in (*PUBLISHED_FIRST, SAME_RELATIONS)
        }
        of_hard = {
            avoided: over_models([mean_of(one.beyond_compared[avoided]) for one in evidence], models)
            for avoided in AVOIDED
        }
        for place, one in enumerate(evidence):
            yield from _of_model(one, {mean: differences[place] for mean, differences in of_means.items()})
            for avoided in AVOIDED:
                yield from _beyond(one, avoided, of_hard[avoided][place])


def _of_model(one: Evidence, differences: Mapping[str, Estimate | None]) -> Iterator[Row]:
    about = _about(one.probed.test, ATTENTION, measure="uas")
    for protocol, chosen in one.hits.items():
        shown = _chosen(chosen, {**about, "protocol": protocol}, partial(_head, chosen))
        yield from shown.groups(chosen.hits.by_group(MODEL), MODEL, measures=TABLE_MEASURES)
        yield from shown.means(chosen.hits.mean(MODEL), MODEL)
        if comparison := one.comparisons.get(protocol):
            yield from _against(shown, comparison.by_relation, comparison.relations)
        yield from _difference(shown, differences[protocol])
    if _lacks_relations(one.hits[HELD_OUT], one.hits[PUBLISHED]):
        same = one.hits[PUBLISHED].only(one.hits[HELD_OUT].relations)
        shown = _chosen(same, {**about, "protocol": SAME_RELATIONS})
        yield from shown.means(one.same_relations[0], MODEL)
        yield from _difference(shown, differences[SAME_RELATIONS])


def _beyond(one: Evidence, avoided: int, difference: Estimate | None) -> Iterator[Row]:
    """Rows of hard edges, of a model and of what needs none there, on the relations of its score."""
    model, rivals = one.beyond[avoided], one.splits.rivals[avoided]
    if model is None or not model.in_mean or rivals is None:
        return
    protocol = BEYOND_OFFSET if avoided == 1 else f"{BEYOND_OFFSET}, {avoided} offsets"
    about = _about(one.probed.test, ATTENTION, measure="uas", protocol=protocol)
    in_mean = _chosen(model.chosen, about)
    shown = _chosen(model.shown, about, partial(_head, model.shown))
    yield from shown.groups(model.by_relation, MODEL, measures=TABLE_MEASURES)
    yield from in_mean.means(model.mean, MODEL)
    compared = one.beyond_compared[avoided]
    if compared is None:  # it was scored on other edges than the baselines
        return
    yield from _against(shown, compared.by_relation, compared.relations)
    yield from _difference(in_mean, difference)
    without = {**about, "model": "", "revision": "", "step": None, "control": ""}
    for kind in kinds_of(one.probed.test.settings.config):
        rival = rivals.of(kind, model)
        of_rival = _chosen(rival, without)
        yield from of_rival.groups(rival.hits.by_group(kind), kind, measures=TABLE_MEASURES)
        yield from of_rival.means(rival.hits.mean(kind), kind)
    yield from _chosen(model.chosen, without).means(_guessed(rivals, model), "chance")


def _guessed(rivals: Rivals, model: Any) -> Estimate:
    value = rivals.guessed(model)
    unknown = np.full(value.shape, np.nan)
    return Estimate(value, unknown, unknown, unknown, len(model.chosen.functions))


def _of_baselines(one: Evidence) -> Iterator[Row]:
    known = one.splits.baselines
    about = _about(one.probed.test, ATTENTION, measure="uas", model="", revision="", step=None, control="")
    for protocol in PUBLISHED_FIRST:
        for kind in kinds_of(one.probed.test.settings.config):
            chosen = known.hits[protocol][kind]
            shown = _chosen(chosen, {**about, "protocol": protocol}, partial(_picked, known, protocol, kind))
            yield from shown.groups(chosen.hits.by_group(kind), kind, measures=TABLE_MEASURES)
            yield from shown.means(chosen.hits.mean(kind), kind)
            if protocol == PUBLISHED and _lacks_relations(known.hits[HELD_OUT][kind], chosen):
                same = chosen.only(known.hits[HELD_OUT][kind].relations)
                yield from _chosen(same, {**about, "protocol": SAME_RELATIONS}).means(same.hits.mean(kind), kind)


def _chosen(
    chosen: ChosenHits, about: Row, what: Callable[[str, Any], str | None] = lambda group, measure: None
) -> _Slice:
    return _Slice(chosen.hits, about, lambda measure: {"rule": measure[0], "k": measure[1]}, what)


def _difference(shown: _Slice, difference: Estimate | None) -> Iterator[Row]:
    if difference is not None:
        yield from shown.means(difference, MODEL, BEST_BASELINE)


def _against(shown: _Slice, by_relation: Estimate, relations: Sequence[str]) -> Iterator[Row]:
    """Rows of differences to the best baseline, of the relations that both have."""
    both = _Slice(shown.hits.where(groups=relations), shown.about, shown.of_measure, shown.chosen)
    yield from both.groups(by_relation, MODEL, BEST_BASELINE, TABLE_MEASURES)


def _lacks_relations(held_out: ChosenHits, published: ChosenHits) -> bool:
    """True if a mean by the one protocol does not compare with that by the other."""
    return held_out.hits.counted != published.hits.counted


def _head(chosen: ChosenHits, relation: str, measure: tuple[str, int]) -> str | None:
    """The head that was chosen; none if it finds nothing, so that no head is the best."""
    place = MEASURES.index(measure)
    found = chosen.hits.groups[relation].sums[chosen.system].total[place]
    return "-".join(map(str, chosen.choice[relation].reshape(-1, 2)[place].tolist())) if found else None


def _picked(known: BaselineResult, protocol: str, kind: str, relation: str, measure: tuple[str, int]) -> str:
    """The first three of the offsets or keywords that were chosen; of the combined baseline, which of the two."""
    rule, k = measure
    if kind == BEST_BASELINE:
        choice = known.hits[protocol][kind].choice[relation].reshape(-1, 2)
        return KINDS[choice[MEASURES.index(measure), 1]]
    names = known.picks[protocol].names(kind, rule, relation)[:k]
    return ", ".join(map(str, names[:3])) + (" …" if len(names) > 3 else "")


# ---------------------------------------------------------------------------------------------- other instruments


def _masking(models: Sequence[Masked]) -> Iterator[Row]:
    for model in models:
        settings = model.settings
        in_place = [RANDOM_WEIGHTS] * settings.random_weights + [settings.control] * (settings.control != SUB_TOKENS)
        about = _about(model, MASKING, protocol=settings.protocol, control=", ".join(in_place))
        for outcome, hits in model.hits.items():
            shown = _Slice(hits, about, lambda measure: {"measure": measure})
            for arm in ARMS:
                yield from shown.scored(arm)
            yield from shown.groups(_over(model.effects[outcome]), T1, T0)
            yield from shown.means(hits.mean(T1, T0), T1, T0)
            for place, arm in enumerate(ARMS) if outcome in FLOORS else ():
                gains = {name: of_arms[place] for name, of_arms in model.gains[outcome].items()}
                filled = _Slice(hits, about, shown.of_measure, partial(_filler, gains))
                yield from filled.groups(_over({name: gain.gain for name, gain in gains.items()}), arm, f"{arm} filled")


def _filler(gains: Mapping[str, FillerGain], node_type: str, measure: Any) -> str:
    return gains[node_type].filler


def _over(estimates: Mapping[str, Estimate]) -> Estimate:
    """Of all groups, (1, G), from group -> estimate."""
    return Estimate(*(np.array(part)[None] for part in zip(*estimates.values())))


def _silencing(file: Path) -> Iterator[Row]:
    result = SilencingResult.load(file)
    for number, hits in silencing.hits(result).items():
        about = _about(result, SILENCING, k=int(number))

        def head(relation: str, measure: Any) -> str:
            return "-".join(map(str, result.heads[relation].best))

        shown = _Slice(hits, about, lambda measure: {"measure": measure}, head)
        for system in silencing.SYSTEMS:
            yield from shown.scored(system)
        yield from shown.tested(silencing.WHOLE, silencing.BEST)
        yield from shown.tested(silencing.MATCHED, silencing.BEST)


def _information(file: Path) -> Iterator[Row]:
    result = InformationResult.load(file)
    measured = information.hits(result)
    about = _about(result, INFORMATION)
    bits, uas = (_Slice(measured[name], about, lambda measure: {"measure": measure}) for name in ("bits", "uas"))
    for choice in (WORDS, BOTH):
        yield from bits.scored(choice)
    yield from bits.tested(WORDS, BOTH)
    for finder in information.FINDERS:
        yield from uas.scored(finder)


def _preference(file: Path) -> Iterator[Row]:
    result = PreferenceResult.load(file)
    for by, hits in likelihood.of_pairs(result).items():
        shown = _Slice(hits, _about(result, PREFERENCE), lambda measure: {"measure": measure})
        rows = shown.scored(likelihood.MODEL) if by == "phenomena" else _named(shown, likelihood.MODEL, by)
        yield from rows


def _surprisal(file: Path) -> Iterator[Row]:
    result = SurprisalResult.load(file)
    for by, hits in likelihood.of_surprisal(result).items():
        role = by if by in ROLES else CLOSING
        shown = _Slice(hits, _about(result, SURPRISAL, rule=role), lambda measure: {"measure": measure})
        for system in (likelihood.NODE, likelihood.CONTROL):
            yield from shown.scored(system) if by in ROLES else _named(shown, system, by)
        if by in ROLES:
            yield from shown.tested(likelihood.CONTROL, likelihood.NODE)


def _plain(instrument: str, file: Path) -> Iterator[Row]:
    result = INSTRUMENTS[instrument].result.load(file)
    for name, hits in result.hits().items():
        shown = _Slice(hits, _about(result, instrument, measure=name), lambda measure: {"rule": measure})
        for system in hits.systems:
            yield from shown.scored(system)


def _named(shown: _Slice, system: str, by: str) -> Iterator[Row]:
    """Rows of groups that are distances or depths, which their names say."""
    for row in shown.groups(shown.hits.by_group(system), system):
        yield {**row, "group": f"{by.removesuffix('s')} {row['group']}"}


_OF_RESULT = {
    SILENCING: _silencing,
    INFORMATION: _information,
    PREFERENCE: _preference,
    SURPRISAL: _surprisal,
}
"""Instrument -> the rows of a result in a file."""
