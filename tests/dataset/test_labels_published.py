"""The published labels, of Python and Java, against hand-written pairs and the reference labels of real functions."""

from __future__ import annotations

import pytest
from support.labels import golden_pairs
from support.labels.codesearchnet import read_rows, slice_of_codesearchnet

from codesyntax_dataset import annotate
from codesyntax_dataset.languages import LANGUAGES

PUBLISHED = {
    "python": ["paper", "with_new_lines"],
    "java": ["paper", "with_new_lines", "skip_semicolon"],
}
"""The variants of the published labels; for the exact ones see `test_labels_exact`."""

GOLDEN = [
    pytest.param(language, *case.values, id=f"{language}-{case.id}")
    for language, variants in PUBLISHED.items()
    for case in golden_pairs.cases(language, of=variants)
]


@pytest.mark.parametrize("language, code, variant, tokens, edges", GOLDEN)
def test_golden_pairs(language, code, variant, tokens, edges):
    """Tokens and edges that were worked out by hand from the published rules."""
    annotation = annotate(code, language, variant)
    assert golden_pairs.spell_tokens(annotation.tokens) == tokens
    assert golden_pairs.spell_edges(annotation) == edges


@pytest.mark.parametrize("language", PUBLISHED)
def test_golden_pairs_show_every_relation(language):
    shown = {
        edge.split(" ")[0]
        for case in GOLDEN
        if case.values[0] == language
        for edge in case.values[4]
    }
    assert shown == {relation.name for relation in LANGUAGES[language].relations}


@pytest.mark.slow
@pytest.mark.parametrize(
    "language, variant",
    [(language, variant) for language, variants in PUBLISHED.items() for variant in variants],
)
@pytest.mark.parametrize("split", [pytest.param("test", marks=pytest.mark.long), "valid"])
def test_every_function_has_its_reference_labels(shared, language, variant, split):
    """Tokens, edges, their order, and the order in which the relations first occur."""
    code = slice_of_codesearchnet(shared, language, split)
    config = language if variant == "paper" else f"{language}_{variant}"
    rows = read_rows(shared / f"data/annotations/{config}/{split}.jsonl.gz")
    assert len(rows) >= 150
    for row in rows:
        annotation = annotate(code[row["url"]], language, variant)
        edges = {}
        for relation, *edge in annotation.edges:
            edges.setdefault(relation, []).append(edge)
        assert [token.text for token in annotation.tokens] == row["tokens"], row["url"]
        assert list(edges.items()) == list(row["relns"].items()), row["url"]
