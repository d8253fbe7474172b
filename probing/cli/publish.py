"""Commands for the Hub: push, submit, and read a board."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from probing.cli import options
from probing.cli.group import main, note, quiet_hub, quiet_libraries

if TYPE_CHECKING:
    from probing.publish.push import Push


@main.group()
def push() -> None:
    """Publish the dataset or a metric on the Hugging Face Hub, in one commit each."""


def _push_command(function: Callable[..., None]) -> click.Command:
    for option in (
        click.option(
            "--repo", required=True, metavar="USER/NAME", help="The repository; created if it does not exist."
        ),
        click.option("--private", is_flag=True, help="Create it as a private repository."),
        click.option("--create-pr", is_flag=True, help="Open a pull request instead of changing the repository."),
        click.option("--dry-run", is_flag=True, help="List files and sizes without sending anything."),
    ):
        function = option(function)
    return push.command()(function)


@_push_command
@click.argument("folder", type=options.PATH)
def dataset(folder: Path, repo: str, **given: Any) -> None:
    """Check the dataset in FOLDER, which `codesyntax build` wrote, and publish it for load_dataset()."""
    from probing.publish.push import push_dataset

    _send(push_dataset(folder, repo), **given)
    if not given["dry_run"]:
        note("the Hub shows leaderboards of its tasks once it lists the dataset as a benchmark: see probing/README.md")


@_push_command
def metric(repo: str, **given: Any) -> None:
    """Publish a metric as a Space for evaluate.load(): USER/codesyntax_metric or USER/ast_similarity."""
    from probing.publish.push import push_metric

    _send(push_metric(repo), **given)


def _send(upload: Push, dry_run: bool, **given: Any) -> None:
    click.echo(upload.text(), err=not dry_run)
    if not dry_run:
        click.echo(upload.send(**given))


@main.command()
@options.results("RESULTS...")
@click.option("--model", required=True, metavar="USER/MODEL", help="The model's repository.")
@click.option("--dataset", required=True, metavar="USER/codesyntax", help="The dataset on the Hub that was read.")
@click.option("--source-url", metavar="URL", help="Address of a page with more about these results.")
@click.option("--model-index", is_flag=True, help="Also add the results to the model's card, in the older format.")
@click.option("--board", metavar="USER/REPO", help="The dataset repository that collects the entries of a board.")
@click.option(
    "--device", help="Device for running them again, such as cpu or cuda:1.  [default: a CUDA GPU if available]"
)
@click.option("--dry-run", is_flag=True, help="Print the files in full without opening a pull request.")
@click.option("--undo", "undoing", is_flag=True, help="Close the pull requests that the same command opened.")
def submit(results: tuple[Path, ...], dry_run: bool, undoing: bool, **given: Any) -> None:
    """Open a pull request with RESULTS on the model's repository.

    RESULTS are files or folders of `probe --output`, for test and validation, and of `mask --output`. Everything is
    checked first, and a part of each result is run again.
    """
    quiet_libraries()
    from probing.publish.submit import submission, undo

    if undoing:
        closed = undo(results, given["model"], given["board"])
        click.echo("\n".join(f"closed {address}" for address in closed) or "nothing is open for these results")
        return
    for request in submission(results, **given):
        click.echo(request.text() if dry_run else request.open())


@main.command()
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("--output", default="board", type=options.FOLDER, help="The folder to write.")
@click.option("--data", help="The dataset, a folder or its id on the Hub: baselines are computed from it.")
@click.option("--verify", is_flag=True, help="Run a part of each entry again, with the ledgers beside it.")
@click.option("--device", help="Device for running them again.  [default: a CUDA GPU if available]")
@click.option("--seed", type=click.IntRange(min=0), help="For a draw of your own.  [default: that of `submit`]")
@click.option(
    "--benchmark",
    metavar="USER/codesyntax",
    help="Also show the Hub's own results for this dataset, and their evidence.",
)
def board(sources: tuple[str, ...], output: Path, **given: Any) -> None:
    """Compare entries on a board: a static site, ready to upload as a Space, with a Markdown table and CSV.

    SOURCE is a folder of entries, such as report/entries, or a results repository on the Hub (user/results, optionally
    with @revision). Entries that fail a check are left out and listed with the reason. What is not verified is claimed.
    """
    quiet_hub()
    from probing.publish.board import read
    from probing.report.board import check_place, save

    check_place(output)
    entries = read(sources, **given)
    for file, reason in entries.left_out:
        note(f"left out {file}: {reason}")
    note(f"entries: {len(entries)}, tables: {len(entries.tables)}, files left out: {len(entries.left_out)}")
    click.echo(save(entries, output))


@main.command()
@options.results("RESULT...")
@click.option("--output", default="export", type=options.FOLDER, help="The folder to write into.")
@click.option("--format", type=click.Choice(["entry", "csv", "every-eval-ever"]), default="csv", help="Of the files.")
@click.option("--data", help="Location of the dataset, if not the one in the results.")
@click.option("--organization", metavar="NAME", help="Who evaluated the model; needed for every-eval-ever.")
@click.option(
    "--relationship",
    type=click.Choice(["first_party", "third_party", "collaborative", "other"]),
    default="third_party",
    help="Of the organization to the makers of the model.",
)
def export(results: tuple[Path, ...], output: Path, **given: Any) -> None:
    """Write each RESULT for other tools: a CSV file of all numbers, the entry that boards read, or the files that the
    store of Every Eval Ever takes.

    RESULTS are files or folders of `probe --output`, for test and validation, and of `mask --output`; or entries.
    """
    quiet_libraries()
    from probing.publish.export import export as write

    for path in write(results, output, **given):
        click.echo(path)
