"""What all benchmarks share: a row of results, and the least time of several tries."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Row(NamedTuple):
    """`ratio`: how many times as long the peer takes; for rows that say so, another quotient."""

    what: str
    peer: str
    ratio: float
    target: str


def timed(work: Callable[[], T], tries: int) -> tuple[float, T]:
    """The least time of several tries, and the result."""
    times = []
    for _ in range(tries):
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
    return min(times), result


def best(work: Callable[[], object], tries: int = 5) -> float:
    """The least of several times, after one to warm up."""
    work()
    return timed(work, tries)[0]


def markdown(rows: Iterable[Row]) -> str:
    lines = ["| what | against | ratio | target |", "|---|---|---|---|"]
    return "\n".join(lines + [f"| {r.what} | {r.peer} | {r.ratio:.3g} | {r.target} |" for r in rows])


def show(rows: Iterable[Row]) -> None:
    print(markdown(rows))
