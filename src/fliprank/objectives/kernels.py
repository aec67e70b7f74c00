"""Kernels whose sums and products may be reordered, so that they run in vector registers.

Only reordering is allowed (not the assumption that nothing is infinite or NaN), and only where every term is finite.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

from fliprank.kernels import compiled

__all__ = ["fast_kernel", "inlined"]

F = TypeVar("F", bound=Callable[..., Any])


def fast_kernel(function: F) -> F:
    """`fliprank.kernels.kernel`, with sums and products in any order, compiled into each kernel that calls it.

    Their order is the compiler's choice, so there must be one copy per caller. A callee that is not inlined has two:
    its own, which a process that compiles both calls, and the caller's, which a process that finds the caller on disk
    calls. They may round the last bit differently: SoftRR's gradient did, between the first run and all later ones.
    """
    return compiled(function, forceinline=True, fastmath={"reassoc", "contract", "arcp", "nsz"})


def inlined(function: F) -> F:
    """A piece of a `fast_kernel`, compiled as a part of each that uses it: a call with many arrays takes longer than
    its work on a few documents."""
    out: F = njit(function, inline="always", error_model="numpy", nogil=True)
    return out
