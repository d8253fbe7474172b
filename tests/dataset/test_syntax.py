"""Node types of the grammar, and the relations of the same syntax."""

from __future__ import annotations

from collections import Counter

import pytest
from support.references.published_relations import published_relations

from codesyntax_dataset import annotate
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_dataset.languages.grammar import node_types, parse
from codesyntax_dataset.schema import Skips
from codesyntax_dataset.sources import read

every_language = pytest.mark.parametrize(
    "language", [name for name, record in LANGUAGES.items() if record.grammar]
)


def types_in(tree):
    found, waiting = set(), [tree.root_node]
    while waiting:
        node = waiting.pop()
        found.add(node.type)
        waiting += node.children
    return found


@every_language
def test_a_relation_has_at_most_one_node_type_of_the_grammar_and_one_of_the_paper_has_one(language):
    record = LANGUAGES[language]
    assert len(record.syntax) == len(record.same_syntax)
    assert set(record.syntax) <= set(node_types(language))
    assert [] not in record.syntax.values()
    published = {relation.name for relation in published_relations(language)}
    named = Counter(
        name for relations in record.syntax.values() for name in relations if name in published
    )
    assert set(named.values()) == {1}
    if record.first_validation_id is not None:  # a language of the paper
        assert set(named) == published - {"children:parent->child"}


@pytest.mark.slow
@every_language
def test_where_a_relation_is_labelled_there_is_a_node(language):
    """In 9 of 10 functions with an edge: `**options` are no keyword_argument, and `list[int]` may be no subscript."""
    edges, both = Counter(), Counter()
    for function in read("sample", language, Skips()):
        types = types_in(parse(function.code, language))
        relations = {edge.relation for edge in annotate(function.code, language).edges}
        for node_type, same in LANGUAGES[language].syntax.items():
            if relations & set(same):
                edges[node_type] += 1
                both[node_type] += node_type in types
    assert set(edges) == set(LANGUAGES[language].syntax)
    assert {
        name: (both[name], count) for name, count in edges.items() if both[name] < 0.9 * count
    } == {}
