"""Results as tables in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from codesyntax_dataset.languages import language_of
from codesyntax_dataset.protocol import TABLE_KS
from codesyntax_metric.topk_uas import NOT_IN_MEAN, RULES
from probing.attention.result import ProbeResult, head_name
from probing.report.terminal import console, print_table, table

_RULE = "first"


def print_result(result: ProbeResult, wide: bool = False) -> None:
    """Print the relations, best first, with the score and its head, and the mean."""
    shown = table(
        f"{result.title}: top-k UAS in percent, {_RULE} token of the dependent, "
        f"{result.functions} {language_of(result.settings.config).units}",
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


def print_beyond(results: Sequence[ProbeResult], wide: bool = False) -> None:
    """Print the beyond-offset score of each model that is there on both splits."""
    from probing.evidence.beyond import AVOIDED, beyond
    from probing.evidence.gather import alike

    chosen_on = {alike(result): result for result in results if result.settings.split == "validation"}
    for result in results:
        validation = chosen_on.get(alike(result))
        if result.settings.split == "validation" or validation is None:
            continue
        for avoided in AVOIDED:
            offsets = "the best offset" if avoided == 1 else f"the {avoided} best offsets"
            found = beyond(validation.ledger, result.ledger, avoided)
            if found is None or not found.in_mean:
                console(wide).print(f"too few edges lie beyond {offsets} of their relations")
                continue
            shown = table(
                f"{result.title}, beyond {offsets}: top-k UAS in percent, {_RULE} token of the dependent, heads chosen "
                "on validation",
                caption="hard: edges whose dependent does not begin there. * not in the mean, as in the paper.",
            )
            shown.add_column("relation", no_wrap=True)
            for name in ("edges", "hard", "best head", *(f"k={k}" for k in TABLE_KS)):
                shown.add_column(name, justify="right")
            scores = found.estimate.relations[0, RULES.index(_RULE)]  # (k, R)
            names = found.outcomes.relations
            for column in sorted(range(len(names)), key=lambda column: -scores[0, column]):
                name = names[column]
                hard, edges = found.edges[name]
                head = "-".join(map(str, found.outcomes.choice[_RULE][name][0]))
                cells = (f"{scores[int(k) - 1, column]:.1f}" for k in TABLE_KS)
                star = " *" if name in NOT_IN_MEAN else ""
                shown.add_row(name + star, str(edges), str(hard), head, *cells)
            shown.add_section()
            low, high = found.estimate.mean[1:, RULES.index(_RULE), 0]
            means = (f"{found.estimate.mean[0, RULES.index(_RULE), int(k) - 1]:.1f}" for k in TABLE_KS)
            title = f"mean of {len(found.in_mean)} relations"
            shown.add_row(title, "", f"{found.share:.0f} %", "", *means, style="bold")
            out = console(wide)
            print_table(out, shown, spare=[3, 1, 6])
            out.print(f"95 % interval of the mean at k = 1: {low:.1f} to {high:.1f}")
            left_out = [f"{name} ({count} functions)" for name, count in sorted(found.few.items())]
            left_out += [f"{name} (none on validation)" for name in found.unchosen]
            if left_out:
                out.print(f"in no mean: {', '.join(left_out)}", soft_wrap=True)
