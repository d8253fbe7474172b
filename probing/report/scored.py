"""What tables and figures of attention share: a row is a place in the frame, where columns and
curves are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from codesyntax_dataset.protocol import BEST_BASELINE, HELD_OUT, PUBLISHED
from probing.evidence.baselines import KINDS
from probing.evidence.protocols import in_mean
from probing.evidence.scores import MEAN, RANDOM_BEST, RANDOM_HEAD
from probing.report.findings import Findings, Score
from probing.report.words import RULE, K, number_of
from probing.runs.clusters import CLUSTERS, FUNCTION, LEAST_REPOSITORIES
from probing.stats.intervals import FEW_CLUSTERS


class ScoredRow(NamedTuple):
    """A row of a table: who is scored on a config, by a rule and k, on a relation or as the mean
    over relations; by a protocol.
    """

    findings: Findings
    name: str
    rule: str = RULE
    k: str = K
    group: str = MEAN
    protocol: str = HELD_OUT

    def get(self, key: str) -> Any:
        """The same by another protocol; or the score of one of KINDS."""
        if key in KINDS:
            return self._score(key)
        return self._replace(protocol=key)

    def _score(self, name: str) -> Score | None:
        return self.findings.score(name, self.protocol, self.rule, self.k, self.group)

    @property
    def score(self) -> Score | None:
        return self._score(self.name)

    @property
    def best_baseline(self) -> Score | None:
        return self._score(BEST_BASELINE)

    @property
    def difference(self) -> Score | None:
        """To the best baseline; None if it was not compared."""
        return self.findings.difference(self.name, self.protocol, self.rule, self.k, self.group)

    @property
    def head(self) -> str | None:
        """The attention head as layer-head; None if it found nothing, so that no head is the
        best."""
        return self.score.chosen or None if self.score else None

    @property
    def compared_with(self) -> str | None:
        """Which baseline is the best one, if there is a difference to it."""
        best = self.best_baseline
        return best.chosen if best and self.difference else None

    @property
    def in_mean(self) -> dict[str, int]:
        """The relations in the mean, with their edges: all who are scored have the same."""
        return self.findings.in_mean(self.findings.subjects[0].name, self.protocol)

    @property
    def relations(self) -> int:
        return len(self.in_mean)

    @property
    def edges(self) -> int:
        return sum(self.in_mean.values())

    @property
    def marked(self) -> list[str]:
        """The cell of the relation."""
        return with_marks(self.group, self.score.functions if self.score else FEW_CLUSTERS)

    @property
    def kind(self) -> str:
        return self.findings.kinds[self.name]

    @property
    def title(self) -> str:
        """Who is scored, in words."""
        if self.name == RANDOM_HEAD:
            return "random attention, a head on average"
        if self.name == BEST_BASELINE:
            return "best baseline"
        drawn = self.findings.score(self.name, PUBLISHED) if self.name == RANDOM_BEST else None
        return f"{self.name}, {drawn.chosen}" if drawn else self.name


def tests_in_words(all_findings: Sequence[Findings]) -> str:
    """The number of tests for which p-values of means are corrected, in words."""
    numbers = sorted({findings.tested for findings in all_findings if findings.tested})
    several = any(findings.trainings for findings in all_findings)
    words = " or ".join(map(str, numbers)) + (" model" if numbers == [1] else " models")
    return words + ", of which each checkpoint is one" * several


def too_narrow_in_words(all_findings: Sequence[Findings]) -> str:
    """That intervals over functions are too narrow for functions of other repositories, which
    resemble those of one less than each other."""
    origins = {findings.origins for findings in all_findings} - {0}
    if not origins:
        return ""
    numbers = " and ".join(map(str, sorted(origins)))
    source = f"functions of {numbers} {'repository' if origins == {1} else 'repositories'}"
    if min(origins) < LEAST_REPOSITORIES:
        return f" Intervals are over {source}, and too narrow for others."
    return f" Intervals are over {source}: --cluster repository."


def chosen_on_in_words(all_findings: Sequence[Findings]) -> str:
    """On what the choice of heads and rules rests, of each config, and whether intervals cover
    others."""
    clauses = []
    for findings in all_findings:
        functions, repositories, drawn = findings.chosen_on
        source = f" of {repositories} {'repository' if repositories == 1 else 'repositories'}"
        covered = "intervals do not cover others"
        if drawn:
            there = " there" * (drawn == CLUSTERS[FUNCTION])
            covered = f"intervals cover other {drawn}{there}"
        number = number_of(functions, "function") + source * bool(repositories)
        several = f" ({findings.title})" * (len(all_findings) > 1)
        clauses.append(f"{number}{several}, {covered}")
    return "; ".join(clauses)


def with_marks(relation: str, functions: int) -> list[str]:
    """The cell of a relation in so many functions: its name, and what keeps it out of means or
    makes it unreliable."""
    published = in_mean(relation, functions, PUBLISHED)
    marks = {
        "few functions": functions < FEW_CLUSTERS,
        "not in mean": not published,
        "not in mean held-out": published and not in_mean(relation, functions, HELD_OUT),
    }
    return [relation, "; ".join(filter(marks.get, marks))]
