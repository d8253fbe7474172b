"""Products of numpy and scipy on one thread."""

from __future__ import annotations

from threadpoolctl import threadpool_info, threadpool_limits

from codesyntax_dataset.one_thread import one_thread


def threads():
    return {
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


def test_products_have_one_thread_and_what_follows_as_many_as_before():
    with threadpool_limits(2, "blas"):
        before = threads()
        with one_thread():
            assert threads() == {1}
        assert threads() == before
