"""Many small fits on all cores: what is Python rather than kernels gains nothing from threads, so processes share it.

The work writes checkpoints, and its results are read from these afterwards: a run with one core, or one that was ended,
does the same work in its own process and finds the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from threading import Thread
from typing import TypeVar

__all__ = ["run_in_processes"]

T = TypeVar("T")

FEW = 8
"""Tasks below which other processes are not worth starting: each reads the data anew."""


def run_in_processes(
    work: Callable[[T], None], tasks: Sequence[T], told: Callable[[int], None], jobs: int | None = None
) -> None:
    """Do the work on each task, in as many processes as there are cores; `told` is called with how many are done.

    `work` is a function of a module, and tasks can be sent to another process. With one core or few tasks nothing is
    done: the caller does what is missing. Ctrl-C ends the tasks under way.
    """
    count = min(len(tasks), jobs or os.cpu_count() or 1)
    if count < 2 or len(tasks) < FEW:
        return
    with ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_begin) as pool:
        futures = [pool.submit(work, task) for task in tasks]
        try:
            for done, future in enumerate(as_completed(futures), 1):
                future.result()
                told(done)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _begin() -> None:
    """One thread per process, and none that outlives the process which started it: it would wait for work for ever."""
    import numba

    numba.set_num_threads(1)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
