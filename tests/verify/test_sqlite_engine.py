"""SQLite itself computes what we compute."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from engine_checks import FIELDS, check_help_centre, check_odd_texts, model_of, odd_index

from fliprank.export import write_export


def test_scores_of_odd_texts() -> None:
    check_odd_texts("sqlite")


def test_scores_and_measures_of_the_help_centre() -> None:
    check_help_centre("sqlite")


def test_the_exported_files_are_sql_that_ranks(tmp_path: Path) -> None:
    model = model_of(odd_index(), "sqlite", None, 1)
    folder = write_export(tmp_path / "out", model, "sqlite")
    with sqlite3.connect(":memory:") as database:
        database.executescript((folder / "table.sql").read_text())
        rows = [("a", "shoe", "red", ""), ("b", "", "shoe shoe", "red"), ("c", "blue", "", "")]
        database.executemany(f"INSERT INTO documents(docid, {', '.join(FIELDS)}) VALUES (?, ?, ?, ?)", rows)
        asked = {"query": '"shoe" OR "red"', "limit": 10}
        found = database.execute((folder / "query.sql").read_text(), asked).fetchall()
    assert {docid for docid, _ in found} == {"a", "b"}
