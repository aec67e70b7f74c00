"""Lunr: BM25 of each field with boosts, in vectors that are rounded to three decimals when the index is built.

score = sum_t n_t sum_f round(boost_f idf_t f_t (k1 + 1) / (f_t + k1 (1 - b + b length / average))) / |n|, where n_t
counts the word in the query. idf = log(1 + |(N - df + .5) / (df + .5)|), where df adds up the documents of all fields,
and so may be above N.
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
    "lunr",
    "bm25",
    idf="lunr",
    df="added",
    documents="all",
    k_plus_1=True,
    query_norm=True,
    step=0.001,
    settings=(Setting("w", 1.0, each=True), Setting("k", 1.2), Setting("b", 0.75, 0.0, 1.0)),
)

register_functions(BM25)

_MODULE = """\
// Lunr as it was tuned by fliprank: see README.md.
//
//     import lunr from 'lunr'
//     import {{ configure, search }} from './lunr.mjs'
//     const index = lunr(function () {{
//       configure(lunr, this)                            // configure(lunr, this, stem), with a stemmer
//       documents.forEach(document => this.add(document))
//     }})
//     search(index, 'a query')                           // search(index, 'a query', stem), with a stemmer

export const fields = {boost}

{terms}
export function configure (lunr, builder, stem) {{
  builder.pipeline.reset()
  builder.searchPipeline.reset()
  builder.tokenizer = text => terms(text == null ? '' : String(text), stem).map(term => new lunr.Token(term))
  builder.k1({k})
  builder.b({b})
  for (const [name, boost] of Object.entries(fields)) builder.field(name, {{ boost }})
}}

export const search = (index, text, stem) =>
  index.query(query => terms(text, stem).forEach(term => query.term(term)))
"""


def _takes(model: Model) -> str | None:
    reason = takes_text_of("lunr")(model)
    bad = [name for name in getattr(model, "fields", None) or () if "/" in name]
    return reason or (f"Lunr takes no field with a slash in its name ({bad[0]}): rename it" if bad else None)


@target("lunr", "text, by boosts of fields and k1, b", _takes)
def write(model: EngineText, about: About) -> Export:
    """A module that configures the builder and searches."""
    numbers = {name: number(model.params[name]) for name in ("k", "b")}
    module = _MODULE.format(terms=terms_module(about), boost=literal(boosts(model)), **numbers)
    steps = (
        "$ npm install lunr@2",
        "Put lunr.mjs beside your code; its first lines show how the index is made and searched. The id is read from "
        "`id`; call builder.ref() if yours has another name.",
        "An index that was made ahead and saved as JSON has these settings in it: make it again.",
    )
    lost = (*analyzer_lost(about), "Queries are words: the signs of Lunr's own query language have no meaning here.")
    return Export({"lunr.mjs": module}, steps, reindex=True, lost=lost)
