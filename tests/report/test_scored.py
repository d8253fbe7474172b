"""What tables of attention show of one place in the frame."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from codesyntax_dataset.protocol import BEST_BASELINE
from probing.report.findings import ChosenOn
from probing.report.scored import ScoredRow, chosen_on_in_words, too_narrow_in_words

OFFSET = SimpleNamespace(chosen="offset 2")


def row_of(best, difference):
    """Of a model whose best baseline, and whose difference to it, are these."""
    scores = {BEST_BASELINE: best}
    findings = SimpleNamespace(
        score=lambda name, *_: scores.get(name), difference=lambda *_: difference
    )
    return ScoredRow(findings, "model")


@pytest.mark.parametrize(
    "best, difference, expected",
    [
        (OFFSET, SimpleNamespace(value=-3.0), "offset 2"),
        (OFFSET, None, None),  # a control with other labels is compared with none
        (None, SimpleNamespace(value=-3.0), None),
    ],
)
def test_a_baseline_is_named_where_it_is_compared_with(best, difference, expected):
    assert row_of(best, difference).compared_with == expected


@pytest.mark.parametrize("functions, mark", [(5, "few functions"), (6, "")])
def test_a_relation_in_few_functions_is_marked(functions, mark):
    findings = SimpleNamespace(score=lambda *_: SimpleNamespace(functions=functions))
    assert ScoredRow(findings, "model", group="If:if->test").marked == ["If:if->test", mark]


def chosen(title, *on, origins=4):
    return SimpleNamespace(title=title, chosen_on=ChosenOn(*on), origins=origins)


def test_words_say_on_what_choices_rest_and_whether_intervals_cover_others():
    one = chosen("python", 92, 1, "functions")
    few = chosen("java", 12, 0, "")
    assert (
        chosen_on_in_words([one])
        == "92 functions of 1 repository, intervals cover other functions there"
    )
    assert chosen_on_in_words([one, few]) == (
        "92 functions of 1 repository (python), intervals cover other functions there; 12 functions (java), intervals do "
        "not cover others"
    )
    assert chosen_on_in_words([chosen("go", 90, 7, "repositories")]).endswith(
        "cover other repositories"
    )


def test_words_say_that_functions_of_few_repositories_have_too_narrow_intervals():
    few, enough, unknown = (chosen("python", 1, 1, "", origins=number) for number in (5, 6, 0))
    assert "5 repositories, and too narrow for others" in too_narrow_in_words([few])
    assert "5 and 6 repositories, and too narrow" in too_narrow_in_words([few, enough])
    assert too_narrow_in_words([enough]).endswith("6 repositories: --cluster repository.")
    assert "of 1 repository, and too narrow" in too_narrow_in_words(
        [chosen("python", 1, 1, "", origins=1)]
    )
    assert too_narrow_in_words([unknown]) == ""
