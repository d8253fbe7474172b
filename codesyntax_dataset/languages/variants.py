"""The variants of the labels: of code, those of the paper and its ablations (Shen et al. 2022); of
sentences, two."""

from __future__ import annotations

from codesyntax_dataset.languages.language import Variant

PAPER = Variant("paper", "{configs} are the labels of the paper")
WITH_NEW_LINES = Variant("with_new_lines", "in `_with_new_lines` line breaks are tokens, too")
SKIP_SEMICOLON = Variant(
    "skip_semicolon", "in `_skip_semicolon` no dependent ends in `;`", never_predicted=";"
)
EXACT = Variant(
    "exact",
    "in {configs} heads and dependents are what the grammar says, closing brackets included",
    exact=True,
)
INTERPOLATED = Variant(
    "interpolated",
    "in {configs} they are the same, and expressions inside of strings are labelled, too",
    exact=True,
)

JOINED = Variant(
    "joined", "in {configs} the words of a sentence are joined by single spaces, as in the paper"
)
SPACED = Variant(
    "space_after",
    "in `_space_after` words are spaced as in the text, where `SpaceAfter=No` says so",
)
