"""Mutants of the core that change nothing that anyone can see, each with the reason."""

from __future__ import annotations

EQUIVALENT: dict[str, dict[tuple[str, str], str]] = {
    "probing/attention/align.py": {
        (
            "behind = np.append(0, np.maximum.accumulate(np.where(space, 0, place + 1)))  # of the last that is no space",
            "behind = np.append(0, np.maximum.accumulate(np.where(space, -1, place + 1)))  # of the last that is no space",
        ): "the end is at least the begin, which is at least 0",
    },
    "probing/evidence/baselines.py": {
        (
            "chosen = int(gained > 0) if gained else chosen",
            "chosen = int(gained > -1) if gained else chosen",
        ): "a whole number other than 0",
    },
    "probing/evidence/statistics.py": {
        (
            "close = 1e-9 * np.maximum(np.abs(score), 1)  # equal means may differ in their last digits",
            "close = 1e-9 * np.maximum(np.abs(score), 2)  # equal means may differ in their last digits",
        ): "a tolerance of rounding, which is far smaller",
    },
}
"""Module -> the changed lines before and after, without indentation -> why nothing changes."""
