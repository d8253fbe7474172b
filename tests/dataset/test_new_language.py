"""The skeleton that `codesyntax new-language` writes: valid, with a golden pair that fails until the table has rules."""

from __future__ import annotations

import importlib.util

import pytest
from support.commands import run
from support.labels.golden_pairs import cases, spell_edges, spell_tokens

from codesyntax_dataset.languages.skeleton import new_language


@pytest.fixture
def checkout(tmp_path):
    """What the command takes for a checkout, with nothing else in it."""
    table = tmp_path / "codesyntax_dataset" / "languages" / "tables" / "table.py"
    table.parent.mkdir(parents=True)
    table.touch()
    return tmp_path


def imported(module):
    spec = importlib.util.spec_from_file_location("skeleton_of_a_test", module)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_the_skeleton_is_valid_and_its_golden_pair_fails_until_it_is_replaced(checkout):
    printed = run(
        "new-language gopher --grammar tree_sitter_go --suffix .gopher --checkout", checkout
    )
    module, pair = printed.stdout.splitlines()
    assert imported(module).GOPHER.title == "Gopher"
    record = imported(module).GOPHER
    assert [*record.configs] == ["gopher"]
    assert record.relation_names == ["children:parent->child"]
    code = "func f() {\n\tx := a\n}"
    labels = record.annotate(code, "exact")
    assert {edge.relation for edge in labels.edges} == {"children:parent->child"}

    [case] = cases("gopher", checkout / "tests" / "golden", of=["exact"])
    empty, variant, tokens, edges = case.values
    found = record.annotate(empty, variant)
    assert (spell_tokens(found.tokens), spell_edges(found)) != (tokens, edges)
    assert " ".join(tokens) == "tests/golden/gopher/next.txt says what is next"

    spelt = f"One.\n\n=== code\n{code}\n\n=== exact\n{' '.join(spell_tokens(labels.tokens))}\n\n"
    (checkout / pair).write_text(spelt + "\n".join(spell_edges(labels)) + "\n", encoding="utf-8")
    [case] = cases("gopher", checkout / "tests" / "golden", of=["exact"])
    assert case.values == (code, "exact", spell_tokens(labels.tokens), spell_edges(labels))


@pytest.mark.parametrize(
    "name, grammar, suffix, said",
    [
        ("Gopher", "tree_sitter_go", ".g", "the name 'Gopher' is not a word of lowercase letters"),
        ("../go", "tree_sitter_go", ".g", "is not a word of lowercase letters"),
        ("go", "tree_sitter_go", ".go", "the name go is taken: choose another"),
        ("tables", "tree_sitter_go", ".go", "the name tables is taken by "),
        (
            "gopher",
            "tree_sitter_go",
            "go",
            "the suffix 'go' is not what file names end in, such as .rs",
        ),
        (
            "gopher",
            "tree_sitter_gopher",
            ".g",
            "no package tree_sitter_gopher: pip install tree-sitter-gopher",
        ),
        ("gopher", "json", ".g", "no tree-sitter grammar at json: its package has none"),
        ("gopher", "tree_sitter_go.other", ".g", "no tree-sitter grammar at tree_sitter_go.other"),
    ],
)
def test_mistakes_write_nothing(checkout, name, grammar, suffix, said):
    asked = ("new-language", name, "--grammar", grammar, "--suffix", suffix)
    printed = run(*asked, "--checkout", checkout, status=1)
    assert said in printed.stderr
    assert len(printed.stderr.splitlines()) == 1
    assert [path.name for path in checkout.rglob("*") if path.is_file()] == ["table.py"]


def test_twice_or_elsewhere_it_writes_nothing(checkout, tmp_path):
    module, _ = new_language("gopher", "tree_sitter_go", ".g", title="G", checkout=checkout)
    before = module.read_text()
    again = run(
        "new-language gopher --grammar tree_sitter_go --suffix .h --checkout", checkout, status=1
    )
    assert f"the name gopher is taken by {module}" in again.stderr
    assert module.read_text() == before
    assert imported(module).GOPHER.title == "G"
    elsewhere = run(
        "new-language gopher --grammar tree_sitter_go --suffix .g --checkout",
        tmp_path / "tests",
        status=1,
    )
    assert "is not a checkout of the repository" in elsewhere.stderr
