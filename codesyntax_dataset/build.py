"""Build a dataset folder from a source of functions; `load_dataset` reads it, and it can be
uploaded unchanged."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tqdm.auto import tqdm

from codesyntax_dataset import card, corpus, metadata, safe_files, shards, sources
from codesyntax_dataset.arguments import Positive, checked
from codesyntax_dataset.atomic import replace, temporary_folder
from codesyntax_dataset.errors import ArgumentError, DatasetError, SourceError, UnknownName
from codesyntax_dataset.features import features_of
from codesyntax_dataset.languages import CONFIGS, LANGUAGES, language_of, unedited
from codesyntax_dataset.measure import ROW_GROUP, BuildReport, ConfigReport, digest, measure
from codesyntax_dataset.owned_folder import check_owned
from codesyntax_dataset.protocol import CARD, EDITS, MARKER, SUMS
from codesyntax_dataset.schema import Skips, SourceFunction

_LARGEST_ROW_GROUP = 1 << 28  # bytes in memory; a thousand functions have a few millions


@checked
def build(
    source: str,
    configs: Sequence[str],
    output: str | os.PathLike[str],
    *,
    edits: Sequence[str] = (),
    exclude_repositories: str | os.PathLike[str] | None = None,
    validation_fraction: float | int | None = None,
    column: str | None = None,
    overwrite: bool = False,
    engine: str = "local",
    num_proc: Positive | None = None,
) -> BuildReport:
    """Annotate the functions of `source` and write the dataset folder `output`, or add `configs` to
    an existing one.

    `source` is anything that `codesyntax_dataset.sources` reads, `configs` are names in `CONFIGS`,
    `edits` are names in `EDITS`, each of which adds a further config to those that are named like a
    language, such as `python_layout`, `exclude_repositories` is a file that lists repositories to
    exclude, `validation_fraction` and `column` are as in `codesyntax_dataset.sources`, `engine` is
    what runs the annotating processes, one of `ENGINES`, and `num_proc` is their number. The same
    input gives the same rows and versions (and, with the same version of pyarrow, the same bytes),
    regardless of engine, processes or builds. The folder holds `{config}/{split}.parquet`,
    `README.md` (the card) and the files of `codesyntax_dataset.metadata`. It is written as a whole
    or not at all.

    An existing dataset must come from the same source with the same settings: its configs are
    rebuilt, too, and must give the same functions. With `overwrite`, an existing dataset is
    replaced by one of these `configs`.

    Raises UnknownName for an unknown config, SourceError for a source that cannot be read, and
    DatasetError if `output` is not a dataset, is one from another source, or cannot be written (for
    example on a full disk).
    """
    configs = _with_edits(configs, edits)
    if not configs:
        raise DatasetError(f"no config to build: expected some of {', '.join(unedited())}")
    for config in configs:
        sources.reader(source, config, column)
    excluded, exclusion = _exclusion(exclude_repositories)
    output = Path(output).resolve()
    _check_ours(output)
    there = {} if overwrite else _digests(output)
    with (
        _plain_errors(output),
        temporary_folder(output.parent) as work,
        shards.engine(engine, num_proc) as label,
    ):
        folder = work / "dataset"
        reports, origins = {}, {}
        for config in [*there, *(config for config in configs if config not in there)]:
            skips = Skips()
            functions = corpus.read(source, config, skips, excluded, validation_fraction, column)
            try:
                origins[config] = sources.origin(source, config, validation_fraction, column)
                reports[config] = _write(functions, config, folder / config, label, skips)
            except SourceError as error:
                if config in configs:
                    raise
                raise _other_source(output, config, source, str(error)) from error
            if config in there and reports[config].digest != there[config]:
                raise _other_source(
                    output, config, source, "its functions or how they are split differ"
                )
        reports = {config: reports[config] for config in CONFIGS if config in reports}
        origins = {config: origins[config] for config in reports}
        text = card.render(reports, origins, sources.shown(source), exclusion)
        for name, content in {
            CARD: text,
            metadata.EVAL: metadata.eval_yaml(reports),
        }.items():
            if content:
                (folder / name).write_text(content, encoding="utf-8", newline="\n")
        (folder / SUMS).write_text(metadata.sha256sums(folder), encoding="utf-8", newline="\n")
        _check_ours(output)
        if not overwrite and _digests(output) != there:
            raise DatasetError(
                f"another build changed {output} in the meantime: run this build again"
            )
        replace(folder, output)
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
            of_edit = {
                variant.edit: name
                for name, variant in record.configs.items()
                if config == record.name
            }
            if edit not in of_edit:
                editable = [name for name, language in LANGUAGES.items() if language.editing]
                raise ArgumentError(f"{config} has no edits: only {', '.join(editable)} have")
            chosen[of_edit[edit]] = None
    return list(chosen)


def _write(
    functions: Iterator[SourceFunction],
    config: str,
    folder: Path,
    label: shards.Engine,
    skips: Skips,
) -> ConfigReport:
    """Label functions, write them to `{split}.parquet` in `folder` as they come, and measure these
    files.

    `skips` is what is counted while `functions` are read; the reasons why some have no labels are
    added in the end.
    """
    folder.mkdir(parents=True)
    without_labels = Skips()
    quiet = True if os.environ.get("TQDM_DISABLE") else None  # None: where there is no terminal
    with tqdm(desc=config, unit=f" {language_of(config).units}", disable=quiet) as progress:

        def rows(labelled: Iterable[shards.Labelled]) -> Iterator[pa.RecordBatch]:
            for batch, reasons in labelled:
                yield batch
                progress.update(batch.num_rows)
                for reason, name in reasons:
                    without_labels.add(reason, name)

        for split, of_split in groupby(functions, attrgetter("partition")):
            with (
                (folder / f"{split}.parquet").open("xb") as file,
                pq.ParquetWriter(
                    file, features_of(config).arrow_schema, compression="zstd"
                ) as writer,
            ):
                for row_group in _row_groups(rows(label(of_split, config))):
                    writer.write_table(row_group)
    skips.extend(without_labels)
    return measure(folder, skips)


def _row_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows of batches, in tables of `ROW_GROUP` rows, fewer if they are long, and one of the
    rest.

    Each is in one piece: otherwise pages would depend on the batches.
    """
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if (
            sum(batch.num_rows for batch in waiting) >= ROW_GROUP
            or sum(batch.nbytes for batch in waiting) >= _LARGEST_ROW_GROUP
        ):
            table = pa.Table.from_batches(waiting)
            yield table.slice(0, ROW_GROUP).combine_chunks()
            waiting = table.slice(ROW_GROUP).to_batches()
    if waiting:
        yield pa.Table.from_batches(waiting).combine_chunks()


def _digests(output: Path) -> dict[str, str]:
    """Config -> digest of its functions, for the dataset at `output`; empty if there is none."""
    digests = {}
    for config in CONFIGS:
        if (output / config).is_dir():
            try:
                digests[config] = digest(output / config)
            except (pa.ArrowException, KeyError) as error:
                raise DatasetError(
                    f"{output} has a config {config} that cannot be read ({error}), so nothing can be added: choose "
                    "another output, or overwrite this one"
                ) from error
    return digests


def _other_source(output: Path, config: str, source: str, reason: str) -> DatasetError:
    """The error for adding to a dataset from another source."""
    origin = card.origin((output / CARD).read_text(encoding="utf-8", errors="replace"))
    return DatasetError(
        f"{output} holds {config} from {origin or 'an unknown source'}, and {source} does not give the same functions "
        f"({reason}): all configs of a dataset must come from one unchanged source, with the same settings. Choose "
        "another output, or replace the dataset with --overwrite (overwrite=True)"
    )


def _exclusion(
    file: str | os.PathLike[str] | None,
) -> tuple[Collection[str], card.Exclusion | None]:
    """The repositories that a file lists, and what the card says about it."""
    if file is None:
        return (), None
    names = corpus.read_repositories(file)
    return names, card.Exclusion(
        len(names), hashlib.sha256(safe_files.read(file, corpus.LARGEST_LIST)).hexdigest()
    )


def _check_ours(output: Path) -> None:
    """Raise DatasetError unless `output` does not exist, or holds a dataset that `build` wrote and
    nothing else."""
    mark = CARD, MARKER
    check_owned(output, "build", mark, ours=metadata.files().__contains__, error=DatasetError)


@contextmanager
def _plain_errors(output: Path) -> Iterator[None]:
    """Turn OS errors into DatasetError."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(errno.ENOSPC) if error.errno == errno.ENOSPC else error
        raise DatasetError(f"cannot write {output}: {reason}") from error
