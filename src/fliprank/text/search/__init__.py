"""From an index to rankings and candidates: queries, retrieval, term statistics."""
