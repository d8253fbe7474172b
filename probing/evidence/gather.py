"""The evidence on one model and config: scores by both protocols, intervals, and the baselines on
the same functions.

A bare score means nothing (Shen et al. 2022 found that a fixed offset beats the attention of models
trained on code), so everything that is reported, compared or published is made here, from two
probes of a model: one on the split that is scored, and one on `validation`, on which the held-out
protocol chooses.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from codesyntax_dataset.arguments import Paths
from codesyntax_dataset.errors import EntryError, LedgerError, UnknownName
from codesyntax_dataset.languages import CONFIGS
from codesyntax_dataset.protocol import (
    BASELINES,
    BEST_BASELINE,
    BEYOND_OFFSET,
    PROTOCOLS,
)
from codesyntax_metric.topk_uas import RULES, SCORING_VERSION, WORST_RANK
from probing.evidence import baselines, submission_masked
from probing.evidence.baselines import BaselineResult, Edges
from probing.evidence.beyond import hits_by_protocol, rivals
from probing.evidence.context import Context, context
from probing.evidence.masked import holding
from probing.evidence.protocols import ChosenHits, Comparison, compare
from probing.evidence.submission import Submission, instead_of_board
from probing.evidence.submission_attention import (
    AttentionSubmission,
    chosen_of,
    rivals_of,
    table_of,
)
from probing.instruments.attention.ledger import RankLedger
from probing.instruments.attention.result import ProbeResult, load
from probing.instruments.masking.result import MaskResult
from probing.instruments.registry import INSTRUMENTS
from probing.runs.data import RELABELLED, find_data, load_functions
from probing.runs.ledger_file import ATTENTION, MASKING, instrument_of
from probing.runs.saved import ledger_path, read_text
from probing.runs.settings import Limit, Settings
from probing.stats.hits import Hits
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


class EntryResults(NamedTuple):
    """The results of one model on one config that make an entry for boards, by split: their
    `files`, and what was `read`."""

    files: dict[str, Path]
    read: dict[str, Any]

    @property
    def settings(self) -> Any:
        return self.read["test"].settings


def results_for_entries(paths: Paths) -> list[EntryResults]:
    """The results in files and folders, those of attention probes first.

    Raises what `find` does, and LedgerError for results of instruments that no board takes.
    """
    others = by_instrument(paths)
    probed = others.pop(ATTENTION)
    masked = others.pop(MASKING)
    for name, files in others.items():
        if files:
            raise LedgerError(f"{files[0]}: {instead_of_board(name)}")
    pairs = find(probed) if probed else []
    results = [
        EntryResults(pair.files, {"test": pair.test, "validation": pair.validation})
        for pair in pairs
    ]
    # a masking result makes an entry alone
    alone = [EntryResults({"test": file}, {"test": MaskResult.load(file)}) for file in masked]
    return results + alone


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
        return baselines.evaluate(
            **self.edges, direction=self.direction, by_context=self.by_context
        )

    @cached_property
    def rivals(self) -> dict[str, dict[str, ChosenHits]]:
        """Protocol -> those of BASELINES that it has -> what each hits; beyond offsets, if both
        splits have hard edges."""
        hits = dict(self.baselines.hits)
        hard = rivals(**self.edges, direction=self.direction, by_context=self.by_context)
        if hard:
            hits[BEYOND_OFFSET] = hard
        return hits

    def hits(
        self, validation: RankLedger, test: RankLedger, unread: Collection[int] = ()
    ) -> dict[str, ChosenHits]:
        """What a model's heads hit of these edges, by the protocols of `rivals`; as of
        `hits_by_protocol`."""
        chosen = hits_by_protocol(validation, test, unread)
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
            protocol: compare(chosen, self.splits.rivals[protocol][BEST_BASELINE])
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


SHORT_CODE = 1_300
"""Characters of the longest function on which the heads of a submission are chosen. The embedded
encoder, which has 512 positions, reads 344 of 346 such functions of CodeSearchNet. What a model
cannot read never helps it (`choose_least`)."""


class WholeSplits(Splits):
    """The functions on which the heads of submissions are chosen, all SHORT_CODE ones of
    validation, and scored, all of test, whatever models could read of them."""

    def __init__(self, data: Any, config: str, direction: str):
        functions, _ = load_functions(data, config, "validation")
        short = np.flatnonzero([len(code) <= SHORT_CODE for code in functions["code"].to_pylist()])
        edges = {
            "validation": baselines.read_edges(data, config, "validation", short),
            "test": baselines.read_edges(data, config, "test"),
        }
        super().__init__(edges, direction)

    def submission(self, probed: Probed) -> AttentionSubmission:
        """What is published of two probes, over all functions: heads find nothing in those that the
        model could not read.

        Raises LedgerError as `check` does, and EntryError for what no board takes.
        """
        self.check(probed)
        result = probed.test
        chosen_on = probed.validation
        test = self.completed(result.ledger, "test")
        validation = self.completed(chosen_on.ledger, "validation")
        unread = np.setdiff1d(validation.function, chosen_on.ledger.function)
        chosen = self.hits(validation, test, unread)
        return AttentionSubmission.of_result(
            result,
            {name: table_of(hits, self.rivals[name]) for name, hits in chosen.items()},
            scoring=SCORING_VERSION,
            layers=result.layers,
            heads=result.heads,
            chosen_on={
                "labels": chosen_on.settings.labels,
                "functions": chosen_on.functions,
                "edges": len(chosen_on.ledger),
            },
            ledgers={"test": result.ledger.digest(), "validation": chosen_on.ledger.digest()},
            unread=np.setdiff1d(test.function, result.ledger.function).tolist(),
            chosen={
                name: chosen_of(hits, self.rivals[name], result.heads)
                for name, hits in chosen.items()
            },
        )

    def completed(self, ledger: RankLedger, split: str) -> RankLedger:
        """The ledger with the edges of these functions: those of functions that were not read have
        the worst rank.

        Raises LedgerError unless it has all edges of the others.
        """
        edges = self.edges[split]
        ledger = ledger.only(edges.function)
        read = np.isin(edges.function, ledger.function)
        if np.count_nonzero(read) != len(ledger):
            raise LedgerError(f"a ledger of {split} does not have the edges of the data")
        if read.all():
            return ledger
        ranks = np.full((len(RULES), len(edges), *ledger.ranks.shape[2:]), WORST_RANK, np.uint8)
        ranks[:, read] = ledger.ranks
        return RankLedger.of(edges, ranks, ledger.settings)


def recomputed(submission: AttentionSubmission, whole: WholeSplits) -> bool:
    """True if a submission is of the labels of these splits.

    Raises EntryError if so, but its functions, edges or baselines are others.
    """
    labels = {split: edges.settings.labels for split, edges in whole.edges.items()}
    if labels != {"test": submission.settings.labels, "validation": submission.chosen_on.labels}:
        return False
    known = whole.rivals
    theirs = submission.tables
    ours = {}
    for name, hits in theirs.items():
        relations = known[name][BEST_BASELINE].relations if name in known else []
        differs = f"the functions and edges of {name} differ from the data's"
        if not set(hits.names) <= set(relations):
            raise EntryError(differs)
        ours[name] = rivals_of(known[name], hits.names)
        if not _same_hits(hits.named({}), ours[name].named({})):
            raise EntryError(differs)
        if name != BEYOND_OFFSET and hits.names != relations:
            raise EntryError(f"{name} lacks relations of the data")
    systems = {system: system for system in BASELINES}
    if not all(_same_hits(theirs[name].named(systems), hits) for name, hits in ours.items()):
        raise EntryError("its baselines differ from the data's")
    return True


def _same_hits(first: Hits, second: Hits) -> bool:
    return list(first.content()) == list(second.content())


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
        edges[part] = replace(of_part, repositories=ledgers[0].repositories)
    splits = Splits(edges, first.direction)
    evidence: list[Evidence] = []
    for model in probed:
        splits.check(model)
        shared = model.only(edges["test"].function, edges["validation"].function)
        evidence.append(Evidence(shared, splits, evidence))
    return evidence


def submission_of(results: EntryResults, data: Any = None) -> Submission:
    """The entry for boards of results; `data`: the location of the dataset, if not that in the
    results.

    Raises EntryError for what no board takes, such as a partial run or a control.
    """
    settings = results.settings
    location = find_data(results.files["test"], settings) if data is None else data
    test = results.read["test"]
    if isinstance(test, MaskResult):
        return submission_masked.make(test, holding(location, settings))
    probed = Probed(test, results.read["validation"], results.files)
    AttentionSubmission.check_settings(settings)
    return WholeSplits(location, settings.config, settings.direction).submission(probed)


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
