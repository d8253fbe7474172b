"""Objects with a digest of themselves: whatever else is in them is refused, and their order does not matter."""

from __future__ import annotations

import hashlib
from itertools import permutations

import pytest

from codesyntax_dataset.checksummed_json import with_checksum, without_checksum
from codesyntax_dataset.errors import SubmissionError

FIELDS = {"b": {"y": 1, "x": 2}, "a": [3, 4]}
DIGEST = hashlib.sha256(b'{"a": [3, 4], "b": {"x": 2, "y": 1}}').hexdigest()
WHOLE = {**FIELDS, "sha256": DIGEST}


def test_the_digest_is_of_the_sorted_fields():
    assert with_checksum(FIELDS) == WHOLE


@pytest.mark.parametrize("order", [*permutations(WHOLE)])
def test_fields_in_another_order_are_the_same_content(order):
    assert without_checksum({name: WHOLE[name] for name in order}) == FIELDS
    assert without_checksum({**WHOLE, "b": {"x": 2, "y": 1}}) == FIELDS


@pytest.mark.parametrize(
    "altered",
    [
        {**WHOLE, "a": [3, 5]},
        {**WHOLE, "a": [4, 3]},
        {**WHOLE, "b": {"y": 1, "z": 2}},
        {**WHOLE, "c": None},
        {"b": FIELDS["b"], "A": FIELDS["a"], "sha256": DIGEST},
        {"b": FIELDS["b"], "sha256": DIGEST},
        {"sha256": DIGEST},
        {**FIELDS, "sha256": DIGEST.upper()},
        {**FIELDS, "sha256": None},
    ],
)
def test_altered_content_is_refused(altered):
    with pytest.raises(SubmissionError, match="its content was altered: the digest does not match"):
        without_checksum(altered)


@pytest.mark.parametrize("value", [FIELDS, {}, ["sha256"], "sha256", 3, None])
def test_what_has_no_digest_is_taken_as_it_is(value):
    assert without_checksum(value) == value
