"""Exported files of Elasticsearch and OpenSearch, tried out in Lucene."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from column_pages import column_index, pages
from elastic_in_lucene import ElasticIndex
from engine_checks import FIELDS

from fliprank.engines.java import newest_lucene
from fliprank.models import Model


def documents() -> dict[str, dict[str, Any]]:
    """As they are sent to the engine: what is missing is left out."""
    names = (*FIELDS, "stars", "price", "published")
    return {page["_id"]: {name: page[name] for name in names if page[name] is not None} for page in pages()}


def check_elastic_files(
    folder: Path, model: Model, product: str, template: str = "search-template.json", apart: float = 1e-5
) -> None:
    """Every document's score, but for a constant that is the same for all documents of a query."""
    index = column_index()
    engine = ElasticIndex(newest_lucene(), product, (folder / "index.json").read_text(), documents())
    for query in ("w1 w2", "w3", "w4 w5 w5 w6"):
        found = engine.search((folder / template).read_text(), query_string=query, size=1000)
        rows = index.rows({"q": query}, {"q": list(found)})
        assert len(found) == len(index.search({"q": query}, depth=1000).to_dict()["q"]) > 10
        gap = np.array(list(found.values())) - model.score(rows)
        np.testing.assert_allclose(gap, gap.mean(), atol=apart * max(found.values()))
