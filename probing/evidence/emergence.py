"""Emergence: what the heads of a model find at each checkpoint of its training, beside fixed offsets.

The scores are the held-out ones and those of hard edges (`probing.evidence.beyond`), each checkpoint with heads of its
own, by the rule `first` with one guess. All checkpoints are scored on the same functions, and so are the offsets, which
do not depend on the model: they are a line that training may or may not cross.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from codesyntax_dataset.protocol import KS
from codesyntax_metric.topk_uas import RULES
from probing.evidence.beyond import AVOIDED
from probing.evidence.gather import Evidence
from probing.evidence.outcomes import Outcomes
from probing.evidence.statistics import holm
from probing.evidence.uncertainty import compare, estimate

_RULE = RULES.index("first")


@dataclass(frozen=True)
class Course:
    """A score over the S checkpoints of a training, in percent.

    `scores`: (3, S), mean over relations with its 95 % interval; `offset`: that of the offset baseline on the same
    edges; `differences`: (4, S), to the offset baseline: the difference, its interval, and p, corrected (Holm) over the
    checkpoints; `relations`: relation -> scores (S,); `offsets`: relation -> that of the offset baseline.
    """

    scores: np.ndarray
    offset: float
    differences: np.ndarray
    relations: dict[str, np.ndarray]
    offsets: dict[str, float]

    def passes(self, level: float | None = None) -> int | None:
        """The first checkpoint from which on all intervals lie above `level`, by default above the offset baseline.

        None if the last one does not.
        """
        low = self.differences[1] if level is None else self.scores[1] - level
        (below,) = np.nonzero(~(low > 0))
        first = int(below[-1]) + 1 if len(below) else 0
        return first if first < len(low) else None


@dataclass(frozen=True)
class Emergence:
    """The training of one model: `steps` (S,), ascending.

    `edges`: the course over all edges; `hard`: that over the edges beyond the best offset of their relation, with the
    further offsets as baseline, None if there are too few; `chance`: the score of a guess on these, in percent.
    """

    model: str
    steps: list[int]
    edges: Course
    hard: Course | None
    chance: float


def emergence(checkpoints: Sequence[Evidence]) -> Emergence:
    """The course of a training from the evidence on its checkpoints, which share their functions."""
    ordered = sorted(checkpoints, key=step_of)
    first, rivals = ordered[0], ordered[0].rivals[AVOIDED[0]]
    beyond = [found for one in ordered if (found := one.beyond[AVOIDED[0]]) and found.in_mean]  # of all or of none
    hard, chance = None, float("nan")
    if rivals is not None and beyond:
        hard = _course([found.outcomes for found in beyond], rivals.of("offset", beyond[0]))
        chance = float(rivals.guessed(beyond[0])[_RULE, 0])
    return Emergence(
        model=first.probed.test.settings.model,
        steps=[step_of(one) for one in ordered],
        edges=_course([one.outcomes["held-out"] for one in ordered], first.baselines.outcomes["held-out"]["offset"]),
        hard=hard,
        chance=chance,
    )


def step_of(checkpoint: Evidence) -> int:
    step = checkpoint.probed.test.run.step
    assert step is not None
    return step


def _course(models: Sequence[Outcomes], offsets: Outcomes) -> Course:
    names = [name for name in models[0].relations if name in offsets.relations]
    models, offsets = [_one_guess(model, names) for model in models], _one_guess(offsets, names)
    estimates = [estimate(model) for model in models]
    compared = [compare(model, offsets) for model in models]
    p = holm(np.array([one.p_mean[0, 0] for one in compared]))
    baseline = estimate(offsets)
    scores = np.array([one.relations[0, 0, 0] for one in estimates])  # (S, R)
    kept = [place for place, name in enumerate(names) if models[0].in_mean[place]]
    return Course(
        scores=np.array([one.mean[:, 0, 0] for one in estimates]).T,
        offset=float(baseline.mean[0, 0, 0]),
        differences=np.vstack([np.array([one.difference.mean[:, 0, 0] for one in compared]).T, p]),
        relations={names[place]: scores[:, place] for place in kept},
        offsets={names[place]: float(baseline.relations[0, 0, 0, place]) for place in kept},
    )


def _one_guess(outcomes: Outcomes, relations: Sequence[str]) -> Outcomes:
    """The hits by the rule `first` at k = 1, on these relations."""
    return outcomes.only(relations).at(RULES[_RULE : _RULE + 1], KS[:1])
