"""Commands for models: whether one can be probed, and CuBERT."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from probing.cli import options
from probing.cli.group import main, quiet_libraries
from probing.models.cubert import LANGUAGES


@main.command()
@options.shared("model gguf revision dtype device as_json")
def doctor(model: str, gguf: str | None, as_json: bool, **arguments: Any) -> None:
    """Check whether and how MODEL can be probed.

    The exit status is 1 if it cannot.
    """
    quiet_libraries()
    from probing.models.load import doctor as run

    diagnosis = run(options.with_gguf(model, gguf), **arguments)
    click.echo(diagnosis.to_json() if as_json else diagnosis.text(), nl=not as_json)
    if diagnosis.path == "refused":
        sys.exit(1)


@main.command()
@click.argument("checkpoint", type=options.ANY_PATH)
@click.option(
    "--output", required=True, type=options.FOLDER_PATH, help="The new folder for the model."
)
@click.option(
    "--vocabulary",
    required=True,
    type=options.FILE_PATH,
    help="The vocabulary file of the same release.",
)
@click.option(
    "--language",
    required=True,
    type=click.Choice(LANGUAGES),
    help="The language that the model reads.",
)
def convert_cubert(checkpoint: Path, output: Path, vocabulary: Path, language: str) -> None:
    """Convert CuBERT to a model that every command takes.

    CHECKPOINT is a CuBERT release in the format of TensorFlow 1: the prefix of its files
    (model.ckpt-602440). The command does not need TensorFlow. It checks every variable by name and
    shape.
    """
    quiet_libraries()
    from probing.models.cubert.convert import convert

    click.echo(convert(checkpoint, output, vocabulary=vocabulary, language=language))
