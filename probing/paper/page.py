"""The page of a reproduction: what it was made from, and every table and figure under its number in the paper.

Tables have our numbers, the paper's and the difference side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from codesyntax_dataset import paper, sources
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_dataset.protocol import TABLE_KS
from codesyntax_metric.topk_uas import NOT_IN_MEAN
from probing.attention.result import head_name
from probing.paper import figures
from probing.paper.cells import COMPARABLE, NO_DATA, Compared, Made, compared
from probing.paper.inputs import CODE, CONFIGS, NATURAL
from probing.report.document import Column, Section, Table
from probing.report.kinds import CHOSEN, COUNT, COUNT_DIFFERENCE, MARKED, NAME, PERCENT, POINTS
from probing.report.kinds import CODE as SIGNATURE

TITLE = "The tables and figures of CodeSyntax, made again"

ENDS = 5
"""Relations at each end of Table 6."""

_MEANS = {
    3: ("Code, first token of the dependent", CODE, "first"),
    4: ("Natural language", NATURAL, "first"),
    5: ("Code, any token of the dependent", CODE, "any"),
}
_RELATIONS = {9: ("python", "first"), 10: ("python", "any"), 11: ("java", "first"), 12: ("java", "any")}

CUBERT = "CuBERT"
"""The model of Tables 6 and 9 to 12, which compare it alone."""

K = "1"  # of these tables

_ROUNDED = "Percent; difference: here less paper, both rounded to one digit."


class Numbered(NamedTuple):
    """A table under its number in the paper, and all its cells that have a number in the paper."""

    number: int
    title: str
    table: Table
    cells: list[Compared]

    @property
    def heading(self) -> str:
        return f"Table {self.number}. {self.title}"


def sections(made: Made) -> list[Section]:
    numbered = tables(made)
    return [
        _summary(made, numbered),
        Section(
            "tables",
            "Tables",
            sections=[Section(one.table.name, one.heading, [one.table]) for one in numbered],
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
        rows.append([one.heading, len(one.cells), here, len(differences), max(differences, default=None)])
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
    columns = [Column("config", NAME), Column("model"), Column("signature", SIGNATURE)]
    return Section(
        "provenance", "Results and signatures", [Table("results", "The results of this page", columns, rows)]
    )


def tables(made: Made) -> list[Numbered]:
    """Tables 3 to 6 and 8 to 12 of the paper, in this order."""
    return [
        *(_means(made, number) for number in _MEANS),
        _ends(made),
        _edges(made),
        *(_relations(made, number) for number in _RELATIONS),
    ]


def _means(made: Made, number: int) -> Numbered:
    title, configs, rule = _MEANS[number]
    rows = []
    for config in configs:
        for name in made.names(config):
            ours, theirs = made.scores(config, name, rule)["scores"], paper.scores(config, rule).get(name, {})
            if ours or theirs:
                standing = made.standing(config, name)
                numbers = [Compared(ours.get(k), theirs.get(k), standing) for k in TABLE_KS]
                rows.append([LANGUAGES[config].title, name, standing, *numbers])
    columns = [Column("language", NAME), Column("name", NAME), Column("comparable")]
    for k in TABLE_KS:
        columns += Compared.columns(f"k = {k}", PERCENT, POINTS)
    heading = "Top-k UAS, mean over relations"
    return Numbered(number, title, *compared(f"table-{number}", heading, columns, rows, _ROUNDED))


def _relations(made: Made, number: int) -> Numbered:
    """One of Tables 9 to 12: CuBERT, and each other model, against the best offset on every relation in the mean."""
    config, rule = _RELATIONS[number]
    rows = [[model, *row] for model in _models(made, config) for row in _against_offset(made, config, rule, model)]
    title = f"{LANGUAGES[config].title}, {rule} token of the dependent, relation by relation"
    columns = [Column("model"), *_RELATION_COLUMNS]
    compares = _compares({name: made.standing(config, name) for name in (CUBERT, "Offset")})
    table = Table(f"table-{number}", _HEADS, columns, rows, f"{_ROUNDED} {_BEST} {compares}", filters=1)
    return Numbered(number, title, table, _relation_cells(made, config, rule, paper.relation_scores(config, rule)))


def _ends(made: Made) -> Numbered:
    """Table 6: the relations of Tables 9 and 11 on which CuBERT, or else the first model, gains and loses most."""
    rows, cells = [], []
    for config in CODE:
        model = _models(made, config)[0]
        ranked = _against_offset(made, config, "first", model)
        ranked = [row for row in ranked if row[_DIFFERENCE] is not None] or ranked
        ends = ranked[:ENDS] + ranked[ENDS:][-ENDS:]
        rows += [[LANGUAGES[config].title, model, *row] for row in ends]
        cells += _relation_cells(made, config, "first", [row[0] for row in ends])
    title = f"The {ENDS} relations on which a model gains most and loses most"
    columns = [Column("language", NAME), Column("model"), *_RELATION_COLUMNS]
    notes = f"{_ROUNDED} {_BEST} What compares, is as in Tables 9 and 11."
    return Numbered(6, title, Table("table-6", _HEADS, columns, rows, notes), cells)


def _edges(made: Made) -> Numbered:
    """Table 8: the edges of each relation, of all splits."""
    ours = {
        config: {name: one.edges for name, one in counted.relations.items()}
        for config, counted in made.counted.items()
        if config in CODE
    }
    standing = {
        config: NO_DATA if config not in ours else COMPARABLE if made.of_the_paper(config) else "no: other data"
        for config in CODE
    }
    rows = []
    for name in sorted({name for config in CODE for name in (*paper.edges(config), *ours.get(config, ()))}):
        row: list[Any] = [[name, "not in mean" if name in NOT_IN_MEAN else ""]]
        for config in CODE:
            published = paper.edges(config).get(name)
            none = 0 if config in ours and published is not None else None
            row.append(Compared(ours.get(config, {}).get(name, none), published, standing[config]))
        rows.append(row)
    columns = [Column("relation", MARKED)]
    for config in CODE:
        columns += Compared.columns(LANGUAGES[config].title, COUNT, COUNT_DIFFERENCE)
    notes = _compares({LANGUAGES[config].title: word for config, word in standing.items()})
    heading = "Edges of each relation, in all splits"
    return Numbered(8, "The dataset", *compared("table-8", heading, columns, rows, notes))


_RELATION_COLUMNS = [
    Column("relation", NAME),
    Column("edges", COUNT),
    Column("model", PERCENT, "here"),
    Column("head", group="here"),
    Column("offset", CHOSEN, "here"),
    Column("difference", POINTS, "here"),
    Column("CuBERT", PERCENT, "paper"),
    Column("offset", CHOSEN, "paper"),
    Column("difference", POINTS, "paper"),
    *Column.each(POINTS, "model", "offset", group="here less paper"),
]
_DIFFERENCE = 5  # the place of ours
_HEADS = "The best head of each relation against the best offset, largest difference first"
_BEST = (
    "At k = 1. Head: layer-head, from 0. Offset: the score of the best one, and how many tokens it is. The paper gives "
    "these numbers for CuBERT alone."
)


def _against_offset(made: Made, config: str, rule: str, model: str) -> list[list[Any]]:
    """A row for each relation in the mean, the largest difference to the best offset first; those of ours first."""
    ours, offset = made.scores(config, model, rule), made.scores(config, "Offset", rule)
    published = paper.relation_scores(config, rule)
    found = {name: one for name, one in offset["relations"].items() if one["in_mean"]}
    keyed = []
    for name in {**found, **published}:
        best = ours["relations"][name][K] if name in ours["relations"] else None
        score = best and best["score"]
        here = found[name][K]["score"] if name in found else None
        theirs = published.get(name)
        ahead = None if score is None or here is None else score - here
        theirs_ahead = None if theirs is None else round(theirs.cubert - theirs.offset_score, 1)
        picked = made.measured[config].offsets[rule].get(name, []) if name in found else []
        row = [
            name,
            found[name]["edges"] if name in found else None,
            score,
            best and head_name(best),
            here if here is None else [here, ", ".join(map(str, picked[:1]))],
            ahead,
            theirs and theirs.cubert,
            theirs and [theirs.offset_score, str(theirs.offset)],
            theirs_ahead,
            Compared(score, theirs and theirs.cubert, "").difference,
            Compared(here, theirs and theirs.offset_score, "").difference,
        ]
        keyed.append(((ahead is None, -(ahead or 0), -(theirs_ahead or 0), name), row))
    return [row for _, row in sorted(keyed, key=lambda one: one[0])]


def _relation_cells(made: Made, config: str, rule: str, relations: Iterable[str]) -> list[Compared]:
    """The cells of CuBERT and of the offset, for some relations that the paper has."""
    cells = []
    for name, attribute in ((CUBERT, "cubert"), ("Offset", "offset_score")):
        ours, standing = made.scores(config, name, rule), made.standing(config, name)
        for relation in relations:
            if (theirs := paper.relation_scores(config, rule).get(relation)) is not None:
                here = ours["relations"][relation][K]["score"] if relation in ours["relations"] else None
                cells.append(Compared(here, getattr(theirs, attribute), standing))
    return cells


def _models(made: Made, config: str) -> list[str]:
    """Our models on a config, CuBERT first; the paper's CuBERT alone if there are none."""
    models = list(made.measured[config].models) if config in made.measured else []
    return sorted(models, key=lambda model: paper.name_of(model, config) != CUBERT) or [CUBERT]


def _compares(standing: dict[str, str]) -> str:
    """A sentence that says what compares with the paper."""
    return f"Comparable: {'; '.join(f'{name} – {word}' for name, word in standing.items())}."
