"""How often the interval of a paired effect holds, by simulation: what is true is known, because it was made up.

Every function keeps a random share of its score when it is treated.
"""

from __future__ import annotations

import numpy as np

from probing.evidence.effect import paired

TRUTH = 8 / 9 * (2 / 3 - 1)
"""The effect: from the means of the two beta distributions in `draw_paired`."""


def draw_paired(rng: np.random.Generator, functions: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores of the same functions, treated and not: (functions,) each."""
    control = rng.beta(8, 1, functions)
    return control * rng.beta(4, 2, functions), control


def draw_alike(rng: np.random.Generator, functions: int) -> tuple[np.ndarray, np.ndarray]:
    """As `draw_paired`, but which of the two is the treated one is random: treating has no effect."""
    both = np.array(draw_paired(rng, functions))
    swapped = rng.random(functions) < 0.5
    return np.where(swapped, both[::-1], both)[0], np.where(swapped, both[::-1], both)[1]


def coverage(simulations: int, functions: int, seed: int) -> tuple[float, float]:
    """Percent of the simulations whose interval holds the truth, and in which the test finds an effect at 5 % where
    there is none."""
    rng = np.random.default_rng(seed)
    holds, falsely_found = [], []
    for _ in range(simulations):
        treated, control = draw_paired(rng, functions)
        same, alike = draw_alike(rng, functions)
        effects = paired(
            {"true": treated, "none": same},
            {"true": control, "none": alike},
            seed=int(rng.integers(2**31)),
        )
        _, low, high = effects["true"].effect
        holds.append(low <= TRUTH <= high)
        falsely_found.append(effects["none"].p <= 0.05)
    return 100 * float(np.mean(holds)), 100 * float(np.mean(falsely_found))
