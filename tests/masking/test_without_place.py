"""Nodes beside which no control of the same length has a place are left out, and counted."""

from __future__ import annotations

from support.models.byte_tokenizer import byte_tokenizer

from probing.instruments.masking.masking import SPANS, Masker, masked_copies
from probing.instruments.masking.result import NO_PLACE


def counted(code: str, node_type: str):
    (function,) = Masker(byte_tokenizer(), "python", [node_type]).read([code])
    copies, dropped, placed = masked_copies(
        function, 0, [node_type], draws=1, seed=0, control=SPANS
    )
    return (
        len(copies),
        dict(dropped),
        {with_place: count for (_, with_place), count in placed.items() if count},
    )


def test_nodes_with_and_without_a_place():
    """Of `long` and `abc`, only the latter has a span of its length beside it: `(1)`."""
    assert counted("long + abc(1)\n", "identifier") == (2, {}, {True: 1, False: 1})


def test_a_function_without_any_place():
    assert counted("a = 1", "module") == (0, {NO_PLACE: 1}, {False: 1})
