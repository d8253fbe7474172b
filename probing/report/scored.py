"""What tables and figures of attention share: a row is a place in the frame, and columns and curves
are read there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from codesyntax_dataset.protocol import HELD_OUT, KS, PUBLISHED
from codesyntax_metric.topk_uas import NOT_IN_MEAN
from probing.evidence.gather import PUBLISHED_FIRST
from probing.evidence.protocols import Comparison
from probing.evidence.scores import MEAN, beyond_protocol
from probing.report.document import Cell, Column, separated, verdict
from probing.report.figures import Dots, stacked
from probing.report.findings import MEANS, RULE, Findings, K, Score, Subject
from probing.report.kinds import CHOSEN, COUNT, DIFFERENCE, NAME, PERCENT, SCORE
from probing.runs.settings import Settings


class Place(NamedTuple):
    """A row of a table: who is scored on a config, by a rule and k, on a relation or as the mean
    over relations.

    `avoided`: how many of the best offsets hard edges avoid, in tables of these. Protocols are by
    default theirs, and systems the one that is scored here.
    """

    findings: Findings
    name: str
    rule: str = RULE
    k: str = K
    group: str = MEAN
    avoided: int = 1

    @property
    def protocol(self) -> str:
        return beyond_protocol(self.avoided)

    def score(self, protocol: str = "", name: str = "") -> Score | None:
        return self.findings.score(
            name or self.name, protocol or self.protocol, self.rule, self.k, self.group
        )

    def value(self, protocol: str = "", name: str = "") -> float | None:
        entry = self.score(protocol, name)
        return entry.value if entry else None

    def difference(self, protocol: str = "") -> list[float] | None:
        """[difference, low, high, p] to the best baseline; None if it was not compared."""
        entry = self.findings.difference(
            self.name, protocol or self.protocol, self.rule, self.k, self.group
        )
        return entry.tested if entry else None

    @property
    def config(self) -> str:
        return self.findings.title

    @property
    def settings(self) -> Settings:
        return self.findings.subject[self.name].settings

    @property
    def kind(self) -> str:
        return self.findings.kinds.get(self.name, "paper")

    @property
    def functions(self) -> int | None:
        return self.findings.functions_of(self.name)

    @property
    def title(self) -> str:
        return self.findings.title_of(self.name)


FILTERS = [Column("rule"), Column("k")]
"""The first columns of tables by rule and k."""

CONFIG = Column("config", NAME)
SCORED = [Column("name", of=lambda row: row.title), Column("kind")]
FUNCTIONS = Column("functions", COUNT)


def _part(part: str, protocol: str, name: str = "") -> Callable[[Place], Cell]:
    """A part of a score of a row, None if there is none."""

    def cell(row: Place) -> Cell:
        entry = row.score(protocol, name)
        return None if entry is None else getattr(entry, part)

    return cell


def score(protocol: str, title: str = "score", name: str = "", group: str | None = None) -> Column:
    """The score with its interval."""
    return Column(
        title, SCORE, protocol if group is None else group, of=_part("cell", protocol, name)
    )


def value(protocol: str, title: str, name: str, group: str | None = None) -> Column:
    """The score of a system without its interval."""
    return Column(
        title, PERCENT, protocol if group is None else group, of=_part("value", protocol, name)
    )


def picked(protocol: str, kind: str) -> Column:
    """The score of a baseline, and which offsets or keywords it is."""
    return Column(kind, CHOSEN, protocol, of=_part("with_choice", protocol, kind))


def head(protocol: str) -> Column:
    """The attention head as layer-head; empty if it found nothing, so that no head is the best."""
    return Column("head", group=protocol, of=_part("head", protocol))


def counted(title: str, protocol: str, part: str) -> Column:
    """The number of clusters or items of a score."""
    return Column(title, COUNT, of=_part(part, protocol))


def difference(protocol: str, title: str = "difference", group: str | None = None) -> Column:
    """The difference to the best baseline."""
    group = protocol if group is None else group
    return Column(title, DIFFERENCE, group, of=lambda row: row.difference(protocol))


def said(protocol: str) -> Column:
    """What the test of the difference says."""
    return Column("verdict", NAME, protocol, of=lambda row: verdict(row.difference(protocol)))


def mean_columns(mean: str) -> list[Column]:
    """The columns of one of MEANS."""
    return [score(mean), difference(mean, "vs best baseline")]


def shown_means(all_findings: Sequence[Findings]) -> tuple[str, ...]:
    """The means to show: both protocols and, if *held-out* lacks relations of a config,
    SAME_RELATIONS between them."""
    lacks = any(findings.size(PUBLISHED) != findings.size(HELD_OUT) for findings in all_findings)
    return MEANS if lacks else PUBLISHED_FIRST


def tests_in_words(all_findings: Sequence[Findings]) -> str:
    """The number of tests for which p-values are corrected, in words."""
    numbers = sorted({len(findings.models) for findings in all_findings if findings.models})
    return " or ".join(map(str, numbers)) + (" model" if numbers == [1] else " models")


def gains(findings: Findings, model: Subject) -> list[str]:
    """The relations that are not in few functions, largest held-out gain over the best baseline
    first."""
    gained = {}
    for name, entry in findings.relations(model.name, HELD_OUT).items():
        difference = findings.difference(model.name, HELD_OUT, group=name)
        if difference is not None and not entry.few_functions:
            gained[name] = difference.value
    return sorted(gained, key=lambda name: (-gained[name], name))


def difference_on(
    comparison: Comparison, relation: str, rule: str = RULE, k: str = K
) -> list[float] | None:
    """[difference, low, high, p] on a relation, p corrected over relations; None if it was not
    compared there."""
    return (
        list(comparison.on(relation, rule, int(k))[:4])
        if relation in comparison.relations
        else None
    )


def mean_difference(comparison: Comparison, rule: str = RULE, k: str = K) -> list[float]:
    """[difference, low, high, p] of a mean over relations, p uncorrected."""
    return list(comparison.of_mean(rule, int(k))[:4])


def with_marks(relation: str, few_functions: bool = False) -> list[str]:
    """The cell of a relation: its name, and what keeps it out of the mean or makes it
    unreliable."""
    marks = {"few functions": few_functions, "not in mean": relation in NOT_IN_MEAN}
    return [relation, "; ".join(mark for mark, applies in marks.items() if applies)]


def curve(findings: Findings, name: str, mean: str, rule: str) -> np.ndarray:
    """The scores over k, as of `line`."""
    entry = {str(k): findings.score(name, mean, rule, str(k)) for k in KS}
    return line({rule: {k: score.cell for k, score in entry.items() if score}}, rule)


def line(scores: Mapping[str, Mapping[str, Cell]], rule: str) -> np.ndarray:
    """The curve of rule -> k -> cell: (3, k), or (1, k) if cells have no interval; NaN for missing
    ones."""
    bounded = stacked(scores[rule].get(str(k)) for k in KS)
    return bounded[:1] if np.isnan(bounded[1:]).all() else bounded


def dots(label: str, cells: Iterable[Sequence[float | None] | None], colour: str) -> Dots:
    """Differences, [difference, low, high, p] or None, as a figure draws them."""
    known = list(cells)
    filled = [cell is not None and cell[3] is not None and separated(cell[3]) for cell in known]
    return Dots(label, stacked(known), colour, filled)
