"""Threads of BLAS are held at one while a block needs it, and given back after it, also where blocks overlap."""

from __future__ import annotations

import threading

import scipy.linalg  # noqa: F401
from threadpoolctl import threadpool_info

from fliprank.parallel import one_blas_thread


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_blas_threads_come_back_after_blocks_that_overlap() -> None:
    before, seen = blas_threads(), list[set[int]]()
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with one_blas_thread():
            seen.append(blas_threads())
            inside.set()
            leave.wait()
        seen.append(blas_threads())

    thread = threading.Thread(target=other)
    with one_blas_thread():
        assert blas_threads() == {1}
        thread.start()
        inside.wait()
    assert blas_threads() == before
    leave.set()
    thread.join()
    assert seen == [{1}, before]
    assert blas_threads() == before
