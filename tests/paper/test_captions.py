"""What stands under a number of the paper is what its caption says."""

from __future__ import annotations

import json

import pytest

from codesyntax_dataset import paper
from probing.paper import inputs, page
from probing.paper.cells import Made


@pytest.fixture(scope="module")
def captions(shared):
    return json.loads((shared / "paper/captions.json").read_text(encoding="utf-8"))["codesyntax"]


def test_curves_are_of_the_languages_configs_and_rules_of_their_captions(captions):
    checked = 0
    for name, caption in captions.items():
        kind, number = name.split()
        if kind == "figure" and int(number) in page.CURVES:
            curves = page.CURVES[int(number)]
            languages = {language for language, configs in inputs.CONFIGS.items() if set(configs) & set(curves.configs)}
            assert languages == set(caption["languages"]), name
            assert list(curves.configs) == caption.get("configs", list(curves.configs)), name
            assert curves.rules == ((caption["rule"],) if "rule" in caption else curves.rules), name
            checked += 1
    assert checked == len(page.CURVES) == 8


def test_ablations_have_every_config_of_their_language(captions):
    for number in (16, 17, 18, 19):
        (language,) = captions[f"figure {number}"]["languages"]
        assert page.CURVES[number].configs == inputs.CONFIGS[language]


def test_every_table_and_figure_has_its_number(captions):
    """Those that are drawn from scores; single cases are of `codesyntax show`, and Table 2 is of models."""
    empty = Made(inputs.Inputs({}, {}, {}, dict.fromkeys(sum(inputs.CONFIGS.values(), ()), "none"), None), {}, {})
    titles = [section.title for part in page.sections(empty) for section in part.sections]
    cases = {f"figure {number}" for number in (1, *range(9, 16))}
    for name in captions.keys() - cases - {"table 2"}:
        assert any(title.startswith(f"{name.capitalize()}. ") for title in titles), name
    assert page.CASE in captions["figure 5"]["shows"]


def test_published_numbers_are_the_papers(shared):
    published = json.loads((shared / "paper/codesyntax_published.json").read_text(encoding="utf-8"))
    checked = 0
    for table, rule in (("table3_first_token", "first"), ("table5_any_token", "any")):
        for language, models in published[table].items():
            for name, numbers in models.items():
                ours = paper.scores(language.lower(), rule)[name]
                assert list(ours.values())[: len(numbers)] == pytest.approx(list(numbers)), (table, language, name)
                checked += 1
    assert checked > 10
