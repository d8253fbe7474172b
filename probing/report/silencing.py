"""A silencing result as a table in the terminal."""

from __future__ import annotations

import math

from probing.evidence.served import served
from probing.prediction.silencing_result import SilencingResult
from probing.report.served import left_out, matched_heads, sentence, verdict
from probing.report.terminal import console, print_table, table

ASKED = {
    "masked": "all its dependents in a function are masked together",
    "next": "the first token of each dependent is predicted",
}
"""What a model is asked for, by the field `predicts` of a run."""


def print_silencing(result: SilencingResult, wide: bool = False) -> None:
    """Print the relations, those that heads find best first, with what silencing the best head of each costs."""
    relations = served(result)
    shown = table(
        f"{result.title}: cost of silencing the best head of a relation, {result.functions} functions",
        f"Of each relation {ASKED[result.run.predicts]}. Score, beyond: percent of the\n"
        "edges, and of those beyond the best offset, that the head finds with one guess. Cost: log-probability\n"
        f"that is lost, nats per sub-token, mean over functions; matched: the same for {matched_heads(result)}, mean.\n"
        "Difference with its 95 % interval; p by the paired test over functions, corrected over the relations\n"
        "(Holm). Costlier: how many of the matched heads cost more.",
    )
    shown.add_column("relation", no_wrap=True)
    columns = (
        "functions",
        "head",
        "score",
        "beyond",
        "cost",
        "matched",
        "difference",
        "95 % interval",
        "p",
        "costlier",
    )
    for column in columns:
        shown.add_column(column, justify="right")
    shown.add_column("verdict", no_wrap=True)
    for name, one in relations.items():
        head, (functions, difference, _, p) = result.heads[name], one.difference
        interval = "-" if math.isnan(difference.low) else f"{difference.low:+.3f} to {difference.high:+.3f}"
        shown.add_row(
            name,
            str(functions),
            f"{head.layer}-{head.head}",
            f"{head.score:.1f}",
            "-" if head.beyond is None else f"{head.beyond:.1f}",
            *(f"{value:+.3f}" for value in (one.cost.estimate, one.matched, difference.estimate)),
            interval,
            f"{p:.4f}",
            f"{one.costlier}/{one.rivals}",
            verdict(one),
        )
    out = console(wide)
    print_table(out, shown, spare=[8, 1, 9, 10, 7, 6, 4])
    out.print(sentence(relations), soft_wrap=True, highlight=False)
    out.print(result.signature, soft_wrap=True, highlight=False)
    if text := left_out(result):
        out.print(text, soft_wrap=True, highlight=False)
