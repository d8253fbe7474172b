"""A result as a table on the terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table

from probing.result import ProbeResult

_KS = ("1", "3", "10", "20")  # as the paper's Table 3
_RULE = "first"


def print_result(result: ProbeResult) -> None:
    """Print the relations, best first, with the score and the head that reaches it, and the mean."""
    settings = result.settings
    partial = "" if settings["limit"] is None else f" (PARTIAL: first {settings['limit']} functions)"
    table = Table(
        title=f"{settings['model']} on {settings['data']}, {settings['config']}/{settings['split']}{partial}: "
        f"top-k UAS in percent, {_RULE} token of the dependent, {result.functions} functions",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("relation", no_wrap=True)
    table.add_column("edges", justify="right")
    table.add_column("best head", justify="right")
    for k in _KS:
        table.add_column(f"k={k}", justify="right")
    ranked = sorted(result.relations.items(), key=lambda item: (-item[1][_RULE]["1"]["score"], item[0]))
    for name, entry in ranked:
        chosen = entry[_RULE]
        star = "" if entry["in_mean"] else " *"
        head = f"{chosen['1']['layer']}-{chosen['1']['head']}"
        table.add_row(name + star, str(entry["edges"]), head, *(f"{chosen[k]['score']:.1f}" for k in _KS))
    table.add_section()
    mean = [result.scores[_RULE][k] for k in _KS]
    counted = sum(entry["in_mean"] for entry in result.relations.values())
    total = sum(entry["edges"] for entry in result.relations.values())
    texts = ["-" if value is None else f"{value:.1f}" for value in mean]
    table.add_row(f"mean of {counted} relations", str(total), "", *texts, style="bold")
    table.caption = (
        "best head: layer-head at k = 1, counted from 0; each k has its own. * not in the mean, as in the paper.\n"
        + result.signature
    )
    table.caption_justify = "left"
    console = Console()
    if not console.is_terminal:  # a table in a pipe or a file is as wide as its rows, not as a terminal that is not there
        console = Console(width=160, soft_wrap=True)
    console.print(table)
    if settings["attention_why"]:
        console.print(f"probed by eager attention maps: {settings['attention_why']}")
    if result.skips:
        console.print("skipped: " + ", ".join(f"{count} ({reason})" for reason, count in result.skips.items()))
