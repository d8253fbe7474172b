"""The rows of a dataset as runs read them: those that do not fit themselves are refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

from codesyntax_dataset.errors import DatasetError
from probing.runs.data import rows

TOKENS = 3


def table_of(head, first, last, ends=TOKENS):
    """A function of three tokens and one edge."""
    edge = {"relation": "r", "head": head, "first": first, "last": last}
    row = {"id": 7, "code": "a b c", "relations": [edge]}
    row |= {"token_start": [0, 2, 4], "token_end": [1, 3, 5, 5][:ends]}
    return pa.Table.from_pylist([row])


@pytest.mark.parametrize(
    "edge",
    [
        pytest.param((-1, 0, 0), id="a head before the first token"),
        pytest.param((TOKENS, 0, 0), id="a head behind the last token"),
        pytest.param((0, -1, 1), id="a dependent that begins before the first token"),
        pytest.param((0, -2, -1), id="a dependent before the first token"),
        pytest.param((0, 2, 1), id="a dependent that ends before it begins"),
        pytest.param((0, 1, TOKENS), id="a dependent that ends behind the last token"),
        pytest.param((0, TOKENS, TOKENS), id="a dependent behind the last token"),
    ],
)
def test_an_edge_outside_of_the_tokens_is_refused(edge):
    with pytest.raises(DatasetError, match="function 7: edge .* points outside its 3 tokens"):
        list(rows(table_of(*edge), None))


@pytest.mark.parametrize("edge", [(0, 0, 0), (0, 0, 2), (2, 0, 2), (2, 2, 2), (1, 1, 2)])
def test_an_edge_to_the_outermost_tokens_is_read(edge):
    ((row,),) = rows(table_of(*edge), None)
    assert row["relations"] == [dict(zip(("relation", "head", "first", "last"), ("r", *edge)))]
    assert row["index"] == 0


@pytest.mark.parametrize("ends", [TOKENS - 1, TOKENS + 1])
def test_tokens_begin_as_often_as_they_end(ends):
    with pytest.raises(DatasetError, match=f"function 7: 3 token starts but {ends} ends"):
        list(rows(table_of(0, 1, 1, ends), None))
