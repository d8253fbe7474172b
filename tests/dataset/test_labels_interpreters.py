"""Labels depend on the code alone: other interpreters give the same checksums as this one.

Every `python3.10` to `python3.14` on the PATH is tried, and Pyodide where the variable CODESYNTAX_PYODIDE names a
folder that holds `node_modules/pyodide` (`npm install pyodide@314.0.7` there; 314 is Python 3.14, 0.29 is 3.13, 0.27 is
3.12). Several folders are separated as in PATH.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from support.labels import label_checksums

pytestmark = pytest.mark.slow

SCRIPT = ROOT / "tests/support/labels/label_checksums.py"
SHARED = Path(os.environ.get("CODESYNTAX_SHARED", ROOT.parent / "shared")).resolve()
FOLDERS = [ROOT, *([SHARED] if (SHARED / "data").is_dir() else [])]
OTHERS = [f"python3.{minor}" for minor in range(10, 15) if minor != sys.version_info.minor]
PYODIDE = [
    folder for folder in os.environ.get("CODESYNTAX_PYODIDE", "").split(os.pathsep) if folder
]


@pytest.fixture(scope="module")
def checksums():
    """Those of this interpreter. It takes many seconds, so only where there is another one."""
    sources = label_checksums.sources(SHARED)
    assert all(len(codes) >= 20 for codes in sources.values())
    return {name: label_checksums.checksum(codes) for name, codes in sources.items()}


def run(*command: str | Path) -> dict:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, env={**os.environ, "PYTHONUTF8": "1"}
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", OTHERS)
def test_another_interpreter_gives_the_same_labels(name, request):
    python = shutil.which(name)
    if not python or subprocess.run([python, "-c", ""], capture_output=True).returncode:
        pytest.skip(f"there is no {name} on the PATH")
    other = run(python, SCRIPT, *FOLDERS[1:])
    assert other["version"].startswith(name.removeprefix("python"))
    assert other["checksums"] == request.getfixturevalue("checksums")


@pytest.mark.parametrize("folder", PYODIDE or ["missing"])
def test_pyodide_gives_the_same_labels(folder, request):
    if not PYODIDE or not shutil.which("node"):
        pytest.skip("needs node, and CODESYNTAX_PYODIDE to name a folder with node_modules/pyodide")
    # Pyodide keeps Python's stack on node's, which is small: the deepest snippets need more.
    other = run(
        "node",
        "--stack-size=16000",
        ROOT / "tests/support/labels/pyodide_run.mjs",
        folder,
        SCRIPT,
        *FOLDERS,
    )
    assert other["checksums"] == request.getfixturevalue("checksums")
