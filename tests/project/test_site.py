"""The site of guides and API: it is built without a warning, each link leads somewhere, and each public name has a place."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

CONFIG = Path(__file__).resolve().parents[2] / ".site/mkdocs.yml"

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs", reason="the extra `docs` is not installed")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", CONFIG, "-d", folder]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return folder


def test_each_link_leads_somewhere(site):
    """Within the site; mkdocs looks for the headings."""
    links = [
        page.parent / link
        for page in site.rglob("index.html")
        for link in re.findall(r'(?:href|src)="(?![a-z]+:)([^"#]+)', page.read_text("utf-8"))
    ]
    assert len(links) > 1000
    assert not [link for link in links if not link.exists()]


@pytest.mark.parametrize("package", ["probing", "codesyntax_dataset", "codesyntax_metric"])
def test_each_public_name_has_a_place(package, site):
    page = (site / "api" / package / "index.html").read_text("utf-8")
    public = {*importlib.import_module(package).__all__} - {"__version__"}
    assert not [name for name in public if f'id="{package}.{name}"' not in page]


def test_a_page_leads_to_the_names_it_mentions(site):
    assert 'href="api/probing/#probing.scores"' in (site / "index.html").read_text("utf-8")
