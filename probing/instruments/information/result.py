"""The result of an information probe: what attention adds by relation, and everything needed to
check and repeat it.

A ledger needs no torch and no model: numpy and pyarrow read it. As Parquet it has one row per drawn
edge of a learned relation, sorted by function (its position in the split) and `edge` (its position
among those of the function), with the rank of the dependent, 0 = best, and its log-loss in bits, by
three log-linear choices: `words` (and positions), the `attention` of all heads, and `both`.
`best_rank` is by one attention head, the one that finds most edges of the relation on validation.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from codesyntax_dataset.errors import LedgerError
from codesyntax_metric.topk_uas import NOT_IN_MEAN
from probing.runs import ledger_file
from probing.runs.ledger_file import RowLedger
from probing.runs.records import Count, Number, Numbers, Record, exactly, listed
from probing.runs.saved import Circumstances, Measured, Provenance, Result
from probing.runs.settings import ControlledSettings

LEAST_EDGES = 25
"""A relation with fewer drawn edges of validation is not learned, and with fewer of test in no
mean."""

CHOICES = WORDS, ATTENTION, BOTH = "words", "attention", "both"
"""The log-linear choices: from words and positions, from the attention of all heads, and from
both."""

BITS_DECIMALS = 4
"""Those of bits."""


class InformationLedger(RowLedger):
    """N drawn edges."""

    ROW = np.dtype(
        [
            ("function", "<i4"),
            ("edge", "<i4"),  # its position among the edges of the function
            ("relation", "<i4"),
            ("head", "<i4"),  # token
            ("first", "<i4"),  # token of the dependent
            ("dependents", "<i4"),  # that the head token has in the relation, drawn or not
            ("candidates", "<i4"),  # all tokens but the head
            *((f"{choice}_rank", "<i4") for choice in CHOICES),
            ("best_rank", "<i4"),
            *((f"{choice}_bits", "<f8") for choice in CHOICES),
        ]
    )
    ORDER = ("function", "edge")
    GROUP_COLUMN = "relation"
    INSTRUMENT = ledger_file.INFORMATION
    COMMAND = "inform"
    DICTIONARY_COLUMNS = (
        "function",
        "relation",
        "candidates",
        *(f"{choice}_rank" for choice in CHOICES),
    )
    BOUNDS: ClassVar = {f"{choice}_bits": (0, np.inf) for choice in CHOICES}

    @classmethod
    def check(cls, rows: np.ndarray) -> None:
        super().check(rows)
        ranks = np.stack([rows[name] for name in cls.ROW.names or () if name.endswith("_rank")])
        if (ranks < 0).any() or (ranks >= rows["candidates"]).any():
            raise ValueError("ranks that cannot be")
        if (rows["dependents"] < 1).any() or (rows["dependents"] > rows["candidates"]).any():
            raise ValueError("numbers of dependents that cannot be")


VERSION = 5
"""Of drawing, learning and scoring: raised whenever the same settings give other numbers."""

NOT_ASKED = (
    "dependent begins at its head token",
    "not drawn",
    f"relation with fewer than {LEAST_EDGES} drawn edges of validation, or in one function of it",
)
"""Why an edge of test is not scored."""

DirectedHead = Annotated[tuple[Number, Number, Number], listed]
"""Layer; direction, 0 from the head token and 1 to it; and number in its layer."""


class LearnedRelation(Record):
    """The outcome of learning a relation on drawn `edges` of validation, of which words and
    positions `missed` some.

    `features`: the richest of the nested sets that words and positions use; `best`: the attention
    head that finds most edges with one guess. `penalties`:
    of words, attention, and attention beside words; None where attention did not lower the loss on
    unseen folds by a standard error.
    """

    edges: Count
    missed: Number
    features: str
    best: DirectedHead
    penalties: Annotated[tuple[float, float, float | None], listed]


class InformationSettings(ControlledSettings):
    """Everything that determines an information probe; `labels`: of the split that is scored."""

    KIND = (ledger_file.INFORMATION,)

    learned_on: str  # digest of the labels and repositories of the split validation
    edges: int  # the most that are drawn of a relation and split

    def signature_fields(self) -> dict[str, Any]:
        return {**super().signature_fields(), "drawn": self.edges}


class InformationRun(Circumstances):
    """The circumstances of the run."""

    layers: Count
    heads: Count
    """In each layer."""


class InformationProvenance(Provenance):
    """The origin of an information ledger."""

    VERSION = VERSION
    SIGNATURE_FIELDS = (
        "bits",
        "learned_on max_length dtype drawn edges version begin control".split(),
    )

    settings: InformationSettings
    version: int
    left_out: Annotated[Numbers, exactly(NOT_ASKED)]
    """Reason -> number of edges that are not scored."""
    learned: dict[str, LearnedRelation]
    run: InformationRun


class ChoiceScore(Record):
    """The success of a log-linear choice of dependents: `uas`, top-1 in percent, and `bits`, the
    mean log-loss."""

    uas: float
    bits: float


class RelationInformation(Record):
    """The scores on a relation's `edges` in so many `functions`.

    `best`: top-1 UAS of one head, percent; `adds`: bits that attention adds to words and positions,
    which leave `words.bits` open, of which nobody can close `floor`.
    """

    edges: Count
    functions: Count
    in_mean: bool
    best: float
    words: ChoiceScore
    attention: ChoiceScore
    both: ChoiceScore
    floor: float
    adds: float


class MeanInformation(Record):
    """Means over the relations with `in_mean`.

    `share`: the closed share, percent of the bits that words and positions leave open above the
    floor.
    """

    relations: Number
    best: float
    words: ChoiceScore
    attention: ChoiceScore
    both: ChoiceScore
    floor: float
    adds: float
    share: float | None


class InformationResult(Result[InformationLedger]):
    """The information in one model's attention on one split beyond words and positions."""

    LEDGER = InformationLedger
    PROVENANCE = InformationProvenance

    instrument: Literal["information"]
    settings: InformationSettings
    run: InformationRun
    mean: MeanInformation | None
    relations: dict[str, RelationInformation]
    learned: dict[str, LearnedRelation]
    left_out: Numbers

    @classmethod
    def measured(cls, ledger: InformationLedger, provenance: InformationProvenance) -> Measured:
        rows = ledger.rows
        relations = {
            name: _relation_information(name, rows[chosen])
            for name, chosen in sorted(ledger.named().items())
        }
        if strange := sorted(relations.keys() - provenance.learned.keys()):
            raise LedgerError(
                f"the ledger has edges of {strange[0]}, which was not learned: run `codesyntax inform`"
            )
        counted = [relation for relation in relations.values() if relation.in_mean]
        return {"edges": len(rows)}, {
            "functions": len(np.unique(ledger.function)),
            "mean": _mean_information(counted),
            "relations": relations,
        }


def counts_in_mean(name: str, edges: int) -> bool:
    """True if a relation with so many drawn edges is in the means."""
    return name not in NOT_IN_MEAN and edges >= LEAST_EDGES


def floor_bits(rows: np.ndarray) -> np.ndarray:
    """The bits of each edge that even a parser leaves open: of a head token with n dependents it
    cannot tell which one is asked for."""
    return np.log2(rows["dependents"])


def _relation_information(name: str, rows: np.ndarray) -> RelationInformation:
    scores = {
        choice: ChoiceScore(
            uas=100 * float((rows[f"{choice}_rank"] == 0).mean()),
            bits=float(rows[f"{choice}_bits"].mean()),
        )
        for choice in CHOICES
    }
    return RelationInformation(
        edges=len(rows),
        functions=len(np.unique(rows["function"])),
        in_mean=counts_in_mean(name, len(rows)),
        best=100 * float((rows["best_rank"] == 0).mean()),
        **scores,
        floor=float(floor_bits(rows).mean()),
        adds=float((rows["words_bits"] - rows["both_bits"]).mean()),
    )


def _mean_information(relations: list[RelationInformation]) -> MeanInformation | None:
    """None without any relation."""
    if not relations:
        return None

    def of(name: str) -> float:
        return float(np.mean([attrgetter(name)(scores) for scores in relations]))

    choices = {
        choice: {"uas": of(f"{choice}.uas"), "bits": of(f"{choice}.bits")} for choice in CHOICES
    }
    floor = of("floor")
    left_open = choices[WORDS]["bits"] - floor
    adds = of("adds")
    means = {
        "relations": len(relations),
        "share": 100 * adds / left_open if left_open > 0 else None,
        "best": of("best"),
        "floor": floor,
        "adds": adds,
        **choices,
    }
    return MeanInformation.model_validate(means)
