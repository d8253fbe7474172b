"""The result of a probe: scores, their signature, and everything needed to check and repeat them. Needs no torch."""

from __future__ import annotations

import html
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from codesyntax_dataset.arguments import Positive, checked
from codesyntax_dataset.errors import UnknownName
from codesyntax_dataset.protocol import KS, TABLE_KS
from codesyntax_metric.topk_uas import RULES, score
from probing.attention.ledger import RankLedger
from probing.attention.schema import Provenance, ResultFile, Run, Signature, at_step
from probing.runs.ledger_file import ATTENTION
from probing.runs.saved import FORMAT, SavedResult
from probing.runs.settings import Settings

if TYPE_CHECKING:
    import pandas


class ByK(dict[str, Any]):
    """A mapping by k: keys are strings, as in JSON, but `scores[3]` is also accepted for `scores["3"]`."""

    def __missing__(self, k: int | str) -> Any:
        if isinstance(k, int) and str(k) in self:
            return self[str(k)]
        raise KeyError(k)


@dataclass(repr=False)
class ProbeResult(SavedResult):
    """Scores of one model on one split.

    `scores`: {rule: {k: percent}}, the mean over relations. `relations`: {relation: {"edges": n, "in_mean": bool, rule:
    {k: {"score": percent, "layer": int, "head": int}}}}. k is "1" to "20", or a number; layers and heads count from 0.
    `functions`: the number of scored functions; `skips`: {reason: number of skipped ones}. `ties`: {rule: percentage of
    edges decided by a tie}, because the token to be found shares all its sub-tokens with another one, as in `()` for
    most byte-level tokenizers; the lower index goes first. `data_folder`: the location of the data, if it was a folder;
    commands look for it there again. It is not part of the result's identity.
    """

    file: ClassVar = ResultFile

    signature: str
    scores: dict[str, dict[str, float | None]]
    relations: dict[str, dict[str, Any]]
    functions: int
    skips: dict[str, int]
    ties: dict[str, float]
    settings: Settings
    layers: int
    heads: int
    run: Run
    versions: dict[str, str]
    ledger: RankLedger
    data_folder: Path | None = field(default=None, compare=False)

    @classmethod
    def from_file(cls, ledger: Path) -> ProbeResult:
        return cls.from_ledger(RankLedger.open(ledger))

    @classmethod
    def from_ledger(cls, ledger: RankLedger) -> ProbeResult:
        """Compute the result from a ledger, with the metric's functions.

        Raises LedgerError if the ledger does not say how it was made, or has another version of scoring.
        """
        made, counts = Provenance.of(ledger), ledger.counts()
        scores: dict[str, dict[str, float | None]] = {}
        relations: dict[str, dict[str, Any]] = {}
        for rule in RULES:
            result = score(counts, KS, rule)
            scores[rule] = ByK(result["scores"])
            for name, entry in result["relations"].items():
                chosen = ByK({str(k): entry[str(k)] for k in KS})
                relations.setdefault(name, {"edges": entry["edges"], "in_mean": entry["in_mean"]})[rule] = chosen
        return cls(
            signature=str(Signature(made.settings, counts.functions, len(ledger))),
            scores=scores,
            relations=relations,
            functions=counts.functions,
            skips=made.skips,
            ties={rule: 100 * made.ties[rule] / max(1, len(ledger)) for rule in RULES},
            settings=made.settings,
            layers=counts.layers,
            heads=counts.heads,
            run=made.run,
            versions=made.versions,
            ledger=ledger,
        )

    @checked
    def best_heads(self, rule: str = "first", k: Positive = 1) -> dict[str, tuple[int, int]]:
        """Relation -> layer and head, from 0, with the best score by `rule` at `k`; relations sorted by name.

        Raises UnknownName for an unknown rule, or a k that the result does not have.
        """
        if rule not in RULES:
            raise UnknownName("rule", rule, RULES)
        if k not in KS:
            raise UnknownName("k", str(k), map(str, KS))
        cells = {name: relation[rule][k] for name, relation in self.relations.items()}
        return {name: (cell["layer"], cell["head"]) for name, cell in cells.items()}

    def to_pandas(self, what: str = "relations") -> pandas.DataFrame:
        """A table with one row per relation, rule and k of TABLE_KS, scores in percent.

        `what`: `relations`, with the score of the best head, or `heads`, with one row for every attention head.
        """
        import pandas

        if what not in ("relations", "heads"):
            raise UnknownName("table", what, ("relations", "heads"))
        cells = [
            (name, relation, rule, int(k))
            for name, relation in self.relations.items()
            for rule in RULES
            for k in TABLE_KS
        ]
        if what == "relations":
            return pandas.DataFrame(
                {
                    "relation": name,
                    "edges": relation["edges"],
                    "in_mean": relation["in_mean"],
                    "rule": rule,
                    "k": k,
                    **relation[rule][k],
                }
                for name, relation, rule, k in cells
            )
        counts = self.ledger.counts()
        return pandas.DataFrame(
            {
                "relation": name,
                "rule": rule,
                "k": k,
                "layer": layer,
                "head": head,
                "score": 100 * hits[k - 1] / relation["edges"],
            }
            for name, relation, rule, k in cells
            for layer, layer_hits in enumerate(counts.hits(name, rule))
            for head, hits in enumerate(layer_hits)
        )

    @property
    def title(self) -> str:
        """The model and the data, for the titles of tables."""
        made = self.settings
        partial = "" if made.limit is None else f" (PARTIAL: first {made.limit} functions)"
        return f"{at_step(made.model, self.run.step)} on {made.data}, {made.config}/{made.split}{partial}"

    def __repr__(self) -> str:
        lines = [
            f"ProbeResult: {self.title}",
            f"{self.functions} functions, {len(self.ledger)} edges, {len(self.relations)} relations; "
            "top-k UAS in percent:",
            "".join(f"{cell:>8}" for cell in ("rule", *(f"k={k}" for k in TABLE_KS))),
        ]
        for rule in RULES:
            means = [self.scores[rule][k] for k in TABLE_KS]
            lines.append("".join(f"{cell:>8}" for cell in (rule, *("-" if m is None else f"{m:.1f}" for m in means))))
        return "\n".join([*lines, self.signature])

    def _repr_html_(self) -> str:
        """The relations, best first, for notebooks."""
        ranked = sorted(self.relations.items(), key=lambda item: (-item[1]["first"]["1"]["score"], item[0]))
        rows = [("relation", "edges", "best head", *(f"k={k}" for k in TABLE_KS))]
        for name, relation in ranked:
            best = relation["first"]
            scores = [f"{best[k]['score']:.1f}" for k in TABLE_KS]
            rows.append((name, relation["edges"], head_name(best["1"]), *scores))
        means = [self.scores["first"][k] for k in TABLE_KS]
        edges = sum(relation["edges"] for relation in self.relations.values() if relation["in_mean"])
        rows.append(("mean", edges, "", *("-" if mean is None else f"{mean:.1f}" for mean in means)))
        body = "".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
        title = f"{self.title}: top-k UAS in percent, first token of the dependent"
        return f"<p>{html.escape(title)}</p><table>{body}</table><p>{html.escape(self.signature)}</p>"

    def to_json(self, data_path: str | None = None) -> str:
        fields = {"format": FORMAT, "instrument": ATTENTION}
        for name in ("signature", "scores", "relations", "functions", "skips", "ties"):
            fields[name] = getattr(self, name)
        fields["settings"] = self.settings.model_dump()
        fields |= {"layers": self.layers, "heads": self.heads, "run": self.run.model_dump()}
        fields |= {"versions": self.versions, "ledger": self.ledger.digest()}
        if data_path is not None:
            fields["data_path"] = data_path
        return json.dumps(fields, indent=1, allow_nan=False) + "\n"


def head_name(cell: dict[str, Any]) -> str:
    """The attention head of a score as layer-head; `-` if the score is 0, so that no head is the best."""
    return "{layer}-{head}".format(**cell) if cell["score"] else "-"


@checked
def load(path: str | os.PathLike) -> ProbeResult:
    """Load the result at `path`, recomputed from the ledger beside it.

    Raises LedgerError if one of the two is missing or damaged, or if they differ.
    """
    return ProbeResult.load(path)
