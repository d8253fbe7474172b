"""A masking result as a table in the terminal."""

from __future__ import annotations

import math

from probing.evidence.effect import paired
from probing.prediction.masking import SPANS, SUB_TOKENS
from probing.prediction.result import MaskResult
from probing.report.terminal import console, print_table, table

RANDOM = {SUB_TOKENS: "as many random sub-tokens", SPANS: "random spans of sub-tokens as long as those of the nodes"}
"""What T0 masks, by the control of a run."""

_SHOWN = "jaccard"


def print_masking(result: MaskResult, wide: bool = False) -> None:
    """Print the node types, those that lose most first, with both arms and the effect of masking the type."""
    arms = {name: arm for name, arm in result.arms(_SHOWN).items() if len(arm.functions)}
    effects = paired({name: arm.t1 for name, arm in arms.items()}, {name: arm.t0 for name, arm in arms.items()})
    shown = table(
        f"{result.title}: {_SHOWN.title()} similarity of syntax trees, {result.functions} functions",
        f"T1: all nodes of the type masked; T0: {RANDOM[result.settings.control]}. Effect: the mean difference\nover "
        "functions, with its 95 % interval; p by the paired test over functions, corrected over the types\n"
        "(Holm). Restored: masked sub-tokens that the model predicts exactly, in percent.",
    )
    shown.add_column("node type", no_wrap=True)
    columns = ("functions", "T1", "T0", "effect", "95 % interval", "p", "restored T1", "restored T0", "masked")
    for column in columns:
        shown.add_column(column, justify="right")
    for name in sorted(effects, key=lambda name: effects[name].effect.estimate):
        scores, (functions, effect, _, p) = result.node_types[name], effects[name]
        interval = "-" if math.isnan(effect.low) else f"{effect.low:+.3f} to {effect.high:+.3f}"
        similar = [f"{value:.3f}" for value in (arms[name].t1.mean(), arms[name].t0.mean(), effect.estimate)]
        shown.add_row(
            name,
            str(functions),
            *similar[:2],
            f"{effect.estimate:+.3f}",
            interval,
            f"{p:.4f}",
            *(f"{arm.restored:.1f}" for arm in (scores.t1, scores.t0)),
            str(scores.masked),
        )
    out = console(wide)
    print_table(out, shown, spare=[9, 7, 8, 1])
    out.print(result.signature, soft_wrap=True, highlight=False)
    failed = sum(scores.failed for scores in result.node_types.values())
    if failed:
        out.print(f"comparisons that failed and are in no mean: {failed}")
    if result.skips:
        out.print("skipped: " + ", ".join(f"{count} ({reason})" for reason, count in result.skips.items()))
