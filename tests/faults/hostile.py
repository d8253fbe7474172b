"""Count the hostile archives and pages, and what became of them.

    python tests/faults/hostile.py

Each is a row of a table of the tests beside this file, which are run: archives of functions and of labels, what would be run
or loaded in a page, names in pages and in their figures. A page needs Chromium.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from rows import Row, script

TESTS = {
    "test_hostile_files.py": "a_hostile_source",
    "test_hostile_texts.py": "page_shows_a_name or were_injected or figure_is_drawn or script_and_style_sheet",
}

TIMES = 40


def run(seed: int, times: int) -> Row:
    """There must be `times` of them at least; nothing here is random. Raises AssertionError for one that is effective."""
    tried = 0
    for file, names in TESTS.items():
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-n0",
            str(Path(__file__).with_name(file)),
            "-k",
            names,
        ]
        said = subprocess.run(command, capture_output=True, text=True).stdout
        counts = {
            kind: int(count)
            for count, kind in re.findall(r"(\d+) (passed|failed|skipped|error)", said)
        }
        assert counts.keys() == {"passed"}, said[-2000:]
        tried += counts["passed"]
    assert tried >= times
    return Row("hostile archives and pages", tried, "effective: 0")


if __name__ == "__main__":
    script(run, TIMES)
