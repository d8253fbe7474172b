"""The paper's tables: our numbers, the paper's and the difference side by side."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from codesyntax_dataset import paper
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_dataset.protocol import TABLE_KS
from codesyntax_metric.topk_uas import NOT_IN_MEAN
from probing.attention.result import head_name
from probing.paper.cells import COMPARABLE, NO_DATA, Compared, Made
from probing.paper.inputs import CODE, NATURAL
from probing.report.document import CHOSEN, COUNT, COUNT_DIFFERENCE, MARKED, NAME, PERCENT, POINTS, Column, Table

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


def tables(made: Made) -> list[Numbered]:
    """Tables 3 to 6 and 8 to 12 of the paper, in this order."""
    made_tables = [
        *(_means(made, number) for number in _MEANS),
        _ends(made),
        _edges(made),
        *(_relations(made, number) for number in _RELATIONS),
    ]
    return sorted(made_tables, key=lambda one: one.number)


def _means(made: Made, number: int) -> Numbered:
    title, configs, rule = _MEANS[number]
    rows, cells = [], []
    for config in configs:
        for name in made.names(config):
            ours, theirs = made.scores(config, name, rule)["scores"], paper.scores(config, rule).get(name, {})
            if not ours and not theirs:
                continue
            standing = made.standing(config, name)
            compared = [Compared(ours.get(k), theirs.get(k), standing) for k in TABLE_KS]
            cells += [cell for cell in compared if cell.paper is not None]
            rows.append(
                [LANGUAGES[config].title, name, standing, *(value for cell in compared for value in cell.shown)]
            )
    columns = [Column("language", NAME), Column("name", NAME), Column("comparable")]
    for k in TABLE_KS:
        columns += _compared(f"k = {k}")
    table = Table(f"table-{number}", "Top-k UAS, mean over relations", columns, rows, _ROUNDED)
    return Numbered(number, title, table, cells)


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
    rows, cells = [], []
    for name in sorted({name for config in CODE for name in (*paper.edges(config), *ours.get(config, ()))}):
        row: list[Any] = [[name, "not in mean" if name in NOT_IN_MEAN else ""]]
        for config in CODE:
            published = paper.edges(config).get(name)
            none = 0 if config in ours and published is not None else None
            cell = Compared(ours.get(config, {}).get(name, none), published, standing[config])
            row += cell.shown
            cells += [] if published is None else [cell]
        rows.append(row)
    columns = [Column("relation", MARKED)]
    for config in CODE:
        group = LANGUAGES[config].title
        columns += [
            *Column.each(COUNT, "here", "paper", group=group),
            Column("difference", COUNT_DIFFERENCE, group),
        ]
    notes = _compares({LANGUAGES[config].title: word for config, word in standing.items()})
    table = Table("table-8", "Edges of each relation, in all splits", columns, rows, notes)
    return Numbered(8, "The dataset", table, cells)


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


def _compared(group: str) -> list[Column]:
    return [Column("here", PERCENT, group), Column("paper", PERCENT, group), Column("difference", POINTS, group)]
