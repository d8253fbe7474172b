"""The configs of a language side by side."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

from codesyntax_dataset.languages import CONFIGS, LANGUAGES, variant_of
from codesyntax_metric.topk_uas import RULES
from probing.attention.result import TABLE_KS
from probing.evidence.gather import BEST_BASELINE
from probing.report import figures
from probing.report.document import COLOURED, COUNT, DIFFERENCE, NAME, SCORE, Column, Section, Table
from probing.report.figures import INK, Line
from probing.report.findings import Findings
from probing.report.scored import FILTERS, figure, line, means_of, scored_of, styled, tests_of

DRAWN = ("last", "any")
"""The rules of the paper's ablations (Shen et al. 2022, Figures 4 and 16 to 19): other tokens move the last one most."""


def notes() -> list[str]:
    """What there is to know about all of these sections."""
    never_predicted = {config: token for config in CONFIGS if (token := variant_of(config).never_predicted)}
    return [
        "The same functions with other tokens: with line breaks and indentation as tokens, or without semicolons. Labels and "
        "relations differ, and each config has the functions that all its models could read, so the configs are not compared "
        "by a test. The rules last and any come first, as in the paper: the first token of a dependent hardly moves.",
        *(
            f"In {config}, labels leave out {token!r}, and models may not predict it either (their signatures say not-predicted)."
            for config, token in never_predicted.items()
        ),
    ]


def sections(findings: Sequence[Findings]) -> list[Section]:
    """A section for each language, and for each direction and the like, of which there are several configs."""
    alike: dict[tuple, list[Findings]] = {}
    for found in findings:
        made, (language, _) = found.settings, CONFIGS[found.config]
        told = (language, made["data"].partition("@")[0], made["split"], made["direction"], made["limit"])
        alike.setdefault(told, []).append(found)
    made_of: dict[str, Section] = {}
    for (language, *_), of in alike.items():
        if len({found.config for found in of}) > 1:
            number = sum(name.startswith(language) for name in made_of) + 1
            name = f"{language}-ablations" + (f"-{number}" if number > 1 else "")
            made_of[name] = _ablation(name, language, of)
    return list(made_of.values())


def _ablation(name: str, language: str, findings: Sequence[Findings]) -> Section:
    kinds = ("model", "control", "baseline")
    everything = [(found.title, scored) for found in findings for scored in scored_of(found)]
    # what has the same name stands together
    everything.sort(key=lambda line: (kinds.index(line[1].kind.partition(";")[0]), line[1].name))
    side_by_side = means_of(findings)
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
        columns += [Column("score", SCORE, mean), Column("less best baseline", DIFFERENCE, mean)]
    table = Table(
        name,
        f"Mean over relations in the configs of {LANGUAGES[language].title}",
        [*FILTERS, *columns],
        rows,
        f"Percent with 95 % intervals. p: corrected (Holm) within a config for {tests_of(findings)}. {COLOURED}",
        filters=2,
    )
    panels: dict[str, dict[str, list[Line]]] = {}
    styles = ("-", "--", ":", "-.")
    for rule in DRAWN:
        for mean in side_by_side:
            lines = panels.setdefault(rule, {}).setdefault(mean, [])
            for found, style in zip(findings, cycle(styles)):
                baseline = line(found.baseline(mean, BEST_BASELINE), rule)
                lines.append(Line(f"{BEST_BASELINE}, {found.title}", baseline, INK, style))
                for subject, colour, _ in styled(found):
                    if subject.is_model:
                        scores = line(subject.means[mean], rule)
                        lines.append(Line(f"{subject.name}, {found.title}", scores, colour, style))
    drawn = figure(
        name,
        f"{LANGUAGES[language].title}: mean top-k UAS over k in each config, models and the best baseline. Bands are 95 % intervals.",
        "Curves of the mean score over k from 1 to 20, a line style for each config; the numbers are in the table.",
        name,
        lambda: figures.curves(panels),
    )
    told = findings[0].title.removeprefix(findings[0].config)
    return Section(name, LANGUAGES[language].title + told, [drawn, table])
