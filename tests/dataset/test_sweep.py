"""Every slot and every filler of a language once, against its own parser: the sweep of `tests/benchmarks`, in short."""

from __future__ import annotations

import importlib
from collections import Counter

import pytest
from support.labels.sweep import kinds, put
from support.references.reference_parsers import verdict

KNOWN = {
    "java": {"@A B", "@A B @C ... a"},  # annotations inside of types
    "typescript": {"static [a: string]: b;", "in(): a"},
}
"""Language -> fillers that its grammar cannot read."""


@pytest.mark.slow
@pytest.mark.parametrize("language", "python java javascript typescript go php ruby".split())
def test_every_slot_and_every_filler_is_labelled_as_by_the_language(language):
    reference = importlib.import_module(f"reference.{language}")
    said, failed = Counter(), []
    for kind in kinds(language):
        for pair in kind.short():
            of_pair = verdict(pair.code, language, reference)
            said[of_pair] += 1
            if of_pair in ("wrong", "refused") and pair.filler not in KNOWN.get(language, ()):
                failed.append(pair)
    assert said["equal"] > 200
    assert not failed, "\n".join(f"{pair.slot!r} with {pair.filler!r}" for pair in failed)


def test_further_lines_of_a_filler_are_indented_like_its_hole():
    assert (
        put("def f():\n    if x:\n        □", "a\nb") == "def f():\n    if x:\n        a\n        b"
    )


def test_short_has_each_slot_and_each_filler():
    for kind in kinds("python"):
        pairs = list(kind.short())
        assert {pair.slot for pair in pairs} == {*kind.slots}
        assert {pair.filler for pair in pairs} == {*kind.fillers}
        assert len(pairs) == max(len(kind.slots), len(kind.fillers))
