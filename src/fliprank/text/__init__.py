"""From documents to candidates: analysis, a field-wise index, retrieval, term statistics."""
