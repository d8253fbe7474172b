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
    """Scores of the attention heads of one model on one split. k is "1" to "20", or a number;
    layers and heads count from 0.

    `probing.probe` and `probing.load` return it; nobody makes one by hand.

    Attributes:
        format: of the file, raised with each change.
        instrument: `attention`.
        signature: what the scores depend on, as text: only results with one signature, but for the
            model, compare.
        settings: the same as fields: model, revision, data, config, split, direction, and so on.
        run: the circumstances, on which scores do not depend: device, model family, how attention
            was read.
        versions: library -> version.
        functions: how many were scored.
        skips: reason -> how many functions were left out.
        ledger: of ranks (rules, edges, layers, heads), uint8.
        data_path: where the dataset was, seen from the file, if it was local.
        model_path: the same of the model.
        scores: rule -> k -> top-k UAS in percent, the mean over relations.
        relations: relation -> its `edges`, whether it is `in_mean`, and rule -> k -> `score` in
            percent, `layer` and `head` of the best head.
        ties: rule -> percent of edges decided by a tie.
        layers: how many the model has.
        heads: how many a layer has.

    Examples:
        >>> import probing
        >>> result = probing.probe("tiny-code-lm", "codesyntax", limit=4)
        >>> result.relations["If:if->body"].edges
        10
        >>> list(result.scores)
        ['first', 'any', 'last']
    """

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
        """The attention head of each relation that has the best score. Layers without attention are
        not counted.

        Args:
            rule: which token of the dependent counts: `first`, `any` or `last`.
            k: within how many predictions the dependent must be, 1 to 20.

        Returns:
            Relation -> (layer, head), from 0; relations sorted by name.

        Raises:
            UnknownName: an unknown rule, or a k that the result does not have.

        Examples:
            >>> import probing
            >>> result = probing.probe("tiny-code-lm", "codesyntax", limit=4)
            >>> sorted(result.best_heads(k=3)) == sorted(result.relations)
            True
        """
        if rule not in RULES:
            raise UnknownName("rule", rule, RULES)
        if k not in KS:
            raise UnknownName("k", str(k), map(str, KS))
        cells = {name: relation[rule][k] for name, relation in self.relations.items()}
        return {name: (cell["layer"], cell["head"]) for name, cell in cells.items()}

    def to_pandas(self) -> pandas.DataFrame:
        """The scores of the best heads as a table.

        Returns:
            A row for each relation, rule and k of 1, 3, 10 and 20: `edges`, `in_mean`, `score` in
            percent, `layer` and `head`.

        Examples:
            >>> import probing
            >>> probing.probe("tiny-code-lm", "codesyntax", limit=4).to_pandas().columns.tolist()
            ['relation', 'edges', 'in_mean', 'rule', 'k', 'score', 'layer', 'head']
        """
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
    """Load the result of a probe, recomputed from the ledger beside it.

    Args:
        path: the JSON file that `probing.probe` wrote to `output`.

    Returns:
        The scores, in percent, and their `ledger`.

    Raises:
        LedgerError: one of the two is missing or damaged, or they differ.

    Examples:
        >>> import probing
        >>> from pathlib import Path
        >>> path = sorted(Path("results").glob("tiny-code-lm.python.test.*.json"))[0]
        >>> probing.load(path).functions
        20
    """
    return ProbeResult.load(path)
