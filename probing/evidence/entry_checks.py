"""Consistency checks of the numbers in an entry, including scores that no attention heads can produce."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset.errors import EntryError
from codesyntax_dataset.languages import language_of, variant_of
from codesyntax_dataset.protocol import BASELINES, KS, PROTOCOLS
from codesyntax_metric.topk_uas import NOT_IN_MEAN, RULES
from probing.evidence.schema import Entry, EntrySettings
from probing.evidence.statistics import FEW_FUNCTIONS, PERMUTATIONS
from probing.runs.untrusted_json import expect, fields, mapping, one_of, shown, whole

_CLOSE = 1e-6  # percent: tolerance for rounding
_MANY = 10
"""With so many relations, held-out heads are never all the best ones: of two models, 32 and 56 % of the scores were."""


def check_scores(entry: Entry) -> None:
    """Raise EntryError unless the numbers of an entry agree with each other; its settings have been checked."""
    scores = {
        protocol: _scores(value, f"protocols.{protocol}", entry.settings)
        for protocol, value in zip(PROTOCOLS, fields(entry.protocols, "protocols", PROTOCOLS))
    }
    _check_protocols(scores["published"], scores["held-out"], entry.functions, entry.edges)
    baselines = fields(entry.baselines, "baselines", PROTOCOLS)
    differences = fields(entry.differences, "differences", PROTOCOLS)
    found = {}
    for (protocol, model), of_baselines, of_differences in zip(scores.items(), baselines, differences):
        found[protocol], combined = _baselines(of_baselines, f"baselines.{protocol}", model, protocol)
        _check_differences(of_differences, f"differences.{protocol}", model.mean, combined)
    _check_same_relations(
        entry.same_relations, scores["published"], list(scores["held-out"].relations), found["published"]
    )


class _Scores(NamedTuple):
    """The scores of a protocol. `score`: (R, rules, k); `head`: (R, rules, k, 2); `mean`: (rules, k), NaN for none."""

    at: str
    relations: dict[str, dict[str, Any]]
    unchosen: dict[str, int]
    score: np.ndarray
    head: np.ndarray
    mean: np.ndarray

    @property
    def edges(self) -> dict[str, int]:
        return {name: relation["edges"] for name, relation in self.relations.items()}


def _scores(value: Any, at: str, settings: EntrySettings) -> _Scores:
    scores, relations, unchosen = fields(value, at, ("scores", "relations", "unchosen"))
    language, variant = language_of(settings.config), variant_of(settings.config)
    for part, of in (("relations", relations), ("unchosen", unchosen)):
        for name in mapping(of, f"{at}.{part}"):
            expect(
                language.has_relation(name, variant), name, f"a name in {at}.{part}", f"a relation of {settings.config}"
            )
    for name, edges in unchosen.items():
        whole(1)(edges, f"{at}.unchosen.{name}")
    shape = (len(relations), len(RULES), len(KS))
    score, head = np.empty(shape), np.empty((*shape, 2), np.int32)
    for row, (name, relation) in enumerate(relations.items()):
        where = f"{at}.relations.{name}"
        edges, functions, marked, in_mean, *rules = fields(
            relation, where, ("edges", "functions", "few_functions", "in_mean", *RULES)
        )
        whole(1)(edges, f"{where}.edges")
        whole(1, edges)(functions, f"{where}.functions")
        few = functions < FEW_FUNCTIONS
        one_of([few])(marked, f"{where}.few_functions")
        one_of([name not in NOT_IN_MEAN])(in_mean, f"{where}.in_mean")
        for column, (rule, of_rule) in enumerate(zip(RULES, rules)):
            for place, (k, cell) in enumerate(zip(KS, fields(of_rule, f"{where}.{rule}", map(str, KS)))):
                here = f"{where}.{rule}.{k}"
                found, layer, of_layer = fields(cell, here, ("score", "layer", "head"))
                score[row, column, place] = (_alone if few else check_interval)(found, f"{here}.score")
                whole(0, settings.layers - 1)(layer, f"{here}.layer")
                whole(0, settings.heads - 1)(of_layer, f"{here}.head")
                head[row, column, place] = layer, of_layer
    result = _Scores(at, relations, unchosen, score, head, _means(scores, f"{at}.scores", score, list(relations)))
    _check_hits(score, result.edges, f"{at}.relations")
    return result


def check_interval(value: Any, at: str, least: float = 0) -> float:
    """The number in `[number, low, high]`."""
    fits = isinstance(value, list) and len(value) == 3 and all(type(number) in (int, float) for number in value)
    if not (fits and all(least <= number <= 100 for number in value)):
        found = ascii(value) if fits else shown(value)
        raise EntryError(f"{at} is {found[:120]}, expected [number, low, high], each from {least} to 100")
    number, low, high = value
    if not low - _CLOSE <= number <= high + _CLOSE:
        raise EntryError(f"{at} is {number}, outside of its own interval from {low} to {high}")
    return number


def _alone(value: Any, at: str) -> float:
    """The number in `[number, None, None]`, for a relation in too few functions for an interval."""
    fits = isinstance(value, list) and len(value) == 3 and type(value[0]) in (int, float) and 0 <= value[0] <= 100
    if not fits or value[1:] != [None, None]:
        raise EntryError(
            f"{at} is {shown(value)}, expected [number, null, null]: below {FEW_FUNCTIONS} functions there is no "
            "interval"
        )
    return value[0]


def _means(value: Any, at: str, score: np.ndarray, names: list[str]) -> np.ndarray:
    """The means over relations (rules, k), which follow from the scores of the relations."""
    counted = score[[name not in NOT_IN_MEAN for name in names]]
    means = np.full(score.shape[1:], np.nan)
    for row, (rule, of_rule) in enumerate(zip(RULES, fields(value, at, RULES))):
        for column, (k, mean) in enumerate(zip(KS, fields(of_rule, f"{at}.{rule}", map(str, KS)))):
            here = f"{at}.{rule}.{k}"
            if not len(counted):
                expect(mean is None, mean, here, "none: no relation counts")
                continue
            means[row, column] = check_interval(mean, here)
            follows = counted[:, row, column].mean()
            if abs(means[row, column] - follows) > _CLOSE:
                raise EntryError(f"{here} is {mean[0]}, but the mean over its relations is {follows}")
    return means


def _check_hits(score: np.ndarray, edges: dict[str, int], at: str) -> None:
    """Check that every score is a whole number of its relation's edges."""
    hits = score / 100 * np.array(list(edges.values()), float).reshape(-1, 1, 1)
    _refuse(np.abs(hits - np.round(hits)) > 1e-4, list(edges), at, score, "no whole number of its relation's edges")


def _check_protocols(published: _Scores, held_out: _Scores, functions: int, edges: int) -> None:
    """Check what holds for every model: *published* uses the best head on the data on which both are scored."""
    expect(not published.unchosen, published.unchosen, f"{published.at}.unchosen", "nothing, as all have a head")
    for protocol in (published, held_out):
        total = sum(protocol.edges.values()) + sum(protocol.unchosen.values())
        if total != edges:
            raise EntryError(f"the edges of {protocol.at} are {total} in sum, but edges is {edges}")
    if {**held_out.edges, **held_out.unchosen} != published.edges:
        raise EntryError("the two protocols have other relations, or other numbers of their edges")
    for name, relation in held_out.relations.items():
        one_of([published.relations[name]["functions"]])(
            relation["functions"], f"{held_out.at}.relations.{name}.functions"
        )
    counts = [relation["functions"] for relation in published.relations.values()]
    if not max(counts) <= functions <= sum(counts):
        raise EntryError(f"functions is {functions}, but its relations stand in {max(counts)} to {sum(counts)}")
    score, at = published.score, f"{published.at}.relations"
    names = list(published.relations)
    _refuse(np.diff(score, prepend=0) < -_CLOSE, names, at, score, "less than with one guess fewer")
    first, any_, last = range(len(RULES))
    worse = np.zeros(score.shape, bool)
    worse[:, any_] = score[:, any_] < np.maximum(score[:, first], score[:, last]) - _CLOSE
    _refuse(worse, names, at, score, "less than by a stricter rule")
    rows = [names.index(name) for name in held_out.relations]
    names, at = list(held_out.relations), f"{held_out.at}.relations"
    beyond = held_out.score > score[rows] + _CLOSE
    _refuse(beyond, names, at, held_out.score, "more than that of the best head, which is published")
    if len(names) >= _MANY and np.abs(held_out.score - score[rows]).max() <= _CLOSE:
        raise EntryError(
            f"{at} has the scores of {published.at} for all {len(names)} relations, rules and k: it was copied, heads "
            "chosen on other data miss the best one somewhere"
        )
    same = (held_out.head == published.head[rows]).all(axis=-1)
    differ = same & (np.abs(held_out.score - score[rows]) > _CLOSE)
    _refuse(differ, names, at, held_out.score, "another than that of the same head, as published")


def _baselines(value: Any, at: str, model: _Scores, protocol: str) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The scores of each baseline (R, rules, k), and the means of the combined one (rules, k)."""
    names = list(model.relations)
    score, mean = {}, {}
    for kind, of_kind in zip(BASELINES, fields(value, at, BASELINES)):
        scores, relations = fields(of_kind, f"{at}.{kind}", ("scores", "relations"))
        of = score[kind] = np.empty((len(names), len(RULES), len(KS)))
        for row, (name, rules) in enumerate(zip(names, fields(relations, f"{at}.{kind}.relations", names))):
            where = f"{at}.{kind}.relations.{name}"
            for column, (rule, of_rule) in enumerate(zip(RULES, fields(rules, where, RULES))):
                for place, (k, number) in enumerate(zip(KS, fields(of_rule, f"{where}.{rule}", map(str, KS)))):
                    if type(number) not in (int, float) or not 0 <= number <= 100:
                        raise EntryError(f"{where}.{rule}.{k} is {shown(number)}, expected a number from 0 to 100")
                    of[row, column, place] = number
        _check_hits(of, model.edges, f"{at}.{kind}.relations")
        if kind != "combined":
            _refuse(
                np.diff(of, prepend=0) < -_CLOSE, names, f"{at}.{kind}.relations", of, "less than with one guess fewer"
            )
        mean[kind] = _means(scores, f"{at}.{kind}.scores", of, names)
    both, combined = np.stack([score["offset"], score["keyword"]]), score["combined"]
    off = np.abs(both - combined).min(axis=0) > _CLOSE
    if protocol == "published":
        off |= np.abs(both.max(axis=0) - combined) > _CLOSE
    _refuse(off, names, f"{at}.combined.relations", combined, "not that of the better of offset and keyword")
    return score, mean["combined"]


def _check_same_relations(value: Any, published: _Scores, names: list[str], baselines: dict[str, np.ndarray]) -> None:
    """Check that the means of *published* over the relations of *held-out*, `names`, follow from its scores."""
    at = "same_relations"
    scores, of_baselines, differences = fields(value, at, ("scores", "baselines", "differences"))
    rows = [list(published.relations).index(name) for name in names]
    model = _means(scores, f"{at}.scores", published.score[rows], names)
    mean = {
        kind: _means(said, f"{at}.baselines.{kind}", baselines[kind][rows], names)
        for kind, said in zip(BASELINES, fields(of_baselines, f"{at}.baselines", BASELINES))
    }
    _check_differences(differences, f"{at}.differences", model, mean["combined"])


def _check_differences(value: Any, at: str, model: np.ndarray, combined: np.ndarray) -> None:
    for row, (rule, of_rule) in enumerate(zip(RULES, fields(value, at, RULES))):
        places = np.flatnonzero(np.isfinite(model[row]))
        for place, cell in zip(places, fields(of_rule, f"{at}.{rule}", [str(KS[place]) for place in places])):
            check_difference(cell, f"{at}.{rule}.{KS[place]}", model[row, place] - combined[row, place])


def check_difference(value: Any, at: str, follows: float) -> None:
    """Check the fields of a difference of means, which must be `follows`."""
    difference, p = fields(value, at, ("difference", "p"))
    if abs(check_interval(difference, f"{at}.difference", -100) - follows) > _CLOSE:
        raise EntryError(f"{at}.difference is {difference[0]}, but the means differ by {follows}")
    least = 1 / (PERMUTATIONS + 1)
    possible = type(p) in (int, float) and least - 1e-12 <= p <= 1
    expect(possible, p, f"{at}.p", f"a probability from {least} to 1")


def _refuse(wrong: np.ndarray, names: list[str], at: str, score: np.ndarray, why: str) -> None:
    """Raise EntryError for the first score (R, rules, k) that is `wrong`."""
    if wrong.any():
        row, rule, place = np.argwhere(wrong)[0]
        found = score[row, rule, place]
        raise EntryError(f"{at}.{names[row]}.{RULES[rule]}.{KS[place]}: the score {found} is {why}")
