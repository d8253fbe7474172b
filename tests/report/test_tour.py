"""The tour: its cells run as code, in order; and what `plot` draws is what the result says."""

from __future__ import annotations

import json

import matplotlib.figure
import pytest
from conftest import ROOT, figures_unrendered

import probing

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]


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


def test_a_plot_has_the_scores_of_the_result_on_the_given_axes(toured):
    result = toured[0]["results"]["test"]
    axes = matplotlib.figure.Figure().subplots()
    assert result.plot(axes) is axes and probing.plot(result).figure is not axes.figure
    drawn = dict(
        zip(
            [label.get_text() for label in axes.get_yticklabels()],
            [bar.get_width() for bar in axes.patches],
        )
    )
    assert drawn == {name: entry["first"]["1"]["score"] for name, entry in result.relations.items()}
    masked = probing.mask("tiny-code-mlm", toured[1] / "tour/codesyntax", limit=4, draws=1)
    axes = masked.plot()
    types = [label.get_text() for label in axes.get_yticklabels()]
    assert types and set(types) <= set(masked.node_types)
    with pytest.raises(TypeError, match="has no plot"):
        probing.plot(1)
