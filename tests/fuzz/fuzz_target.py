"""What a target of the fuzzer is, and what the readers of targets share.

A target's `read` also uses what it read, as a command would: ranks rows, joins judgements, scores by the model.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
from fuzz_mutations import Change, Files, mutated

import fliprank as fr

__all__ = ["ROWS", "TARGETS", "Target", "add", "build", "index", "only", "rank"]

Seeds = Callable[[], list[Files]]


@dataclass(frozen=True)
class Target:
    """A reader: valid inputs, the change of an input, and how it is read from a folder."""

    seeds: Seeds
    change: Callable[[random.Random, Files], Files]
    read: Callable[[Path], object]


TARGETS: dict[str, Target] = {}


def add(name: str, change: Change, seeds: list[Files] | Seeds) -> Callable[[Callable[[Path], object]], None]:
    """Register a reader of one kind of files."""
    given = seeds if callable(seeds) else lambda: seeds

    def known(read: Callable[[Path], object]) -> None:
        TARGETS[name] = Target(cache(given), partial(mutated, change=change), read)

    return known


def only(folder: Path) -> Path:
    """The one file of an input; a name that does not exist where there is none."""
    return next((path for path in sorted(folder.iterdir())), folder / "none")


def rank(rows: fr.Candidates) -> None:
    """Measure a ranking of the rows, as every command does sooner or later."""
    scores = np.arange(len(rows)) % 3
    for name in ("nDCG(dcg='exp-log2')@10", "AP"):
        fr.parse_measure(name).value(scores, rows)


@cache
def index() -> fr.Index:
    """A small index."""
    return fr.Index.build(
        [
            {"_id": "d1", "title": "Red shoes", "text": "Shoes that are red", "price": 9.5},
            {"_id": "d2", "title": "Blue sky", "text": "The sky, blue as ever", "price": 3},
        ]
    )


def build(folder: Path) -> None:
    """Index the documents, with links within them, and search."""
    fr.Index.build(only(folder)).search({"q": "red shoes"}, depth=3)


ROWS = fr.Candidates.of([2, 0, 1, 0, np.nan, 1], group=[3, 3], features=np.arange(12.0).reshape(6, 2) % 5)
"""A few rows to measure and to score."""
