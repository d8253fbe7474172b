"""A result as a table in the terminal."""

from __future__ import annotations

from codesyntax_dataset.protocol import TABLE_KS
from probing.attention.result import ProbeResult, head_name
from probing.report.terminal import console, print_table, table

_RULE = "first"


def print_result(result: ProbeResult, wide: bool = False) -> None:
    """Print the relations, best first, with the score and its head, and the mean."""
    shown = table(
        f"{result.title}: top-k UAS in percent, {_RULE} token of the dependent, {result.functions} functions",
    )
    shown.add_column("relation", no_wrap=True)
    shown.add_column("edges", justify="right")
    shown.add_column("best head", justify="right")
    for k in TABLE_KS:
        shown.add_column(f"k={k}", justify="right")
    ranked = sorted(result.relations.items(), key=lambda item: (-item[1][_RULE]["1"]["score"], item[0]))
    for name, entry in ranked:
        chosen = entry[_RULE]
        star = "" if entry["in_mean"] else " *"
        shown.add_row(
            name + star, str(entry["edges"]), head_name(chosen["1"]), *(f"{chosen[k]['score']:.1f}" for k in TABLE_KS)
        )
    shown.add_section()
    mean = [result.scores[_RULE][k] for k in TABLE_KS]
    counted = [entry["edges"] for entry in result.relations.values() if entry["in_mean"]]
    texts = ["-" if value is None else f"{value:.1f}" for value in mean]
    shown.add_row(f"mean of {len(counted)} relations", str(sum(counted)), "", *texts, style="bold")
    shown.caption = (
        "best head: layer-head at k = 1, counted from 0; each k has its own. * not in the mean, as in the paper."
    )
    out = console(wide)
    print_table(out, shown, spare=[5, 1])
    out.print(result.signature, soft_wrap=True, highlight=False)
    if result.run.attention_why:
        out.print(f"probed with eager attention maps: {result.run.attention_why}")
    if result.skips:
        out.print("skipped: " + ", ".join(f"{count} ({reason})" for reason, count in result.skips.items()))
