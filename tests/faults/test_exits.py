"""No thread of Arrow is left when a process ends.

A thread that gives back a Python object after the interpreter has begun to end is ended itself, and then the process
by SIGABRT (apache/arrow#34314): a command that fails right after it has read a file would exit with 134.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

from probing.instruments.likelihood.result import PreferenceLedger

READS = """
import os, sys
import pyarrow.compute, scipy, torch
from codesyntax_dataset.batches import batches, parquet_file
from codesyntax_dataset.check import _check_ids
from codesyntax_dataset.folder import read_split
from pathlib import Path
from probing.runs import ledger_file

folder, ledger = Path(sys.argv[1]), sys.argv[2]
threads = os.listdir("/proc/self/task")
read_split(folder, "python", "test", ["id", "code", "relations"])
list(batches(parquet_file(folder / "python/test.parquet"), 8))
_check_ids(folder, "python", ["python/test.parquet"])
with ledger_file.opened(ledger, "ledger", "prefer") as opened:
    list(ledger_file.parts(ledger, "ledger", "prefer", "function", 2, opened.status))
assert len(os.listdir("/proc/self/task")) == len(threads)
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted on Linux")
def test_files_are_read_without_threads_of_arrow(dataset_folder, tmp_path):
    file = tmp_path / "pairs.ledger.parquet"
    PreferenceLedger(["call"], np.zeros(5, PreferenceLedger.ROW), {}).save(file)
    command = [sys.executable, "-c", READS, str(dataset_folder), str(file)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
