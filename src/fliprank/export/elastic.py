"""What Elasticsearch and OpenSearch are told in the same words: similarities, mapping, search template, columns.

A column goes through `rank_feature` (or, a date, through `distance_feature`): log(k + x), x / (x + k) and the sigmoid
are theirs as well as ours. They add nothing where a document has no value, so a clause for these documents adds what
the curve has at 0. Where less is better, `positive_score_impact: false` keeps 1 / x, and 1 - x / (x + k) =
(1/x) / (1/x + 1/k) is added instead of subtracting x / (x + k): the same but for a constant. (Their documentation
says pivot / (x + pivot); their code takes the pivot of 1 / x as it is given.)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from math import log
from typing import Any

from fliprank.export.about import About
from fliprank.export.analysis import NAME, json_analysis, lost_analysis
from fliprank.export.columns import Column, text_and_columns
from fliprank.export.lucene import kept_fields, number, similarity_of
from fliprank.export.target import Export
from fliprank.models.base import Model
from fliprank.models.engine import EngineText
from fliprank.text.build.dates import DAYS

__all__ = ["elastic_export", "field_of", "fits_elastic", "refused_by_elastic", "template"]

QUERY = "{{query_string}}"
DAY = 86_400
UNITS = ((2_200, 31_556_952), (803_533, DAY), (7_300_000_000, 1), (float("inf"), 0.001))
"""The largest date of each unit (years, days from the year 1, seconds and milliseconds from 1970) and its seconds."""


def fits_elastic(name: str) -> bool:
    """Whether a field of this name can be named in a query template: ^ and * mean something there, so does {{."""
    return bool(name.strip()) and not re.search(r"[\^*]|\{\{|^\.|\.$|\.\.", name)


def refused_by_elastic(column: Column) -> str | None:
    """Why a column can't be written as `rank_feature`; None if it can."""
    if column.transform == "signed":
        return f"rank_feature takes no values below 0, which {column.name} has"
    if column.transform in ("none", "log", "recency") and column.weight < 0:
        return f"{column.name} counts against a document, which there can be said of saturation and sigmoid only"
    if column.transform == "log" and column.k < 1:
        return f"the scaling_factor of log must be 1 or more, and {column.name}.k is {column.k:g}"
    return None


def template(query: Mapping[str, Any]) -> str:
    """A stored search template: parameters query_string, from and size."""
    source = {"query": query, "from": "{{from}}{{^from}}0{{/from}}", "size": "{{size}}{{^size}}10{{/size}}"}
    return written({"script": {"lang": "mustache", "source": source}})


def written(content: Any) -> str:
    """As JSON for people."""
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def elastic_export(model: Model, about: About, product: str) -> Export:
    """Index settings with a mapping, the search template, and what to do with them; `product`: ELASTICSEARCH or so."""
    found = text_and_columns(model)
    assert found is not None
    text, columns = found
    kept, dropped = kept_fields(text)
    names = _similarity_names(text, kept)
    files = {
        "index.json": written(_index(text, names, columns, about)),
        "search-template.json": template(_query(text, kept, columns)),
    }
    combined = text.formula.function == "combined_fields"
    if combined:
        files["settings.json"] = written({"index": {"similarity": _similarities(text, names)}})
    lost = [f"Field {name} is left out: its weight is next to nothing." for name in dropped]
    lost += [*_lost_columns(columns), *lost_analysis(about.analyzer)]
    lost.append("Each shard takes idf and lengths from its own documents: with few documents, use one shard.")
    reindex = not combined or bool(columns)
    return Export(files, tuple(_steps(product, combined, columns)), reindex, tuple(lost))


def _similarity_names(model: EngineText, kept: Mapping[str, float]) -> dict[str, str]:
    """By field, what its similarity is called: plain letters, and no name twice."""
    if model.formula.function == "combined_fields":
        return dict.fromkeys(kept, "default")
    out: dict[str, str] = {}
    for place, name in enumerate(kept, 1):
        plain = f"{NAME}_{re.sub('[^A-Za-z0-9_]', '_', name)}"
        out[name] = plain if plain not in out.values() else f"{plain}_{place}"
    return out


def _similarities(model: EngineText, names: Mapping[str, str]) -> dict[str, Any]:
    return {own: similarity_of(model, field) for field, own in names.items()}


def _index(model: EngineText, names: Mapping[str, str], columns: list[Column], about: About) -> dict[str, Any]:
    settings: dict[str, Any] = {"index": {"similarity": _similarities(model, names)}}
    analyzer = {} if about.analyzer is None else {"analyzer": NAME}
    if about.analyzer is not None:
        settings["analysis"] = json_analysis(about.analyzer)
    fields = {
        name: {"type": "text"} | ({} if own == "default" else {"similarity": own}) | analyzer
        for name, own in names.items()
    }
    return {"settings": settings, "mappings": {"properties": fields | {field_of(c): _mapped(c) for c in columns}}}


def field_of(column: Column) -> str:
    """What a column is called in documents: the index counts the days of a date under a name of its own."""
    return column.name.removesuffix(DAYS) if column.transform == "recency" else column.name


def _mapped(column: Column) -> dict[str, Any]:
    if column.transform == "recency":
        return {"type": "date"}
    return {"type": "rank_feature"} | ({"positive_score_impact": False} if column.weight < 0 else {})


def text_query(model: EngineText, weights: Mapping[str, float]) -> dict[str, Any]:
    """The text's part of the query, with these weights as boosts."""
    fields, function = [f"{name}^{weight:g}" for name, weight in weights.items()], model.formula.function
    if function == "combined_fields":
        return {"combined_fields": {"query": QUERY, "fields": fields}}
    kind = "best_fields" if function == "best_fields" else "most_fields"
    tie = {"tie_breaker": number(model.params["tie"])} if function == "best_fields" else {}
    return {"multi_match": {"query": QUERY, "type": kind, "fields": fields} | tie}


def _query(model: EngineText, weights: Mapping[str, float], columns: list[Column]) -> dict[str, Any]:
    text = text_query(model, weights)
    if not columns:
        return text
    return {"bool": {"must": [text], "should": [clause for column in columns for clause in _clauses(column)]}}


def _clauses(column: Column) -> Iterator[dict[str, Any]]:
    """What a column adds, and what it adds for documents without a value."""
    boost, falling = number(abs(column.weight)), column.weight < 0
    pivot = number(1.0 / column.k if falling else column.k)
    missing = boost if falling else 0.0
    if column.transform == "recency":
        unit = next(seconds for most, seconds in UNITS if column.newest <= most)
        age = f"{max(1, round(column.k * unit * 1000))}ms"
        yield {
            "distance_feature": {"field": field_of(column), "origin": _day(column.newest), "pivot": age, "boost": boost}
        }
        return
    curves: dict[str, dict[str, Any]] = {
        "none": {"linear": {}},
        "log": {"log": {"scaling_factor": number(column.k)}},
        "saturate": {"saturation": {"pivot": pivot}},
        "sigmoid": {"sigmoid": {"pivot": pivot, "exponent": number(column.a)}},
    }
    yield {"rank_feature": {"field": column.name, **curves[column.transform], "boost": boost}}
    if column.transform == "log":
        missing = number(column.weight * log(column.k))
    if missing > 0:
        without = {"bool": {"must_not": [{"exists": {"field": column.name}}]}}
        yield {"constant_score": {"filter": without, "boost": missing}}


def _day(newest: float) -> str:
    """A date of a column, as ISO has it."""
    if newest <= UNITS[0][0]:
        return f"{int(newest):04}-01-01"
    if newest <= UNITS[1][0]:
        moment = datetime.combine(date.fromordinal(int(newest)), time()) + timedelta(days=newest % 1)
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    seconds = newest if newest <= UNITS[2][0] else newest / 1000
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _lost_columns(columns: list[Column]) -> Iterator[str]:
    if any(column.transform != "recency" for column in columns):
        yield "rank_feature keeps nine bits of a number: a column's part of a score may be off by half a per cent."
    for column in columns:
        if column.transform == "recency":
            day = _day(column.newest)
            yield f"{field_of(column)} is a date there; what is newer than {day} counts as if it were as much older."


def _steps(product: str, combined: bool, columns: list[Column]) -> Iterator[str]:
    def send(method: str, place: str, data: str = "") -> str:
        body = f" -H 'Content-Type: application/json' -d {data}" if data else ""
        return f'$ curl -X {method} "${product}/{place}"{body}'

    if combined and not columns:
        yield "Set the similarity of your index; it is closed for a moment. (For a new index, use index.json instead.)"
        yield send("POST", "INDEX/_close")
        yield send("PUT", "INDEX/_settings", "@settings.json")
        yield send("POST", "INDEX/_open")
        yield "combined_fields wants the same analyzer for all fields, and no similarity of their own in the mapping."
    else:
        yield "Add your other fields to index.json; if your index has an analyzer of its own, name it instead of ours."
        yield send("PUT", "NEW_INDEX", "@index.json")
        if columns:
            yield "In documents, leave out values of 0 and below of rank_feature fields: they must be above 0."
        yield "Copy your documents, since a field can't be given another similarity or type afterwards."
        yield send("POST", "_reindex", """'{"source": {"index": "INDEX"}, "dest": {"index": "NEW_INDEX"}}'""")
        yield (
            "To change k1, b, mu or lambda later, close the index, put settings.index of index.json as _settings, "
            "and open it: that needs no new indexing."
        )
    yield "Store the search template, and search by it."
    yield send("PUT", "_scripts/fliprank", "@search-template.json")
    index = "INDEX" if combined and not columns else "NEW_INDEX"
    yield send("POST", f"{index}/_search/template", """'{"id": "fliprank", "params": {"query_string": "red shoes"}}'""")
