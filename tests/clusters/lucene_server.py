"""A server that answers what fliprank asks of Elasticsearch and OpenSearch, with scores and statistics by Lucene.

Neither can be installed here. The clients are the official ones, and they speak to this over HTTP; what it says of
documents, frequencies and scores is Lucene's, in the shapes that the engines' documentation gives.
"""

from __future__ import annotations

import json
import threading
import time
from base64 import b64encode
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from fliprank.engines.lucene import Elasticsearch as Lucene
from fliprank.export.functions import engine_model
from fliprank.models import EngineText
from fliprank.text.analysis import Analyzer
from fliprank.text.index import Index

USER, PASSWORD = "ann", "s3cret-of-ann"


class LuceneServer:
    """One index called `shop`. What it should do wrong is set from outside."""

    def __init__(self, documents: Mapping[str, Mapping[str, str]], fields: list[str], k: float = 0.9, b: float = 0.4):
        self.documents, self.fields, self.k, self.b = documents, fields, k, b
        pages = [{"_id": docid, **texts} for docid, texts in documents.items()]
        plain = Analyzer(lowercase=False, stopwords=None, stemmer=None)
        rows = Index.build(pages, fields=fields, analyzer=plain).rows({}, {})
        self.engine = "elasticsearch"
        """Whose scores it gives: Elasticsearch's are k1 + 1 times those of Lucene and OpenSearch."""
        names = ("elasticsearch", "opensearch")
        self.models = {name: engine_model(name, "most_fields", fields).prepared(rows, 0) for name in names}
        self.lucene = Lucene(documents, fields, self.models[self.engine])
        self.busy, self.status, self.slow, self.closed, self.shards = 0, 429, 0.0, False, 1
        self.needs_password, self.requests = False, list[tuple[str, str]]()
        self.mapping: dict[str, Any] = {name: {"type": "text", "similarity": "own"} for name in fields}
        self.settings: dict[str, Any] = {"similarity": {"own": {"type": "BM25", "k1": str(k), "b": str(b)}}}
        self.lock = threading.Lock()
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_address[1]}"

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.lucene.close()

    def well(self) -> None:
        """All is as it should be again."""
        self.busy, self.status, self.slow, self.closed, self.needs_password, self.shards = 0, 429, 0.0, False, False, 1
        self.mapping = {name: {"type": "text", "similarity": "own"} for name in self.fields}
        self.requests.clear()

    def answer(self, path: str, body: str, authorization: str) -> tuple[int, Any]:
        """(status, JSON)"""
        if self.needs_password and authorization != "Basic " + b64encode(f"{USER}:{PASSWORD}".encode()).decode():
            return 401, error(401, "security_exception", f"unable to authenticate {authorization}")
        if self.busy > 0 and path != "/":
            self.busy -= 1
            return self.status, error(self.status, "es_rejected_execution_exception", "queue is full")
        if path == "/":
            return 200, {"version": {"number": "9.1.0"}, "tagline": "You Know, for Search"}
        name, _, what = path.strip("/").partition("/")
        if name != "shop" and path != "/_msearch":
            return 404, error(404, "index_not_found_exception", f"no such index [{name}]")
        if self.closed:
            return 400, error(400, "index_closed_exception", "closed")
        given: Any = (
            [json.loads(line) for line in body.splitlines()] if path == "/_msearch" else json.loads(body or "{}")
        )
        if path == "/_msearch":
            return 200, {"responses": [self.search(request) for request in given[1::2]]}
        if what == "_mtermvectors":
            return 200, {"docs": [self.vectors(each) for each in given["docs"]]}
        if what == "_analyze":
            return 200, {"tokens": [{"token": word} for word in given["text"].lower().split()]}
        settings = {"index": {"number_of_shards": str(self.shards), **self.settings}}
        return 200, {"shop": {"mappings": {"properties": self.mapping}, "settings": settings}}

    def search(self, request: dict[str, Any]) -> dict[str, Any]:
        query = request["query"]
        if "multi_match" in query:
            match = query["multi_match"]
            boosts = {name: float(boost or 1) for name, _, boost in (each.partition("^") for each in match["fields"])}
        else:
            [(name, match)] = query["match"].items()
            boosts = {name: 1.0}
        found = self.lucene.search(match["query"].lower().split(), self.at(boosts), request.get("size", 10))
        hits = [{"_id": docid, "_score": score} for docid, score in found.items() if score > 0]
        return {"status": 200, "hits": {"total": {"value": len(hits)}, "hits": hits}}

    def at(self, boosts: Mapping[str, float]) -> EngineText:
        """The function with these boosts, and k1 and b as in the settings."""
        own = {f"{name}.{key}": value for name in self.fields for key, value in (("k", self.k), ("b", self.b))}
        own |= {f"{name}.w": boosts.get(name, 0.0) for name in self.fields}
        model = self.models[self.engine]
        return model.at(model.params.replace(own))

    def vectors(self, wanted: dict[str, Any]) -> dict[str, Any]:
        docid = wanted["_id"]
        if docid not in self.documents:
            return {"_id": docid, "found": False}
        reader, term = self.lucene.reader, self.lucene.java("index.Term")
        out = {}
        for name in wanted["fields"]:
            words, counts = np.unique(self.documents[docid].get(name, "").split(), return_counts=True)
            if not len(words):
                continue
            terms = {
                str(word): {
                    "term_freq": int(count),
                    "doc_freq": int(reader.docFreq(term(name, str(word)))),
                    "ttf": int(reader.totalTermFreq(term(name, str(word)))),
                }
                for word, count in zip(words, counts, strict=True)
            }
            statistics = {"doc_count": int(reader.getDocCount(name)), "sum_ttf": int(reader.getSumTotalTermFreq(name))}
            out[name] = {"field_statistics": statistics, "terms": terms}
        return {"_id": docid, "found": True, "term_vectors": out}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                with server.lock:
                    path = self.path.partition("?")[0]
                    server.requests.append((self.command, path))
                    body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                    time.sleep(server.slow)
                    status, told = server.answer(path, body, self.headers.get("Authorization", ""))
                data = json.dumps(told).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("X-Elastic-Product", "Elasticsearch")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_POST = do_GET  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def error(status: int, kind: str, reason: str) -> dict[str, Any]:
    return {
        "error": {"root_cause": [{"type": kind, "reason": reason}], "type": kind, "reason": reason},
        "status": status,
    }
