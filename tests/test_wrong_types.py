"""Every public function refuses an argument of the wrong type in one sentence that names the argument."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fliprank as fr
from fliprank.errors import FliprankError, WrongTypeError

ROWS = fr.Candidates.of([1, 0, 1, 0], group=[2, 2], features=[[1.0], [2.0], [3.0], [4.0]], docids=list("abcd"))
LINEAR = fr.Linear().prepared(ROWS, 0)
RUN = fr.Run(ROWS.offsets, ROWS.qids, ROWS.document_ids(), np.zeros(4))
QRELS = fr.Qrels.of({"1": {"a": 1}})
INDEX = fr.Index.build([{"_id": "a", "title": "red"}])
ENGINE = fr.engine_model("sqlite", fields=["title"]).prepared(INDEX.rows({}, {}), 0)
LISTS = {"a": {"1": {"a": 2.0, "b": 1.0}}, "b": {"1": {"a": 1.0, "c": 2.0}}}
CASCADE = fr.Cascade([LINEAR], sizes=[2])
LINE: dict[str, Any] = {"base": np.zeros(4), "slope": np.ones(4), "candidates": ROWS}

PUBLIC: dict[str, dict[str, Any]] = {
    "Dirichlet": {"fields": "title"},
    "JelinekMercer": {"fields": "title"},
    "choose_cutoffs": {"cascade": CASCADE, "candidates": ROWS, "measure": "AP", "grid": [2]},
    "compare": {"qrels": ROWS, "runs": {"a": np.zeros(4), "b": np.ones(4)}, "measures": "AP", "convention": "ranx"},
    "concat": {"parts": ROWS},
    "convert": {"source": ROWS, "folder": "nowhere", "format": "rows", "shard": "1MB", "n_features": 3, "force": False},
    "diff": {
        "before": RUN, "after": RUN, "qrels": QRELS, "measure": "AP", "top": 3, "queries": {"1": "red"}, "rows": ROWS,
        "depth": 5, "seed": 0,
    },
    "engine_model": {"engine": "sqlite", "function": "bm25", "fields": ["title"]},
    "evaluate": {"qrels": ROWS, "runs": np.zeros(4), "measures": "AP", "convention": "trec_eval", "seed": 0},
    "export_model": {"model": fr.Fusion("vespa", ["a", "b"]), "to": "vespa", "folder": "nowhere", "force": False},
    "feature_names": {"index": INDEX},
    "feature_rows": {"index": INDEX, "queries": {"q": "red"}, "qrels": {"q": {"a": 1}}, "select": ["*"]},
    "features": {"index": INDEX, "candidates": ROWS, "queries": {"1": "red", "2": "red"}, "select": ["*"]},
    "find_flips": {**LINE, "low": 0.0},
    "folds": {"rows": ROWS, "parts": (1, 0, 1), "folds": 2, "seed": 0},
    "fuse": {
        "runs": LISTS, "qrels": QRELS, "test": QRELS, "engine": "plain", "settings": {}, "measure": "AP", "folds": 2,
        "depth": 5, "ascending": ["a"], "seed": 0, "adaptive": True, "queries": {"1": "red"}, "index": INDEX,
    },
    "fused_run": {"rows": ROWS, "scores": np.zeros(4), "name": "x", "depth": 1},
    "fusion_rows": {"runs": LISTS, "qrels": QRELS, "queries": ["1"], "depth": 3, "ascending": ["a"], "ties": "docid"},
    "generate": {"queries": 1, "first": 0, "model": fr.WebModel()},
    "generate_blocks": {"queries": 1, "first": 0, "block": 2, "model": fr.WebModel()},
    "group_rows": {"qid": ["a"]},
    "importance": {"model": LINEAR, "candidates": ROWS, "measure": "AP", "of": "feature", "features": "1"},
    "judge": {"qrels": QRELS, "run": RUN},
    "learning_curve": {"rankers": fr.Ranker(fr.Linear()), "rows": ROWS, "sizes": [1], "test": ROWS, "measure": "AP"},
    "line_search": {"model": LINEAR, "candidates": ROWS, "direction": "w.1", "measure": "AP"},
    "load_model": {"folder": "nowhere"},
    "on": {"client": "local:1", "slow": 1.0, "patience": 1.0, "say": None},
    "open_rows": {"path": "nowhere", "memory": "1GB", "n_features": 3},
    "parse_measure": {"name": "AP"},
    "parse_objective": {"name": "ranknet"},
    "precision_recall": {"qrels": ROWS, "runs": {"a": np.zeros(4)}, "rel": 1.0},
    "rank_distribution": {"scores": [1.0, 2.0], "sigma": 1.0, "method": "recursion"},
    "read_beir": {"folder": "nowhere", "split": "test"},
    "read_candidates": {"path": "nowhere", "n_features": 3},
    "read_letor": {"path": "nowhere", "unjudged": -1.0, "n_features": 3, "cache": True},
    "read_parquet": {"path": "nowhere"},
    "read_qrels": {"path": "nowhere"},
    "read_run": {"path": "nowhere"},
    "read_statistics": {"path": "nowhere"},
    "score_trajectory": {**LINE, "measure": "AP", "low": 0.0},
    "subsample": {"candidates": ROWS, "rng": 0, "times": 1.0, "at_most": 3},
    "telescope": {"cascade": CASCADE, "train": ROWS, "valid": ROWS, "measure": "AP", "seed": 0, "checkpoint": "x"},
    "train": {
        "model": fr.Linear(), "train": ROWS, "valid": ROWS, "objective": "ranknet", "measure": "AP", "method": "lbfgs",
        "keep": "last", "restarts": 1, "sweep": True, "patience": 3, "sample": 1.0, "seed": 0, "checkpoint": "x",
        "parameters": None, "progress": None,
    },
    "tune": {
        "model": "bm25", "rows": ROWS, "measure": "AP", "method": "lbfgs", "objective": "ranknet", "folds": 2,
        "restarts": 1, "seed": 0, "test": ROWS, "reported": ["AP"], "adopt": "never", "parameters": None,
    },
    "verify": {
        "model": ENGINE, "index": INDEX, "queries": {"1": "red"}, "qrels": QRELS, "measure": "AP", "depth": 3,
        "progress": None,
    },
    "with_query_traits": {"rows": ROWS, "queries": {"1": "red", "2": "red"}, "index": INDEX},
    "write_letor": {"path": "nowhere", "candidates": ROWS, "unjudged": 0.0},
    "write_parquet": {"path": "nowhere", "candidates": ROWS},
    "write_qrels": {"path": "nowhere", "qrels": QRELS},
    "write_run": {"path": "nowhere", "run": RUN},
    "write_statistics": {"path": "nowhere", "candidates": ROWS},
}  # fmt: skip


class Strange:
    """Of no type that any function takes."""


def cases() -> Iterator[tuple[str, str]]:
    for function, arguments in PUBLIC.items():
        for argument in arguments:
            yield function, argument


def test_every_public_function_is_tried() -> None:
    functions = {name for name in fr.__all__ if inspect.isfunction(getattr(fr, name))}
    assert functions == PUBLIC.keys()


@pytest.mark.parametrize(("function", "argument"), list(cases()))
def test_the_wrong_type_is_refused_in_a_sentence_that_names_the_argument(function: str, argument: str) -> None:
    given = {**PUBLIC[function], argument: Strange()}
    with pytest.raises(FliprankError) as caught:
        fr.concat(given["parts"]) if function == "concat" else getattr(fr, function)(**given)
    said = str(caught.value)
    assert said.startswith(argument)
    assert "Strange" in said
    assert "\n" not in said
    assert ". " not in said


@pytest.mark.parametrize(
    ("function", "change", "said"),
    [
        ("tune", {"measure": 7}, r"measure must be a name such as 'nDCG@10' or a Measure; 7 was given \(int\)"),
        ("train", {"train": "rows.txt"}, r"train must be Candidates, such as fr\.read_letor.*'rows\.txt' was given"),
        ("train", {"model": None}, "model must be a model.*; None was given"),
        ("read_run", {"path": ["a.run"]}, "path must be a path; a list was given"),
        ("evaluate", {"qrels": fr.Linear(), "runs": 3}, "runs must be Candidates where the first argument is a model"),
        ("tune", {"folds": 2.5}, r"folds must be a whole number, or None; 2\.5 was given \(float\)"),
        ("tune", {"seed": True}, r"seed must be a whole number; True was given \(bool\)"),
    ],
)
def test_what_was_expected_and_what_was_given_is_said(function: str, change: dict[str, Any], said: str) -> None:
    with pytest.raises(WrongTypeError, match=said) as caught:
        getattr(fr, function)(**{**PUBLIC[function], **change})
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, ValueError)


def test_too_few_or_unknown_arguments_are_what_python_says() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'rows'"):
        fr.tune("bm25")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        fr.read_run("x", colour=1)  # type: ignore[call-arg]


def test_numbers_of_numpy_are_numbers() -> None:
    parts = list(fr.folds(ROWS, np.array([1, 0, 1]), np.int64(2), np.int32(0)))
    assert len(parts) == 2
