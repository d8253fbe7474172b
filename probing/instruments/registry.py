"""The instruments: where the parts of each are. They are imported when they are asked for, and not
before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from codesyntax_dataset.arguments import StrPath
from codesyntax_dataset.errors import LedgerError
from probing.runs.ledger_file import (
    ATTENTION,
    CARRYING,
    INFORMATION,
    MASKING,
    PREFERENCE,
    SILENCING,
    SURPRISAL,
)

if TYPE_CHECKING:  # they import torch
    from probing.runs.experiment import Experiment
    from probing.runs.saved import Result


@dataclass(frozen=True)
class Instrument:
    """The parts of an instrument, each as `module:name`.

    `runs`: its `Experiment`; `results`: its result, which needs no model, with its ledger and
    settings; `scores`: its rows of the table of all scores, of files and a location of data;
    `publishes`: the numbers of results; `prints`: what makes the tables and texts of a result that
    commands print; `submits`: its headline on boards, empty if these do not take it.
    """

    runs: str
    results: str
    scores: str
    publishes: str
    prints: str
    submits: str = ""

    @property
    def experiment(self) -> type[Experiment[Any, Any]]:
        return _part(self.runs)

    @property
    def result(self) -> type[Result[Any]]:
        return _part(self.results)

    @property
    def rows(self) -> Callable[[Sequence[Path], Any], Iterator[dict[str, Any]]]:
        return _part(self.scores)

    @property
    def numbers(self) -> Callable[[Mapping[str, Any], Any], Iterator[Any]]:
        """They are `probing.evidence.published.Numbers`."""
        return _part(self.publishes)

    @property
    def parts(self) -> Callable[[Any], list[Any]]:
        """They are those of `probing.report.document`."""
        return _part(self.prints)

    @property
    def headline(self) -> Any:
        """A `probing.evidence.headlines.Headline`."""
        return _part(self.submits)


def _part(path: str) -> Any:
    """What `module:name` leads to; raises LookupError if that is nothing."""
    try:
        return resolve_name(path)
    except (AttributeError, ImportError, ValueError) as error:
        raise LookupError(
            f"the registry of instruments has {path!r}, which leads nowhere ({error}): expected module:name, such as "
            "probing.instruments.attention.probe:Probing"
        ) from error


INSTRUMENTS = {
    ATTENTION: Instrument(
        "probing.instruments.attention.probe:Probing",
        "probing.instruments.attention.result:ProbeResult",
        "probing.evidence.scores:attention_rows",
        "probing.evidence.published:of_attention",
        "probing.report.results:probe_parts",
        "probing.evidence.headlines:ATTENTION",
    ),
    MASKING: Instrument(
        "probing.instruments.masking.mask:Masking",
        "probing.instruments.masking.result:MaskResult",
        "probing.evidence.scores:masking_rows",
        "probing.evidence.published:of_masking",
        "probing.report.syntaxeval:masking_parts",
        "probing.evidence.headlines:MASKING",
    ),
    SILENCING: Instrument(
        "probing.instruments.silencing.ablate:Ablation",
        "probing.instruments.silencing.result:SilencingResult",
        "probing.evidence.scores:silencing_rows",
        "probing.evidence.published:of_silencing",
        "probing.report.silencing:silencing_parts",
    ),
    INFORMATION: Instrument(
        "probing.instruments.information.inform:Informing",
        "probing.instruments.information.result:InformationResult",
        "probing.evidence.scores:information_rows",
        "probing.evidence.published:of_information",
        "probing.report.information:parts_of",
    ),
    PREFERENCE: Instrument(
        "probing.instruments.likelihood.likelihood:Preferring",
        "probing.instruments.likelihood.result:PreferenceResult",
        "probing.evidence.scores:preference_rows",
        "probing.evidence.published:of_preference",
        "probing.report.information:preference_parts",
        "probing.evidence.headlines:PAIRS",
    ),
    SURPRISAL: Instrument(
        "probing.instruments.likelihood.likelihood:Surprising",
        "probing.instruments.likelihood.result:SurprisalResult",
        "probing.evidence.scores:surprisal_rows",
        "probing.evidence.published:of_surprisal",
        "probing.report.information:surprisal_parts",
    ),
    CARRYING: Instrument(
        "probing.instruments.silencing.carry:Carrying",
        "probing.instruments.silencing.carried:CarryingResult",
        "probing.evidence.carried:carrying_rows",
        "probing.evidence.carried:of_carrying",
        "probing.report.carrying:carrying_parts",
    ),
}
"""By the name that stands in ledgers, results and submissions."""


def instrument(name: str, file: StrPath) -> Instrument:
    """The instrument of a file; raises LedgerError if there is none of this name."""
    if name not in INSTRUMENTS:
        raise LedgerError(f"{file} is of {name!r:.40}, expected one of {', '.join(INSTRUMENTS)}")
    return INSTRUMENTS[name]
