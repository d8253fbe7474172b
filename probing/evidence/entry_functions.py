"""The hits per function in an entry, from which its means, intervals and tests must follow.

A board ranks models by their hits in the same functions, so entries contain them, for the k of tables: for each
function and relation, the number of edges, and how many of them the chosen heads and the combined baseline hit.
`by_function` is

    {"places": P, "edges": P, "hits": {protocol: {"model": P, "combined": P}}}

P is text, as `probing.evidence.packing` says.
`places` (F,): positions of the functions in the split. `edges` (R, F): relations sorted by name. `hits` (rules, k of
tables, n): the n pairs of a relation and a function with edges, in the order of `edges`, for the relations of the
protocol.

`beyond_offset` has the hits of hard edges in the same way, of relations of its own: `relations`, name -> hard edges, by
name; `edges` P (R, F); and `hits`, who -> P.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset.errors import EntryError
from codesyntax_dataset.protocol import BEYOND_OFFSET, PROTOCOLS, TABLE_KS
from codesyntax_metric.topk_uas import NOT_IN_MEAN, RULES
from probing.evidence.entry_checks import check_difference, check_interval
from probing.evidence.outcomes import Outcomes
from probing.evidence.packing import packed, unpacked
from probing.evidence.schema import Entry
from probing.evidence.selection import SAME_RELATIONS
from probing.evidence.statistics import FEW_FUNCTIONS, as_far, paired_p
from probing.runs.untrusted_json import fields, mapping, shown

CELLS = [(protocol, rule, k) for protocol in PROTOCOLS for rule in RULES for k in TABLE_KS]
"""The scores that a board shows, in this order wherever they are listed."""

WHO = ("model", "combined")

_EXCHANGES = 999
"""Random exchanges in the test with which p-values are compared."""

_NARROWEST, _ENOUGH = 0.25, 10
"""From _ENOUGH functions on, intervals have at least this fraction of the width given by their standard error under
normality. Those of two models on random functions of real code had at least 0.43 from 10 functions on, 0.84 from 45
on."""


def pack(outcomes: dict[str, Outcomes], combined: dict[str, Outcomes]) -> dict[str, Any]:
    """`by_function` of a model and its best baseline, by protocol."""
    published = outcomes["published"]
    hits = {
        protocol: {"model": _hits(outcomes[protocol]), "combined": _hits(combined[protocol])} for protocol in PROTOCOLS
    }
    return {"places": packed(published.functions), "edges": packed(published.edges.T), "hits": hits}


def pack_beyond(outcomes: Outcomes, combined: Outcomes, places: np.ndarray) -> dict[str, Any]:
    """The hard edges in the functions at `places` (F,), and how many of them a model and its best rival hit."""
    edges = np.zeros((len(places), len(outcomes.relations)), np.int32)
    edges[np.searchsorted(places, outcomes.functions)] = outcomes.edges
    return {
        "relations": dict(zip(outcomes.relations, edges.sum(axis=0).tolist())),
        "edges": packed(edges.T),
        "hits": {"model": _hits(outcomes), "combined": _hits(combined)},
    }


class ByFunction(NamedTuple):
    """`places`: (F,); `edges`: (R, F), the relations by name; `hits`: protocol -> who -> (rules, k of tables, R, F), of
    the protocol's relations; `hard`: (R, F), the hard edges of BEYOND_OFFSET, which counts as a protocol, as
    SAME_RELATIONS does."""

    relations: dict[str, list[str]]
    places: np.ndarray
    edges: np.ndarray
    hits: dict[str, dict[str, np.ndarray]]
    hard: np.ndarray

    def edges_of(self, protocol: str) -> np.ndarray:
        """(R, F) of the protocol's relations."""
        if protocol == BEYOND_OFFSET:
            return self.hard
        names = self.relations["published"]
        return self.edges[[names.index(name) for name in self.relations[protocol]]]

    def shares(self, protocol: str, who: str = "model") -> np.ndarray:
        """Each function's contribution to the mean over relations, in percent: (rules, k of tables, F)."""
        names, edges = self.relations[protocol], self.edges_of(protocol)
        counted = np.array([name not in NOT_IN_MEAN for name in names], bool)
        weight = np.where(counted, 100 / np.maximum(1, edges.sum(axis=1)) / max(1, counted.sum()), 0)
        return np.tensordot(self.hits[protocol][who], weight, axes=(2, 0))


def unpack(entry: Entry) -> ByFunction:
    """The hits per function of an entry whose other numbers have been checked. Raises EntryError if malformed."""
    at = "by_function"
    places, edges, hits = fields(entry.by_function, at, ("places", "edges", "hits"))
    relations = {protocol: sorted(entry.protocols[protocol]["relations"]) for protocol in PROTOCOLS}
    names, functions = relations["published"], entry.functions
    of_places = unpacked(places, f"{at}.places", functions).astype(np.int64)
    rows = functions + sum(entry.skips.values())
    if (np.diff(of_places) <= 0).any() or of_places[-1] >= rows:
        raise EntryError(
            f"{at}.places are not {functions} places in a split of {rows} functions, scored and skipped, in order"
        )
    of_edges = unpacked(edges, f"{at}.edges", len(names) * functions).reshape(len(names), functions)
    found = ByFunction(relations, of_places, of_edges, {}, _hard(entry, relations, of_edges))
    of_protocols = dict(zip(PROTOCOLS, fields(hits, f"{at}.hits", PROTOCOLS)))
    if entry.beyond_offset is not None:
        of_protocols[BEYOND_OFFSET] = entry.beyond_offset["hits"]
    for protocol, of_protocol in of_protocols.items():
        mine = found.edges_of(protocol)
        found.hits[protocol] = {}
        for who, of_who in zip(WHO, fields(of_protocol, f"{at}.hits.{protocol}", WHO)):
            shape = (len(RULES), len(TABLE_KS), int(np.count_nonzero(mine)))
            numbers = unpacked(of_who, f"{at}.hits.{protocol}.{who}", int(np.prod(shape))).reshape(shape)
            dense = found.hits[protocol][who] = np.zeros((*shape[:2], *mine.shape), numbers.dtype)
            dense[..., mine > 0] = numbers
            if (dense > mine).any():
                raise EntryError(f"{at}.hits.{protocol}.{who} has more hits in a function than it has edges")
    if entry.beyond_offset is None:
        none = np.zeros((len(RULES), len(TABLE_KS), 0, functions), of_edges.dtype)
        found.hits[BEYOND_OFFSET] = dict.fromkeys(WHO, none)
    kept = [names.index(name) for name in relations["held-out"]]
    relations[SAME_RELATIONS] = relations["held-out"]
    found.hits[SAME_RELATIONS] = {who: of[..., kept, :] for who, of in found.hits["published"].items()}
    return found


def _hard(entry: Entry, relations: dict[str, list[str]], edges: np.ndarray) -> np.ndarray:
    """The hard edges (R, F) of an entry, whose relations are added; none if it has no score beyond offsets."""
    value, at, names = entry.beyond_offset, BEYOND_OFFSET, relations["held-out"]
    if value is None:
        relations[BEYOND_OFFSET] = []
        return np.zeros((0, entry.functions), edges.dtype)
    _, _, _, counts, hard, _ = fields(value, at, ("scores", "combined", "differences", "relations", "edges", "hits"))
    relations[BEYOND_OFFSET] = sorted(mapping(counts, f"{at}.relations"))
    if unknown := set(relations[BEYOND_OFFSET]) - set(names):
        raise EntryError(f"{at}.relations has {shown(min(unknown))}, which has no held-out score")
    shape = len(relations[BEYOND_OFFSET]), entry.functions
    found = unpacked(hard, f"{at}.edges", shape[0] * shape[1]).reshape(shape)
    known = edges[[relations["published"].index(name) for name in relations[BEYOND_OFFSET]]]
    if (found > known).any():
        raise EntryError(f"{at}.edges has more hard edges in a function than it has edges")
    for name, of_relation in zip(relations[BEYOND_OFFSET], found):
        same = type(counts[name]) is int and counts[name] == of_relation.sum()
        if not same or np.count_nonzero(of_relation) < FEW_FUNCTIONS:
            raise EntryError(
                f"{at}.relations.{name} is {shown(counts[name])}, but {of_relation.sum()} by its functions, expected "
                f"the same and at least {FEW_FUNCTIONS} functions"
            )
    if all(name in NOT_IN_MEAN for name in relations[BEYOND_OFFSET]):
        raise EntryError(f"{at}.relations has none of the mean, expected no {at} then")
    return found


def check(entry: Entry) -> None:
    """Raise EntryError unless the scores, intervals and p-values of an entry follow from its hits per function."""
    found = unpack(entry)
    published = entry.protocols["published"]["relations"]
    for name, edges in zip(found.relations["published"], found.edges):
        for field, count in (("edges", edges.sum()), ("functions", np.count_nonzero(edges))):
            if count != published[name][field]:
                raise EntryError(f"{name} has {published[name][field]} {field}, but {count} by its functions")
    if not found.edges.any(axis=0).all():
        raise EntryError("a function without edges was scored")
    signs = np.random.default_rng(0).integers(0, 2, (_EXCHANGES, len(found.places)), np.int8).astype(np.float32) * 2 - 1
    for protocol in PROTOCOLS:
        _check_sums(entry, found, protocol)
        _check_intervals(entry, found, protocol)
        scores, differences = entry.protocols[protocol]["scores"], entry.differences[protocol]
        _check_means(scores, f"protocols.{protocol}.scores", found, protocol)
        _check_differences(differences, f"differences.{protocol}", found, protocol, signs)
    alike = entry.same_relations
    _check_means(alike["scores"], "same_relations.scores", found, SAME_RELATIONS)
    _check_differences(alike["differences"], "same_relations.differences", found, SAME_RELATIONS, signs)
    _check_heads(entry, found)
    if entry.beyond_offset is not None:
        _check_beyond(entry.beyond_offset, found, signs)


# --------------------------------------------------------------------------------------------------------------- checks


def _check_sums(entry: Entry, found: ByFunction, protocol: str) -> None:
    """Check that hits add up to the scores of relations."""
    edges = found.edges_of(protocol).sum(axis=1)
    relations = entry.protocols[protocol]["relations"]
    combined = entry.baselines[protocol]["combined"]["relations"]
    for who in WHO:
        total = found.hits[protocol][who].sum(axis=-1)  # (rules, k, R)
        for row, name in enumerate(found.relations[protocol]):
            for rule, of_rule in zip(RULES, total[..., row]):
                for k, hits in zip(TABLE_KS, of_rule):
                    score = relations[name][rule][k]["score"][0] if who == "model" else combined[name][rule][k]
                    if abs(100 * hits / edges[row] - score) > 1e-6:
                        raise EntryError(
                            f"the {'heads' if who == 'model' else 'combined baseline'} of {protocol} hit {hits} of "
                            f"{edges[row]} edges of {name} by its functions ({rule}, k = {k}), but the score is {score}"
                        )


def _check_intervals(entry: Entry, found: ByFunction, protocol: str) -> None:
    """Check that no interval of a relation is much narrower than the spread over functions allows."""
    at, relations = f"protocols.{protocol}.relations", entry.protocols[protocol]["relations"]
    spread = _spread(found.hits[protocol]["model"], found.edges_of(protocol))  # (rules, k, R, F)
    for (row, rule), (column, k) in ((r, c) for r in enumerate(RULES) for c in enumerate(TABLE_KS)):
        for place, name in enumerate(found.relations[protocol]):
            score = relations[name][rule][k]["score"]
            _refuse_narrow(score, spread[row, column, place], f"{at}.{name}.{rule}.{k}.score")


def _check_means(scores: dict[str, Any], at: str, found: ByFunction, protocol: str) -> None:
    """Check the same for intervals of means."""
    mean = _over_relations(_spread(found.hits[protocol]["model"], found.edges_of(protocol)), found.relations[protocol])
    for (row, rule), (column, k) in ((r, c) for r in enumerate(RULES) for c in enumerate(TABLE_KS)):
        _refuse_narrow(scores[rule][k], mean[row, column], f"{at}.{rule}.{k}")


def _check_differences(
    differences: dict[str, Any], at: str, found: ByFunction, protocol: str, signs: np.ndarray
) -> None:
    """Check intervals as above, and that p is close to that of the same test with fewer exchanges."""
    edges = found.edges_of(protocol)
    gained = found.hits[protocol]["model"].astype(np.int64) - found.hits[protocol]["combined"]
    spread = _over_relations(_spread(gained, edges), found.relations[protocol])
    shares = found.shares(protocol) - found.shares(protocol, "combined")  # (rules, k, F)
    expected = paired_p(as_far(shares @ signs.T, shares.sum(axis=-1)), _EXCHANGES, shares)
    for (row, rule), (column, k) in ((r, c) for r in enumerate(RULES) for c in enumerate(TABLE_KS)):
        said = differences[rule].get(k)
        if said is None:
            continue
        _refuse_narrow(said["difference"], spread[row, column], f"{at}.{rule}.{k}.difference")
        p = expected[row, column]
        if abs(said["p"] - p) > 5 * np.sqrt(p * (1 - p) / _EXCHANGES) + 5 / _EXCHANGES:  # five standard errors
            raise EntryError(f"{at}.{rule}.{k}.p is {said['p']}, but a test over its functions gives about {p}")


def _check_beyond(value: dict[str, Any], found: ByFunction, signs: np.ndarray) -> None:
    """Check the same of hard edges, of which no head hits more than the best head hits of all edges."""
    at, names = BEYOND_OFFSET, found.relations[BEYOND_OFFSET]
    hits = found.hits[BEYOND_OFFSET]["model"].sum(axis=-1)  # (rules, k, R)
    most = found.hits["published"]["model"].sum(axis=-1)
    if (hits > most[..., [found.relations["published"].index(name) for name in names]]).any():
        raise EntryError(f"{at}.hits.model has more hits of a relation than its best head has of all edges")
    means = {}
    for who, name in zip(WHO, ("scores", "combined")):
        sums = found.shares(BEYOND_OFFSET, who).sum(axis=-1)  # (rules, k)
        for row, (rule, of_rule) in enumerate(zip(RULES, fields(value[name], f"{at}.{name}", RULES))):
            for column, (k, cell) in enumerate(zip(TABLE_KS, fields(of_rule, f"{at}.{name}.{rule}", TABLE_KS))):
                means[who, rule, k] = check_interval(cell, f"{at}.{name}.{rule}.{k}")
                if abs(means[who, rule, k] - sums[row, column]) > 1e-6:
                    raise EntryError(f"{at}.{name}.{rule}.{k} is {cell[0]}, but {sums[row, column]} by its functions")
    for rule, of_rule in zip(RULES, fields(value["differences"], f"{at}.differences", RULES)):
        for k, cell in zip(TABLE_KS, fields(of_rule, f"{at}.differences.{rule}", TABLE_KS)):
            follows = means["model", rule, k] - means["combined", rule, k]
            check_difference(cell, f"{at}.differences.{rule}.{k}", follows)
    _check_means(value["scores"], f"{at}.scores", found, BEYOND_OFFSET)
    _check_differences(value["differences"], f"{at}.differences", found, BEYOND_OFFSET, signs)


def _check_heads(entry: Entry, found: ByFunction) -> None:
    """Check that a head hits the same edges wherever named, no fewer with more guesses, and most by rule `any`."""
    ks = np.array([int(k) for _, _, k in CELLS])
    rules = np.array([rule for _, rule, _ in CELLS])
    more = (ks[:, None] <= ks) & ((rules[:, None] == rules) | (rules == "any"))
    for name in found.relations["held-out"]:
        cells = [entry.protocols[protocol]["relations"][name][rule][k] for protocol, rule, k in CELLS]
        head = np.array([(cell["layer"], cell["head"]) for cell in cells])
        hits = np.concatenate(
            [
                found.hits[protocol]["model"][:, :, found.relations[protocol].index(name)].reshape(
                    -1, len(found.places)
                )
                for protocol in PROTOCOLS
            ]
        )  # (cells, F)
        fewer, most = np.nonzero(more & (head[:, None] == head).all(axis=-1))
        if (wrong := (hits[fewer] > hits[most]).any(axis=1)).any():
            place = int(np.argmax(wrong))
            one, other = (" ".join(CELLS[number]) for number in (fewer[place], most[place]))
            raise EntryError(
                f"{name}: of one and the same head, {one} has hits in a function that {other} lacks, which no head "
                "can do"
            )


def _spread(hits: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The influence of each function on the score of each relation, in percent: (rules, k, R, F)."""
    total = np.maximum(1, edges.sum(axis=1, keepdims=True))
    return 100 * (hits - hits.sum(axis=-1, keepdims=True) / total * edges) / total


def _over_relations(spread: np.ndarray, names: list[str]) -> np.ndarray:
    """The same for the mean: (rules, k, F)."""
    counted = [name not in NOT_IN_MEAN for name in names]
    return spread[..., counted, :].sum(axis=-2) / max(1, sum(counted))


def _refuse_narrow(said: list[float] | None, spread: np.ndarray, at: str) -> None:
    if said is None or said[1] is None:
        return
    error = float(np.sqrt((spread**2).sum()))
    if len(spread) >= _ENOUGH and said[2] - said[1] < _NARROWEST * 2 * 1.96 * error - 1e-6:
        raise EntryError(
            f"{at} has an interval from {said[1]} to {said[2]}, too narrow for a standard error of {error:.2f} over "
            "its functions"
        )


# -------------------------------------------------------------------------------------------------------------- numbers


def _hits(outcomes: Outcomes) -> str:
    at_ks = outcomes.at(RULES, [int(k) for k in TABLE_KS]).hits.swapaxes(-1, -2)  # (rules, k, R, F)
    return packed(at_ks[..., outcomes.edges.T > 0])
