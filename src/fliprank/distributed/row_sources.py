"""Where the rows of a shard come from: a message, or files that the worker can read itself.

>>> rows = Candidates.of([1, 0], features=[[3.0], [1.0]])
>>> read_source({"rows": rows}) is rows
True
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fliprank.data.candidates import Candidates
from fliprank.data.row_file import SUFFIX, RowFile
from fliprank.errors import InputError

__all__ = ["read_source"]


def read_source(source: dict[str, Any]) -> Candidates:
    """The rows of a source: {"rows": the rows themselves} or {"file": path, "queries": (first, end) or None}."""
    if "rows" in source:
        rows: Candidates = source["rows"]
        return rows
    from fliprank.data.readers import read_candidates

    try:
        if source["file"].endswith(SUFFIX):
            file = RowFile(Path(source["file"]))
            return file.part(*(source["queries"] or (0, file.queries)))
        rows = read_candidates(source["file"])
    except InputError as error:
        raise InputError(f"{error}; a worker must see the file under the same name") from error
    first, end = source["queries"] or (0, rows.queries)
    return rows if (first, end) == (0, rows.queries) else rows.select(np.arange(first, end))
