"""The benchmark's protocol (Shen et al. 2022, section 4): splits, rules, directions, protocols, k
and baselines.

Only constants and no imports, so that every module can use them. The metric repeats those that it
needs, because the Hub loads it without this package; a test keeps the two equal.
"""

from __future__ import annotations

ENGINES = ("local", "ray")
"""Where functions are labelled: on this computer or a cluster."""

SPLITS = ("validation", "test")
"""The splits of a dataset. Scores are computed on `test`; held-out scores choose attention heads on
`validation`."""

CARD, SUMS = "README.md", "SHA256SUMS"
"""Files of a dataset: its card, and the checksums of all others."""

MARKER = "<!-- Made by `codesyntax build`, which replaces this folder as a whole. -->"
"""A line in every card; `build` may replace a folder whose card has it."""

RULES = ("first", "any", "last")
"""Which token of the dependent counts."""

DIRECTIONS = HEAD_TO_DEPENDENT, DEPENDENT_TO_HEAD = ("head-to-dependent", "dependent-to-head")
"""Whose row of attention is read: the head token's, to predict the dependent (as published), or the
dependent's, to predict the head token."""

PROTOCOLS = HELD_OUT, PUBLISHED = ("held-out", "published")
"""Where the attention heads are chosen: on the split `validation`, or, as in the paper, on the
scored data itself."""

BEYOND_OFFSET = "beyond-offset"
"""Held-out scores of the edges that do not lie at the best offset of their relation."""

EDITS = {
    "rename-words": "each word of an identifier is another of the same length, from other functions",
    "rename-nonsense": "each word of an identifier is a pronounceable one of the same length that is none",
    "rename-letters": "each identifier is one letter, or two where there are more identifiers than letters",
    "literals": "the words in strings and the digits of numbers are others",
    "layout": "indentation is doubled, and blank lines and comments are put in",
    "brackets": "expressions have up to three pairs of redundant brackets",
    "distance": "the same, and calls have further arguments, and statements that do nothing stand between the others",
}
"""The change that each edit (`codesyntax_dataset.edits`) makes to a function, in words."""

KS = range(1, 21)
"""The k of the published curves (Figure 4)."""

TABLE_KS = ("1", "3", "10", "20")
"""The k of the published tables, as keys of results."""

BASELINES = ("offset", "keyword", "context", "combined")
"""What needs no model, in the order of tables. `combined` is the best of the others, for each
relation and k; by the protocol *published*, and in the paper, the better of the first two."""

BEST_BASELINE = BASELINES[-1]

PAPER_LENGTH = 511
"""A function is used only if it has at most so many sub-tokens, special tokens included (section
4)."""

ATTENTION = "attention"
"""What heads are ranked by: attention weights."""

CONTROLS = RANDOM_WEIGHTS, REDRAWN_DEPENDENTS, CONTROL_TASK = (
    "random-weights",
    "redrawn-dependents",
    "control-task",
)
"""The controls that a probe can be run with, see `probing.runs.data`; random attention needs no
model."""
