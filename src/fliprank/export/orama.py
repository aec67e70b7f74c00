"""Orama: BM25 of each field with boosts, on shares of the field instead of frequencies.

score = sum_f boost_f sum_t idf_tf (d + s (k + 1)) / (s + k (1 - b + b length / average)). Orama keeps each word of a
field once, so length counts different words and s = 1 / length; it takes each word of the query once, too. idf = log(1
+ (N - df + .5) / (df + .5)) by field, N counts all documents.
"""

from __future__ import annotations

from fliprank.export.about import About
from fliprank.export.functions import register_functions, takes_text_of
from fliprank.export.javascript import analyzer_lost, boosts, literal, terms_module
from fliprank.export.literals import number
from fliprank.export.target import Export, target
from fliprank.models.base import Model
from fliprank.models.engine import EngineText, Formula, Setting

__all__ = ["BM25"]

BM25 = Formula(
    "orama",
    "bm25",
    documents="all",
    lengths="distinct",
    k_plus_1=True,
    d_inside=True,
    presence=True,
    share_of_field=True,
    query_once=True,
    settings=(
        Setting("w", 1.0, each=True),
        Setting("k", 1.2),
        Setting("b", 0.75, 0.0, 1.0),
        Setting("d", 0.5),
    ),
)

register_functions(BM25)

_MODULE = """\
// Orama as it was tuned by fliprank: see README.md.
//
//     import {{ create, insertMultiple, search }} from '@orama/orama'
//     import {{ schema, tokenizer, searchOptions, filled }} from './orama.mjs'
//     const index = create({{ schema, components: {{ tokenizer: tokenizer() }} }})   // tokenizer(stem), with a stemmer
//     await insertMultiple(index, documents.map(filled))
//     await search(index, {{ term: 'a query', ...searchOptions }})

export const schema = {schema}

{terms}
/** Orama also finds words that begin with a word of the query: an end mark makes it find whole words only. */
export const tokenizer = stem => ({{
  language: 'english',
  normalizationCache: new Map(),
  tokenize: text => [...new Set(terms(String(text), stem).map(term => term + '\\u0001'))]
}})

/** A field that a document lacks is an empty one: Orama would average over it wrongly. */
export const filled = document =>
  ({{ ...document, ...Object.fromEntries(Object.keys(schema).map(name => [name, document[name] ?? ''])) }})

export const searchOptions = {{
  boost: {boost},
  relevance: {{ k: {k}, b: {b}, d: {d} }},
  threshold: 1
}}
"""


def _takes(model: Model) -> str | None:
    reason = takes_text_of("orama")(model)
    nested = [name for name in getattr(model, "fields", None) or () if "." in name]
    return reason or (f"Orama takes a dot in the name of a field ({nested[0]}) for a path" if nested else None)


@target("orama", "text, by boosts of fields and k, b, d", _takes)
def write(model: EngineText, about: About) -> Export:
    """A module with the schema, the tokenizer and the options of a search."""
    numbers = {name: number(model.params[name]) for name in ("k", "b", "d")}
    schema = dict.fromkeys(model.fields or (), "string")
    module = _MODULE.format(schema=literal(schema), terms=terms_module(about), boost=literal(boosts(model)), **numbers)
    steps = (
        "$ npm install @orama/orama@3",
        "Put orama.mjs beside your code; its first lines show how the index is made and searched. Other columns that "
        "you filter by are added to the schema.",
    )
    lost = (
        *analyzer_lost(about),
        "Words that only begin as a word of the query does do not count; without `tokenizer` Orama counts them, and "
        "other numbers would be right.",
    )
    return Export({"orama.mjs": module}, steps, reindex=True, lost=lost)
