"""The command for what stays on disk between runs."""

from __future__ import annotations

from pathlib import Path

import click

from probing.cli import options
from probing.cli.group import main, note, quiet_hub


@main.command()
@click.argument("folders", metavar="[FOLDER]...", nargs=-1, type=options.FOLDER)
@click.option("--prune", "pruning", is_flag=True, help="Remove everything listed that is not in use.")
def cache(folders: tuple[Path, ...], pruning: bool) -> None:
    """List what stays on disk between runs, in bytes.

    The list has the cache of runs, self-checks and statistics, and the files that killed processes left in each FOLDER.
    `interrupted` is a run that continues when you repeat its command; `unfinished` is a file or folder that was never
    completed. You can remove all of it at any time; an interrupted run then starts over.
    """
    quiet_hub()
    from codesyntax_dataset.safe_files import printable
    from probing.runs.disk_use import items, prune

    found = list(items(folders))
    for path, kind, size, in_use in found:
        click.echo(f"{size:>15,}  {kind:11}  {printable(str(path), most=10_000)}{' (in use)' if in_use else ''}")
    click.echo(f"{sum(one.size for one in found):>15,}  bytes in all")
    if pruning:
        removed = prune(found)
        note(f"removed {len(removed):,}, {sum(one.size for one in removed):,} bytes")
