"""Mutants that are listed as equivalent are of the code as it is."""

from __future__ import annotations

import pytest
from conftest import ROOT
from equivalent_mutants import EQUIVALENT
from support.attacks.mutations import edits


@pytest.mark.parametrize("module", EQUIVALENT)
def test_equivalent_mutants_are_mutants_of_the_code_as_it_is(module):
    source = (ROOT / module).read_text("utf-8")
    assert EQUIVALENT[module].keys() <= {edit.texts(source) for edit in edits(source)}
