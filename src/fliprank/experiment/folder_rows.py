"""The rows that belong to a folder of results: those of a file or, for judgements, rows from the folder's index."""

from __future__ import annotations

from pathlib import Path

from fliprank.data.candidates import Candidates
from fliprank.data.files import open_bytes
from fliprank.data.judgement_table import is_judgement_table
from fliprank.data.readers import read_candidates
from fliprank.errors import InputError
from fliprank.text.index import Index

__all__ = ["DEPTH", "index_in", "read_rows"]

DEPTH = 1000
"""Documents per query that are retrieved from an index, beside the judged ones."""


def index_in(place: Path) -> Index:
    """The index in a file, checked for damage; or the only index in a folder, such as `tune` writes."""
    if not place.is_dir():
        return Index.open(place, check=True)
    found = sorted(place.glob("*.index"))
    if len(found) != 1:
        names = ", ".join(path.name for path in found)
        message = f"the folder has {len(found)} indexes; name one: {names}" if found else "the folder has no index"
        raise InputError(message, path=place)
    return Index.open(found[0], check=True)


def read_rows(path: Path, folder: Path) -> Candidates:
    """The rows of a file; or, for judgements with the texts of queries, rows from the index of a tuning."""
    with open_bytes(path) as file:
        judged = is_judgement_table(file.readline(1 << 16))
    if not judged:
        return read_candidates(path)
    place = folder if any(folder.glob("*.index")) else folder.parent
    return index_in(place).candidates(path, path, depth=DEPTH)
