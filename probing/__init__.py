"""Probes, evidence, reports and boards: which syntactic relations have a model's attention heads
learned?"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from probing.evidence.baselines import baseline
    from probing.evidence.compared import compare
    from probing.evidence.heads import heads
    from probing.evidence.scores import scores
    from probing.evidence.training import SyntaxCallback, evaluate
    from probing.instruments.attention.ledger import RankLedger
    from probing.instruments.attention.probe import probe, probe_models, probe_training
    from probing.instruments.attention.result import ProbeResult, load
    from probing.instruments.information.inform import inform
    from probing.instruments.likelihood.likelihood import prefer, surprise
    from probing.instruments.masking.mask import mask
    from probing.instruments.merge import merge
    from probing.instruments.silencing.ablate import ablate
    from probing.instruments.silencing.carry import carry
    from probing.paper.reproduce import reproduce
    from probing.report.dataset import compare_labels, show_labels
    from probing.report.report import report
    from probing.report.show import show, show_masked
    from probing.runs.session import Session

    __version__: str

__all__ = [
    "ProbeResult",
    "RankLedger",
    "Session",
    "SyntaxCallback",
    "__version__",
    "ablate",
    "baseline",
    "carry",
    "compare",
    "compare_labels",
    "evaluate",
    "heads",
    "inform",
    "load",
    "mask",
    "merge",
    "prefer",
    "probe",
    "probe_models",
    "probe_training",
    "report",
    "reproduce",
    "scores",
    "show",
    "show_labels",
    "show_masked",
    "surprise",
]

_PUBLIC = {
    "ProbeResult": "probing.instruments.attention.result",
    "RankLedger": "probing.instruments.attention.ledger",
    "Session": "probing.runs.session",
    "SyntaxCallback": "probing.evidence.training",
    "ablate": "probing.instruments.silencing.ablate",
    "baseline": "probing.evidence.baselines",
    "carry": "probing.instruments.silencing.carry",
    "compare": "probing.evidence.compared",
    "compare_labels": "probing.report.dataset",
    "evaluate": "probing.evidence.training",
    "heads": "probing.evidence.heads",
    "inform": "probing.instruments.information.inform",
    "load": "probing.instruments.attention.result",
    "mask": "probing.instruments.masking.mask",
    "merge": "probing.instruments.merge",
    "prefer": "probing.instruments.likelihood.likelihood",
    "probe": "probing.instruments.attention.probe",
    "probe_models": "probing.instruments.attention.probe",
    "probe_training": "probing.instruments.attention.probe",
    "report": "probing.report.report",
    "reproduce": "probing.paper.reproduce",
    "scores": "probing.evidence.scores",
    "show": "probing.report.show",
    "show_labels": "probing.report.dataset",
    "show_masked": "probing.report.show",
    "surprise": "probing.instruments.likelihood.likelihood",
}
"""The module that defines each public name."""


def __getattr__(name: str) -> Any:
    # torch and transformers take seconds to import, so they wait until somebody probes
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("codesyntax")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
