"""A tuned fusion as an export of its engine: the settings of `fusion.py` in a file, and what to do with it.

A fusion is a formula of one engine, so it can be exported there and nowhere else; Elasticsearch's and OpenSearch's two
formulas each are also reached by the engine's plain name.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from fliprank.export.about import About
from fliprank.export.fusion import DIGITS, SHAPES, fusion_settings
from fliprank.export.target import Export, target
from fliprank.models.base import Model
from fliprank.models.fusion import Fusion

__all__ = ["PASTED", "Pasted"]

QUERIES = "Put your own query of each list in the place of {NAME: 'its query'}"


class Pasted(NamedTuple):
    """The file with the settings of an engine, and what to do with it."""

    file: str
    step: str


PASTED = {
    "elasticsearch-linear": Pasted("search.json", f"{QUERIES}, and send search.json to INDEX/_search."),
    "elasticsearch-rrf": Pasted("search.json", f"{QUERIES}, and send search.json to INDEX/_search."),
    "opensearch": Pasted(
        "search-pipeline.json",
        "Put search-pipeline.json as _search/pipeline/NAME, and search with a `hybrid` query of the same lists in the "
        "same order and search_pipeline=NAME.",
    ),
    "opensearch-rrf": Pasted(
        "search-pipeline.json",
        "Put search-pipeline.json as _search/pipeline/NAME, and search with a `hybrid` query of the same lists in the "
        "same order and search_pipeline=NAME.",
    ),
    "weaviate": Pasted("hybrid.graphql", "Give these arguments to your hybrid query."),
    "qdrant": Pasted("query.json", "Add a `prefetch` for each list, in the same order, and send it to points/query."),
    "milvus": Pasted("ranker.py", "Give this ranker to hybrid_search, with one request per list in the same order."),
    "vespa": Pasted("global-phase.sd", "Put this into your rank profile, with a function for each list's own score."),
    "solr": Pasted("params.txt", "Send these parameters with your request."),
    "typesense": Pasted("vector_query.txt", "Search with this vector_query; `embedding` is your vector field."),
    "lancedb": Pasted("reranker.py", "Give this reranker to your hybrid search."),
    "langchain": Pasted("retriever.py", "Make the retriever of your own, in this order."),
    "llamaindex": Pasted("retriever.py", "Make the retriever of your own, in this order."),
    "haystack": Pasted("joiner.py", "Join your retrievers, in this order."),
}
"""By engine, where its settings go."""


def _takes(engine: str, model: Model) -> str | None:
    if not isinstance(model, Fusion):
        return ""
    if model.engine == engine:
        return None
    if model.engine == "plain":
        return f"this fusion is no engine's own formula, tune one with `fliprank fuse --engine {engine}`"
    return f"this fusion was tuned for {model.engine}, whose formula is another"


def _write(engine: str, model: Fusion, about: About) -> Export:
    file, step = PASTED[engine]
    return Export({file: fusion_settings(model) + "\n"}, (step,), lost=_lost(model))


def _lost(model: Fusion) -> tuple[str, ...]:
    """What setting it in the engine changes."""
    lost, names = list[str](), model.params.names
    before, after = model.params.values, model.canonical().params.values
    moved = {name for name, old, new in zip(names, before, after, strict=True) if old != new}
    if moved - {"k"}:
        lost.append("Weights are scaled to add up to 1, which ranks alike.")
    if "k" in moved:
        lost.append(f"k is a whole number there: {model.params['k']:g} became {model.canonical().params['k']:g}.")
    if not np.array_equal(after, np.round(after, DIGITS)):
        lost.append(f"Numbers are rounded to {DIGITS} decimals.")
    return tuple(lost)


def _register() -> None:
    for engine in SHAPES:
        for name in dict.fromkeys((engine, engine.partition("-")[0])):
            summary = "fused lists" if engine == name else f"fused lists ({engine})"
            target(name, summary, partial(_takes, engine))(partial(_write, engine))


_register()
