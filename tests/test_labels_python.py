from __future__ import annotations
import pytest
import golden_pairs
from codesyntax_dataset import annotate

@pytest.mark.parametrize(("code", "variant", "tokens", "edges"), golden_pairs.cases("python"))
def test_golden_pairs(code, variant, tokens, edges):
    annotation = annotate(code, "python", variant)
    assert golden_pairs.spell_tokens(annotation.tokens) == tokens
    assert golden_pairs.spell_edges(annotation) == edges
