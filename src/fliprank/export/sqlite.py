"""SQLite's FTS5: `bm25(table, w1, w2, ...)`. Weights of columns can be set in every query; k1 and b are constants.

score = sum_t idf_t f_t (k1 + 1) / (f_t + k1 (1 - b + b length / average)), where f_t = sum of weight x frequency over
the columns, and lengths are those of all columns together, not weighted. idf = log((N - df + .5) / (df + .5)), where df
counts rows with the term in any column, and 1e-6 where that is not above 0. SQLite gives the score a minus sign.
"""

from __future__ import annotations

from fliprank.export.about import About
from fliprank.export.functions import register_functions, takes_text_of
from fliprank.export.target import Export, target
from fliprank.models.engine import EngineText, Formula, Setting

__all__ = ["BM25"]

DIGITS = 6

BM25 = Formula(
    "sqlite",
    "bm25",
    fields="one_text",
    idf="sqlite",
    df="any",
    documents="all",
    weighted_length=False,
    k_plus_1=True,
    settings=(
        Setting("w", 1.0, each=True),
        Setting("k", 1.2, free=False),
        Setting("b", 0.75, 0.0, 1.0, free=False),
    ),
)

register_functions(BM25)


@target("sqlite", "text in FTS5, by weights of columns", takes_text_of("sqlite"))
def write(model: EngineText, about: About) -> Export:
    """The table and the query; names of columns are quoted as SQL wants it."""
    fields = model.fields or ()
    columns = ", ".join(_quoted(name) for name in fields)
    weights = ", ".join(f"{model.params[f'{name}.w']:.{DIGITS}g}" for name in fields)
    table = (
        f"CREATE VIRTUAL TABLE IF NOT EXISTS documents USING fts5(docid UNINDEXED, {columns}, tokenize = 'porter');\n"
    )
    query = (
        f"SELECT docid, -bm25(documents, 0.0, {weights}) AS score\nFROM documents WHERE documents MATCH :query\n"
        "ORDER BY score DESC LIMIT :limit;\n"
    )
    steps = (
        "If you have no such table yet, make it by table.sql: one column per field, docid first.",
        "Search by query.sql; :query is the words of the query with OR between them, each in double quotes.",
        "In a table with other columns, keep the order: bm25() takes the weights in the order of the columns.",
    )
    lost = ("FTS5 stems by Porter's older rules; fliprank tuned on terms of its own analyzer.",)
    return Export({"table.sql": table, "query.sql": query}, steps, lost=lost)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
