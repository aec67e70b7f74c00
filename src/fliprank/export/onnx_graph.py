"""Models of features as an ONNX graph, with the scaler inside: rows of float32 in, one score per row out.

Linear models and nets are computed in float64 within the graph. Trees are a `TreeEnsembleRegressor`, which is float32
and knows where missing values (NaN) go. The file is written by the package onnx (extra `onnx`); any ONNX runtime runs
it, in an engine (Vespa) or in front of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fliprank.errors import MissingExtraError
from fliprank.export.about import About
from fliprank.export.additive import Additive, additive, unfit
from fliprank.export.float32 import at_most
from fliprank.export.target import Export, target
from fliprank.models import Cascade
from fliprank.models.base import Model

__all__ = ["graph_bytes"]

OPSET, ML_OPSET, IR = 17, 3, 8
"""Versions that runtimes from 2022 on read."""


def import_onnx() -> Any:
    """The module; raises an error that names the extra if it is not installed."""
    try:
        import onnx
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise MissingExtraError("onnx", "onnx") from None
    return onnx


def _refuse(function: Additive) -> str | None:
    return "curves of features are not in its graph; vespa takes them" if function.curves else None


def _takes(model: Model) -> str | None:
    if isinstance(model, Cascade):
        return "a cascade is several models: export its stages one by one"
    return unfit(model, _refuse)


@target("onnx", "linear models, nets, trees and their sums, for any ONNX runtime", _takes)
def write(model: Model, about: About) -> Export:
    """The graph, and the names of its inputs in order."""
    function = additive(model)
    files: dict[str, str | bytes] = {
        "model.onnx": graph_bytes(function),
        "features.txt": "".join(f"{name}\n" for name in function.features),
    }
    steps = (
        "Give the graph rows of features in the order of features.txt, as float32: input `features` [rows, "
        f"{len(function.features)}], output `score` [rows, 1].",
        "In Vespa: put model.onnx into models/ of the application and name it in an `onnx-model` of the rank profile.",
    )
    lost = (*function.lost(), "Scores are given in float32.")
    return Export(files, steps, lost=lost, settings={"features": list(function.features)})


class _Graph:
    """Nodes and constants of a graph that is being written."""

    def __init__(self, onnx: Any) -> None:
        self.onnx, self.nodes, self.constants = onnx, list[Any](), list[Any]()

    def constant(self, name: str, value: Any) -> str:
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(value, np.float64), name))
        return name

    def node(self, kind: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [output], name=output, **attributes))
        return output


def graph_bytes(function: Additive) -> bytes:
    """The file of a sum of linear models, nets and trees."""
    onnx = import_onnx()
    double, single = onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT
    graph, terms = _Graph(onnx), list[str]()
    if function.kinds & {"linear", "net"}:
        wide = graph.node("Cast", ["features"], "wide", to=double)
        centred = graph.node("Sub", [wide, graph.constant("mean", function.mean)], "centred")
        scaled = graph.node("Mul", [centred, graph.constant("scale", function.scale)], "scaled")
        if "linear" in function.kinds:
            weights = graph.constant("weights", function.linear[:, None])
            terms.append(graph.node("MatMul", [scaled, weights], "linear"))
        if "net" in function.kinds:
            terms.append(_net(graph, function, scaled))
    if function.trees:
        graph.node("TreeEnsembleRegressor", ["features"], "leaves", domain="ai.onnx.ml", **_ensemble(function))
        terms.append(graph.node("Cast", ["leaves"], "trees", to=double))
    total = graph.constant("bias", [[function.bias]])
    for place, term in enumerate(terms):
        total = graph.node("Add", [total, term], f"total{place}")
    graph.node("Cast", [total], "score", to=single)
    rows = onnx.helper.make_tensor_value_info("features", single, ["rows", len(function.features)])
    score = onnx.helper.make_tensor_value_info("score", single, ["rows", 1])
    made = onnx.helper.make_graph(graph.nodes, "fliprank", [rows], [score], graph.constants)
    versions = [onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
    model = onnx.helper.make_model(made, opset_imports=versions, ir_version=IR, producer_name="fliprank")
    onnx.checker.check_model(model, full_check=True)
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def _net(graph: _Graph, function: Additive, scaled: str) -> str:
    inner = graph.node("MatMul", [scaled, graph.constant("w21", function.w21.T)], "inner")
    nodes = graph.node("Tanh", [graph.node("Add", [inner, graph.constant("b2", function.b2)], "shifted")], "nodes")
    return graph.node("MatMul", [nodes, graph.constant("w32", function.w32[:, None])], "net")


def _ensemble(function: Additive) -> dict[str, Any]:
    """The trees as lists of nodes: of each its tree, its number there, its feature, threshold and branches."""
    places = {name: place for place, name in enumerate(function.features)}
    columns: dict[str, list[Any]] = {
        f"nodes_{name}": [] for name in ("treeids", "nodeids", "featureids", "values", "modes")
    } | {f"nodes_{name}": [] for name in ("truenodeids", "falsenodeids", "missing_value_tracks_true")}
    leaves: dict[str, list[Any]] = {f"target_{name}": [] for name in ("treeids", "nodeids", "ids", "weights")}
    for t, tree in enumerate(function.trees):
        for place, node in enumerate(tree):
            leaf = "value" in node
            row = (
                t,
                place,
                0 if leaf else places[node["feature"]],
                0.0 if leaf else float(at_most(node["at_most"])),
                "LEAF" if leaf else "BRANCH_LEQ",
                0 if leaf else place + 1,
                0 if leaf else int(node["above"]),
                int(node.get("missing") == "at_most"),
            )
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
            if leaf:
                for column, value in zip(leaves.values(), (t, place, 0, float(node["value"])), strict=True):
                    column.append(value)
    return {**columns, **leaves, "n_targets": 1, "post_transform": "NONE", "aggregate_function": "SUM"}
