"""Choosing the attention head of each relation, for models and baselines alike.

Two protocols, always reported side by side:

- *published* (Shen et al. 2022, section 4): each relation, rule and k uses the head that is best on the scored data.
- *held-out*: the head is chosen on the validation split and scored on the test split. `choose` never sees the data that
  `apply` scores; `choose_least` does, to the harm of a model that could not read all functions. A relation without
  edges to choose on is excluded from the mean, and listed; the mean of *published* that compares with it is over the
  same relations, SAME_RELATIONS.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from codesyntax_dataset.errors import LedgerError
from codesyntax_dataset.protocol import KS
from codesyntax_metric.topk_uas import RULES, WORST_RANK, score
from probing.attention.ledger import RankLedger
from probing.attention.result import ProbeResult
from probing.evidence.outcomes import Choice, Found, Outcomes

SAME_RELATIONS = "published, held-out's relations"
"""The scores of *published* over the relations of *held-out*, which compare with those of *held-out*."""

_PLACES = np.array(KS) - 1
"""Where hits within k are, of all k from 1."""

_WORST = max(KS)
"""As good as any rank behind it."""


def choose(ledger: RankLedger) -> Choice:
    """The best head of each rule, relation and k, ties as in `score`."""
    counts = ledger.counts()
    by_rule = [score(counts, KS, rule)["relations"] for rule in RULES]
    return {name: _heads([of_rule[name] for of_rule in by_rule]) for name in by_rule[0]}


def choose_least(validation: RankLedger, test: RankLedger, unread: Collection[int]) -> Choice:
    """The worst that `choose` could choose on `validation`, if the functions `unread` of it had been read.

    Whatever heads find in these, the best one has at least as many hits in the others as the best there, less the edges
    of these. Of such heads, the one with the fewest hits on `test` counts: who reads less chooses no better.
    """
    choice, lost = choose(validation), np.isin(validation.function, list(unread))
    known, scored = validation.counts(), test.counts()
    for column in np.unique(validation.relation[lost]).tolist():
        name, edges = validation.relations[column], np.count_nonzero(lost & (validation.relation == column))
        for number, rule in enumerate(RULES) if name in scored.counts else ():
            hits, found = (counts.hits(name, rule).reshape(-1, WORST_RANK) for counts in (known, scored))
            possible = hits >= hits.max(axis=0) - edges
            worst = np.where(possible, found, found.max() + 1).argmin(axis=0)
            choice[name][number] = np.stack(np.divmod(worst[_PLACES], known.heads), axis=-1)
    return choice


def choice_of(result: ProbeResult) -> Choice:
    """The heads of the scores of a result: what `choose` chooses on its ledger."""
    return {name: _heads([entry[rule] for rule in RULES]) for name, entry in result.relations.items()}


def _heads(by_rule: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """Layers and heads (rules, k, 2), from those by k for each rule."""
    return np.array([[(cells[str(k)]["layer"], cells[str(k)]["head"]) for k in KS] for cells in by_rule])


def apply(ledger: RankLedger, choice: Choice) -> Outcomes:
    """Score `ledger` with chosen heads. Raises LedgerError for heads that the ledger does not have."""
    return apply_each(ledger, [choice])[0]


def apply_each(ledger: RankLedger, choices: Sequence[Choice]) -> list[Outcomes]:
    """The same for several choices of heads, for which the ranks are read once."""
    guesses = [_heads_by_guess(ledger, choice) for choice in choices]
    ranks = np.minimum(ledger.of_heads(*np.concatenate(guesses, axis=1)), _WORST)  # (all guesses, rules, E)
    ends = np.cumsum([heads.shape[1] for heads in guesses])[:-1]
    return [_outcomes(ledger, choice, own) for choice, own in zip(choices, np.split(ranks, ends))]


def _outcomes(ledger: RankLedger, choice: Choice, ranks: np.ndarray) -> Outcomes:
    """The hits of a choice, from the ranks (guesses, rules, E) of its heads as in `_heads_by_guess`."""
    functions, row = np.unique(ledger.function, return_inverse=True)
    present = np.bincount(ledger.relation, minlength=len(ledger.relations))
    names = sorted(name for name, edges in zip(ledger.relations, present) if edges)
    chosen = [name for name in names if name in choice]
    edges, found = np.zeros((len(functions), len(chosen)), np.int32), []
    for column, name in enumerate(chosen):
        number = ledger.relations.index(name)
        index = np.flatnonzero(ledger.relation == number)
        edges[:, column] = np.bincount(row[index], minlength=len(functions))
        places, own = np.unique(row[index], return_inverse=True)
        of_relation = edges[places, column]
        small = np.int16 if of_relation.max() < 2**15 else np.int32
        hits = np.zeros((len(RULES), len(KS), len(places)), small)
        for rule, heads_by_k in enumerate(choice[name]):
            distinct, which = _distinct(heads_by_k)
            for guess in range(len(distinct)):
                cells = own * (_WORST + 1) + ranks[guess, rule, index]
                counts = np.bincount(cells, minlength=len(places) * (_WORST + 1))
                within = counts.reshape(len(places), -1).cumsum(axis=1)  # (f, ranks)
                hits[rule, which == guess] = within.T[_PLACES[which == guess]]
        found.append(Found.of(places, of_relation, hits))
    unchosen = {name: int(present[ledger.relations.index(name)]) for name in names if name not in chosen}
    return Outcomes(chosen, functions, edges, found, choice, unchosen)


def _heads_by_guess(ledger: RankLedger, choice: Choice) -> np.ndarray:
    """Layers and heads (2, n, rules, relations of the ledger): the distinct ones that a relation chose, in order."""
    layers, heads = ledger.ranks.shape[2:]
    names = [ledger.relations[number] for number in np.unique(ledger.relation)]
    distinct = {
        (rule, name): _distinct(choice[name][rule])[0] for rule in range(len(RULES)) for name in names if name in choice
    }
    most = max(map(len, distinct.values()), default=0)
    cells = np.zeros((2, most, len(RULES), len(ledger.relations)), np.intp)
    for (rule, name), chosen in distinct.items():
        if (beyond := (chosen >= (layers, heads)).any(axis=1)).any():
            layer, head = chosen[beyond.argmax()]
            raise LedgerError(
                f"head {layer}-{head} was chosen for {name}, but the ledger has {layers} layers of {heads} "
                "heads: choose on a ledger of the same model"
            )
        cells[:, : len(chosen), rule, ledger.relations.index(name)] = chosen.T
    return cells


def _distinct(heads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct ones of heads (k, 2), in order, and for each of them which that is (k,)."""
    numbers, which = np.unique(heads @ (1 << 32, 1), return_inverse=True)  # much faster than over an axis
    return np.stack(np.divmod(numbers, 1 << 32), axis=-1), which


def published(ledger: RankLedger) -> Outcomes:
    """The published protocol: the heads are chosen on the scored data."""
    return apply(ledger, choose(ledger))


def held_out(validation: RankLedger, test: RankLedger, unread: Collection[int] = ()) -> Outcomes:
    """The held-out protocol: the heads are chosen on `validation` and scored on `test`.

    `unread`: the functions of `validation` that the model could not read.
    Raises what `check_alike` does.
    """
    check_alike(validation, test)
    return apply(test, choose_least(validation, test, unread) if len(unread) else choose(validation))


def check_alike(validation: RankLedger, test: RankLedger) -> None:
    """Raise LedgerError unless these are ledgers of the same model and settings, and of two splits."""
    one, other = (ledger.settings.get("settings", {}) for ledger in (validation, test))
    for name in sorted({*one, *other} - {"split", "labels", "limit"}):
        if one.get(name) != other.get(name):
            raise LedgerError(
                f"the heads were chosen with {name} {one.get(name)!r}, but are scored with {other.get(name)!r}: "
                "probe both splits in the same way"
            )
    if one and one["split"] == other["split"]:
        raise LedgerError(f"both ledgers are of the split {one['split']}: choose on another, such as validation")
