"""Tantivy: BM25 of each field with boosts, added up. k1 and b are constants; boosts are set in every query.

score = sum_f boost_f sum_t idf_tf f_t (k1 + 1) / (f_t + k1 (1 - b + b length / average)), with lengths in one byte, as
Lucene keeps them; its query parser takes each word once. idf = log(1 + (N - df + .5) / (df + .5)) by field; N and
averages count all documents.
"""

from __future__ import annotations

from fliprank.export.about import About
from fliprank.export.functions import register_functions, takes_text_of
from fliprank.export.literals import number, python_literal
from fliprank.export.target import Export, target
from fliprank.models.engine import EngineText, Formula, Setting

__all__ = ["BM25"]

BM25 = Formula(
    "tantivy",
    "bm25",
    documents="all",
    lengths="byte",
    k_plus_1=True,
    query_once=True,
    settings=(
        Setting("w", 1.0, each=True),
        Setting("k", 1.2, free=False),
        Setting("b", 0.75, 0.0, 1.0, free=False),
    ),
)

register_functions(BM25)

_CODE = '''\
"""Tantivy as it was tuned by fliprank: see README.md. Needs the package tantivy."""

import tantivy

BOOSTS = {boosts}
TOKENIZER = {tokenizer}


def schema() -> tantivy.Schema:
    """For a new index: docid, and one field of text each."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("docid", stored=True, tokenizer_name="raw")
    for name in BOOSTS:
        builder.add_text_field(name, tokenizer_name=TOKENIZER)
    return builder.build()


def query(index: tantivy.Index, text: str) -> tantivy.Query:
    """All words of the text in all fields, none of them required."""
    parsed, _ = index.parse_query_lenient(text, list(BOOSTS), BOOSTS)
    return parsed


def search(index: tantivy.Index, text: str, limit: int = 10) -> list[tuple[str, float]]:
    """The best documents, by docid, with their scores."""
    searcher = index.searcher()
    hits = searcher.search(query(index, text), limit).hits
    return [(searcher.doc(address)["docid"][0], score) for score, address in hits]
'''


@target("tantivy", "text, by boosts of fields", takes_text_of("tantivy"))
def write(model: EngineText, about: About) -> Export:
    """A module with the schema and the query."""
    boosts = {name: float(model.params[f"{name}.w"]) for name in model.fields or ()}
    stemmed = about.analyzer is not None and about.analyzer.stemmer in ("english", "porter")
    code = _CODE.format(boosts=python_literal(boosts), tokenizer=python_literal("en_stem" if stemmed else "default"))
    rust = "; ".join(f"`set_field_boost({name}, {number(boost)})`" for name, boost in boosts.items())
    steps = (
        "$ pip install tantivy",
        "Search by search() of tantivy_search.py; schema() makes a new index, if you have none.",
        f"In Rust, give the query parser these fields and boosts: {rust}.",
    )
    lost = [] if about.analyzer is None or about.analyzer.stopwords is None else ["Tantivy keeps stop words."]
    if about.analyzer is not None and about.analyzer.stemmer is not None:
        lost += [
            f"Terms were stems (Snowball's, {about.analyzer.stemmer}); Tantivy's are its own version of English ones."
        ]
    return Export({"tantivy_search.py": code}, steps, lost=tuple(lost))
