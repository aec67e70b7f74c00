"""Elasticsearch and OpenSearch: two clients, which differ in a few words, and answers that are alike.

Statistics are those of the shard that a document is on: so are the scores of the engine itself, unless it is asked to
search with `dfs_query_then_fetch`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from fliprank.clusters.access import Access
from fliprank.clusters.calls import ClusterError, Failure, patiently, understood
from fliprank.clusters.cluster import FieldSettings, TermCounts, VectorCluster, in_order, register
from fliprank.errors import MissingExtraError

__all__ = ["Elasticsearch", "OpenSearch"]

Json = dict[str, Any]


class _RestCluster(VectorCluster):
    """What both have in common: the requests and what the answers look like."""

    function = "most_fields"

    @abstractmethod
    def _ask(self, what: str, call: Callable[[Any], Any]) -> Any:
        """The answer of the client's `call`, as plain JSON; busy clusters are asked again."""

    @abstractmethod
    def _many(self, lines: list[Json]) -> Json: ...

    @abstractmethod
    def _vectors(self, body: Json) -> Json: ...

    @abstractmethod
    def _analyse(self, body: Json) -> Json: ...

    @understood
    def version(self) -> str:
        told = self._ask("asking its version", lambda client: client.info())
        return f"{type(self).__name__} {told['version']['number']}"

    def _described(self) -> Json:
        """Mappings and settings of the index, whatever name it is reached by."""
        told = self._ask("reading its mapping", lambda client: client.indices.get(index=self.access.index))
        if not isinstance(told, Mapping) or not told:
            raise ValueError("no index in it")
        if len(told) != 1:
            names = self.access.redacted(", ".join(told))[:200]
            raise ClusterError(f"{self.access.index} stands for {len(told)} indexes: name one of {names}")
        return dict(next(iter(told.values())))

    @understood
    def shards(self) -> int:
        return int(self._described()["settings"]["index"].get("number_of_shards", 1))

    @understood
    def fields(self) -> dict[str, FieldSettings]:
        told = self._described()
        index = told["settings"]["index"]
        similarities = index.get("similarity", {})
        usual = index.get("analysis", {}).get("analyzer", {}).get("default_search") and "default_search"
        out = dict[str, FieldSettings]()
        for name, mapping in _text_fields(told.get("mappings", {}).get("properties", {})):
            analyzer = mapping.get("search_analyzer") or mapping.get("analyzer") or usual or "default"
            called = mapping.get("similarity", "BM25")
            own = similarities.get(called, similarities.get("default", {}) if called == "BM25" else {})
            kind, k, b = own.get("type", called), float(own.get("k1", 1.2)), float(own.get("b", 0.75))
            out[name] = FieldSettings(str(analyzer), str(kind), k, b)
        if not out:
            raise ClusterError(f"{self.access.index} has no text fields")
        return out

    @understood
    def terms(self, field: str, texts: Sequence[str]) -> list[list[str]]:
        out = []
        for text in texts:
            found = self._analyse({"field": field, "text": text})
            out.append([str(token["token"]) for token in found["tokens"]])
        return out

    @understood
    def search(self, bodies: Sequence[Mapping[str, Any]]) -> list[dict[str, float]]:
        lines = [line for body in bodies for line in ({"index": self.access.index}, dict(body))]

        def ask() -> Json:
            told = self._many(lines)
            for each in told["responses"]:
                _check_whole(each)
            return told

        told = patiently(ask, self.access, "searching")
        found = [each["hits"]["hits"] for each in told["responses"]]
        return [in_order([(str(hit["_id"]), hit["_score"]) for hit in hits]) for hits in found]

    @understood
    def counts(
        self, docids: Sequence[str], fields: Sequence[str], terms: frozenset[str]
    ) -> dict[str, dict[str, TermCounts]]:
        wanted = {"fields": list(fields), "term_statistics": True, "field_statistics": True}
        wanted |= {"positions": False, "offsets": False, "payloads": False}

        def ask() -> Json:
            told = self._vectors({"docs": [{"_id": docid, **wanted} for docid in docids]})
            for each in told["docs"]:
                if "error" in each:  # as of a search
                    raise _failure(429 if "rejected_execution" in str(each["error"]) else 400, each)
            return told

        told = patiently(ask, self.access, "reading term vectors")
        out = dict[str, dict[str, TermCounts]]()
        for each in told["docs"]:
            if each.get("found"):
                vectors = each.get("term_vectors", {})
                out[str(each["_id"])] = {name: _counts(found, terms) for name, found in vectors.items()}
        return out

    def usual_request(self, query: str, fields: Mapping[str, float], depth: int) -> Json:
        boosted = [f"{name}^{weight:g}" for name, weight in fields.items()]
        match = {"query": query, "type": "most_fields", "fields": boosted}
        return {"query": {"multi_match": match}, "size": depth, "_source": False}

    def sized(self, request: Mapping[str, Any], depth: int) -> Json:
        return {"size": depth, **request}


def _text_fields(properties: Mapping[str, Any], before: str = "") -> Any:
    """(name, mapping) of all text fields, within objects and under other names (`fields`) too."""
    for name, mapping in properties.items():
        if mapping.get("type") == "text":
            yield before + name, mapping
        yield from _text_fields(mapping.get("properties", {}), f"{before}{name}.")
        yield from _text_fields(mapping.get("fields", {}), f"{before}{name}.")


def _counts(found: Json, wanted: frozenset[str]) -> TermCounts:
    terms, whole = found.get("terms", {}), found.get("field_statistics", {})
    known = {
        term: (float(each["term_freq"]), float(each.get("doc_freq", 0)), float(each.get("ttf", 0)))
        for term, each in terms.items()
        if term in wanted
    }
    length = float(sum(each["term_freq"] for each in terms.values()))
    return TermCounts(length, known, float(whole.get("doc_count", 0)), float(whole.get("sum_ttf", 0)))


def _check_whole(answer: Json) -> None:
    """Raise at an answer to one of many searches that is none, or that some shards have no part in."""
    if "error" in answer:  # one of many may be refused where the whole is not
        raise _failure(int(answer.get("status", 500)), answer)
    if answer.get("timed_out"):
        raise Failure(504, "timed_out", "only a part of the index was searched in time")
    if failed := answer.get("_shards", {}).get("failed"):
        cause = (answer["_shards"].get("failures") or [{}])[0].get("reason", {})
        raise Failure(503, str(cause.get("type", "")), f"{failed} shards failed: {cause.get('reason', '')}")


def _failure(status: int, body: Any) -> Failure:
    """What the body of an error says."""
    told = body.get("error", {}) if isinstance(body, Mapping) else {}
    if isinstance(told, Mapping):
        cause = (told.get("root_cause") or [told])[0]
        return Failure(status, str(cause.get("type", "")), str(cause.get("reason", "")))
    return Failure(status, str(told))


def _options(access: Access) -> Json:
    """What both clients are told: who asks, and which certificates count."""
    files = {"ca_certs": access.ca_certs, "client_cert": access.client_cert, "client_key": access.client_key}
    return {"headers": access.authorization("ApiKey")} | {name: path for name, path in files.items() if path}


@register("elasticsearch")
class Elasticsearch(_RestCluster):
    """Through the client `elasticsearch`."""

    name = "elasticsearch"

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        try:
            from elasticsearch import Elasticsearch as Client
        except ImportError:
            raise MissingExtraError("elasticsearch", "clusters") from None
        options, parts = _options(access), urlsplit(access.url)
        port = parts.port or {"http": 80, "https": 443}[parts.scheme]  # it wants to be told
        url = parts._replace(netloc=f"{parts.netloc.removesuffix(f':{parts.port}')}:{port}").geturl()
        self._client = Client(url, request_timeout=access.timeout, max_retries=0, **options)

    def _ask(self, what: str, call: Callable[[Any], Any]) -> Any:
        from elasticsearch import ApiError, TransportError

        def ask() -> Any:
            try:
                return call(self._client).body
            except ApiError as error:
                raise _failure(error.status_code, error.body) from None
            except TransportError as error:
                raise Failure(0, type(error).__name__, str(error)) from None

        return patiently(ask, self.access, what)

    def _many(self, lines: list[Json]) -> Json:
        return dict(self._ask("searching", lambda client: client.msearch(searches=lines)))

    def _vectors(self, body: Json) -> Json:
        index = self.access.index
        return dict(
            self._ask("reading term vectors", lambda client: client.mtermvectors(index=index, docs=body["docs"]))
        )

    def _analyse(self, body: Json) -> Json:
        index = self.access.index
        return dict(self._ask("cutting queries", lambda client: client.indices.analyze(index=index, **body)))


@register("opensearch")
class OpenSearch(_RestCluster):
    """Through the client `opensearch-py`."""

    name = "opensearch"

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        try:
            from opensearchpy import OpenSearch as Client
        except ImportError:
            raise MissingExtraError("opensearch-py", "clusters") from None
        self._client = Client([access.url], timeout=access.timeout, max_retries=0, **_options(access))

    def _ask(self, what: str, call: Callable[[Any], Any]) -> Any:
        from opensearchpy.exceptions import ConnectionError as Unreachable
        from opensearchpy.exceptions import OpenSearchException, TransportError

        def ask() -> Any:
            try:
                return call(self._client)
            except Unreachable as error:
                raise Failure(0, type(error).__name__, str(error.error)) from None
            except TransportError as error:
                raise _failure(int(error.status_code), error.info) from None
            except OpenSearchException as error:
                raise Failure(400, type(error).__name__, str(error)) from None

        return patiently(ask, self.access, what)

    def _many(self, lines: list[Json]) -> Json:
        return dict(self._ask("searching", lambda client: client.msearch(body=lines)))

    def _vectors(self, body: Json) -> Json:
        index = self.access.index
        return dict(self._ask("reading term vectors", lambda client: client.mtermvectors(index=index, body=body)))

    def _analyse(self, body: Json) -> Json:
        index = self.access.index
        return dict(self._ask("cutting queries", lambda client: client.indices.analyze(index=index, body=body)))
