"""The ledger of a masking run, and its result: means by node type, signature, and what is needed to
repeat them.

The ledger has what a model restored in each masked copy of each function; every score is computed
from it. It needs no torch and no model: numpy and pyarrow read it. As Parquet it has one row per
copy, sorted by function (its position in the split), node type and copy: 0 is T1, in which the
nodes of the type are masked, the others are its controls T0, in which as many random sub-tokens are
(Velasco et al. 2024, section 3).
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from codesyntax_dataset.errors import LedgerError
from probing.runs import ledger_file
from probing.runs.ledger_file import LOG_PROBABILITY, MASKING, RowLedger
from probing.runs.records import Count, Number, Numbers, Record, Texts, exactly, listed
from probing.runs.saved import Circumstances, Measured, Provenance, Result
from probing.runs.settings import RunSettings

SIMILARITIES = ("jaccard", "sorensen_dice", "levenshtein")
"""Of the trees of the source and of the restored text, from 0 to 1."""

FILLERS = {"letter": "x", "deleted": ""}
"""Fillers that need no model: the letter x in place of each masked sub-token, or nothing."""

FILLED = tuple(f"{filler}_{similarity}" for filler in FILLERS for similarity in SIMILARITIES)
"""The similarities of the trees of the source and of the text that a filler leaves."""

FLOORS = {
    similarity: tuple(f"{filler}_{similarity}" for filler in FILLERS) for similarity in SIMILARITIES
} | {"restored": ("commonest",)}
"""Outcome -> columns of what needs no model, which say what it is worth."""

HITS = "hits_1"
"""The count of masked sub-tokens of which the true one is the likeliest."""

ROW = np.dtype(
    [
        ("function", "<i4"),
        ("node_type", "<i4"),
        ("copy", "<i4"),
        ("seed", "<i8"),  # of the positions
        ("masked", "<i4"),  # sub-tokens
        (HITS, "<i4"),
        # of the true sub-tokens, the mean over the masked ones, in nats, rounded
        ("log_probability", "<f8"),
        # how many masked sub-tokens are the one masked most often, of this type in this arm
        ("commonest", "<i4"),
        # NaN if the trees could not be compared
        *((name, "<f8") for name in (*SIMILARITIES, *FILLED)),
    ]
)
"""The columns of a copy. `node_type` is an index into the ledger's node types."""


class MaskingLedger(RowLedger):
    """N masked copies: `rows` (N,) of the type ROW. `settings`: how the ledger was made, as
    JSON."""

    ROW = ROW
    ORDER = ("function", "node_type", "copy")
    GROUP_COLUMN = "node_type"
    INSTRUMENT = ledger_file.MASKING
    COMMAND = "mask"
    DICTIONARY_COLUMNS = ("node_type", "function", "copy", "masked")
    BOUNDS: ClassVar = {
        "masked": (1, np.inf),
        HITS: (0, np.inf),
        "log_probability": LOG_PROBABILITY,
    }

    @property
    def node_types(self) -> list[str]:
        return self.names

    @classmethod
    def check(cls, rows: np.ndarray) -> None:
        super().check(rows)
        similarities = np.stack([rows[name] for name in (*SIMILARITIES, *FILLED)])
        failed = np.isnan(similarities)
        if (rows[HITS] > rows["masked"]).any():
            raise ValueError("hits that cannot be")
        if ((rows["commonest"] < 0) | (rows["commonest"] > rows["masked"])).any():
            raise ValueError("numbers of the commonest sub-token that cannot be")
        if (
            not ((similarities >= 0) & (similarities <= 1) | failed).all()
            or (failed != failed[0]).any()
        ):
            raise ValueError("similarities that cannot be")


OUTCOMES = (*SIMILARITIES, "restored", "log_probability")
"""Outcomes compared between the two arms: the similarities, from 0 to 1; `restored`, the share of
masked sub-tokens of which the true one is the most likely, from 0 to 1; `log_probability` of the
true ones, in nats."""

DROPPED = NO_NODE, NOTHING_MASKED, TOO_MANY, NO_PLACE = (
    "no node of the type",
    "no sub-token of its nodes masked",
    "more sub-tokens counted than it has",
    "fewer sub-tokens beside its nodes than in them",
)
"""Why nothing is masked for a function and a node type: the second where a rate below 1 draws no
node, or nodes hold no sub-token; the third in the protocol `published` alone, which counts some
sub-tokens twice; the last with the control `spans` alone."""


class MaskSettings(RunSettings):
    """Everything that determines a masking run; the defaults of `mask` are those of Velasco et al.
    (2024)."""

    KIND = (MASKING,)

    protocol: str  # one of probing.instruments.masking.masking.PROTOCOLS
    node_types: Texts
    rate: float  # share of the nodes that are masked
    control: str  # one of probing.instruments.masking.masking.CONTROLS
    random_weights: bool  # a randomly initialised copy, drawn by the seed
    draws: int  # controls of each masked copy
    seed: int


class MaskRun(Circumstances):
    """The circumstances of the masking."""

    output_layer: str
    """Where it was computed: `masked positions` or `all positions`."""
    parser: str
    """The versions on which trees depend."""


class MaskProvenance(Provenance):
    """The origin of a masking ledger."""

    VERSION = 3  # of masking, restoring and comparing
    SIGNATURE_FIELDS = (
        "mask",
        (
            "protocol node_types rate control random_weights draws seed"
            " max_length functions copies parser version"
        ).split(),
    )

    settings: MaskSettings
    version: int
    functions: Count
    """Number of functions read and not skipped."""
    dropped: Annotated[Numbers, exactly(DROPPED)]
    """Reason -> number of pairs of a function and a node type without a masked copy; with the pairs
    in the ledger, they add up to functions times node types."""
    commonest: dict[str, Annotated[tuple[Number, Number], listed]]
    """Node type -> the id of the sub-token that is masked most often in T1, and in T0."""
    run: MaskRun


class Arm(Record):
    """Means over the functions of one arm.

    Similarities from 0 to 1, None if every comparison failed; `restored`: the share of masked
    sub-tokens of which the true one is the most likely, in percent; `log_probability` of the true
    ones, in nats.
    """

    jaccard: float | None
    sorensen_dice: float | None
    levenshtein: float | None
    restored: float
    log_probability: float


class TypeScores(Record):
    """One node type: functions and sub-tokens that were masked for it, T1 (its nodes) and T0 (as
    many at random).

    `failed`: copies whose trees could not be compared.
    """

    functions: Count
    masked: Count
    failed: Number
    t1: Arm
    t0: Arm


class MaskResult(Result[MaskingLedger]):
    """The restorations of one masked language model on one split, by node type."""

    LEDGER = MaskingLedger
    PROVENANCE = MaskProvenance

    instrument: Literal["masking"]
    settings: MaskSettings
    run: MaskRun
    node_types: dict[str, TypeScores]
    """Only those that occur."""
    copies: Count
    """Masked copies of the functions."""
    dropped: Numbers
    """As in the provenance."""

    @property
    def failed(self) -> int:
        """Copies whose trees could not be compared."""
        return sum(scores.failed for scores in self.node_types.values())

    @classmethod
    def measured(cls, ledger: MaskingLedger, provenance: MaskProvenance) -> Measured:
        _check_copies(ledger, provenance)
        named = ledger.named()
        node_types = {name: _type_scores(ledger.rows[chosen]) for name, chosen in named.items()}
        copies = {"copies": len(ledger)}
        return copies, {"node_types": node_types, **copies}


def _type_scores(rows: np.ndarray) -> TypeScores:
    """The scores of the rows of one node type."""
    first = rows["copy"] == 0
    functions = len(rows[first])
    t1 = {}
    t0 = {}
    for name in (*SIMILARITIES, "log_probability"):
        t1[name], t0[name] = _means(rows[name], functions)
    shares = _means(rows[HITS] / rows["masked"], functions)
    t1["restored"], t0["restored"] = (100 * share for share in shares)
    return TypeScores(
        functions=functions,
        masked=int(rows["masked"][first].sum()),
        failed=int(np.isnan(rows[SIMILARITIES[0]]).sum()),
        t1=Arm(**t1),
        t0=Arm(**t0),
    )


def _means(values: np.ndarray, functions: int) -> tuple[Any, Any]:
    """The means over functions of T1, and of the means of their controls, T0; None without any.

    Functions of which a copy has no number, in either arm, are left out.
    """
    by_function = values.reshape(functions, -1)  # T1, then its controls
    known = by_function[~np.isnan(by_function).any(axis=1)]
    if not len(known):
        return None, None
    return float(known[:, 0].mean()), float(known[:, 1:].mean(axis=1).mean())


def _check_copies(ledger: MaskingLedger, provenance: MaskProvenance) -> None:
    """Raise LedgerError unless the ledger holds the copies that its settings say."""
    rows = ledger.rows
    settings = provenance.settings
    first = rows["copy"] == 0
    t1 = int(first.sum())
    copies = settings.draws + 1  # which any number may be, before rows are counted
    reason = ""
    if list(settings.node_types) != ledger.node_types:
        reason = "its node types are others than its settings say"
    elif not len(rows) == t1 * copies > 0 or (rows["copy"] != np.tile(range(copies), t1)).any():
        reason = f"it does not have {settings.draws} controls for every masked copy"
    elif settings.protocol != "published" and not np.array_equal(
        rows["masked"], np.repeat(rows["masked"][first], copies)
    ):
        reason = "controls mask more or fewer sub-tokens than the copies that they control"
    elif t1 + sum(provenance.dropped.values()) != provenance.functions * len(settings.node_types):
        reason = "its functions and node types do not add up"
    elif len(np.unique(rows["function"])) > provenance.functions:
        reason = "it has more functions than its settings say"
    if reason:
        raise LedgerError(f"the masking ledger is damaged or was altered: {reason}; mask again")
