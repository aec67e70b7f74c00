"""Vespa, through the client `pyvespa`: candidates and counts by the query API, with a rank profile of three features.

Vespa tells what a rank profile computes, and nothing else: so one called `fliprank` must be deployed (docs/clusters.md
has it; no document is indexed again). `fieldTermMatch(f,0).occurrences` is the frequency of a term, `fieldLength(f)`
the length of the field, `bm25(f)` the term's score, of which k1, b and the average length are read off. How many
documents match one term is its df. Queries are cut into words here; Vespa stems each as it does in the field.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fliprank.clusters.access import Access
from fliprank.clusters.bm25_settings import settings_of_scores
from fliprank.clusters.calls import ClusterError, Failure, patiently, understood
from fliprank.clusters.cluster import FieldSettings, Posting, PostingCluster, in_order, register
from fliprank.errors import MissingExtraError, UsageError

__all__ = ["Vespa"]

Json = dict[str, Any]

PROFILE = "fliprank"
IDS = "id"
HITS_AT_ONCE = 400
"""Vespa refuses to give more (maxHits), unless it is told otherwise."""


@register("vespa")
class Vespa(PostingCluster):
    """One schema. Ids of judgements are those of an attribute (`id`, or --id-field)."""

    name, function = "vespa", "bm25"

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", access.index):
            raise UsageError(f"{access.index!r} is no name of a schema of Vespa")
        try:
            import httpr
            from vespa.application import Vespa as Application
        except ImportError:
            raise MissingExtraError("pyvespa", "clusters") from None
        options: Json = {"ca_cert_file": access.ca_certs} if access.ca_certs else {}
        if access.client_cert:
            options["client_pem_data"] = _pem(access)
        headers = access.authorization("Bearer")
        # No redirects: secrets go nowhere else.
        self._http: Any = httpr.Client(headers=headers, timeout=access.timeout, follow_redirects=False, **options)
        self._app = Application(access.url)
        self._ids = access.id_field or IDS
        self._counted: float | None = None

    def _ask(self, what: str, body: Mapping[str, Any]) -> Json:
        """The root of an answer to which all documents have had their part; busy clusters are asked again."""
        import httpr
        from requests.exceptions import HTTPError
        from vespa.exceptions import VespaError

        asked = {"timeout": f"{self.access.timeout:g}s", "model.restrict": self.access.index, **body}

        def ask() -> Json:
            try:
                with self._app.syncio(session=self._http, num_retries_429=0) as client:  # we try again ourselves
                    told: Any = client.query(body=asked)
            except (VespaError, HTTPError) as error:
                raise _failure(error) from None
            except httpr.HTTPError as error:
                raise Failure(0, type(error).__name__, str(error)) from None
            except RuntimeError as error:  # what is no JSON
                raise Failure(300, "redirect, or no answer of Vespa's", str(error)) from None
            if told.status_code != 200:
                raise Failure(int(told.status_code), "", json.dumps(told.json)[:500])
            return _whole(told.json["root"])

        return patiently(ask, self.access, what)

    def _where(self, what: str, where: str, hits: int = 0) -> Json:
        return self._ask(what, {"yql": self._yql(where), "hits": hits, "ranking": PROFILE})

    def _yql(self, where: str) -> str:
        return f"select {self._ids} from sources * where {where}"

    def version(self) -> str:
        """Its name: the query API has no version."""
        return "Vespa"

    @understood
    def fields(self) -> dict[str, FieldSettings]:
        try:
            told = self._where("asking for its features", "true", 1)
        except ClusterError as error:
            if "rank profile" not in error.message or PROFILE not in error.message:
                raise
            hint = "add the one of docs/clusters.md to your schema and deploy it: nothing is indexed again"
            raise ClusterError(f"{self.access.index} has no rank profile {PROFILE}", hint=hint) from None
        hits = told.get("children", [])
        if not hits:
            raise ClusterError(f"{self.access.index} has no documents")
        known = _features(hits[0])
        names = [found[1] for name in known if (found := re.fullmatch(r"bm25\((\w+)\)", name))]
        needed = ("fieldLength({})", "fieldTermMatch({},0).occurrences")
        lacking = [feature.format(name) for name in names for feature in needed if feature.format(name) not in known]
        if lacking or not names:
            raise ClusterError(
                f"the rank profile {PROFILE} lacks the match-feature {', '.join(lacking) or 'bm25(field)'}",
                hint="docs/clusters.md has the whole profile",
            )
        return dict.fromkeys(names, FieldSettings("linguistics"))

    @understood
    def shards(self) -> int:
        return int(self._where("counting its nodes", "true").get("coverage", {}).get("nodes", 1))

    def terms(self, field: str, texts: Sequence[str]) -> list[list[str]]:
        return [words_of(text) for text in texts]

    @understood
    def search(self, bodies: Sequence[Mapping[str, Any]]) -> list[dict[str, float]]:
        out = []
        for body in bodies:
            hits = list[Json]()
            wanted, first = int(body["hits"]), int(body.get("offset", 0))
            while len(hits) < wanted:
                size = min(HITS_AT_ONCE, wanted - len(hits))
                told = self._ask("searching", {**body, "hits": size, "offset": first + len(hits)})
                hits += (some := told.get("children", []))
                if len(some) < size:
                    break
            out.append(in_order([(self._id(hit), _number(hit.get("relevance"))) for hit in hits]))
        return out

    def usual_request(self, query: str, fields: Mapping[str, float], depth: int) -> Json:
        found = [f'{name} contains "{word}"' for word in words_of(query) for name in fields] or ["false"]
        return {"yql": self._yql(" or ".join(found)), "hits": depth, "ranking": PROFILE}

    def sized(self, request: Mapping[str, Any], depth: int) -> Json:
        return {"hits": depth, **request}

    def _id(self, hit: Json) -> str:
        """Of the attribute, or else what the user gave of the document's id: id:namespace:type::this"""
        own = hit.get("fields", {}).get(self._ids)
        if own is not None:
            return str(own)
        whole = str(hit.get("fields", {}).get("documentid", hit["id"]))
        if not whole.startswith("id:"):
            raise ClusterError(
                f"hits have neither a field {self._ids} nor an id of a document",
                hint="select it, or name the field by --id-field",
            )
        return whole.split(":", 4)[-1]

    @understood
    def present(self, docids: Sequence[str]) -> set[str]:
        told = self._where("looking for documents", self._only(docids), len(docids))
        return {self._id(hit) for hit in told.get("children", [])}

    @understood
    def posting(self, field: str, term: str, docids: Sequence[str]) -> Posting:
        having = f'{field} contains "{term}"'
        df = _total(self._where("counting documents of a term", having))
        told = self._where("reading term counts", f"{having} and {self._only(docids)}", len(docids))
        names = (f"fieldTermMatch({field},0).occurrences", f"fieldLength({field})", f"bm25({field})")
        found = dict[str, tuple[float, float, float]]()
        for hit in told.get("children", []):
            tf, length, score = (float(_features(hit)[name]) for name in names)
            found[self._id(hit)] = tf, length, score
        return Posting(df, self._documents(), 0.0, found)

    def _documents(self) -> float:
        """How many there are; asked once."""
        if self._counted is None:
            self._counted = _total(self._where("counting documents", "true"))
        return self._counted

    def settled(self, settings: FieldSettings, postings: Iterable[Posting]) -> tuple[FieldSettings, float]:
        lines = [(*counts, each.df, each.documents) for each in postings for counts in each.found.values()]
        tf, length, score, df, documents = np.array(lines, np.float64).reshape(-1, 5).T
        found = settings_of_scores(tf, length, np.log1p((documents - df + 0.5) / (df + 0.5)), score)
        return settings._replace(k=found.k, b=found.b), found.average

    def _only(self, docids: Sequence[str]) -> str:
        """A condition that no feature looks at."""
        return f"({{filter: true, ranked: false}}{self._ids} in ({', '.join(map(json.dumps, docids))}))"


def words_of(text: str) -> list[str]:
    """Letters and digits that stand together, in small letters.

    >>> words_of("Wi-Fi router, 5GHz")
    ['wi', 'fi', 'router', '5ghz']
    """
    return re.findall(r"[^\W_]+", text.lower())


def _features(hit: Json) -> Json:
    told = hit["fields"]
    return dict(told.get("matchfeatures") or told.get("summaryfeatures") or {})


def _total(root: Json) -> float:
    return float(root["fields"]["totalCount"])


def _number(given: Any) -> float | None:
    return float(given) if isinstance(given, int | float) else None


def _whole(root: Json) -> Json:
    """An answer; raises if it has errors, or if some of the documents had no part in it."""
    if errors := root.get("errors"):
        raise Failure(STATUS.get(int(errors[0].get("code", 0)), 400), *_said(errors[0]))
    coverage = root.get("coverage", {})
    if not coverage.get("full", True) or coverage.get("degraded"):
        raise Failure(504, "degraded", f"only {coverage.get('coverage')}% of the documents were searched in time")
    return root


STATUS = {0: 503, 10: 503, 11: 503, 12: 504, 13: 503, 14: 401, 15: 403, 16: 404}
"""The HTTP status of Vespa's own codes, where they come with an answer: no backend, no time, no rights, not found."""


def _said(error: Json) -> tuple[str, str]:
    return str(error.get("summary", "")), str(error.get("message", ""))


def _failure(error: Exception) -> Failure:
    """What pyvespa raises: a list of Vespa's errors, or text; the status is in the HTTP error, or in its cause."""
    answers = [getattr(each, "response", None) for each in (error, error.__cause__)]
    status = next((int(each.status_code) for each in answers if each is not None), 400)
    first = error.args[0] if error.args else ""
    if isinstance(first, list) and first and isinstance(first[0], dict):
        return Failure(status, *_said(first[0]))
    return Failure(status, "", str(first))


def _pem(access: Access) -> bytes:
    """Certificate and key in one, as the client takes them."""
    names = [name for name in (access.client_cert, access.client_key) if name]
    return b"\n".join(Path(name).read_bytes() for name in names)
