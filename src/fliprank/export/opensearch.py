"""OpenSearch: the functions of `lucene.py`.

Its BM25 is Lucene's from version 3 on; before, it was multiplied by k1 + 1, as Elasticsearch's is. There a second
template divides the boosts by k1 + 1. combined_fields came with version 3.2.
"""

from __future__ import annotations

from dataclasses import replace

from fliprank.export.about import About
from fliprank.export.columns import takes_text_and_columns, text_and_columns
from fliprank.export.elastic import elastic_export, field_of, fits_elastic, refused_by_elastic
from fliprank.export.functions import register_functions
from fliprank.export.lucene import lucene_formulas
from fliprank.export.target import Export, target
from fliprank.models.base import Model
from fliprank.models.engine import EngineText

__all__ = ["write"]

OLD = "search-template-before-3.json"

register_functions(*lucene_formulas("opensearch"))


@target(
    "opensearch",
    "text, by similarities and boosts; columns",
    takes_text_and_columns("opensearch", refused_by_elastic, fits_elastic, field_of),
)
def write(model: Model, about: About) -> Export:
    """For version 3 and newer, and the template for earlier ones."""
    export = elastic_export(model, about, "OPENSEARCH")
    found = text_and_columns(model)
    assert found is not None
    function = found[0].formula.function
    if function == "combined_fields":
        return replace(export, steps=("combined_fields needs OpenSearch 3.2 or newer.", *export.steps))
    if function not in ("most_fields", "best_fields"):
        return export
    text = found[0]
    shrunk = {f"{name}.w": text.params[f"{name}.w"] / (text.params[f"{name}.k"] + 1.0) for name in text.fields or ()}
    older = elastic_export(_with_weights(model, shrunk), about, "OPENSEARCH")
    files = {**export.files, OLD: older.files["search-template.json"]}
    note = f"Before version 3, BM25 is multiplied by k1 + 1: store {OLD} instead, whose boosts are divided by it."
    return replace(export, files=files, steps=(*export.steps, note))


def _with_weights(model: Model, weights: dict[str, float]) -> Model:
    """The same with these weights of fields; in a stack, a column of the same name may have lent them a prefix."""
    prefix = "" if isinstance(model, EngineText) or set(weights) <= set(model.params.names) else "engine."
    return model.at(model.params.replace({f"{prefix}{name}": value for name, value in weights.items()}))
