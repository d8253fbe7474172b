"""Commands for the dataset: build, count, compare labels, and begin a further language."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from codesyntax_dataset.languages import unedited
from codesyntax_dataset.protocol import EDITS, ENGINES
from probing.cli import options
from probing.cli.group import main, note


@main.command()
@click.option("--source", required=True, metavar="SOURCE", help="Where the functions come from; see below.")
@click.option(
    "--config", "configs", required=True, multiple=True, metavar="CONFIG", help=f"One of {', '.join(unedited())}."
)
@click.option(
    "--edit",
    "edits",
    multiple=True,
    metavar="EDIT",
    help="For each config of a language, add one of its functions edited so that their labels stay: "
    f"one of {', '.join(EDITS)}.",
)
@click.option("--output", default="codesyntax", type=options.PATH, help="The folder to write.")
@options.exclude_repositories
@click.option(
    "--validation-fraction",
    type=click.FloatRange(0, 1, max_open=True),
    help="Share of validation among the source files of a folder or column (or among their repositories, if there are "
    "several), unless the source has its own.  [default: 0.2]",
)
@click.option(
    "--column", help="The column of whole source files, if SOURCE is a corpus in Parquet files, such as content."
)
@click.option(
    "--overwrite", is_flag=True, help="Replace an existing dataset from another source, with all its configs."
)
@click.option(
    "--engine",
    default="local",
    type=click.Choice(ENGINES),
    help="What runs the processes that annotate: this computer, or Ray, on the cluster at RAY_ADDRESS or else here.",
)
@click.option(
    "--num-proc",
    type=click.IntRange(min=1),
    help="Number of processes that annotate; a cluster has its own.  [default: 1, of Ray the number of CPUs]",
)
def build(source: str, configs: tuple[str, ...], output: Path, **given: Any) -> None:
    """Build the dataset: a folder that load_dataset() reads and that can be uploaded unchanged.

    SOURCE is a dataset on the Hub (code-search-net/code_search_net, optionally with @revision), a folder or zip of
    CodeSearchNet v2, the dataset as its authors published it (CodeSyntax_python.json or its zip), any folder of source
    files, a treebank (a file or a folder in CoNLL-U, for the configs english, german and ud), or `sample`, the
    functions and sentences included in this package. With --column, it is a Parquet file, a folder of them, or such a
    dataset on the Hub, of which a folder may be named, too (owner/name/data/python).

    If the output is a dataset from the same source, the configs are added to it; a dataset from another source is not
    changed without --overwrite.
    """
    from codesyntax_dataset.build import build as build_dataset

    report = build_dataset(source, list(configs), output, **given)
    note(report.text())
    click.echo(output)


@main.command()
@options.data
@click.option("--config", "configs", multiple=True, default=["python"], help=f"Some of {', '.join(unedited())}.")
@click.option("--split", "splits", multiple=True, default=["test"], help="Splits to count together.")
@click.option("--output", type=options.FOLDER, help="Folder for JSON, CSV and the figure.")
@options.wide
@options.as_json
def stats(
    data: str, configs: tuple[str, ...], splits: tuple[str, ...], output: Path | None, wide: bool, as_json: bool
) -> None:
    """Count edges by relation, their offsets, and the lengths of functions, beside the paper's counts."""
    import datasets

    from probing.report import statistics
    from probing.report.terminal import print_parts

    datasets.disable_progress_bars()
    collected = statistics.collect(data, list(dict.fromkeys(configs)), sorted(set(splits)))
    if as_json:
        click.echo(collected.to_json(), nl=False)
    else:
        print_parts(statistics.parts(collected), wide)
    if output:
        statistics.save(collected, output)
        note(f"wrote {output}")


@main.command()
@click.option(
    "--config", "configs", multiple=True, required=True, help=f"Two of one language, of {', '.join(unedited())}."
)
@click.option("--source", help="Where the functions come from, as in `build`.  [default: sample]")
@click.option("--data", help="A folder that `codesyntax build` wrote, or a dataset id on the Hub, instead of --source.")
@options.wide
@options.as_json
def compare_labels(configs: tuple[str, ...], wide: bool, as_json: bool, **given: Any) -> None:
    """Count the edges that two configs of a language label alike, elsewhere, or alone, and say by which rules.

    Both label the same functions: all of a source, or those of a dataset's split test.
    """
    from probing.report.labels_compared import compare_labels, parts
    from probing.report.terminal import console, print_parts

    comparison = compare_labels(list(dict.fromkeys(configs)), **given)
    if as_json:
        click.echo(comparison.to_json(), nl=False)
    else:
        print_parts(parts(comparison, console(wide).width), wide)


@main.command("new-language")
@click.argument("name")
@click.option("--grammar", required=True, metavar="PACKAGE", help="Its tree-sitter grammar, such as tree_sitter_rust.")
@click.option("--suffix", required=True, help="What its file names end in, such as .rs.")
@click.option("--title", help="Its name in texts.  [default: NAME with a capital letter]")
@click.option("--checkout", default=".", type=options.FOLDER, help="The root of a checkout of the repository.")
def new_language(name: str, **given: Any) -> None:
    """Write the skeleton of a language into a checkout: a module with an empty table, and a golden pair that fails.

    The golden pair says what is next; CONTRIBUTING.md, "Add a language", has all steps.
    """
    from codesyntax_dataset.languages import skeleton

    for path in skeleton.new_language(name, **given):
        click.echo(path)
