"""What one model knows on one config, to look at: a map of its heads, a line for each relation that
opens two functions, and its scores over k and by distance."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from markupsafe import Markup

from codesyntax_dataset.protocol import HELD_OUT, KS
from codesyntax_metric.topk_uas import NOT_IN_MEAN
from probing.evidence.baselines import KINDS, kinds_of
from probing.report import svg
from probing.report.document import Table, verdict
from probing.report.findings import Findings, Subject
from probing.report.functions import Example, Functions
from probing.report.kinds import DIFFERENCE, PERCENT, P
from probing.report.scored import ScoredRow
from probing.report.svg import Cell, Curve, Mark
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


@dataclass(frozen=True)
class Line:
    """A relation: its `cells`, the number of its place in the data of the script, and how the two
    functions are that it opens."""

    relation: str
    marks: str
    group: str
    example: Example | None
    head: str
    drawn: Markup
    difference: str
    p: str
    verdict: str


@dataclass(frozen=True)
class Atlas:
    """The part of a page on one model. `table`: all numbers, as a file."""

    findings: Findings
    model: Subject
    functions: Functions
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
            difference = row.difference
            if difference is None:
                return True, 0, row.group
            return (
                verdict(difference_cell(row)) in ("", "not significant"),
                -difference.value,
                row.group,
            )

        return sorted(rows, key=order)

    @property
    def kinds(self) -> list[str]:
        """The baselines of the config."""
        return [kind for kind in KINDS if kind in kinds_of(self.findings.config)]

    @property
    def lines(self) -> Iterator[Line]:
        for row in self.rows:
            known = row.score
            dot = Mark(f"g-{group_of(row.group)}", "heads", *(known[:3] if known else (None,)))
            marks = []
            for number, kind in enumerate(self.kinds):
                score = row.get(kind)
                marks.append(Mark(f"rival-{number}", kind, score and score.value))
            cell = difference_cell(row)
            name, noted = row.marked
            yield Line(
                name,
                noted,
                group_of(name),
                self.functions.examples.get(name),
                row.head or "–",
                svg.scale(dot, marks),
                DIFFERENCE.show(cell[0]) if cell else "–",
                f"p {P.show(cell[3])}" if cell else "",
                verdict(cell),
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
    def map(self) -> Markup:
        """Layers and heads: for how many relations each is the best one."""
        cells = {}
        for (layer, head), rows in self.best_of.items():
            (group, _), *_ = Counter(group_of(row.group) for row in rows).most_common(1)
            best = max(row.score.value for row in rows if row.score)
            said = ", ".join(
                f"{row.group} {PERCENT.show(row.score.value)} %" for row in rows if row.score
            )
            title = f"head {layer}-{head}: {said}"
            cells[layer, head] = Cell(str(len(rows)), f"g-{group}", 0.25 + 0.75 * best / 100, title)
        layers, heads = (
            list(map(str, range(number))) for number in (self.model.layers, self.model.heads)
        )
        label = f"Heads of {self.model.name}: layers below each other, heads beside each other"
        return svg.grid(layers, heads, cells, label)

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
    def over_k(self) -> Markup:
        """The means over relations, held-out, by the number of guesses."""
        scored = [(self.model.name, "heads", "heads")]
        scored += [(kind, f"rival-{number}", kind) for number, kind in enumerate(self.kinds)]
        curves = []
        for name, look, shown in scored:
            scores = [self.findings.score(name, HELD_OUT, RULE, str(k)) for k in KS]
            curves.append(Curve(look, shown, [score and score.value for score in scores]))
        return svg.chart(list(map(str, KS)), curves, "Top-k UAS over k", "guesses (k)")

    @property
    def by_distance(self) -> Markup:
        """The share of edges that are found with one guess, by the distance of the dependent."""
        test = self.model.evidence.probed.test.ledger
        distance = np.abs(test.first - test.head)
        counted = np.array([name not in NOT_IN_MEAN for name in test.relations])[test.relation]
        places = np.searchsorted(DISTANCES, distance, side="right")
        names = [
            str(begin) if begin + 1 == end else f"{begin}–{end - 1}"
            for begin, end in pairwise(DISTANCES)
        ]
        names.append(f"{DISTANCES[-1]}+")
        curves = []
        found = self.functions.hits(self.model)
        for look, name, hits in (
            ("heads", "heads", found.heads),
            ("best", "best baseline", found.best),
        ):
            values: list[float | None] = []
            for place in range(1, len(DISTANCES) + 1):
                inside = counted & (places == place)
                values.append(
                    float(100 * hits[inside].mean()) if inside.sum() >= FEW_EDGES else None
                )
            curves.append(Curve(look, name, values))
        return svg.chart(names, curves, "Edges found by distance", "tokens from head to dependent")

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


def difference_cell(row: ScoredRow) -> Any:
    """The difference to the best baseline with its interval and p; None if it was not compared."""
    return row.difference and list(row.difference[:4])
