"""The site of guides and API: it is built without a warning, no link in it is broken, and each public name has a place."""

from __future__ import annotations

import importlib
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.long


class Page(HTMLParser):
    """The anchors of a page, and the addresses it leads to or loads."""

    def __init__(self, path):
        super().__init__()
        self.anchors = {""}
        self.addresses = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id":
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.addresses.add(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs", reason="the extra `docs` is not installed")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file"]
    built = subprocess.run(
        [*command, ROOT / ".site/mkdocs.yml", "--site-dir", folder], capture_output=True, text=True
    )
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site):
    return {
        f"/{path.relative_to(site).as_posix()}": Page(path)
        for path in site.rglob("*.html")
        if path.name != "404.html"  # its links are from where it is served
    }


def test_no_link_is_broken(site, pages):
    broken = []
    for location, page in pages.items():
        for address in page.addresses:
            target, anchor = urldefrag(urljoin(location, address))
            if not target.startswith("/"):
                continue  # of another host
            target = unquote(target) + "index.html" * target.endswith("/")
            anchors = pages[target].anchors if target in pages else {""}
            if not (site / target[1:]).is_file() or unquote(anchor) not in anchors:
                broken.append((location, address))
    assert not broken


def test_nothing_is_loaded_from_another_host(pages):
    loaded = [address for page in pages.values() for address in page.addresses]
    assert not [
        address for address in loaded if address.endswith((".js", ".css")) and "//" in address
    ]


@pytest.mark.parametrize("package", ["probing", "codesyntax_dataset", "codesyntax_metric"])
def test_each_public_name_has_a_place(package, pages):
    anchors = pages[f"/api/{package}/index.html"].anchors
    public = {f"{package}.{name}" for name in importlib.import_module(package).__all__}
    assert public - {f"{package}.__version__"} <= anchors


def test_a_page_leads_to_the_names_it_mentions(pages):
    assert "api/probing/#probing.scores" in pages["/index.html"].addresses


def test_a_call_leads_to_what_it_returns(pages):
    result = "../results/#probing.instruments.masking.result.MaskResult"
    assert result in pages["/api/probing/index.html"].addresses
