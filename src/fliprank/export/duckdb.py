"""DuckDB's full-text search: `match_bm25(id, query, k := 1.2, b := 0.75)`, over all fields as one text.

score = sum_t idf_t f_t (k + 1) / (f_t + k (1 - b + b length / average)), where f_t counts the term in all columns, and
each word of the query counts once. idf = log10(1 + (N - df + .5) / (df + .5)), where df counts rows with the term in
any column.
"""

from __future__ import annotations

from fliprank.export.about import About
from fliprank.export.functions import register_functions, takes_text_of
from fliprank.export.literals import number, sql_name, sql_string
from fliprank.export.target import Export, target
from fliprank.models.base import Model
from fliprank.models.engine import EngineText, Formula, Setting
from fliprank.text.analysis import Analyzer

__all__ = ["BM25"]

BM25 = Formula(
    "duckdb",
    "bm25",
    fields="one_text",
    idf="log10",
    df="any",
    documents="all",
    weighted_length=False,
    k_plus_1=True,
    query_once=True,
    settings=(Setting("k", 1.2), Setting("b", 0.75, 0.0, 1.0)),
)

register_functions(BM25)

WORD = r"[^\p{L}\p{N}\p{M}_]+"
"""What separates words, in the syntax of DuckDB's regular expressions."""


def _takes(model: Model) -> str | None:
    reason = takes_text_of("duckdb")(model)
    bad = [name for name in getattr(model, "fields", None) or () if "'" in name or '"' in name]
    return reason or (
        f"create_fts_index fails where the name of a field has a quote ({bad[0]}): rename it" if bad else None
    )


@target("duckdb", "text in the extension fts, by k and b", _takes)
def write(model: EngineText, about: About) -> Export:
    """The table with its index, and the query; names and words are quoted as SQL wants it."""
    fields, analyzer = model.fields or (), about.analyzer or Analyzer(stopwords=None, stemmer=None)
    columns = ", ".join(f"{sql_name(name)} VARCHAR" for name in fields)
    stop = ", ".join(f"({sql_string(word)})" for word in analyzer.stop_list)
    table = f"CREATE TABLE IF NOT EXISTS documents (docid VARCHAR PRIMARY KEY, {columns});\n"
    words = f"CREATE OR REPLACE TABLE stop_words AS SELECT * FROM (VALUES {stop}) AS words (sw);\n" if stop else ""
    cutting = {
        "stemmer": sql_string(analyzer.stemmer or "none"),
        "stopwords": sql_string("stop_words" if stop else "none"),
        "ignore": sql_string(WORD),
        "strip_accents": "0",
        "lower": str(int(analyzer.lowercase)),
        "overwrite": "1",
    }
    arguments = [
        *map(sql_string, ("documents", "docid", *fields)),
        *(f"{name} = {each}" for name, each in cutting.items()),
    ]
    index = f"INSTALL fts;\nLOAD fts;\n{words}PRAGMA create_fts_index({', '.join(arguments)});\n"
    numbers = f"k := {number(model.params['k'])}, b := {number(model.params['b'])}"
    query = (
        f"SELECT docid, fts_main_documents.match_bm25(docid, $query, {numbers}) AS score\n"
        "FROM documents WHERE score IS NOT NULL\nORDER BY score DESC LIMIT $limit;\n"
    )
    steps = (
        "If you have no such table yet, make it by table.sql, and fill it.",
        "Index it by index.sql, and again whenever the table changes: DuckDB does not do so by itself.",
        "Search by query.sql; $query is the words of the query.",
    )
    lost = []
    if about.analyzer is None:
        lost += ["How texts were cut into terms is not known: the index has words in lower case, without stop words."]
    elif analyzer.stemmer is not None:
        lost += [f"Stems are those of DuckDB's version of Snowball's {analyzer.stemmer} stemmer."]
    files = {"table.sql": table, "index.sql": index, "query.sql": query}
    return Export(files, steps, reindex=True, lost=tuple(lost))
