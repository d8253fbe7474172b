"""What kinds of edits mutants have, and that those listed as equivalent are of the code as it is."""

from __future__ import annotations

import ast

import pytest
from conftest import ROOT
from equivalent_mutants import EQUIVALENT
from support.attacks.mutations import edits

GUARD = """def check(columns, share, test, validation):
    for name in ("n", "hits"):
        least(columns[name], share, twice=True)
    return corrected(share) <= ALPHA and fit(validation.labels, "test", 1)
"""


def test_edits_drop_cases_corrections_and_arguments_move_bounds_and_exchange_splits():
    by_kind: dict[str, set[str]] = {}
    for edit in edits(GUARD):
        ast.parse(edit.apply(GUARD))
        by_kind.setdefault(edit.kind, set()).add(edit.texts(GUARD)[1])
    returned = 'return corrected(share) <= ALPHA and fit(validation.labels, "test", 1)'
    assert by_kind["case dropped"] == {'for name in ("hits"):', 'for name in ("n",):'}
    assert by_kind["call dropped"] == {returned.replace("corrected(share)", "(share)")}
    assert by_kind["bound moved"] == {returned.replace("ALPHA", "10 * (ALPHA)")}
    assert by_kind["split exchanged"] == {returned.replace('"test"', '"validation"')}
    assert by_kind["argument dropped"] == {
        "least(columns[name], share)",
        "least(columns[name], twice=True)",
        returned.replace(", 1)", ")"),
    }


@pytest.mark.parametrize("module", EQUIVALENT)
def test_equivalent_mutants_are_mutants_of_the_code_as_it_is(module):
    source = (ROOT / module).read_text("utf-8")
    assert EQUIVALENT[module].keys() <= {edit.texts(source) for edit in edits(source)}
