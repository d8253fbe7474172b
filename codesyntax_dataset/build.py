"""Build a dataset folder from a source of functions; `load_dataset` reads it, and it can be uploaded unchanged."""

from __future__ import annotations

import errno
import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from datasets.exceptions import DatasetGenerationError

from codesyntax_dataset import card, corpus, foreign, metadata, sources
from codesyntax_dataset.arguments import Positive, checked
from codesyntax_dataset.atomic import workplace
from codesyntax_dataset.builder import FEATURES, CodeSyntax
from codesyntax_dataset.errors import ArgumentError, CodeSyntaxError, DatasetError, SourceError, UnknownName
from codesyntax_dataset.languages import CONFIGS, LANGUAGES, Variant, language_of, unedited, variant_of
from codesyntax_dataset.measure import ORIGIN, ROW_GROUP, BuildReport, ConfigReport, digest, measure, read_tables
from codesyntax_dataset.protocol import EDITS
from codesyntax_dataset.schema import Skips, SourceFunction


@checked
def build(
    source: str,
    configs: Sequence[str],
    output: str | os.PathLike[str],
    *,
    edits: Sequence[str] = (),
    exclude_repositories: str | os.PathLike[str] | None = None,
    validation_fraction: float | int | None = None,
    overwrite: bool = False,
    num_proc: Positive | None = None,
) -> BuildReport:
    """Annotate the functions of `source` and write the dataset folder `output`, or add `configs` to an existing one.

    `source` is anything that `codesyntax_dataset.sources` reads, `configs` are names in `CONFIGS`, `edits` are names in
    `EDITS`, each of which adds a further config to those that are named like a language, such as `python_layout`,
    `exclude_repositories` is a file that lists repositories to exclude, `validation_fraction` is as in
    `codesyntax_dataset.sources`, and `num_proc` is the number of annotating processes. The same input gives the same
    rows and versions (and, with the same version of pyarrow, the same bytes), regardless of the number of processes
    or builds. The folder holds `{config}/{split}.parquet`, `README.md` (the card) and the files of
    `codesyntax_dataset.metadata`. It is written as a whole or not at all.

    An existing dataset must come from the same source with the same settings: its configs are rebuilt, too, and must
    give the same functions. With `overwrite`, an existing dataset is replaced by one of these `configs`.

    Raises UnknownName for an unknown config, SourceError for a source that cannot be read, and DatasetError if
    `output` is not a dataset, is one from another source, or cannot be written (for example on a full disk).
    """
    configs = _with_edits(configs, edits)
    if not configs:
        raise DatasetError(f"no config to build: expected some of {', '.join(unedited())}")
    for config in configs:
        sources.reader(source, config)
    exclusion = _exclusion(exclude_repositories)
    output = Path(output).resolve()
    _check_ours(output)
    there = {} if overwrite else _digests(output)
    with _plain_errors(output), _progress_on_terminals_only(), workplace(output.parent) as work:
        folder = work / "dataset"
        reports = {}
        for config in [*there, *(config for config in configs if config not in there)]:
            builder = CodeSyntax(
                cache_dir=str(work / "cache"),
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
        origins = {
            config: card.Origin(
                form=(reader := sources.reader(source, config)).FORM,
                labels=reader.LABELS,
                splitting=sources.splitting(source, config, validation_fraction),
            )
            for config in reports
        }
        text = card.render(reports, origins, sources.shown(source), exclusion)
        for name, content in {metadata.CARD: text, **metadata.render(folder, reports)}.items():
            (folder / name).write_text(content, encoding="utf-8", newline="\n")
        (folder / metadata.SUMS).write_text(metadata.sha256sums(folder), encoding="utf-8", newline="\n")
        _check_ours(output)
        if not overwrite and _digests(output) != there:
            raise DatasetError(f"{output} was changed by another build in the meantime: run this one again")
        _replace(output, folder, work / "replaced")
    return BuildReport(output, reports)


def _with_edits(configs: Sequence[str], edits: Sequence[str]) -> list[str]:
    """These configs, and after each those of these edits."""
    chosen: dict[str, None] = {}
    for config in configs:
        record = language_of(config)
        chosen[config] = None
        for edit in edits:
            if edit not in EDITS:
                raise UnknownName("edit", edit, EDITS)
            of_edit = {variant.edit: name for name, variant in record.configs.items() if config == record.name}
            if edit not in of_edit:
                editable = [name for name, language in LANGUAGES.items() if language.editing]
                raise ArgumentError(f"{config} has no edits: only {', '.join(editable)} have")
            chosen[of_edit[edit]] = None
    return list(chosen)


def _write(builder: CodeSyntax, folder: Path) -> ConfigReport:
    """Write a prepared config to `{split}.parquet` in `folder`, and measure these files."""
    folder.mkdir(parents=True)
    for split, dataset in builder.as_dataset().items():
        whole = dataset.data.table.combine_chunks()  # otherwise pages would depend on the number of processes
        file = folder / f"{split}.parquet"
        pq.write_table(whole.cast(FEATURES.arrow_schema), file, compression="zstd", row_group_size=ROW_GROUP)
    report, tables = measure(folder, builder.skips)
    if sources.reader(builder.config.source, builder.config.name).LABELS is None:
        _count_unparsed(tables, variant_of(builder.config.name), builder.skips)
    return report


def _digests(output: Path) -> dict[str, str]:
    """Config -> digest of its functions, for the dataset at `output`; empty if there is none."""
    digests = {}
    for config in CONFIGS:
        if (output / config).is_dir():
            try:
                digests[config] = digest(read_tables(output / config).values(), ORIGIN)
            except (pa.ArrowException, KeyError) as error:
                raise DatasetError(
                    f"{output} has a config {config} that cannot be read ({error}), so nothing can be added: choose "
                    "another output, or overwrite this one"
                ) from error
    return digests


def _other_source(output: Path, config: str, source: str, reason: str) -> DatasetError:
    """The error for adding to a dataset from another source."""
    origin = card.origin((output / metadata.CARD).read_text(encoding="utf-8", errors="replace"))
    return DatasetError(
        f"{output} holds {config} from {origin or 'an unknown source'}, and {source} does not give the same functions "
        f"({reason}): all configs of a dataset must come from one unchanged source, with the same settings. Choose "
        "another output, or replace the dataset with --overwrite (overwrite=True)"
    )


def _count_unparsed(tables: dict[str, pa.Table], variant: Variant, skips: Skips) -> None:
    """Add the reasons why functions have no relations; counted here because annotating processes return only rows."""
    for split, table in tables.items():
        bare = table.filter(pc.equal(pc.list_value_length(table["relations"]), 0))
        for row in bare.select(["id", *ORIGIN]).to_pylist():
            function = SourceFunction(**row, partition=split)
            _, _, reason = corpus.label(function, variant)
            if reason:
                skips.add(reason, function.id)


def _exclusion(file: str | os.PathLike[str] | None) -> card.Exclusion | None:
    if file is None:
        return None
    names = corpus.read_repositories(file)
    return card.Exclusion(len(names), hashlib.sha256(foreign.read(file, corpus.LARGEST_LIST)).hexdigest())


def _check_ours(output: Path) -> None:
    """Raise DatasetError unless `output` does not exist, or holds a dataset that `build` wrote and nothing else."""
    if not output.exists():
        return
    if not output.is_dir():
        raise DatasetError(f"{output} is a file, expected a folder or a new path: choose another output")
    paths = [path for path in output.rglob("*") if path.is_symlink() or not path.is_dir()]
    files = {path.relative_to(output).as_posix() for path in paths}
    if not files:
        return
    readme = output / metadata.CARD
    if not readme.is_file() or card.MARKER not in readme.read_text(encoding="utf-8", errors="replace"):
        raise DatasetError(
            f"{output} is not empty and was not made by `codesyntax build`: choose another output or remove it"
        )
    if foreign := files - metadata.files():
        raise DatasetError(
            f"{output} would be replaced, but {min(foreign)} in it was not made by `codesyntax build`: move it away"
        )


def _replace(output: Path, folder: Path, replaced: Path) -> None:
    """Move `folder` to `output`, and the previous content of `output` to `replaced`."""
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
    """Unwrap our own errors and interrupts, and turn OS errors into DatasetError."""
    full = os.strerror(errno.ENOSPC)
    try:
        yield
    except Exception as error:
        reasons = list(_chain(error))
        for reason in reasons:
            if isinstance(reason, (CodeSyntaxError, KeyboardInterrupt)):
                raise reason from reason.__cause__
        if isinstance(error, (DatasetGenerationError, OSError)):
            if any(full in str(reason) for reason in reasons):  # another process returns only the text of an error
                raise DatasetError(f"cannot write {output}: {full}") from error
            for reason in reasons:
                if isinstance(reason, OSError):
                    raise DatasetError(f"cannot write {output}: {reason}") from error
        raise


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and its chain of causes."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


@contextmanager
def _progress_on_terminals_only() -> Iterator[None]:
    verbosity = datasets.logging.get_verbosity()
    disabled = datasets.are_progress_bars_disabled()
    datasets.logging.set_verbosity_error()  # otherwise it warns that a small split needs no second process
    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    try:
        yield
    finally:
        datasets.logging.set_verbosity(verbosity)
        if not disabled:
            datasets.enable_progress_bars()
