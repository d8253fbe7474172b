"""Which syntactic relations have the attention heads of a pretrained model picked up?"""

from __future__ import annotations

import importlib

_PUBLIC = {
    "ProbeResult": "probing.attention.result",
    "RankLedger": "probing.attention.ledger",
    "baseline": "probing.evidence.baselines",
    "load": "probing.attention.result",
    "probe": "probing.attention.probe",
    "show": "probing.report.attention_page",
}
"""Where each name is defined."""

__all__ = [*_PUBLIC, "__version__"]


def __getattr__(name: str):
    # torch and transformers take seconds to import, so they wait until somebody probes
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("codesyntax")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
