"""The command line `codesyntax`: each command is a thin wrapper around a function that a notebook can call."""

from probing.cli import attention, dataset, evidence, instruments, models, publish
from probing.cli.group import main

__all__ = ["attention", "dataset", "evidence", "instruments", "main", "models", "publish"]
