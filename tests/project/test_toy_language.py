"""A further language is one record: this one, of less than 40 lines, is built, probed, compared with baselines and reported.

A program in Sums defines functions. Each takes a line `to NAME` and has statements that assign a sum: `set x = a + b ;`.
"""

from __future__ import annotations

import json
import re
from contextlib import contextmanager

import pytest
from support.commands import run

import codesyntax_dataset
from codesyntax_dataset.check import check_folder
from codesyntax_dataset.errors import ArgumentError, ParseError, SourceError
from codesyntax_dataset.languages import (
    CONFIGS,
    LANGUAGES,
    Definition,
    Language,
    Relation,
    Variant,
    register,
)
from codesyntax_dataset.schema import Annotation, Edge, Skips, Token
from codesyntax_dataset.sources import read
from probing.evidence.baselines import baseline
from probing.publish import board
from probing.report.findings import read_findings
from probing.report.folder import markdown
from probing.report.report import sections

pytestmark = pytest.mark.slow


def tokenize(code, variant):
    return [Token(match[0], *match.span()) for match in re.finditer(r"\w+|[=+;]", code)]


def annotate(code, variant):
    tokens, edges = tokenize(code, variant), []
    if len(words := code.split()) < 2 or words[0] != "to":
        raise ParseError("expected a function that begins with `to NAME`", 1, 0)
    for index, token in enumerate(tokens):
        if token.text == "=":
            end = next(at for at in range(index, len(tokens)) if tokens[at].text == ";")
            edges += [Edge("Set:set->target", index - 2, index - 1, index - 1)]
            edges += [Edge("Set:target->value", index - 1, index + 1, end - 1)]
    return Annotation(tokens, edges)


def definitions(text):
    for match in re.finditer(r"^to (\w+)\n(?:  .*\n)+", text, re.MULTILINE):
        first = text.count("\n", 0, match.start()) + 1
        yield Definition(match[1], first, first + match[0].count("\n") - 1, match[0])


SUMS = Language(
    name="sums",
    title="Sums",
    variants=(
        Variant("whole", "{configs} has sums"),
        Variant("bare", "`_bare` lacks semicolons", never_predicted=";"),
    ),
    relations=(
        Relation("Set:set->target", "assignment", "set x = a + b ; : set => x"),
        Relation("Set:target->value", "assignment", "set x = a + b ; : x => a + b"),
    ),
    suffixes=(".sums", ".sum"),
    keywords=("to", "set"),
    unparsed="begins with no name",
    annotate=annotate,
    tokenize=tokenize,
    definitions=definitions,
)


@contextmanager
def registered(language):
    register(language)
    try:
        yield language
    finally:
        del LANGUAGES[language.name]
        for config in language.configs:
            del CONFIGS[config]


@pytest.fixture
def sums():
    with registered(SUMS) as language:
        yield language


@pytest.fixture
def source(tmp_path):
    """Eight files with three functions each, of one to three statements."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for file in range(8):
        functions = [
            f"to area{number}\n"
            + "".join(f"  set x{n} = wide + {'high + ' * n}{file} ;\n" for n in range(number + 1))
            for number in range(3)
        ]
        (folder / f"{file}{SUMS.suffixes[file % 2]}").write_text("\n".join(functions))
    return folder


def test_a_language_from_its_record_to_its_report(sums, source, tiny_model, tmp_path):
    data = tmp_path / "data"
    run("build --source", source, "--config sums --config sums_bare --output", data)
    built = check_folder(data).configs
    assert {config: report.functions for config, report in built.items()} == {
        "sums": {"test": 18, "validation": 6},
        "sums_bare": {"test": 18, "validation": 6},
    }
    assert built["sums"].edges == {
        relation: {"test": 36, "validation": 12} for relation in sums.relation_names
    }

    probe = ("probe", tiny_model, "--data", data, "--config")
    run(*probe, "sums_bare --output", tmp_path)
    (bare,) = tmp_path.glob("*.sums_bare.test.*.json")
    assert "|not-predicted:;|" in json.loads(bare.read_text())["signature"] + "|"

    found = baseline(data, "sums")
    assert found.picks["held-out"].names("offset", "first", "Set:set->target")[0] == 1
    offset = found.hits["held-out"]["offset"].hits
    assert offset.mean("offset").at(0)[:3] == (100, 100, 100)
    assert "Set:set->target" in run("baseline --data", data, "--config sums").stdout

    run(*probe, "sums --split validation --split test --output", tmp_path / "results")
    (found,) = read_findings([tmp_path / "results"], data)
    (subject,) = found.subjects
    (table,) = board.read([tmp_path / "results"], str(data)).tables
    assert table.shared["config"] == "sums"
    report = markdown(sections([found]))
    for relation in sums.relation_names:
        assert found.relations(subject.name, "held-out")[relation].items == 36
        assert relation.partition("-")[0] in report  # of Markdown, in which signs are escaped


def test_labels_by_the_public_functions(sums):
    code = "to area\n  set x = a + b ;\n"
    assert [token.text for token in codesyntax_dataset.tokenize(code, "sums")] == code.split()
    assert codesyntax_dataset.annotate(code, "sums").edges == [
        Edge("Set:set->target", 2, 3, 3),
        Edge("Set:target->value", 3, 5, 7),
    ]


def test_a_name_that_is_taken_is_refused(sums):
    before = dict(CONFIGS)
    with pytest.raises(ArgumentError, match="the name sums, which is taken"):
        register(SUMS)
    assert before == CONFIGS


def test_a_language_that_codesearchnet_lacks(sums, shared):
    with pytest.raises(SourceError, match="CodeSearchNet has no sums functions"):
        list(read(str(shared / "data/codesearchnet"), "sums", Skips()))
