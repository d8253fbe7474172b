"""Commands that end in a report, the demo among them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from codesyntax_dataset.protocol import SPLITS
from probing.cli import options
from probing.cli.group import main, note, quiet_libraries

RECIPE = [
    "codesyntax build --source code-search-net/code_search_net --config python --output csn",
    "codesyntax probe microsoft/codebert-base --data csn --config python --split test --split validation "
    "--output csn-results",
    "codesyntax report csn-results --data csn --output csn-report",
]
"""From the Hub to a report, as in README.md."""

DRAWS = 1
"""Controls of each masked copy in the demo, which is to end soon; 20 is the default of `mask`."""


@main.command()
@options.results("RESULT...")
@click.option("--output", default="report", type=options.FOLDER, help="The folder to write.")
@click.option("--data", help="Location of the dataset, if not the one in the results.")
@click.option(
    "--format",
    default="html",
    type=click.Choice(["html", "latex"]),
    help="latex adds report.tex, each table as LaTeX and each figure as PDF.",
)
def report(results: tuple[Path, ...], output: Path, data: str | None, format: str) -> None:
    """Write a report on each RESULT, a file or folder that `probe --output` or `mask --output` wrote: one page, and all
    tables and figures.

    Both protocols of `probe` need results on the splits test and validation. Results on one config are compared with
    each other, and those of `probe` with baselines and controls on the same functions.
    """
    import datasets

    from probing.report.report import report as write

    datasets.disable_progress_bars()
    click.echo(write(results, output, data, format, tell=note))


@main.command()
@click.option(
    "--source",
    "sources",
    multiple=True,
    required=True,
    metavar="[LANGUAGE=]SOURCE",
    help="Where functions come from, as for `build`; with a language, such as german=FILE, a treebank.",
)
@click.option(
    "--models",
    multiple=True,
    required=True,
    metavar="[LANGUAGE=]MODEL",
    help="A model to probe on all languages that it reads; with a language, such as python=FOLDER, only on that.",
)
@click.option(
    "--study",
    type=click.Choice(["codesyntax", "syntaxeval"]),
    default="codesyntax",
    help="Shen et al. (2022), or Velasco et al. (2024).",
)
@click.option("--output", default="reproduction", type=options.FOLDER, help="The folder to write into.")
@options.exclude_repositories
@options.limit
@options.device
def reproduce(sources: tuple[str, ...], models: tuple[str, ...], output: Path, **given: Any) -> None:
    """Make the tables and figures of a study again, with the study's numbers and the differences beside ours.

    codesyntax: build, probe and run baselines for Tables 3 to 6 and 8 to 12, and Figures 2 to 8 and 16 to 19.
    syntaxeval: mask Python functions as the study did, and compare its estimator with ours.

    What has no source or model is left empty, with the reason. An interrupted run continues when the same command is
    given again.
    """
    quiet_libraries()
    import probing

    click.echo(probing.reproduce(sources, models, output, tell=note, **given))


@main.command()
@click.option("--output", default="codesyntax-demo", type=options.PATH, help="The folder to write into.")
@click.option("--decoder", is_flag=True, help="Probe smollm2-135m, too, which is in the extra `decoder`.")
def demo(output: Path, decoder: bool) -> None:
    """Build the embedded sample, and report what the attention heads of an embedded encoder find in it, and what an
    embedded masked language model restores of it. Prints the finding, the report's path and next steps."""
    quiet_libraries()
    import probing
    from codesyntax_dataset.build import build as build_dataset
    from probing.models.location import DECODER, EMBEDDED, TINY, embedded_model
    from probing.prediction.masking import CONTROLS
    from probing.report.folder import save
    from probing.report.report import make

    embedded = {EMBEDDED: ["python", "java"], TINY: ["python"]} | ({DECODER: ["python", "java"]} if decoder else {})
    for model in embedded:
        embedded_model(model)  # raises at once if it is missing
    data, results = output / "codesyntax", output / "results"
    click.echo(build_dataset("sample", ["python", "java"], data).text(), err=True)
    for model, configs in embedded.items():
        for done in probing.probe_models([model], data, configs, SPLITS, output=results):
            if done.error is not None:
                raise done.error
    for control in CONTROLS:
        probing.mask(TINY, data, control=control, draws=DRAWS, output=results)
    report = make([results], data, note)
    page = save(report, (output / "report").resolve())
    recipe = "\n".join(f"  {line}" for line in RECIPE)
    click.echo(
        f"{report.answer}\n\nThe report:\n{page}\n\nNext steps:\n\n"
        f"See what heads attend to:\n  codesyntax show {EMBEDDED} --data {data} --id 0\n\n"
        f"See what is restored where the syntax is masked:\n  codesyntax show {TINY} --masked --data {data} --id 0\n\n"
        f"Compare the two models:\n  codesyntax compare {EMBEDDED} {TINY} --results {results}\n\n"
        f"Probe CodeBERT with CodeSearchNet, from the Hub to a report:\n{recipe}\n\n"
        "Use your own model, code or attention: README.md. List models that work: codesyntax available-models"
    )
