"""The paper's numbers in the package: those of the reference material, and of the paper's own summaries."""

from __future__ import annotations

import json
from statistics import mean

import pytest

from codesyntax_dataset import paper
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_metric.topk_uas import NOT_IN_MEAN

PUBLISHED = ("python", "java")
TABLES = {("python", "first"): 9, ("python", "any"): 10, ("java", "first"): 11, ("java", "any"): 12}


@pytest.fixture(scope="module")
def published(shared):
    return json.loads((shared / "paper/codesyntax_published.json").read_text())


def test_tables_are_those_of_the_reference_material(published):
    """Number by number: Tables 3 to 5, 8 and 9 to 12, and the one of GraphCodeBERT."""
    ks = [str(k) for k in published["k"]]
    for language in PUBLISHED:
        for rule, table in (("first", "table3_first_token"), ("any", "table5_any_token")):
            ours = paper.scores(language, rule)
            graphcodebert = {} if (language, rule) != ("python", "first") else {"GraphCodeBERT"}
            assert set(ours) == set(published[table][language]) | set(graphcodebert)
            for model, values in published[table][language].items():
                assert ours[model] == dict(zip(ks, values))
        counts = {
            name: row[language]
            for name, row in published["table8_counts"].items()
            if row[language] is not None
        }
        assert paper.edges(language) == counts
        assert paper.functions(language) == published["dataset"][language]["samples"]
    for language, models in published["table4_natural_language"].items():
        assert paper.scores(language, "first") == {
            model: dict(zip(ks, values)) for model, values in models.items()
        }
        assert paper.functions(language) == published["dataset"][language]["sentences"]
    assert paper.scores("python", "first")["GraphCodeBERT"] == {
        "1": published["graphcodebert_python_first_top1"]
    }
    for (language, rule), table in TABLES.items():
        rows = published[f"table{table}_{language}_{rule}_token"]
        ours = paper.relation_scores(language, rule)
        assert list(ours) == [row["relation"] for row in rows]
        assert [tuple(entry) for entry in ours.values()] == [
            (row["cubert"], row["offset_score"], row["offset"]) for row in rows
        ]


@pytest.mark.parametrize("language, rule", TABLES)
def test_means_over_relations_are_the_published_scores(language, rule):
    """The mean of Table 9 gives Table 3, and so on: the paper's own numbers fit each other, and its 34 and 38 relations
    are those that our mean runs over."""
    rows = paper.relation_scores(language, rule)
    assert set(rows) == set(LANGUAGES[language].relation_names) - NOT_IN_MEAN
    scores = paper.scores(language, rule)
    assert mean(row.cubert for row in rows.values()) == pytest.approx(
        scores["CuBERT"]["1"], abs=0.06
    )
    assert mean(row.offset_score for row in rows.values()) == pytest.approx(
        scores["Offset"]["1"], abs=0.06
    )


@pytest.mark.parametrize("language, edges", [("python", 1_342_050), ("java", 864_411)])
def test_edges_of_table_8_sum_to_the_published_totals(language, edges):
    counts = paper.edges(language)
    assert sum(counts.values()) == edges
    assert set(counts) == set(LANGUAGES[language].relation_names)
