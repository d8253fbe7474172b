"""The pages of a report on many models: their sizes, and the time until the first screen is drawn, in Chromium.

    python tests/benchmarks/scale_report.py --edges 40000 --models 50 --config python --config java --work WORK
    python tests/benchmarks/fifty.py WORK/report

Each is loaded five times from its file, and the medians are printed: of the page itself, and of the largest of a model.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

ROUNDS = 5


def seconds(browser: Browser, page: Path) -> tuple[float, float]:
    """Until the first contentful paint, and until the page has loaded."""
    tab = browser.new_page(viewport={"width": 1400, "height": 900})
    tab.goto(page.resolve().as_uri(), wait_until="load")
    tab.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
    drawn, loaded = tab.evaluate(
        "[performance.getEntriesByName('first-contentful-paint')[0].startTime,"
        " performance.getEntriesByType('navigation')[0].loadEventEnd]"
    )
    tab.close()
    return drawn / 1000, loaded / 1000


def main() -> None:
    report = Path(sys.argv[1])
    largest = sorted(report.glob("models/*.html"), key=lambda page: page.stat().st_size)[-1:]
    with sync_playwright() as playwright:
        executable = os.environ.get("CODESYNTAX_CHROMIUM") or shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        for page in [report / "index.html", *largest]:
            drawn, loaded = map(
                statistics.median, zip(*(seconds(browser, page) for _ in range(ROUNDS)))
            )
            size = page.stat().st_size / 1e6
            print(
                f"{page}: {size:.2f} MB, first screen after {drawn:.2f} s, loaded after {loaded:.2f} s"
            )


if __name__ == "__main__":
    main()
