"""DuckDB's full-text search: an extension, which the package duckdb-extension-fts has on board."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any

from fliprank.engines.base import Runner, Texts, missing_package, register
from fliprank.errors import UsageError
from fliprank.models.engine import EngineText

__all__ = ["DuckDB", "fts_extension", "open_database"]


def fts_extension() -> Path:
    """The file of the extension; raises if it is not there."""
    try:
        package = distribution("duckdb-extension-fts")
    except PackageNotFoundError as error:
        install = "pip install duckdb duckdb-extension-fts, both of the same version"
        raise missing_package("DuckDB's full-text search", install)(error) from error
    for path in package.files or ():
        if path.name == "fts.duckdb_extension":
            return Path(str(package.locate_file(path)))
    raise UsageError("the package duckdb-extension-fts has no fts.duckdb_extension in it: install it again")


def open_database() -> Any:
    """A database in memory that knows full-text search."""
    import duckdb

    connection = duckdb.connect(":memory:")
    path = str(fts_extension()).replace("'", "''")
    connection.execute(f"LOAD '{path}'")
    return connection


@register
class DuckDB(Runner):
    """A table in memory, whose words were cut already."""

    name = "duckdb"

    def __init__(self, documents: Texts, fields: Sequence[str], model: EngineText) -> None:
        self.connection = open_database()
        columns = [f"f{number}" for number in range(len(fields))]
        self.connection.execute(
            f"CREATE TABLE texts (docid VARCHAR, {', '.join(f'{name} VARCHAR' for name in columns)})"
        )
        marks = ", ".join("?" * (len(columns) + 1))
        rows = [[docid, *(texts[name] for name in fields)] for docid, texts in documents.items()]
        self.connection.execute("BEGIN")
        self.connection.executemany(f"INSERT INTO texts VALUES ({marks})", rows)
        self.connection.execute("COMMIT")
        names = ", ".join(f"'{name}'" for name in columns)
        self.connection.execute(f"PRAGMA create_fts_index('texts', 'docid', {names}, stemmer='none', stopwords='none')")

    def search(self, words: Sequence[str], model: EngineText, depth: int) -> dict[str, float]:
        found = self.connection.execute(
            "SELECT docid, fts_main_texts.match_bm25(docid, ?, k := ?, b := ?) AS score FROM texts "
            "WHERE score IS NOT NULL ORDER BY score DESC, docid DESC LIMIT ?",
            [" ".join(words), float(model.params["k"]), float(model.params["b"]), depth],
        )
        return dict(found.fetchall())

    @classmethod
    def version(cls) -> str:
        fts_extension()
        try:
            return f"DuckDB {version('duckdb')}"
        except PackageNotFoundError as error:
            raise missing_package("DuckDB", "pip install duckdb")(error) from error

    def close(self) -> None:
        self.connection.close()
