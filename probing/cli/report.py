"""Commands that end in a report, the demo among them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import probing
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
@click.option("--data", help="The dataset, if it is no longer where the results found it.")
@click.option(
    "--format",
    default="html",
    type=click.Choice(["html", "latex"]),
    help="latex also writes report.tex, each table as LaTeX, and each figure as PDF.",
)
def report(results: tuple[Path, ...], output: Path, data: str | None, format: str) -> None:
    """Write a report with all tables and figures.

    RESULT is a file or folder that `probe`, `mask`, `ablate`, `inform`, `prefer` or `surprise` wrote with --output. A
    probe needs results on the splits test and validation. The report compares models with each other, and with
    baselines and controls on the same functions.
    """
    quiet_libraries()
    from probing.report.report import report as write

    click.echo(write(results, output, data, format, tell=note))


@main.command()
@click.option(
    "--source",
    "sources",
    multiple=True,
    required=True,
    metavar="[LANGUAGE=]SOURCE",
    help="A source of functions, as for `build`. With a language, such as german=FILE, a treebank.",
)
@click.option(
    "--models",
    multiple=True,
    required=True,
    metavar="[LANGUAGE=]MODEL",
    help="A model to probe on all languages that it reads. With a language, such as python=FOLDER, only on that.",
)
@click.option(
    "--study",
    type=click.Choice(["codesyntax", "syntaxeval"]),
    default="codesyntax",
    help="Shen et al. (2022), or Velasco et al. (2024).",
)
@click.option("--output", default="reproduction", type=options.FOLDER, help="The folder to write into.")
@options.shared("exclude_repositories limit device")
def reproduce(sources: tuple[str, ...], models: tuple[str, ...], output: Path, **given: Any) -> None:
    """Reproduce the tables and figures of a study.

    \b
    codesyntax   Tables 3 to 6 and 8 to 12, and Figures 2 to 8 and 16 to 19
    syntaxeval   mask Python functions as the study did, and compare estimators

    Each table has the study's numbers and the differences beside ours. A cell without a source or model stays empty,
    and the page gives the reason. Repeat the command to continue an interrupted run.
    """
    quiet_libraries()
    click.echo(probing.reproduce(sources, models, output, tell=note, **given))


@main.command()
@click.option("--output", default="codesyntax-demo", type=options.PATH, help="The folder to write into.")
@click.option("--decoder", is_flag=True, help="Also probe smollm2-135m; it needs the extra `decoder`.")
def demo(output: Path, decoder: bool) -> None:
    """Run everything once, on embedded models and code.

    The command builds the embedded sample, probes an embedded encoder, masks syntax for an embedded masked language
    model, and writes a report. It needs no network, and prints the finding, the report's path and next steps.
    """
    quiet_libraries()
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
