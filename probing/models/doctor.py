"""Diagnose whether a model can be probed, by the self-check that every probe makes."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

import torch

from probing.models.checks import Check, FailedCheck
from probing.models.load import load


@dataclass(frozen=True)
class Diagnosis:
    """The self-check of a model: `path` is `captured`, `eager` or `refused`; `summary` is one line of text."""

    path: str
    summary: str
    checks: list[Check]

    def to_json(self) -> str:
        checks = [check._asdict() for check in self.checks]
        return json.dumps({"path": self.path, "summary": self.summary, "checks": checks}, indent=1) + "\n"

    def text(self) -> str:
        width = max(len(check.name) for check in self.checks)
        lines = [
            f"{'ok    ' if check.passed else 'FAILED'} {check.name:{width}}  {check.found}" for check in self.checks
        ]
        return "\n".join([*lines, "", self.summary])


def doctor(
    model: str | os.PathLike | tuple,
    *,
    revision: str | None = None,
    dtype: str | torch.dtype = "float32",
    device: str | torch.device | None = None,
) -> Diagnosis:
    """Load a model like `probe` and return its self-check; raises ModelError if it cannot be loaded."""
    try:
        encoder = load(model, revision=revision, dtype=dtype, device=device)
    except FailedCheck as failed:
        return Diagnosis("refused", str(failed), failed.checks)
    how = (
        "from our attention function" if encoder.path == "captured" else f"from its eager attention maps: {encoder.why}"
    )
    sees = "no later sub-tokens" if encoder.causal else "all sub-tokens"
    return Diagnosis(
        encoder.path,
        f"{encoder.name} can be probed, {how}. {encoder.layers} layers of {encoder.heads} attention heads, which see "
        f"{sees}; functions of up to {encoder.longest} sub-tokens.",
        encoder.checks,
    )
