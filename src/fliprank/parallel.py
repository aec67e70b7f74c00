"""Work that is made of many small fits: side by side in threads, one core each, and ended in good order by Ctrl-C.

Kernels release Python's lock, so threads are enough, and nothing is copied to other processes.

>>> run_parallel([lambda: 1, lambda: 2])
[1, 2]
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

import numba

__all__ = ["run_parallel"]

T = TypeVar("T")


def run_parallel(
    tasks: Sequence[Callable[[], T]], jobs: int | None = None, done: Callable[[], None] | None = None
) -> list[T]:
    """The results of all tasks, in their order; `done` is called after each. Ctrl-C ends it after those under way."""
    count = max(1, min(len(tasks), jobs or os.cpu_count() or 1))
    enough = threading.Event()

    def work(task: Callable[[], T]) -> T:
        if enough.is_set():
            raise KeyboardInterrupt
        if count > 1:  # the tasks share the cores; each is fastest alone on one
            numba.set_num_threads(1)
        result = task()
        if done is not None:
            done()
        return result

    with ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(work, task) for task in tasks]
        try:
            wait(futures)
        except KeyboardInterrupt:
            enough.set()
            raise
        return [future.result() for future in futures]
