"""The command for usable information: what attention adds to words and positions."""

from __future__ import annotations

from typing import Any

import click

from codesyntax_dataset.protocol import CONTROLS
from probing.cli import options
from probing.cli.attention import note_shard, print_saved, session_of
from probing.cli.group import main


@main.command()
@click.argument("model")
@options.gguf
@options.data
@options.configs
@options.splits
@click.option(
    "--edges", default=2000, type=click.IntRange(min=1), help="Draw at most this many edges of each relation and split."
)
@click.option("--output", type=options.FOLDER, help="Folder for the result and its ledger.")
@options.revision
@options.dtype
@options.device
@options.limit
@options.sample
@options.shard
@options.max_length
@options.weights
@options.pool
@click.option("--states", is_flag=True, help="Measure hidden states of a layer instead of the attention of all heads.")
@click.option("--control", type=click.Choice(CONTROLS), help="Measure a control instead of the model itself.")
@click.option("--seed", default=0, type=click.IntRange(min=0), help="Random seed of the control and of --sample.")
@options.wide
@options.as_json
def inform(
    model: str,
    gguf: str | None,
    configs: tuple[str, ...],
    splits: tuple[str, ...],
    wide: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Measure what all heads add to words and positions.

    MODEL is a Hub id, a local folder, a GGUF file, or an embedded model. Three choices compete for the dependent among
    all tokens of a function: by words and positions, by the attention of all heads, and by both. Each is fitted on the
    split validation; the result says how many bits attention adds. Under `accelerate launch` or `torchrun`, the
    processes share the work.
    """
    chosen = options.every(configs, splits, as_json, given["shard"])
    session = session_of(options.with_gguf(model, gguf), given)
    from probing import inform as run

    for config, split in chosen:
        result = run(session, config=config, split=split, **given)
        print_saved(result, given["output"], wide, as_json)
    note_shard(given["shard"], given["output"])
