"""The frame: each score and difference of results, with its interval and p, as a row of one
table."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from codesyntax_dataset.arguments import checked
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
from probing.evidence.baselines import KINDS, BaselineResult, Edges, kinds_of
from probing.evidence.beyond import Beyond
from probing.evidence.gather import PUBLISHED_FIRST, Evidence, by_instrument
from probing.evidence.masked import FillerGain, Masked
from probing.evidence.protocols import (
    MEASURES,
    MODEL,
    SAME_RELATIONS,
    TABLE_MEASURES,
    ChosenHits,
    apply_each,
    choose,
    mean_of,
    over_models,
)
from probing.evidence.random_attention import by_relation, random_attention
from probing.evidence.random_attention import expected as expected_scores
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
from probing.runs.ledger_file import (
    ATTENTION,
    INFORMATION,
    MASKING,
    PREFERENCE,
    SILENCING,
    SURPRISAL,
)
from probing.runs.records import Record
from probing.runs.repositories import clustered_by
from probing.runs.saved import Result
from probing.stats.cache import cached, caching
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
    "functions": "the number of functions with the group, of minimal pairs that of repositories",
    "items": "the number of things that are scored in these: edges, functions, pairs or nodes",
    "chosen": "the head (layer-head), offsets, keywords or filler that were chosen; of chance, the offsets avoided",
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
    """Every score and difference of results as a tidy pandas.DataFrame: a row is one number, with
    its interval and p.

    `results`: files or folders that `probe`, `mask`, `ablate`, `inform`, `prefer` or `surprise`
    wrote, or results that these returned, or one of them. Attention needs results on the splits
    test and validation, and its dataset, for the baselines. Models that are probed on the same
    config are scored on the functions that all of them read, as in a report. `data`: the location
    of the dataset, if not the one in the results. `cluster`: what intervals and tests are over,
    function or repository.

    The columns are those of `probing.evidence.scores.COLUMNS`, which says what each means: model,
    revision, step, control, config, split, direction, instrument, measure, protocol, rule, k,
    group, system, against, value, low, high, p, n, cluster, functions, items, chosen. Texts that do
    not apply are empty, numbers are NaN.

    Raises LedgerError for what are no results, or do not belong together; DataNotFound if the data
    are not found.
    """
    import pandas

    fields: list[Any] = (
        [results] if isinstance(results, (str, os.PathLike, Record)) else list(results)
    )
    with tempfile.TemporaryDirectory() as folder, caching(), clustered_by(cluster, data):
        paths = [item.save(folder) if isinstance(item, Result) else item for item in fields]
        files = by_instrument(paths)
        rows = list(_attention_evidence(files.pop(ATTENTION), data))
        rows += [
            row
            for group in masked.comparable(files.pop(MASKING))
            for row in _masking(masked.gather(group))
        ]
        for instrument, of_instrument in files.items():
            of_result = _OF_RESULT.get(instrument, partial(_plain, instrument))
            rows += [row for file in of_instrument for row in of_result(file)]
    frame = pandas.DataFrame(rows, columns=list(COLUMNS)).drop_duplicates(ignore_index=True)
    return frame.astype({"step": "Int64", "k": "Int64", "n": int, "functions": int, "items": int})


@dataclass(frozen=True)
class _Slice:
    """Hits as rows of the frame. `about`: the cells that all rows share; `of_measure`: those that
    follow from a measure; `chosen`: what was chosen for a group and a measure."""

    hits: Hits
    about: Row
    of_measure: Callable[[Any], Row]
    chosen: Callable[[str, Any], str | None] = lambda group, measure: None

    def means(self, estimate: Estimate, system: str, against: str = "") -> Iterator[Row]:
        """Rows of the means (M,) over groups."""
        items = sum(self.hits.groups[name].total for name in self.hits.counted)
        sizes = {
            "functions": len(self.hits.clusters),
            "items": items,
            "chosen": self.about.get("chosen", ""),
        }
        for row, measure in enumerate(self.hits.measures):
            numbers = estimate.at(row)
            if not np.isnan(numbers.value):
                yield {
                    **self._shared(measure, system, against),
                    "group": MEAN,
                    **numbers._asdict(),
                    **sizes,
                }

    def groups(
        self,
        estimate: Estimate,
        system: str,
        against: str = "",
        measures: Sequence[Measure] | None = None,
    ) -> Iterator[Row]:
        """Rows of groups (M, G), by some measures or all."""
        parts = [np.broadcast_to(part, np.shape(estimate.value)) for part in estimate]
        for measure in self.hits.measures if measures is None else measures:
            shared = self._shared(measure, system, against)
            row = self.hits.measures.index(measure)
            every = zip(*(part[row].tolist() for part in parts))
            for (name, group), numbers in zip(self.hits.groups.items(), every):
                if numbers[0] == numbers[0]:  # not NaN
                    of_group = dict(zip(Estimate._fields, numbers))
                    of_group |= {"functions": len(group.places), "items": group.total}
                    yield {
                        **shared,
                        "group": name,
                        **of_group,
                        "chosen": self.chosen(name, measure) or "",
                    }

    def _shared(self, measure: Any, system: str, against: str) -> Row:
        """The cells that all rows by a measure share."""
        return {
            **_TEXTS,
            **self.about,
            **self.of_measure(measure),
            "system": system,
            "against": against,
        }

    def groups_at(self, measures: Sequence[Measure], system: str) -> Iterator[Row]:
        """Rows of the scores of groups, by some measures."""
        some = self.hits.where(measures=measures)
        yield from _Slice(some, self.about, self.of_measure, self.chosen).groups(
            some.by_group(system), system
        )

    def tested(self, system: str, against: str) -> Iterator[Row]:
        """Rows of differences between two systems, p corrected over groups."""
        (difference,) = corrected([self.hits.by_group(system, against)])
        yield from self.groups(difference, system, against)
        yield from self.means(self.hits.mean(system, against), system, against)

    def scored(self, system: str) -> Iterator[Row]:
        """Rows of the scores of a system."""
        yield from self.groups(self.hits.by_group(system), system)
        yield from self.means(self.hits.mean(system), system)


def _shared_cells(result: Any, instrument: str, **cells: Any) -> Row:
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
        "instrument": instrument,
        "cluster": REPOSITORY if instrument == PREFERENCE else cluster_unit(),
        **cells,
    }


# ----------------------------------------------------------------------------------------------------------- attention

RANDOM_BEST, RANDOM_HEAD, CHANCE = "random attention", "random head", "chance"
"""Systems without a model: the best of as many heads that attend at random, one of these on
average, and a guess by distances of hard edges alone."""

WITHOUT_MODEL = (*BASELINES, RANDOM_BEST, RANDOM_HEAD, CHANCE)
"""All systems without a model."""


def beyond_protocol(avoided: int) -> str:
    """The protocol of hard edges, beyond so many of the best offsets."""
    if avoided == 1:
        return BEYOND_OFFSET
    return f"{BEYOND_OFFSET}, {avoided} offsets"


def easy_protocol(avoided: int) -> str:
    """The protocol of the edges at the best offsets of their relation, so many."""
    return (
        f"{HELD_OUT}, at the best offset"
        if avoided == 1
        else f"{HELD_OUT}, at the {avoided} best offsets"
    )


def _attention_evidence(paths: Sequence[Path], data: Any) -> Iterator[Row]:
    for group in gather.comparable(paths) if paths else ():
        evidence = gather.gather(gather.find(group.files), data)
        yield from of_baselines(evidence)
        for rows in of_models(evidence):
            yield from rows


def of_models(evidence: Sequence[Evidence]) -> Iterator[list[Row]]:
    """The rows of each model, or control, on the same functions; p of means corrected over the
    models."""
    models = [member.probed.test.settings.control is None for member in evidence]
    corrected_means = [
        {
            mean: difference
            for mean, difference in zip(_MEANS, differences)
            if difference is not None
        }
        for differences in zip(*(_over_models(evidence, models, mean) for mean in _MEANS))
    ]
    for member, differences in zip(evidence, corrected_means):
        beyond = [row for avoided in AVOIDED for row in _beyond(member, avoided, differences)]
        yield [*_of_model(member, differences), *beyond]


_MEANS = (*PUBLISHED_FIRST, SAME_RELATIONS, *map(beyond_protocol, AVOIDED))
"""The means of which a difference to the best baseline is tested."""


def _over_models(
    evidence: Sequence[Evidence], models: Sequence[bool], mean: str
) -> list[Estimate | None]:
    hard = {beyond_protocol(avoided): avoided for avoided in AVOIDED}
    if mean in hard:
        return over_models(
            [mean_of(member.beyond_compared[hard[mean]]) for member in evidence], models
        )
    return over_models([member.differences.get(mean) for member in evidence], models)


def _of_model(member: Evidence, differences: Mapping[str, Estimate]) -> Iterator[Row]:
    about = _shared_cells(member.probed.test, ATTENTION, measure="uas")
    for protocol, chosen in member.hits.items():
        shown = _chosen_scores(chosen, {**about, "protocol": protocol}, partial(_head, chosen))
        yield from shown.groups_at(TABLE_MEASURES, MODEL)
        yield from shown.means(chosen.hits.mean(MODEL), MODEL)
        if comparison := member.comparisons.get(protocol):
            yield from _against(shown, comparison.by_relation, comparison.relations)
        yield from _difference(shown, differences.get(protocol))
    if _lacks_relations(member.hits[HELD_OUT], member.hits[PUBLISHED]):
        same = member.hits[PUBLISHED].only(member.hits[HELD_OUT].relations)
        shown = _chosen_scores(same, {**about, "protocol": SAME_RELATIONS})
        yield from shown.means(member.same_relations[0], MODEL)
        yield from _difference(shown, differences.get(SAME_RELATIONS))


def _beyond(member: Evidence, avoided: int, differences: Mapping[str, Estimate]) -> Iterator[Row]:
    """Rows of hard edges, of a model and of what needs none there, on the relations of its
    score."""
    model = member.beyond[avoided]
    rivals = member.splits.rivals[avoided]
    if model is None or not model.in_mean or rivals is None:
        return
    protocol = beyond_protocol(avoided)
    about = _shared_cells(member.probed.test, ATTENTION, measure="uas", protocol=protocol)
    in_mean = _chosen_scores(model.chosen, about)
    shown = _chosen_scores(model.shown, about, partial(_head, model.shown))
    yield from shown.groups(model.by_relation, MODEL, measures=TABLE_MEASURES)
    yield from in_mean.means(model.mean, MODEL)
    yield from _easy(model, {**about, "protocol": easy_protocol(avoided)})
    compared = member.beyond_compared[avoided]
    if compared is None:  # it was scored on other edges than the baselines
        return
    yield from _against(shown, compared.by_relation, compared.relations)
    yield from _difference(in_mean, differences.get(protocol))
    without = {**about, **_WITHOUT_MODEL}
    for kind in kinds_of(member.probed.test.settings.config):
        of_shown = rivals.hits[kind].only(
            set(rivals.hits[kind].relations) & set(model.shown.relations)
        )
        yield from _chosen_scores(of_shown, without).groups_at(TABLE_MEASURES, kind)
        of_mean = rivals.of(kind, model)
        yield from _chosen_scores(of_mean, without).means(of_mean.hits.mean(kind), kind)
    guessed = np.array([rivals.chance[name] for name in model.shown.relations]).T
    n = len(model.chosen.hits.drawn.clusters)
    guesses = _chosen_scores(
        model.shown, without, lambda name, _: ", ".join(map(str, model.offsets[name]))
    )
    yield from guesses.groups(_without_interval(guessed, n), CHANCE, measures=TABLE_MEASURES)
    yield from _chosen_scores(model.chosen, without).means(
        _without_interval(rivals.guessed(model), n), CHANCE
    )


def _easy(model: Beyond, about: Row) -> Iterator[Row]:
    """Rows of the other edges, by the rule `first`."""
    names = [name for name in model.shown.relations if name in model.easy]
    hits = model.shown.hits.where(groups=names, measures=MEASURES[: len(KS)])
    scores = np.array([model.easy[name] for name in names]).reshape(len(names), len(KS)).T
    for row in _Slice(hits, about, _rule_and_k).groups(
        _without_interval(scores, len(hits.drawn.clusters)), MODEL
    ):
        hard, edges = model.edges[row["group"]]
        yield {**row, "items": edges - hard}


def _without_interval(value: np.ndarray, n: int) -> Estimate:
    unknown = np.full(value.shape, np.nan)
    return Estimate(value, unknown, unknown, unknown, n)


_WITHOUT_MODEL: Row = {"model": "", "revision": "", "step": None, "control": ""}


def of_baselines(evidence: Sequence[Evidence]) -> Iterator[Row]:
    """Rows of what needs no model, on the functions that all of `evidence` share."""
    first = evidence[0]
    known = first.splits.baselines
    settings = first.probed.test.settings
    about = _shared_cells(first.probed.test, ATTENTION, measure="uas", **_WITHOUT_MODEL)
    for protocol in PUBLISHED_FIRST:
        for kind in kinds_of(settings.config):
            chosen = known.hits[protocol][kind]
            shown = _chosen_scores(
                chosen, {**about, "protocol": protocol}, partial(_picked, known, protocol, kind)
            )
            yield from shown.groups_at(TABLE_MEASURES, kind)
            yield from shown.means(chosen.hits.mean(kind), kind)
            if protocol == PUBLISHED and _lacks_relations(known.hits[HELD_OUT][kind], chosen):
                same = chosen.only(known.hits[HELD_OUT][kind].relations)
                yield from _chosen_scores(same, {**about, "protocol": SAME_RELATIONS}).means(
                    same.hits.mean(kind), kind
                )
    heads = max(int(np.prod(member.probed.test.ledger.ranks.shape[2:])) for member in evidence)
    yield from _at_random(first, about, heads)


def _at_random(first: Evidence, about: Row, heads: int) -> Iterator[Row]:
    """Rows of means of random attention: of the best of so many heads, and of one on average."""
    test = first.splits.edges["test"]
    direction = first.probed.test.settings.direction
    drawn = _random_means(first.splits.edges["validation"], test, direction, heads)
    by_chance = by_relation(test, direction)
    for mean, chosen in side_by_side(first.hits).items():
        shown = _chosen_scores(
            chosen, {**about, "protocol": mean, "chosen": f"best of {heads} heads"}
        )
        yield from shown.means(drawn[mean], RANDOM_BEST)
        expected = expected_scores(by_chance, chosen.relations)
        clusters = len(chosen.hits.drawn.clusters)
        yield from shown.means(_without_interval(expected, clusters), RANDOM_HEAD)


def side_by_side(hits: Mapping[str, ChosenHits]) -> dict[str, ChosenHits]:
    """The hits by both protocols, and of SAME_RELATIONS."""
    return {**hits, SAME_RELATIONS: hits[PUBLISHED].only(hits[HELD_OUT].relations)}


def _random_means(
    validation: Edges, test: Edges, direction: str, heads: int
) -> dict[str, Estimate]:
    on_validation = sorted(
        validation.relations[number] for number in np.unique(validation.relation)
    )

    def compute() -> dict[str, np.ndarray]:
        scored = random_attention(test, direction, heads)
        # the best heads on validation are any heads here: draws of the two splits have nothing in
        # common
        cells = np.zeros((len(RULES), len(KS), 2), int)
        any_heads = {name: cells + (0, number % heads) for number, name in enumerate(on_validation)}
        hits = dict(zip((PUBLISHED, HELD_OUT), apply_each(scored, [choose(scored), any_heads])))
        means = {
            mean: chosen.hits.mean(chosen.system) for mean, chosen in side_by_side(hits).items()
        }
        return {
            mean: np.array([*estimate[:4], np.full(len(MEASURES), estimate.n)])
            for mean, estimate in means.items()
        }

    made_of = chain([repr(on_validation).encode()], test.content())
    known = cached(f"random attention {direction} {heads}", made_of, compute)
    return {
        mean: Estimate(value, low, high, p, int(n[0]))
        for mean, (value, low, high, p, n) in known.items()
    }


def _rule_and_k(measure: tuple[str, int]) -> Row:
    return {"rule": measure[0], "k": measure[1]}


def _chosen_scores(
    chosen: ChosenHits,
    about: Row,
    what: Callable[[str, Any], str | None] = lambda group, measure: None,
) -> _Slice:
    return _Slice(chosen.hits, about, _rule_and_k, what)


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
    row = MEASURES.index(measure)
    hits = chosen.hits.groups[relation].sums[chosen.system].total[row]
    return (
        "-".join(map(str, chosen.choice[relation].reshape(-1, 2)[row].tolist())) if hits else None
    )


def _picked(
    known: BaselineResult, protocol: str, kind: str, relation: str, measure: tuple[str, int]
) -> str:
    """The first three of the offsets or keywords that were chosen; of the combined baseline, which
    of the two."""
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
        in_place = [RANDOM_WEIGHTS] * settings.random_weights + [settings.control] * (
            settings.control != SUB_TOKENS
        )
        about = _shared_cells(
            model, MASKING, protocol=settings.protocol, control=", ".join(in_place)
        )
        for outcome, hits in model.hits.items():
            shown = _Slice(hits, about, lambda measure: {"measure": measure})
            for arm in ARMS:
                yield from shown.scored(arm)
            yield from shown.groups(_of_all_groups(model.effects[outcome]), T1, T0)
            yield from shown.means(hits.mean(T1, T0), T1, T0)
            for number, arm in enumerate(ARMS) if outcome in FLOORS else ():
                gains = {name: of_arms[number] for name, of_arms in model.gains[outcome].items()}
                filled = _Slice(hits, about, shown.of_measure, partial(_filler, gains))
                yield from filled.groups(
                    _of_all_groups({name: gain.gain for name, gain in gains.items()}),
                    arm,
                    f"{arm} filled",
                )


def _filler(gains: Mapping[str, FillerGain], node_type: str, measure: Any) -> str:
    return gains[node_type].filler


def _of_all_groups(estimates: Mapping[str, Estimate]) -> Estimate:
    """Of all groups, (1, G), from group -> estimate."""
    return Estimate(*(np.array(part)[None] for part in zip(*estimates.values())))


def _silencing(file: Path) -> Iterator[Row]:
    result = SilencingResult.load(file)
    for number, hits in silencing.hits(result).items():
        about = _shared_cells(result, SILENCING, k=int(number))

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
    about = _shared_cells(result, INFORMATION)
    bits, uas = (
        _Slice(measured[name], about, lambda measure: {"measure": measure})
        for name in ("bits", "uas")
    )
    for choice in (WORDS, BOTH):
        yield from bits.scored(choice)
    yield from bits.tested(WORDS, BOTH)
    for finder in information.FINDERS:
        yield from uas.scored(finder)


def _preference(file: Path) -> Iterator[Row]:
    result = PreferenceResult.load(file)
    for by, hits in likelihood.of_pairs(result).items():
        shown = _Slice(
            hits, _shared_cells(result, PREFERENCE), lambda measure: {"measure": measure}
        )
        rows = (
            shown.scored(likelihood.MODEL)
            if by == "phenomena"
            else _named(shown, likelihood.MODEL, by)
        )
        pairs = {name: accuracy.pairs for name, accuracy in getattr(result, by).items()}
        pairs[MEAN] = sum(pairs[name] for name in hits.counted)
        for row in rows:  # hits count weights
            yield {**row, "items": pairs[row["group"].removeprefix(f"{by.removesuffix('s')} ")]}


def _surprisal(file: Path) -> Iterator[Row]:
    result = SurprisalResult.load(file)
    for by, hits in likelihood.of_surprisal(result).items():
        role = by if by in ROLES else CLOSING
        shown = _Slice(
            hits, _shared_cells(result, SURPRISAL, rule=role), lambda measure: {"measure": measure}
        )
        for system in (likelihood.NODE, likelihood.CONTROL):
            yield from shown.scored(system) if by in ROLES else _named(shown, system, by)
        if by in ROLES:
            yield from shown.tested(likelihood.CONTROL, likelihood.NODE)


def _plain(instrument: str, file: Path) -> Iterator[Row]:
    result = INSTRUMENTS[instrument].result.load(file)
    for name, hits in result.hits().items():
        shown = _Slice(
            hits, _shared_cells(result, instrument, measure=name), lambda measure: {"rule": measure}
        )
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
