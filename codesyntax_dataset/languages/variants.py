"""The variants of the published labels: those of the paper and its ablations (Shen et al. 2022)."""

from __future__ import annotations

from codesyntax_dataset.languages.language import Variant

PAPER = Variant("paper", "{configs} are the labels of the paper")
WITH_NEW_LINES = Variant("with_new_lines", "in `_with_new_lines` line breaks are tokens, too")
SKIP_SEMICOLON = Variant("skip_semicolon", "in `_skip_semicolon` no dependent ends in `;`", never_predicted=";")
