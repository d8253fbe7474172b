"""The results of likelihood: how often a language model finds the grammatical text of a minimal
pair likelier, and how well a decoder foresees the tokens of syntax nodes, beside matched tokens;
and all that is needed to repeat them.

Ledgers need no torch and no model. As Parquet, that of minimal pairs has one row per pair, sorted
by `function`, the place of the pair in the split, with the log-probabilities of both texts in nats:
of all sub-tokens, and of those in which the two differ. That of surprisal has one row per node and
role: means over the tokens of the node, and over their controls.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np

from probing.runs import ledger_file
from probing.runs.ledger_file import LOG_PROBABILITY, RowLedger
from probing.runs.records import Count, Number, Record, Texts
from probing.runs.saved import Circumstances, Measured, Provenance, Result
from probing.runs.settings import ControlledSettings

DECIMALS = 6
"""Those of log-probabilities and bits, as many as float32 gives."""


# ------------------------------------------------------------------------------------ minimal pairs

LEAST_PAIRS = 25
"""A phenomenon with fewer pairs is in no mean."""

SCORES = ("whole", "place")
"""Which sub-tokens of a text count: all, or those in which the two texts differ."""

MOST_BY_SURFACE = 60
"""Where the surface rival is right in more percent of its pairs, a phenomenon needs no syntax."""

UNKNOWN = -1
"""The surface rival's verdict where there are no validation pairs to fit it on."""

_WEIGHT = 3 * 10**6
"""Of all pairs together, halved: sums of weights stay below 2**24, where float32 is exact."""


def stratum_weights(rows: np.ndarray) -> np.ndarray:
    """The weights of pairs, integers (N,): pairs whose good text has more sub-tokens than the bad
    one count together as much as those whose good text has fewer, half of both; all others count
    once. So a model that prefers the shorter text, whatever it says, is at 50 %, unless there are
    pairs of one of the two kinds alone."""
    longer = np.sign(rows["good_whole_tokens"] - rows["bad_whole_tokens"]) + 1
    pairs = np.bincount(longer, minlength=3)
    shares = pairs.astype(float)
    if pairs[0] and pairs[2]:
        shares[[0, 2]] = (pairs[0] + pairs[2]) / 2
    weights = np.round(_WEIGHT * shares[longer] / (pairs[longer] * len(rows)))
    return 2 * weights.astype(np.int64)  # even, so that half of one is exact


class PreferenceLedger(RowLedger):
    """N pairs."""

    ROW = np.dtype(
        [
            ("function", "<i4"),
            ("phenomenon", "<i4"),
            ("repository", "<i4"),  # in the order of the split
            # 2 where the surface rival prefers the good text, 1 where neither, else 0; or UNKNOWN
            ("surface", "<i4"),
            # 1, or 0 where a text has more sub-tokens than the model reads: the pair is missed
            ("read", "<i4"),
            *((f"{text}_{score}_tokens", "<i4") for text in ("good", "bad") for score in SCORES),
            *((f"{text}_{score}", "<f8") for text in ("good", "bad") for score in SCORES),
        ]
    )
    ORDER = ("function",)
    GROUP_COLUMN = "phenomenon"
    INSTRUMENT = ledger_file.PREFERENCE
    COMMAND = "prefer"
    DICTIONARY_COLUMNS = ("phenomenon", "repository", "surface", "read")
    OF_DATA = ("repository", "surface")
    BOUNDS: ClassVar = {
        "surface": (UNKNOWN, 2),
        "read": (0, 1),
        **{f"{text}_place_tokens": (0, np.inf) for text in ("good", "bad")},
        **{f"{text}_{score}": LOG_PROBABILITY for text in ("good", "bad") for score in SCORES},
    }

    @classmethod
    def check(cls, rows: np.ndarray) -> None:
        super().check(rows)
        for text in ("good", "bad"):
            if (rows[f"{text}_place_tokens"] > rows[f"{text}_whole_tokens"]).any():
                raise ValueError("sub-tokens that cannot be")

    def preferred(self) -> np.ndarray:
        """By each of SCORES, 1 for each pair whose good text is likelier, 0.5 where both tie,
        otherwise 0: (N, 2)."""
        gained = np.stack(
            [self.rows[f"good_{score}"] - self.rows[f"bad_{score}"] for score in SCORES], axis=1
        )
        return (np.sign(gained) + 1) / 2 * self.rows["read"][:, None]


class PreferenceSettings(ControlledSettings):
    """Everything that determines the scores of pairs."""

    KIND = (ledger_file.PREFERENCE,)

    # digest of the labels of validation pairs, on which the surface rival is fitted; None without
    fitted_on: str | None


class PreferenceRun(Circumstances):
    """The circumstances of the run. `scores`: log-probabilities of a decoder, or those of a masked
    language model, within words from left to right."""

    scores: Literal["log-probability", "pseudo-log-likelihood"]


class PreferenceProvenance(Provenance):
    """The origin of a ledger of pairs."""

    VERSION = 8  # of scoring
    SIGNATURE_FIELDS = "prefer", ("max_length", "dtype", "pairs", "version", "control", "fitted_on")

    settings: PreferenceSettings
    version: int
    run: PreferenceRun


class Accuracy(Record):
    """Percent of some `pairs`, of so many `repositories`, in which the good text is likelier; ties
    count half.

    As a `whole` and by the `place` in which the two differ, longer and shorter good texts weighted
    alike (`stratum_weights`); `plain`: of whole texts, all pairs alike. `missed`: pairs too long to
    be read, which count as wrong; `ties`: of whole texts. The rival without a model, on strata
    weighted as for the model: `surface` learns from validation pairs what stands near a change and
    what is open there, None where there are none; `surface_plain`: of all pairs alike.
    """

    pairs: Count
    repositories: Count
    missed: Number
    ties: Number
    surface: float | None
    surface_plain: float | None
    plain: float
    whole: float
    place: float

    @property
    def needs_no_syntax(self) -> bool:
        return self.surface is not None and self.surface > MOST_BY_SURFACE


class MeanAccuracy(Record):
    """Means over the `phenomena` with at least LEAST_PAIRS pairs, read or not: the same ones for
    all models."""

    phenomena: Count
    surface: float | None
    whole: float
    place: float


class PreferenceResult(Result[PreferenceLedger]):
    """The accuracy of one language model on the minimal pairs of one split; `functions` counts
    pairs."""

    UNIT = "pair"
    LEDGER = PreferenceLedger
    PROVENANCE = PreferenceProvenance

    instrument: Literal["preference"]
    settings: PreferenceSettings
    run: PreferenceRun
    accuracy: Accuracy
    """Of all pairs."""
    mean: MeanAccuracy | None
    phenomena: dict[str, Accuracy]

    @classmethod
    def measured(cls, ledger: PreferenceLedger, provenance: PreferenceProvenance) -> Measured:
        rows = ledger.rows
        preferred = ledger.preferred()
        phenomena = {
            name: _accuracy(rows[chosen], preferred[chosen])
            for name, chosen in sorted(ledger.named().items())
        }
        counted = [score for score in phenomena.values() if score.pairs >= LEAST_PAIRS]
        return {"pairs": len(ledger)}, {
            "functions": len(ledger),
            "accuracy": _accuracy(rows, preferred),
            "mean": _mean_accuracy(counted),
            "phenomena": phenomena,
        }


def _accuracy(rows: np.ndarray, preferred: np.ndarray) -> Accuracy:
    weights = stratum_weights(rows)

    def percent(rights: np.ndarray) -> float:
        return 100 * float(np.average(rights, weights=weights))

    known = (rows["surface"] != UNKNOWN).all()
    return Accuracy(
        pairs=len(preferred),
        repositories=len(np.unique(rows["repository"])),
        missed=int((rows["read"] == 0).sum()),
        ties=int((preferred[:, 0] == 0.5).sum()),
        surface=percent(rows["surface"] / 2) if known else None,
        surface_plain=50 * float(rows["surface"].mean()) if known else None,
        plain=100 * float(preferred[:, 0].mean()),
        whole=percent(preferred[:, 0]),
        place=percent(preferred[:, 1]),
    )


def _mean_accuracy(counted: list[Accuracy]) -> MeanAccuracy | None:
    """None without any phenomenon."""
    if not counted:
        return None

    def mean(name: str) -> float | None:
        values = [getattr(accuracy, name) for accuracy in counted]
        return None if None in values else float(np.mean(values))

    names = "surface", *SCORES
    return MeanAccuracy.model_validate(
        {"phenomena": len(counted), **{name: mean(name) for name in names}}
    )


# ---------------------------------------------------------------------------------------- surprisal

ROLES = FIRST, CLOSING, ALL = "first", "closing", "all"
"""Which tokens of a node: the one with which it begins, the one with which it ends if it has
several, and all."""

MEASURED = BITS, GRAMS, FREQUENCY, PLACE = "bits", "grams", "frequency", "place"
"""Of a token: its surprisal for the model and for a 5-gram model, in bits; the binary logarithm of
how often its text stands in the functions; and how many tokens of the function come before it, as a
share."""

LEAST_NODES = 25
"""A node type with fewer is in no mean."""

MOST = 1e6
"""More than the bits of any token."""


class SurprisalLedger(RowLedger):
    """N nodes in a role."""

    ROW = np.dtype(
        [
            *((name, "<i4") for name in ("function", "node_type", "node", "role")),
            *((f"{prefix}{name}", "<f8") for prefix in ("", "control_") for name in MEASURED),
        ]
    )
    ORDER = ("function", "node_type", "node", "role")
    GROUP_COLUMN = "node_type"
    INSTRUMENT = ledger_file.SURPRISAL
    COMMAND = "surprise"
    DICTIONARY_COLUMNS = ("node_type", "function", "role")
    BOUNDS: ClassVar = {
        "role": (0, len(ROLES) - 1),
        **{prefix + name: (0, MOST) for prefix in ("", "control_") for name in MEASURED},
    }

    def of(self, role: str) -> SurprisalLedger:
        """The rows of a role."""
        return replace(self, rows=self.rows[self.rows["role"] == ROLES.index(role)])


class SurprisalSettings(ControlledSettings):
    """Everything that determines the surprisal of nodes."""

    KIND = (ledger_file.SURPRISAL,)

    node_types: Texts


class SurprisalRun(Circumstances):
    """The circumstances of the run. `parser`: its version and that of the grammar."""

    parser: str


class SurprisalProvenance(Provenance):
    """The origin of a ledger of surprisal. `unmatched`: role -> node type -> nodes without a
    control."""

    VERSION = 2
    SIGNATURE_FIELDS = (
        "surprise",
        ("node_types", "max_length", "dtype", "rows", "version", "control"),
    )

    settings: SurprisalSettings
    run: SurprisalRun
    version: int
    unmatched: dict[str, dict[str, Count]]


class Surprisal(Record):
    """Means over some `nodes`: of each of MEASURED, of their tokens and of the controls."""

    nodes: Count
    tokens: dict[str, float]
    controls: dict[str, float]


class SurprisalResult(Result[SurprisalLedger]):
    """The surprisal of nodes for one decoder on one split: role -> node type -> means."""

    LEDGER = SurprisalLedger
    PROVENANCE = SurprisalProvenance

    instrument: Literal["surprisal"]
    settings: SurprisalSettings
    run: SurprisalRun
    unmatched: dict[str, dict[str, Count]]
    node_types: dict[str, dict[str, Surprisal]]

    @classmethod
    def measured(cls, ledger: SurprisalLedger, provenance: SurprisalProvenance) -> Measured:
        node_types = {}
        for role in ROLES:
            part = ledger.of(role)
            node_types[role] = {
                name: _mean_surprisal(part.rows[chosen]) for name, chosen in part.named().items()
            }
        functions = len(np.unique(ledger.function))
        return {"rows": len(ledger)}, {"functions": functions, "node_types": node_types}


def _mean_surprisal(rows: np.ndarray) -> Surprisal:
    tokens, controls = (
        {name: float(rows[prefix + name].mean()) for name in MEASURED}
        for prefix in ("", "control_")
    )
    return Surprisal(nodes=len(rows), tokens=tokens, controls=controls)
