"""Ranked lists as engines answer: JSON of Elasticsearch, OpenSearch, Qdrant, Weaviate, Solr and Vespa; or a table.

A response says nothing of its query. So a file holds {query id: response}, or one object per line (or in a list) with
a key query_id, qid or query beside the response or beside its keys, or the answer of `_msearch` with the ids of the
queries in "queries"; a folder holds a file per query, named by its id. Tables have the columns query, docid, score.

>>> responses = {"q1": {"hits": {"hits": [{"_id": "a", "_score": 7.5}, {"_id": "b", "_score": 3.0}]}}}
>>> qdrant = {"query": "red shoes", "result": {"points": [{"id": 12, "score": 0.8}]}}
>>> lists_of(responses), lists_of([qdrant])
({'q1': {'a': 7.5, 'b': 3.0}}, {'red_shoes': {'12': 0.8}})
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fliprank.data.files import StrPath
from fliprank.data.json_files import read_json
from fliprank.data.judgement_table import DOCUMENTS, QUERIES, QUERY_IDS, query_id
from fliprank.data.tables import header_of, open_table
from fliprank.errors import InputError

__all__ = ["is_score_table", "lists_of", "read_responses", "read_score_table"]

SCORES = ("score", "_score", "similarity", "relevance")
HINT = "a file of responses holds {query id: response}, or objects with a query_id beside the response"

Lists = dict[str, dict[str, float]]


def read_responses(path: StrPath) -> Lists:
    """Scores by query and document, from a file of responses, or from a folder with a file for each query."""
    source = Path(path)
    if not source.is_dir():
        return lists_of(read_json(source), source)
    files = sorted(file for file in source.iterdir() if file.suffix == ".json")
    if not files:
        raise InputError(
            "a folder without .json files", path=source, hint="one response per query, named QUERY_ID.json"
        )
    return {file.stem: _scores(read_json(file), file, file.stem) for file in files}


def lists_of(content: Any, path: StrPath | None = None) -> Lists:
    """Scores by query and document, from what a file of responses says."""
    out: Lists = {}
    for qid, response in _by_query(content, path):
        if qid in out:
            raise InputError("the query has two responses", path=path, query=qid)
        out[qid] = _scores(response, path, qid)
    if not out:
        raise InputError("no responses", path=path, hint=HINT)
    return out


def _by_query(content: Any, path: StrPath | None) -> Iterator[tuple[str, Any]]:
    """Pairs of query id and response."""
    if isinstance(content, Mapping) and isinstance(content.get("responses"), list):
        ids, responses = content.get("queries"), content["responses"]
        if not isinstance(ids, list) or len(ids) != len(responses):
            hint = 'add their ids, in the order of the responses: "queries": ["q1", "q2", ...]'
            raise InputError(f"{len(responses)} responses, and no ids of their queries", path=path, hint=hint)
        yield from zip(map(str, ids), responses, strict=True)
    elif isinstance(content, Mapping) and (qid := _query_of(content)) is not None:
        yield qid, content.get("response", content)
    elif isinstance(content, Mapping):
        if _hits(content) is not None:
            raise InputError("a response that does not say which query it answers", path=path, hint=HINT)
        yield from ((str(name), response) for name, response in content.items())
    elif isinstance(content, list):
        for number, record in enumerate(content, 1):
            if not isinstance(record, Mapping) or (qid := _query_of(record)) is None:
                raise InputError(f"response {number} has no query_id, qid or query", path=path, hint=HINT)
            yield qid, record.get("response", record)
    else:
        raise InputError(f"responses were expected, not {type(content).__name__}", path=path, hint=HINT)


def _query_of(record: Mapping[str, Any]) -> str | None:
    for name in QUERY_IDS:
        if isinstance(record.get(name), str | int):
            return str(record[name])
    return query_id(record["query"]) if isinstance(record.get("query"), str) else None


def _scores(response: Any, path: StrPath | None, query: str) -> dict[str, float]:
    """The score of each document of one response."""
    hits = _hits(response)
    if hits is None:
        hint = "known are hits.hits (Elasticsearch, OpenSearch), result or points (Qdrant), data.Get or objects "
        hint += "(Weaviate), response.docs (Solr), root.children (Vespa)"
        raise InputError("not a response of an engine that is known", path=path, query=query, hint=hint)
    out: dict[str, float] = {}
    for docid, score in hits:
        if docid is None or isinstance(docid, dict | list | bool):
            raise InputError("a hit without an id", path=path, query=query)
        number = _number(score)
        if number is None:
            told = f"document {docid} has the score {score!r:.60}, which is not a finite number"
            raise InputError(told, path=path, query=query, hint="a search sorted by a field has no scores")
        if str(docid) in out:
            raise InputError(f"document {docid} occurs twice", path=path, query=query)
        out[str(docid)] = number
    return out


def _number(score: Any) -> float | None:
    """The score as a number; Weaviate writes them as strings."""
    if isinstance(score, bool) or not isinstance(score, str | int | float):
        return None
    try:
        number = float(score)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _inside(content: Any, *names: str) -> Any:
    for name in names:
        content = content.get(name) if isinstance(content, Mapping) else None
    return content


def _weaviate(hit: Mapping[str, Any]) -> tuple[Any, Any]:
    """Of the scores that a query may ask for: the fused one, then certainty, then distance, which is turned."""
    told = hit.get("_additional") or hit.get("metadata") or {}
    for name in ("score", "certainty"):
        if _inside(told, name) is not None:
            return hit.get("uuid", hit.get("id", _inside(told, "id"))), told[name]
    distance = _number(_inside(told, "distance"))
    return hit.get("uuid", hit.get("id", _inside(told, "id"))), None if distance is None else -distance


def _by(docid: str, score: str) -> Callable[[Mapping[str, Any]], tuple[Any, Any]]:
    return lambda hit: (hit.get(docid), hit.get(score))


SHAPES: tuple[tuple[tuple[str, ...], Callable[[Mapping[str, Any]], tuple[Any, Any]]], ...] = (
    (("hits", "hits"), _by("_id", "_score")),
    (("result", "points"), _by("id", "score")),
    (("result",), _by("id", "score")),
    (("points",), _by("id", "score")),
    (("response", "docs"), _by("id", "score")),
    (("root", "children"), _by("id", "relevance")),
    (("objects",), _weaviate),
)
"""Where the hits of a response are, and how id and score are read from a hit."""


def _hits(response: Any) -> list[tuple[Any, Any]] | None:
    """Ids and scores of the hits; None where this is not a response that is known."""
    for names, read in SHAPES:
        if isinstance(found := _inside(response, *names), list):
            return [read(hit) if isinstance(hit, Mapping) else (None, None) for hit in found]
    if isinstance(_inside(response, "root"), Mapping):  # Vespa leaves the children out where nothing matches
        return []
    classes = _inside(response, "data", "Get")
    if isinstance(classes, Mapping) and len(classes) == 1:
        (hits,) = classes.values()
        return [_weaviate(hit) if isinstance(hit, Mapping) else (None, None) for hit in hits or ()]
    return None


def _column(header: Sequence[str], choices: Sequence[str]) -> int | None:
    names = ["_".join(name.lower().split()) for name in header]
    return next((names.index(name) for name in choices if name in names), None)


def _fits(header: Sequence[str]) -> bool:
    return all(_column(header, names) is not None for names in (DOCUMENTS, (*QUERIES, *QUERY_IDS), SCORES))


def is_score_table(first: bytes) -> bool:
    """Whether the first line of a file is the header of a table of scores."""
    return header_of(first, _fits) is not None


def read_score_table(path: StrPath) -> Lists:
    """Scores by query and document, from a CSV or TSV with the columns query (or query_id), docid and score."""
    table, out = open_table(path, _fits), Lists()
    query, qid, document, score = (_column(table.header, each) for each in (QUERIES, QUERY_IDS, DOCUMENTS, SCORES))
    for line, cells in table.records():
        key = cells[qid].strip() if qid is not None else query_id(cells[query or 0])
        docid, number = cells[document or 0].strip(), _number(cells[score or 0].strip())
        if not key or not docid:
            raise InputError(f"a score without a {'document' if key else 'query'}", path=path, line=line)
        if number is None:
            told = f"the score {cells[score or 0][:60]!r} is not a finite number"
            raise InputError(told, path=path, line=line, query=key)
        if docid in out.setdefault(key, {}):
            raise InputError(f"document {docid} occurs twice", path=path, line=line, query=key)
        out[key][docid] = number
    if not out:
        raise InputError("no scores", path=path, hint="the header is query,docid,score")
    return out
