"""SQLite's full-text search, which comes with Python."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from fliprank.engines.base import Runner, Texts, register
from fliprank.models.engine import EngineText

__all__ = ["SQLite"]


@register
class SQLite(Runner):
    """A table of FTS5 in memory."""

    name = "sqlite"

    def __init__(self, documents: Texts, fields: Sequence[str], model: EngineText) -> None:
        self.fields = tuple(fields)
        self.connection = sqlite3.connect(":memory:")
        columns = [f"f{number}" for number in range(len(self.fields))]
        self.connection.execute(f"CREATE VIRTUAL TABLE texts USING fts5(docid UNINDEXED, {', '.join(columns)})")
        marks = ", ".join("?" * (len(columns) + 1))
        rows = ((docid, *(texts[name] for name in self.fields)) for docid, texts in documents.items())
        self.connection.executemany(f"INSERT INTO texts VALUES ({marks})", rows)

    def search(self, words: Sequence[str], model: EngineText, depth: int) -> dict[str, float]:
        if not words:
            return {}
        weights = [0.0, *(model.params[f"{name}.w"] for name in self.fields)]
        found = self.connection.execute(
            f"SELECT docid, -bm25(texts, {', '.join('?' * len(weights))}) AS score FROM texts WHERE texts MATCH ? "
            "ORDER BY score DESC, docid DESC LIMIT ?",
            (*weights, " OR ".join(words), depth),
        )
        return dict(found.fetchall())

    @classmethod
    def version(cls) -> str:
        return f"SQLite {sqlite3.sqlite_version}"

    def close(self) -> None:
        self.connection.close()
