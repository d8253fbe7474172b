"""What one model knows on one config, to look at: a map of its heads, a line for each relation that
opens two functions, and its scores over k and by distance."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset.protocol import HELD_OUT, KS
from codesyntax_metric.topk_uas import NOT_IN_MEAN
from probing.evidence.baselines import KINDS, kinds_of
from probing.report.document import Table, verdict
from probing.report.findings import Findings, Score, Subject
from probing.report.functions import OpenedFunctions
from probing.report.kinds import DIFFERENCE, PERCENT, P
from probing.report.scored import ScoredRow
from probing.report.words import RULE, K

GROUPS = {
    "blocks": "If For While Do Try With Switch Case Default LabeledStatement Defer Go",
    "calls": "Call New Return Raise Yield Await Spread Send Lambda",
    "assignment": "Assign AugAssign",
    "access": "Attribute Subscript Slice Range",
    "operators": "BinOp BoolOp Compare InfixExpr InstanceofExpr UnaryOp IfExp",
    "collections": "Dict DictComp ListComp SetComp GeneratorExp comprehension",
    "tree": "children",
}
"""Groups of relations -> their constructs, as a relation's name begins; those of sentences are in
none."""

WORDS = "words"

_GROUP_OF = {construct: name for name, line in GROUPS.items() for construct in line.split()}

DISTANCES = (1, 2, 3, 5, 9, 17, 33)
"""Where ranges of distances begin, in tokens between a head token and its dependent."""


def group_of(relation: str) -> str:
    return _GROUP_OF.get(relation.partition(":")[0], WORDS)


class RelationLine(NamedTuple):
    """A relation: its row, the score of each baseline, and the difference to the best one in words."""

    row: ScoredRow
    group: str
    rivals: dict[str, Score | None]
    difference: str
    p: str
    verdict: str


class HeadCell(NamedTuple):
    """A head on the map. `look`: the class of its colour; `strength`: of the colour, from 0 to 1."""

    text: str = ""
    look: str = ""
    strength: float = 0
    title: str = ""


class Curve(NamedTuple):
    """A curve: its class, its name and a percentage for each place, None for gaps."""

    look: str
    name: str
    values: list[float | None]


class Chart(NamedTuple):
    """Curves over places at equal distances; `below`: what the places are."""

    label: str
    below: str
    places: list[str]
    curves: list[Curve]


@dataclass(frozen=True)
class Atlas:
    """The part of a page on one model. `table`: all numbers, as a file."""

    findings: Findings
    model: Subject
    functions: OpenedFunctions
    table: Table

    @property
    def name(self) -> str:
        return self.findings.file("atlas", self.model)

    @property
    def title(self) -> str:
        return f"{self.model.name} on {self.findings.place}"

    @cached_property
    def rows(self) -> list[ScoredRow]:
        """The relations with one guess: those in which the heads differ significantly from the best
        baseline first, then by the difference."""
        names = self.findings.relations(self.model.name, HELD_OUT)
        rows = [ScoredRow(self.findings, self.model.name, RULE, K, name) for name in names]

        def order(row: ScoredRow) -> tuple[bool, float, str]:
            significant = verdict(row.difference) in ("higher", "lower")
            return not significant, -row.difference.value if row.difference else 0, row.group

        return sorted(rows, key=order)

    @property
    def kinds(self) -> list[str]:
        """The baselines of the config."""
        return [kind for kind in KINDS if kind in kinds_of(self.findings.config)]

    @property
    def lines(self) -> Iterator[RelationLine]:
        for row in self.rows:
            difference = row.difference
            yield RelationLine(
                row,
                group_of(row.group),
                {kind: row.get(kind) for kind in self.kinds},
                DIFFERENCE.show(difference.value) if difference else "–",
                f"p {P.show(difference.p)}" if difference else "",
                verdict(difference),
            )

    # ----------------------------------------------------------------------------------------------- the map

    @cached_property
    def best_of(self) -> dict[tuple[int, int], list[ScoredRow]]:
        """Layer and head -> the relations for which it was chosen, the best found first."""
        best = defaultdict(list)
        for row in sorted(self.rows, key=lambda row: -(row.score.value if row.score else 0)):
            if row.head:
                layer, head = map(int, row.head.split("-"))
                best[layer, head].append(row)
        return best

    @property
    def map(self) -> list[list[HeadCell]]:
        """The heads, layer by layer: for how many relations each is the best one."""
        cells = [[HeadCell()] * self.model.heads for _ in range(self.model.layers)]
        for (layer, head), rows in self.best_of.items():
            (group, _), *_ = Counter(group_of(row.group) for row in rows).most_common(1)
            scores = {row.group: row.score.value for row in rows if row.score}
            each = ", ".join(f"{name} {PERCENT.show(value)} %" for name, value in scores.items())
            strength = 0.25 + 0.75 * max(scores.values()) / 100
            title = f"head {layer}-{head}: {each}"
            cells[layer][head] = HeadCell(str(len(rows)), f"g-{group}", strength, title)
        return cells

    @property
    def groups(self) -> list[str]:
        """Those of the relations, in the order of GROUPS."""
        present = {group_of(row.group) for row in self.rows}
        return [name for name in (*GROUPS, WORDS) if name in present]

    @cached_property
    def data(self) -> dict[str, Any]:
        """What the script draws: of each relation what every head finds (percent, layer by layer),
        and the two functions."""
        counts = self.model.evidence.probed.test.ledger.counts()
        relations = []
        for row in self.rows:
            hits = counts.hits(row.group, RULE, int(K))[..., -1].reshape(-1)
            percent = (100 * hits / counts.edges(row.group)).round().astype(int).tolist()
            pictures = self.functions.pictures(self.model, row.group)
            relations.append(
                {
                    "name": row.group,
                    "group": group_of(row.group),
                    "head": row.head,
                    "percent": percent,
                    "pictures": [picture._asdict() for picture in pictures],
                }
            )
        return {"heads": self.model.heads, "relations": relations}

    # -------------------------------------------------------------------------------------------- the charts

    @property
    def over_k(self) -> Chart:
        """The means over relations, held-out, by the number of guesses."""
        curves = []
        for look, name in (("heads", self.model.name), *self._rivals):
            scores = [self.findings.score(name, HELD_OUT, RULE, str(k)) for k in KS]
            shown = "heads" if look == "heads" else name
            curves.append(Curve(look, shown, [score and score.value for score in scores]))
        return Chart("Top-k UAS over k", "guesses (k)", list(map(str, KS)), curves)

    @property
    def _rivals(self) -> list[tuple[str, str]]:
        """The class of each baseline, and its name."""
        return [(f"rival-{number}", kind) for number, kind in enumerate(self.kinds)]

    @property
    def by_distance(self) -> Chart:
        """The share of edges that are found with one guess, by the distance of the dependent."""
        test = self.model.evidence.probed.test.ledger
        counted = np.array([name not in NOT_IN_MEAN for name in test.relations])[test.relation]
        ranges = np.searchsorted(DISTANCES, np.abs(test.first - test.head), side="right")
        names = [
            str(begin) if begin + 1 == end else f"{begin}–{end - 1}"
            for begin, end in pairwise(DISTANCES)
        ]
        curves = []
        for look, name, hits in zip(
            ("heads", "best"), ("heads", "best baseline"), self.functions.hits(self.model)
        ):
            values: list[float | None] = []
            for number in range(1, len(DISTANCES) + 1):
                inside = hits[counted & (ranges == number)]
                values.append(100 * float(inside.mean()) if len(inside) >= FEW_EDGES else None)
            curves.append(Curve(look, name, values))
        names.append(f"{DISTANCES[-1]}+")
        return Chart("Edges found by distance", "tokens from head to dependent", names, curves)

    @property
    def summary(self) -> str:
        """What the lines show, in a sentence."""
        verdicts = Counter(line.verdict for line in self.lines)
        return (
            f"Of {len(self.rows)} relations, the heads find more than the best baseline in "
            f"{verdicts['higher']}, and less in {verdicts['lower']}; the others do not differ significantly."
        )


FEW_EDGES = 20
"""Of fewer edges no share is drawn."""
