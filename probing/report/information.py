"""What attention adds to words and positions: the table of a result."""

from __future__ import annotations

from codesyntax_dataset.languages import language_of
from probing.evidence.effect import Effect
from probing.evidence.usable import Usable, usable
from probing.information.result import InformationResult
from probing.report.document import COST, COUNT, NAME, PERCENT, SIMILARITY, Column, Table


def table(result: InformationResult, found: Usable) -> Table:
    """The relations, those to which attention adds most first, and their mean."""
    order = sorted(result.relations, key=lambda name: (-result.relations[name].adds, name))
    rows: list[list[object]] = []
    for name in order:
        one = result.relations[name]
        scores: list[object] = [one.best, one.attention.uas, one.words.uas, one.both.uas]
        adds = _shown(found.relations[name]["adds"])
        beyond: list[object] = [one.missed, one.beyond, one.attention_beyond]
        rows.append([name + ("" if one.in_mean else " *"), one.edges, *scores, one.words.bits, adds, *beyond])
    mean, totals = result.mean, []
    if mean is not None and found.mean is not None:
        scores = [mean.best, mean.attention.uas, mean.words.uas, mean.both.uas]
        adds = _shown(found.mean["adds"])
        beyond = ["", mean.beyond, mean.attention_beyond]
        totals = [[f"mean of {mean.relations} relations", "", *scores, mean.words.bits, adds, *beyond]]
    return Table(
        "information",
        f"{result.title}: what the attention of all heads adds to words and positions, {result.functions} "
        f"{language_of(result.settings.config).units}",
        [
            Column("relation", NAME),
            Column("edges", COUNT, spare=(4,)),
            Column("best head", PERCENT, "top-1 UAS"),
            Column("all heads", PERCENT, "top-1 UAS"),
            Column("words", PERCENT, "top-1 UAS"),
            Column("both", PERCENT, "top-1 UAS"),
            Column("open", SIMILARITY, "bits", spare=(3,)),
            Column("attention adds", COST, "bits", spare=(0, 5)),
            Column("missed", COUNT, "beyond rules", spare=(2,)),
            Column("best head", PERCENT, "beyond rules", spare=(1,)),
            Column("all heads", PERCENT, "beyond rules", spare=(1,)),
        ],
        rows,
        "All are fitted or chosen on validation. Words: words and positions, without any model; all heads: their "
        "attention in a log-linear choice; both: the two together. Open: the mean log-loss of words and positions, of "
        "which attention adds so many bits, with 95 % intervals over functions. Beyond rules: percent of the edges "
        "that words and positions miss. * not in the mean: too few edges, or not in the paper's.",
        totals=totals,
    )


def sentence(result: InformationResult, found: Usable) -> str:
    """What attention adds, in words."""
    mean = result.mean
    if mean is None or found.mean is None or found.share is None:
        return "No relation has edges enough for a mean."
    adds, share = found.mean["adds"], found.share
    return (
        f"Over {mean.relations} relations the best head finds {mean.best:.1f} % of the dependents, the attention of "
        f"all heads {mean.attention.uas:.1f} %, words and positions without a model {mean.words.uas:.1f} %, and both "
        f"{mean.both.uas:.1f} %. Words and positions leave {mean.words.bits:.3f} bits open, to which attention adds "
        f"{adds.estimate:.3f} (95 % interval {adds.low:.3f} to {adds.high:.3f}), {share.estimate:.1f} % of them."
    )


def parts_of(result: InformationResult) -> list[str | Table]:
    """The table, and what is said below it."""
    found = usable(result)
    left_out = [f"{count:,} edges ({reason})" for reason, count in result.left_out.items() if count]
    left_out += [f"{count:,} functions ({reason})" for reason, count in result.skips.items()]
    below = [f"left out: {', '.join(left_out)}"] if left_out else []
    return [table(result, found), sentence(result, found), result.signature, *below]


def _shown(effect: Effect) -> list[float | None]:
    return [None if value != value else value for value in effect]
