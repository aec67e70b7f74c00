"""Models of features for the learning-to-rank plug-ins of Elasticsearch and OpenSearch, which are one code.

A linear model is `model/linear`, with our scaler as its `feature_normalizers`. Trees are `model/xgboost+json`, whose
splits ask x < threshold in float32 where ours ask x <= number: the threshold is the next float32. A net is
`model/ranklib`, the text of RankLib's RankNet, which is logistic in every neuron: tanh(z) = 2 logistic(2z) - 1 moves
the rest into the biases, and the output is logistic(c (score - middle)), in the same order.

A cascade is one model per stage and as many entries of `rescore`. After each of them the engine sorts all hits by
score, where those that were not ranked anew count 0: so the scores of all stages but the first are made positive, by a
leaf of their trees, or by a feature that is always 1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from fliprank.export.about import About
from fliprank.export.additive import Additive, Stage, fold_tree, stages_of, unfit
from fliprank.export.float32 import below, plain
from fliprank.export.target import Export, target
from fliprank.models.base import Model
from fliprank.models.trees import Node

__all__ = ["linear_definition", "net_output", "net_text", "tree_definition"]

FEATURES, ONE = "fliprank_features", "fliprank_one"
WINDOW = 100
"""Documents that are ranked anew, where no cascade says how many."""
STEEPEST = 4.0
"""The largest input of the logistic output of a net: it is far from flat there, and float32 tells scores apart."""
NO_SUM = "it takes linear models, nets and trees, and a cascade of these, not a sum of"


def _refuse(function: Additive) -> str | None:
    if len(function.kinds) > 1 or function.kinds == {"curves"}:
        return f"{NO_SUM} {' and '.join(sorted(function.kinds))}; vespa and onnx take such sums"
    return None


def _takes(model: Model) -> str | None:
    return unfit(model, _refuse)


@target("elasticsearch-ltr", "linear models, nets, trees and cascades for the Learning to Rank plug-in", _takes)
@target("opensearch-ltr", "linear models, nets, trees and cascades for the Learning to Rank plug-in", _takes)
def write(model: Model, about: About) -> Export:
    """The feature set, one model per stage, and the search that ranks by them."""
    stages = stages_of(model)
    names = list(dict.fromkeys(name for stage in stages for name in stage.function.features))
    lifted = any("linear" in stage.function.kinds for stage in stages[1:])
    files = {"featureset.json": _text(_feature_set(names, lifted))}
    lost = list[str]()
    for number, stage in enumerate(stages, 1):
        called, lift = _called(stages, number), number > 1
        files[f"{called}.json"] = _text(_created(called, stage.function, names, lift))
        told = (*stage.function.lost(constant="linear" in stage.function.kinds), *_told(stage.function, lift))
        lost += [f"Stage {number}: {each}" if stage.size else each for each in told]
    files["search.json"] = _text(_search(stages))
    return Export(files, tuple(_steps(stages)), lost=tuple(lost), settings={"features": names})


def _called(stages: list[Stage], number: int) -> str:
    return "model" if len(stages) == 1 else f"model-{number}"


def _text(content: Any) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _feature_set(names: list[str], lifted: bool) -> dict[str, Any]:
    """A feature set whose queries the user must fill in: as they are, the engine refuses them."""
    features: list[dict[str, Any]] = [
        {"name": name, "params": ["keywords"], "template_language": "mustache", "template": {"FILL IN": "its query"}}
        for name in names
    ]
    if lifted:
        features.append({"name": ONE, "params": [], "template_language": "mustache", "template": {"match_all": {}}})
    return {"featureset": {"name": FEATURES, "features": features}}


def _created(called: str, function: Additive, names: list[str], lift: bool) -> dict[str, Any]:
    """The body of _createmodel; with `lift`, of a model whose scores are positive."""
    if function.kinds == {"linear"}:
        inner: Mapping[str, Any] = linear_definition(function, lift)
    elif function.kinds == {"net"}:
        inner = {"type": "model/ranklib", "definition": net_text(function, names)}
    else:
        inner = {"type": "model/xgboost+json", "definition": json.dumps(tree_definition(function, lift))}
    return {"model": {"name": f"fliprank_{called.replace('-', '_')}", "model": dict(inner)}}


def linear_definition(function: Additive, lift: bool = False) -> dict[str, Any]:
    """Weights of standardised features, and the normalisers that standardise them."""
    weights = dict(zip(function.features, map(plain, function.linear), strict=True))
    weights |= {ONE: plain(function.lift())} if lift else {}
    norms = {
        name: {"standard": {"mean": plain(mean), "standard_deviation": plain(deviation)}}
        for name, mean, deviation in zip(function.features, function.mean, function.deviation, strict=True)
    }
    return {"type": "model/linear", "feature_normalizers": norms, "definition": json.dumps(weights)}


def net_output(function: Additive) -> tuple[float, float]:
    """(c, middle) of the output of a net: logistic(c (score - middle)), whose argument is within +-4 for all rows."""
    return STEEPEST / float(np.abs(function.w32).sum()), function.bias


def net_text(function: Additive, names: list[str]) -> str:
    """RankLib's text of the net: the features by their number, hidden nodes, then the links of each neuron.

    With z the input of a hidden node, w tanh(z) = 2 w logistic(2 z) - w. Links of the neuron that is always 1 go to the
    hidden nodes and then to the output.
    """
    hidden, (steep, _) = len(function.w32), net_output(function)
    raw = function.w21 * function.scale
    ones = 2.0 * (function.b2 - raw @ function.mean)
    lines = ["## RankNet", "## Epochs = 0", f"## No. of features = {len(function.features)}"]
    lines += ["## No. of hidden layers = 1", f"## Layer 1: {hidden} neurons"]
    lines += [" ".join(str(names.index(name) + 1) for name in function.features), "1", str(hidden)]
    columns = [*(2.0 * raw).T, np.append(ones, -steep * function.w32.sum())]
    lines += [f"0 {place} {' '.join(map(repr, column.tolist()))}" for place, column in enumerate(columns)]
    lines += [f"1 {place} {2.0 * steep * float(weight)!r}" for place, weight in enumerate(function.w32)]
    return "\n".join(lines) + "\n"


def tree_definition(function: Additive, lift: bool = False) -> list[dict[str, Any]]:
    """The trees as XGBoost dumps them; the constant is a tree of one leaf."""
    made, constant = [_tree(tree) for tree in function.trees], function.lift() if lift else function.bias
    return [*made, {"nodeid": 0, "leaf": plain(constant)}] if constant else made


def _tree(tree: list[dict[str, Any]]) -> dict[str, Any]:
    depth = {0: 0}
    for place, node in enumerate(tree):
        if "value" not in node:
            depth[place + 1] = depth[int(node["above"])] = depth[place] + 1

    def leaf(place: int, value: float) -> dict[str, Any]:
        return {"nodeid": place, "leaf": plain(value)}

    def split(place: int, node: Node, low: dict[str, Any], high: dict[str, Any]) -> dict[str, Any]:
        missing = high if node.get("missing") == "above" else low
        known = {"nodeid": place, "depth": depth[place], "split": node["feature"]}
        known |= {"split_condition": plain(below(node["at_most"])), "yes": low["nodeid"], "no": high["nodeid"]}
        return known | {"missing": missing["nodeid"], "children": [low, high]}

    return fold_tree(tree, leaf, split)


def _told(function: Additive, lift: bool) -> list[str]:
    told = ["Scores are computed in float32."]
    if lift and function.kinds != {"net"}:
        told.append(f"{function.lift():.6g} is added to scores, to make them positive.")
    if function.kinds == {"net"}:
        steep, middle = net_output(function)
        told.append(
            "RankLib's nets end in a logistic function: the engine's score is "
            f"1 / (1 + exp(-{steep:.6g} (score - {middle:.6g}))), in the same order."
        )
    if function.routes_missing():
        told.append("A feature without a value is 0 in the engine: trees send it to another side than NaN here.")
    return told


def _search(stages: list[Stage]) -> dict[str, Any]:
    """A query of the user's, whose best documents each stage ranks anew."""
    rescore = [
        {
            "window_size": stage.size or WINDOW,
            "query": {
                "rescore_query": {
                    "sltr": {
                        "params": {"keywords": "FILL IN"},
                        "model": f"fliprank_{_called(stages, number).replace('-', '_')}",
                    }
                },
                "query_weight": 0.0,
                "rescore_query_weight": 1.0,
            },
        }
        for number, stage in enumerate(stages, 1)
    ]
    return {"query": {"FILL IN": "your query"}, "rescore": rescore}


def _steps(stages: list[Stage]) -> list[str]:
    here = "-H 'Content-Type: application/json' -d"
    steps = [
        "Put the query of each feature in the place of FILL IN in featureset.json: it must give the numbers that the "
        "model was trained on. The engine refuses the file as it is.",
        "$ curl -X PUT $URL/_ltr",
        f"$ curl -X PUT $URL/_ltr/_featureset/{FEATURES} {here} @featureset.json",
    ]
    for number in range(1, len(stages) + 1):
        body = f"{here} @{_called(stages, number)}.json"
        steps.append(f"$ curl -X POST $URL/_ltr/_featureset/{FEATURES}/_createmodel {body}")
    last = stages[-1].size or WINDOW
    return [
        *steps,
        "Put your query and the words of the search into search.json.",
        f"$ curl -X POST $URL/INDEX/_search {here} @search.json",
        f"Ask for at most {last} hits: those beyond the window of a shard have a score of 0, and no order.",
    ]
