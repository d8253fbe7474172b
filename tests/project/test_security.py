"""What SECURITY.md says is so: its limits, the lock that is audited, and that no server listens beyond this computer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from codesyntax_dataset import batches, network, safe_files
from codesyntax_dataset.languages.java.labels import MOST_TOKENS
from codesyntax_dataset.languages.python.tree import MAX_BRACKETS
from codesyntax_dataset.sources import codesearchnet, treebank

ROOT = Path(__file__).resolve().parents[2]
SECURITY = (ROOT / ".github/SECURITY.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_limits_are_those_of_the_code():
    from probing.models import untrusted
    from probing.publish import sources

    for limit in (
        f"{safe_files.LONGEST_FUNCTION:,} characters",
        f"{MOST_TOKENS:,} tokens",
        f"{MAX_BRACKETS} nested brackets",
        f"{safe_files.LARGEST_SOURCE >> 40} TiB of code",
        f"CodeSearchNet {codesearchnet.LONGEST_LINE >> 20} MiB",
        f"a treebank file {treebank.LARGEST_FILE >> 20} MiB",
        f"{safe_files._LEAST >> 20} MiB, or {safe_files._PACKED_ALIKE} times",
        f"Parquet, also {batches.LARGEST_ROW_GROUP >> 30} GiB",
        f"{untrusted.MOST_EXPERTS:,} layers times experts, {untrusted.MOST_PARTS:,} of any other",
        f"a ledger {sources.LARGEST_LEDGER >> 30} GiB",
        f"{network.LONGEST_WAIT:.0f} seconds for each part",
    ):
        assert limit in SECURITY, limit


def test_the_lock_that_is_audited_pins_every_package():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert "--requirement constraints.txt --no-deps" in SECURITY
    assert len(pins) > 100
    assert all(re.fullmatch(r"[a-z0-9._-]+==[0-9][\w.]*", pin) for pin in pins)


def test_no_server_listens_beyond_the_loopback():
    """Those of our tests name it; gradio's, the page of a metric, listens there unless it is told otherwise."""
    folders = ("codesyntax_dataset", "codesyntax_metric", "probing", "tests")
    files = [
        file
        for folder in folders
        for file in (ROOT / folder).rglob("*.py")
        if file != Path(__file__)
    ]
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"0\.0\.0\.0|server_name|share=True", text), file
        for host in re.findall(r"HTTPServer\(\(([^,]*),", text):
            assert host == '"127.0.0.1"', file
