"""From sources and models to the tables and figures of a study, in one run that resumes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from codesyntax_dataset.arguments import Positive, StrPath, checked
from codesyntax_dataset.build import build
from codesyntax_dataset.errors import LedgerError, SourceError, UnknownName
from codesyntax_dataset.measure import BuildReport
from codesyntax_dataset.owned_folder import check_owned
from codesyntax_dataset.sources import SAMPLE, shown
from probing.instruments.attention import errors
from probing.instruments.attention.probe import probe
from probing.instruments.masking.mask import mask
from probing.instruments.masking.result import MaskResult
from probing.paper import cases, inputs, masking_study, page
from probing.paper.inputs import CODE, CONFIGS
from probing.paper.measured import Reproduction, language_of_paper, measure
from probing.report import dataset, folder
from probing.report.document import Section
from probing.runs.saved import result_path

Result = TypeVar("Result")

_Contents = tuple[str, list[Section]]
"""The title and the sections of a page."""

logger = logging.getLogger(__name__)

DATASET = "codesyntax"
"""The name of each dataset, in signatures, too."""

RESULTS, REPORT = "results", "report"
_REPRODUCED_FOLDERS = tuple(
    f"{name}/"
    for name in (*chain.from_iterable(CONFIGS.values()), masking_study.SOURCE, RESULTS, REPORT)
)
"""All folders of a reproduction."""

STUDIES = CODESYNTAX, SYNTAXEVAL = "codesyntax", "syntaxeval"
"""Shen et al. (2022), and Velasco et al. (2024)."""


@checked
def reproduce(
    sources: Sequence[str],
    models: Sequence[str],
    output: StrPath,
    *,
    study: str = CODESYNTAX,
    exclude_repositories: StrPath | None = None,
    limit: Positive | None = None,
    device: str | None = None,
    tell: Any = logger.info,
) -> Path:
    """Make the tables and figures of a study again, with its numbers and the differences.

    The folder `output` holds `CONFIG/codesyntax`, the datasets; `results`; and `report`. The same
    call continues an interrupted run, and ends with the same bytes; one with further sources or
    models adds to it. A config that its source does not have is left out, with the reason.

    Args:
        sources: where functions or sentences come from: `german=de_gsd-ud-test.conllu` is for one
            language, and `sample` alone for all (`probing.paper.inputs.read`).
        models: those to probe; `LANGUAGE=MODEL` is for one language.
        output: the folder of the reproduction.
        study: `codesyntax`, Tables 3 to 12 and all figures of Shen et al. (2022): builds the
            configs of `sources`, probes `models` on them and runs the baselines. Or `syntaxeval`,
            the similarities and causal effects of Velasco et al. (2024): masks Python functions by
            the protocol `published`, and sets our estimates beside those of the study's estimator.
        exclude_repositories: a file with repositories, one a line, whose functions of code are left
            out.
        limit: only the first functions of each config; by default all, or the 7,501 of
            `syntaxeval`.
        device: such as `cpu` or `cuda:1`; by default a CUDA GPU if there is one.
        tell: called with each message, the first of which says what will run.

    Returns:
        The path of the page.

    Raises:
        UnknownName: another study.
        LedgerError: `output` has other files.
        SourceError: no config could be built.
        ModelError: a model that cannot be probed.

    Examples:
        >>> import probing
        >>> probing.reproduce(["sample"], ["tiny-code-lm"], "study", limit=3).name
        'index.html'
    """
    if study not in STUDIES:
        raise UnknownName("study", study, STUDIES)
    output = Path(output).resolve()
    # the sample has sentences, too
    command, languages = "reproduce", [*CONFIGS] if [*sources] == [SAMPLE] else [*CODE]
    if study == SYNTAXEVAL:
        command, languages = f"reproduce --study {study}", [masking_study.STUDY_CONFIG]
        limit = limit or masking_study.STUDY_FUNCTIONS
    check_owned(output, command, ours=lambda file: file.startswith((".", *_REPRODUCED_FOLDERS)))
    folder.check_ours(output / REPORT, command)
    asked = inputs.read(sources, models, limit, languages)
    run = _Run(asked, output, exclude_repositories, device, tell)
    tell(asked.text())
    title, sections = run.codesyntax() if study == CODESYNTAX else run.syntaxeval()
    return folder.save(folder.Report(command, "ledgers", title, sections), output / REPORT)


@dataclass(frozen=True)
class _Run:
    """A reproduction that has begun; arguments as of `reproduce`."""

    asked: inputs.Inputs
    output: Path
    exclude_repositories: StrPath | None
    device: str | None
    tell: Callable[[str], object]

    def codesyntax(self) -> _Contents:
        """The title and the sections of the page."""
        asked, reports = self.asked, dict[str, BuildReport]()
        for config in chain.from_iterable(CONFIGS[language] for language in asked.sources):
            if report := self._built(config):
                reports[config] = report
        reasons = list(dict.fromkeys(asked.missing.values()))
        if not reports:
            raise SourceError("; ".join(reasons) or "no source was given")
        for reason in reasons:
            configs = ", ".join(name for name, why in asked.missing.items() if why == reason)
            self.tell(f"left out {configs}: {reason}")
        reproduction = Reproduction(asked)
        for config, report in reports.items():
            language, data = language_of_paper(config), report.output
            if config == language:  # not an ablation
                splits = list(report.configs[config].functions)
                reproduction.counted.update(dataset.collect(data, [config], splits).configs)
            ledgers = self._ledgers_of(config, data)
            reproduction.measured[config] = measure(data, config, ledgers, asked.limit)
            if config in CODE and asked.models[language]:
                model = asked.models[language][0]
                ledger = ledgers[model.name]
                result = result_path(ledger)
                path = errors.errors_path(result)
                if not path.exists():
                    where = {"model": model.location, "data": data, "device": self.device}
                    errors.save(errors.analyse(result, **where), result)
                reproduction.errors[config] = errors.load(path)
                reproduction.cases.extend(cases.case_rows(model, data, config, ledger, self.output))
        return page.PAPER_TITLE, page.sections(reproduction)

    def _built(self, config: str) -> BuildReport | None:
        """The dataset of a config; where its source does not have it, the config is missing."""
        language = language_of_paper(config)
        source = self.asked.sources[language]
        self.tell(f"building {config}")
        excluded = self.exclude_repositories if language in CODE else None
        try:
            return build(
                source, [config], self.output / config / DATASET, exclude_repositories=excluded
            )
        except SourceError as error:
            self.asked.missing[config] = str(error).replace(source, shown(source))
            return None

    def _ledgers_of(self, config: str, data: Path) -> dict[str, Path]:
        """The names of models and the ledgers of their results on a config."""
        ledgers, results = {}, self.output / RESULTS
        for model in self.asked.models[language_of_paper(config)]:
            result = probe(
                model.location,
                data,
                config,
                "test",
                limit=self.asked.limit,
                device=self.device,
                output=results,
            )
            ledgers[model.name] = _unshared(result).paths(results)[1]
        return ledgers

    def syntaxeval(self) -> _Contents:
        """The title and the sections of the page."""
        data = self.output / masking_study.STUDY_CONFIG / DATASET
        results = self.output / RESULTS
        prepared = masking_study.prepare(self.asked, self.output, data, self.exclude_repositories)
        masked: dict[str, MaskResult] = {}
        for model in self.asked.models[masking_study.STUDY_CONFIG]:
            settings = masking_study.SETTINGS
            result = mask(model.location, data, **settings, device=self.device, output=results)
            masked[model.name] = _unshared(result)
        study = masking_study.Study(self.asked, prepared, masked)
        return masking_study.STUDY_TITLE, masking_study.sections(study)


def _unshared(result: Result | None) -> Result:
    if result is None:
        raise LedgerError(
            "reproduce runs in one process: start it without accelerate launch or torchrun"
        )
    return result
