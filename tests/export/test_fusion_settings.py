"""Settings of a fusion: shaped as the engine takes them."""

from __future__ import annotations

import json
import re

import pytest

from fliprank.export.fusion import SHAPES, fusion_settings
from fliprank.models.fusion import ENGINES, Fusion

LISTS = ["bm25", "dense"]


def test_every_engine_has_its_shape() -> None:
    assert set(SHAPES) == set(ENGINES) - {"plain"}


@pytest.mark.parametrize("engine", sorted(SHAPES))
def test_weights_and_constants_are_in_the_settings(engine: str) -> None:
    model = Fusion(engine, LISTS)
    values = model.params.values.copy()
    for place, name in enumerate(model.params.names):
        values[place] = {"k": 17.0, "tie": 0.25}.get(name, 0.375 if place == 0 else 0.625)
    text = fusion_settings(model.at(values))
    numbers = {float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", text)}
    for name in model.params.names:
        assert {"k": 17.0, "tie": 0.25}.get(name, 0.375) in numbers, text


def test_elasticsearch_takes_a_weight_and_a_normalizer_per_retriever() -> None:
    model = Fusion("elasticsearch-linear", LISTS, normalise=["l2_norm", "minmax"]).at([1.0, 3.0])
    linear = json.loads(fusion_settings(model))["retriever"]["linear"]["retrievers"]
    assert [(each["weight"], each["normalizer"]) for each in linear] == [(0.25, "l2_norm"), (0.75, "minmax")]


def test_opensearch_has_weights_that_add_up_to_one() -> None:
    model = Fusion("opensearch", LISTS, combine="geometric_mean").at([1.0, 4.0])
    (processor,) = json.loads(fusion_settings(model))["phase_results_processors"]
    combination = processor["normalization-processor"]["combination"]
    assert combination == {"technique": "geometric_mean", "parameters": {"weights": [0.2, 0.8]}}


def test_a_function_of_no_engine_is_given_by_its_parameters() -> None:
    found = json.loads(fusion_settings(Fusion("plain", LISTS, normalise="zscore").at([1.0, 1.0])))
    assert found == {"settings": {"normalise": "zscore"}, "parameters": {"weight.bm25": 0.5, "weight.dense": 0.5}}
