"""A tuned fusion as the settings of its engine, to paste: JSON for servers, a line of code for libraries.

Weights are given as the engine takes them: where only their ratio counts they add up to 1, k is a whole number. Each
list stands for a query of the engine's, which is written as {"LIST": "its query"} for the user to fill in.

>>> from fliprank.models.fusion import Fusion
>>> print(fusion_settings(Fusion("qdrant", ["bm25", "dense"]).at([0.5, 1.5, 20])))
{
  "query": {
    "rrf": {
      "k": 20,
      "weights": [
        0.5,
        1.5
      ]
    }
  }
}
>>> print(fusion_settings(Fusion("weaviate", ["bm25", "dense"]).at([0.6])))
hybrid: {query: "...", alpha: 0.6, fusionType: relativeScoreFusion}
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from fliprank.models.fusion import ENGINES, AdaptiveFusion, Fusion
from fliprank.models.fusion.adaptive import LEAST

__all__ = ["SHAPES", "fusion_settings"]

DIGITS = 4
FILL = "its query"


def fusion_settings(model: Fusion) -> str:
    """The settings, as text; of a function that is no engine's, weights by list."""
    if isinstance(model, AdaptiveFusion):
        return json.dumps(_adaptive(model.canonical()), indent=2)
    shape = SHAPES.get(model.engine, _plain)(model.canonical())
    return shape if isinstance(shape, str) else json.dumps(shape, indent=2)


def _adaptive(model: AdaptiveFusion) -> Any:
    """The formula of a query's weights, for the one who sends the query; and the engine's settings at the mean ones."""
    usual = Fusion(model.engine, model.lists, **model.settings)
    shape = SHAPES.get(model.engine, _plain)(usual.at(model.params.values[: len(usual.params)]))
    names = zip(model.lists, model.slopes, model.centre, model.scale, strict=True)
    each = {
        name: {
            trait: {"slope": round(float(s), DIGITS), "mean": round(float(c), 6), "deviation": round(float(d), 6)}
            for trait, s, c, d in zip(model.traits, slopes, centre, scale, strict=True)
        }
        for name, slopes, centre, scale in names
    }
    formula = f"weight x max({LEAST}, 1 + sum of slope x (trait - mean) / deviation, cut at -3 and 3)"
    return {"weight of a query": formula, "traits": each, "settings": shape}


def _weights(model: Fusion) -> list[float]:
    return [round(float(weight), DIGITS) for weight in model.weights]


def _k(model: Fusion) -> float | int:
    k = round(float(model.k or 0.0), DIGITS)
    return int(k) if k == int(k) else k


def _setting(model: Fusion, name: str) -> str:
    """A setting of the engine, as given or by default; of several lists, the first's."""
    found = model.settings.get(name, ENGINES[model.engine].settings.get(name))
    return found if isinstance(found, str) else found[0]


def _names(model: Fusion, name: str) -> list[str]:
    found = model.settings.get(name, "")
    return (
        [str(each) for each in found] if isinstance(found, list | tuple) else [_setting(model, name)] * len(model.lists)
    )


def _plain(model: Fusion) -> Any:
    values = {name: round(model.params[name], DIGITS) for name in model.params.names}
    return {"settings": dict(model.settings), "parameters": values}


def _elasticsearch_linear(model: Fusion) -> Any:
    retrievers = [
        {"retriever": {name: FILL}, "weight": weight, "normalizer": norm}
        for name, weight, norm in zip(model.lists, _weights(model), _names(model, "normalise"), strict=True)
    ]
    return {"retriever": {"linear": {"retrievers": retrievers}}}


def _elasticsearch_rrf(model: Fusion) -> Any:
    retrievers = [
        {"retriever": {name: FILL}, "weight": weight} for name, weight in zip(model.lists, _weights(model), strict=True)
    ]
    return {"retriever": {"rrf": {"retrievers": retrievers, "rank_constant": _k(model)}}}


def _opensearch(model: Fusion) -> Any:
    combination = {"technique": _setting(model, "combine"), "parameters": {"weights": _weights(model)}}
    processor = {"normalization": {"technique": _setting(model, "normalise")}, "combination": combination}
    return {"phase_results_processors": [{"normalization-processor": processor}]}


def _opensearch_rrf(model: Fusion) -> Any:
    combination = {"technique": "rrf", "rank_constant": _k(model), "parameters": {"weights": _weights(model)}}
    return {"phase_results_processors": [{"score-ranker-processor": {"combination": combination}}]}


def _weaviate(model: Fusion) -> Any:
    kind = {"relativeScore": "relativeScoreFusion", "ranked": "rankedFusion"}[_setting(model, "method")]
    return f'hybrid: {{query: "...", alpha: {_share(model)}, fusionType: {kind}}}'


def _share(model: Fusion) -> float:
    return round(float(model.params.values[0]), DIGITS)


def _qdrant(model: Fusion) -> Any:
    if _setting(model, "method") == "dbsf":
        return {"query": {"fusion": "dbsf"}}
    return {"query": {"rrf": {"k": _k(model), "weights": _weights(model)}}}


def _milvus(model: Fusion) -> Any:
    if _setting(model, "method") == "rrf":
        return f"RRFRanker({_k(model)})"
    norm = "True" if any(name != "none" for name in _names(model, "normalise")) else "False"
    return f"WeightedRanker({', '.join(map(str, _weights(model)))}, norm_score={norm})"


def _vespa(model: Fusion) -> Any:
    if _setting(model, "method") == "normalize_linear":
        parts = [f"{w} * normalize_linear({name})" for name, w in zip(model.lists, _weights(model), strict=True)]
    else:
        k = _k(model)
        parts = [f"{w} * reciprocal_rank({name}, {k})" for name, w in zip(model.lists, _weights(model), strict=True)]
    return "global-phase {\n  expression: " + " + ".join(parts) + "\n}"


def _solr(model: Fusion) -> Any:
    if _setting(model, "method") == "rrf":
        return {"combiner": True, "combiner.rrf.k": str(_k(model))}
    boosts = " ".join(f"{name}^{weight}" for name, weight in zip(model.lists, _weights(model), strict=True))
    return f"defType=edismax&qf={boosts}&tie={round(float(model.params['tie']), DIGITS)}"


def _typesense(model: Fusion) -> Any:
    return f'vector_query: "embedding:([], alpha: {_share(model)})"'


def _lancedb(model: Fusion) -> Any:
    if _setting(model, "method") == "rrf":
        return f"RRFReranker(K={_k(model)})"
    return f"LinearCombinationReranker(weight={_share(model)})"


def _langchain(model: Fusion) -> Any:
    return f"EnsembleRetriever(retrievers=[{', '.join(model.lists)}], weights={_weights(model)}, c={_k(model)})"


def _llamaindex(model: Fusion) -> Any:
    weights = f", retriever_weights={_weights(model)}" if model.rule.weights == "each" else ""
    return f"QueryFusionRetriever([{', '.join(model.lists)}], mode='{_setting(model, 'method')}'{weights})"


def _haystack(model: Fusion) -> Any:
    return f"DocumentJoiner(join_mode='{_setting(model, 'method')}', weights={_weights(model)})"


SHAPES: dict[str, Callable[[Fusion], Any]] = {
    "elasticsearch-linear": _elasticsearch_linear,
    "elasticsearch-rrf": _elasticsearch_rrf,
    "opensearch": _opensearch,
    "opensearch-rrf": _opensearch_rrf,
    "weaviate": _weaviate,
    "qdrant": _qdrant,
    "milvus": _milvus,
    "vespa": _vespa,
    "solr": _solr,
    "typesense": _typesense,
    "lancedb": _lancedb,
    "langchain": _langchain,
    "llamaindex": _llamaindex,
    "haystack": _haystack,
}
"""By engine, what a user sets there."""
