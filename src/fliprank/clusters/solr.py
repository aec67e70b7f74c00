"""Solr, through the client `pysolr`: candidates by edismax, counts from the explanations of scores.

Solr's term vectors (TermVectorComponent) need a request handler and fields that are indexed with `termVectors`, which
few have, and tell no lengths or numbers of documents. Its explanations need nothing: for each document that has a term
they say how often, how long the field is (as kept in one byte), df, the number of documents, the average length.
A collection of several shards has statistics of each shard, unless it has an ExactStatsCache.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from fliprank.clusters.access import Access
from fliprank.clusters.calls import ClusterError, Failure, patiently, understood
from fliprank.clusters.cluster import FieldSettings, Posting, PostingCluster, in_order, register
from fliprank.errors import MissingExtraError

__all__ = ["Solr"]

Json = dict[str, Any]

OPERATORS = {"AND", "OR", "NOT", "TO"}
SEPARATORS = ",|;~\t"


@register("solr")
class Solr(PostingCluster):
    """A collection or a core. `url` is the address of Solr, with or without `/solr` at its end."""

    name, function = "solr", "edismax"

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        try:
            import pysolr
            import requests
        except ImportError:
            raise MissingExtraError("pysolr", "clusters") from None
        session = requests.Session()
        session.max_redirects = 0  # secrets go nowhere else
        if access.ca_certs:
            session.verify, session.trust_env = access.ca_certs, False  # or else REQUESTS_CA_BUNDLE would count
            session.proxies.update(requests.utils.get_environ_proxies(access.url))
        if access.client_cert:
            session.cert = (access.client_cert, access.client_key) if access.client_key else access.client_cert
        url = access.url if urlsplit(access.url).path else f"{access.url}/solr"
        signed = _signature(access.authorization("Bearer"))
        self._client = pysolr.Solr(
            f"{url}/{quote(access.index)}", timeout=access.timeout, auth=signed, session=session, results_cls=dict
        )
        self._read_schema: Json | None = None

    def _ask(self, what: str, call: Callable[[Any], Any]) -> Json:
        """The answer of the client's `call`, as plain JSON; busy clusters are asked again."""
        import pysolr
        import requests

        def ask() -> Json:
            try:
                told = call(self._client)
            except pysolr.SolrError as error:
                raise _failure(str(error)) from None
            except requests.exceptions.TooManyRedirects:
                raise Failure(302, "redirect") from None
            except requests.exceptions.RequestException as error:
                raise Failure(0, type(error).__name__, str(error)) from None
            told = json.loads(told) if isinstance(told, str) else told
            if told["responseHeader"].get("partialResults"):
                raise Failure(504, "partialResults", "only a part of the index was searched in time")
            return dict(told)

        return patiently(ask, self.access, what)

    def _select(self, what: str, q: str = "*:*", **params: Any) -> Json:
        return self._ask(what, lambda client: client.search(q, **params))

    def _get(self, what: str, path: str, **params: str) -> Json:
        """What pysolr has no method for."""
        asked = urlencode({**params, "wt": "json"})
        return self._ask(what, lambda client: client._send_request("get", f"{path}?{asked}"))

    @understood
    def version(self) -> str:
        told = self._get("asking its version", "admin/system")
        return f"Solr {told['lucene']['solr-spec-version']}"

    @property
    def _schema(self) -> Json:
        if self._read_schema is None:
            self._read_schema = dict(self._get("reading its schema", "schema")["schema"])
        return self._read_schema

    @property
    def _key(self) -> str:
        """The field that has the ids."""
        return self.access.id_field or str(self._schema.get("uniqueKey", "id"))

    @understood
    def fields(self) -> dict[str, FieldSettings]:
        schema = self._schema
        types = {str(each["name"]): each for each in schema["fieldTypes"]}
        texts = {name for name, each in types.items() if str(each["class"]).endswith(".TextField")}
        plain = [each for each in schema["fields"] if each["type"] in texts and each.get("indexed", True)]
        out = {
            str(each["name"]): _settings(types, each["type"], schema)
            for each in plain
            if not each["name"].startswith("_")
        }
        patterns = {str(each["name"]): each["type"] for each in schema.get("dynamicFields", ())}
        dynamic = {name: _settings(types, kind, schema) for name, kind in patterns.items() if kind in texts}
        if not out and not dynamic:
            raise ClusterError(f"{self.access.index} has no text fields")
        return _WithDynamic(out, dynamic)

    @understood
    def shards(self) -> int:
        told = self._select("counting its shards", rows=0, **{"shards.info": "true"})
        return max(1, len(told.get("shards.info", ())))

    @understood
    def terms(self, field: str, texts: Sequence[str]) -> list[list[str]]:
        out = []
        for text in texts:
            asked = {"analysis.fieldname": field, "analysis.query": text, "json.nl": "flat"}
            told = self._get("cutting queries", "analysis/field", **asked)
            steps = told["analysis"]["field_names"][field].get("query", [])
            tokens = next((step for step in reversed(steps) if isinstance(step, list)), [])
            out.append([str(token["text"]) for token in tokens])
        return out

    @understood
    def search(self, bodies: Sequence[Mapping[str, Any]]) -> list[dict[str, float]]:
        key, out = self._key, []
        for body in bodies:
            if "q" in body:  # parameters; else a request of JSON, which has parameters in it
                params = {"rows": body["rows"], **body, "fl": f"{key},score"}
            else:
                params = {"q": "*:*", "json": json.dumps(body), "fl": f"{key},score"}
            told = self._select("searching", **params)["response"]["docs"]
            out.append(in_order([(str(each[key]), each.get("score")) for each in told]))
        return out

    def usual_request(self, query: str, fields: Mapping[str, float], depth: int) -> Json:
        params = {"defType": "edismax", "qf": " ".join(f"{name}^{weight:g}" for name, weight in fields.items())}
        params |= {"tie": "0", "q.op": "OR", "mm": "0%", "sow": "true", "lowercaseOperators": "false", "uf": "-*"}
        return {"query": escaped(query), "limit": depth, "params": params}

    def sized(self, request: Mapping[str, Any], depth: int) -> Json:
        return {"rows" if "q" in request else "limit": depth, **request}

    @understood
    def present(self, docids: Sequence[str]) -> set[str]:
        told = self._select("looking for documents", rows=len(docids), fl=self._key, **self._only(docids))
        return {str(each[self._key]) for each in told["response"]["docs"]}

    @understood
    def posting(self, field: str, term: str, docids: Sequence[str]) -> Posting:
        asked = {"word": term, "debug": "results", "debug.explain.structured": "true", **self._only(docids)}
        query = f"{{!term f={field} v=$word}}"
        told = self._select("reading term counts", query, rows=len(docids), fl=f"{self._key},score", **asked)
        explained = [(str(docid), _parts(each)) for docid, each in told["debug"]["explain"].items()]
        for _, parts in explained:
            if not {"freq", "n", "N"} <= parts.keys():
                raise ClusterError(f"{field} is not scored by BM25 as of Solr 8", hint="leave it out by --fields")
        # A field without norms has no length there, and b no effect.
        found = {docid: (parts["freq"], parts.get("dl", 0.0), parts["value"]) for docid, parts in explained}
        number = max(len(explained), 1)
        df, documents, average = (sum(parts.get(name, 1.0) for _, parts in explained) / number for name in WHOLE)
        return Posting(df, documents, average, found)

    def _only(self, docids: Sequence[str]) -> dict[str, str]:
        """The parameters that limit a search to these documents."""
        separator = next((c for c in SEPARATORS if not any(c in docid for docid in docids)), None)
        if separator is None:
            raise ClusterError(f"ids with all of {SEPARATORS.strip()} in them can't be asked for")
        return {"fq": f'{{!terms f={self._key} separator="{separator}" v=$ids}}', "ids": separator.join(docids)}


WHOLE = ("n", "N", "avgdl")
"""What an explanation says of the whole collection: df, the number of documents with the field, the average length."""


class _WithDynamic(dict[str, FieldSettings]):
    """The fields by name; those that only patterns stand for are there when they are asked for."""

    def __init__(self, fields: Mapping[str, FieldSettings], patterns: Mapping[str, FieldSettings]) -> None:
        super().__init__(fields)
        self.patterns = patterns

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or any(fnmatchcase(str(name), each) for each in self.patterns)

    def __missing__(self, name: str) -> FieldSettings:
        fitting = [each for each in self.patterns if fnmatchcase(name, each)]
        return self.patterns[max(fitting, key=len)]  # the longest counts


def _settings(types: Mapping[str, Json], name: str, schema: Json) -> FieldSettings:
    """Of a field type. Types that cut queries alike go by the name of the first of them."""
    cut = _analyzer(types[name])
    alike = next(other for other, each in types.items() if _analyzer(each) == cut)
    whole = schema.get("similarity", {})
    by_type = not whole or str(whole.get("class", "")).endswith("SchemaSimilarityFactory")
    own = types[name].get("similarity", {}) if by_type else whole
    kind = str(own.get("class", "solr.BM25SimilarityFactory")).rpartition(".")[2].removesuffix("SimilarityFactory")
    return FieldSettings(alike, kind, float(own.get("k1", 1.2)), float(own.get("b", 0.75)))


def _analyzer(kind: Json) -> Any:
    return kind.get("queryAnalyzer") or kind.get("analyzer")


def _parts(explanation: Json) -> dict[str, float]:
    """The numbers of one term's explanation by the first word of what Lucene calls them; `value` is the score."""
    out = {"value": float(explanation["value"])}
    below = list(explanation.get("details", ()))
    while below:
        each = below.pop()
        out[str(each["description"]).partition(",")[0]] = float(each["value"])
        below += each.get("details", ())
    return out


def escaped(text: str) -> str:
    r"""A query of words only: what edismax would take for an operator is a character like others.

    >>> print(escaped('c++ OR "rust" -go title:x'))
    c\+\+ \OR \"rust\" \-go title\:x
    """
    plain = re.sub(r'([+\-!(){}\[\]^"~*?:\\/&|<>=@#$%;])', r"\\\1", text)
    return " ".join(f"\\{word}" if word in OPERATORS else word for word in plain.split())


def _signature(headers: Mapping[str, str]) -> Callable[[Any], Any]:
    """Says who asks. It is there without secrets, too: or else requests would look for some in a file (.netrc)."""

    def sign(request: Any) -> Any:
        request.headers.update(headers)
        return request

    return sign


def _failure(said: str) -> Failure:
    """What pysolr tells in words."""
    status = re.search(r"\(HTTP (\d{3})\): ?(.*)", said, re.DOTALL)
    return Failure(int(status[1]), "", " ".join(status[2].split())) if status else Failure(0, "", said)
