"""Work beside the main thread: one item ahead, in order, and done before an error leaves."""

from __future__ import annotations

import threading

import pytest

from probing.runs.in_advance import in_advance


def test_the_next_item_is_worked_on_while_one_is_used():
    began = {number: threading.Event() for number in range(3)}

    def work(number):
        began[number].set()
        return threading.get_ident()

    threads = in_advance(work, range(3))
    assert next(threads) != threading.get_ident()
    assert began[1].wait(10)
    assert not began[2].is_set()
    assert len([*threads]) == 2


def test_results_are_in_order_and_an_empty_list_has_none():
    assert [*in_advance(lambda number: number**2, range(20))] == [n**2 for n in range(20)]
    assert [*in_advance(str, [])] == []


def test_an_error_of_the_work_is_raised_in_its_turn():
    results = in_advance(lambda number: 1 / number, [2, 1, 0, 1])
    assert [next(results), next(results)] == [0.5, 1]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_what_began_is_done_before_an_interruption_leaves():
    done = []

    def items():
        yield "saved"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        next(in_advance(done.append, items()))
    assert done == ["saved"]
