"""The collection that ships with the package: a help centre of a product that does not exist (collection/README.md)."""

from __future__ import annotations

from pathlib import Path

__all__ = ["RUNS", "collection"]

RUNS = ("body", "flat", "title")
"""Runs that come with the collection, by SQLite FTS5: body alone, all fields alike, title and link text first."""


def collection() -> Path:
    """The folder of the built-in collection, in BEIR's layout, with some runs in `runs/`.

    >>> sorted(path.name for path in collection().glob("qrels/*"))
    ['test.tsv', 'train.tsv']
    """
    return Path(__file__).parent / "collection"
