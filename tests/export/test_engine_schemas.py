"""Exported JSON is what the documentation of each engine names, and nothing else."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import engine_schemas as schemas
import pytest
from feature_models import trained
from jsonschema import Draft202012Validator

import fliprank as fr
from fliprank.export import read_export

LISTS = ["bm25", "dense"]
CASCADE = ("linear", "trees", "net")


def models() -> dict[str, fr.Model]:
    alone = {name: trained()[name] for name in ("linear", "net", "trees", "linears", "nets", "forests")}
    return alone | {"cascade": fr.Cascade([trained()[name] for name in CASCADE], sizes=[100, 20, 10])}


def read(model: fr.Model, to: str, folder: Path) -> dict[str, Any]:
    found = read_export(fr.export_model(model, to, folder))
    return {name: json.loads((found.folder / name).read_text()) for name in found.files if name.endswith(".json")}


def check(content: Any, schema: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    validator.validate(content)
    for damaged in damages(content):  # a schema that takes anything would prove nothing
        assert not validator.is_valid(damaged)


def damages(content: Any) -> list[Any]:
    """Each of the first objects with a property too much."""
    out = []
    for path in paths(content)[:6]:
        copied = copy.deepcopy(content)
        place = copied
        for step in path:
            place = place[step]
        place["surplus"] = {"a": [None]}
        out.append(copied)
    return out


FREE = {"params", "template", "query", "retriever", "sltr", "weights", "feature_normalizers"}
"""Objects whose properties are the user's names."""


def paths(content: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [here] if isinstance(content, dict) and (not here or here[-1] not in FREE) else []
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    return found + [path for key, value in items for path in paths(value, (*here, key)) if key not in FREE]


@pytest.mark.parametrize("to", ["elasticsearch-ltr", "opensearch-ltr"])
@pytest.mark.parametrize("name", sorted(models()))
def test_the_plug_ins_take_features_models_and_search(name: str, to: str, tmp_path: Path) -> None:
    files = read(models()[name], to, tmp_path)
    check(files.pop("featureset.json"), schemas.FEATURE_SET)
    check(files.pop("search.json"), schemas.SLTR_SEARCH)
    assert files
    for content in files.values():
        check(content, schemas.CREATED_MODEL)
        inner = content["model"]["model"]
        if inner["type"] == "model/linear":
            check(json.loads(inner["definition"]), schemas.LINEAR_DEFINITION)
        elif inner["type"] == "model/xgboost+json":
            check(json.loads(inner["definition"]), schemas.TREE)


@pytest.mark.parametrize("name", sorted(models().keys() - {"cascade"}))
def test_solr_takes_features_and_models(name: str, tmp_path: Path) -> None:
    files = read(models()[name], "solr-ltr", tmp_path)
    check(files["features.json"], schemas.SOLR_FEATURES)
    check(files["model.json"], schemas.SOLR_MODEL)


@pytest.mark.parametrize(
    ("engine", "schema"),
    [
        ("elasticsearch-linear", schemas.ELASTICSEARCH_LINEAR),
        ("elasticsearch-rrf", schemas.ELASTICSEARCH_RRF),
        ("opensearch", schemas.OPENSEARCH_NORMALIZATION),
        ("opensearch-rrf", schemas.OPENSEARCH_RRF),
        ("qdrant", schemas.QDRANT),
    ],
)
def test_fusions_are_what_engines_take(engine: str, schema: dict[str, Any], tmp_path: Path) -> None:
    (content,) = read(fr.Fusion(engine, LISTS), engine, tmp_path).values()
    check(content, schema)


def test_xgboost_s_own_dump_fits_the_schema_of_trees() -> None:
    import numpy as np
    import xgboost

    x = np.random.default_rng(0).normal(size=(200, 3))
    data = xgboost.DMatrix(x, (x[:, 0] > 0).astype(float), feature_names=["a", "b", "c"])
    booster = xgboost.train({"max_depth": 2}, data, 3)
    check([json.loads(text) for text in booster.get_dump(dump_format="json")], schemas.TREE)


def test_the_example_of_solr_s_documentation_fits_the_schema() -> None:
    kind = "org.apache.solr.ltr.model.MultipleAdditiveTreesModel"
    leaf, root = {"value": "75"}, {"feature": "originalScore", "threshold": "10.0"}
    root |= {"left": {"value": "50"}, "right": leaf}  # type: ignore[dict-item]
    features = [{"name": "userTextTitleMatch"}, {"name": "originalScore"}]
    model = {"class": kind, "name": "m", "features": features, "params": {"trees": [{"weight": "1", "root": root}]}}
    Draft202012Validator(schemas.SOLR_MODEL).validate(model)
