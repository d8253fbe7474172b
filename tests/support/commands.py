"""Our command line, in this process."""

from __future__ import annotations

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
