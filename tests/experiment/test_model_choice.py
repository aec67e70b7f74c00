"""`--model auto` takes the function that is worth its parameters, and is not flattered by having chosen."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tuning_rows import judged_rows

from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.experiment.jobs import tune_and_write
from fliprank.experiment.model_choice import _smallest_of_the_best
from fliprank.experiment.recipes import recipes_for
from fliprank.experiment.task import Queries, Task
from fliprank.experiment.tuning import tune
from fliprank.measures import parse_measure
from fliprank.models import load_model

MEASURE = parse_measure("nDCG(dcg='exp-log2')@10")
QUICK = recipes_for(MEASURE, "lbfgs", "ranknet", l2=0.2)


@contextmanager
def silent(name: str) -> Any:
    yield None


def test_fields_that_differ_in_value_are_worth_a_weight_each() -> None:
    fit = tune("auto", judged_rows(40), measure=MEASURE, recipes=QUICK, folds=3)
    assert fit.settings["chosen"] in ("bm25f", "bm25sum")
    figures = {rival["name"]: rival for rival in fit.settings["models"]}
    assert figures["bm25"]["tuned"] < figures[fit.settings["chosen"]]["tuned"] - 0.05
    assert "collection" in fit.settings["left_out"]["lm"]  # these rows do not say how often a term occurs
    assert fit.settings["left_out"].keys() == {"lm", "stack"}
    assert fit.start is not None
    assert fit.start.kind == "bm25f"


def test_among_equals_the_smaller_function_is_taken() -> None:
    rng = np.random.default_rng(0)
    base = rng.random(50)
    values = {"large": base + rng.normal(0.001, 0.05, 50), "small": base, "bad": base - 0.2}
    assert _smallest_of_the_best(values, {"large": 8, "small": 2, "bad": 1}) == "small"
    values["large"] = base + rng.normal(0.05, 0.05, 50)
    assert _smallest_of_the_best(values, {"large": 8, "small": 2, "bad": 1}) == "large"


def test_labels_at_random_leave_the_defaults_in_place_though_there_was_much_to_choose_from(tmp_path: Path) -> None:
    task = Task(Queries(judged_rows(30, noise=1e6)))
    result = tune_and_write("auto", task, tmp_path, silent, measure=MEASURE, recipes=QUICK, folds=3)
    assert not result.adopted
    told = json.loads((tmp_path / "result.json").read_text())
    assert load_model(tmp_path / "model").kind == "bm25f"
    assert {rival["name"] for rival in told["settings"]["models"]} == {"bm25", "bm25f", "bm25sum"}


def test_features_alone_are_not_for_text_functions() -> None:
    rows = Candidates.of([1, 0] * 5, group=[2] * 5, features=np.arange(10.0)[:, None])
    with pytest.raises(UsageError, match="compares text functions"):
        tune("auto", rows, measure=MEASURE)
