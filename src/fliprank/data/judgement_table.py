"""Judgements as people keep them: a table with the columns query, docid and rating, as Quepid exports it.

One column per rater is read as the mean of those who rated, and how far they agree is told. A cell that is empty, or
below 0, is not a rating. Queries are known by their texts: `query_id` makes an id of each.

>>> import tempfile, pathlib
>>> path = pathlib.Path(tempfile.mkdtemp()) / "judgements.csv"
>>> _ = path.write_text("query,docid,rating_anna,rating_ben\\nred shoes,d1,3,2\\nred shoes,d2,,0\\nsky,d1,1,1\\n")
>>> found = read_judgement_table(path)
>>> found.labels, found.texts
({'red_shoes': {'d1': 2.5, 'd2': 0.0}, 'sky': {'d1': 1.0}}, {'red_shoes': 'red shoes', 'sky': 'sky'})
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fliprank.arrays import Matrix
from fliprank.data.files import StrPath
from fliprank.data.tables import Table, header_of, open_table
from fliprank.errors import InputError

__all__ = ["JudgementTable", "alpha", "is_judgement_table", "query_id", "read_judgement_table"]

QUERIES = ("query", "query_text", "querytext")
QUERY_IDS = ("qid", "query_id", "queryid")
DOCUMENTS = ("docid", "doc_id", "document_id", "docno")
RATINGS = ("rating", "label", "grade", "relevance", "judgement", "judgment")
PREFIX = "rating"
"""Columns that begin so are those of raters; where none does, all columns beside query and document are."""
HINT = "the header is query,docid,rating, or query,docid,rating_anna,rating_ben,..."


@dataclass(frozen=True)
class JudgementTable:
    """Labels by query id and document id, the text of each query (if the table has them), and what is to be told."""

    labels: dict[str, dict[str, float]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def query_id(text: str) -> str:
    """The id of a query that is known by its text alone: the same text has the same id in every file, others another.

    Words are joined by underscores, whatever white space parts them. An underscore, a percent sign and what can't be
    printed are written as in addresses of the web.

    >>> query_id(" red  shoes"), query_id("red_shoes"), query_id("100% wool")
    ('red_shoes', 'red%5Fshoes', '100%25_wool')
    """
    return "_".join("".join(map(_escaped, word)) for word in text.split())


def _escaped(character: str) -> str:
    if character.isprintable() and character not in "%_":
        return character
    return "".join(f"%{byte:02X}" for byte in character.encode())


def is_judgement_table(first: bytes) -> bool:
    """Whether the first line of a file is the header of such a table."""
    return header_of(first, _fits) is not None


def read_judgement_table(path: StrPath) -> JudgementTable:
    """Read a table of judgements; a document may occur once in a query."""
    table = open_table(path, _fits)
    names = _normal(table.header)
    query, qid, document = (_find(names, choices) for choices in (QUERIES, QUERY_IDS, DOCUMENTS))
    raters = _raters(table, [column for column in (query, qid, document) if column is not None])
    out, ratings, unrated = JudgementTable(), list[list[float]](), 0
    lines: dict[tuple[str, str], int] = {}
    for line, cells in table.records():
        given = [_rating(table, line, cells[column]) for column in raters]
        rated = [rating for rating in given if rating == rating]
        if not rated:
            unrated += 1
            continue
        text = "" if query is None else " ".join(cells[query].split())
        key = query_id(text) if qid is None else cells[qid].strip()
        docid = "" if document is None else cells[document].strip()
        if not key or not docid or (query is not None and not text):
            raise InputError(f"a rating without a {'document' if key and text else 'query'}", path=path, line=line)
        if (before := lines.setdefault((key, docid), line)) < line:
            hint = f"first on line {before}; ratings by several people stand in one line, in one column each"
            raise InputError(f"document {docid} occurs twice", path=path, line=line, query=key, hint=hint)
        if query is not None and out.texts.setdefault(key, text) != text:
            message = f"the query is {text!r:.80} here, and {out.texts[key]!r:.80} before"
            raise InputError(message, path=path, line=line, query=key)
        out.labels.setdefault(key, {})[docid] = math.fsum(rated) / len(rated)
        ratings.append(given)
    if not ratings:
        raise InputError("no ratings", path=path, hint=HINT)
    notes = [f"{unrated:,} of {unrated + len(ratings):,} lines have no rating and were left out"] if unrated else []
    return JudgementTable(out.labels, out.texts, (*notes, *_agreement(np.array(ratings))))


def _normal(header: Sequence[str]) -> list[str]:
    return ["_".join(name.lower().split()) for name in header]


def _find(names: Sequence[str], choices: Sequence[str]) -> int | None:
    return next((names.index(name) for name in choices if name in names), None)


def _fits(header: Sequence[str]) -> bool:
    names = _normal(header)
    return _find(names, DOCUMENTS) is not None and _find(names, (*QUERIES, *QUERY_IDS)) is not None


def _raters(table: Table, others: Sequence[int]) -> list[int]:
    """The columns that hold ratings."""
    names = _normal(table.header)
    if (only := _find(names, RATINGS)) is not None:
        return [only]
    free = [column for column, name in enumerate(names) if name and column not in others]
    found = [column for column in free if names[column].startswith(PREFIX)] or free
    if not found:
        raise InputError("no column of ratings", path=table.path, line=1, hint=HINT)
    return found


def _rating(table: Table, line: int, cell: str) -> float:
    """The number in a cell; NaN if it is empty or below 0."""
    text = cell.strip()
    if not text:
        return math.nan
    try:
        number = float(text.replace(",", ".") if table.separator == ";" else text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or "_" in text:
        raise InputError(f"the rating {text[:60]!r} is not a finite number", path=table.path, line=line, hint=HINT)
    return number if number >= 0 else math.nan


def _agreement(ratings: Matrix) -> list[str]:
    """A note on how far the raters agree, where some documents were rated by more than one."""
    if ratings.shape[1] < 2:
        return []
    both = (~np.isnan(ratings)).sum(axis=1) > 1
    what = f"the labels are means of {ratings.shape[1]} raters"
    if not both.any():
        return [f"{what}, who rated no document twice: their agreement is not known"]
    several = f"{int(both.sum()):,} of {len(ratings):,} documents were rated by more than one of them"
    found = alpha(ratings)
    agreement = "all ratings are the same" if found != found else f"Krippendorff's alpha {found:.2f} (interval)"
    return [f"{what}; {several}, who gave the same rating in {same_share(ratings):.0%} of pairs; {agreement}"]


def alpha(ratings: Matrix) -> float:
    """Krippendorff's alpha for differences of ratings, one row per document, NaN where a rater did not rate.

    1 less the mean squared difference of two ratings of one document, over that of any two ratings: 1 is agreement, 0
    is chance. NaN if all ratings are the same.

    >>> round(alpha(np.array([[1, 1], [2, 2], [3, 3], [1, 2]])), 3)
    0.821
    """
    count = (~np.isnan(ratings)).sum(axis=1)
    rows, sizes = ratings[count > 1], count[count > 1]
    values = rows[~np.isnan(rows)]
    within = 2 * sizes * np.nanvar(rows, axis=1) * sizes  # the squared differences of all ordered pairs
    observed = (within / (sizes - 1)).sum() / len(values)
    expected = 2 * len(values) * values.var() / (len(values) - 1)
    return float(1 - observed / expected) if expected > 0 else math.nan


def same_share(ratings: Matrix) -> float:
    """The share of pairs of ratings of one document that are the same."""
    pairs = [(a, b) for b in range(ratings.shape[1]) for a in range(b)]
    known = sum(int((~np.isnan(ratings[:, a] - ratings[:, b])).sum()) for a, b in pairs)
    return sum(int((ratings[:, a] == ratings[:, b]).sum()) for a, b in pairs) / known
