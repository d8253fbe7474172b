"""Work in children of this process: what it has imported, seconds for a new process, they need not import again."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from unittest import mock

from probing.cli import main

_CHANGES = {*"os.rename os.remove os.mkdir os.rmdir os.link os.truncate os.chmod".split()}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


def changing(act: Callable[[int], object]) -> None:
    """Call `act` with 1, 2, 3, ... just before Python changes a file or folder."""
    count = 0

    def heard(event: str, arguments: tuple) -> None:
        nonlocal count
        if event in _CHANGES or (event == "open" and (arguments[2] or 0) & _WRITES):
            count += 1
            act(count)

    sys.addaudithook(heard)


def codesyntax(arguments: Sequence[str]) -> Callable[[], object]:
    """A command of ours, as work for a child."""
    return partial(main, [*arguments], prog_name="codesyntax")


def start(
    work: Callable[[], object],
    log: Path,
    errors: Path | None = None,
    prepare: Callable[[], object] = lambda: None,
) -> int:
    """Start work in a child, after `prepare` there; return its process id.

    Its output goes to the file `log`, and what it writes to standard error to `errors`, or to `log`, too.
    """
    begun, tell = os.pipe()
    pid = os.fork()
    if not pid:
        status = 70
        try:
            os.setsid()
            # which is ignored in a background job
            signal.signal(signal.SIGINT, signal.default_int_handler)
            for number, file in ((1, log), (2, errors)):
                os.dup2(
                    os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600) if file else 1,
                    number,
                )
            sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
            sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
            prepare()
            os.close(tell)
            work()
            status = 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 0
        except BaseException:
            traceback.print_exc()
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            with contextlib.suppress(Exception):
                sys.stdout.flush(), sys.stderr.flush()
            os._exit(status)
    os.close(tell)
    os.read(begun, 1)  # until the child closes its end, too
    os.close(begun)
    return pid


def ended(pid: int) -> int:
    """The exit status of a child, minus the signal that killed it; its own children end with it."""
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    return status


def together(arguments: Sequence[str], count: int = 2) -> None:
    """Run a command in so many processes that share the work, started as `torchrun` does, but forked,
    unless this process has used a GPU, which no child of it then could. Without a GPU for each, they
    compute on the CPU.

    Raises ChildFailedError if one fails.
    """
    import torch
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    config = LaunchConfig(
        1,
        1,
        count,
        run_id="tests",
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        start_method="spawn" if torch.cuda.is_initialized() else "fork",
    )
    handlers = {
        number: signal.getsignal(number)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
    }
    hidden = {} if torch.cuda.device_count() >= count else {"CUDA_VISIBLE_DEVICES": ""}
    try:
        with mock.patch.dict(os.environ, hidden):
            elastic_launch(config, _shared)(arguments)
    finally:  # the launcher leaves its own
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _shared(arguments: Sequence[str]) -> None:
    main([*arguments], standalone_mode=False)
