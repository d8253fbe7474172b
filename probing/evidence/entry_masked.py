"""Entries on masked syntax: what a masked language model restores, by function, and everything that follows from it.

`by_function` holds, for N pairs of a node type and a function, sorted by node type and function,

    {"places": P, "masked": P, "outcomes": {outcome: P}}

with P as `probing.evidence.packing` says: `places` (N,) of the functions in the split; `masked` (N,), sub-tokens in T1;
and each of OUTCOMES, (2, N), T1 and T0, in millionths, rounded; log-probabilities without their sign. The other numbers
are computed from these, when an entry is made and again when one is read: an entry in which they differ is refused.

`scores`: outcome -> `t1`, `t0` and `effect`, T1 - T0, means over the node types, [mean, low, high], and `p` of the
effect (`over_types`). `node_types`: name -> `functions`, `masked`, and outcome -> the means `t1` and `t0`; HEADLINE has
the `effect`, too, [mean, low, high], and its `p`, corrected over node types (`probing.evidence.effect.paired`). Bounds
are null for fewer than FEW_FUNCTIONS functions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset.errors import EntryError
from probing.evidence.effect import paired
from probing.evidence.masked import Masked
from probing.evidence.over_types import over_types
from probing.evidence.packing import packed, unpacked
from probing.evidence.schema import MASKING_FORMAT, UNCOMPARED, MaskEntry
from probing.prediction.ledger import SIMILARITIES
from probing.prediction.masking import CURRENT
from probing.prediction.result import OUTCOMES
from probing.prediction.result import signature_of as masking_signature
from probing.runs.ledger_file import MASKING
from probing.runs.untrusted_json import expect, fields, mapping, shown, whole

HEADLINE = SIMILARITIES[0]
"""The similarity whose effect is tested for each node type."""

_MOST_PAIRS = 3 * 10**6
"""More than the largest published config has, all node types of its grammar masked."""

_UNIT = 10**6
_ROUNDED = 2.5 / _UNIT  # more than rounding to millionths changes a sum of two similarities
_LOWEST = 2.0**32 - 1  # in millionths
_CLOSE = 1e-7  # what rounding of floats may change in a number that is computed again


class Pairs(NamedTuple):
    """N pairs of a node type and a function. `node_types`: their names; `node_type` (N,): indices of these; `places`
    (N,); `masked` (N,); `arms`: outcome -> T1 and T0 (2, N)."""

    node_types: list[str]
    node_type: np.ndarray
    places: np.ndarray
    masked: np.ndarray
    arms: dict[str, np.ndarray]


def make(model: Masked) -> dict[str, Any]:
    """The entry of a masking result that has node types, as JSON."""
    found = _pairs_of(model)
    return {
        "format": MASKING_FORMAT,
        "instrument": MASKING,
        "signature": model.signature,
        "settings": model.settings.model_dump(mode="json"),
        "run": model.run.model_dump(),
        "functions": model.functions,
        "copies": model.copies,
        "skips": model.skips,
        "dropped": model.dropped,
        "uncompared": {reason: model.uncompared[reason] for reason in UNCOMPARED},
        **_numbers(found),
        "by_function": {
            "places": packed(found.places),
            "masked": packed(found.masked),
            "outcomes": {name: packed(np.round(np.abs(arms) * _UNIT)) for name, arms in found.arms.items()},
        },
        "ledger": model.ledger,
        "versions": model.versions,
    }


def check(entry: MaskEntry) -> None:
    """Raise EntryError unless the numbers of an entry follow from its values by function, and its counts add up."""
    if entry.signature != (follows := signature_of(entry)):
        raise EntryError(f"signature does not follow from the settings: expected {follows}")
    found, settings = unpack(entry), entry.settings
    masked = entry.functions * len(settings.node_types) - sum(entry.dropped.values())
    compared = len(found.places) + sum(entry.uncompared.values())
    if compared != masked:
        raise EntryError(
            f"{compared} pairs of a function and a node type are compared or counted as not, but {masked} were masked"
        )
    if entry.copies != masked * (settings.draws + 1):
        raise EntryError(f"copies is {entry.copies}, but {masked} pairs have {masked * (settings.draws + 1)}")
    if entry.verified:
        again, of = entry.verified.functions, entry.verified.of
        least = len(np.unique(found.places))
        if not (least <= of <= entry.functions and again <= of):
            raise EntryError(f"verified is {again} of {of} functions, expected of {least} to {entry.functions}")
    for name, told in _numbers(found).items():
        _follows(getattr(entry, name), told, name)


def signature_of(entry: MaskEntry) -> str:
    """The signature that follows from its settings."""
    return str(masking_signature(entry.made, entry.copies))


def unpack(entry: MaskEntry) -> Pairs:
    """The values by function of an entry. Raises EntryError if they are malformed, or such as no model can have."""
    settings, at = entry.settings, "by_function"
    names = [name for name in settings.node_types if name in entry.node_types]
    expect(bool(names), None, "node_types", "at least one that could be compared")
    if entry.functions * len(names) > _MOST_PAIRS:
        raise EntryError(f"there are {entry.functions} functions and {len(names)} node types, more than is read")
    sizes: list[int] = []
    for name, of in zip(names, fields(entry.node_types, "node_types", names)):
        size = mapping(of, f"node_types.{name}").get("functions")
        whole(1, entry.functions)(size, f"node_types.{name}.functions")
        sizes.append(int(size or 0))
    node_type = np.repeat(np.arange(len(names)), sizes)
    places, masked, outcomes = fields(entry.by_function, at, ("places", "masked", "outcomes"))
    of_places = unpacked(places, f"{at}.places", len(node_type)).astype(np.int64)
    of_masked = unpacked(masked, f"{at}.masked", len(node_type)).astype(np.int64)
    rows = entry.functions + sum(entry.skips.values())
    if ((np.diff(of_places) <= 0) & (np.diff(node_type) == 0)).any() or of_places.max() >= rows:
        raise EntryError(f"{at}.places are not those of functions in a split of {rows}, in order for each node type")
    arms = {}
    for name, numbers in zip(OUTCOMES, fields(outcomes, f"{at}.outcomes", OUTCOMES)):
        arms[name] = unpacked(numbers, f"{at}.outcomes.{name}", 2 * len(node_type)).reshape(2, -1) / _UNIT
    arms["log_probability"] = -arms["log_probability"]
    found = Pairs(names, node_type, of_places, of_masked, arms)
    _check_possible(found, entry)
    return found


def _pairs_of(model: Masked) -> Pairs:
    of_types = list(model.node_types.values())
    arms = {name: np.concatenate([one.arms[name] for one in of_types], axis=1) for name in OUTCOMES}
    return Pairs(
        list(model.node_types),
        np.repeat(np.arange(len(of_types)), [one.functions for one in of_types]),
        np.concatenate([one.places for one in of_types]),
        np.concatenate([one.sub_tokens for one in of_types]),
        {name: np.round(np.clip(of, -_LOWEST / _UNIT, 1) * _UNIT) / _UNIT for name, of in arms.items()},
    )


def _numbers(found: Pairs) -> dict[str, Any]:
    """The fields `scores` and `node_types`."""
    stacked = np.stack([found.arms[name].T for name in OUTCOMES], axis=2)  # (N, 2, outcomes)
    mean, p = over_types(found.node_type, found.places, stacked)
    by_type = [found.node_type == place for place in range(len(found.node_types))]
    t1, t0 = ({name: found.arms[HEADLINE][arm, of] for name, of in zip(found.node_types, by_type)} for arm in (0, 1))
    effects = paired(t1, t0)
    node_types: dict[str, dict[str, Any]] = {}
    for name, of in zip(found.node_types, by_type):
        node_types[name] = {"functions": int(of.sum()), "masked": int(found.masked[of].sum())}
        for outcome in OUTCOMES:
            of_t1, of_t0 = found.arms[outcome][:, of].mean(axis=1).tolist()
            node_types[name][outcome] = {"t1": of_t1, "t0": of_t0}
        node_types[name][HEADLINE] |= {"effect": _known(effects[name].effect), "p": effects[name].p_holm}
    scores = {
        outcome: {part: _known(mean[row, :, place]) for row, part in enumerate(("t1", "t0", "effect"))}
        | {"p": float(p[place])}
        for place, outcome in enumerate(OUTCOMES)
    }
    return {"scores": scores, "node_types": node_types}


def _known(numbers: Sequence[float] | np.ndarray) -> list[float | None]:
    return [None if math.isnan(number) else float(number) for number in numbers]


def _check_possible(found: Pairs, entry: MaskEntry) -> None:
    """Refuse what no model can have, whatever it predicts."""
    settings, current = entry.settings, entry.settings.protocol == CURRENT
    jaccard, sorensen_dice, levenshtein, restored = (found.arms[name] for name in OUTCOMES[:4])
    most = 2 * jaccard / (1 + jaccard)  # is Sorensen-Dice, for one copy
    unlike = (sorensen_dice < jaccard - _ROUNDED) | (sorensen_dice > most + _ROUNDED)
    masked = found.masked * np.array([[1], [settings.draws]])
    broken = np.abs(restored * masked - np.round(restored * masked)) > masked / _UNIT
    broken[1] &= current  # otherwise controls mask other numbers of sub-tokens
    # a true sub-token that is not the most likely one has a probability of at most a half
    likely = found.arms["log_probability"] > math.log(0.5) * (1 - restored) + 0.001
    for wrong, why in (
        ((found.masked < 1) | (found.masked > settings.max_length), "no function has so many masked sub-tokens"),
        (np.max([jaccard, sorensen_dice, levenshtein, restored], axis=0) > 1, "a share is above 1"),
        (broken, "the restored share is not one of its masked sub-tokens"),
        (np.abs(sorensen_dice - most)[:1] > _ROUNDED, "Sorensen-Dice does not follow from Jaccard"),
        (unlike, "Jaccard allows no such Sorensen-Dice"),
        (levenshtein > sorensen_dice + _ROUNDED, "more nodes are in order than in common"),
        (likely, "sub-tokens are too likely for so few that are restored"),
        (current & (restored == 1) & (jaccard < 1), "every sub-token is restored, but the tree is another"),
    ):
        if (where := np.argwhere(np.atleast_2d(wrong))).size:
            arm, pair = where[0].tolist()
            name = found.node_types[found.node_type[pair]]
            raise EntryError(f"by_function: {why}, {('T1', 'T0')[arm]} of {name} in function {found.places[pair]}")


def _follows(told: Any, expected: Any, at: str) -> None:
    """Raise EntryError unless what is told is what follows from the values by function."""
    if isinstance(expected, dict):
        for name, value in zip(expected, fields(told, at, expected)):
            _follows(value, expected[name], f"{at}.{name}")
    elif isinstance(expected, list):
        expect(isinstance(told, list) and len(told) == len(expected), told, at, f"a list of {len(expected)} numbers")
        for place, (value, number) in enumerate(zip(told, expected)):
            _follows(value, number, f"{at}.{place}")
    elif told is None or expected is None:
        expect(told is expected, told, at, f"{shown(expected)}, which follows from its functions")
    else:
        close = type(told) in (int, float) and abs(told - expected) <= _CLOSE
        expect(close, told, at, f"{expected}, which follows from its functions")
