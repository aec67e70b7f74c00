"""PostgreSQL's ts_rank, in a server of our own (`postgresql_server.py`)."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from fliprank.engines.base import Runner, Texts, missing_package, register
from fliprank.engines.postgresql_server import programs, server
from fliprank.export.postgresql import labelled, weights_array
from fliprank.models.engine import EngineText, TsRank
from fliprank.models.engine.ts_rank import NORMALISATIONS

__all__ = ["PostgreSQL"]

PACKAGE = missing_package("psycopg, which talks to PostgreSQL,", "pip install 'psycopg[binary]'")


@register
class PostgreSQL(Runner):
    """A temporary table of labelled words."""

    name = "postgresql"

    def __init__(self, documents: Texts, fields: Sequence[str], model: EngineText) -> None:
        import psycopg

        self.connection = psycopg.connect(host=server(), user="postgres", dbname="postgres", autocommit=True)
        names = [f"f{number}" for number in range(len(fields))]
        columns = ", ".join(f"{name} text" for name in names)
        generated = f"words tsvector GENERATED ALWAYS AS ({labelled(names, 'simple')}) STORED"
        self.connection.execute(f"CREATE TEMPORARY TABLE texts (docid text, {columns}, {generated})")
        with (
            self.connection.cursor() as cursor,
            cursor.copy(f"COPY texts (docid, {', '.join(names)}) FROM STDIN") as to,
        ):
            for docid, texts in documents.items():
                to.write_row((docid, *(texts[name] for name in fields)))

    def search(self, words: Sequence[str], model: EngineText, depth: int) -> dict[str, float]:
        if not words:
            return {}
        assert isinstance(model, TsRank)
        found = self.connection.execute(
            "SELECT docid, ts_rank(CAST(%s AS float4[]), words, query, %s) AS score "
            "FROM texts, to_tsquery('simple', %s) AS query WHERE words @@ query "
            "ORDER BY score DESC, docid DESC LIMIT %s",
            (weights_array(model, 17), NORMALISATIONS[model.formula.function], " | ".join(words), depth),
        )
        return dict(found.fetchall())

    @classmethod
    def version(cls) -> str:
        try:
            import psycopg  # noqa: F401
        except ImportError as error:
            raise PACKAGE(error) from error
        done = subprocess.run([str(programs() / "postgres"), "--version"], capture_output=True, text=True, check=True)
        return done.stdout.strip().replace("postgres (PostgreSQL)", "PostgreSQL")

    def close(self) -> None:
        self.connection.close()
