"""Commands for what language models predict: SyntaxEval, and minimal pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

import probing
from codesyntax_dataset.protocol import RANDOM_WEIGHTS
from probing.cli import options
from probing.cli.attention import note_shard, print_saved, session_of
from probing.cli.group import main, note

_node_types = click.option(
    "--node-types",
    multiple=True,
    metavar="TYPE",
    help="A node type of the language's tree-sitter grammar, such as if_statement, or all. Repeat it for several.  "
    "[default: those of the study]",
)


@main.command()
@click.argument("model")
@options.gguf
@options.data
@options.configs
@options.splits
@_node_types
@click.option(
    "--protocol",
    default="current",
    type=click.Choice(["current", "published"]),
    help="Mask the true spans of nodes, or the spans that the study masked. Results of decoders have the protocol "
    "infilling.",
)
@click.option("--rate", default=1.0, type=click.FloatRange(0, 1, min_open=True), help="Share of the nodes to mask.")
@click.option(
    "--control",
    "controls",
    multiple=True,
    default=["sub-tokens"],
    type=click.Choice(["sub-tokens", "spans", RANDOM_WEIGHTS]),
    help="T0 masks as many random sub-tokens, or random spans of code as long as the nodes. random-weights, beside one "
    "of these, runs an untrained twin of MODEL.",
)
@click.option(
    "--draws", default=20, type=click.IntRange(min=1), help="The number of random controls of each masked copy."
)
@click.option("--seed", default=0, type=click.IntRange(min=0), help="Random seed of the controls and of --sample.")
@click.option("--output", type=options.FOLDER, help="Folder for the result and its ledger.")
@options.revision
@options.device
@options.batch_tokens
@options.limit
@options.sample
@options.shard
@options.max_length
@options.wide
@options.as_json
def mask(
    model: str,
    gguf: str | None,
    configs: tuple[str, ...],
    splits: tuple[str, ...],
    node_types: tuple[str, ...],
    controls: tuple[str, ...],
    wide: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Mask syntax, let MODEL restore it, compare trees.

    MODEL is a masked language model, or a decoder with fill-in-the-middle tokens, which fills each run of masked
    sub-tokens on its own: a Hub id, a local folder, or an embedded one, tiny-code-mlm or tiny-code-lm. For each node
    type, the command compares copies whose nodes are masked (T1) with copies in which as many random sub-tokens are
    masked (T0), as SyntaxEval did. Under `accelerate launch` or `torchrun`, the processes share the work.
    """
    names = _names(node_types)
    masked = [control for control in controls if control != RANDOM_WEIGHTS] or ["sub-tokens"]
    if len(set(masked)) > 1:
        raise click.UsageError(f"T0 masks {' and '.join(masked)}: give one of these two")
    given |= {"control": masked[0], "random_weights": RANDOM_WEIGHTS in controls}
    chosen = options.every(configs, splits, as_json, given["shard"])
    options.check([model], given["data"], configs, head=True)
    _note_keywords(configs, names or ())
    session = session_of(options.with_gguf(model, gguf), given)
    from probing import mask as run

    for config, split in chosen:
        result = run(session, config=config, split=split, node_types=names, **given)
        print_saved(result, given["output"], wide, as_json)
    note_shard(given["shard"], given["output"])


def _scoring(command: Callable[..., None]) -> Callable[..., None]:
    """The options of commands that read log-probabilities."""
    control = click.option("--control", type=click.Choice([RANDOM_WEIGHTS]), help="Run an untrained twin of MODEL.")
    seed = click.option(
        "--seed", default=0, type=click.IntRange(min=0), help="Random seed of the control and of --sample."
    )
    output = click.option("--output", type=options.FOLDER, help="Folder for the result and its ledger.")
    each = (options.gguf, options.data, options.splits, output, options.revision, options.dtype, options.device)
    more = (options.batch_tokens, options.limit, options.sample, options.shard, options.max_length, control, seed)
    for option in (options.as_json, options.wide, *reversed((*each, *more)), click.argument("model")):
        command = option(command)
    return command


@main.command()
@click.option(
    "--config",
    "configs",
    multiple=True,
    default=["python_pairs"],
    help="A config of minimal pairs, LANGUAGE_pairs. Repeat it for several.",
)
@_scoring
def prefer(**given: Any) -> None:
    """Ask MODEL which of two texts is likelier, of which one parses.

    MODEL is a decoder or a masked language model: a Hub id, a local folder, a GGUF file, or an embedded model. The two
    texts of a minimal pair differ in one place; the result says in how many pairs the text that parses is likelier, by
    phenomenon, distance and depth. Under `accelerate launch` or `torchrun`, the processes share the work.
    """
    _run("prefer", **given)


@main.command()
@options.configs
@_node_types
@_scoring
def surprise(configs: tuple[str, ...], node_types: tuple[str, ...], **given: Any) -> None:
    """Ask MODEL how surprising the tokens of syntax are.

    MODEL is a decoder: a Hub id, a local folder, a GGUF file, or an embedded model. For each node type, the command
    compares the surprisal of first, closing and all tokens of the nodes with that of other tokens of the function that
    are as frequent and at a similar place. Under `accelerate launch` or `torchrun`, the processes share the work.
    """
    names = _names(node_types)
    options.check([], configs=configs)
    _note_keywords(configs, names or ())
    _run("surprise", configs=configs, node_types=names, **given)


def _run(
    name: str,
    model: str,
    gguf: str | None,
    configs: Sequence[str],
    splits: Sequence[str],
    wide: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Run and print the function of this name for each config and split."""
    chosen = options.every(configs, splits, as_json, given["shard"])
    options.check([model], given["data"])
    session = session_of(options.with_gguf(model, gguf), given)
    for config, split in chosen:
        result = getattr(probing, name)(session, config=config, split=split, **given)
        print_saved(result, given["output"], wide, as_json)
    note_shard(given["shard"], given["output"])


def _names(node_types: Sequence[str]) -> list[str] | None:
    """The node types that are asked for, which may be several in one text; None for the default."""
    return [name for text in node_types for name in text.replace(",", " ").split()] if node_types else None


def _note_keywords(configs: Sequence[str], names: Sequence[str]) -> None:
    """Note the types that are a keyword alone, such as `if` where `if_statement` may be meant."""
    from codesyntax_dataset.languages import grammar, language_of

    for language in dict.fromkeys(language_of(config).name for config in configs):
        known = grammar.node_types(language)
        for name in names:
            meant = [
                other for other in known if other in (f"{name}_statement", f"{name}_definition", f"{name}_expression")
            ]
            if name in known and meant:
                note(f"{name} is the keyword alone: did you mean {meant[0]}?")
