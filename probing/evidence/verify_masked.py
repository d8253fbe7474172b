"""Verify a masking result: some functions are masked and restored again, and compared with its ledger.

*Which functions.* Drawn without replacement, with a probability proportional to their share of the means of the node
types, the same weight for each type; every type is drawn at least once.

*What is compared.* Every copy of these functions. Seeds and numbers of masked sub-tokens must be equal; hits and
similarities, too, unless rounding could decide a prediction (`Filled.unsure`), as on another machine, and
log-probabilities up to rounding. One copy that differs by more rejects the result. If what differs within these bounds
favours one arm by more than MOST_BIASED standard deviations over functions, the result is rejected, too.

*What a forger can gain.* As in `probing.evidence.verify`: an invented share g of a mean goes undetected with a
probability of at most exp(-g n / 2), where n functions are drawn. Copies that rounding can decide are one in a hundred
for real models; a model made to find all sub-tokens equally likely could hide more, but restores nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tqdm.auto import tqdm

from probing.evidence.checks import MOST_BIASED, ROUNDED, Criterion, Verifier, in_deviations, without_replacement
from probing.prediction.ledger import HITS, SIMILARITIES, MaskingLedger
from probing.prediction.mask import MaskedFunction, Masking

_EXACT = ("function", "node_type", "copy", "seed", "masked")


class CopiesVerifier(Verifier[Masking]):
    """Compares restored copies."""

    COUNTED = ("skips", "dropped")

    def unlike(self) -> list[Criterion]:
        theirs, ours = self.made.run.parser, self.experiment.provenance.run.parser
        if theirs == ours:
            return []
        return [Criterion("parser", None, f"the trees are of {theirs}, here are {ours}: install these versions")]

    def counted(self) -> list[Criterion]:
        copies = {function.index: function.copies for function in self.experiment.functions}
        claimed = dict(zip(*(part.tolist() for part in np.unique(self.ledger.rows["function"], return_counts=True))))
        found = f"{len(self.ledger)} copies of {len(claimed)} functions"
        return [*super().counted()[:-1], Criterion("copies", claimed == copies, found)]

    def draw(self, number: int, rng: np.random.Generator) -> np.ndarray:
        return np.array(sorted(_draw(self.ledger, number, rng)))

    def compare(self, functions: Sequence[MaskedFunction]) -> Criterion:
        return _restored_again(self.ledger, self.experiment, functions)


def _draw(ledger: MaskingLedger, number: int, rng: np.random.Generator) -> set[int]:
    """Draw at least `number` functions, by their share of the node types, including one of every type."""
    first = ledger.rows[ledger.rows["copy"] == 0]
    functions, place = np.unique(first["function"], return_inverse=True)
    size = np.bincount(first["node_type"])
    weight = np.bincount(place, weights=1 / size[first["node_type"]])
    drawn = set(functions[without_replacement(weight / weight.sum(), number, rng)].tolist())
    for node_type in np.unique(first["node_type"]):
        holding = first["function"][first["node_type"] == node_type]
        if not drawn & set(holding.tolist()):
            drawn.add(int(rng.choice(holding)))
    return drawn


def _restored_again(ledger: MaskingLedger, masking: Masking, drawn: Sequence[MaskedFunction]) -> Criterion:
    """Whether the copies of the drawn functions come out again, except for unbiased rounding."""
    parts = [
        masking.rows(drawn[at : at + masking.PART], tqdm(disable=True)) for at in range(0, len(drawn), masking.PART)
    ]
    again = np.concatenate([part.rows for part, _ in parts])
    order = np.lexsort((again["copy"], again["node_type"], again["function"]))
    ours, unsure = again[order], np.concatenate([counts for _, counts in parts])[order]
    theirs = ledger.only(np.array([function.index for function in drawn])).rows
    text = f"{len(drawn)} functions masked again, "
    wrong = np.logical_or.reduce([theirs[name] != ours[name] for name in _EXACT])
    for name in HITS:
        wrong |= np.abs(theirs[name] - ours[name]) > unsure
    wrong |= np.abs(theirs["log_probability"] - ours["log_probability"]) > ROUNDED
    other = np.logical_or.reduce([~np.isclose(theirs[name], ours[name], 0, 1e-9, True) for name in SIMILARITIES])
    wrong |= other & (unsure == 0)
    if count := int(wrong.sum()):
        row = theirs[wrong.argmax()]
        where = f"copy {row['copy']} of {ledger.node_types[row['node_type']]} in function {row['function']}"
        return Criterion(
            "copies again", False, f"{text}{count} of {len(ours)} differ by more than rounding, as {where}"
        )
    bias = _bias(theirs, ours)
    if bias > MOST_BIASED:
        return Criterion("copies again", False, f"{text}differences favour one arm by {bias:.1f} standard deviations")
    return Criterion("copies again", True, f"{text}{int(other.sum())} of {len(ours)} differ, all of them by rounding")


def _bias(theirs: np.ndarray, ours: np.ndarray) -> float:
    """By how many standard deviations over functions the differences favour an arm, by any number."""
    starts = np.flatnonzero(np.diff(ours["function"], prepend=-1))
    most = 0.0
    for name in (*HITS, "log_probability", *SIMILARITIES):
        gained = np.nan_to_num(theirs[name] - ours[name])
        for arm in (ours["copy"] == 0, ours["copy"] > 0):
            most = max(most, float(np.abs(in_deviations(np.add.reduceat(np.where(arm, gained, 0.0), starts)))))
    return most
