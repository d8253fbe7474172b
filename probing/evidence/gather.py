"""The evidence on one model and config: scores by both protocols, intervals, and the baselines on
the same functions.

A bare score means nothing (Shen et al. 2022 found that a fixed offset beats the attention of models
trained on code), so everything that is reported, compared or published is made here, from two
probes of a model: one on the split that is scored, and one on `validation`, on which the held-out
protocol chooses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset.arguments import Paths
from codesyntax_dataset.errors import LedgerError, UnknownName
from codesyntax_dataset.languages import CONFIGS
from codesyntax_dataset.protocol import (
    BEST_BASELINE,
    BEYOND_OFFSET,
    PROTOCOLS,
)
from probing.evidence import baselines
from probing.evidence.baselines import BaselineResult, Edges
from probing.evidence.beyond import hits_by_protocol, rivals_beyond
from probing.evidence.context import Context, context
from probing.evidence.protocols import ChosenHits, Comparison, compare_hits
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.result import ProbeResult, load
from probing.instruments.registry import INSTRUMENTS
from probing.runs.data import RELABELLED, find_data
from probing.runs.ledger_file import ATTENTION, instrument_of
from probing.runs.saved import ledger_path, read_text
from probing.runs.settings import Limit, Settings
from probing.stats.intervals import Estimate, family

PUBLISHED_FIRST = PROTOCOLS[::-1]
"""Where the attention heads are chosen, the paper's protocol first."""


@dataclass(frozen=True)
class Probed:
    """Two probes of one model with the same settings: on the split that is scored, and on the one
    heads are chosen on.

    `files`: the JSON of both, as `test` and `validation`; their ledgers are beside them.
    """

    test: ProbeResult
    validation: ProbeResult
    files: dict[str, Path]

    @property
    def settings(self) -> Settings:
        """Those of the split that is scored."""
        return self.test.settings

    def only(self, test: np.ndarray, validation: np.ndarray) -> Probed:
        """The same, restricted to these functions of the two splits."""
        return Probed(_only(self.test, test), _only(self.validation, validation), self.files)


def find(paths: Paths) -> list[Probed]:
    """Pair the results in files and folders: what `codesyntax probe --output` wrote for `test` and
    `validation`.

    The result on validation may be in the same folder or among the paths. Raises LedgerError for a
    file that is not a result, for one whose numbers do not follow from its ledger, and for a result
    without its counterpart. Of two equal results one is used; LedgerError if they differ.
    """
    named = files_of(paths)
    results = {file: load(file) for file in named}
    wanted = {alike(result) for result in results.values()}
    for file in files_of(sorted({file.parent for file in named})):
        further = ".validation." in file.name and file not in results
        # the ledgers of others need not be read
        if further and alike(ProbeResult.read(read_text(file))) in wanted:
            results[file] = load(file)
    chosen_on: dict[Settings, Path] = {}
    for file, result in results.items():
        if result.settings.split == "validation":
            known = chosen_on.setdefault(alike(result), file)
            if results[known].settings.limit is not None:
                chosen_on[alike(result)] = file
    pairs: dict[Settings, Probed] = {}
    for file in named:
        result = results[file]
        if result.settings.split == "validation":
            continue
        if same := pairs.get(result.settings):
            if not same.test.ledger.same_ranks(result.ledger):
                raise LedgerError(
                    f"{file} and {same.files['test']} are two runs of one probe, but their ranks differ: give only one"
                )
            continue
        if alike(result) not in chosen_on:
            raise LedgerError(
                f"{file} has no counterpart on the split validation, which the held-out protocol needs to choose "
                "heads: probe that split in the same way, into the same folder (--split test --split validation)"
            )
        other = chosen_on[alike(result)]
        files = {"test": file, "validation": other}
        pairs[result.settings] = Probed(result, results[other], files)
    if not pairs:
        places = ", ".join(map(str, paths))
        raise LedgerError(f"{places} has results of the split validation only: probe test, too")
    return list(pairs.values())


class SharedSettings(NamedTuple):
    """The settings that results reported together share."""

    config: str
    split: str
    direction: str
    limit: Limit
    data: str


def comparable(paths: Paths) -> dict[SharedSettings, list[Probed]]:
    """The pairs of `find` in groups that can stand side by side, in the order of configs.

    Raises LedgerError as `find` does, and for a config that is not known.
    """
    groups: dict[SharedSettings, list[Probed]] = {}
    for pair in find(paths):
        settings = pair.settings
        if settings.config not in CONFIGS:
            raise LedgerError(
                f"{pair.files['test']}: {UnknownName('config', settings.config, CONFIGS)}"
            )
        shared = SharedSettings(*(getattr(settings, name) for name in SharedSettings._fields))
        groups.setdefault(shared, []).append(pair)
    configs = list(CONFIGS)

    def order(shared: SharedSettings) -> tuple[int, list[str]]:
        return configs.index(shared.config), list(map(str, shared))

    return {shared: groups[shared] for shared in sorted(groups, key=order)}


def files_of(paths: Paths) -> list[Path]:
    """The results of attention probes among files and folders; raises LedgerError if there are
    none."""
    files = by_instrument(paths)[ATTENTION]
    if not files:
        places = ", ".join(map(str, paths))
        raise LedgerError(f"{places}: no results of `codesyntax probe`")
    return files


def by_instrument(paths: Paths) -> dict[str, list[Path]]:
    """Instrument -> its results among files and folders, each once. Files that are no results are
    with those of attention, whose readers say what is wrong with them.

    Raises LedgerError for a folder without any result.
    """
    by_name: dict[str, dict[Path, None]] = {name: {} for name in INSTRUMENTS}
    for path in map(Path, paths):
        files = [path]
        if path.is_dir():
            files = sorted(file for file in path.glob("*.json") if ledger_path(file).exists())
        if not files:
            raise LedgerError(
                f"{path} has no results: expected what `codesyntax probe --output` writes"
            )
        for file in files:
            instrument = instrument_of(ledger_path(file)) or ATTENTION
            by_name.get(instrument, by_name[ATTENTION])[file] = None
    return {name: list(files) for name, files in by_name.items()}


@dataclass
class Splits:
    """Functions on which models are compared, and what needs no model there.

    `edges`: of these functions, on `validation` and on `test`, the split that is scored.
    """

    edges: dict[str, Edges]
    direction: str

    @cached_property
    def by_context(self) -> Context:
        return context(**self.edges, direction=self.direction)

    @cached_property
    def baselines(self) -> BaselineResult:
        return baselines.evaluate_baselines(
            **self.edges, direction=self.direction, by_context=self.by_context
        )

    @cached_property
    def rivals(self) -> dict[str, dict[str, ChosenHits]]:
        """Protocol -> those of BASELINES that it has -> what each hits; beyond offsets, if both
        splits have hard edges."""
        hits = dict(self.baselines.hits)
        hard = rivals_beyond(**self.edges, direction=self.direction, by_context=self.by_context)
        if hard:
            hits[BEYOND_OFFSET] = hard
        return hits

    def hits(self, validation: RankLedger, test: RankLedger) -> dict[str, ChosenHits]:
        """What a model's heads hit of these edges, by the protocols of `rivals`."""
        chosen = hits_by_protocol(validation, test)
        return {protocol: chosen[protocol] for protocol in chosen if protocol in self.rivals}

    def check(self, probed: Probed) -> None:
        """Raise LedgerError unless two probes are of these labels, and have all edges of the
        functions that they have."""
        for part, edges in self.edges.items():
            result = getattr(probed, part)
            settings = result.settings
            labels = edges.settings.labels
            other = settings.labels != labels
            if other and settings.control not in RELABELLED and settings.limit is None:
                raise LedgerError(
                    f"{settings.model} was probed with labels {settings.labels}, but {edges.settings.data} has the "
                    f"labels {labels}: name the data that was probed with --data"
                )
            functions = result.ledger.function
            count = np.isin(functions, edges.function).sum()
            expected = np.isin(edges.function, functions).sum()
            if count != expected:
                raise LedgerError(
                    f"{probed.files[part]} has {count} edges in functions that have {expected} in "
                    f"{edges.settings.data}: its ledger was altered, or belongs to other data"
                )


@dataclass(eq=False)
class Evidence:
    """One model on one config, by all protocols, with the baselines on the functions of `splits`.

    `beside`: the models and controls that it stands beside, itself among them; by default alone.
    """

    probed: Probed
    splits: Splits
    beside: Sequence[Evidence] = ()

    @cached_property
    def hits(self) -> dict[str, ChosenHits]:
        """Protocol -> the hits of the model's heads."""
        return self.splits.hits(self.probed.validation.ledger, self.probed.test.ledger)

    @cached_property
    def comparisons(self) -> dict[str, Comparison]:
        """Protocol -> comparison with the best baseline; empty for controls with other labels."""
        if self.probed.settings.control in RELABELLED:
            return {}
        return {
            protocol: compare_hits(chosen, self.splits.rivals[protocol][BEST_BASELINE])
            for protocol, chosen in self.hits.items()
        }

    @cached_property
    def means(self) -> dict[str, Estimate]:
        """Protocol -> the difference of the means of `comparisons`. The models beside it, of which
        each checkpoint is one, are one family: p is corrected for them (Holm) at each measure.
        Controls make no claim, and have their own."""
        own = {protocol: compared.mean for protocol, compared in self.comparisons.items()}
        if self.probed.settings.control is not None:
            return own
        claims = [other for other in self.beside or [self] if other.probed.settings.control is None]
        means = {}
        for protocol in own:
            tested = [other for other in claims if protocol in other.comparisons]
            differences = family([other.comparisons[protocol].mean for other in tested])
            means[protocol] = differences[tested.index(self)]
        return means


def gather(probed: Sequence[Probed], data: Any = None) -> list[Evidence]:
    """The evidence on models that can be compared, on the functions of the scored split that all of
    them could read.

    `data`: the location of the dataset, if not the one in the results. Raises LedgerError for
    results on different data, configs, splits or directions, or without common functions, and if
    the labels of the data differ.
    """
    settings = [model.settings for model in probed]
    for name in SharedSettings._fields:
        if len(values := {str(getattr(model, name)) for model in settings}) > 1:
            raise LedgerError(
                f"results with different {name} do not compare: {', '.join(sorted(values))}"
            )
    first = settings[0]
    location = find_data(probed[0].files["test"], first) if data is None else data
    edges = {}
    for part, split in (("validation", "validation"), ("test", first.split)):
        ledgers = [getattr(model, part).ledger for model in probed]
        functions = reduce(np.intersect1d, (np.unique(ledger.function) for ledger in ledgers))
        if not len(functions):
            raise LedgerError("these results cannot be compared: they share no function")
        of_part = baselines.read_edges(location, first.config, split, functions)
        if of_part.settings.functions != len(functions):
            raise LedgerError(
                f"{probed[0].files[part]} has functions that have no edges in {location}: its ledger was altered, or "
                "belongs to other data"
            )
        edges[part] = replace(of_part, over=ledgers[0].over)
    splits = Splits(edges, first.direction)
    evidence: list[Evidence] = []
    for model in probed:
        splits.check(model)
        shared = model.only(edges["test"].function, edges["validation"].function)
        evidence.append(Evidence(shared, splits, evidence))
    return evidence


def _only(result: ProbeResult, functions: np.ndarray) -> ProbeResult:
    """The same, restricted to some functions; those that it loses are counted as skipped."""
    ledger = result.ledger.only(functions)
    if ledger is result.ledger:
        return result
    if lost := result.functions - len(np.unique(ledger.function)):
        skips = {**result.skips, "not in the results that it was compared with": lost}
        ledger = replace(ledger, settings={**ledger.settings, "skips": skips})
    return ProbeResult.from_ledger(ledger)


def alike(result: Any) -> Settings:
    """The settings that the two probes of a model share; `result`: what has those of one."""
    return result.settings.model_copy(update={"split": "", "labels": "", "limit": None})
