"""Makes the picture in README.md: the attention page over one function, in a browser.

`python tests/support/picture.py` writes `tests/data/attention.png`; it needs the extra `demo` and Chromium.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import probing
from probing.models.location import EMBEDDED

PICTURE = Path(__file__).resolve().parents[1] / "data/attention.png"
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
        page.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    main()
