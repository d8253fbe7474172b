"""The page of a reproduction: what it was made from, and every table and figure under its number in the paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from codesyntax_dataset import paper, sources
from probing.paper import figures
from probing.paper.cells import Made
from probing.paper.inputs import CONFIGS
from probing.paper.tables import Numbered, tables
from probing.report.document import CODE, COUNT, NAME, POINTS, Column, Section, Table

TITLE = "The tables and figures of CodeSyntax, made again"


def sections(made: Made) -> list[Section]:
    numbered = tables(made)
    return [
        _summary(made, numbered),
        Section(
            "tables",
            "Tables",
            sections=[Section(one.table.name, _heading(one), [one.table]) for one in numbered],
        ),
        Section(
            "figures",
            "Figures",
            [
                "Figures 16 to 19 are the ablations; their order among each other is ours. Figures 1 and 9 to 15 "
                "show single functions, as `codesyntax show` does; Table 7 has classes of errors, as `codesyntax "
                "errors` has."
            ],
            figures.sections(made),
        ),
        _provenance(made),
    ]


def _summary(made: Made, numbered: Sequence[Numbered]) -> Section:
    cells = [cell for one in numbered for cell in one.cells]
    filled = sum(cell.here is not None for cell in cells)
    comparable = sum(cell.compares for cell in cells)
    rows = []
    for one in numbered:
        here = sum(cell.here is not None for cell in one.cells)
        differences = [abs(cell.difference or 0) for cell in one.cells if cell.compares]
        rows.append([_heading(one), len(one.cells), here, len(differences), max(differences, default=None)])
    columns = [
        Column("table"),
        *Column.each(COUNT, "in the paper", "here", "comparable", group="numbers"),
        Column("largest difference of these", POINTS),
    ]
    return Section(
        "summary",
        "What was made, and what compares",
        [
            f"Of {len(cells):,} numbers in these tables of {paper.source()}, {filled:,} have one of ours beside them, "
            f"and {comparable:,} of these compare. Scores follow the published protocol: the attention head of each "
            "relation and k is the one that is best on the scored data, the split test. That is optimistic; what a "
            "claim should rest on, heads chosen on validation and intervals, is in `codesyntax report`.",
            "A difference is to be 0.0, within rounding, where the inputs are the authors' own: the same functions (as "
            "many as in the paper, with as many edges of each relation), all of them, and all models of the table, "
            "because scores are of the functions that fit every model (511 sub-tokens). Otherwise the column "
            "comparable says what differs: other data; partial, by --limit; other functions, because models of the "
            "table were not given; other direction, for models that cannot see later tokens. Models are told by their "
            "names. In Java, the keyword baseline has ; among its keywords, as the paper's numbers imply, but for the "
            "config without semicolons.",
            Table("summary", "Numbers of the paper's tables", columns, rows),
            _inputs(made),
        ],
    )


def _heading(one: Numbered) -> str:
    return f"Table {one.number}. {one.title}"


def _inputs(made: Made) -> Table:
    rows: list[list[Any]] = []
    for language, configs in CONFIGS.items():
        for config in configs:
            measured = made.measured.get(config)
            source = sources.shown(made.inputs.sources[language]) if language in made.inputs.sources else None
            if measured is None:
                rows.append([config, source, None, None, None, f"empty: {made.inputs.missing[config]}"])
                continue
            scored, models = measured.functions, ", ".join(measured.models)
            differs = "; ".join(made.differs(config).values())
            counted = made.counted[language].functions if language in made.counted else None
            rows.append([config, source, counted, scored, models, differs])
    columns = [
        Column("config", NAME),
        Column("source"),
        *Column.each(COUNT, "of all splits", "scored", group="functions or sentences"),
        Column("models"),
        Column("differs from the paper"),
    ]
    return Table("inputs", "The inputs of each config", columns, rows)


def _provenance(made: Made) -> Section:
    rows = [
        [measured.config, name, signature]
        for measured in made.measured.values()
        for name, signature in measured.signatures.items()
    ]
    if not rows:
        return Section("provenance", "Results and signatures", ["No model was given: the numbers are of baselines."])
    columns = [Column("config", NAME), Column("model"), Column("signature", CODE)]
    return Section(
        "provenance", "Results and signatures", [Table("results", "The results of this page", columns, rows)]
    )
