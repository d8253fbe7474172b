"""Models as rows in the terminal, each printed as soon as it is known."""

from __future__ import annotations

from collections.abc import Iterable

import click

from probing.models.catalogue import Description
from probing.report.terminal import console

_ROW = "{:40} {:14} {:>6} {:>5} {:>10}  {:17}  {}"
_NARROW = "{:40} {:>6} {:>5} {:>10}  {}"


def print_models(descriptions: Iterable[Description], wide: bool = False) -> None:
    """Print a row per model; in a narrow terminal without family and direction, and with remarks below the row."""
    narrow = console(wide).width < len(_ROW.format("", *[""] * 6)) + 20
    if narrow:
        click.echo(_NARROW.format("model", "layers", "heads", "sub-tokens", "attention"))
    else:
        click.echo(_ROW.format("model", "family", "layers", "heads", "sub-tokens", "direction", "attention"))
    for one in descriptions:
        attention = f"{one.path}: {one.why}" if one.why else one.path
        if one.path == "unknown":
            click.echo(f"{one.model:40} {attention}")
            continue
        direction = "both" if len(one.directions) > 1 else "".join(one.directions) or "-"
        sizes = (one.layers or "-", one.heads or "-", one.longest or "any")
        if narrow:
            click.echo(_NARROW.format(one.model, *sizes, one.path))
            if one.why:
                click.echo(f"  {one.why}")
        else:
            click.echo(_ROW.format(one.model, one.family, *sizes, direction, attention))
    if narrow:
        click.echo("not shown at this width: family, direction (--wide)")
