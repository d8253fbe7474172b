"""The configs of a language side by side."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

from codesyntax_dataset.languages import CONFIGS, LANGUAGES, unedited, variant_of
from codesyntax_dataset.protocol import BEST_BASELINE, TABLE_KS
from codesyntax_metric.topk_uas import RULES
from probing.report import figures
from probing.report.document import COLOURED, COUNT, DIFFERENCE, NAME, SCORE, Column, Figure, Section, Table
from probing.report.figures import INK, Line
from probing.report.findings import Findings
from probing.report.scored import FILTERS, line, shown_means, styled, tests_in_words
from probing.report.words import method, numbered

DRAWN = ("last", "any")
"""The rules in the paper's ablation figures (Shen et al. 2022, Figures 4 and 16 to 19): the last token changes most."""


def notes() -> list[str]:
    """Notes on all of these sections."""
    never_predicted = {config: token for config in unedited() if (token := variant_of(config).never_predicted)}
    return [
        *method("ablations"),
        *(
            f"The labels of {config} exclude {token!r}, and models must not predict it either; their signatures say "
            "not-predicted."
            for config, token in never_predicted.items()
        ),
    ]


def sections(all_findings: Sequence[Findings]) -> list[Section]:
    """One section per language (and dataset, split, direction and limit) that has findings of several configs."""
    groups: dict[tuple, list[Findings]] = {}
    for findings in all_findings:
        settings, (language, _) = findings.settings, CONFIGS[findings.config]
        key = (
            language,
            settings.data.partition("@")[0],
            settings.split,
            settings.direction,
            settings.limit,
        )
        groups.setdefault(key, []).append(findings)
    section_by_name: dict[str, Section] = {}
    for (language, *_), group in groups.items():
        if len({findings.config for findings in group}) > 1:
            number = sum(name.startswith(language) for name in section_by_name) + 1
            name = numbered(f"{language}-ablations", number)
            section_by_name[name] = _ablation(name, language, group)
    return list(section_by_name.values())


def _ablation(name: str, language: str, all_findings: Sequence[Findings]) -> Section:
    kinds = ("model", "control", "baseline")
    everything = [(findings.title, scored) for findings in all_findings for scored in findings.rows]
    # rows of the same name next to each other
    everything.sort(key=lambda line: (kinds.index(line[1].kind.partition(";")[0]), line[1].name))
    side_by_side = shown_means(all_findings)
    rows = []
    for rule in (*DRAWN, *(rule for rule in RULES if rule not in DRAWN)):
        for k in TABLE_KS:
            for title, scored in everything:
                cells = [
                    cell
                    for mean in side_by_side
                    for cell in (scored.cell(mean, rule, k), scored.difference(mean, rule, k))
                ]
                rows.append([rule, k, scored.name, scored.kind, title, scored.functions, *cells])
    columns = [Column("name"), Column("kind"), Column("config", NAME), Column("functions", COUNT)]
    for mean in side_by_side:
        columns += [Column("score", SCORE, mean), Column("vs best baseline", DIFFERENCE, mean)]
    table = Table(
        name,
        f"Mean over relations in each config of {LANGUAGES[language].title}",
        [*FILTERS, *columns],
        rows,
        f"Percent with 95 % intervals. p: corrected (Holm) within a config for {tests_in_words(all_findings)}. "
        f"{COLOURED}",
        filters=2,
    )
    panels: dict[str, dict[str, list[Line]]] = {}
    styles = ("-", "--", ":", "-.")
    for rule in DRAWN:
        for mean in side_by_side:
            lines = panels.setdefault(rule, {}).setdefault(mean, [])
            for findings, style in zip(all_findings, cycle(styles)):
                baseline = line(findings.baseline(mean, BEST_BASELINE), rule)
                lines.append(Line(f"{BEST_BASELINE}, {findings.title}", baseline, INK, style))
                for subject, colour, _ in styled(findings):
                    if subject.is_model:
                        scores = line(subject.means[mean], rule)
                        lines.append(Line(f"{subject.name}, {findings.title}", scores, colour, style))
    drawn = Figure(
        name,
        f"{LANGUAGES[language].title}: mean top-k UAS over k in each config, for the models and the best baseline. "
        "Bands are 95 % intervals.",
        "Curves of the mean score for k from 1 to 20, with one line style per config. The table has the numbers.",
        name,
        lambda: figures.curves(panels),
    )
    suffix = all_findings[0].title.removeprefix(all_findings[0].config)
    return Section(name, LANGUAGES[language].title + suffix, [drawn, table])
