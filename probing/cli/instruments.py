"""Commands for what is measured of a model beside its attention heads: masked syntax, minimal
pairs, surprisal, usable information, and silenced heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

import probing
from codesyntax_dataset.protocol import RANDOM_WEIGHTS
from probing.cli import options
from probing.cli.group import main, note_next, note_shard, print_saved, quiet_libraries

_node_types = click.option(
    "--node-types",
    multiple=True,
    metavar="TYPE",
    help="A node type of the language's tree-sitter grammar, such as if_statement, or all. Repeat it for several.  "
    "[default: those of the study]",
)


@main.command()
@options.shared("model gguf data configs splits")
@_node_types
@click.option(
    "--protocol",
    default="current",
    type=click.Choice(["current", "published"]),
    help="Mask the true spans of nodes, or the spans that the study masked. Results of decoders have the protocol "
    "infilling.",
)
@click.option(
    "--rate",
    default=1.0,
    type=click.FloatRange(0, 1, min_open=True),
    help="Share of the nodes to mask.",
)
@click.option(
    "--control",
    "controls",
    multiple=True,
    default=["sub-tokens"],
    type=click.Choice(["sub-tokens", "spans", RANDOM_WEIGHTS]),
    help="T0 masks as many random sub-tokens, or random spans of code as long as the nodes. random-weights, beside one "
    "of these, runs a randomly initialised copy of MODEL.",
)
@click.option(
    "--draws",
    type=options.POSITIVE,
    help="The number of random controls of each masked copy.  [default: 20; 2 for a decoder, which takes longer]",
)
@options.shared(
    "seed output revision device batch_tokens limit sample shard max_length wide as_json"
)
def mask(controls: tuple[str, ...], **arguments: Any) -> None:
    """Mask syntax, let MODEL restore it, compare trees.

    MODEL is a masked language model, or a decoder with fill-in-the-middle tokens, which fills each
    run of masked sub-tokens on its own: a Hub id, a local folder, or an embedded one, tiny-code-mlm
    or tiny-code-lm. For each node type, the command compares copies whose nodes are masked (T1)
    with copies in which as many random sub-tokens are masked (T0), as SyntaxEval did. Under
    `accelerate launch` or `torchrun`, the processes share the work.
    """
    masked = [control for control in controls if control != RANDOM_WEIGHTS] or ["sub-tokens"]
    if len(set(masked)) > 1:
        raise click.UsageError(f"T0 masks {' and '.join(masked)}: give one of these two")
    _run_instrument(
        "mask", control=masked[0], random_weights=RANDOM_WEIGHTS in controls, **arguments
    )


_scoring = options.each_of(
    options.shared(
        "gguf data splits output revision dtype device batch_tokens limit sample shard max_length"
    ),
    click.option(
        "--control",
        type=click.Choice([RANDOM_WEIGHTS]),
        help="Run a randomly initialised copy of MODEL.",
    ),
    options.shared("seed wide as_json"),
)
"""The options of commands that read log-probabilities."""


@main.command()
@options.model
@click.option(
    "--config",
    "configs",
    multiple=True,
    default=["python_pairs"],
    help="A config of minimal pairs, LANGUAGE_pairs. Repeat it for several.",
)
@_scoring
def prefer(**arguments: Any) -> None:
    """Ask MODEL which of two texts is likelier.

    MODEL is a decoder or a masked language model: a Hub id, a local folder, a GGUF file, or an
    embedded model. The two texts of a minimal pair differ in one place, and one of them parses; the
    result says in how many pairs that text is likelier, by phenomenon. Under
    `accelerate launch` or `torchrun`, the processes share the work.
    """
    _run_instrument("prefer", **arguments)


@main.command()
@options.shared("model configs")
@_node_types
@_scoring
def surprise(**arguments: Any) -> None:
    """Ask MODEL how surprising the tokens of syntax are.

    MODEL is a decoder: a Hub id, a local folder, a GGUF file, or an embedded model. For each node
    type, the command compares the surprisal of first, closing and all tokens of the nodes with that
    of other tokens of the function that are as frequent and at a similar place. Under `accelerate
    launch` or `torchrun`, the processes share the work.
    """
    _run_instrument("surprise", **arguments)


@main.command()
@options.shared("model gguf data configs splits")
@click.option(
    "--edges",
    default=2000,
    type=options.POSITIVE,
    help="Draw at most this many edges of each relation and split.",
)
@options.shared("output revision dtype device limit sample shard max_length")
@options.shared("control seed wide as_json")
def inform(**arguments: Any) -> None:
    """Measure what all heads add to words and positions.

    MODEL is a Hub id, a local folder, a GGUF file, or an embedded model. Three choices compete for
    the dependent among all tokens of a function: by words and positions, by the attention of all
    heads, and by both. Each is fitted on the split validation; the result says how many bits
    attention adds. Under `accelerate launch` or `torchrun`, the processes share the work.
    """
    _run_instrument("inform", **arguments)


@main.command()
@options.shared("model gguf data configs")
@click.option(
    "--draws",
    default=20,
    type=options.POSITIVE,
    help="Compare with at most this many other heads of the layer.",
)
@options.seed
@click.option(
    "--output",
    type=options.FOLDER_PATH,
    help="Folder for the result, both probes, and their ledgers.",
)
@options.shared("revision device")
@click.option(
    "--limit",
    type=options.POSITIVE,
    help="Silence heads in the first N functions only; the result is marked as partial.",
    metavar="N",
)
@options.shared("sample shard direction max_length wide as_json")
def ablate(**arguments: Any) -> None:
    """Silence the best heads and measure the cost.

    Does the head that looks at a dependent also help to predict it? MODEL is a masked language
    model or a decoder: a Hub id, a local folder, a GGUF file, or an embedded model, tiny-code-mlm,
    tiny-code-lm or smollm2-135m. The command chooses the best head of each relation on the split
    validation, which it probes first if needed, and silences it on the split test. Under
    `accelerate launch` or `torchrun`, the processes share the work.
    """
    _run_instrument("ablate", **arguments)


@main.command()
@options.model
@options.shared("gguf data")
@click.option(
    "--config",
    "configs",
    multiple=True,
    default=["python_pairs"],
    help="A config of minimal pairs, LANGUAGE_pairs. Repeat it for several.",
)
@click.option(
    "--relation",
    "relations",
    multiple=True,
    help="Silence the heads of this relation. Repeat it for several.  [default: those on which pairs rest]",
)
@click.option(
    "--heads",
    metavar="L-H,...",
    help="Heads of your own to silence together, layer and head from 0, such as 3-9,4-6.",
)
@click.option(
    "--share",
    "shares",
    multiple=True,
    default=[1, 5, 10],
    type=click.IntRange(1, 100),
    help="Percent of all heads to silence together, at least one head. Repeat it for several.",
)
@click.option(
    "--draws",
    default=20,
    type=options.POSITIVE,
    help="Compare with so many sets of other heads of the same layers.",
)
@click.option(
    "--stand-in",
    default="mean",
    type=click.Choice(["mean", "zero", "resampled"]),
    help="What silenced heads put out: the mean of their outputs, nothing, or outputs at other places.",
)
@options.seed
@options.shared("output revision device limit sample shard direction max_length wide as_json")
def carry(relations: tuple[str, ...], heads: str | None, **arguments: Any) -> None:
    """Silence heads of a relation while MODEL reads pairs.

    Do heads that find a relation carry the syntax that rests on it? MODEL is a decoder or a masked
    language model: a Hub id, a local folder, a GGUF file, or an embedded model. The command chooses
    the best heads of each relation on the split validation, silences them while the model reads
    minimal pairs, and says how much of the preference for the valid text is lost, beside sets of
    other heads. Under `accelerate launch` or `torchrun`, the processes share the work.
    """
    own = heads.split(",") if heads else []
    _run_instrument("carry", relations=relations or None, heads=own, **arguments)


def _run_instrument(
    name: str,
    *,
    model: str,
    gguf: str | None,
    configs: Sequence[str],
    wide: bool,
    as_json: bool,
    splits: Sequence[str] = ("",),
    **arguments: Any,
) -> None:
    """Run and print the function of this name for each config and split, or of one that has no
    choice of splits for each config. The model is loaded once."""
    runs = options.every(configs, splits, as_json, arguments["shard"])
    options.check_names(configs=configs, splits=list(filter(None, splits)))
    if "node_types" in arguments:
        asked = arguments["node_types"]
        arguments["node_types"] = " ".join(asked).replace(",", " ").split() if asked else None
    quiet_libraries()
    options.build_missing(arguments, configs, [model])
    from probing.runs.session import Session

    where_and_how = ("revision", "dtype", "device", "max_length")
    loaded = {option: arguments.pop(option) for option in where_and_how if option in arguments}
    session = Session(options.with_gguf(model, gguf), **loaded)
    for config, split in runs:
        on = {"split": split} if split else {}
        result = getattr(probing, name)(session, config=config, **on, **arguments)
        print_saved(result, arguments["output"], wide, as_json)
    if not as_json and arguments["shard"] is None:
        note_next(arguments["output"])
    note_shard(arguments["shard"], arguments["output"])
