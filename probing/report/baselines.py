"""Baselines as tables in the terminal."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from codesyntax_dataset.languages import language_of
from codesyntax_dataset.protocol import TABLE_KS
from probing.evidence.baselines import kinds_of
from probing.report.terminal import console, print_table, table

_RULE = "first"


def print_baselines(result: dict[str, Any], wide: bool = False) -> None:
    """Print `BaselineResult.to_dict()`: the relations at k = 1 and the means, by both protocols."""
    settings, protocols = result["settings"], result["protocols"]
    out = console(wide)
    print_table(out, _relations(settings, protocols), spare=[2, 3, 4, 1])
    print_table(out, _means(kinds_of(settings["config"]), protocols, result["same_relations"]), spare=[1, 3, 4])
    for name, edges in protocols["held-out"]["offset"]["unchosen"].items():
        out.print(f"held-out excludes {name} ({edges} edges): the validation split has no edges of it to choose on")


def _relations(settings: dict[str, Any], protocols: dict[str, Any]) -> Table:
    shown = table(
        f"baselines on {settings['data']}, {settings['config']}/{settings['split']}: top-1 UAS in percent, "
        f"{_RULE} token of the dependent, {settings['direction']}, {settings['functions']} "
        f"{language_of(settings['config']).units}",
        caption="picked: offset and keyword of the published protocol, chosen on the scored data; held-out: chosen on "
        "validation. * not in the mean, as in the paper. ! in fewer than 6 functions.",
    )
    shown.add_column("relation", no_wrap=True)
    shown.add_column("edges", justify="right")
    shown.add_column("picked", justify="right")
    kinds = kinds_of(settings["config"])
    for protocol in protocols:
        for kind in kinds:
            shown.add_column(f"{protocol}\n{kind}", justify="right")
    best = protocols["published"]["combined"]["relations"]
    for name, entry in sorted(best.items(), key=lambda item: (-item[1][_RULE]["1"]["score"][0], item[0])):
        marks = ("" if entry["in_mean"] else " *") + (" !" if entry["few_functions"] else "")
        picked = protocols["published"]["picked"]
        first = (str(names[0]) for kind in ("offset", "keyword") if (names := picked[kind][_RULE][name]))
        cells = []
        for summaries in protocols.values():
            for kind in kinds:
                scores = summaries[kind]["relations"].get(name)
                cells.append("-" if scores is None else f"{scores[_RULE]['1']['score'][0]:.1f}")
        shown.add_row(name + marks, str(entry["edges"]), " ".join(first), *cells)
    return shown


def _means(kinds: list[str], protocols: dict[str, Any], same_relations: dict[str, Any]) -> Table:
    """Means by both protocols; if held-out has fewer relations, published ones over these are added."""
    shown = table(
        f"mean over relations, {_RULE} token, with 95 % intervals from a bootstrap over functions",
    )
    shown.add_column("baseline")
    shown.add_column("relations", justify="right")
    for k in TABLE_KS:
        shown.add_column(f"k={k}", justify="right")
    counted = {
        protocol: sum(entry["in_mean"] for entry in summaries["combined"]["relations"].values())
        for protocol, summaries in protocols.items()
    }
    rows = [
        (protocol, counted[protocol], {kind: summaries[kind]["scores"] for kind in kinds})
        for protocol, summaries in protocols.items()
    ]
    if counted["published"] > counted["held-out"]:
        rows.insert(1, ("published", counted["held-out"], same_relations))
    for protocol, number, means in rows:
        for kind in kinds:
            scores = [means[kind][_RULE][k] for k in TABLE_KS]
            cells = ["-" if score is None else "{:.1f} [{:.1f}, {:.1f}]".format(*score) for score in scores]
            shown.add_row(f"{kind}, {protocol}", str(number), *cells)
    return shown
