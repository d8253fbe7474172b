"""Models as rows on the terminal, each as soon as it is known."""

from __future__ import annotations

from collections.abc import Iterable

import click

from probing.models import Description

_ROW = "{:40} {:14} {:>6} {:>5} {:>10}  {:17}  {}"


def print_models(descriptions: Iterable[Description]) -> None:
    """Print a row for each model."""
    click.echo(_ROW.format("model", "family", "layers", "heads", "sub-tokens", "direction", "attention"))
    for one in descriptions:
        attention = f"{one.path}: {one.why}" if one.why else one.path
        if one.path == "unknown":
            click.echo(f"{one.model:40} {attention}")
            continue
        direction = "both" if len(one.directions) > 1 else "".join(one.directions) or "-"
        cells = (one.model, one.family, one.layers or "-", one.heads or "-", one.longest or "any", direction, attention)
        click.echo(_ROW.format(*cells))
