"""Commands for the dataset: build, count, compare labels, and begin a further language."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from codesyntax_dataset.languages import unedited
from codesyntax_dataset.protocol import EDITS, ENGINES
from probing.cli import options
from probing.cli.group import main, note, print_made, quiet_libraries


@main.command()
@click.option(
    "--source", required=True, metavar="SOURCE", help="Where the functions come from; see below."
)
@click.option(
    "--config",
    "configs",
    required=True,
    multiple=True,
    metavar="CONFIG",
    help=f"One of {', '.join(unedited())}; or minimal pairs of a language of code, such as python_pairs.",
)
@click.option(
    "--edit",
    "edits",
    multiple=True,
    metavar="EDIT",
    help=f"For each config, also add a config of edited functions that keep their labels: one of {', '.join(EDITS)}.",
)
@click.option("--output", default="codesyntax", type=options.ANY_PATH, help="The folder to write.")
@options.exclude_repositories
@click.option(
    "--validation-fraction",
    type=click.FloatRange(0, 1, max_open=True),
    help="The share of source files, or of repositories if there are several, that become the validation split. Used "
    "only if the source has none.  [default: 0.2]",
)
@click.option(
    "--column",
    help="The column that holds whole source files, such as content, if SOURCE is a corpus in Parquet files.",
)
@click.option(
    "--overwrite", is_flag=True, help="Replace a dataset that was built from another source."
)
@click.option(
    "--engine",
    default="local",
    type=click.Choice(ENGINES),
    help="Label functions on this computer, or with Ray: on the cluster at RAY_ADDRESS, otherwise here.",
)
@click.option(
    "--num-proc",
    type=options.POSITIVE,
    help="The number of processes; a cluster sets its own.  [default: 1; with Ray, the number of CPUs]",
)
def build(source: str, configs: tuple[str, ...], output: Path, **arguments: Any) -> None:
    """Build a dataset from functions or sentences.

    load_dataset() reads the folder, and you can upload it unchanged.

    \b
    SOURCE is one of these:
      sample                functions and sentences in this package
      path/to/code          any folder of source files
      OWNER/NAME            a dataset on the Hub, such as
                            code-search-net/code_search_net; @REVISION may follow
      a folder or zip       CodeSearchNet v2
      CodeSyntax_*.json     the dataset that its authors published, or its zip
      a treebank            a file or folder in CoNLL-U: english, german and ud
      a corpus, --column    a Parquet file, a folder of them, or a dataset on the
                            Hub or a folder of it (OWNER/NAME/data/python)

    If --output is a dataset from the same source, the command adds the configs to it. It replaces a
    dataset from another source only with --overwrite.
    """
    from codesyntax_dataset.build import build as build_dataset

    report = build_dataset(source, list(configs), output, **arguments)
    note(report.text())
    click.echo(output)


@main.command()
@options.shared("data configs")
@click.option(
    "--split",
    "splits",
    multiple=True,
    default=["test"],
    help="Repeat it to count both splits together.",
)
@options.shared("wide as_json")
def stats(
    data: str,
    configs: tuple[str, ...],
    splits: tuple[str, ...],
    wide: bool,
    as_json: bool,
) -> None:
    """Count what a dataset contains.

    The command counts the edges of each relation, their offsets, and the lengths of functions. The
    paper's counts stand beside them.
    """
    quiet_libraries()
    from probing.report.dataset import collect, statistics_parts

    collected = collect(data, list(dict.fromkeys(configs)), sorted(set(splits)))
    print_made(collected, statistics_parts, wide, as_json)


@main.command()
@click.option(
    "--config",
    "configs",
    multiple=True,
    required=True,
    help=f"Give two of one language, of {', '.join(unedited())}.",
)
@click.option("--source", help="Where the functions come from, as in `build`.  [default: sample]")
@click.option(
    "--data",
    help="A folder that `codesyntax build` wrote, or a dataset id on the Hub, instead of --source.",
)
@options.shared("wide as_json")
def compare_labels(configs: tuple[str, ...], wide: bool, as_json: bool, **arguments: Any) -> None:
    """Compare the labels of two configs.

    The command counts the edges that both configs have of the same functions, that moved, and that
    only one has, with examples. The functions are all of --source, or the split test of --data.
    """
    from probing.report.dataset import compare_labels, comparison_parts

    comparison = compare_labels(list(dict.fromkeys(configs)), **arguments)
    print_made(comparison, comparison_parts, wide, as_json)


@main.command("new-language")
@click.argument("name")
@click.option(
    "--grammar",
    required=True,
    metavar="PACKAGE",
    help="The tree-sitter grammar, such as tree_sitter_rust.",
)
@click.option("--suffix", required=True, help="The ending of file names, such as .rs.")
@click.option(
    "--title", help="The language's name in texts.  [default: NAME with a capital letter]"
)
@click.option(
    "--checkout",
    default=".",
    type=options.FOLDER_PATH,
    help="The root of a checkout of the repository.",
)
def new_language(name: str, **arguments: Any) -> None:
    """Start a new language in a checkout.

    The command writes a module with an empty table, and a golden pair that fails and names the next
    step. CONTRIBUTING.md, "Add a language", lists all steps.
    """
    from codesyntax_dataset.languages import skeleton

    for path in skeleton.new_language(name, **arguments):
        click.echo(path)
