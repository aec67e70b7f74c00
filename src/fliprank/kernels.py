"""How kernels are compiled: Numba with one set of options, typed so that `mypy --strict` sees through the decorator.

A kernel sits in the file of the concept it computes. `kernel` compiles a function that other kernels call;
`parallel_kernel` one whose `prange` loop runs a query a task. All are cached on disk, so that only the first call
after an installation compiles. Division by zero gives inf or nan, as in NumPy: kernels guard where it can happen.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

# Idle threads spin for some ten microseconds and then sleep. On a machine that is busy with other work, a thread that
# spins for milliseconds, as is OpenMP's way, makes every parallel loop wait for its time slice; one that sleeps at once
# is slow to wake. OpenMP reads this when Numba starts its threads.
os.environ.setdefault("GOMP_SPINCOUNT", "20000")

from numba import njit

if TYPE_CHECKING:
    prange = range
else:
    from numba import prange

__all__ = ["inlined_kernel", "kernel", "parallel_kernel", "prange"]

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile `function`; it runs in one thread and holds no lock."""
    compiled: F = njit(function, cache=True, nogil=True, error_model="numpy")
    return compiled


def inlined_kernel(function: F) -> F:
    """Compile `function` into each kernel that calls it: for small steps of a hot loop that take many arrays."""
    compiled: F = njit(function, cache=True, nogil=True, error_model="numpy", forceinline=True)
    return compiled


def parallel_kernel(function: F) -> F:
    """Compile `function`; its `prange` loops run in parallel."""
    compiled: F = njit(function, cache=True, nogil=True, error_model="numpy", parallel=True)
    return compiled
