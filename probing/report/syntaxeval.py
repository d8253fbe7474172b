"""The sections of a report on what masked language models restore (Velasco et al., ICSE-NIER
2024)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, cycle, product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from probing.evidence.masked import Masked, comparable, gather
from probing.instruments.masking.masking import SPANS, SUB_TOKENS
from probing.instruments.masking.result import FLOORS, SIMILARITIES, MaskSettings
from probing.report import figures
from probing.report.document import (
    AS_FILLED,
    COLOURED,
    Column,
    Figure,
    Section,
    Table,
    tested,
    verdict,
)
from probing.report.figures import COLOURS, ArmPercentiles
from probing.report.kinds import CODE, COUNT, EFFECT, MARKED, NAME, NATS, PERCENT, SIMILARITY
from probing.report.words import distinct, file_names, method
from probing.runs.settings import extent
from probing.stats.intervals import FEW_CLUSTERS, POWER

RANDOM = {
    SUB_TOKENS: "as many random sub-tokens",
    SPANS: "random spans of code as long outside of its nodes",
}
"""Text masked in T0, by the control of a run."""

SHOWN_SIMILARITY = "jaccard"
"""The similarity of the finding and the figures."""

PERCENTILES = np.arange(0, 101, 5)
"""Of the similarities of functions, in the figures."""


OUTCOME_TITLES = {
    SHOWN_SIMILARITY: "similarity of trees",
    "restored": "restored sub-tokens",
    "log_probability": "log-probability",
}
"""The three outcomes that verdicts rest on, in words."""

FILLED_WITH = {"letter": "x", "deleted": "nothing", "commonest": "the commonest"}
"""The filler of each masked sub-token, by the beginning of its column."""


class MaskedModels(NamedTuple):
    """Models that masked the same functions in the same way, by name. `name`: of files."""

    title: str
    name: str
    models: dict[str, Masked]

    @property
    def settings(self) -> MaskSettings:
        return next(iter(self.models.values())).settings

    @property
    def node_types(self) -> list[str]:
        """Those that a model lost most in first, by SHOWN."""
        effects: dict[str, float] = {}
        for model in self.models.values():
            for name, effect in model.effects[SHOWN_SIMILARITY].items():
                effects[name] = min(effects.get(name, np.inf), effect.value)
        return sorted(effects, key=lambda name: (effects[name], name))

    def functions(self, node_type: str) -> int:
        """The number of functions with nodes of a type, which all models that have it share."""
        return next(
            model.counted(node_type)
            for model in self.models.values()
            if node_type in model.node_types
        )


def read_groups(files: Sequence[Path]) -> list[MaskedModels]:
    """The masking results in files, in groups that can stand side by side.

    Raises LedgerError for files that are not masking results, or do not follow from their ledgers.
    """
    gathered = [gather(members) for members in comparable(files)]
    titles = _titles([models[0] for models in gathered])
    groups: list[MaskedModels] = []
    files_of = file_names([f"masking-{title.partition(', partial')[0]}" for title in titles])
    for title, file, models in zip(titles, files_of, gathered):
        names = distinct(
            [model.settings.model for model in models],
            [model.settings for model in models],
            _OF_RUN,
        )
        groups.append(MaskedModels(title, file, dict(sorted(zip(names, models)))))
    return groups


def findings(groups: Sequence[MaskedModels]) -> list[Section]:
    """The verdicts on each group."""
    return [
        Section(f"{group.name}-finding", f"{group.title}: masked syntax", [_verdicts(group)])
        for group in groups
    ]


def sections(groups: Sequence[MaskedModels]) -> list[Section]:
    """Guidance on the numbers, a section for each group, and the settings; none without groups."""
    if not groups:
        return []
    how = Section("masking-method", "How to read masked syntax", method("masking"))
    return [how, *map(_group, groups), _provenance(groups)]


def _titles(firsts: Sequence[Masked]) -> list[str]:
    """Of groups, from their first models: what differs from the usual, then what tells groups
    apart."""
    all_settings = [model.settings for model in firsts]
    titles = []
    for settings in all_settings:
        parts = [settings.config]
        parts += [settings.split] if settings.split != "test" else []
        parts += [f"protocol {settings.protocol}"] if settings.protocol != "current" else []
        parts += [f"rate {settings.rate:g}"] if settings.rate != 1 else []
        parts += [f"control {settings.control}"] if settings.control != SUB_TOKENS else []
        parts += [f"partial, {extent(settings.limit)}"] if settings.limit is not None else []
        titles.append(", ".join(parts))
    titles = distinct(titles, all_settings, ("data", "labels", "draws", "seed"))
    return [
        f"{title}, {model.run.parser}" if titles.count(title) > 1 else title
        for title, model in zip(titles, firsts)
    ]


_OF_RUN = ("revision", "max_length", "node_types", "random_weights")


def _verdicts(group: MaskedModels) -> Table:
    """Whether masking a node type lowers an outcome more than masking something else, by each
    outcome and model."""
    types = [name for name in group.node_types if group.functions(name) >= FEW_CLUSTERS]
    return Table(
        f"{group.name}-verdicts",
        "What is left of a masked node type (T1), beside the control (T0)",
        [
            Column("node type", NAME),
            Column("functions", COUNT),
            *(
                Column(said, NAME, name)
                for name in group.models
                for said in OUTCOME_TITLES.values()
            ),
        ],
        [
            [
                kind,
                group.functions(kind),
                *(
                    _verdict(model, kind, outcome)
                    for model in group.models.values()
                    for outcome in OUTCOME_TITLES
                ),
            ]
            for kind in types
        ],
        f"Lower: less than of the control, {RANDOM[group.settings.control]}. {AS_FILLED.capitalize()}: a "
        "filler without a model has as much. p: corrected (Holm).",
    )


def _verdict(model: Masked, kind: str, outcome: str) -> str:
    if kind not in model.node_types:
        return ""
    return (
        verdict(tested(model.effects[outcome][kind])) if model.tells(kind, outcome) else AS_FILLED
    )


def _group(group: MaskedModels) -> Section:
    settings = group.settings
    ran = f"{settings.data}, config {settings.config}, split {settings.split}, protocol {settings.protocol}, "
    ran += (
        f"rate {settings.rate:g}; {settings.draws} controls (T0) for each masked copy (T1), each "
    )
    ran += f"{RANDOM[settings.control]}, seed {settings.seed}"
    notes = [f"Masked functions of {ran}."]
    notes += [
        f"{name}: {without_place(model.without_place)}"
        for name, model in group.models.items()
        if model.without_place
    ]
    types = group.node_types
    if not types:
        return Section(
            group.name, f"{group.title}: masked syntax", [*notes, "No node type could be compared."]
        )
    enough = [name for name in types if group.functions(name) >= FEW_CLUSTERS]
    drawn = [_effects_figure(group, enough)] if enough else []
    return Section(
        group.name,
        f"{group.title}: masked syntax",
        [*notes, *drawn, _table(group), _floors(group)],
        [Section(f"{group.name}-functions", "From function to function", [_spread(group, enough)])]
        if enough
        else [],
        drawn=[_distribution(group)],
    )


def without_place(nodes: Mapping[str, tuple[int, int]]) -> str:
    """Which nodes the control `spans` leaves out, in words."""
    shares = [f"{kind} {without:,} of {total:,}" for kind, (without, total) in nodes.items()]
    return (
        "Some nodes are not masked, because their function has no other span of code of that length: "
        f"{', '.join(shares)}."
    )


def _table(group: MaskedModels) -> Table:
    rows = []
    for similarity, kind in product(SIMILARITIES, group.node_types):
        functions = group.functions(kind)
        marks = "few functions" if functions < FEW_CLUSTERS else ""
        cells = [_cells(model, kind, similarity) for model in group.models.values()]
        rows.append([_title(similarity), [kind, marks], functions, *chain.from_iterable(cells)])
    columns = [Column("similarity"), Column("node type", MARKED), Column("functions", COUNT)]
    for name in group.models:
        columns += [
            Column("masked", COUNT, name),
            *Column.each(SIMILARITY, "T1", "T0", group=name),
            Column("effect", EFFECT, name),
            Column("detectable", SIMILARITY, name),
            *Column.each(PERCENT, "restored T1", "restored T0", group=name),
            Column("restored effect", EFFECT, name),
            Column("log-probability drop", NATS, name),
            Column("log-probability effect", EFFECT, name),
        ]
    return Table(
        group.name,
        "Similarity of syntax trees by masked node type",
        columns,
        rows,
        f"T1: the nodes of the type are masked. T0: {RANDOM[group.settings.control]}. Masked: sub-tokens in T1. "
        f"Effect: T1 − T0 with its 95 % interval (– in fewer than {FEW_CLUSTERS} functions) and p, corrected "
        "for the node types of the model (Holm) and for three outcomes: similarity, restored sub-tokens and "
        f"log-probability. {COLOURED} As filled: a filler without a model has as much (next table), "
        "so the effect shows nothing. Largest loss: the lowest orange effect. Detectable: the effect that the "
        f"corrected test finds with a probability of {100 * POWER:.0f} %. Restored: percent of the masked "
        "sub-tokens. Log-probability drop: T0 − T1, in nats.",
        filters=1,
    )


def _cells(model: Masked, kind: str, similarity: str) -> list[object]:
    if kind not in model.node_types:
        return [None] * 10
    (t1, t0), restored, chance = (
        model.arms(kind, outcome).mean(axis=1).tolist()
        for outcome in (similarity, "restored", "log_probability")
    )
    marks = ["largest loss"] if kind == _largest_loss(model, similarity) else []
    marks += [] if model.tells(kind, similarity) else [AS_FILLED]
    unrestored = [] if model.restores(kind) else [AS_FILLED]
    effect, more, likelier = (
        model.effects[name][kind] for name in (similarity, "restored", "log_probability")
    )
    return [
        model.masked[kind],
        t1,
        t0,
        tested(effect, *marks),
        model.detectable(kind, similarity),
        *(100 * share for share in restored),
        tested(more, *unrestored),
        chance[1] - chance[0],
        tested(likelier, *unrestored),
    ]


def _floors(group: MaskedModels) -> Table:
    """Fillers, and the gain of a model over them, in both arms."""
    rows: list[list[object]] = []
    for outcome, kind in product(FLOORS, group.node_types):
        cells = [_floor_cells(model, kind, outcome) for model in group.models.values()]
        rows.append([_title(outcome), kind, group.functions(kind), *chain.from_iterable(cells)])
    columns = [Column("outcome"), Column("node type", NAME), Column("functions", COUNT)]
    for name in group.models:
        for arm in ("T1", "T0"):
            columns += [
                Column(arm, SIMILARITY, name),
                Column(f"{arm} filled", SIMILARITY, name),
                Column(f"{arm} with", NAME, name),
                Column(f"{arm} gain", EFFECT, name),
            ]
    return Table(
        f"{group.name}-floors",
        "Fillers without a model, and the gain of the model over them",
        columns,
        rows,
        "Filled: the outcome of a filler that needs no model. For tree similarity, each masked sub-token becomes "
        "the letter x or is deleted, whichever is more similar. For restored sub-tokens (a share), each becomes the "
        "sub-token that is masked most often in this arm. Gain: model minus filler, with its 95 % interval and p, "
        f"corrected (Holm) over node types and both arms. {COLOURED}",
        filters=1,
    )


def _floor_cells(model: Masked, kind: str, outcome: str) -> list[object]:
    if kind not in model.node_types:
        return [None] * 8
    cells: list[object] = []
    for arm, (filler, floor, gain) in zip(model.arms(kind, outcome), model.gains[outcome][kind]):
        cells += [float(arm.mean()), floor, FILLED_WITH[filler], tested(gain)]
    return cells


def _largest_loss(model: Masked, similarity: str) -> str | None:
    """The node type with the lowest effect, of those that the test separates from 0."""
    effects = {
        name: effect.value
        for name, effect in model.effects[similarity].items()
        if effect.significant and effect.value < 0 and model.tells(name, similarity)
    }
    return min(effects, key=lambda name: effects[name], default=None)


def _title(similarity: str) -> str:
    return {
        "jaccard": "Jaccard",
        "sorensen_dice": "Sorensen-Dice",
        "levenshtein": "Levenshtein",
    }.get(similarity, similarity)


def _effects_figure(group: MaskedModels, types: Sequence[str]) -> Figure:
    series = []
    for (name, model), colour in zip(group.models.items(), cycle(COLOURS)):
        effects = [model.effects[SHOWN_SIMILARITY].get(kind) for kind in types]
        filled = [
            effect is not None and effect.significant and model.tells(kind, SHOWN_SIMILARITY)
            for kind, effect in zip(types, effects)
        ]
        series.append(figures.Dots(name, figures.stacked(effects), colour, filled))
    return Figure(
        f"{group.name}-effects",
        f"{group.title}: the effect of masking a node type on the Jaccard similarity of syntax trees, with 95 % "
        "intervals. Left of 0, the nodes are harder to restore than the control. Filled points: corrected p < 0.05, "
        f"and more than fillers have. Node types in at least {FEW_CLUSTERS} functions.",
        f"A dot and a line for the effect and interval of {', '.join(types)}. The table has the numbers.",
        group.name,
        lambda: figures.effects(types, series, "T1 − T0, Jaccard similarity"),
    )


def _spread(group: MaskedModels, types: Sequence[str]) -> Figure:
    """The similarities of functions as box plots."""
    panels = _panels(group, types)
    return Figure(
        f"{group.name}-boxes",
        f"{group.title}: Jaccard similarity of functions by masked node type, for its nodes (T1) and the control "
        "(T0). Boxes run from the first to the third quartile with the median, and lines to the 5th and 95th "
        "percentile.",
        f"Box plots of T1 and T0 of {', '.join(types)}. The CSV file has the numbers.",
        f"{group.name}-functions",
        lambda: figures.boxes(types, panels),
    )


def _panels(group: MaskedModels, types: Sequence[str]) -> dict[str, list[ArmPercentiles | None]]:
    """Model -> the percentiles of each node type in both arms; None for types that it was not run
    on."""
    panels: dict[str, list[ArmPercentiles | None]] = {}
    for (name, model), colour in zip(group.models.items(), cycle(COLOURS)):
        panels[name] = [
            ArmPercentiles(*_percentiles(model, kind), colour) if kind in model.node_types else None
            for kind in types
        ]
    return panels


def _percentiles(model: Masked, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """The PERCENTILES of SHOWN over the functions with a node type, T1 and T0."""
    t1, t0 = np.percentile(model.arms(kind, SHOWN_SIMILARITY), PERCENTILES, axis=1).T
    return t1, t0


def _distribution(group: MaskedModels) -> Table:
    """The numbers of the box plots."""
    rows = [
        [name, kind, arm, model.counted(kind), int(percentile), float(value)]
        for name, model in group.models.items()
        for kind in model.node_types
        for arm, values in zip(("T1", "T0"), _percentiles(model, kind))
        for percentile, value in zip(PERCENTILES, values)
    ]
    columns = [
        Column("model"),
        Column("node type", NAME),
        Column("arm"),
        Column("functions", COUNT),
    ]
    columns += [Column("percentile", COUNT), Column("jaccard", SIMILARITY)]
    return Table(f"{group.name}-functions", "", columns, rows)


def _provenance(groups: Sequence[MaskedModels]) -> Section:
    models = [(group, name, model) for group in groups for name, model in group.models.items()]
    names = [
        Column("config", NAME, of=lambda group, *_: group.title),
        Column("model", NAME, of=lambda _, name, __: name),
    ]
    results = Table(
        "masking-results",
        "The masking results in this report",
        [
            *names,
            Column("functions", COUNT, of=lambda group, name, model: model.functions),
            Column("copies", COUNT, of=lambda group, name, model: model.copies),
            Column("failed comparisons", COUNT, of=lambda group, name, model: model.failed),
            Column("signature", CODE, of=lambda group, name, model: model.signature),
        ],
        models,
        "Copies: masked texts that were restored, T1 and T0. Failed: copies whose trees could not be compared; "
        "all means leave them out. Compare only numbers whose signatures agree.",
    )
    left_out = [
        [group.title, name, what, reason, count]
        for group, name, model in models
        for what, reasons in (
            ("functions", model.skips),
            ("function and node type", {**model.dropped, **model.uncompared}),
        )
        for reason, count in reasons.items()
        if count
    ]
    columns = [*names, Column("what"), Column("reason"), Column("count", COUNT)]
    skipped = Table("masking-skips", "Functions that were skipped, and why", columns, left_out)
    parts = [results, skipped if left_out else "All functions were scored."]
    return Section("masking-provenance", "Masking results and signatures", parts)
