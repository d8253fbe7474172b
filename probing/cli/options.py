"""The options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from codesyntax_dataset.errors import DatasetError, SourceError, UnknownName
from codesyntax_dataset.languages import LANGUAGES, language_of, unedited
from codesyntax_dataset.protocol import (
    CONTROLS,
    DIRECTIONS,
    PAPER_LENGTH,
    SPLITS,
    SUMS,
)
from probing.cli.group import note

FILE_PATH = click.Path(path_type=Path, dir_okay=False)
FOLDER_PATH = click.Path(path_type=Path, file_okay=False)
ANY_PATH = click.Path(path_type=Path)
POSITIVE = click.IntRange(min=1)
NATURAL = click.IntRange(min=0)

FilesOrFolders = tuple[Path, ...]
"""In the order of the command line."""

model = click.argument("model")
data = click.option(
    "--data",
    default="codesyntax",
    help="A folder that `codesyntax build` wrote, a dataset id on the Hub, or, to measure, a folder of code.",
)
device = click.option(
    "--device", help="The device, such as cpu or cuda:1.  [default: a CUDA GPU if available]"
)
dtype = click.option(
    "--dtype",
    default="float32",
    type=click.Choice(["float32", "bfloat16", "float16"]),
    help="Precision of the model.",
)
revision = click.option(
    "--revision", help="Branch, tag or commit of a model on the Hub, or a checkpoint in a folder."
)
gguf = click.option("--gguf", metavar="NAME", help="The GGUF file to read if MODEL has several.")
as_json = click.option("--json", "as_json", is_flag=True, help="Print only the result, as JSON.")
wide = click.option(
    "--wide", is_flag=True, help="Print all columns, even if the terminal is too narrow."
)
configs = click.option(
    "--config",
    "configs",
    multiple=True,
    default=["python"],
    help=f"Repeat it for several, of {', '.join(unedited())}.",
)
output = click.option("--output", type=FOLDER_PATH, help="Folder for the result and its ledger.")
seed = click.option(
    "--seed",
    default=0,
    type=NATURAL,
    help="Random seed of controls and of --sample.",
)
splits = click.option(
    "--split",
    "splits",
    multiple=True,
    default=["test"],
    help=f"Repeat it for both, of {', '.join(SPLITS)}.",
)
exclude_repositories = click.option(
    "--exclude-repositories",
    type=FILE_PATH,
    help="Leave out the repositories in this file: one name per line, or JSON lines with the field `repository`.",
)
direction = click.option(
    "--direction",
    type=click.Choice(DIRECTIONS),
    help="The direction in which heads search.  [default: head-to-dependent; dependent-to-head for decoders and "
    "sentences]",
)
limit = click.option(
    "--limit",
    type=POSITIVE,
    metavar="N",
    help="Read only the first N functions; the result is marked as partial.",
)
sample = click.option(
    "--sample",
    type=POSITIVE,
    metavar="N",
    help="Draw N functions, the same for every model and its controls; the result is marked as partial.",
)
batch_tokens = click.option(
    "--batch-tokens",
    type=POSITIVE,
    help="Sub-tokens per batch; this changes scores by rounding at most.",
)

max_length = click.option(
    "--max-length", default=PAPER_LENGTH, type=POSITIVE, help="Skip functions with more sub-tokens."
)
control = click.option(
    "--control", type=click.Choice(CONTROLS), help="Measure a control instead of the model itself."
)
moved_model = click.option(
    "--model", help="The model, if it is no longer where the result found it."
)
moved_data = click.option(
    "--data", help="The dataset, if it is no longer where the results found it."
)
csv = click.option(
    "--csv",
    type=FILE_PATH,
    help="Also write every score with its difference, interval and p to this CSV file.",
)
cluster = click.option(
    "--cluster",
    type=click.Choice(["function", "repository"]),
    help="What intervals and tests are over: functions, or the repositories that these are from.  [default: "
    "repositories, of results on functions of at least six]",
)
shard = click.option(
    "--shard",
    metavar="I/N",
    help="Run shard I of N, counted from 1, and write it to --output for `codesyntax merge`.",
)


def shared(names: str) -> Callable[[Callable], Callable]:
    """The options of these names in this module, in this order."""
    return each_of(*(globals()[name] for name in names.split()))


def each_of(*each: Callable[[Callable], Callable]) -> Callable[[Callable], Callable]:
    """Several options as one decorator, in the order in which the help lists them."""

    def decorate(command: Callable) -> Callable:
        for option in reversed(each):
            command = option(command)
        return command

    return decorate


def with_gguf(model: str, gguf: str | None) -> str:
    """The name of the GGUF file in a folder or repository, if one is given."""
    return f"{model}/{gguf}" if gguf else model


def check_names(configs: Sequence[str], splits: Sequence[str] = ()) -> None:
    """Raise at once what a run would raise after seconds of imports: for names that are none of
    their kind."""
    for config in configs:
        language_of(config)
    for split in splits:
        if split not in SPLITS:
            raise UnknownName("split", split, SPLITS)


def build_missing(arguments: dict[str, Any], configs: Sequence[str], models: Sequence[str]) -> None:
    """Build the dataset of a command that names none, or code, and check that it can be one. Of
    several processes, each would build it."""
    if arguments["shard"] is None and os.environ.get("WORLD_SIZE", "1") == "1":
        sample_if_none(arguments["data"], configs, models)
        arguments["data"] = of_code(arguments["data"], configs)
    if not Path(arguments["data"]).is_dir():
        from probing.runs.data import check_id

        check_id(arguments["data"])


def sample_if_none(data: str, configs: Sequence[str], models: Sequence[str]) -> None:
    """Build the embedded sample where commands read by default, if nothing is there and no data are
    named.

    A single model is located first, so that nothing is built for a name that is wrong.
    """
    source = click.get_current_context().get_parameter_source("data")
    if source is not ParameterSource.DEFAULT or Path(data).exists():
        return
    from codesyntax_dataset.build import build
    from probing.models.location import checkpoints, loading, locate

    if len(models) == 1:
        with loading(models[0]):
            locate(models[0], checkpoints(models[0])[0].revision)
    note(f"no --data, and no dataset in the folder {data}: building the embedded sample there")
    build("sample", list(dict.fromkeys(configs)), data)


def of_code(data: str, configs: Sequence[str]) -> str:
    """The dataset of the functions in `data`, built in the folder codesyntax-NAME, if it is a
    folder of code; else `data`.

    Raises DatasetError if that folder is of other code, such as the same before it was edited.
    """
    folder = Path(data)
    if not folder.is_dir() or (folder / SUMS).exists():
        return data
    from codesyntax_dataset import sources

    suffixes = tuple(suffix for config in configs for suffix in language_of(config).suffixes)
    files = [path.name for path in folder.rglob("*")]
    if not any(name.endswith(suffixes) for name in files):
        for name, language in LANGUAGES.items():
            if language.suffixes and any(file.endswith(language.suffixes) for file in files):
                raise DatasetError(
                    f"{data} has code in {language.title}, and none in {', '.join(configs)}: give --config {name}"
                )
        return data  # and whoever reads it says what is wrong with it
    try:
        for config in configs:
            sources.reader(data, config)
    except SourceError:
        return data
    from codesyntax_dataset.build import build

    output = f"codesyntax-{folder.resolve().name}"
    note(f"{data} has code, and is no dataset: building one of it in the folder {output}")
    try:
        build(data, list(dict.fromkeys(configs)), output)
    except DatasetError as error:
        if not Path(output).is_dir():
            raise
        raise DatasetError(
            f"{error}. Remove the folder {output}, or keep it and run `codesyntax build --source {data} "
            "--output OTHER`, then this command with --data OTHER"
        ) from error
    return output


def splits_in(data: str, configs: Sequence[str]) -> list[str]:
    """The splits to probe where none is named: both, or the only one that a local dataset has, as
    one of few files."""
    folders = [Path(data, config) for config in configs]
    there = [
        split
        for split in SPLITS
        if all((folder / f"{split}.parquet").is_file() for folder in folders if folder.is_dir())
    ]
    if len(there) == 1:
        note(
            f"{data} has the split {there[0]} alone: heads are chosen on the functions that are scored (published); "
            "build from more files for the held-out score"
        )
        return there
    return [*SPLITS]


def every(
    configs: Sequence[str], splits: Sequence[str], as_json: bool, shard: str | None
) -> list[tuple[str, str]]:
    """The runs that a command was asked for: each config with each split, once."""
    if as_json and shard is not None:
        raise click.UsageError(
            "--json prints one result, and a shard has none: leave one of the two out"
        )
    runs = [(config, split) for config in dict.fromkeys(configs) for split in dict.fromkeys(splits)]
    if as_json and len(runs) > 1:
        raise click.UsageError("--json prints one result: give one config and one split")
    return runs


def results(metavar: str) -> Callable[..., Callable]:
    """The argument of several files, which the help calls `metavar`.

    Error analyses, which stand beside results and are matched by the same glob, are left out,
    unless there is nothing else.
    """

    def but_analyses(_context: object, _parameter: object, paths: FilesOrFolders) -> FilesOrFolders:
        return tuple(path for path in paths if not path.name.endswith(".errors.json")) or paths

    return click.argument(
        "results", metavar=metavar, nargs=-1, required=True, type=ANY_PATH, callback=but_analyses
    )
