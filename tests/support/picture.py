"""Makes the pictures in README.md: the attention page over one function, and the map of a report, in a browser.

`python tests/support/picture.py` writes `tests/data/attention.png` and `map.png`; it needs the extra `demo` and Chromium.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import probing
from codesyntax_dataset.build import build
from codesyntax_dataset.protocol import SPLITS
from probing.models.location import EMBEDDED

PICTURES = Path(__file__).resolve().parents[1] / "data"
CODE = """def longest(words, limit):
    best = ""
    for word in words:
        if len(word) > len(best):
            best = word
        if len(best) > limit:
            break
    return best.strip()
"""
RELATION = "Call:func->args"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = probing.show(EMBEDDED, CODE, relation=RELATION).save(
            Path(folder, "attention.html")
        )
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 960, "height": 392})
        page.goto(page_file.as_uri())
        page.screenshot(path=PICTURES / "attention.png")
        build("sample", ["python"], Path(folder, "data"))
        for split in SPLITS:
            probing.probe(EMBEDDED, f"{folder}/data", split=split, output=f"{folder}/results")
        report = probing.report([f"{folder}/results"], f"{folder}/report", f"{folder}/data")
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(report.as_uri())
        page.locator(".chosen").evaluate("(element) => element.remove()")
        box = page.locator(".atlas").bounding_box()
        assert box is not None
        page.screenshot(path=PICTURES / "map.png", clip={**box, "height": 640}, full_page=True)
        browser.close()


if __name__ == "__main__":
    main()
