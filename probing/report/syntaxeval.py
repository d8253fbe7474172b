"""The sections of a report on what masked language models restore (Velasco et al., ICSE-NIER
2024)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from probing.evidence.masked import Masked, comparable_masked, filler_gains, gather_masked
from probing.instruments.masking.hits import ARMS, T0, T1, hits
from probing.instruments.masking.masking import SPANS, SUB_TOKENS
from probing.instruments.masking.result import FLOORS, SIMILARITIES, MaskResult, MaskSettings
from probing.report import specs
from probing.report.document import Part, RowRecord, Section, Table, tested_cell, verdict
from probing.report.words import AS_FILLED, distinct, file_names, method, skipped
from probing.stats.intervals import FEW_CLUSTERS

RANDOM = {
    SUB_TOKENS: "as many random sub-tokens",
    SPANS: "random spans of code as long outside of its nodes",
}
"""Text masked in T0, by the control of a run."""

SHOWN_SIMILARITY = "jaccard"
"""The similarity of the finding and the figures."""

VERDICTS_ON = (SHOWN_SIMILARITY, "restored", "log_probability")
"""The three outcomes that verdicts rest on."""

FILLED_WITH = {"letter": "x", "deleted": "nothing", "commonest": "the commonest"}
"""The filler of each masked sub-token, by the beginning of its column."""

_OUTCOME_TITLES = {
    "jaccard": "Jaccard",
    "sorensen_dice": "Sorensen-Dice",
    "levenshtein": "Levenshtein",
    "restored": "restored",
}


class MaskedModels(NamedTuple):
    """Models that masked the same functions in the same way, by name. `name`: of files."""

    title: str
    name: str
    models: dict[str, Masked]

    @property
    def settings(self) -> MaskSettings:
        return next(iter(self.models.values())).result.settings

    @property
    def control(self) -> str:
        """The text that is masked in T0."""
        return RANDOM[self.settings.control]

    @property
    def node_types(self) -> list[str]:
        """Those that a model lost most in first, by SHOWN_SIMILARITY."""
        effects: dict[str, float] = {}
        for model in self.models.values():
            for name, effect in model.effects[SHOWN_SIMILARITY].items():
                effects[name] = min(effects.get(name, np.inf), effect.value)
        return sorted(effects, key=lambda name: (effects[name], name))

    def functions(self, node_type: str) -> int:
        """The number of functions with nodes of a type, which all models that have it share."""
        return next(iter(self.having(node_type).values())).counted(node_type)

    def having(self, node_type: str) -> dict[str, Masked]:
        """The models that were run on a node type."""
        return {name: model for name, model in self.models.items() if node_type in model.masked}


def read_groups(files: Sequence[Path]) -> list[MaskedModels]:
    """The masking results in files, in groups that can stand side by side.

    Raises LedgerError for files that are not masking results, or do not follow from their ledgers.
    """
    gathered = [gather_masked(members) for members in comparable_masked(files)]
    titles = _titles([models[0] for models in gathered])
    files_of = file_names([f"masking-{title.partition(', limit')[0]}" for title in titles])
    groups = []
    for title, file, models in zip(titles, files_of, gathered):
        settings = [model.result.settings for model in models]
        names = distinct([run.model for run in settings], settings, _OF_RUN)
        groups.append(MaskedModels(title, file, dict(sorted(zip(names, models)))))
    return groups


def sections(groups: Sequence[MaskedModels]) -> list[Section]:
    """One section, with the verdicts on all groups and a part for each; none without groups."""
    if not groups:
        return []
    parts: list[Part] = [*map(_verdicts, groups), *method("masking")]
    return [Section("masking", "Masked syntax", parts, [*map(_group, groups), _provenance(groups)])]


def _titles(firsts: Sequence[Masked]) -> list[str]:
    """Of groups, from their first models: what differs from the usual, then what tells groups
    apart."""
    all_settings = [model.result.settings for model in firsts]
    titles = []
    for settings in all_settings:
        parts = [settings.config]
        for name, usual in _USUAL.items():
            value = getattr(settings, name)
            if value != usual:
                parts.append(f"{name} {value}")
        titles.append(", ".join(parts))
    titles = distinct(titles, all_settings, ("data", "labels", "draws", "seed"))
    return [
        f"{title}, {model.result.run.parser}" if titles.count(title) > 1 else title
        for title, model in zip(titles, firsts)
    ]


_USUAL = {
    "split": "test",
    "protocol": "current",
    "rate": 1,
    "control": SUB_TOKENS,
    "limit": None,
}
"""Settings that titles do not name where they have these values."""

_OF_RUN = ("revision", "max_length", "node_types", "random_weights")


def _verdicts(group: MaskedModels) -> Table:
    """Whether masking a node type lowers an outcome more than masking something else, by each
    outcome and model."""
    rows = []
    for kind in group.node_types:
        functions = group.functions(kind)
        if functions < FEW_CLUSTERS:
            continue
        verdicts = {
            name: {
                outcome: verdict(model.effects[outcome][kind])
                if model.tells(kind, outcome)
                else AS_FILLED
                for outcome in VERDICTS_ON
            }
            for name, model in group.having(kind).items()
        }
        rows.append({"node_type": kind, "functions": functions, "models": verdicts})
    name = f"{group.name}-verdicts"
    return specs.table("masking-verdicts", rows, name, group=group, models=group.models)


def _group(group: MaskedModels) -> Section:
    note = specs.text("masking", settings=group.settings, control=group.control)
    return Section(group.name, group.title, [note, _outcomes_table(group), _floors(group)])


def _outcomes_table(group: MaskedModels) -> Table:
    rows = []
    for similarity, kind in product(SIMILARITIES, group.node_types):
        functions = group.functions(kind)
        rows.append(
            {
                "similarity": _OUTCOME_TITLES[similarity],
                "node_type": [kind, "few functions" * (functions < FEW_CLUSTERS)],
                "functions": functions,
                "models": {
                    name: _effect_cells(model, kind, similarity)
                    for name, model in group.having(kind).items()
                },
            }
        )
    return specs.table("masked", rows, group.name, models=group.models, control=group.control)


def _effect_cells(model: Masked, kind: str, similarity: str) -> RowRecord:
    (t1, t0), restored, chance = (
        model.arms(kind, outcome).mean(axis=1).tolist()
        for outcome in (similarity, "restored", "log_probability")
    )
    marks = [] if model.tells(kind, similarity) else [AS_FILLED]
    unrestored = [] if model.restores(kind) else [AS_FILLED]
    return {
        "masked": model.masked[kind],
        "t1": t1,
        "t0": t0,
        "effect": tested_cell(model.effects[similarity][kind], *marks),
        "restored_T1": 100 * restored[0],
        "restored_T0": 100 * restored[1],
        "restored_effect": tested_cell(model.effects["restored"][kind], *unrestored),
        "drop": chance[1] - chance[0],
        "likelier": tested_cell(model.effects["log_probability"][kind], *unrestored),
    }


def _floors(group: MaskedModels) -> Table:
    """Fillers, and the gain of a model over them, in both arms."""
    rows = []
    for outcome, kind in product(FLOORS, group.node_types):
        cells = {}
        for name, model in group.having(kind).items():
            arms = zip(ARMS, model.arms(kind, outcome), model.gains[outcome][kind])
            cells[name] = {
                arm: {
                    "mean": float(scores.mean()),
                    "filler": FILLED_WITH[gain.filler],
                    "gain": gain,
                }
                for arm, scores, gain in arms
            }
        rows.append(
            {
                "outcome": _OUTCOME_TITLES[outcome],
                "node_type": kind,
                "functions": group.functions(kind),
                "models": cells,
            }
        )
    name = f"{group.name}-floors"
    return specs.table("masked-floors", rows, name, models=group.models, arms=ARMS)


def _provenance(groups: Sequence[MaskedModels]) -> Section:
    rows = []
    left_out = []
    for group in groups:
        for name, model in group.models.items():
            rows.append({"config": group.title, "model": name, "masked": model})
            skips = model.result.skips
            pairs = {**model.result.dropped, **model.uncompared}
            for what, reasons in (("functions", skips), ("function and node type", pairs)):
                for reason, count in reasons.items():
                    if count:
                        left_out.append([group.title, name, what, reason, count])
    skipped = specs.table("masking-skips", left_out) if left_out else "All functions were scored."
    parts = [specs.table("masking-results", rows), skipped]
    return Section("masking-provenance", "Results and signatures", parts)


# ------------------------------------------------------------------------------ a result on its own


def masking_parts(result: MaskResult) -> list[Part]:
    """The node types, those that lose most first, with both arms and the effect of masking the
    type."""
    measured = hits(result)[SHOWN_SIMILARITY]
    of_fillers = filler_gains(measured)
    effects = measured.each(measured.by_group(T1, T0))
    arms = {arm: dict(zip(measured.groups, measured.scores(arm)[0])) for arm in ARMS}
    rows = []
    for name in sorted(effects, key=lambda name: effects[name].value):
        row = {
            "node_type": name,
            "functions": len(measured.of(name)),
            "effect": effects[name],
            "scores": result.node_types[name],
        }
        for arm, gain in zip(ARMS, of_fillers[name]):
            row |= {arm: arms[arm][name], f"gain_{arm}": gain.gain}
        rows.append(row)
    control = RANDOM[result.settings.control]
    table = specs.table("masking", rows, result=result, control=control)
    failed = [f"failed comparisons, left out of all means: {result.failed}"] * bool(result.failed)
    verdicts = [verdict(tested_cell(effect)) for effect in effects.values()]
    said = specs.text(
        "masked",
        name=result.model,
        control=control,
        lower=verdicts.count("lower"),
        higher=verdicts.count("higher"),
        types=len(verdicts),
    )
    return [said, table, result.signature, *failed, *skipped(functions=result.skips)]
