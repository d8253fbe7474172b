"""The result of a probe: scores, their signature, and everything needed to check and repeat them.
Needs no torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field

from codesyntax_dataset.arguments import Positive, StrPath, checked
from codesyntax_dataset.errors import UnknownName
from codesyntax_dataset.protocol import KS, TABLE_KS
from codesyntax_metric.topk_uas import RULES, SCORING_VERSION, score
from probing.instruments.attention.ledger import RankLedger
from probing.runs.records import Count, FieldsByName, Number, Numbers, exactly
from probing.runs.saved import Circumstances, Measured, Provenance, Result
from probing.runs.settings import Settings

if TYPE_CHECKING:
    import pandas


WIDEST = (
    "0.0 %: weights that are all but equal, summed over sub-tokens, choose the token with the most sub-tokens, as in a "
    "model that has hardly been trained"
)
"""What to say where no head finds anything."""


class ByK(dict[str, Any]):
    """A mapping by k: keys are strings, as in JSON, but `scores[3]` is also accepted for
    `scores["3"]`."""

    def __missing__(self, k: int | str) -> Any:
        if isinstance(k, int) and str(k) in self:
            return self[str(k)]
        raise KeyError(k)


class ProbeRun(Circumstances):
    """The circumstances of a probe."""

    attention: str
    """The way attention was read: `captured` or `eager`."""
    attention_why: str
    """The reason if it was not captured."""
    step: Number | None = Field(default=None, exclude_if=lambda step: step is None)
    """The training step of a checkpoint (`probing.models.location`)."""


class ProbeProvenance(Provenance):
    """The origin of a rank ledger."""

    VERSION = SCORING_VERSION
    VERSIONED = "scoring"
    SIGNATURE_FIELDS = (
        "uas",
        (
            "direction pool max_length also_fits dtype functions edges scoring"
            " begin control not_predicted"
        ).split(),
    )

    settings: Settings
    scoring: int
    ties: Annotated[Numbers, exactly(RULES)]
    """Rule -> number of edges decided by a tie."""
    run: ProbeRun


class HeadScore(FieldsByName):
    """The score of a relation by one rule and k, in percent, and the attention head that has it."""

    score: float
    layer: int
    head: int


CellsByK = Annotated[dict[str, HeadScore], AfterValidator(ByK)]


class RelationScores(FieldsByName):
    """The scores of a relation by each rule: k -> score and head."""

    edges: Count
    in_mean: bool
    first: CellsByK
    any: CellsByK
    last: CellsByK


class ProbeResult(Result[RankLedger]):
    """Scores of one model on one split. k is "1" to "20", or a number; layers and heads count from
    0."""

    LEDGER = RankLedger
    PROVENANCE = ProbeProvenance

    instrument: Literal["attention"]
    settings: Settings
    run: ProbeRun
    scores: dict[str, Annotated[dict[str, float | None], AfterValidator(ByK)]]
    """Rule -> k -> percent, the mean over relations."""
    relations: dict[str, RelationScores]
    ties: dict[str, float]
    """Rule -> percentage of edges decided by a tie: the token to be found shares all its sub-tokens
    with another one, as in `()` for most byte-level tokenizers; the lower index goes first."""
    layers: Count
    heads: Count

    @classmethod
    def measured(cls, ledger: RankLedger, provenance: ProbeProvenance) -> Measured:
        counts = ledger.counts()
        by_rule = {rule: score(counts, KS, rule) for rule in RULES}
        relations = {}
        for name, scored in by_rule[RULES[0]]["relations"].items():
            relations[name] = {"edges": scored["edges"], "in_mean": scored["in_mean"]}
            for rule in RULES:
                cells = by_rule[rule]["relations"][name]
                relations[name][rule] = {str(k): cells[str(k)] for k in KS}
        return {"functions": counts.functions, "edges": len(ledger)}, {
            "functions": counts.functions,
            "scores": {rule: by_rule[rule]["scores"] for rule in RULES},
            "relations": relations,
            "ties": {rule: 100 * provenance.ties[rule] / max(1, len(ledger)) for rule in RULES},
            "layers": counts.layers,
            "heads": counts.heads,
        }

    @checked
    def best_heads(self, rule: str = "first", k: Positive = 1) -> dict[str, tuple[int, int]]:
        """Relation -> layer and head, from 0, with the best score by `rule` at `k`; relations
        sorted by name.

        Layers without attention are not counted.

        Raises UnknownName for an unknown rule, or a k that the result does not have.
        """
        if rule not in RULES:
            raise UnknownName("rule", rule, RULES)
        if k not in KS:
            raise UnknownName("k", str(k), map(str, KS))
        cells = {name: relation[rule][k] for name, relation in self.relations.items()}
        return {name: (cell["layer"], cell["head"]) for name, cell in cells.items()}

    def to_pandas(self) -> pandas.DataFrame:
        """A table with one row per relation, rule and k of TABLE_KS, with the score of the best
        head, in percent."""
        import pandas

        return pandas.DataFrame(
            {
                "relation": name,
                "edges": relation["edges"],
                "in_mean": relation["in_mean"],
                "rule": rule,
                "k": int(k),
                **relation[rule][k],
            }
            for name, relation in self.relations.items()
            for rule in RULES
            for k in TABLE_KS
        )

    @property
    def model(self) -> str:
        """With its step in training if it is a checkpoint."""
        name, step = self.settings.model, self.run.step
        return name if step is None else f"{name} at step {step:,}"


def head_name(cell: HeadScore | Mapping[str, Any]) -> str:
    """The attention head of a score as layer-head; `-` if the score is 0, so that no head is the
    best."""
    return f"{cell['layer']}-{cell['head']}" if cell["score"] else "-"


@checked
def load(path: StrPath) -> ProbeResult:
    """Load the result at `path`, recomputed from the ledger beside it.

    Raises LedgerError if one of the two is missing or damaged, or if they differ.
    """
    return ProbeResult.load(path)
