"""The embedded sample: enough functions, every relation in both partitions, nothing twice, and what its README says."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache

import pytest
from conftest import ROOT

from codesyntax_dataset import SourceFunction, annotate
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_dataset.protocol import SPLITS
from codesyntax_dataset.schema import Skips
from codesyntax_dataset.sources import read

SAMPLE = ROOT / "codesyntax_dataset" / "sample"

both_languages = pytest.mark.parametrize("language", ["python", "java"])


@cache
def functions(language: str) -> list[SourceFunction]:
    skips = Skips()
    found = list(read("sample", language, skips))
    assert skips.counts == {}, skips.names
    return found


def sizes(language: str) -> Counter[str]:
    return Counter(function.partition for function in functions(language))


@both_languages
def test_has_enough_functions(language):
    assert sizes(language)["test"] >= 60
    assert sizes(language)["validation"] >= 20


@both_languages
def test_every_relation_occurs_in_both_partitions(language):
    counts = {split: Counter() for split in SPLITS}
    for function in functions(language):
        counts[function.partition].update(edge.relation for edge in annotate(function.code, language).edges)
    relations = set(LANGUAGES[language].relation_names)
    assert set(counts["test"]) == set(counts["validation"]) == relations
    assert {name: n for name, n in counts["test"].items() if n < 3} == {}


@both_languages
def test_no_function_occurs_twice(language):
    bodies = Counter(" ".join(function.code.split()) for function in functions(language))
    assert [body for body, n in bodies.items() if n > 1] == []


@pytest.mark.parametrize("file", sorted(SAMPLE.rglob("*.py")), ids=lambda file: file.relative_to(SAMPLE).as_posix())
def test_python_files_follow_the_grammar_of_python_3_9(file):
    ast.parse(file.read_text("utf-8"), feature_version=(3, 9))


def test_readme_gives_the_right_numbers():
    readme = (SAMPLE / "README.md").read_text("utf-8")
    stated = {
        language: {"test": int(test), "validation": int(validation)}
        for language, test, validation in re.findall(r"^\| (Python|Java) \| (\d+) \| (\d+) \|$", readme, re.MULTILINE)
    }
    assert stated == {"Python": sizes("python"), "Java": sizes("java")}


@both_languages
def test_readme_names_the_projects(language):
    readme = (SAMPLE / "README.md").read_text("utf-8")
    column = {"python": 1, "java": 2}[language]
    for split in SPLITS:
        [row] = re.findall(rf"^\| `{split}` \|.*$", readme, re.MULTILINE)
        stated = re.findall(r"`(\w+)`", row.split("|")[column + 1])
        assert stated == sorted({function.repo for function in functions(language) if function.partition == split})
