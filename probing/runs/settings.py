"""The settings of a probe, from which its results follow."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from codesyntax_dataset.errors import ArgumentError
from codesyntax_dataset.languages import CONFIGS, variant_of
from codesyntax_dataset.protocol import ATTENTION, CONTROLS
from probing.models.files import HEAD_MARK
from probing.runs.records import Count, Number, Record, Texts


class Sample(Record):
    """Functions drawn from a split, the same for every model: `size` of them, by `seed`."""

    size: Count
    seed: Number

    def places(self, functions: int) -> list[int]:
        """The places of the drawn functions in a split of so many, in order."""
        return sorted(drawn_order(functions, self.seed)[: self.size].tolist())

    def __str__(self) -> str:
        return f"{self.size}-drawn-by-seed-{self.seed}"


def drawn_order(functions: int, seed: int) -> np.ndarray:
    """The places in a split of so many, in the order in which they are drawn: a larger sample has
    those of a smaller one."""
    return np.random.default_rng(seed).permutation(functions)


Limit = int | Sample | None
"""The part of a split that a run reads: its first functions, some that are drawn, or all."""


def limit_of(limit: Limit, sample: int | None, seed: int, control: str | None) -> Limit:
    """The part that is asked for; raises ArgumentError for both a limit and a sample.

    The seed of a control draws what the control randomises. Its sample is drawn by seed 0, so that
    copies of several seeds read the functions that the model reads.
    """
    if limit is not None and sample is not None:
        raise ArgumentError(
            f"limit is {limit} and sample is {sample}, expected one: the first functions, or drawn ones"
        )
    if sample is None:
        return limit
    return Sample(size=sample, seed=seed if control is None else 0)


def extent(limit: Limit, units: str) -> str:
    """A part of a split in words; empty for all of it."""
    if isinstance(limit, Sample):
        return f"{limit.size} {units} drawn by seed {limit.seed}"
    return "" if limit is None else f"first {limit} {units}"


Control = Literal[None, *CONTROLS]  # type: ignore[valid-type]

BY_ATTENTION: Any = Field(default=ATTENTION, exclude_if=lambda weights: weights == ATTENTION)
BY_SUM: Any = Field(default="sum", exclude_if=lambda pool: pool == "sum")
EITHER = "either"
"""Weights are summed over the sub-tokens of a token in the first half of the heads, and averaged in
the other."""

NO_TOKEN: Any = Field(default=None, exclude_if=lambda token: token is None)


class RunSettings(Record):
    """Everything that determines a run; instruments add fields. `KIND`: of runs, in file names."""

    KIND: ClassVar[tuple[str, ...]] = ()

    model: str
    # commit on the Hub, or digest of a local model, and that of its head if this is used
    revision: str
    data: str  # name@version
    labels: str  # digest of the labels that were read
    config: str
    split: str
    max_length: int  # sub-tokens, special tokens included, that a function may have
    limit: Limit  # only these functions of the split: a partial run

    @property
    def deviations(self) -> list[str]:
        """What was measured instead of the attention weights of the model itself; empty for
        these."""
        return []

    @property
    def name(self) -> str:
        """A file name, different for different settings: model, KIND, `deviations`, config, split,
        and a digest."""
        digest = hashlib.sha256(json.dumps(self.model_dump(), sort_keys=True).encode()).hexdigest()[
            :8
        ]
        model = re.sub(r"[^A-Za-z0-9._-]+", "--", self.model)
        partial = [] if self.limit is None else ["partial"]
        return ".".join(
            [model, *self.KIND, *self.deviations, self.config, self.split, *partial, digest]
        )

    def signature_fields(self) -> dict[str, Any]:
        """The fields by name, as signatures have them; all have those of RunSettings, as
        `Signature.of` writes them, but for `max_length`."""
        return {"max_length": self.max_length} | {
            name: value for name, value in self if name not in RunSettings.model_fields
        }


class RankingSettings(RunSettings):
    """Everything that determines a run that ranks by weights."""

    # files of before may say others, which are no longer computed
    weights: Literal["attention"] = BY_ATTENTION
    # the token before the text of a decoder whose tokenizer puts none there
    begin: Number | None = NO_TOKEN

    def signature_fields(self) -> dict[str, Any]:
        return {**super().signature_fields(), "weights": None}


class ControlledSettings(RankingSettings):
    """Everything that determines a run in a precision, of a model or of a control."""

    dtype: str
    # not the model or not the labels, but a comparison
    control: Control
    seed: int | None  # of the control
    # over a token's sub-tokens; files of before may say others. An untrained copy has each head twice:
    # near-uniform weights, summed, pick the longest token, and would be no rival
    pool: Literal["sum", "either"] = BY_SUM

    @property
    def deviations(self) -> list[str]:
        return [] if self.control is None else [self.control]

    def signature_fields(self) -> dict[str, Any]:
        return {
            **super().signature_fields(),
            "control": self.control and f"{self.control}/{self.seed}",
            "seed": None,
            "pool": None,
        }

    @property
    def precision(self) -> str:
        """The precision in which the model ran: `float32` of `float32 of Q4_1`."""
        return self.dtype.partition(" ")[0]


class Settings(ControlledSettings):
    """Everything that determines a probe's ranks. `probe` has the defaults of Shen et al. (2022,
    section 4)."""

    direction: str
    # files of before may name models that a function had to fit, too
    also_fits: Annotated[Texts, Field(max_length=0)] = ()
    control: Control = None
    seed: int | None = None

    def signature_fields(self) -> dict[str, Any]:
        never_predicted = (
            variant_of(self.config).never_predicted if self.config in CONFIGS else None
        )
        return {
            **super().signature_fields(),
            "pool": f"{self.pool}-mean",  # over a token's sub-tokens, and over a reading token's
            "also_fits": "-",
            "not_predicted": never_predicted or None,
        }


def short(revision: str) -> str:
    """A revision, or each of its two digests, cut to 12 digits."""
    return HEAD_MARK.join(part[:12] for part in revision.split(HEAD_MARK))


class Signature(NamedTuple):
    """The conditions of a number, which two must share to compare: name -> value, the model first.

    `kind`: what was measured.
    """

    kind: str
    parts: dict[str, str]

    @classmethod
    def of(cls, kind: str, settings: Any, **parts: Any) -> Signature:
        """The parts of all runs with some `settings`, and those of an instrument; None and False
        stand for no part."""
        shared = {
            "model": f"{settings.model}@{short(settings.revision)}",
            "data": f"{settings.data}/{settings.config}/{settings.split}",
            "labels": settings.labels,
        }
        named = {**shared, **parts, "partial": settings.limit}
        texts = {
            name.replace("_", "-"): ",".join(value) if isinstance(value, tuple) else str(value)
            for name, value in named.items()
            if value is not None and value is not False
        }
        return cls(kind, texts)

    def __str__(self) -> str:
        return "|".join([self.kind, *(f"{name}:{value}" for name, value in self.parts.items())])
