"""Use after a fork: threads do not survive it, so that what needs them raises in the child instead of hanging or dying.

`multiprocessing` forks by default on Linux before Python 3.14. If kernels or polars had started threads before, a child
would wait for these forever (polars), or be terminated (Numba with GNU OpenMP). A child of a process that had not yet
used them is as good as any.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from fliprank.errors import FliprankError

__all__ = ["ForkError", "check_not_forked", "refuse_after_fork"]

T = TypeVar("T")

ADVICE = (
    "fliprank was used before this process was forked, and its threads did not survive that: start processes by "
    "multiprocessing.get_context('spawn'), or fork before fliprank is first used"
)

_parallel: list[Any] = []
_started: set[str] = set()
_lost: set[str] = set()
"""What has threads in this process (known when it forks), and what had them in one that this was forked from."""


class ForkError(FliprankError, RuntimeError):
    """Threads are needed that did not survive a fork."""

    def __init__(self) -> None:
        super().__init__(ADVICE)


def check_not_forked() -> None:
    """Raise where polars, which reads and writes many of our files, would wait for its threads forever."""
    if "polars" in _lost:
        raise ForkError


def refuse_after_fork(kernel: T) -> T:
    """The same parallel kernel; after a fork that its threads did not survive, it raises."""
    _parallel.append(kernel)
    if "kernels" in _lost:  # its module is imported in the child only
        _disable(kernel)
    return kernel


def _look_for_threads() -> None:
    """Note, before a fork, what has started threads."""
    names = set()
    for thread in Path("/proc/self/task").glob("*/comm"):
        try:
            names.add(thread.read_text().strip())
        except OSError:  # it ended just now
            continue
    if any(name.startswith("polars") for name in names) if names else "polars" in sys.modules:
        _started.add("polars")
    if _kernels_run():
        _started.add("kernels")


def _kernels_run() -> bool:
    numba = sys.modules.get("numba")
    try:
        return numba is not None and bool(numba.threading_layer())
    except ValueError:  # not started yet
        return False


def _in_child() -> None:
    """Make parallel kernels raise."""
    _lost.update(_started)
    for kernel in _parallel if "kernels" in _lost else ():
        _disable(kernel)


def _disable(kernel: Any) -> None:
    """Without compiled versions, each call of a kernel asks for one; it gets the error."""
    kernel._reset_overloads()
    kernel._compile_for_args = _refuse


def _refuse(*_: object, **__: object) -> NoReturn:
    raise ForkError


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_look_for_threads, after_in_child=_in_child)
