"""Elasticsearch: the functions of `lucene.py`, with BM25 times k1 + 1 (its LegacyBM25Similarity)."""

from __future__ import annotations

from fliprank.export.about import About
from fliprank.export.columns import takes_text_and_columns
from fliprank.export.elastic import elastic_export, field_of, fits_elastic, refused_by_elastic
from fliprank.export.functions import register_functions
from fliprank.export.lucene import lucene_formulas
from fliprank.export.target import Export, target
from fliprank.models.base import Model

__all__ = ["write"]

register_functions(*lucene_formulas("elasticsearch", k_plus_1=True))


@target(
    "elasticsearch",
    "text, by similarities and boosts; columns",
    takes_text_and_columns("elasticsearch", refused_by_elastic, fits_elastic, field_of),
)
def write(model: Model, about: About) -> Export:
    """For version 7 and newer; combined_fields from 7.13 on."""
    return elastic_export(model, about, "ELASTICSEARCH")
