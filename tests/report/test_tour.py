"""The tour: its cells run as code, in order."""

from __future__ import annotations

import json

import pytest
from conftest import ROOT, figures_unrendered

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def toured(tmp_path_factory):
    """The names that the cells leave behind, and the folder that they ran in."""
    notebook = json.loads((ROOT / "probing/tour.ipynb").read_text("utf-8"))
    names: dict = {}
    folder = tmp_path_factory.mktemp("tour")
    with pytest.MonkeyPatch.context() as patch, figures_unrendered():
        patch.chdir(folder)
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                assert cell["outputs"] == []  # a notebook is kept without what it prints
                exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
    return names, folder


def test_the_tour_runs(toured):
    names, folder = toured
    page = (folder / "tour/report/index.html").read_text("utf-8")
    assert "the attention heads of tiny-code-mlm find" in page
    # trained weights beside random ones
    assert names["compared"].means[0] > names["compared"].means[1]
