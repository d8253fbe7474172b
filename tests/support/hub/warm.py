"""Runs steps, each in a child of this process, which imports everything once and in the environment that it is given.

A line of standard input is a step as JSON: the words of a command of ours, or Python code, the folder to run in, files for
its output and its errors, and what its environment has in addition. Each is answered by a line with its exit status.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import datasets  # noqa: F401, as what is imported below imports these two where they are needed
import transformers.models.modernbert.modeling_modernbert  # noqa: F401
from support.processes import codesyntax, ended, start

import probing


def main() -> None:
    for module in pkgutil.walk_packages(probing.__path__, "probing."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for line in sys.stdin:
        step = json.loads(line)
        code = step["code"]
        work = (
            codesyntax(step["words"])
            if code is None
            else lambda code=code: exec(code, {"__name__": "__main__"})
        )
        os.chdir(step["folder"])
        prepare = lambda: os.environ.update(step["environment"])  # noqa: B023, E731
        print(ended(start(work, Path(step["output"]), Path(step["errors"]), prepare)), flush=True)


if __name__ == "__main__":
    main()
