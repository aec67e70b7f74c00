"""What engines compute from the files that are exported to them, written down from their own code and documentation.

None of this is shared with what writes the files: features come by name, in float32 as engines have them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Columns = Mapping[str, np.ndarray]
F = np.float32


def plugin_scores(created: Mapping[str, Any], feature_set: Mapping[str, Any], columns: Columns) -> np.ndarray:
    """The plug-in of Elasticsearch and OpenSearch: the body of _createmodel, the feature set, values by feature."""
    inner = created["model"]["model"]
    order = [each["name"] for each in feature_set["featureset"]["features"]]
    values = {name: columns[name].astype(F) for name in order}
    for name, norm in inner.get("feature_normalizers", {}).items():
        standard = norm["standard"]
        values[name] = (values[name] - F(standard["mean"])) / F(standard["standard_deviation"])
    if inner["type"] == "model/linear":
        total = np.zeros(len(values[order[0]]), F)
        weights = json.loads(inner["definition"])
        assert weights.keys() <= set(order)
        for name in order:
            total = total + F(weights.get(name, 0.0)) * values[name]
        return total
    if inner["type"] == "model/ranklib":
        return rank_net(inner["definition"], [values[name] for name in order]).astype(F)
    assert inner["type"] == "model/xgboost+json"
    return xgboost_dump(json.loads(inner["definition"]), values)


def xgboost_dump(trees: list[dict[str, Any]], values: Columns) -> np.ndarray:
    """The sum of trees as XGBoost dumps them: "yes" where the feature is below the condition, in float32."""
    rows = len(next(iter(values.values())))
    total = np.zeros(rows, F)
    for tree in trees:
        leaves = np.zeros(rows, F)
        for row in range(rows):
            node = tree
            while "leaf" not in node:
                goes = "yes" if values[node["split"]][row] < F(node["split_condition"]) else "no"
                (node,) = [child for child in node["children"] if child["nodeid"] == node[goes]]
            leaves[row] = F(node["leaf"])
        total = total + leaves
    return total


def rank_net(text: str, inputs: list[np.ndarray]) -> np.ndarray:
    """RankLib's RankNet: logistic neurons, features numbered from 1, one neuron that is 1 and feeds all others."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("##")]
    assert text.startswith("## RankNet\n")
    features = [int(word) for word in lines[0].split()]
    assert lines[1] == "1"
    hidden = int(lines[2])
    links = {(int(w[0]), int(w[1])): [float(x) for x in w[2:]] for w in (line.split() for line in lines[3:])}
    assert len(links) == len(features) + 1 + hidden

    def logistic(x: np.ndarray) -> np.ndarray:
        return 1.0 / (1.0 + np.exp(-x))

    ones = links[0, len(features)]
    out = np.full(len(inputs[0]), ones[hidden])
    for j in range(hidden):
        inner = np.full(len(inputs[0]), ones[j])
        for place, feature in enumerate(features):
            inner += links[0, place][j] * inputs[feature - 1].astype(float)
        (weight,) = links[1, j]
        out += weight * logistic(inner)
    return logistic(out)


def solr_scores(model: Mapping[str, Any], columns: Columns) -> np.ndarray:
    """Solr's LinearModel, NeuralNetworkModel and MultipleAdditiveTreesModel, with the normaliser of each feature."""
    values = {}
    for feature in model["features"]:
        column = columns[feature["name"]].astype(F)
        if "norm" in feature:
            assert feature["norm"]["class"] == "org.apache.solr.ltr.norm.StandardNormalizer"
            params = feature["norm"]["params"]
            column = (column - F(params["avg"])) / F(params["std"])
        values[feature["name"]] = column
    kind = model["class"].rpartition(".")[2]
    params, rows = model["params"], len(next(iter(values.values())))
    if kind == "LinearModel":
        total = np.zeros(rows, F)
        for name, column in values.items():
            total = total + column * F(params["weights"][name])
        return total
    if kind == "NeuralNetworkModel":
        vector = list(values.values())
        for layer in params["layers"]:
            out = []
            for row, bias in zip(layer["matrix"], layer["bias"], strict=True):
                assert all(isinstance(number, float) for number in (*row, bias))
                unit = np.full(rows, bias, F)
                for weight, given in zip(row, vector, strict=True):
                    unit = unit + F(weight) * given
                out.append({"tanh": np.tanh, "identity": lambda x: x}[layer["activation"]](unit))
            vector = out
        (score,) = vector
        return score
    assert kind == "MultipleAdditiveTreesModel"
    total = np.zeros(rows, F)
    for tree in params["trees"]:
        total = total + F(tree["weight"]) * np.array([_solr_leaf(tree["root"], values, row) for row in range(rows)], F)
    return total


def _solr_leaf(node: Mapping[str, Any], values: Columns, row: int) -> np.float32:
    while "feature" in node:
        threshold = F(node["threshold"]) + F(1e-6)
        node = node["left"] if values[node["feature"]][row] <= threshold else node["right"]
    return F(node["value"])


TOKEN = re.compile(r"\s*(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|[A-Za-z_]\w*|<=|>=|[-+*/(),<>])")
FUNCTIONS: dict[str, Callable[..., Any]] = {"tanh": np.tanh, "log": np.log, "fabs": np.fabs, "pow": np.power}


class VespaExpression:
    """A ranking expression: numbers, features, + - * /, comparisons, if(condition, a, b), functions; in float64."""

    def __init__(self, text: str) -> None:
        self.words, place = list[str](), 0
        text = text.strip()
        while place < len(text):
            found = TOKEN.match(text, place)
            assert found is not None, text[place : place + 40]
            self.words.append(found[1])
            place = found.end()
        self.place = 0

    def value(self, columns: Columns) -> np.ndarray:
        self.columns = {name: column.astype(float) for name, column in columns.items()}
        self.place = 0
        with np.errstate(all="ignore"):
            out = self._comparison()
        assert self.place == len(self.words), self.words[self.place :]
        return np.broadcast_to(out, len(next(iter(columns.values()))))

    def _next(self, *wanted: str) -> str | None:
        if self.place < len(self.words) and self.words[self.place] in wanted:
            self.place += 1
            return self.words[self.place - 1]
        return None

    def _comparison(self) -> Any:
        left = self._sum()
        if sign := self._next("<", "<=", ">", ">="):
            right = self._sum()
            known = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
            return known[sign](left, right)
        return left

    def _sum(self) -> Any:
        total = self._product()
        while sign := self._next("+", "-"):
            other = self._product()
            total = total + other if sign == "+" else total - other
        return total

    def _product(self) -> Any:
        total = self._atom()
        while sign := self._next("*", "/"):
            other = self._atom()
            total = total * other if sign == "*" else total / other
        return total

    def _atom(self) -> Any:
        if self._next("-"):
            return -self._atom()
        if self._next("("):
            inner = self._comparison()
            assert self._next(")")
            return inner
        word = self.words[self.place]
        self.place += 1
        if word[0].isdigit():
            return float(word)
        if not self._next("("):
            return self.columns[word]
        arguments = [self._comparison()]
        while self._next(","):
            arguments.append(self._comparison())
        assert self._next(")")
        if word == "if":
            condition, yes, no = arguments
            return np.where(condition, yes, no)
        return FUNCTIONS[word](*arguments)
