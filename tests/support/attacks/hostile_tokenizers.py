"""Tokenizers that read less than they could: each changes that of an honest model, to be scored higher.

What is skipped, split, padded or dropped counts in the whole split all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerBase

from codesyntax_metric.topk_uas import NOT_IN_MEAN, RULES
from probing.evidence.protocols import apply, choose
from probing.instruments.attention.ledger import RankLedger

_LONG = "x " * 600
_BEGIN = 60  # characters that tell a function from others

Change = Callable[[Tokenizer], Any]


def changed(tokenizer: PreTrainedTokenizerBase, change: Change) -> PreTrainedTokenizerBase:
    change(tokenizer.backend_tokenizer)
    return tokenizer


def normalized(*first: normalizers.Normalizer) -> Change:
    """These before its own normalizer."""

    def change(tokenizer: Tokenizer) -> None:
        own = [tokenizer.normalizer] if tokenizer.normalizer else []
        tokenizer.normalizer = normalizers.Sequence([*first, *own])

    return change


def split(pattern: str, behavior: str = "isolated", own: bool = True) -> Change:
    """Split at a pattern, before its own splitting or instead of it."""

    def change(tokenizer: Tokenizer) -> None:
        kept = [tokenizer.pre_tokenizer] if own and tokenizer.pre_tokenizer else []
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Split(Regex(pattern), behavior), *kept]
        )

    return change


def skipping(functions: Sequence[str]) -> Change:
    """Too long to be read: the functions that begin so."""
    return normalized(
        *(normalizers.Replace(code[:_BEGIN], _LONG + code[:_BEGIN]) for code in functions)
    )


def skipping_words(word: str) -> Change:
    return normalized(normalizers.Replace(Regex(rf"\b{word}\b"), _LONG))


def replacing(pattern: str, by: str) -> Change:
    return normalized(normalizers.Replace(Regex(pattern), by))


ALWAYS: dict[str, Change] = {
    "skips functions with while": skipping_words("while"),
    "skips functions with lambda": skipping_words("lambda"),
    "skips functions with try": skipping_words("try"),
    "skips functions with raise": skipping_words("raise"),
    "splits into characters": split("."),
    "splits at every second character": split(r"..", "isolated"),
    "splits off digits": split(r"\d"),
    "merges lines": split("\n", "removed", own=False),
    "merges the whole function": split("\x00", own=False),
    "pads between words": replacing(" ", " [PAD] "),
    "pads behind each line": replacing("\n", "\n<pad> "),
    "pads to 512": lambda tokenizer: tokenizer.enable_padding(length=512),
    "cuts at 64": lambda tokenizer: tokenizer.enable_truncation(64),
    "drops brackets": replacing(r"[()\[\]]", ""),
    "drops names": replacing(r"\bself\b", ""),
    "one name for all": replacing(r"\b[a-z_]{4,}\b", "x"),
}
"""Name -> the change; of each model."""


def of(
    test: RankLedger, validation: RankLedger, codes: tuple[Sequence[str], Sequence[str]]
) -> dict[str, Change]:
    """The same and five that know what an honest model finds: they skip functions of `test` of which its heads find
    least, and of `validation` those without which the heads are chosen that are better on `test`; `codes` of both."""
    hits = apply(test, choose(validation)).hits
    lost = np.zeros(len(hits.clusters))
    for name in hits.counted:
        group = hits.groups[name]
        lost[group.places] += (group.n - group.sums["model"][0]) / group.total
    hard = [codes[0][place] for place in hits.clusters[lost.argsort()[::-1]]]
    electing = [codes[1][place] for place in elected(test, validation, 5)]
    return {
        "skips the hardest function": skipping(hard[:1]),
        "skips a quarter of the functions": skipping(hard[: len(hard) // 4]),
        "skips functions that choose heads": skipping(electing),
        "skips the longest functions that choose heads": skipping(
            [codes[1][place] for place in longest(test, validation)]
        ),
        "skips both": skipping(hard[:3] + electing[:2]),
        **ALWAYS,
    }


def elected(test: RankLedger, validation: RankLedger, most: int) -> list[int]:
    """Functions of `validation`, one after the other, without which the held-out score (first, k = 1) rises most."""
    score, kept = _score(test, validation), np.unique(validation.function)
    for _ in range(most):
        kept = np.delete(
            kept, np.argmax([score(np.delete(kept, place)) for place in range(len(kept))])
        )
    return np.setdiff1d(validation.function, kept).tolist()


def longest(test: RankLedger, validation: RankLedger) -> list[int]:
    """The longest functions of `validation`, so many that it rises most."""
    functions, first = np.unique(validation.function, return_index=True)
    ordered = functions[np.argsort(validation.tokens[first])]
    score = _score(test, validation)
    kept = 1 + int(np.argmax([score(ordered[:number]) for number in range(1, len(ordered))]))
    return ordered[kept:].tolist()


def _score(test: RankLedger, validation: RankLedger) -> Callable[[np.ndarray], float]:
    """Functions of `validation` -> the sum over relations of what heads that are chosen on them find of `test`."""
    found = [
        np.asarray(ledger.ranks[RULES.index("first")]).reshape(len(ledger), -1) == 0
        for ledger in (test, validation)
    ]
    functions, tables = np.unique(validation.function), []
    for name in sorted({*test.relations} & {*validation.relations} - {*NOT_IN_MEAN}):
        on_test, on_validation = (
            ledger.relation == ledger.relations.index(name) for ledger in (test, validation)
        )
        if on_test.any() and on_validation.any():
            hits = np.zeros((len(functions), found[1].shape[1]), int)
            np.add.at(
                hits,
                np.searchsorted(functions, validation.function[on_validation]),
                found[1][on_validation],
            )
            tables.append((found[0][on_test].mean(axis=0), hits))

    def score(kept: np.ndarray) -> float:
        rows = np.isin(functions, kept)
        return sum(float(scored[hits[rows].sum(axis=0).argmax()]) for scored, hits in tables)

    return score
