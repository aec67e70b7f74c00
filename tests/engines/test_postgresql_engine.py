"""PostgreSQL itself computes what we compute, and the SQL that is exported ranks as the model does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import psycopg
import pytest
from engine_checks import QUERIES, check, check_help_centre, check_odd_texts, model_of, odd_index

from fliprank.data.trec import Qrels
from fliprank.engines.coded_texts import coded_documents, coded_queries
from fliprank.engines.postgresql_server import server
from fliprank.engines.verify import verify
from fliprank.export import About, engine_model, write_export
from fliprank.text.analysis import Analyzer
from fliprank.text.index import Index

FUNCTIONS = pytest.mark.parametrize("function", ["ts_rank", "ts_rank_1", "ts_rank_2"])
BARE = Analyzer(stopwords=None, stemmer=None)


@FUNCTIONS
def test_scores_of_odd_texts(function: str) -> None:
    check_odd_texts("postgresql", function)


@FUNCTIONS
def test_scores_and_measures_of_the_help_centre(function: str) -> None:
    check_help_centre("postgresql", function)


def test_a_word_has_255_places_in_a_field_and_256_in_a_document() -> None:
    pages = [
        {"_id": f"d{n}", "a": "xa " * n, "b": "xa " * 10, "c": "xa xb"} for n in (200, 244, 246, 254, 255, 256, 300)
    ]
    index = Index.build(pages, fields=["a", "b", "c"], analyzer=BARE)
    model = engine_model("postgresql", None, index.fields).prepared(index.rows({}, {}), 0)
    for weights in ([0.1, 0.2, 1.0], [0.9, 0.4, 0.5], [0.0, 0.0, 0.7], [0.5, 0.5, 0.5]):
        found = verify(model.at(weights), index, {"q": "xa"}, Qrels.of({"q": {"d200": 1.0}}))
        check(found, least=len(pages))


def columns_of(index: Index) -> list[tuple[str | None, ...]]:
    """Documents as rows; a field without words is NULL."""
    found = coded_documents(index, index.fields).items()
    return [(docid, *(texts[name] or None for name in index.fields)) for docid, texts in found]


@FUNCTIONS
def test_the_exported_sql_ranks_as_the_model_does(function: str, tmp_path: Path) -> None:
    """With names of columns that need quotes, and queries as people type them."""
    index, model = odd_index(), model_of(odd_index(), "postgresql", function, 3)
    names = ('the "title"', "select", "%s; --")
    params = engine_model("postgresql", function, names).params.at(model.params.values)
    renamed = replace(model, fields=names, params=params)
    folder = write_export(tmp_path / "out", renamed, "postgresql", About(analyzer=BARE))
    quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
    expected = index.search(QUERIES, model, depth=len(index)).to_dict()
    with psycopg.connect(host=server(), user="postgres", dbname="postgres", cursor_factory=psycopg.RawCursor) as base:
        base.execute(f"CREATE TEMPORARY TABLE documents (docid text, {' text, '.join(quoted.split(', '))} text)")
        with base.cursor() as cursor, cursor.copy(f"COPY documents (docid, {quoted}) FROM STDIN") as to:
            for row in columns_of(index):
                to.write_row(row)
        base.execute((folder / "column.sql").read_text())
        for qid, words in coded_queries(index, QUERIES).items():
            found = dict(base.execute((folder / "query.sql").read_text(), (", ".join(words), 1000)).fetchall())
            assert found == pytest.approx(expected.get(qid, {}), rel=1e-5)
            ours = np.array([expected[qid][docid] for docid in found])
            assert (np.diff(ours) <= 1e-5 * ours[:-1]).all()
        base.rollback()
