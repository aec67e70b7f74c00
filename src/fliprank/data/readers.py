"""Candidates from a file of any kind that holds them, known by its name."""

from __future__ import annotations

from fliprank.checked import checked
from fliprank.data.candidates import Candidates
from fliprank.data.files import StrPath, resolve
from fliprank.data.letor import read_letor
from fliprank.data.memory import DEFAULT_MEMORY
from fliprank.data.open_rows import is_shards, open_rows
from fliprank.data.parquet import read_parquet
from fliprank.data.scattered import ScatteredRows
from fliprank.data.term_statistics_jsonl import read_statistics

__all__ = ["read_candidates", "read_or_open"]


@checked
def read_candidates(path: StrPath, n_features: int | None = None) -> Candidates:
    """Parquet by .parquet, term statistics by .jsonl (or .jsonl.gz), LETOR otherwise, of `n_features` if given."""
    name = resolve(path).name.removesuffix(".gz")
    if name.endswith(".parquet"):
        return read_parquet(path)
    return read_statistics(path) if name.endswith(".jsonl") else read_letor(path, n_features=n_features)


def read_or_open(path: StrPath, n_features: int | None = None, memory: str | None = None) -> Candidates | ScatteredRows:
    """Rows in memory; or in files, where the path names shards, or `memory` says how much may be held at once."""
    if memory is None and not is_shards(path):
        return read_candidates(path, n_features)
    return open_rows(path, memory or DEFAULT_MEMORY, n_features=n_features)
