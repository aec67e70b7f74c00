"""LanceDB's own full-text search: BM25 of each column, with boosts of columns in the query; k1 and b are constants.

A column scores sum_t idf_t f_t (k1 + 1) / (f_t + k1 (1 - b + b length / average)), with Lucene's idf, k1 = 1.2 and b =
0.75; N and the average count the documents that have words in the column. `multi_match` (MultiMatchQuery) takes the
best column's score times its boost, `should` (a BooleanQuery of a MatchQuery per column) adds them up.
"""

from __future__ import annotations

from fliprank.export.about import About
from fliprank.export.functions import register_functions, takes_text_of
from fliprank.export.target import Export, target
from fliprank.models.engine import EngineText, Formula, Setting

__all__ = ["MULTI_MATCH", "SHOULD"]

DIGITS = 6
CONSTANTS = (
    Setting("w", 1.0, each=True),
    Setting("k", 1.2, free=False),
    Setting("b", 0.75, 0.0, 1.0, free=False),
)
MULTI_MATCH = Formula("lancedb", "multi_match", fields="best_field", k_plus_1=True, settings=CONSTANTS)
SHOULD = Formula("lancedb", "should", k_plus_1=True, settings=CONSTANTS)

register_functions(MULTI_MATCH, SHOULD)

PROGRAM = '''\
"""Index and search with LanceDB, as tuned by fliprank."""

from lancedb.index import FTS
from lancedb.query import BooleanQuery, MatchQuery, MultiMatchQuery, Occur

BOOSTS = {boosts}


def index(table):
    """Give a table the indexes that searching needs, one per column; once, and again when rows were added."""
    for column in BOOSTS:
        table.create_index(column, config=FTS({config}), replace=True)


def query(text):
    return {query}


def search(table, text, limit=10):
    """The best rows, with their `_score`: any word of the query in any column."""
    return table.search(query(text)).limit(limit).to_list()
'''
QUERIES = {
    "multi_match": "MultiMatchQuery(text, list(BOOSTS), boosts=list(BOOSTS.values()))",
    "should": "BooleanQuery([(Occur.SHOULD, MatchQuery(text, name, boost=boost)) for name, boost in BOOSTS.items()])",
}


@target("lancedb", "text in full-text indexes, by boosts of columns", takes_text_of("lancedb"))
def write(model: EngineText, about: About) -> Export:
    """A module of Python that indexes and searches; names of columns stand in it as literals."""
    boosts = {name: float(f"{model.params[f'{name}.w']:.{DIGITS}g}") for name in model.fields or ()}
    stemmed = about.analyzer is None or about.analyzer.stemmer is not None
    config = f"stem={stemmed}, remove_stop_words={about.analyzer is None or bool(about.analyzer.stopwords)}"
    program = PROGRAM.format(boosts=ascii(boosts), config=config, query=QUERIES[model.formula.function])
    steps = (
        "Give your table its indexes by `index(table)` of lancedb_search.py, if it has none; columns are named as "
        "the fields are.",
        "Search by `search(table, text, limit)`, or give `query(text)` to your own search. Boosts can be changed there "
        "at any time.",
    )
    lost = ("Words are cut and stemmed by LanceDB; fliprank tuned on terms of its own analyzer.",)
    return Export({"lancedb_search.py": program}, steps, lost=lost)
