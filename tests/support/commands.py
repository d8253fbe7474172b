"""Our command line, in this process, and Python in another."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from click.testing import CliRunner, Result

from probing.cli import main


def run(*arguments: object, status: int = 0) -> Result:
    """What a command does, which ends with `status`. A text is as many words as it has; a path is one."""
    words = [
        word
        for argument in arguments
        for word in (argument.split() if isinstance(argument, str) else [str(argument)])
    ]
    result = CliRunner().invoke(main, words, catch_exceptions=False)
    assert result.exit_code == status, result.output
    return result


def python(code: str, *arguments: object, status: int = 0, **settings: Any) -> Any:
    """What a program does in a process of its own, which ends with `status`."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, **settings)
    assert done.returncode == status, done.stderr
    return done
