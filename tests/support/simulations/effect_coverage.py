"""How often the intervals of effects hold, by simulation: what is true is known, because it was made up.

Unpaired: functions have seven confounders, made from one size; the longer a function, the more often it is treated, and
the lower its score, so that the naive difference is too low. Treating changes the score by an amount that depends on the
size, too. Paired: every function keeps a random share of its score when it is treated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from probing.evidence.effect import Effect, paired, unpaired

EFFECT, MORE = -0.1, -0.05  # of being treated: on a function of 60 words, and for each 30 words more
SIZE, SPREAD = 4.0, 0.5  # of the log-normal size in words
SLOPE = -0.2  # of the score, for each 30 words more
TRUTH = EFFECT + MORE * (np.exp(SIZE + SPREAD**2 / 2) - 60) / 30
PAIRED_TRUTH = 8 / 9 * (2 / 3 - 1)  # the means of the two beta distributions in `draw_paired`


def draw_unpaired(
    rng: np.random.Generator, functions: int, strength: float
) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Scores, which are treated, and confounders by name: (functions,) each.

    `strength`: how much the logarithm of the odds to be treated grows for each 30 words more.
    """
    size = rng.lognormal(SIZE, SPREAD, functions)
    words = rng.poisson(size)
    confounders = {
        "n_ast_errors": rng.poisson(0.2, functions),
        "ast_levels": 5 + rng.poisson(np.sqrt(size)),
        "n_ast_nodes": rng.poisson(3 * size),
        "complexity": 1 + rng.poisson(size / 20),
        "nloc": 1 + rng.poisson(size / 6),
        "token_counts": rng.poisson(2 * size),
        "words": words,
    }
    longer = (words - 60) / 30
    treated = rng.random(functions) < 1 / (1 + np.exp(-strength * longer))
    scores = 0.8 + SLOPE * longer + treated * (EFFECT + MORE * longer) + rng.normal(0, 0.1, functions)
    return scores, treated, confounders


def draw_paired(rng: np.random.Generator, functions: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores of the same functions, treated and not: (functions,) each."""
    control = rng.beta(8, 1, functions)
    return control * rng.beta(4, 2, functions), control


def draw_alike(rng: np.random.Generator, functions: int) -> tuple[np.ndarray, np.ndarray]:
    """As `draw_paired`, but which of the two is the treated one is random: treating has no effect."""
    both = np.array(draw_paired(rng, functions))
    swapped = rng.random(functions) < 0.5
    return np.where(swapped, both[::-1], both)[0], np.where(swapped, both[::-1], both)[1]


class Coverage(NamedTuple):
    """Over all simulations: the share of rows whose propensity is clipped, in percent; the mean bias of the naive difference and of the doubly robust estimate; in percent, how
    often the intervals hold the truth, those of placebos 0, and how often the paired test finds an effect at 5 % where
    there is none."""

    clipped: float
    naive_bias: float
    doubly_robust_bias: float
    naive: float
    weighted: float
    doubly_robust: float
    placebo: float
    paired: float
    falsely_found: float


def coverage(simulations: int, functions: int, strength: float, seed: int) -> Coverage:
    """Simulate so many times with so many functions: in either arm by `strength`, and in both."""
    rng = np.random.default_rng(seed)
    clipped, biases, held = [], [], []
    for _ in range(simulations):
        of_rows = unpaired(*draw_unpaired(rng, functions, strength), placebos=2, seed=int(rng.integers(2**31)))
        one, other = draw_paired(rng, functions)
        same, alike = draw_alike(rng, functions)
        of_pairs = paired({"a": one, "b": same}, {"a": other, "b": alike}, seed=int(rng.integers(2**31)))
        clipped.append(of_rows.overlap.clipped / functions)
        biases.append((of_rows.naive.estimate - TRUTH, of_rows.doubly_robust.estimate - TRUTH))
        held.append(
            (
                *(holds(effect, TRUTH) for effect in (of_rows.naive, of_rows.weighted, of_rows.doubly_robust)),
                of_rows.placebo.covered,
                holds(of_pairs["a"].effect, PAIRED_TRUTH),
                of_pairs["b"].p <= 0.05,
            )
        )
    return Coverage(
        100 * float(np.mean(clipped)), *np.mean(biases, axis=0).tolist(), *(100 * np.mean(held, axis=0)).tolist()
    )


def holds(effect: Effect, truth: float) -> bool:
    return effect.low <= truth <= effect.high
