"""What Solr answers, in the shapes of its reference guide; explanations are Lucene's own."""

from __future__ import annotations

import json
import re
from typing import Any

from cluster_server import Answer, Request, State
from lucene_index import LuceneIndex

CUT = {"tokenizer": {"class": "solr.WhitespaceTokenizerFactory"}, "filters": [{"class": "solr.LowerCaseFilterFactory"}]}


def solr(index: LuceneIndex, state: State, request: Request) -> Answer:
    solr_path, name, what = ([*request.path.strip("/").split("/", 2), "", ""])[:3]
    if solr_path != "solr" or name != "shop":
        return 404, "<html><head><title>Error 404 Not Found</title></head><body>no such collection</body></html>"
    if state.closed:
        return failed(state, 500, f"SolrCore '{name}' is not available due to init failure: closed")
    header: dict[str, Any] = {"responseHeader": {"status": 0, "QTime": 1}}
    params = request.params
    if what == "admin/system":
        return 200, {**header, "lucene": {"solr-spec-version": "9.7.0"}}
    if what == "schema":
        return 200, {**header, "schema": schema(index, state)}
    if what == "analysis/field":
        tokens = [{"text": word, "type": "word"} for word in params["analysis.query"].split()]
        lower = [{**token, "text": token["text"].lower()} for token in tokens]
        steps = ["org.apache.lucene.analysis.core.WhitespaceTokenizer", tokens, "LowerCaseFilter", lower]
        names = {params["analysis.fieldname"]: {"query": steps}}
        return 200, {**header, "analysis": {"field_types": {}, "field_names": names}}
    assert what == "select", request.path
    if state.take("partial"):
        header["responseHeader"]["partialResults"] = True
    try:
        return 200, {**header, **select(index, state, params)}
    except KeyError as missing:
        return failed(state, 400, f"undefined field {missing}")


def select(index: LuceneIndex, state: State, params: dict[str, str]) -> dict[str, Any]:
    asked = json.loads(params["json"]) if "json" in params else {}
    params = {**params, **asked.get("params", {}), **({"q": asked["query"]} if asked else {})}
    q, rows = params["q"], int(asked.get("limit", params.get("rows", 10)))
    out: dict[str, Any] = {}
    if state.shards > 1 and params.get("shards.info") == "true":
        out["shards.info"] = {f"http://node/{i}": {"numFound": 1} for i in range(state.shards)}
    one = re.fullmatch(r"\{!term f=(\w+) v=\$word\}", q)
    if one:
        known(index, one[1])
        found = dict.fromkeys(index.posting(one[1], params["word"]), 1.0)
    elif q == "*:*":
        found = dict.fromkeys(index.documents, 1.0)
    else:
        assert params["defType"] == "edismax"
        assert params.get("sow") == "true"
        boosts = {name: float(boost or 1) for name, _, boost in (each.partition("^") for each in params["qf"].split())}
        for name in boosts:
            known(index, name)
        words = re.sub(r"\\(.)", r"\1", q).lower().split()
        found = index.search("solr", words, boosts, len(index.documents))
    if "fq" in params:
        limits = re.fullmatch(r'\{!terms f=id separator="(.)" v=\$ids\}', params["fq"])
        assert limits, params["fq"]
        wanted = set(params["ids"].split(limits[1]))
        found = {docid: score for docid, score in found.items() if docid in wanted}
    best = sorted(found, key=lambda docid: -found[docid])[:rows]
    if params.get("sort") == "id asc":
        best = sorted(found)[:rows]
    out["response"] = {"numFound": len(found), "docs": [{"id": docid, "score": found[docid]} for docid in best]}
    if one and params.get("debug") == "results":
        assert params["debug.explain.structured"] == "true"
        out["debug"] = {"explain": {docid: index.explain(one[1], params["word"], docid) for docid in best}}
    return out


def known(index: LuceneIndex, field: str) -> None:
    if field not in index.fields:
        raise KeyError(field)


def schema(index: LuceneIndex, state: State) -> dict[str, Any]:
    own = {"class": f"solr.{state.similarity}SimilarityFactory", "k1": index.k, "b": index.b}
    usual = own | {"class": "solr.BM25SimilarityFactory"}
    other = {"tokenizer": {"class": "solr.StandardTokenizerFactory"}} if state.analyzer else CUT
    return {
        "name": "shop",
        "uniqueKey": "id",
        "similarity": {"class": "solr.SchemaSimilarityFactory"},
        "fieldTypes": [
            {"name": "string", "class": "solr.StrField"},
            {"name": "words", "class": "solr.TextField", "analyzer": CUT, "similarity": usual},
            {"name": state.analyzer or "headline", "class": "solr.TextField", "analyzer": other, "similarity": own},
        ],
        "fields": [
            {"name": "id", "type": "string", "indexed": True, "stored": True},
            {"name": "_text_", "type": "words", "indexed": True, "stored": False},
            {"name": "title", "type": state.analyzer or "headline"},
            {"name": "body", "type": "words"},
        ],
        "dynamicFields": [{"name": "*_s", "type": "string"}, {"name": "*_txt", "type": "words"}],
    }


def failed(state: State, status: int, said: str) -> Answer:
    return status, {"responseHeader": {"status": status}, "error": {"msg": said, "code": status}}
