"""Judgements of OpenSearch's Search Relevance Workbench: JSON with the ratings of each query.

    {"judgmentRatings": [{"query": "red shoes", "ratings": [{"docId": "d1", "rating": "0.5"}]}]}

Ratings are strings or numbers on whatever scale people chose. The object may stand inside the answer of the index that
holds it (`_source`, `hits.hits`). Queries are known by their texts.

>>> found = judgements_of({"judgmentRatings": [{"query": "red shoes", "ratings": [{"docId": "d1", "rating": "0.5"}]}]})
>>> found.labels, found.texts
({'red_shoes': {'d1': 0.5}}, {'red_shoes': 'red shoes'})
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from fliprank.data.files import StrPath
from fliprank.data.json_files import read_json
from fliprank.data.judgement_table import JudgementTable, query_id
from fliprank.errors import InputError

__all__ = ["judgements_of", "read_judgement_json"]

HINT = 'expected {"judgmentRatings": [{"query": ..., "ratings": [{"docId": ..., "rating": ...}]}]}'


def read_judgement_json(path: StrPath) -> JudgementTable:
    """The judgements of a JSON file of the Search Relevance Workbench."""
    return judgements_of(read_json(path), path)


def judgements_of(content: Any, path: StrPath | None = None) -> JudgementTable:
    """The judgements in such JSON; those below 0 are none."""
    out = JudgementTable()
    for entry in _entries(content):
        text = entry.get("query") if isinstance(entry, Mapping) else None
        if not isinstance(text, str) or not text.split() or not isinstance(entry.get("ratings"), list):
            raise InputError(f"a query without text or ratings: {entry!r:.80}", path=path, hint=HINT)
        key = query_id(text)
        own = out.labels.setdefault(key, {})
        out.texts.setdefault(key, " ".join(text.split()))
        for rating in entry["ratings"]:
            docid = rating.get("docId", rating.get("docid")) if isinstance(rating, Mapping) else None
            if not isinstance(docid, str | int) or isinstance(docid, bool) or docid == "":
                raise InputError(f"a rating without docId: {rating!r:.80}", path=path, query=key, hint=HINT)
            label = _label(rating.get("rating"))
            if label is None:
                told = f"the rating {rating.get('rating')!r:.60} of document {docid} is not a finite number"
                raise InputError(told, path=path, query=key)
            if str(docid) in own:
                raise InputError(f"document {docid} occurs twice", path=path, query=key)
            if label >= 0:
                own[str(docid)] = label
    if not any(out.labels.values()):
        raise InputError("no ratings", path=path, hint=HINT)
    return out


def _entries(content: Any) -> Iterator[Any]:
    """The entries of judgmentRatings, wherever they are."""
    if isinstance(content, list):
        for each in content:
            yield from _entries(each)
    elif isinstance(content, Mapping) and isinstance(content.get("judgmentRatings"), list):
        yield from content["judgmentRatings"]
    elif isinstance(content, Mapping):
        for name in ("_source", "hits"):
            yield from _entries(content.get(name, []))


def _label(rating: Any) -> float | None:
    try:
        number = float(rating) if isinstance(rating, str | int | float) and not isinstance(rating, bool) else math.nan
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
