"""What the documents show is what happens: README, changelog, citation."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest
import yaml
from support.commands import run

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")

_JOBS = (
    "probe masking information pairs scores training papers hub cluster findings commands".split()
)

_DATASET = ("README", *(f"docs/{job}" for job in ("build", "languages", "edits", "pairs")))

OF_DATASETS = tuple(f"codesyntax_dataset/{name}.md" for name in _DATASET)
OF_MODELS = (*(f"probing/docs/{job}.md" for job in _JOBS), "README.md")

GUIDES = OF_DATASETS + OF_MODELS
"""The documents whose commands and examples run, in this order: later ones use what earlier ones make."""

FEWER = {
    "verify ": "--functions 2 --seed 0",
    "inform ": "--limit 5",
    "surprise ": "--limit 3",
    "ablate ": "--limit 1",
    "carry ": "--relation If:if->body --relation Call:func->args",
    "--data sentences ": "--limit 10",
}
"""What commands are given in addition that have this text, and whose numbers stand in no guide."""


def commands(guides):
    """The commands `codesyntax` in the guides' bash blocks, in order, without their first word."""
    texts = [(ROOT / guide).read_text(encoding="utf-8") for guide in guides]
    blocks = [
        block for text in texts for block in re.findall(r"```bash\n(.*?)```", text, flags=re.DOTALL)
    ]
    lines = "".join(blocks).splitlines()
    return [line.partition(" ")[2] for line in lines if line.startswith("codesyntax ")]


def run_line(line):
    words = [
        str(path)
        for word in shlex.split(line)
        for path in (sorted(Path().glob(word)) if "*" in word or "?" in word else [word])
    ]
    run(*words, *(fewer for text, fewer in FEWER.items() if text in line))


@pytest.mark.slow
@pytest.mark.usefixtures("evaluate", "unrendered", "smaller")
def test_guides(tmp_path, monkeypatch):
    """Their commands run one after the other in an empty folder; their Python examples print there what they show."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CODESYNTAX_CACHE", str(tmp_path / "cache"))  # as users have one
    # as from the repository root
    (tmp_path / "codesyntax_metric").symlink_to(ROOT / "codesyntax_metric")
    shown = """build stats compare-labels push probe score verify errors show baseline report board mask
    ablate carry inform"""
    assert {line.split()[0] for line in commands(GUIDES)} >= {*shown.split()}
    for line in commands(GUIDES):
        run_line(line)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for guide in GUIDES:
        runner.run(
            doctest.DocTestParser().get_doctest(
                (ROOT / guide).read_text("utf-8"), {}, guide, guide, 0
            )
        )
    assert runner.tries > 15
    assert runner.failures == 0


def test_the_two_commands_stand_alone_in_a_line():
    """CI runs them as they stand there."""
    for end in ("codesyntax demo", "pytest"):
        assert (
            len(
                re.findall(
                    rf"^pip install -c constraints\.txt -e .* && {end}$", README, flags=re.MULTILINE
                )
            )
            == 1
        )


@pytest.mark.parametrize(
    "document",
    [
        *GUIDES,
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "tests/RELIABILITY.md",
        ".github/SECURITY.md",
        "codesyntax_metric/README.md",
        "codesyntax_metric/ast_similarity/README.md",
    ],
)
def test_links_within_the_repository_lead_somewhere(document):
    """To files that there are, and to headings that these have."""
    path = ROOT / document
    text = re.sub(r"`[^`]*`", "", path.read_text(encoding="utf-8"))  # `f[T](x)` is code
    for target, _, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(#([^)]*))?\)", text):
        file = path.parent / target if target else path
        assert file.exists(), target
        if anchor:
            headings = re.findall(
                r"^#+ (.*)$", file.read_text(encoding="utf-8"), flags=re.MULTILINE
            )
            assert anchor in {
                re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings
            }, anchor


def test_version_stands_everywhere_alike():
    from importlib.metadata import version

    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == version("codesyntax")
    assert f"## {version('codesyntax')}" in (ROOT / "CHANGELOG.md").read_text()
