"""DuckDB itself computes what we compute."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from engine_checks import (
    check_help_centre,
    check_hits,
    check_odd_texts,
    model_of,
    random_parameters,
)

from fliprank.data.builtin import collection
from fliprank.engines.duckdb import open_database
from fliprank.errors import UsageError
from fliprank.export import About, write_export
from fliprank.export.functions import engine_model
from fliprank.text.analysis import Analyzer
from fliprank.text.index import Index
from fliprank.text.search.queries import read_queries

FIELDS = ("title", "headings", "text")


def test_scores_of_odd_texts() -> None:
    check_odd_texts("duckdb")


def test_scores_and_measures_of_the_help_centre() -> None:
    check_help_centre("duckdb")


def run(folder: Path, name: str, database: object, given: object = None) -> list[tuple[str, float]]:
    """The statements of a file; the extension is loaded already, from the package that tests have."""
    found: list[tuple[str, float]] = []
    for statement in (folder / name).read_text("utf-8").split(";\n"):
        if statement.strip() not in ("", "INSTALL fts", "LOAD fts"):
            found = database.execute(statement, given).fetchall()  # type: ignore[attr-defined]
    return found


def test_the_exported_files_rank_real_texts_as_the_model_does(tmp_path: Path) -> None:
    index = Index.build(collection(), fields=FIELDS, analyzer=Analyzer(stemmer=None))
    model = model_of(index, "duckdb", None, 1)
    folder = write_export(tmp_path / "out", model, "duckdb", About(analyzer=index.analyzer))
    database = open_database()
    run(folder, "table.sql", database)
    for line in (collection() / "corpus.jsonl").read_text("utf-8").splitlines():
        page = json.loads(line)
        database.execute(
            "INSERT INTO documents VALUES (?, ?, ?, ?)", [page["_id"], *(page.get(name) for name in FIELDS)]
        )
    run(folder, "index.sql", database)
    asked = dict(list(read_queries(collection()).items())[:40])
    hits = {q: dict(run(folder, "query.sql", database, {"query": text, "limit": 1000})) for q, text in asked.items()}
    check_hits(index, model, asked, hits)


def test_names_and_stop_words_can_not_break_out(tmp_path: Path) -> None:
    names = ("a); DROP TABLE documents", "b\\", "c d")
    rows = Index.build([{"_id": "x"} | dict.fromkeys(names, "red shoe")], fields=names)
    model = random_parameters(engine_model("duckdb").prepared(rows.rows({}, {}), 0), 1)
    folder = write_export(tmp_path / "out", model, "duckdb", About(analyzer=Analyzer(stopwords=["it's", "red"])))
    database = open_database()
    run(folder, "table.sql", database)
    database.execute("INSERT INTO documents VALUES ('x', 'Red shoes', 'it', NULL), ('y', 'red', 'blue', '')")
    run(folder, "index.sql", database)
    assert [docid for docid, _ in run(folder, "query.sql", database, {"query": "red SHOE", "limit": 5})] == ["x"]


def test_names_that_duckdb_itself_fails_on_are_refused(tmp_path: Path) -> None:
    rows = Index.build([{"_id": "x", "a'b": "red"}], fields=["a'b"])
    model = engine_model("duckdb").prepared(rows.rows({}, {}), 0)
    with pytest.raises(UsageError, match="where the name of a field has a quote"):
        write_export(tmp_path / "out", model, "duckdb")
