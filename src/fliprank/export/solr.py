"""Solr's edismax: for each term of the query the best field's BM25, and `tie` times the others; columns through `bf`.

score = sum_t (max_f w_f BM25_f(t) + tie (sum of the others)), with BM25 of `lucene.py`: no k1 + 1, lengths in one byte,
k1 and b by the similarity of each field's type. Lucene takes a function that is below 0 for 0: curves are written so
that they are not, which moves all scores of a query by the same constant.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from xml.sax.saxutils import quoteattr

from fliprank.export.about import About
from fliprank.export.analysis import NAME, lost_analysis, solr_analysis
from fliprank.export.columns import Column, takes_text_and_columns, text_and_columns
from fliprank.export.functions import register_functions
from fliprank.export.lucene import TIE, kept_fields, number, similarity_of
from fliprank.export.target import Export, target
from fliprank.models.base import Model
from fliprank.models.engine import EngineText, Formula
from fliprank.models.engine.formula import BM25_SETTINGS

__all__ = ["EDISMAX", "boost_function"]

EDISMAX = Formula("solr", "edismax", fields="best_field_per_term", lengths="byte", settings=(*BM25_SETTINGS, TIE))
STOP_WORDS = "stopwords_fliprank.txt"

register_functions(EDISMAX)


def fits_solr(name: str) -> bool:
    """Whether a field of this name can be named in qf, where spaces and ^ mean something."""
    return re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]*", name) is not None


def refused_by_solr(column: Column) -> str | None:
    """Why a column can't be written as a boost function; None if it can."""
    if column.transform in ("none", "log") and column.weight < 0:
        return f"{column.name} counts against a document without bound, and Solr takes what is below 0 for 0"
    return None


def boost_function(column: Column) -> str:
    """A column's part of the score as a function, but for a constant: never below 0.

    >>> boost_function(Column("stars", "saturate", 0.5, 3.0))
    'product(0.5,div(max(field("stars"),0),sum(max(field("stars"),0),3)))'
    >>> boost_function(Column("price", "saturate", -0.5, 20.0))
    'product(0.5,div(20,sum(max(field("price"),0),20)))'
    """
    raw, falling = f'field("{column.name}")', column.weight < 0
    x, weight, k = f"max({raw},0)", f"{number(abs(column.weight)):g}", f"{number(column.k):g}"
    age = f"max(sub({column.newest!r},{raw}),0)"
    power, pivot = f"pow({x},{number(column.a):g})", f"{number(column.k**column.a):g}"
    curves = {
        "none": x,
        "log": f"ln(sum(1,div({x},{k})))",
        "saturate": f"div({k if falling else x},sum({x},{k}))",
        "sigmoid": f"div({pivot if falling else power},sum({power},{pivot}))",
        "signed": f"{'sub' if falling else 'sum'}(1,div({raw},sum(abs({raw}),{k})))",
        "recency": f"if(gt({raw},0),div({age if falling else k},sum({age},{k})),{1 if falling else 0})",
    }
    return f"product({weight},{curves[column.transform]})"


@target(
    "solr", "text, by edismax; columns as boost functions", takes_text_and_columns("solr", refused_by_solr, fits_solr)
)
def write(model: Model, about: About) -> Export:
    """The field types for the schema, and the request."""
    found = text_and_columns(model)
    assert found is not None
    text, columns = found
    kept, dropped = kept_fields(text)
    files = {
        "schema.xml": "\n".join(_schema(text, kept, columns, about)) + "\n",
        "query.json": json.dumps(_request(text, kept, columns), indent=2) + "\n",
    }
    if about.analyzer is not None and about.analyzer.stop_list:
        files[STOP_WORDS] = "".join(f"{word}\n" for word in about.analyzer.stop_list)
    lost = [f"Field {name} is left out: its weight is next to nothing." for name in dropped]
    lost += [f"Values of {column.name} below 0 count as 0." for column in columns if column.transform == "none"]
    lost += lost_analysis(about.analyzer)
    lost.append("pf, pf2 and pf3 (phrases) are not used: the tuned function does not look at positions.")
    lost.append('In a query, edismax reads + - " and OR as operators; words alone are scored as they were tuned.')
    return Export(files, tuple(_steps(about, columns)), reindex=about.analyzer is not None, lost=tuple(lost))


def _schema(text: EngineText, kept: Mapping[str, float], columns: list[Column], about: About) -> Iterator[str]:
    """Parts of a schema: Solr's own file has other fields, too."""
    yield "<!-- Into your schema: types with the tuned BM25, and the fields that have them. -->"
    yield '<similarity class="solr.SchemaSimilarityFactory"/>'
    for name in kept:
        told = similarity_of(text, name)
        yield f'<fieldType name={quoteattr(_type_of(name))} class="solr.TextField" positionIncrementGap="100">'
        if about.analyzer is None:
            yield "  <!-- your analyzer -->"
        else:
            yield from (f"  {line}" for line in solr_analysis(about.analyzer, STOP_WORDS))
        yield '  <similarity class="solr.BM25SimilarityFactory">'
        yield from (f'    <float name="{key}">{told[key]}</float>' for key in ("k1", "b"))
        yield "  </similarity>"
        yield "</fieldType>"
    for name in kept:
        yield f'<field name={quoteattr(name)} type={quoteattr(_type_of(name))} indexed="true" stored="true"/>'
    for column in columns:
        yield f'<field name={quoteattr(column.name)} type="pdouble" docValues="true"/>'


def _type_of(field: str) -> str:
    return f"{NAME}_{field}"


def _request(text: EngineText, kept: Mapping[str, float], columns: list[Column]) -> dict[str, object]:
    params: dict[str, object] = {
        "defType": "edismax",
        "qf": " ".join(f"{name}^{weight:g}" for name, weight in kept.items()),
        "tie": f"{number(text.params['tie']):g}",
        "q.op": "OR",
        "mm": "0%",
        "sow": "true",
    }
    if columns:
        params["bf"] = [boost_function(column) for column in columns]
    return {"query": "red shoes", "limit": 10, "params": params}


def _steps(about: About, columns: list[Column]) -> Iterator[str]:
    yield "Add the types and fields of schema.xml to your schema; types that have an analyzer of yours may keep it."
    if about.analyzer is not None and about.analyzer.stop_list:
        yield f"Put {STOP_WORDS} beside the schema."
    yield "Reload the collection: k1 and b are taken when scoring, so they alone need no new indexing."
    if columns:
        yield "Columns are numbers of the documents, with docValues; dates as days counted from the year 1, as tuned."
    yield "Search by query.json, with the words of the query in the place of its own."
    yield "$ curl \"$SOLR/COLLECTION/query\" -H 'Content-Type: application/json' -d @query.json"
