"""Vespa: a rank profile of weighted `bm25(field)`, with k1, b and the average length of each field, and attributes.

bm25(field) = sum_t idf tf (k1 + 1) / (tf + k1 (1 - b + b length / average)), idf = log(1 + (N - n + .5) / (n + .5)); N
counts all documents of the content node, n those with the term in the field. Lengths are exact. The average length is
set to that of the documents that were tuned on, which Vespa would otherwise take per node. A rank profile may hold any
expression, so that every curve of a column can be written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from fliprank.export.about import About
from fliprank.export.columns import Column, identifier, takes_text_and_columns, text_and_columns
from fliprank.export.functions import register_functions
from fliprank.export.lucene import kept_fields, number
from fliprank.export.target import Export, target
from fliprank.models.base import Model
from fliprank.models.engine import EngineText, Formula

__all__ = ["BM25", "column_expression"]

BM25 = Formula("vespa", "bm25", k_plus_1=True, documents="all")

register_functions(BM25)


def vespa_name(name: str) -> str:
    """A field's name as Vespa allows it.

    >>> vespa_name("metadata.author")
    'metadata_author'
    """
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def column_expression(column: Column) -> str:
    """A column's part of the score.

    >>> column_expression(Column("stars", "saturate", 0.5, 3.0))
    '0.5 * column_stars / (column_stars + 3)'
    """
    x, weight, k = f"column_{vespa_name(column.name)}", f"{number(column.weight):g}", f"{number(column.k):g}"
    pivot = f"{number(column.k**column.a):g}"
    power = f"pow({x}, {number(column.a):g})"
    age = f"max({column.newest!r} - {x}, 0)"
    curves = {
        "none": x,
        "log": f"log({x} + {k})",
        "saturate": f"{x} / ({x} + {k})",
        "sigmoid": f"{power} / ({power} + {pivot})",
        "signed": f"{x} / (fabs({x}) + {k})",
        "recency": f"if ({x} > 0, {k} / ({age} + {k}), 0)",
    }
    return f"{weight} * {curves[column.transform]}"


@target(
    "vespa",
    "text, by weighted bm25; columns as attributes",
    takes_text_and_columns("vespa", lambda column: None, lambda name: identifier(vespa_name(name)),
                           lambda column: vespa_name(column.name)),
)  # fmt: skip
def write(model: Model, about: About) -> Export:
    """Fields and the rank profile, as parts of a schema."""
    found = text_and_columns(model)
    assert found is not None
    text, columns = found
    kept, dropped = kept_fields(text)
    lost = [f"Field {name} is left out: its weight is next to nothing." for name in dropped]
    renamed = [name for name in (*kept, *(column.name for column in columns)) if vespa_name(name) != name]
    lost += [f"{name} is called {vespa_name(name)} there." for name in renamed]
    lost.append("Vespa's own linguistics cut and stem the text; fliprank tuned on terms of its own analyzer.")
    lost.append("Several content nodes take idf from their own documents each.")
    steps = (
        "Put the fields of schema.sd into your document type and the rank profile into your schema.",
        "Deploy the application; fields that had no `index: enable-bm25` before are indexed again by Vespa.",
        "Search with the profile; `grammar: weakAnd` or `any` finds documents that have some of the words.",
        "$ vespa query 'yql=select * from sources * where "
        '{grammar: "any", defaultIndex: "fliprank"}userInput(@words)\' \'words=red shoes\' ranking=fliprank',
    )
    files = {"schema.sd": "\n".join(_schema(text, kept, columns)) + "\n"}
    return Export(files, steps, reindex=True, lost=tuple(lost))


def _schema(text: EngineText, kept: Mapping[str, float], columns: list[Column]) -> Iterator[str]:
    yield "# Into your document type:"
    for name in kept:
        yield f"field {vespa_name(name)} type string {{"
        yield "    indexing: index | summary"
        yield "    index: enable-bm25"
        yield "}"
    for column in columns:
        yield f"field {vespa_name(column.name)} type double {{"
        yield "    indexing: attribute | summary"
        yield "}"
    yield ""
    yield "# Into your schema:"
    yield "fieldset fliprank {"
    yield f"    fields: {', '.join(map(vespa_name, kept))}"
    yield "}"
    yield ""
    yield from _profile(text, kept, columns)


def _profile(text: EngineText, kept: Mapping[str, float], columns: list[Column]) -> Iterator[str]:
    yield "rank-profile fliprank inherits default {"
    for column in columns:
        name = vespa_name(column.name)
        value = f"if (isNan(attribute({name})) == 1, 0, attribute({name}))"
        signed = column.transform in ("none", "signed")
        yield f"    function column_{name}() {{"
        yield f"        expression: {value if signed else f'max({value}, 0)'}"
        yield "    }"
    parts = [f"{weight:g} * bm25({vespa_name(name)})" for name, weight in kept.items()]
    yield "    first-phase {"
    yield f"        expression: {' + '.join([*parts, *map(column_expression, columns)])}"
    yield "    }"
    yield "    rank-properties {"
    for name in kept:
        told = {
            "k1": text.params[f"{name}.k"],
            "b": text.params[f"{name}.b"],
            "averageFieldLength": _average(text, name),
        }
        yield from (f"        bm25({vespa_name(name)}).{key}: {number(value):g}" for key, value in told.items())
    yield "    }"
    yield "}"


def _average(text: EngineText, name: str) -> float:
    assert text.fields is not None
    assert text.tokens is not None
    assert text.counted is not None
    place = text.fields.index(name)
    return float(text.tokens[place] / max(text.counted[place], 1.0))
