"""Objectives and models on MQ2008, five folds, beside LightGBM (docs/mq2008.md).

Every ranker is chosen on the validation queries of its fold and measured once on the test queries.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np

import fliprank as fr
from fliprank.arrays import Floats
from fliprank.errors import InputError
from fliprank.experiment.significance import compare_values
from fliprank.experiment.splits import Fold
from fliprank.measures import parse_measure
from fliprank.models import Model, load_model
from fliprank.models.trees import import_lightgbm
from fliprank.papers.checkpoint import kept
from fliprank.papers.data import letor_folds, some_queries
from fliprank.papers.part import Finding, Setting, part
from fliprank.papers.rules import Claims, as_good

__all__ = ["folds_of", "objectives", "trees"]

MEASURES = ("nDCG(dcg='exp-log2')@10", "AP")
OBJECTIVES = {
    "MSE": "mse",
    "RankNet": "ranknet",
    "LambdaRank": "lambdarank",
    "LambdaRank@10": "lambdarank@10",
    "SoftNDCG, alpha 1": "softndcg",
    "SoftNDCG, alpha 0": "softndcg(discount=0)",
    "SoftAP": "softap",
}
PEER = ("LightGBM lambdarank", "trees")
COLUMNS = ("objective", "model", "train nDCG@10", "test nDCG@10", "test AP", "less LightGBM", "p", "p by max-T")
Name = tuple[str, str]
Fitter = Callable[[int, Fold], Model]


def folds_of(setting: Setting) -> list[Fold]:
    """The five folds; when quick, two of them with 20 queries in each part."""
    folds = []
    for task in letor_folds(setting):
        assert task.valid is not None
        assert task.test is not None
        folds.append(Fold(task.train.rows, task.valid.rows, task.test.rows))
    if setting.quick:
        return [Fold(*(some_queries(each, 20, setting.seed) for each in fold)) for fold in folds[:2]]
    return folds


@part("fliprank", "mq2008-objectives", "Objectives with linear models and nets", needs=("mq2008",), minutes=8,
      only_by_name=True)  # fmt: skip
def objectives(setting: Setting) -> Finding:
    """Seven objectives, two kinds of model."""
    some = ("MSE", "LambdaRank@10") if setting.quick else tuple(OBJECTIVES)
    kinds = {"linear": fr.Linear(), "network, 10 hidden": fr.Network(hidden=10)}
    rankers = {
        (name, kind): partial(_fitted, setting, (name, kind), model, OBJECTIVES[name])
        for kind, model in kinds.items()
        for name in some
    }
    claim = "The default, LambdaRank@10 with a linear model, is as good on test queries as LightGBM's trees."
    return _finding(setting, rankers, ("LambdaRank@10", "linear"), claim)


@part("fliprank", "mq2008-trees", "Trees and blends", needs=("mq2008",), minutes=25, only_by_name=True)
def trees(setting: Setting) -> Finding:
    """Trees by our objectives, and what `auto` makes of a linear model, a net and trees."""
    kinds = {"linear": fr.Linear(), "network, 10 hidden": fr.Network(hidden=10), "trees": fr.Trees()}
    parts = {
        ("LambdaRank@10", kind): partial(_fitted, setting, ("LambdaRank@10", kind), model, "lambdarank@10")
        for kind, model in kinds.items()
    }
    rankers: dict[Name, Fitter] = {**parts, ("LambdaRank@10", "auto"): partial(_blended, list(parts.values()))}
    for name in () if setting.quick else ("SoftNDCG, alpha 1", "SoftAP"):
        rankers[name, "trees"] = partial(_fitted, setting, (name, "trees"), fr.Trees(), OBJECTIVES[name])
    claim = "What `auto` makes of its parts is as good on test queries as LightGBM's trees."
    return _finding(setting, rankers, ("LambdaRank@10", "auto"), claim)


def _fitted(setting: Setting, name: Name, model: Model, objective: str, number: int, fold: Fold) -> Model:
    """The model that `train` finds; it is kept in the cache."""
    place = setting.cache / f"{name[0]}, {name[1]}, fold {number}"
    try:
        return load_model(place)
    except (InputError, OSError):
        pass
    setting.say(f"{name[0]}, {name[1]}, fold {number}")
    less: dict[str, Any] = {"sweep": False, "restarts": 1, "epochs": 5} if setting.quick else {}
    found = fr.train(model, fold.train, fold.valid, objective=objective, seed=setting.seed, **less).model
    found.save(place)
    return found


def _blended(parts: list[Fitter], number: int, fold: Fold) -> Model:
    """What `train("auto")` makes of these parts, which are not trained again."""
    return fr.train(fr.Blend([fit(number, fold) for fit in parts]), fold.train, fold.valid).model


def _lightgbm(setting: Setting, fold: Fold) -> dict[str, Any]:
    """LightGBM's lambdarank: 18 settings, early stopping on the validation queries, the best of them by nDCG@10."""
    lightgbm = import_lightgbm()
    warnings.simplefilter("ignore")
    sets = [lightgbm.Dataset(r.features, r.labels, group=r.sizes, free_raw_data=False) for r in fold[:2]]
    best, chosen = -1.0, None
    every = list(product((7, 15, 31), (0.03, 0.1), (20, 50, 100)))
    for leaves, rate, least in every[:1] if setting.quick else every:
        settings = {"objective": "lambdarank", "metric": "ndcg", "eval_at": [10], "num_leaves": leaves,
                    "learning_rate": rate, "min_data_in_leaf": least, "verbosity": -1, "seed": setting.seed,
                    "num_threads": 1, "deterministic": True, "force_row_wise": True}  # fmt: skip
        quiet = [lightgbm.early_stopping(50, verbose=False)]
        booster = lightgbm.train(settings, sets[0], 10 if setting.quick else 500, valid_sets=[sets[1]], callbacks=quiet)
        found = parse_measure(MEASURES[0]).value(booster.predict(fold.valid.features), fold.valid)
        if found > best:
            best, chosen = found, booster
    assert chosen is not None
    return _measured(lambda rows: chosen.predict(rows.features), fold)


def _measured(score: Callable[[fr.Candidates], Floats], fold: Fold) -> dict[str, Any]:
    chosen = [parse_measure(name) for name in MEASURES]
    scores = score(fold.test)
    return {
        "train": chosen[0].value(score(fold.train), fold.train),
        "test": {name: each.per_query(scores, fold.test).tolist() for name, each in zip(MEASURES, chosen, strict=True)},
    }


def _finding(setting: Setting, rankers: Mapping[Name, Fitter], compared: Name, claim: str) -> Finding:
    folds, found = folds_of(setting), dict[Name, list[dict[str, Any]]]()
    for name, fit in rankers.items():
        found[name] = [_measured(fit(number, fold).score, fold) for number, fold in enumerate(folds, 1)]
    found[PEER] = [
        kept(setting, f"LightGBM, fold {number}", partial(_lightgbm, setting, fold))
        for number, fold in enumerate(folds, 1)
    ]
    values = {
        ", ".join(name): {m: np.concatenate([each["test"][m] for each in parts]) for m in MEASURES}
        for name, parts in found.items()
    }
    peer = ", ".join(PEER)
    against = {c.run: c for c in compare_values(values, peer) if c.measure == MEASURES[0]}
    rows, claims = list[tuple[Any, ...]](), Claims()
    for name, parts in found.items():
        shown = ", ".join(name)
        means = [float(np.mean([np.mean(each["test"][m]) for each in parts])) for m in MEASURES]
        told = against.get(shown)
        tests = (
            (float("nan"),) * 3 if told is None else (told.difference, told.p["randomisation"], told.corrected["max_t"])
        )
        rows.append((*name, float(np.mean([each["train"] for each in parts])), *means, *tests))
    ours = ", ".join(compared)
    claims.add(f"{ours} less LightGBM", as_good, values[ours][MEASURES[0]], values[peer][MEASURES[0]])
    return Finding(
        COLUMNS,
        tuple(rows),
        claim,
        " ".join(claims.notes) + ".",
        claims.verdict,
        {"data": "mq2008", "folds": len(folds), "seed": setting.seed, "objectives": [name for name, _ in rankers]},
        notes=(
            "Exponential gain; a query without relevant documents counts 0. Means over folds. p: a randomisation test"
            " over all test queries, and max-T over all rows and both measures.",
        ),
    )
