"""The group of commands: how each of them prints notes and errors, is silenced, and ends when it is
stopped."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codesyntax_dataset.errors import CodeSyntaxError
from codesyntax_dataset.safe_files import plain, printable

if TYPE_CHECKING:
    from probing.runs.saved import Result

_QUIET = "codesyntax.quiet"
_STATUS_INTERRUPTED, _STATUS_TERMINATED = 130, 143

SECTIONS = {
    "Measure": ("probe", "mask", "ablate", "carry", "inform", "prefer", "surprise"),
    "Read": ("score", "compare", "report", "show", "explore", "errors", "baseline"),
    "Data": ("build", "stats", "compare-labels"),
    "Publish": ("push", "submit", "board", "verify"),
    "More": ("demo", "doctor", "merge", "reproduce", "convert-cubert", "new-language"),
}
"""The commands, as the help lists them."""

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
            click.Option(
                ["-q", "--quiet"], callback=_quiet, help="Print only results and errors.", **quiet
            ),
            click.Option(
                ["-v", "--verbose"],
                callback=_verbose,
                help="Print progress messages to standard error.",
                **quiet,
            ),
        ]


class _Group(click.Group):
    """A group of our commands, such as push."""

    command_class = _Command


class _Main(_Group):
    """Prints a CodeSyntaxError on one line and exits with 1; any other exception keeps its
    traceback.

    Exits with 130 when interrupted and with 143 when terminated, as shells expect.
    """

    group_class = _Group

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        if not any((name or cmd.name) in names for names in SECTIONS.values()):
            raise ValueError(
                f"{name or cmd.name} is in none of SECTIONS: the help would not list it"
            )
        super().add_command(cmd, name)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        for section, names in SECTIONS.items():
            with formatter.section(section):
                limit = formatter.width - 4 - max(map(len, self.commands))
                formatter.write_dl(
                    [(name, self.commands[name].get_short_help_str(limit)) for name in names]
                )

    def invoke(self, context: click.Context) -> Any:
        # most objects are those of modules, which stay: looking for garbage less often saves a
        # tenth
        gc.set_threshold(100_000, 50, 100)
        try:
            with _cleaning_up_when_terminated():
                return super().invoke(context)
        except CodeSyntaxError as error:
            raise click.ClickException(one_line(error)) from error
        except KeyboardInterrupt as stop:
            click.echo(f"Error: {str(stop) or 'interrupted'}", err=True)
            context.exit(
                _STATUS_TERMINATED if isinstance(stop, _Terminated) else _STATUS_INTERRUPTED
            )


def one_line(error: Exception) -> str:
    return printable(" ".join(str(error).split()), most=10_000)


def note(text: object) -> None:
    """Print a message that is not part of the result."""
    if not click.get_current_context().meta.get(_QUIET):
        click.echo(plain(str(text)), err=True)


@click.group(cls=_Main, context_settings=_CONTEXT)
@click.version_option(package_name="codesyntax")
def main() -> None:
    """Measure what language models know about the syntax of code.

    Build the CodeSyntax dataset, and probe Hugging Face models with it.
    """


def quiet_hub() -> None:
    """Call before huggingface_hub and transformers are imported, because they read these variables
    on import."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")


def quiet_libraries() -> None:
    """Silence library messages and progress bars: important ones are repeated in our messages."""
    quiet_hub()
    # read on import, which many commands do without
    os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
    if imported := sys.modules.get("datasets"):
        imported.disable_progress_bars()


def print_made(
    product: Any,
    parts: Callable[[Any], Iterable[object]],
    wide: bool,
    as_json: bool = False,
) -> None:
    """Print what a command made, as JSON or as the tables and texts that `parts` makes of it."""
    from probing.report.document import print_parts

    if as_json:
        click.echo(product.to_json(), nl=False)
    else:
        print_parts(parts(product), wide)


def print_saved(
    result: Result | None, output: Path | None, wide: bool, as_json: bool = False
) -> None:
    """Print a result, and where it is; nothing where there is none: not in the main process, or
    with a shard."""
    from probing.report.document import first_screen
    from probing.report.results import parts

    if result is not None:
        print_made(
            result,
            lambda shown_result: parts(shown_result) if wide else first_screen(parts(shown_result)),
            wide,
            as_json,
        )
        note_saved(result, output)


def note_saved(result: Result, output: Path | None) -> None:
    if output:
        note(f"wrote {result.paths(output)[0]}")


def note_next(output: Path | None) -> None:
    """The next command, after results were printed."""
    hint = (
        f"codesyntax report {output}"
        if output
        else "the same with --output FOLDER, and `codesyntax report FOLDER`"
    )
    note(f"next: {hint}")


def note_shard(shard: str | None, output: Path | None) -> None:
    if shard is not None:
        note(
            f"shard {shard} is in {output}: when all are, `codesyntax merge {output}` makes the result of them"
        )


def note_frame(frame: Any, file: Path) -> None:
    """Write a table of scores as CSV."""
    from codesyntax_dataset.atomic import write
    from probing.report.document import in_csv

    text = frame.map(in_csv, na_action="ignore").to_csv(index=False)
    note(f"wrote {write(file, text)}")
