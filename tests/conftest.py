"""What every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Nothing in the tests may reach a hub; those that need one talk to the loopback Hub in processes of their own.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_EVALUATE_OFFLINE"] = "1"
os.environ["HF_UPDATE_DOWNLOAD_COUNTS"] = "0"
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference material that stands beside the project."""
    folder = Path(os.environ.get("CODESYNTAX_SHARED", ROOT.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"the reference material is not at {folder} (set CODESYNTAX_SHARED)")
    return folder


@pytest.fixture(scope="session", autouse=True)
def fresh_hf_home(tmp_path_factory: pytest.TempPathFactory):
    """An empty cache for datasets, evaluate and the hub, so that no test sees what an earlier run left."""
    home = tmp_path_factory.mktemp("hf_home")
    patch = pytest.MonkeyPatch()
    patch.setenv("HF_HOME", str(home))
    yield home
    patch.undo()
