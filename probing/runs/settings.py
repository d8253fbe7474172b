"""The settings of a probe, from which its results follow."""

from __future__ import annotations

import hashlib
import json
import re

from probing.runs.records import Record, Texts


class Settings(Record):
    """Everything that determines a probe's ranks. The defaults of `probe` are those of Shen et al. (2022, section 4).

    Results from before controls existed have neither `control` nor `seed`.
    """

    model: str
    revision: str  # commit on the Hub, or digest of a local model
    data: str  # name@version
    labels: str  # digest of the labels that were read
    config: str
    split: str
    direction: str
    dtype: str
    max_length: int  # sub-tokens, special tokens included, that a function may have
    also_fits: Texts  # other models that a function must fit
    limit: int | None  # only the first functions of the split: a partial run
    control: str | None = (
        None  # one of probing.runs.controls.CONTROLS: not the model or not the labels, but a comparison
    )
    seed: int | None = None  # of the control

    @property
    def name(self) -> str:
        """A file name, different for different settings."""
        digest = hashlib.sha256(json.dumps(self.model_dump(), sort_keys=True).encode()).hexdigest()[:8]
        model = re.sub(r"[^A-Za-z0-9._-]+", "--", self.model)
        control = "" if self.control is None else f".{self.control}"
        partial = "" if self.limit is None else ".partial"
        return f"{model}{control}.{self.config}.{self.split}{partial}.{digest}"
