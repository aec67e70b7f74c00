"""How kernels are compiled: Numba with one set of options, typed so that `mypy --strict` sees through the decorator.

A kernel sits in the file of the concept it computes. `kernel` compiles a function that other kernels call;
`parallel_kernel` one whose `prange` loop runs a query a task. All are cached on disk, so that only the first call
after an installation compiles. Division by zero gives inf or nan, as in NumPy: kernels guard where it can happen.

Where no folder can be written to, kernels are compiled in every process, and a warning says so. The threads of parallel
kernels do not survive a fork: in the child these kernels raise (see `forks.py`).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

# Idle threads spin for some ten microseconds and then sleep. On a machine that is busy with other work, a thread that
# spins for milliseconds, as is OpenMP's way, makes every parallel loop wait for its time slice; one that sleeps at once
# is slow to wake. OpenMP reads this when Numba starts its threads.
os.environ.setdefault("GOMP_SPINCOUNT", "20000")

from numba import njit

from fliprank.forks import refuse_after_fork

if TYPE_CHECKING:
    prange = range
else:
    from numba import prange

__all__ = ["compiled", "inlined_kernel", "kernel", "parallel_kernel", "prange"]

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F, **options: Any) -> F:
    """Compile `function` by Numba, cached on disk where there is a folder for it."""
    options |= {"nogil": True, "error_model": "numpy"}
    try:
        out: F = njit(function, cache=True, **options)
    except RuntimeError as error:  # neither the package's folder nor the user's cache folder can be written to
        if "cannot cache" not in str(error):
            raise
        _say_uncached()
        out = njit(function, **options)
    return out


@cache
def _say_uncached() -> None:
    """Once per process, not once per kernel."""
    advice = "set NUMBA_CACHE_DIR to a folder that can be written to"
    warnings.warn(f"compiled kernels can't be kept, every run compiles them again: {advice}", UserWarning, stacklevel=2)


def kernel(function: F) -> F:
    """Compile `function`; it runs in one thread and holds no lock."""
    return compiled(function)


def inlined_kernel(function: F) -> F:
    """Compile `function` into each kernel that calls it: for small steps of a hot loop that take many arrays."""
    return compiled(function, forceinline=True)


def parallel_kernel(function: F) -> F:
    """Compile `function`; its `prange` loops run in parallel."""
    return refuse_after_fork(compiled(function, parallel=True))
