"""Candidates from a file of any kind that holds them, known by its name."""

from __future__ import annotations

from fliprank.checked import checked
from fliprank.data.candidates import Candidates
from fliprank.data.files import StrPath, resolve
from fliprank.data.letor import read_letor
from fliprank.data.parquet import read_parquet
from fliprank.data.term_statistics_jsonl import read_statistics

__all__ = ["read_candidates"]


@checked
def read_candidates(path: StrPath, n_features: int | None = None) -> Candidates:
    """Parquet by .parquet, term statistics by .jsonl (or .jsonl.gz), LETOR otherwise, of `n_features` if given."""
    name = resolve(path).name.removesuffix(".gz")
    if name.endswith(".parquet"):
        return read_parquet(path)
    return read_statistics(path) if name.endswith(".jsonl") else read_letor(path, n_features=n_features)
