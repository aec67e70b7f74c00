"""Models of features for Solr's learning to rank: `LinearModel`, `NeuralNetworkModel`, `MultipleAdditiveTreesModel`.

The scaler becomes a `StandardNormalizer` of each feature. Solr adds 1e-6 to the threshold of a split before it asks
x <= threshold, all in float32: what is written is the number that gives our threshold after that. Solr re-ranks once
per request, so a cascade has one stage, or two whose first is linear: a function query. Lucene counts negative scores
of functions as 0, so a constant makes them positive.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from fliprank.export.about import About
from fliprank.export.additive import Additive, Stage, fold_tree, stages_of, unfit
from fliprank.export.float32 import at_most, number, plain, single
from fliprank.export.target import Export, target
from fliprank.models import Cascade
from fliprank.models.base import Model
from fliprank.models.trees import Node

__all__ = ["model_record", "threshold_before_slack"]

STORE, NAME = "fliprank_features", "fliprank"
RERANK = 100
"""Documents that are ranked anew, where no cascade says how many."""
SLACK = np.float32(1e-6)
"""What Solr adds to every threshold."""
STEPS = 4
"""Neighbours of a number that are tried, to find the one that gives a threshold exactly."""


def _refuse(function: Additive) -> str | None:
    if len(function.kinds) > 1 or function.kinds == {"curves"}:
        told = " and ".join(sorted(function.kinds))
        return f"it takes linear models, nets and trees, not a sum of {told}; vespa and onnx take such sums"
    return None


def _takes(model: Model) -> str | None:
    reason = unfit(model, _refuse)
    if reason is None and isinstance(model, Cascade) and len(model.stages) > 1:
        if len(model.stages) > 2:
            return f"Solr ranks anew once per request, this cascade has {len(model.stages)} stages"
        if stages_of(model)[0].function.kinds != {"linear"}:
            return "the first of two stages is a function query there: it must be linear"
    return reason


@target("solr-ltr", "linear models, nets, trees and cascades of two stages for the ltr module", _takes)
def write(model: Model, about: About) -> Export:
    """The features, the model of the last stage, and the request that ranks by it."""
    stages = stages_of(model)
    last = stages[-1]
    files = {
        "features.json": _text(_features(last.function.features)),
        "model.json": _text(model_record(last.function)),
        "request.txt": _request(stages),
    }
    lost = [f"First stage: {each}" for stage in stages[:-1] for each in stage.function.lost(constant=True)]
    lost += [f"First stage: {each.function.lift():.6g} is added, to make scores positive." for each in stages[:-1]]
    lost += [*last.function.lost(constant="linear" in last.function.kinds), *_told(last.function)]
    return Export(files, _steps(), lost=tuple(lost), settings={"features": list(last.function.features)})


def _text(content: Any) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _features(names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Features whose queries the user must fill in: as they are, Solr refuses a request with them."""
    kind = "org.apache.solr.ltr.feature.SolrFeature"
    return [{"store": STORE, "name": name, "class": kind, "params": {"q": "{!FILL_IN}"}} for name in names]


def model_record(function: Additive) -> dict[str, Any]:
    """The model as it is uploaded."""
    if function.kinds == {"trees"}:
        trees = [{"weight": "1", "root": _tree(tree)} for tree in function.trees]
        trees += [{"weight": "1", "root": {"value": number(single(function.bias))}}] if function.bias else []
        named: list[dict[str, Any]] = [{"name": name} for name in function.features]
        return _record("MultipleAdditiveTreesModel", named, {"trees": trees})
    normed = [
        {"name": name, "norm": {"class": "org.apache.solr.ltr.norm.StandardNormalizer", "params": params}}
        for name, params in zip(function.features, _norms(function), strict=True)
    ]
    if function.kinds == {"linear"}:
        weights = dict(zip(function.features, map(plain, function.linear), strict=True))
        return _record("LinearModel", normed, {"weights": weights})
    layers = [
        _layer(function.w21, function.b2, "tanh"),
        _layer(function.w32[None, :], np.array([function.bias]), "identity"),
    ]
    return _record("NeuralNetworkModel", normed, {"layers": layers})


def _record(kind: str, features: list[dict[str, Any]], params: dict[str, Any]) -> dict[str, Any]:
    known = {"class": f"org.apache.solr.ltr.model.{kind}", "name": NAME, "store": STORE}
    return {**known, "features": features, "params": params}


def _norms(function: Additive) -> list[dict[str, str]]:
    pairs = zip(function.mean, function.deviation, strict=True)
    return [{"avg": number(single(mean)), "std": number(single(deviation))} for mean, deviation in pairs]


def _layer(matrix: Any, bias: Any, activation: str) -> dict[str, Any]:
    rows = [[plain(weight) for weight in row] for row in matrix]
    return {"matrix": rows, "bias": [plain(value) for value in bias], "activation": activation}


def _tree(tree: list[dict[str, Any]]) -> dict[str, Any]:
    def leaf(place: int, value: float) -> dict[str, Any]:
        return {"value": number(single(value))}

    def split(place: int, node: Node, low: dict[str, Any], high: dict[str, Any]) -> dict[str, Any]:
        threshold = number(threshold_before_slack(node["at_most"]))
        return {"feature": node["feature"], "threshold": threshold, "left": low, "right": high}

    return fold_tree(tree, leaf, split)


def threshold_before_slack(value: float) -> np.float32:
    """The float32 that becomes the threshold of x <= value when Solr adds 1e-6 to it.

    There may be none, where numbers lie closer than what is added to them (near 0, just above a negative power of two):
    then it is the next one below, which only a value that is equal to the threshold would notice.

    >>> threshold_before_slack(0.5), threshold_before_slack(0.5) + SLACK
    (np.float32(0.499999), np.float32(0.5))
    """
    wanted = at_most(value)
    near = single(float(wanted) - float(SLACK))
    tried = [near]
    for side in (-np.inf, np.inf):
        step = near
        for _ in range(STEPS):
            step = np.nextafter(step, np.float32(side))
            tried.append(step)
    return max((each for each in tried if each + SLACK <= wanted), key=lambda each: (each + SLACK, -abs(each - near)))


def _told(function: Additive) -> list[str]:
    told = ["Scores are computed in float32."]
    splits = [node["at_most"] for tree in function.trees for node in tree if "value" not in node]
    apart = [float(at_most(t)) - float(threshold_before_slack(t) + SLACK) for t in splits]
    if any(apart):
        count = sum(gap > 0 for gap in apart)
        told.append(
            f"Solr adds 1e-6 to thresholds: for {count} of {len(splits)} no float32 makes up for it exactly, and they "
            f"are lower by up to {max(apart):.2g}."
        )
    if function.routes_missing():
        told.append("A feature without a value is 0 in Solr: trees send it to another side than NaN here.")
    return told


def _request(stages: list[Stage]) -> str:
    """The parameters of a search."""
    last = stages[-1]
    rerank = f"rq={{!ltr model={NAME} reRankDocs={last.size or RERANK} efi.text='WORDS OF THE SEARCH'}}"
    if len(stages) == 1:
        return f"q=YOUR QUERY\n{rerank}\nfl=id,score\n"
    bias, weights = stages[0].function.raw()
    constant = bias - stages[0].function.bias + stages[0].function.lift()
    terms = [f"product({weight!r},$f{place})" for place, weight in enumerate(weights.tolist(), 1)]
    fills = [f"f{place}=FILL IN A FUNCTION: {name}" for place, name in enumerate(stages[0].function.features, 1)]
    return "\n".join(["q={!func}sum(" + ",".join([*terms, repr(constant)]) + ")", "fq=YOUR QUERY", *fills, rerank, ""])


def _steps() -> tuple[str, ...]:
    here = "-H 'Content-Type: application/json' --data-binary"
    return (
        "Switch on the ltr module with its query parser `ltr` and its feature transformer.",
        "Put the query of each feature in the place of {!FILL_IN} in features.json: it must give the numbers that the "
        "model was trained on. ${text} stands for the words of the search.",
        f"$ curl -X PUT $URL/solr/COLLECTION/schema/feature-store {here} @features.json",
        f"$ curl -X PUT $URL/solr/COLLECTION/schema/model-store {here} @model.json",
        "Search with the parameters of request.txt, with your own query and words.",
        "In a collection of several shards, each ranks so many of its own documents anew.",
    )
