"""What links say about their targets (link text as a field, PageRank as a column), and what urls say.

PageRank is the stationary distribution of a reader who follows a link of the current page with probability `damping`,
and otherwise, or if the page has no links, goes to any page. Links from a page to itself do not count, and repeated
links count once.

>>> pagerank(np.array([0, 1, 2]), np.array([1, 2, 1]), 3).round(3).tolist()
[0.05, 0.486, 0.464]
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import polars as pl

from fliprank.arrays import Floats, Ints
from fliprank.data.files import StrPath, open_bytes, read_bytes
from fliprank.data.json_files import json_objects
from fliprank.errors import InputError, UsageError

__all__ = ["pagerank", "read_links", "url_columns"]


def pagerank(source: Ints, target: Ints, documents: int, damping: float = 0.85, tolerance: float = 1e-10) -> Floats:
    """The PageRank of each document, summing to 1; the total error is at most `tolerance`."""
    from scipy.sparse import coo_array

    if not 0 < damping < 1:
        raise UsageError(f"damping must be between 0 and 1, not {damping}")
    if documents == 0:
        return np.empty(0)
    edges = np.unique(source * documents + target)
    source, target = edges // documents, edges % documents
    source, target = source[source != target], target[source != target]
    out = np.bincount(source, minlength=documents)
    share = damping / out[source]
    step = coo_array((share, (target, source)), (documents, documents)).tocsr()
    rank = np.full(documents, 1.0 / documents)
    for _ in range(int(-40.0 / np.log(damping)) + 2):  # each step reduces the error by the factor `damping`
        spread = (1.0 - damping + damping * rank[out == 0].sum()) / documents
        new = step @ rank + spread
        new /= new.sum()
        if np.abs(new - rank).sum() < tolerance * (1.0 - damping):
            return np.asarray(new)
        rank = new
    return rank


def read_links(path: StrPath, pair: tuple[str, str] = ("target", "text")) -> pl.DataFrame:
    """A file of links as a frame of strings: `target`, and `source` and `text` where the file has them.

    JSON lines with these keys; or tab-separated lines: two columns are `pair`, three are source, target, text, unless a
    header with these names says otherwise.
    """
    with open_bytes(path) as file:
        start = file.read(1 << 12).removeprefix(b"\xef\xbb\xbf")
    return _json_links(path) if start.lstrip().startswith(b"{") else _table_links(path, pair)


def _json_links(path: StrPath) -> pl.DataFrame:
    rows = []
    for line, record in json_objects(path):
        row = {name: record.get(name) for name in ("source", "target", "text")}
        if not isinstance(row["target"], str | int):
            raise InputError("a link without a target", path=path, line=line, hint='{"target": "d1", "text": "..."}')
        if isinstance(row["text"], list) and all(isinstance(each, str) for each in row["text"]):
            row["text"] = "\n".join(row["text"])  # as in a field
        if wrong := next((name for name in row if isinstance(row[name], list | dict)), None):
            raise InputError(f"the {wrong} of a link is not text: {row[wrong]!r:.60}", path=path, line=line)
        rows.append({name: value if value is None else str(value) for name, value in row.items()})
        try:
            "".join(value for value in rows[-1].values() if value).encode()
        except UnicodeEncodeError:
            raise InputError("not valid text: half of a surrogate pair", path=path, line=line) from None
    return _known(pl.DataFrame(rows, {"source": pl.String, "target": pl.String, "text": pl.String}))


def _table_links(path: StrPath, pair: tuple[str, str]) -> pl.DataFrame:
    data = read_bytes(path).tobytes().removeprefix(b"\xef\xbb\xbf")
    first = data[: data.index(b"\n")].decode().rstrip("\r").split("\t")
    header = "target" in first and set(first) <= {"source", "target", "text"}
    names = first if header else {2: list(pair), 3: ["source", "target", "text"]}.get(len(first))
    if names is None:
        hint = f"a line is: {', '.join(pair)}; or source, target, text; separated by tabs"
        raise InputError(f"{len(first)} columns", path=path, line=1, hint=hint)
    for number, text in enumerate(data.split(b"\n"), 1) if _uneven(data, len(names)) else ():
        if text.strip() and text.count(b"\t") != len(names) - 1:
            raise InputError(f"{text.count(bytes([9])) + 1} columns, not {len(names)}", path=path, line=number)
    options: dict[str, Any] = {"separator": "\t", "quote_char": None, "infer_schema": False}
    try:
        frame = pl.read_csv(io.BytesIO(data), has_header=header, new_columns=names, **options)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise InputError(f"can't be read as tab-separated lines: {error}", path=path) from error
    frame = frame.filter(pl.any_horizontal(pl.all().is_not_null()))
    if frame["target"].has_nulls():
        raise InputError("a link without a target", path=path)
    return _known(frame)


def _uneven(data: bytes, columns: int) -> bool:
    """Whether some line may have a different number of columns."""
    lines = pl.Series([data.decode()]).str.split("\n").explode().str.strip_chars("\r")
    tabs = lines.filter(lines != "").str.count_matches("\t", literal=True)
    return bool((tabs != columns - 1).any())


def _known(frame: pl.DataFrame) -> pl.DataFrame:
    """Only the columns that are not empty."""
    return frame.select([name for name in frame.columns if frame[name].null_count() < len(frame)])


def url_columns(urls: pl.Series) -> dict[str, Any]:
    """Columns from urls: how deep below its host a page is, and how long its url is.

    >>> {k: v.to_list() for k, v in url_columns(pl.Series(["https://a.org/b/c.html", "/help/", None])).items()}
    {'url_depth': [2.0, 1.0, 0.0], 'url_length': [22.0, 6.0, 0.0]}
    """
    given = urls.fill_null("")
    path = given.str.replace(r"^(\w+:)?//[^/]*|^[^/?#]*\.[^/?#]*", "").str.replace(r"[?#].*$", "")
    depth = path.str.extract_all(r"[^/]+").list.len()
    return {"url_depth": depth.cast(pl.Float64), "url_length": given.str.len_chars().cast(pl.Float64)}
