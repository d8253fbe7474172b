"""From sources and models to the tables and figures of a study, in one run that resumes."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from codesyntax_dataset.arguments import Positive, checked
from codesyntax_dataset.atomic import TEMPORARY_FOLDERS
from codesyntax_dataset.build import build
from codesyntax_dataset.errors import LedgerError, UnknownName
from codesyntax_dataset.owned_folder import check_owned
from codesyntax_dataset.statistics import Statistics
from probing.instruments.attention import errors
from probing.instruments.attention.errors import ErrorAnalysis
from probing.instruments.attention.probe import probe
from probing.instruments.masking.mask import mask
from probing.instruments.masking.result import MaskResult
from probing.paper import cases, inputs, masking_study, page
from probing.paper.cases import Case
from probing.paper.inputs import CODE, CONFIGS
from probing.paper.measured import Measured, Reproduction, measure
from probing.report import dataset, folder
from probing.report.document import Section
from probing.report.pages import page as one_page
from probing.runs.experiment import CONTINUES, only_one
from probing.runs.saved import result_path

Result = TypeVar("Result")

_Contents = tuple[str, list[Section], dict[str, str | bytes]]
"""The title and the sections of a page, and further files of its folder."""

logger = logging.getLogger(__name__)

REPRODUCE = "reproduce"

DATASET = "codesyntax"
"""The name of each dataset, in signatures, too."""

RESULTS, REPORT = "results", "report"
_REPRODUCED_FOLDERS = tuple(
    f"{name}/" for name in (*CONFIGS, masking_study.SOURCE, RESULTS, REPORT)
)
"""All folders of a reproduction."""

STUDIES = CODESYNTAX, SYNTAXEVAL = "codesyntax", "syntaxeval"
"""Shen et al. (2022), and Velasco et al. (2024)."""


@checked
def reproduce(
    sources: Sequence[str],
    models: Sequence[str],
    output: str | os.PathLike[str],
    *,
    study: str = CODESYNTAX,
    exclude_repositories: str | os.PathLike[str] | None = None,
    limit: Positive | None = None,
    device: str | None = None,
    tell: Any = logger.info,
) -> Path:
    """Make the tables and figures of a study again, with its numbers and the differences; return
    the path of the page.

    `study`: `codesyntax`, Tables 3 to 12 and all figures of Shen et al. (2022): builds the configs
    of `sources`, probes `models` on them and runs the baselines. Or `syntaxeval`, the similarities
    and causal effects of Velasco et al. (2024): masks Python functions by the protocol `published`,
    and sets our estimates beside those of the study's estimator.

    `sources` and `models` are as in `probing.paper.inputs.read`: `german=de_gsd-ud-test.conllu` is
    for one language. `exclude_repositories` is as in `build`, for code. `limit` uses only the first
    functions of each config; the default is all, or the 7,501 of `syntaxeval`. `tell` is called
    with each message, the first of which says what will run.

    The folder `output` holds `LANGUAGE/codesyntax`, the datasets; `results`; and `report`. The same
    call continues an interrupted run, and ends with the same bytes; one with further sources or
    models adds to it.

    Raises UnknownName for another study; LedgerError if `output` has other files, or another run is
    writing to it; what `inputs.read`, `build`, `probe` and `mask` raise.
    """
    if study not in STUDIES:
        raise UnknownName("study", study, STUDIES)
    output = Path(output).resolve()
    command = REPRODUCE
    if study != CODESYNTAX:
        command += f" --study {study}"
    _check_ours(output, command)
    languages = CODE if study == CODESYNTAX else (masking_study.STUDY_CONFIG,)
    if study == SYNTAXEVAL and limit is None:
        limit = masking_study.STUDY_FUNCTIONS
    asked = inputs.read(sources, models, exclude_repositories, limit, languages)
    run = _Run(asked, output, exclude_repositories, device, tell)
    make = run.codesyntax if study == CODESYNTAX else run.syntaxeval
    tell(asked.text())
    with _alone_in(output):
        title, sections, files = make()
        tell("writing the page")
        return folder.save(
            folder.Report(command, "ledgers", title, sections, files=files), output / REPORT
        )


@dataclass(frozen=True)
class _Run:
    """A reproduction that has begun; arguments as of `reproduce`."""

    asked: inputs.Inputs
    output: Path
    exclude_repositories: str | os.PathLike[str] | None
    device: str | None
    tell: Callable[[str], object]

    def codesyntax(self) -> _Contents:
        """The title, the sections and the further files of the page."""
        asked = self.asked
        measured: dict[str, Measured] = {}
        counted: dict[str, Statistics] = {}
        wrong: dict[str, ErrorAnalysis] = {}
        drawn: list[Case] = []
        for language in asked.languages:
            configs = asked.configs(language)
            data = self.output / language / DATASET
            self.tell(f"building {', '.join(configs)}")
            excluded = self.exclude_repositories if language in CODE else None
            built = build(asked.sources[language], configs, data, exclude_repositories=excluded)
            if language in configs:  # not only its ablations
                counted |= dataset.collect(
                    data, [language], list(built.configs[language].functions)
                ).configs
            for config in configs:
                ledgers = self._ledgers_of(language, config, data)
                measured[config] = measure(data, config, ledgers, asked.limit)
                if config in CODE and asked.models[language]:
                    model = asked.models[language][0]
                    wrong[config] = self._analysed(model, data, ledgers[model.name])
                    drawn += cases.find(model, data, config, ledgers[model.name], self.device)
        drawn.sort(key=lambda case: case.figure)
        files: dict[str, str | bytes] = {}
        if drawn:
            files[cases.CASES_PAGE] = one_page(
                "Single functions, as in the paper", [case.content for case in drawn]
            ).html
        return (
            page.PAPER_TITLE,
            page.sections(Reproduction(asked, measured, counted, wrong, drawn)),
            files,
        )

    def _ledgers_of(self, language: str, config: str, data: Path) -> dict[str, Path]:
        """The names of models and the ledgers of their results on a config."""
        ledgers, results = {}, self.output / RESULTS
        for model in self.asked.models.get(language, []):
            self.tell(f"probing {model.name} on {config}")
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

    def _analysed(self, model: inputs.Model, data: Path, ledger: Path) -> ErrorAnalysis:
        """The wrong first choices of a model, analysed once: again if earlier without what heads
        attend to."""
        result = result_path(ledger)
        path = errors.errors_path(result)
        if not path.exists() or not errors.load(path).attended:
            self.tell(f"analysing the errors of {model.name}")
            errors.save(
                errors.analyse(result, model=model.location, data=data, device=self.device), result
            )
        return errors.load(path)

    def syntaxeval(self) -> _Contents:
        """The title and the sections of the page."""
        data = self.output / masking_study.STUDY_CONFIG / DATASET
        results = self.output / RESULTS
        self.tell("reading the functions")
        prepared = masking_study.prepare(self.asked, self.output, data, self.exclude_repositories)
        masked: dict[str, MaskResult] = {}
        for model in self.asked.models[masking_study.STUDY_CONFIG]:
            self.tell(f"masking with {model.name}")
            settings = masking_study.SETTINGS
            masked[model.name] = _unshared(
                mask(model.location, data, **settings, device=self.device, output=results)
            )
        return (
            masking_study.STUDY_TITLE,
            masking_study.sections(masking_study.Study(self.asked, prepared, masked)),
            {},
        )


def _unshared(result: Result | None) -> Result:
    if result is None:
        raise LedgerError(
            "reproduce runs in one process: start it without accelerate launch or torchrun"
        )
    return result


def _check_ours(output: Path, command: str) -> None:
    """Raise LedgerError unless `output` does not exist, or has only what this command writes."""
    check_owned(output, command, ours=lambda file: file.startswith((".", *_REPRODUCED_FOLDERS)))
    folder.check_ours(output / REPORT, command)


@contextmanager
def _alone_in(output: Path) -> Iterator[None]:
    """Let only one run write to `output`, and remove what a run that was killed could not: files
    not yet renamed."""
    lock = output / ".lock"
    with only_one(lock, f"another run is writing to {output}"):
        try:
            _remove(output, f"**/{TEMPORARY_FOLDERS}")
            yield
            _remove(output, f"{RESULTS}/.*.parts")
        except KeyboardInterrupt as stop:
            stop.args = (CONTINUES,)
            raise
        finally:
            lock.unlink(missing_ok=True)


def _remove(output: Path, pattern: str) -> None:
    for path in [*output.glob(pattern)]:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
