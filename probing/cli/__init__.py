"""The command line `codesyntax`: each command is a thin wrapper around a function that a notebook
can call."""

from probing.cli import attention, dataset, evidence, instruments, models, publish  # noqa: F401 - they add commands
from probing.cli.group import main as main
