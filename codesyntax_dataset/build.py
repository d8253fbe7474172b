"""From a source of functions to a dataset folder that `load_dataset` reads and that can be uploaded as it is."""

from __future__ import annotations

import errno
import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import datasets
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from datasets.exceptions import DatasetGenerationError

from codesyntax_dataset import card, corpus, metadata, sources
from codesyntax_dataset.arguments import Positive, checked
from codesyntax_dataset.builder import FEATURES, CodeSyntax
from codesyntax_dataset.errors import CodeSyntaxError, DatasetError, SourceError, UnknownName
from codesyntax_dataset.languages import CONFIGS
from codesyntax_dataset.measure import ORIGIN, ROW_GROUP, BuildReport, ConfigReport, digest, measure, read_tables
from codesyntax_dataset.schema import Skips, SourceFunction
from codesyntax_dataset.sources import published


@checked
def build(
    source: str,
    configs: Sequence[str],
    output: str | os.PathLike[str],
    *,
    exclude_repositories: str | os.PathLike[str] | None = None,
    validation_fraction: float | int | None = None,
    overwrite: bool = False,
    num_proc: Positive | None = None,
) -> BuildReport:
    """Annotate the functions of `source` and write the dataset folder `output`, or add `configs` to the one there.

    `source` is any that `codesyntax_dataset.sources` reads, `configs` are names in `CONFIGS`, `exclude_repositories` is
    a file of repositories to leave out, `validation_fraction` is as in `codesyntax_dataset.sources`, and `num_proc`
    processes annotate. The same input gives the same rows and versions, and with the same pyarrow the same bytes,
    however many processes and in however many steps. The folder holds `{config}/{split}.parquet`, `README.md` (the
    card) and what `codesyntax_dataset.metadata` puts beside them, and appears as a whole or not at all.

    A dataset that is there must be from the same source and with the same settings: its configs are made again, too,
    and must come to the same functions. With `overwrite`, whatever dataset of ours is there gives way to these `configs`.

    Raises UnknownName for an unknown config, SourceError for a source that cannot be read, and DatasetError where
    `output` is something else, a dataset from another source, or cannot be written, such as on a full disk.
    """
    configs = list(dict.fromkeys(configs))
    for config in configs:
        if config not in CONFIGS:
            raise UnknownName("config", config, CONFIGS)
    if not configs:
        raise DatasetError(f"no config to build: expected some of {', '.join(CONFIGS)}")
    reader = sources.reader(source)
    exclusion = _exclusion(exclude_repositories)
    output = Path(output).resolve()
    _check_ours(output)
    there = {} if overwrite else _digests(output)
    with _plain_errors(output), _progress_on_terminals_only():
        output.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f".{output.name}-", dir=output.parent) as work:
            folder = Path(work, "dataset")
            reports = {}
            for config in [*there, *(config for config in configs if config not in there)]:
                builder = CodeSyntax(
                    cache_dir=str(Path(work, "cache")),
                    config_name=config,
                    source=source,
                    exclude_repositories=exclude_repositories and str(exclude_repositories),
                    validation_fraction=validation_fraction,
                )
                try:
                    builder.download_and_prepare(num_proc=num_proc)
                except SourceError as error:
                    if config in configs:
                        raise
                    raise _other_source(output, config, source, str(error)) from error
                reports[config] = _write(builder, folder / config)
                if config in there and reports[config].digest != there[config]:
                    raise _other_source(output, config, source, "its functions or how they are split differ")
            reports = {config: reports[config] for config in CONFIGS if config in reports}
            splitting = sources.splitting(source, validation_fraction)
            text = card.render(reports, reader.FORM, _shown(source), reader is published, exclusion, splitting)
            for name, content in {metadata.CARD: text, **metadata.render(folder, reports)}.items():
                (folder / name).write_text(content, encoding="utf-8", newline="\n")
            (folder / metadata.SUMS).write_text(metadata.sha256sums(folder), encoding="utf-8", newline="\n")
            _check_ours(output)
            if not overwrite and _digests(output) != there:
                raise DatasetError(f"{output} was written to meanwhile, by another build: run this one again")
            _replace(output, folder, Path(work, "replaced"))
    return BuildReport(output, reports)


def _write(builder: CodeSyntax, folder: Path) -> ConfigReport:
    """Write a prepared config as `{split}.parquet` into `folder`, and count what is in these files."""
    folder.mkdir(parents=True)
    for split, dataset in builder.as_dataset().items():
        whole = dataset.data.table.combine_chunks()  # else pages would depend on how many processes wrote the rows
        file = folder / f"{split}.parquet"
        pq.write_table(whole.cast(FEATURES.arrow_schema), file, compression="zstd", row_group_size=ROW_GROUP)
    report, tables = measure(folder, builder.skips)
    if sources.reader(builder.config.source) is not published:
        _count_unparsed(tables, CONFIGS[builder.config.name][1], builder.skips)
    return report


def _digests(output: Path) -> dict[str, str]:
    """Config -> digest of its functions, for the dataset at `output`; empty where there is none."""
    digests = {}
    for config in CONFIGS:
        if (output / config).is_dir():
            try:
                digests[config] = digest(read_tables(output / config).values(), ORIGIN)
            except (pa.ArrowException, KeyError) as error:
                raise DatasetError(
                    f"{output} has a config {config} that cannot be read ({error}), so nothing can be added: choose "
                    "another output, or say to overwrite this one"
                ) from error
    return digests


def _other_source(output: Path, config: str, source: str, reason: str) -> DatasetError:
    """The refusal to add to a dataset that is from another source."""
    told = card.origin((output / metadata.CARD).read_text(encoding="utf-8", errors="replace"))
    return DatasetError(
        f"{output} holds {config} from {told or 'an unknown source'}, and {source} does not give the same functions "
        f"({reason}): only configs from one source, unchanged and with the same settings, go into one dataset. Choose "
        "another output, or give --overwrite (overwrite=True) to replace what is there"
    )


def _count_unparsed(tables: dict[str, pa.Table], variant: str, skips: Skips) -> None:
    """Add why functions have no relations; recounted here, since the processes that annotate return rows only."""
    for split, table in tables.items():
        bare = table.filter(pc.equal(pc.list_value_length(table["relations"]), 0))
        for row in bare.select(["id", *ORIGIN]).to_pylist():
            function = SourceFunction(**row, partition=split)
            _, reason = corpus.label(function, variant)
            if reason:
                skips.add(reason, function.id)


def _exclusion(file: str | os.PathLike[str] | None) -> card.Exclusion | None:
    if file is None:
        return None
    names = corpus.read_repositories(file)
    return card.Exclusion(len(names), hashlib.sha256(Path(file).read_bytes()).hexdigest())


def _shown(source: str) -> str:
    """The source as the card names it: a path without the folders that it lies in."""
    return Path(source).resolve().name if Path(source).exists() else source


def _check_ours(output: Path) -> None:
    """Raise DatasetError unless there is nothing at `output`, or a dataset as `build` writes it and nothing else."""
    if not output.exists():
        return
    if not output.is_dir():
        raise DatasetError(f"{output} is a file, expected a folder to write or none: choose another")
    paths = [path for path in output.rglob("*") if path.is_symlink() or not path.is_dir()]
    found = {path.relative_to(output).as_posix() for path in paths}
    if not found:
        return
    readme = output / metadata.CARD
    if not readme.is_file() or card.MARKER not in readme.read_text(encoding="utf-8", errors="replace"):
        raise DatasetError(f"{output} is not empty and was not made by `codesyntax build`: choose another or remove it")
    if foreign := found - metadata.files():
        raise DatasetError(
            f"{output} would be replaced, but {min(foreign)} in it was not made by `codesyntax build`: move it away"
        )


def _replace(output: Path, folder: Path, replaced: Path) -> None:
    """Move `folder` to `output`, and what was there to `replaced`."""
    try:
        if output.exists():
            output.rename(replaced)
        folder.rename(output)
    except BaseException:
        if replaced.exists() and not output.exists():
            replaced.rename(output)
        raise


@contextmanager
def _plain_errors(output: Path) -> Iterator[None]:
    """Raise our own errors and interrupts as they are, however wrapped, and the file system's as DatasetError."""
    full = os.strerror(errno.ENOSPC)
    try:
        yield
    except Exception as error:
        reasons = list(_chain(error))
        for reason in reasons:
            if isinstance(reason, (CodeSyntaxError, KeyboardInterrupt)):
                raise reason from reason.__cause__
        if isinstance(error, (DatasetGenerationError, OSError)):
            if any(full in str(reason) for reason in reasons):  # only the text comes back from another process
                raise DatasetError(f"cannot write {output}: {full}") from error
            for reason in reasons:
                if isinstance(reason, OSError):
                    raise DatasetError(f"cannot write {output}: {reason}") from error
        raise


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error, what it was raised from, and so on."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


@contextmanager
def _progress_on_terminals_only() -> Iterator[None]:
    verbosity = datasets.logging.get_verbosity()
    disabled = datasets.are_progress_bars_disabled()
    datasets.logging.set_verbosity_error()  # else it tells that a small split needs no second process
    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    try:
        yield
    finally:
        datasets.logging.set_verbosity(verbosity)
        if not disabled:
            datasets.enable_progress_bars()
