"""What a probe found: scores, their signature, and everything needed to trust and repeat them. Needs no torch."""

from __future__ import annotations

import html
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codesyntax_dataset.arguments import Positive, checked
from codesyntax_dataset.atomic import write, writing
from codesyntax_dataset.errors import LedgerError, UnknownName
from codesyntax_dataset.protocol import KS, TABLE_KS
from codesyntax_metric.topk_uas import RULES, score
from probing.attention.ledger import RankLedger
from probing.attention.schema import INSTRUMENT, Provenance, ResultFile, Run, Signature
from probing.runs.saved import FORMAT, data_path_of, read_text, seen_from
from probing.runs.settings import Settings

if TYPE_CHECKING:
    import pandas


class ByK(dict[str, Any]):
    """What there is for each k: keys are strings, as in JSON, and `of[3]` finds what `of["3"]` does."""

    def __missing__(self, k: int | str) -> Any:
        if isinstance(k, int) and str(k) in self:
            return self[str(k)]
        raise KeyError(k)


@dataclass(repr=False)
class ProbeResult:
    """Scores of one model on one split.

    `scores`: {rule: {k: percent}}, the mean over relations. `relations`: {relation: {"edges": n, "in_mean": bool, rule: {k:
    {"score": percent, "layer": int, "head": int}}}}. k is from "1" to "20", or a number; layers and heads count from 0.
    `functions`: how many were scored; `skips`: {reason: how many were not}. `ties`: {rule: percent of the edges that a tie
    decides}, because the token looked for shares all its sub-tokens with another one, as those of `()` do in most
    byte-level tokenizers; the lower index goes first. `data_folder`: where the data was, if it was a folder; commands look
    for it there again, and it is no part of what was found.
    """

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
    def from_ledger(cls, ledger: RankLedger) -> ProbeResult:
        """Every number of the result, computed from the ledger by the metric's own functions.

        Raises LedgerError where the ledger does not tell what made it, or another version of scoring did.
        """
        made, counts = Provenance.of(ledger), ledger.counts()
        scores, relations = {}, {}
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
        """Relation -> layer and head, from 0, that reach its score by `rule` at `k`; relations by name.

        Raises UnknownName for another rule, or a k that the result does not have.
        """
        if rule not in RULES:
            raise UnknownName("rule", rule, RULES)
        if k not in KS:
            raise UnknownName("k", str(k), map(str, KS))
        return {name: (of[rule][k]["layer"], of[rule][k]["head"]) for name, of in self.relations.items()}

    def to_pandas(self, what: str = "relations") -> pandas.DataFrame:
        """A table with a row for each relation, rule and k of TABLE_KS, scores in percent.

        `what`: `relations`, each with the score of its best head, or `heads`, each with the score of every attention head.
        """
        import pandas

        if what not in ("relations", "heads"):
            raise UnknownName("table", what, ("relations", "heads"))
        cells = [(name, of, rule, int(k)) for name, of in self.relations.items() for rule in RULES for k in TABLE_KS]
        if what == "relations":
            return pandas.DataFrame(
                {"relation": name, "edges": of["edges"], "in_mean": of["in_mean"], "rule": rule, "k": k, **of[rule][k]}
                for name, of, rule, k in cells
            )
        counts = self.ledger.counts()
        return pandas.DataFrame(
            {
                "relation": name,
                "rule": rule,
                "k": k,
                "layer": layer,
                "head": head,
                "score": 100 * hits[k - 1] / of["edges"],
            }
            for name, of, rule, k in cells
            for layer, of_layer in enumerate(counts.hits(name, rule))
            for head, hits in enumerate(of_layer)
        )

    @property
    def title(self) -> str:
        """What was probed with what, as tables say it."""
        made = self.settings
        partial = "" if made.limit is None else f" (PARTIAL: first {made.limit} functions)"
        return f"{made.model} on {made.data}, {made.config}/{made.split}{partial}"

    def __repr__(self) -> str:
        lines = [
            f"ProbeResult: {self.title}",
            f"{self.functions} functions, {len(self.ledger)} edges, {len(self.relations)} relations; top-k UAS in percent:",
            "".join(f"{cell:>8}" for cell in ("rule", *(f"k={k}" for k in TABLE_KS))),
        ]
        for rule in RULES:
            means = [self.scores[rule][k] for k in TABLE_KS]
            lines.append("".join(f"{cell:>8}" for cell in (rule, *("-" if m is None else f"{m:.1f}" for m in means))))
        return "\n".join([*lines, self.signature])

    def _repr_html_(self) -> str:
        """The relations, best first, as a notebook shows them."""
        ranked = sorted(self.relations.items(), key=lambda item: (-item[1]["first"]["1"]["score"], item[0]))
        rows = [("relation", "edges", "best head", *(f"k={k}" for k in TABLE_KS))]
        for name, of in ranked:
            rows.append(
                (name, of["edges"], head_name(of["first"]["1"]), *(f"{of['first'][k]['score']:.1f}" for k in TABLE_KS))
            )
        means = [self.scores["first"][k] for k in TABLE_KS]
        edges = sum(of["edges"] for of in self.relations.values() if of["in_mean"])
        rows.append(("mean", edges, "", *("-" if mean is None else f"{mean:.1f}" for mean in means)))
        body = "".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
        title = f"{self.title}: top-k UAS in percent, first token of the dependent"
        return f"<p>{html.escape(title)}</p><table>{body}</table><p>{html.escape(self.signature)}</p>"

    def to_json(self, data_path: str | None = None) -> str:
        """The result as JSON, with the digest of its ledger; the same result gives the same text.

        `data_path`: where the folder of the data is, seen from the file that the text is for.
        """
        fields = {"format": FORMAT, "instrument": INSTRUMENT}
        for name in ("signature", "scores", "relations", "functions", "skips", "ties"):
            fields[name] = getattr(self, name)
        fields["settings"] = self.settings.model_dump()
        fields |= {"layers": self.layers, "heads": self.heads, "run": self.run.model_dump()}
        fields |= {"versions": self.versions, "ledger": self.ledger.digest()}
        if data_path is not None:
            fields["data_path"] = data_path
        return json.dumps(fields, indent=1, allow_nan=False) + "\n"

    def difference(self, text: str) -> str | None:
        """What a text says otherwise than this result as JSON, of any format and wherever its data is; None for nothing."""
        try:
            said, ours = ResultFile.read(text), ResultFile.read(self.to_json())
        except LedgerError as error:
            return str(error)
        names = ResultFile.model_fields.keys() - {"format", "data_path"}
        return next((f"other {name}" for name in sorted(names) if getattr(said, name) != getattr(ours, name)), None)

    def paths(self, folder: str | os.PathLike) -> tuple[Path, Path]:
        """Where `save` puts the result and the ledger: `<name>.json` and `<name>.ledger.parquet` in `folder`."""
        name = self.settings.name
        return Path(folder) / f"{name}.json", Path(folder) / f"{name}.ledger.parquet"

    def save(self, path: str | os.PathLike) -> Path:
        """Write the result and its ledger into the folder `path`; returns the path of the result's JSON."""
        target, ledger = self.paths(path)
        with writing(target.parent):
            target.parent.mkdir(parents=True, exist_ok=True)
        self.ledger.save(ledger)
        return write(target, self.to_json(self.data_folder and seen_from(target.parent, self.data_folder)))


def head_name(cell: dict[str, Any]) -> str:
    """The attention head of a relation's score as layer-head; `-` where the score is 0, which any head has."""
    return "{layer}-{head}".format(**cell) if cell["score"] else "-"


def ledger_path(result: str | os.PathLike) -> Path:
    """Where the ledger of a result lies: beside its JSON."""
    path = Path(result)
    return path.with_name(path.name.removesuffix(".json") + ".ledger.parquet")


@checked
def load(path: str | os.PathLike) -> ProbeResult:
    """The result at `path`, computed again from the ledger beside it.

    Raises LedgerError where one of the two is missing or damaged, or the JSON says anything else than its ledger.
    """
    text = read_text(path)
    result = ProbeResult.from_ledger(RankLedger.load(ledger_path(path)))
    if difference := result.difference(text):
        raise LedgerError(
            f"the numbers of {path} do not follow from its ledger ({difference}): one of the two was altered, or another "
            "version of codesyntax wrote them; `codesyntax score` computes them again"
        )
    data_path = data_path_of(text)
    result.data_folder = None if data_path is None else Path(path).parent / data_path
    return result
