"""Search engines that run here, and the proof that a tuned function does there what it did here: `fliprank verify`."""

from fliprank.engines import (  # noqa: F401
    browser,
    duckdb,
    lancedb,
    lucene,
    milvus,
    postgresql,
    sqlite,
    tantivy,
    whoosh,
    xapian,
)
