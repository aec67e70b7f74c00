"""Many small pieces of work in threads, one core each; Ctrl-C ends them in good order.

Kernels release Python's lock, so threads are enough, and nothing is copied to other processes.

>>> run_parallel([lambda: 1, lambda: 2])
[1, 2]
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import numba

__all__ = ["Mapper", "one_blas_thread", "one_thread", "run_parallel", "thread_map"]

T = TypeVar("T")

Mapper = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""What applies one function to each of many arguments: `map`, or the same in several threads."""


def run_parallel(
    tasks: Sequence[Callable[[], T]],
    jobs: int | None = None,
    done: Callable[[], None] | None = None,
    enough: threading.Event | None = None,
) -> list[T]:
    """The results of all tasks, in their order; `done` is called after each.

    Ctrl-C waits for the tasks under way and raises KeyboardInterrupt. With an event `enough`, which the tasks watch,
    it sets the event instead, and what the tasks then return is the result.
    """
    count = max(1, min(len(tasks), jobs or os.cpu_count() or 1))
    stop = threading.Event() if enough is None else enough
    threads = numba.get_num_threads()  # a thread of a pool would else use them all, also within another pool

    def work(task: Callable[[], T]) -> T:
        if enough is None and stop.is_set():
            raise KeyboardInterrupt
        numba.set_num_threads(1 if count > 1 else threads)  # tasks share the cores; each is fastest alone on one
        result = task()
        if done is not None:
            done()
        return result

    with ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(work, task) for task in tasks]
        try:
            _wait(futures)
        except KeyboardInterrupt:
            stop.set()
            if enough is None:
                raise
            _wait(futures)
        return [future.result() for future in futures]


def _wait(futures: list[Future[T]]) -> None:
    """Wait for all. Looks up now and then: a Ctrl-C that reached another thread would not wake this one."""
    while wait(futures, timeout=0.2).not_done:
        pass


@contextmanager
def thread_map() -> Iterator[Mapper]:
    """A `map` on as many threads as kernels would use here; each kernel then uses one. Results keep their order."""
    threads = numba.get_num_threads()
    if threads == 1:
        yield map
        return
    with ThreadPoolExecutor(threads, initializer=numba.set_num_threads, initargs=(1,)) as pool:
        yield pool.map


@contextmanager
def one_thread() -> Iterator[None]:
    """Kernels called in this block run in one thread."""
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        yield
    finally:
        numba.set_num_threads(threads)


@cache
def _blas() -> tuple[tuple[Any, int], ...]:
    """The libraries of BLAS that are loaded, and how many threads each uses by itself."""
    import scipy.linalg  # noqa: F401 (they must be loaded to be found)
    from threadpoolctl import ThreadpoolController

    found = ThreadpoolController().select(user_api="blas").lib_controllers
    return tuple((library, library.num_threads) for library in found)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS runs in one thread in this block: matrices of a few dozen rows are not worth waking others for.

    SciPy's L-BFGS-B multiplies such matrices in every step. With other work on the machine, waiting for the other
    threads took five times as long as all else in a fit of twelve parameters.
    """
    for library, _ in _blas():
        library.set_num_threads(1)
    try:
        yield
    finally:
        for library, threads in _blas():
            library.set_num_threads(threads)
