"""Baselines as tables on the terminal."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

_KS = ("1", "3", "10", "20")  # as the paper's Table 3
_RULE = "first"
_KINDS = ("offset", "keyword", "combined")


def print_baselines(result: dict[str, Any]) -> None:
    """Print `BaselineResult.to_dict()`: the relations at k = 1 and the means, by both protocols."""
    settings, protocols = result["settings"], result["protocols"]
    console = Console()
    if not console.is_terminal:  # in a pipe or a file, a table is as wide as its rows
        console = Console(width=160, soft_wrap=True)
    console.print(_relations(settings, protocols))
    console.print(_means(protocols))
    for name, edges in protocols["held-out"]["offset"]["unchosen"].items():
        console.print(f"held-out leaves out {name} ({edges} edges): the validation split has none to choose on")


def _relations(settings: dict[str, Any], protocols: dict[str, Any]) -> Table:
    table = Table(
        title=f"baselines on {settings['data']}, {settings['config']}/{settings['split']}: top-1 UAS in percent, "
        f"{_RULE} token of the dependent, {settings['direction']}, {settings['functions']} functions",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        caption="picked: the offset and keyword of the published protocol, on the scored data; held-out: picked on "
        "validation. * not in the mean, as in the paper. ! fewer than 20 edges.",
        caption_justify="left",
    )
    table.add_column("relation", no_wrap=True)
    table.add_column("edges", justify="right")
    table.add_column("picked", justify="right")
    for protocol in protocols:
        for kind in _KINDS:
            table.add_column(f"{protocol}\n{kind}", justify="right")
    best = protocols["published"]["combined"]["relations"]
    for name, entry in sorted(best.items(), key=lambda item: (-item[1][_RULE]["1"]["score"][0], item[0])):
        marks = ("" if entry["in_mean"] else " *") + (" !" if entry["few_edges"] else "")
        picked = protocols["published"]["picked"]
        first = (str(names[0]) for kind in ("offset", "keyword") if (names := picked[kind][_RULE][name]))
        cells = []
        for summaries in protocols.values():
            for kind in _KINDS:
                found = summaries[kind]["relations"].get(name)
                cells.append("-" if found is None else f"{found[_RULE]['1']['score'][0]:.1f}")
        table.add_row(name + marks, str(entry["edges"]), " ".join(first), *cells)
    return table


def _means(protocols: dict[str, Any]) -> Table:
    table = Table(
        title=f"mean over relations, {_RULE} token, with 95 % intervals from a bootstrap over functions",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("baseline")
    table.add_column("relations", justify="right")
    for k in _KS:
        table.add_column(f"k={k}", justify="right")
    for protocol, summaries in protocols.items():
        for kind in _KINDS:
            counted = sum(entry["in_mean"] for entry in summaries[kind]["relations"].values())
            scores = [summaries[kind]["scores"][_RULE][k] for k in _KS]
            cells = ["-" if found is None else "{:.1f} [{:.1f}, {:.1f}]".format(*found) for found in scores]
            table.add_row(f"{kind}, {protocol}", str(counted), *cells)
    return table
