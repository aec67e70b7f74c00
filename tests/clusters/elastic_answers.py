"""What Elasticsearch and OpenSearch answer, in the shapes of their documentation."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from cluster_server import Answer, Request, State
from lucene_index import LuceneIndex


def elastic(index: LuceneIndex, state: State, request: Request) -> Answer:
    path = request.path
    if path == "/":
        return 200, {"version": {"number": "9.1.0"}, "tagline": "You Know, for Search"}
    name, _, what = path.strip("/").partition("/")
    if name != "shop" and path != "/_msearch":
        return failed(state, 404, f"no such index [{name}]")
    if state.closed:
        return 400, error(400, "index_closed_exception", "closed")
    if path == "/_msearch":
        given = [json.loads(line) for line in request.body.splitlines()]
        return 200, {"responses": [search(index, state, each) for each in given[1::2]]}
    asked = json.loads(request.body or "{}")
    if what == "_mtermvectors":
        return 200, {"docs": [vectors(index, each) for each in asked["docs"]]}
    if what == "_analyze":
        return 200, {"tokens": [{"token": word} for word in asked["text"].lower().split()]}
    own = {"type": state.similarity, "k1": str(index.k), "b": str(index.b)}
    mapping = {field: {"type": "text", "similarity": "own" if field == "title" else "usual"} for field in index.fields}
    if state.analyzer:
        mapping["title"]["analyzer"] = state.analyzer
    similarity = {"own": own, "usual": own | {"type": "BM25"}}
    settings = {"index": {"number_of_shards": str(state.shards), "similarity": similarity}}
    return 200, {"shop": {"mappings": {"properties": mapping}, "settings": settings}}


def search(index: LuceneIndex, state: State, request: dict[str, Any]) -> dict[str, Any]:
    query = request["query"]
    if "multi_match" in query:
        match = query["multi_match"]
        boosts = {name: float(boost or 1) for name, _, boost in (each.partition("^") for each in match["fields"])}
    else:
        [(name, match)] = query["match"].items()
        boosts = {name: 1.0}
    found = index.search(state.engine, match["query"].lower().split(), boosts, request.get("size", 10))
    hits: list[dict[str, Any]] = [{"_id": docid, "_score": score} for docid, score in found.items()]
    if request.get("sort") == "_id":  # then there are no scores
        hits = [{"_id": docid, "_score": None} for docid in sorted(found)]
    partial, failed_shards = state.take("partial"), int(state.take("failed_shards"))
    shards: dict[str, Any] = {"total": 5, "successful": 5 - failed_shards, "skipped": 0, "failed": failed_shards}
    if failed_shards:
        shards["failures"] = [{"shard": 1, "reason": {"type": "node_not_connected_exception", "reason": "gone"}}]
    return {"status": 200, "timed_out": partial, "_shards": shards, "hits": {"total": {"value": 9}, "hits": hits}}


def vectors(index: LuceneIndex, wanted: dict[str, Any]) -> dict[str, Any]:
    docid, out = wanted["_id"], {}
    if docid not in index.documents:
        return {"_id": docid, "found": False}
    for name in wanted["fields"]:
        words, counts = np.unique(index.documents[docid].get(name, "").split(), return_counts=True)
        if not len(words):
            continue
        pairs = zip(map(str, words), map(int, counts), strict=True)
        terms = {
            word: {"term_freq": tf, "doc_freq": index.df(name, word), "ttf": index.occurrences(name, word)}
            for word, tf in pairs
        }
        statistics = {"doc_count": index.count(name), "sum_ttf": index.tokens(name)}
        out[name] = {"field_statistics": statistics, "terms": terms}
    return {"_id": docid, "found": True, "term_vectors": out}


def failed(state: State, status: int, said: str) -> Answer:
    kinds = {404: "index_not_found_exception", 429: "es_rejected_execution_exception", 401: "security_exception"}
    return status, error(status, kinds.get(status, "illegal_argument_exception"), said)


def error(status: int, kind: str, reason: str) -> dict[str, Any]:
    cause = {"type": kind, "reason": reason}
    return {"error": {"root_cause": [cause], **cause}, "status": status}
