"""Commands for what a score is worth: verify it, compare it with another model and with baselines;
and merge shards."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

import probing
from codesyntax_dataset.errors import LedgerError
from codesyntax_dataset.languages import unedited
from codesyntax_dataset.safe_files import printable
from probing.cli import options
from probing.cli.group import (
    main,
    note_frame,
    one_line,
    print_made,
    print_saved,
    quiet_libraries,
)


@main.command()
@options.results("RESULT...")
@options.shared("moved_model moved_data device")
@click.option(
    "--functions",
    type=options.POSITIVE,
    help="Draw so many functions of each split, and run these again.  [default: all]",
)
@click.option(
    "--seed",
    type=options.NATURAL,
    help="Of this draw: a number that the author of the result could not foresee.",
)
def verify(results: options.FilesOrFolders, **arguments: Any) -> None:
    """Run each RESULT again and compare.

    RESULT is a JSON file that `probe`, `mask`, `ablate`, `inform`, `prefer` or `surprise` wrote
    with --output, or a folder of them. For each published number, the command prints what is
    claimed and what came out. Probes on test and validation are verified together.

    \b
    The exit status is that of the worst verdict:
      0  accepted: no number is more than 0.1 points above what came out
      3  not checked: the result, its model or its dataset is missing or has changed
      1  rejected: the model and the dataset do not give this result
    """
    quiet_libraries()
    from probing.evidence.verify import REJECTED, UNCHECKED, report_lines, verify_each

    verdicts = set()
    for verification in verify_each(results, **arguments):
        if isinstance(verification, LedgerError):
            click.echo(f"?    result: {one_line(verification)}\n{UNCHECKED.upper()}")
            verdicts.add(UNCHECKED)
            continue
        for file in verification.files:
            click.echo(printable(f"{file}:"))
        click.echo("\n".join(printable(line, 10_000) for line in report_lines(verification)))
        verdicts.add(verification.verdict)
    sys.exit(1 if REJECTED in verdicts else 3 if UNCHECKED in verdicts else 0)


@main.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option(
    "--results",
    multiple=True,
    type=options.ANY_PATH,
    help="Results, or folders of results, of the models that A and B name.",
)
@options.shared("cluster wide")
def compare(
    first: str, second: str, results: options.FilesOrFolders, cluster: str, wide: bool
) -> None:
    """Compare two models on the functions that both can read.

    The command prints the paired held-out difference with its interval, overall and by relation. A
    and B are folders with the results of one model on the splits test and validation, or names of
    models in --results.
    """
    for side in (first, second):
        if not results and not Path(side).exists():
            raise click.UsageError(
                f"no file or folder {side}: to name a model, also give --results FOLDER"
            )
    quiet_libraries()
    from probing.report import results as shown
    from probing.runs.repositories import clustered_by

    with clustered_by(cluster):
        for compared in probing.compare(first, second, results, cluster):
            print_made(compared, shown.compared_parts, wide)


@main.command()
@options.data
@click.option("--config", default="python", help=f"One of {', '.join(unedited())}.")
@click.option(
    "--split",
    default="test",
    help="The split to score; held-out baselines are chosen on `validation`.",
)
@options.shared("direction csv wide")
def baseline(wide: bool, csv: Path | None, **arguments: Any) -> None:
    """Score the baselines that need no model.

    The baselines are a fixed offset, a keyword, the context, which is learned on validation and not
    in the paper, and the best of them for each relation, by the published and the held-out protocol.
    """
    quiet_libraries()
    from probing.evidence import baselines, scores
    from probing.report import results

    result = baselines.baseline(**arguments)
    print_made(result, results.baseline_parts, wide)
    if csv is not None:
        note_frame(scores.frame_of(scores.of_offsets_and_keywords(result)), csv)


@main.command()
@click.argument("folders", metavar="FOLDER...", nargs=-1, required=True, type=options.FOLDER_PATH)
@click.option(
    "--output",
    type=options.FOLDER_PATH,
    help="Folder for the results.  [default: FOLDER, if there is one]",
)
@options.wide
def merge(folders: options.FilesOrFolders, output: Path | None, wide: bool) -> None:
    """Merge the shards of a run.

    `probe`, `mask`, `ablate`, `inform`, `prefer` or `surprise` wrote the shards in FOLDER with
    --shard. The merged results equal those of one process. The command needs no model and no data.
    If shards are missing or damaged, it merges the others, then lists the problems and exits with
    status 1.
    """
    from probing.instruments.merge import merge as run

    for result in run(folders, output):
        print_saved(result, output or folders[0], wide)
