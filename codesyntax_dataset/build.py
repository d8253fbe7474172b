"""From a source of functions to a dataset folder that `load_dataset` reads and that can be uploaded as it is."""

from __future__ import annotations

import errno
import hashlib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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
from codesyntax_dataset.schema import CONFIGS, LABELS, Skips, SourceFunction
from codesyntax_dataset.sources import published
from codesyntax_dataset.statistics import edges_by_relation

ROW_GROUP = 1000  # rows; a few megabytes, what a reader that streams fetches at a time

ORIGIN = ["code", "repo", "path", "func_name", "url", "language"]
"""The columns that come from the source."""


@dataclass(frozen=True)
class ConfigReport:
    """What one config of a built dataset holds; the counts are those of its Parquet files."""

    info: datasets.DatasetInfo
    edges: dict[str, dict[str, int]]  # relation -> split -> edges
    digest: str  # SHA-256 of the functions, without their labels
    skips: Skips

    @property
    def version(self) -> str:
        return str(self.info.version)

    @property
    def functions(self) -> dict[str, int]:
        """Split -> functions."""
        return {name: split.num_examples for name, split in self.info.splits.items()}

    def edges_of(self, split: str) -> int:
        return sum(counts.get(split, 0) for counts in self.edges.values())

    def lacks(self) -> list[str]:
        """The splits that there are not, in words, and what cannot be done without."""
        needs = {
            "validation": "held-out scores need one, for attention heads are chosen there",
            "test": "scores are taken there",
        }
        return [f"no {split} split: {need}" for split, need in needs.items() if split not in self.functions]


@dataclass(frozen=True)
class BuildReport:
    """What was built: the folder and its configs by name."""

    output: Path
    configs: dict[str, ConfigReport]

    def text(self) -> str:
        lines = []
        for name, config in self.configs.items():
            splits = (
                f"{split} {functions:,} functions, {config.edges_of(split):,} edges"
                for split, functions in config.functions.items()
            )
            lines.append(f"{name} {config.version}: {'; '.join(splits)}")
            lines += [f"  warning: {lack}" for lack in config.lacks()]
            for reason, count in config.skips.counts.items():
                lines.append(f"  {reason}: {count:,} (first: {', '.join(config.skips.names[reason])})")
        return "\n".join(lines)


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


def measure(folder: Path, skips: Skips) -> tuple[ConfigReport, dict[str, pa.Table]]:
    """What the Parquet files in the folder of a config hold, and their tables by split."""
    tables = _tables(folder)
    info = datasets.DatasetInfo(
        features=FEATURES,
        version=f"{LABELS}.{int(_digest(tables.values(), FEATURES)[:8], 16)}",
        splits=datasets.SplitDict(
            {split: datasets.SplitInfo(split, table.nbytes, table.num_rows) for split, table in tables.items()}
        ),
        download_size=sum(file.stat().st_size for file in folder.iterdir()),
        dataset_size=sum(table.nbytes for table in tables.values()),
    )
    return ConfigReport(info, _edges(tables), _digest(tables.values(), ORIGIN), skips), tables


def _tables(folder: Path) -> dict[str, pa.Table]:
    """Split -> rows of a config."""
    return {file.stem: pq.read_table(file) for file in sorted(folder.iterdir())}  # "test" < "validation", as ids run


def _digests(output: Path) -> dict[str, str]:
    """Config -> digest of its functions, for the dataset at `output`; empty where there is none."""
    digests = {}
    for config in CONFIGS:
        if (output / config).is_dir():
            try:
                digests[config] = _digest(_tables(output / config).values(), ORIGIN)
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


def _edges(tables: dict[str, pa.Table]) -> dict[str, dict[str, int]]:
    """Relation -> split -> edges."""
    edges: dict[str, dict[str, int]] = {}
    for split, table in tables.items():
        for relation, count in edges_by_relation(table).items():
            edges.setdefault(relation, {})[split] = count
    return edges


def _digest(tables: Iterable[pa.Table], columns: Iterable[str]) -> str:
    """SHA-256 over the values of `columns`, whatever the file format, the chunks or the version of Arrow."""
    digest = hashlib.sha256()

    def update(array: pa.Array) -> None:
        if pa.types.is_list(array.type):
            digest.update(pc.list_value_length(array).to_numpy(zero_copy_only=False).astype("<i8").tobytes())
            update(array.flatten())
        elif pa.types.is_struct(array.type):
            for field in array.flatten():
                update(field)
        elif pa.types.is_string(array.type):
            digest.update(pc.binary_length(array).to_numpy(zero_copy_only=False).astype("<i8").tobytes())
            digest.update("".join(array.to_pylist()).encode())
        else:
            digest.update(array.to_numpy(zero_copy_only=False).astype("<i8").tobytes())

    for table in tables:
        digest.update(f"{table.num_rows} rows".encode())
        for start in range(0, table.num_rows, ROW_GROUP):
            rows = table.slice(start, ROW_GROUP)
            for column in columns:
                update(pa.concat_arrays(rows[column].chunks))
    return digest.hexdigest()


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
    if foreign := found - metadata.FILES:
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
                raise reason
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
