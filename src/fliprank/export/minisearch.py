"""MiniSearch: BM25+ of each field with boosts, times the number of query words that the document has.

score = m sum_f boost_f sum_t idf_tf (d + f_t (k + 1) / (f_t + k (1 - b + b length / average))), where m counts the
different words of the query that the document has in some field. idf = log(1 + (N - df + .5) / (df + .5)) by field, N
counts all documents. The length of a field is the number of different words in it.
"""

from __future__ import annotations

from fliprank.export.about import About
from fliprank.export.functions import register_functions, takes_text_of
from fliprank.export.javascript import analyzer_lost, boosts, literal, terms_module
from fliprank.export.literals import number
from fliprank.export.target import Export, target
from fliprank.models.engine import EngineText, Formula, Setting

__all__ = ["BM25_PLUS"]

BM25_PLUS = Formula(
    "minisearch",
    "bm25plus",
    documents="all",
    lengths="distinct",
    k_plus_1=True,
    coordination=True,
    settings=(
        Setting("w", 1.0, each=True),
        Setting("k", 1.2),
        Setting("b", 0.7, 0.0, 1.0),
        Setting("d", 0.5),
    ),
)

register_functions(BM25_PLUS)

_MODULE = """\
// MiniSearch as it was tuned by fliprank: see README.md.
//
//     import MiniSearch from 'minisearch'
//     import {{ options }} from './minisearch.mjs'
//     const index = new MiniSearch(options())          // options(stem), with a stemmer
//     index.addAll(documents)                          // each with an id and these fields
//     index.search('a query')

export const fields = {fields}

{terms}
export const searchOptions = {{
  boost: {boost},
  bm25: {{ k: {k}, b: {b}, d: {d} }},
  combineWith: 'OR',
  prefix: false,
  fuzzy: false
}}

/** For the constructor. A field that a document lacks is an empty one: MiniSearch would average over it wrongly. */
export const options = stem => ({{
  fields,
  extractField: (document, name) => fields.includes(name) ? document[name] ?? '' : document[name],
  tokenize: text => terms(text, stem),
  processTerm: term => term,
  searchOptions
}})
"""


@target("minisearch", "text, by boosts of fields and k, b, d", takes_text_of("minisearch"))
def write(model: EngineText, about: About) -> Export:
    """A module with the options of the constructor."""
    numbers = {name: number(model.params[name]) for name in ("k", "b", "d")}
    module = _MODULE.format(
        fields=literal(model.fields or ()), terms=terms_module(about), boost=literal(boosts(model)), **numbers
    )
    steps = (
        "$ npm install minisearch@7",
        "Put minisearch.mjs beside your code; its first lines show how the index is made and searched. "
        "Fields are read from the documents by name, the id from `id` (set idField if yours has another name).",
        "To keep your own tokenizer, take only `searchOptions`: words are then cut otherwise than when it was tuned.",
    )
    lost = (*analyzer_lost(about), "Words that only begin as a word of the query does, or are like it, do not count.")
    return Export({"minisearch.mjs": module}, steps, reindex=True, lost=lost)
