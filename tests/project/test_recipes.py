"""What CONTRIBUTING says where to change what: the places are there, and recipes do what they say."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import click
import pytest
from support.commands import python, run

from probing import probe
from probing.cli import group, main

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("codesyntax_dataset", "codesyntax_metric", "probing")

_SECTION = re.compile(r"## Where to change what\n(.*?)\n## ", re.DOTALL)

RECIPES = [
    tuple(cell.strip() for cell in line.strip("|").split("|"))
    for line in _SECTION.search((ROOT / "CONTRIBUTING.md").read_text())[1].splitlines()
    if line.startswith("| ") and not line.startswith(("| to ", "| ---"))
]
"""What is changed, and what to open for it."""


def test_documents_have_tables():
    """Each row of a table has as many cells as its heading: others are shown as text, or cut."""
    documents = [
        path for path in ROOT.rglob("*.md") if not {"data", "node_modules", ".venv"} & {*path.parts}
    ]
    tables = 0
    for document in documents:
        text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
        for block in re.findall(r"(?:^\|.*\|$\n?)+", text, flags=re.MULTILINE):
            cells = {len(re.findall(r"(?<!\\)\|", row)) for row in block.splitlines()}
            assert len(cells) == 1, f"{document}: {block[:80]}"
            tables += 1
    assert tables > 20


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe[0])
def test_the_places_of_a_recipe_are_there(recipe):
    """Files, and what they are said to have: the next name in backticks, or the one before."""
    files = [name for name in re.findall(r"`([\w./-]+)`", recipe[1]) if "/" in name]
    for name in files:
        assert (ROOT / name).exists(), name
    text = "".join(
        path.read_text(encoding="utf-8")
        for name in files
        for path in ([ROOT / name] if (ROOT / name).is_file() else (ROOT / name).rglob("*.py"))
    )
    for name in re.findall(r"`([A-Z][A-Z_a-z]*)`", recipe[1]):
        assert re.search(rf"\b{name}\b", text), name


def test_a_command_is_in_a_section_of_the_help(monkeypatch):
    def added():
        return main.command("measure-nothing")(lambda: None)

    with pytest.raises(ValueError, match="measure-nothing is in none of SECTIONS"):
        added()
    assert "measure-nothing" not in main.commands
    monkeypatch.setattr(main, "commands", {**main.commands})
    monkeypatch.setitem(group.SECTIONS, "Data", (*group.SECTIONS["Data"], "measure-nothing"))
    added()
    assert "measure-nothing" in run("--help").stdout
    in_sections = [name for names in group.SECTIONS.values() for name in names]
    assert sorted(main.commands) == sorted(in_sections)
    push = main.commands["push"]
    assert isinstance(push, click.Group)
    assert all(name in run("push", "--help").stdout for name in push.commands)


RAISED = """
import sys
from probing import prefer, probe
from probing.instruments.registry import INSTRUMENTS
from probing.instruments.attention.result import ProbeResult
from codesyntax_dataset.build import build
from codesyntax_dataset.errors import LedgerError

build("sample", ["python", "python_pairs"], "codesyntax")
for measure, model in ((probe, sys.argv[1]), (prefer, "tiny-code-lm")):
    result = measure(model, "codesyntax", limit=3, output="results")
    file = result.paths("results")[0]
    assert INSTRUMENTS[result.instrument].result.load(file) == result
    print(result.format, result.settings.data, result.signature)
try:
    ProbeResult.load(sys.argv[2])
except LedgerError as error:
    print(error)
"""


@pytest.mark.slow
def test_raised_versions_are_written_and_read(tiny_model, fewer_functions, tmp_path, monkeypatch):
    """All of them: a version is said in one place. Results of before are refused, with the reason."""
    before = probe(tiny_model, fewer_functions, limit=3, output=tmp_path / "before")
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    raised = 0
    for name in PACKAGES:
        for file in (tmp_path / name).rglob("*.py"):
            text, count = re.subn(
                r"^( *(?:SCORING_VERSION|VERSION|RESULT_FORMAT) = )(\d+)",
                lambda found: f"{found[1]}{int(found[2]) + 1}",
                file.read_text(encoding="utf-8"),
                flags=re.MULTILINE,
            )
            text, labels = re.subn(
                r'^LABELS = "1\.\d+"', 'LABELS = "1.99"', text, flags=re.MULTILINE
            )
            file.write_text(text, encoding="utf-8")
            raised += count + labels
    assert raised == 9
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    old = before.paths(tmp_path / "before")[0]
    *lines, refused = python(RAISED, tiny_model, old).stdout.splitlines()
    assert len(lines) == 2
    for line, version in zip(lines, ("scoring:3", "version:9")):
        assert line.startswith("3 codesyntax@1.99.")
        assert f"|{version}" in line
    assert "the ledger is of attention, scoring 2; this is scoring 3" in refused
