"""From sources and models to the paper's tables and figures, in one run that resumes."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import filelock

from codesyntax_dataset.arguments import Positive, checked
from codesyntax_dataset.atomic import TEMPORARY_FOLDERS, os_errors_as_ledger_errors
from codesyntax_dataset.build import build
from codesyntax_dataset.errors import LedgerError
from codesyntax_dataset.owned_folder import check_owned
from codesyntax_dataset.statistics import Statistics
from probing.attention.probe import probe
from probing.paper import inputs, page
from probing.paper.attention import HeadExample, example
from probing.paper.cells import Made
from probing.paper.inputs import CODE, CONFIGS
from probing.paper.measured import Measured, measure
from probing.report import folder, statistics
from probing.runs.experiment import CONTINUES

logger = logging.getLogger(__name__)

COMMAND = "reproduce"

DATASET = "codesyntax"
"""The name of each dataset, in signatures, too."""

RESULTS, REPORT = "results", "report"
_FOLDERS = tuple(f"{name}/" for name in (*CONFIGS, RESULTS, REPORT))
"""The folders beside those of the languages."""


@checked
def reproduce(
    sources: Sequence[str],
    models: Sequence[str],
    output: str | os.PathLike[str],
    *,
    exclude_repositories: str | os.PathLike[str] | None = None,
    limit: Positive | None = None,
    device: str | None = None,
    tell: Any = logger.info,
) -> Path:
    """Make Tables 3 to 6 and 8 to 12 and Figures 2 to 8 and 16 to 19 of Shen et al. (2022) again.

    Builds the configs of `sources`, probes `models` on them, runs the baselines, and writes one page with the paper's
    numbers and the differences; returns its path. `sources` and `models` are as in `probing.paper.inputs.read`:
    `german=de_gsd-ud-test.conllu` is for one language. `exclude_repositories` is as in `build`, for code; `limit`
    scores only the first functions of each config; `tell` is called with each message, the first of which is what will
    run, with its estimated time and disk.

    The folder `output` holds `LANGUAGE/codesyntax`, the datasets; `results`; and `report`. The same call continues an
    interrupted run, and ends with the same bytes; one with further sources or models adds to it.

    Raises LedgerError if `output` has other files, or another run is writing to it; what `inputs.read`, `build` and
    `probe` raise.
    """
    output = Path(output).resolve()
    _check_ours(output)
    asked = inputs.read(sources, models, exclude_repositories, limit)
    tell(asked.text())
    with _alone_in(output):
        measured: dict[str, Measured] = {}
        counted: dict[str, Statistics] = {}
        examples: dict[str, HeadExample] = {}
        for language in asked.languages:
            configs = asked.configs(language)
            data = output / language / DATASET
            tell(f"building {', '.join(configs)}")
            excluded = exclude_repositories if language in CODE else None
            built = build(asked.sources[language], configs, data, exclude_repositories=excluded)
            if language in configs:  # not only its ablations
                counted |= statistics.collect(data, [language], list(built.configs[language].functions)).configs
            for config in configs:
                ledgers = _probed(asked, language, config, data, output / RESULTS, device, tell)
                measured[config] = measure(data, config, ledgers, limit)
                probed = asked.models[language]
                if config in CODE and probed:
                    drawn = example(probed[0], data, measured[config], ledgers[probed[0].name], device)
                    examples |= {config: drawn} if drawn else {}
        tell("writing the page")
        report = folder.Report(
            COMMAND, "rank ledgers", page.TITLE, page.sections(Made(asked, measured, counted, examples))
        )
        return folder.save(report, output / REPORT)


def _probed(
    asked: inputs.Inputs,
    language: str,
    config: str,
    data: Path,
    results: Path,
    device: str | None,
    tell: Callable[[str], object],
) -> dict[str, Path]:
    """The names of models and the ledgers of their results on a config."""
    ledgers = {}
    for model in asked.models.get(language, []):
        tell(f"probing {model.name} on {config}")
        result = probe(model.given, data, config, "test", limit=asked.limit, device=device, output=results)
        if result is None:
            raise LedgerError("reproduce runs in one process: start it without accelerate launch or torchrun")
        ledgers[model.name] = result.paths(results)[1]
    return ledgers


def _check_ours(output: Path) -> None:
    """Raise LedgerError unless `output` does not exist, or has only what `reproduce` writes."""
    check_owned(output, COMMAND, ours=lambda file: file.startswith((".", *_FOLDERS)))
    folder.check_ours(output / REPORT, COMMAND)


@contextmanager
def _alone_in(output: Path) -> Iterator[None]:
    """Let only one run write to `output`, and remove what a run that was killed could not: files not yet renamed."""
    lock = output / ".lock"
    with os_errors_as_ledger_errors(output):
        output.mkdir(parents=True, exist_ok=True)
        try:
            held = filelock.FileLock(lock, timeout=0).acquire()
        except filelock.Timeout:
            raise LedgerError(f"another run is writing to {output}: wait for it, or choose another output") from None
    try:
        _remove(output, f"**/{TEMPORARY_FOLDERS}")
        yield
        _remove(output, f"{RESULTS}/.*.parts")
    except KeyboardInterrupt as stop:
        stop.args = (CONTINUES,)
        raise
    finally:
        lock.unlink(missing_ok=True)
        held.lock.release()


def _remove(output: Path, *patterns: str) -> None:
    for path in [path for pattern in patterns for path in output.glob(pattern)]:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
