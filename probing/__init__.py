"""Which syntactic relations have the attention heads of a pretrained model picked up?"""

from __future__ import annotations

__all__ = ["ProbeResult", "RankLedger", "probe", "show"]


def __getattr__(name: str):
    # torch and transformers take seconds to import, so they wait until somebody probes
    if name == "probe":
        from probing.run import probe

        return probe
    if name == "show":
        from probing.attention_page import show

        return show
    if name == "ProbeResult":
        from probing.result import ProbeResult

        return ProbeResult
    if name == "RankLedger":
        from probing.ledger import RankLedger

        return RankLedger
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
