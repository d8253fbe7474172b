"""What stands under a number of the paper is what its caption says."""

from __future__ import annotations

import json

import pytest

from codesyntax_dataset import paper
from probing.paper import inputs
from probing.paper.measured import printed
from probing.paper.page import EXHIBITS, _curves


@pytest.fixture(scope="module")
def captions(shared):
    return json.loads((shared / "paper/captions.json").read_text(encoding="utf-8"))["codesyntax"]


@pytest.fixture(scope="module")
def curves():
    return {exhibit.name.lower(): exhibit for exhibit in EXHIBITS if exhibit.draw is _curves}


def test_curves_are_of_the_languages_configs_and_rules_of_their_captions(captions, curves):
    for name, exhibit in curves.items():
        caption = captions[name]
        languages = {
            language
            for language, configs in inputs.CONFIGS.items()
            if set(configs) & set(exhibit.configs)
        }
        assert languages == set(caption["languages"]), name
        assert list(exhibit.configs) == caption.get("configs", list(exhibit.configs)), name
        assert exhibit.rules == ((caption["rule"],) if "rule" in caption else exhibit.rules), name
    assert len(curves) == 8


def test_cases_have_the_relation_the_language_and_the_head_of_their_captions(captions):
    for case in paper.cases():
        caption = captions[f"figure {case.figure}"]
        assert caption.get("relation", case.relation) == case.relation
        assert case.config in caption.get("languages", inputs.CODE)
        assert (
            case.head == "-".join(map(str, caption["head"]))
            if "head" in caption
            else case.head in caption["shows"]
        )
    assert {case.figure for case in paper.cases()} == {1, 5, *range(9, 16)}


def test_every_table_and_figure_has_its_number(captions):
    """But Table 2, of models, and the cases, which stand in one table."""
    cases = {f"figure {case.figure}" for case in paper.cases()}
    assert captions.keys() - cases - {"table 2"} <= {exhibit.name.lower() for exhibit in EXHIBITS}


def test_models_are_those_of_the_papers_table(captions):
    """Table 2: the cased ones."""
    assert "BERT-large (cased)" in captions["table 2"]["shows"]
    assert paper.name_of("bert-large-cased", "english") == "BERT-large"
    assert paper.name_of("bert-large-uncased", "english") is None


def test_published_numbers_are_the_papers(shared):
    published = json.loads((shared / "paper/codesyntax_published.json").read_text(encoding="utf-8"))
    ours = {(row.config, row.rule, row.k, row.group, row.system): row.value for row in printed()}
    checked = 0
    for table, rule in (
        ("table3_first_token", "first"),
        ("table4_natural_language", "first"),
        ("table5_any_token", "any"),
    ):
        for config, models in published[table].items():
            for name, numbers in models.items():
                checked += len(numbers)
                assert [ours[config, rule, k, "mean", name] for k in published["k"]] == numbers, (
                    table,
                    config,
                    name,
                )
    for table, config, rule in (
        ("table9_python_first_token", "python", "first"),
        ("table10_python_any_token", "python", "any"),
        ("table11_java_first_token", "java", "first"),
        ("table12_java_any_token", "java", "any"),
    ):
        for row in published[table]:
            checked += 2
            assert ours[config, rule, 1, row["relation"], "CuBERT"] == row["cubert"]
            assert ours[config, rule, 1, row["relation"], "Offset"] == row["offset_score"]
    assert checked > 300
