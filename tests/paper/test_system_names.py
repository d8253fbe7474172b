"""Under which name a model stands in the tables of a reproduction."""

from __future__ import annotations

import pytest

from probing.paper.measured import system_name


@pytest.mark.parametrize(
    "model, expected",
    [
        ("microsoft/codebert-base", "CodeBERT"),
        ("gpt2", "gpt2"),
        ("Offset", "Offset (model)"),
        ("Keyword", "Keyword (model)"),
        ("Combined", "Combined (model)"),
        ("dataset", "dataset (model)"),
    ],
)
def test_no_model_has_the_name_of_a_baseline(model, expected):
    assert system_name(model, "python") == expected
