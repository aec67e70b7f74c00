"""What moved, as records for programs: JSON objects by query, and rows of tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import polars as pl

from fliprank.experiment.query_diff import Moved, QueryDiff

__all__ = ["RECORDS", "query_record"]

Row = tuple[Any, ...]


def query_record(query: QueryDiff) -> dict[str, Any]:
    """One query as a JSON object."""
    flips = None if query.flips is None else [flip._asdict() for flip in query.flips]
    return {
        "query": query.qid,
        "text": query.text,
        "before": query.before,
        "after": query.after,
        "change": query.change,
        "overlap": query.overlap,
        "documents": [_document(each) for each in query.documents],
        "flips": flips,
    }


def _document(each: Moved) -> dict[str, Any]:
    because = [
        {"field": r.part.field, "term": r.part.term, "of": r.part.of, "before": r.before, "after": r.after}
        for r in each.because
    ]
    sums = [
        {"field": part.field, "term": part.term, "of": part.of, "before": before, "after": after}
        for part, before, after in each.sums
    ]
    return {
        "document": each.docid,
        "title": each.title,
        "label": each.label,
        "rank_before": each.before,
        "rank_after": each.after,
        "score_before": each.score_before,
        "score_after": each.score_after,
        "gain": each.gain,
        "because": because,
        "contributions": sums,
    }


def _documents(query: QueryDiff) -> Iterator[Row]:
    about = (query.qid, query.text, query.before, query.after, query.change, query.overlap)
    for each in query.documents:
        own = (each.docid, each.title, each.label, each.before, each.after, each.score_before, each.score_after)
        yield (*about, *own, each.gain, str(each.because[0].part) if each.because else "")


def _flips(query: QueryDiff) -> Iterator[Row]:
    for flip in query.flips or ():
        yield (query.qid, *flip)


def _queries(query: QueryDiff) -> Iterator[Row]:
    moved = sum(each.moved for each in query.documents)
    yield (query.qid, query.text, query.before, query.after, query.change, query.overlap, moved)


_QUERY: dict[str, Any] = {"query": pl.String, "text": pl.String, "before": pl.Float64, "after": pl.Float64}
_QUERY |= {"change": pl.Float64, "overlap": pl.Float64}
_RANKS: dict[str, Any] = {"document": pl.String, "title": pl.String, "label": pl.Float64, "rank_before": pl.Int64}
_RANKS |= {"rank_after": pl.Int64, "score_before": pl.Float64, "score_after": pl.Float64, "gain": pl.Float64}
_FLIPS: dict[str, Any] = {"query": pl.String, "up": pl.String, "down": pl.String, "up_label": pl.Float64}
_FLIPS |= {"down_label": pl.Float64, "rank": pl.Int64, "worth": pl.Float64}

RECORDS: dict[str, tuple[Callable[[QueryDiff], Iterator[Row]], dict[str, Any]]] = {
    "documents": (_documents, {**_QUERY, **_RANKS, "because": pl.String}),
    "flips": (_flips, _FLIPS),
    "queries": (_queries, {**_QUERY, "moved": pl.Int64}),
}
"""The tables that there are: what makes their rows, and the type of each column."""
