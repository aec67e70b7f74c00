"""What all benchmarks share: a row of results, and the least time of several tries."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import NamedTuple


class Row(NamedTuple):
    """`ratio`: how many times as long the peer takes; for rows that say so, another quotient."""

    what: str
    peer: str
    ratio: float
    target: str


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def best(work: Callable[[], object], tries: int = 5) -> float:
    """The least of several times, after one to warm up."""
    work()
    return min(seconds(work) for _ in range(tries))


def markdown(rows: Iterable[Row]) -> str:
    lines = ["| what | against | ratio | target |", "|---|---|---|---|"]
    return "\n".join(lines + [f"| {r.what} | {r.peer} | {r.ratio:.3g} | {r.target} |" for r in rows])


def show(rows: Iterable[Row]) -> None:
    print(markdown(rows))
