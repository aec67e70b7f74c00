"""What Vespa answers, in the shapes of its reference; bm25 is its documented formula over the counts of Lucene."""

from __future__ import annotations

import json
import re
from math import log
from typing import Any

from cluster_server import Answer, Request, State
from lucene_index import LuceneIndex

MOST = 400
NOWHERE = 1_000_000
"""The length of a field that no term of the query is in."""


def vespa(index: LuceneIndex, state: State, request: Request) -> Answer:
    if request.path != "/search/":
        return 404, {"message": "not found"}
    if state.closed:
        return failed(state, 503, "No backends in service. Try later")
    asked = json.loads(request.body)
    if asked["model.restrict"] != "shop":
        return failed(state, 400, f"'{asked['model.restrict']}' is not a valid document type")
    profile = asked.get("ranking", "default")
    if profile not in state.profiles:
        return failed(state, 400, f"schema 'shop' does not contain requested rank profile '{profile}'")
    if asked["hits"] > MOST:
        return failed(state, 400, f"{asked['hits']} hits requested, configured limit: {MOST}.")
    query = re.fullmatch(r"select (\S+) from sources \* where (.*)", asked["yql"])
    assert query, asked["yql"]
    words, wanted = parsed(index, query[2], asked)
    if unknown := [field for field, _ in words if field not in index.fields]:
        return failed(state, 400, f"Field '{unknown[0]}' does not exist.")
    found = dict.fromkeys(index.documents, 0.0) if words is ALL else {}
    for field, word in words:
        for docid in index.posting(field, word):
            found[docid] = found.get(docid, 0.0) + score(index, state, field, word, docid)
    if wanted is not None:
        found = {docid: value for docid, value in found.items() if docid in wanted}
    first = asked.get("offset", 0)
    best = sorted(found, key=lambda docid: -found[docid])[first : first + asked["hits"]]
    root: dict[str, Any] = {"id": "toplevel", "relevance": 1.0, "fields": {"totalCount": len(found)}}
    partial = state.take("partial")
    root["coverage"] = {"coverage": 60 if partial else 100, "full": not partial, "nodes": state.shards}
    if partial:
        root["coverage"]["degraded"] = {"timeout": True}
    if best:
        root["children"] = [hit(index, state, docid, found[docid], words, query[1]) for docid in best]
    return 200, {"root": root}


ALL: list[tuple[str, str]] = []
"""The words of `where true`."""


def parsed(index: LuceneIndex, where: str, asked: dict[str, Any]) -> tuple[list[tuple[str, str]], set[str] | None]:
    """(field, word) of each term, and the ids that there is a filter of."""
    limits = re.search(r"(?: and )?\(\{filter: true, ranked: false\}id in \((.*)\)\)$", where)
    wanted = None if limits is None else set(json.loads(f"[{limits[1]}]"))
    rest = where if limits is None else where[: limits.start()]
    if rest in ("true", ""):
        return ALL, wanted
    if rest == "false":
        return [], wanted
    if given := re.fullmatch(r'\{grammar: "any", defaultIndex: "(\w+)"\}userInput\(@(\w+)\)', rest):
        return [(given[1], word) for word in asked[given[2]].lower().split()], wanted
    terms = [re.fullmatch(r'(\w+) contains "(\w+)"', each) for each in rest.split(" or ")]
    return [(each[1], each[2]) for each in terms if each], wanted


def score(index: LuceneIndex, state: State, field: str, word: str, docid: str) -> float:
    tf, length = index.posting(field, word)[docid], index.lengths[field, docid]
    k, b = state.bm25.get(field, (index.k, index.b))
    n, documents = index.df(field, word), len(index.documents)
    average = index.tokens(field) / index.count(field)
    idf = log(1 + (documents - n + 0.5) / (n + 0.5))
    return idf * tf * (k + 1) / (tf + k * (1 - b + b * length / average))


def hit(
    index: LuceneIndex, state: State, docid: str, relevance: float, words: list[tuple[str, str]], selected: str
) -> dict[str, Any]:
    features = {}
    for field in index.fields:
        own = [word for name, word in words if name == field and docid in index.posting(field, word)]
        features[f"bm25({field})"] = sum(score(index, state, field, word, docid) for word in own)
        features[f"fieldLength({field})"] = float(index.lengths[field, docid] if own else NOWHERE)
        first = words[0] if words else ("", "")
        tf = index.posting(field, first[1]).get(docid, 0) if first[0] == field else 0
        features[f"fieldTermMatch({field},0).occurrences"] = float(tf)
    fields: dict[str, Any] = {"matchfeatures": features, "sddocname": "shop"}
    if selected == "id":
        fields["id"] = docid
    return {"id": f"id:shop:shop::{docid}", "relevance": relevance, "source": "content", "fields": fields}


def failed(state: State, status: int, said: str) -> Answer:
    codes = {400: (4, "Invalid query parameter"), 503: (0, "No backends in service. Try later"), 504: (12, "Timed out")}
    code, summary = codes.get(status, (5, "Unspecified error"))
    error = {"code": code, "summary": summary, "source": "content", "message": said}
    return status, {"root": {"id": "toplevel", "relevance": 1.0, "fields": {"totalCount": 0}, "errors": [error]}}
