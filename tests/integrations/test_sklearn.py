"""The scikit-learn estimators, used as scikit-learn's users would."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, UsageError
from fliprank.integrations.sklearn import LinearRanker, NetworkRanker
from fliprank.measures import parse_measure
from fliprank.models import Linear, Network
from fliprank.objectives import RankNet

RANKERS = [LinearRanker(epochs=8), NetworkRanker(hidden=3, epochs=8)]


def rows(queries: int = 30, size: int = 10, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(X, y, qid): labels follow the features, with noise; as many rows a query, ids from 100."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * size, 4))
    hidden = X @ [2.0, -1.0, 0.5, 0.0] + rng.normal(size=len(X))
    y = np.digitize(hidden, np.quantile(hidden, [0.6, 0.9]))
    return X, y, np.repeat(np.arange(100, 100 + queries), size)


def values(ranker: Any) -> list[float]:
    found: list[float] = ranker.model_.params.values.tolist()
    return found


class OneQuery:
    """A ranker that takes all rows as one query: scikit-learn's own checks know of no queries."""

    def fit(self, X: Any, y: Any = None, qid: Any = None) -> Any:
        return super().fit(X, y, qid=_zeros(X) if qid is None else qid)  # type: ignore[misc]

    def score(self, X: Any, y: Any = None, qid: Any = None) -> float:
        found: float = super().score(X, y, qid=_zeros(X) if qid is None else qid)  # type: ignore[misc]
        return found


def _zeros(X: Any) -> np.ndarray:
    return np.zeros(X.shape[0] if hasattr(X, "shape") and X.shape else len(X) if hasattr(X, "__len__") else 0)


class OneLinear(OneQuery, LinearRanker):
    """Linear."""


class OneNetwork(OneQuery, NetworkRanker):
    """A net."""


@pytest.mark.filterwarnings("ignore:Skipping check")
@pytest.mark.parametrize("ranker", [OneLinear(epochs=8), OneNetwork(hidden=3, epochs=8)])
def test_it_is_an_estimator_by_scikit_learns_own_checks(ranker: Any) -> None:
    failed = [told for told in check_estimator(ranker, on_fail=None) if told["status"] not in ("passed", "skipped")]
    assert not failed, failed


@pytest.mark.parametrize("ranker", RANKERS)
def test_it_learns_to_rank_queries_that_it_has_not_seen(ranker: Any) -> None:
    X, y, qid = rows()
    test = rows(seed=1)
    fitted = clone(ranker).fit(X, y, qid=qid)
    measure = parse_measure("nDCG(dcg='exp-log2')@10")
    at_random = measure.per_query(test[0][:, 3], Candidates.of(test[1], qid=test[2])).mean()
    assert fitted.score(*test[:2], qid=test[2]) > at_random + 0.2


def test_the_model_and_the_fit_are_fliprank_s_own() -> None:
    X, y, qid = rows()
    linear, network = LinearRanker(epochs=5).fit(X, y, qid=qid), NetworkRanker(hidden=4, epochs=5).fit(X, y, qid=qid)
    assert isinstance(linear.model_, Linear)
    assert isinstance(network.model_, Network)
    assert network.model_.hidden == 4
    assert len(linear.fit_.trail) == 6
    assert linear.fit_.best.valid == max(epoch.valid for epoch in linear.fit_.trail)
    assert linear.fit_.model is linear.model_


@pytest.mark.parametrize("ranker", RANKERS)
def test_unsorted_ids_give_the_same_model_as_sorted(ranker: Any) -> None:
    X, y, qid = rows()
    order = np.argsort(np.random.default_rng(2).random(len(y)))
    apart = order[np.argsort(qid[order], kind="stable")]  # the same rows, sorted, in the same order within a query
    mixed, together = (clone(ranker).fit(X[i], y[i], qid=qid[i]) for i in (order, apart))
    assert values(mixed) == values(together)
    assert mixed.score(X[order], y[order], qid=qid[order]) == together.score(X[apart], y[apart], qid=qid[apart])
    assert not np.array_equal(qid[order], qid[apart])


@pytest.mark.parametrize(
    "kind", [lambda q: q.astype(str), lambda q: q.astype(float), lambda q: pd.Series(q), lambda q: q.tolist()]
)
def test_ids_of_any_kind_are_ids(kind: Any) -> None:
    X, y, qid = rows()
    assert values(LinearRanker(epochs=3).fit(X, y, qid=kind(qid))) == values(LinearRanker(epochs=3).fit(X, y, qid=qid))


def test_group_sizes_say_the_same_as_sorted_ids() -> None:
    X, y, qid = rows()
    by_size, by_id = LinearRanker(epochs=4).fit(X, y, group=[10] * 30), LinearRanker(epochs=4).fit(X, y, qid=qid)
    assert values(by_size) == values(by_id)
    assert by_size.score(X, y, group=[10] * 30) == by_id.score(X, y, qid=qid)


def test_rows_without_queries_are_an_error_never_one_query() -> None:
    X, y, qid = rows()
    ranker = LinearRanker(epochs=2).fit(X, y, qid=qid)
    with pytest.raises(UsageError, match=r"give qid=.* or group=.*enable_metadata_routing"):
        LinearRanker(epochs=2).fit(X, y)
    with pytest.raises(UsageError, match="give qid="):
        ranker.score(X, y)
    with pytest.raises(UsageError, match=r"eval_set is \(X, y, qid\)"):
        LinearRanker(epochs=2).fit(X, y, qid=qid, eval_set=(X, y))
    with pytest.raises(UsageError, match="give qid="):
        LinearRanker(epochs=2).fit(X, y, qid=qid, eval_set=(X, y, None))
    assert len(ranker.predict(X)) == len(X)


def test_cross_validation_that_does_not_route_ids_to_the_score_fails() -> None:
    X, y, qid = rows()
    with pytest.raises(UsageError, match="enable_metadata_routing"):
        cross_val_score(LinearRanker(epochs=2), X, y, cv=GroupKFold(3), groups=qid, error_score="raise")
    how: dict[str, Any] = {"params": {"qid": qid}, "error_score": "raise"}
    with pytest.raises(UsageError, match="enable_metadata_routing"):
        cross_val_score(LinearRanker(epochs=2), X, y, cv=GroupKFold(3), groups=qid, **how)


def test_predictions_stand_in_the_order_of_the_rows() -> None:
    X, y, qid = rows()
    ranker = NetworkRanker(hidden=3, epochs=3).fit(X, y, qid=qid)
    order = np.random.default_rng(3).permutation(len(X))
    np.testing.assert_array_equal(ranker.predict(X[order]), ranker.predict(X)[order])
    assert ranker.predict(X[:1]).shape == (1,)


def test_the_score_is_the_mean_of_the_measure() -> None:
    X, y, qid = rows()
    ranker = LinearRanker(epochs=3, measure="RR(rel=2)").fit(X, y, qid=qid)
    expected = parse_measure("RR(rel=2)").per_query(ranker.predict(X), Candidates.of(y, qid=qid)).mean()
    assert ranker.score(X, y, qid=qid) == pytest.approx(expected)


def test_the_same_seed_gives_the_same_model_and_another_seed_another() -> None:
    X, y, qid = rows()
    first, second, other = (NetworkRanker(epochs=3, seed=seed).fit(X, y, qid=qid) for seed in (5, 5, 6))
    assert values(first) == values(second) != values(other)


def test_clone_and_set_params_keep_every_setting() -> None:
    ranker = NetworkRanker(hidden=7, objective=RankNet(target=0.9), measure="AP", method="adam", l2=0.5, seed=3)
    copy = clone(ranker)
    assert copy.get_params() == ranker.get_params()
    assert copy.get_params()["objective"] == RankNet(target=0.9)
    copy.set_params(hidden=2, epochs=3)
    X, y, qid = rows()
    assert copy.fit(X, y, qid=qid).model_.hidden == 2
    assert len(copy.fit_.trail) == 4
    assert ranker.hidden == 7
    assert not hasattr(ranker, "model_")
    with pytest.raises(ValueError, match="depth"):
        copy.set_params(depth=3)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"objective": "ranknet"}, "lbfgs"),
        ({"objective": "lambdarank@10"}, "adam"),
        ({"objective": "ranknet", "method": "adam"}, "adam"),
        ({"objective": "ranknet", "method": "taylor2006"}, "taylor2006"),
        ({"objective": "softndcg(sigma=0.5)", "method": "taylor2008"}, "taylor2008"),
        ({"objective": "ranknet", "l2": 0.25}, "lbfgs(epochs=3,l2=0.25)"),
    ],
)
def test_the_method_is_the_one_that_was_named(settings: dict[str, Any], said: str) -> None:
    X, y, qid = rows()
    ranker = LinearRanker(epochs=3, **settings).fit(X, y, qid=qid)
    assert ranker.fit_.settings["method"].startswith(said)
    assert len(ranker.fit_.trail) == 4
    assert ranker.score(X, y, qid=qid) > 0.5


def test_a_share_of_the_queries_is_held_out_to_choose_the_epoch() -> None:
    X, y, qid = rows()
    held = LinearRanker(epochs=3).fit(X, y, qid=qid)
    assert all(np.isfinite(epoch.valid) for epoch in held.fit_.trail)
    none = LinearRanker(epochs=3, validation_fraction=0).fit(X, y, qid=qid)
    assert all(np.isnan(epoch.valid) for epoch in none.fit_.trail)
    assert none.fit_.best.train == pytest.approx(none.score(X, y, qid=qid))
    mean = np.asarray(X, np.float32).astype(float).mean(axis=0)
    assert none.model_.scaler.mean == pytest.approx(mean)  # all queries are for training, or some are not
    assert held.model_.scaler.mean != pytest.approx(mean)


def test_an_eval_set_takes_the_place_of_held_out_queries() -> None:
    (X, y, qid), (Xv, yv, qv) = rows(), rows(seed=1)
    ranker = LinearRanker(epochs=3).fit(X, y, qid=qid, eval_set=(Xv, yv, qv))
    assert ranker.fit_.best.valid == pytest.approx(ranker.score(Xv, yv, qid=qv))
    by_size = LinearRanker(epochs=3).fit(X, y, group=[10] * 30, eval_set=(Xv, yv, [10] * 30))
    assert values(by_size) == values(ranker)
    with pytest.raises(UsageError, match="eval_set is"):
        LinearRanker().fit(X, y, qid=qid, eval_set=[(Xv, yv)])


def test_it_ends_a_pipeline() -> None:
    X, y, qid = rows()
    pipeline = Pipeline([("scale", StandardScaler()), ("ranker", LinearRanker(epochs=5))])
    pipeline.fit(X, y, ranker__qid=qid)
    alone = LinearRanker(epochs=5).fit(StandardScaler().fit_transform(X), y, qid=qid)
    np.testing.assert_array_equal(pipeline.predict(X), alone.predict(StandardScaler().fit_transform(X)))
    assert clone(pipeline).set_params(ranker__l2=0.5)["ranker"].l2 == 0.5


def test_group_k_fold_keeps_queries_whole() -> None:
    X, y, qid = rows()
    found = []
    for train, test in GroupKFold(3).split(X, y, groups=qid):
        ranker = LinearRanker(epochs=5).fit(X[train], y[train], qid=qid[train])
        found.append(ranker.score(X[test], y[test], qid=qid[test]))
    assert min(found) > 0.75
    assert len(set(found)) == 3


def test_metadata_routing_brings_ids_to_every_fold_of_a_search() -> None:
    X, y, qid = rows()
    by_hand = [
        LinearRanker(epochs=5).fit(X[a], y[a], qid=qid[a]).score(X[b], y[b], qid=qid[b])
        for a, b in GroupKFold(3).split(X, y, groups=qid)
    ]
    with config_context(enable_metadata_routing=True):
        ranker = LinearRanker(epochs=5)
        routed = {"qid": qid, "groups": qid}
        assert cross_val_score(ranker, X, y, cv=GroupKFold(3), params=routed).tolist() == by_hand
        pipeline = Pipeline([("same", FunctionTransformer()), ("ranker", ranker)])
        assert cross_val_score(pipeline, X, y, cv=GroupKFold(3), params=routed).tolist() == by_hand
        search = GridSearchCV(ranker, {"l2": [1e-3, 1e4]}, cv=GroupKFold(3)).fit(X, y, **routed)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_params_ == {"l2": 1e-3}
    assert search.best_score_ == pytest.approx(np.mean(by_hand))


def test_columns_of_a_frame_name_the_parameters() -> None:
    X, y, qid = rows()
    frame = pd.DataFrame(X, columns=["bm25", "pagerank", "length", "age"])
    ranker = LinearRanker(epochs=3).fit(frame, pd.Series(y), qid=pd.Series(qid))
    assert ranker.model_.params.names == ("bias", "w.bm25", "w.pagerank", "w.length", "w.age")
    assert ranker.n_features_in_ == 4
    assert ranker.predict(frame).shape == (300,)
    with pytest.raises(ValueError, match="feature names"):
        ranker.predict(frame[["pagerank", "bm25", "length", "age"]])


def test_a_label_may_be_missing() -> None:
    X, y, qid = rows()
    labels = np.where(np.arange(300) % 3 == 0, np.nan, y)
    ranker = LinearRanker(epochs=5).fit(X, labels, qid=qid)
    assert ranker.score(X, labels, qid=qid) > 0.5


X, Y, QID = rows(queries=3)


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"qid": QID[:-1]}, InputError, r"qid must be one query id a row: shape \(29,\) for 30 rows"),
        ({"qid": QID[:, None]}, InputError, r"qid must be one query id a row: shape \(30, 1\)"),
        ({"qid": [*QID[:-1], None]}, InputError, "qid has no value in row 29"),
        ({"qid": np.where(QID == 101, np.nan, QID)}, InputError, "qid has no value in row 10"),
        ({"qid": pd.array([*QID[:-1], pd.NA], dtype="Int64")}, InputError, "qid has no value in row 29"),
        ({"group": [10, 10]}, InputError, "group sizes add up to 20, but there are 30"),
        ({"group": [10.5, 19.5]}, InputError, "group must be the number of rows"),
        ({"group": [30], "qid": QID}, UsageError, "by qid= or by group=, not both"),
        ({"y": Y[:-1]}, InputError, r"one label a row: shape \(29,\) for 30 rows"),
        ({"y": None}, UsageError, "target y is None"),
        ({"y": Y[:, None]}, InputError, "one label a row"),
        ({"y": np.where(Y == 2, np.inf, Y)}, ValueError, "y contains infinity"),
        ({"X": np.where(X > 2, np.nan, X)}, ValueError, "X contains NaN"),
        ({"X": X[:, 0]}, ValueError, "Expected 2D array"),
        ({"X": X * 1e300}, ValueError, "too large for dtype"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_data_that_cannot_be_used_are_refused_in_plain_words(arguments: Any, error: type, said: str) -> None:
    with pytest.raises(error, match=said):
        LinearRanker(epochs=1).fit(**{"X": X, "y": Y, "qid": None if "group" in arguments else QID, **arguments})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"method": "xyz"}, "unknown method 'xyz'; there are adam, auto, brent, "),
        ({"method": "taylor2006", "objective": "ranknet", "l2": 1.0}, "taylor2006 has no setting l2"),
        ({"method": "taylor2006"}, "RankNet"),
        ({"objective": "lambdarnk"}, "did you mean lambdarank"),
        ({"measure": "nDGC@10"}, "nDCG"),
        ({"validation_fraction": 1.0}, "validation_fraction is from 0 to below 1"),
        ({"epochs": -1}, "epochs"),
        ({"objective": RankNet(pairs=np.array([[1, 0]]))}, "pairs that are given by row"),
    ],
)
def test_settings_without_sense_are_refused_when_fitting(settings: dict[str, Any], said: str) -> None:
    ranker = LinearRanker(**settings)
    with pytest.raises(UsageError, match=said):
        ranker.fit(X, Y, qid=QID)


def test_a_ranker_that_was_not_fitted_says_so() -> None:
    for use in (lambda: LinearRanker().predict(X), lambda: NetworkRanker().score(X, Y)):
        with pytest.raises(NotFittedError):
            use()


def test_other_features_and_weights_of_rows_are_refused() -> None:
    ranker = LinearRanker(epochs=1).fit(X, Y, qid=QID)
    with pytest.raises(ValueError, match="3 features"):
        ranker.predict(X[:, :3])
    with pytest.raises(UsageError, match="sample_weight"):
        ranker.score(X, Y, qid=QID, sample_weight=np.ones(30))
    with pytest.raises(ValueError, match="3 features"):
        LinearRanker(epochs=1).fit(X, Y, qid=QID, eval_set=(X[:, :3], Y, QID))


def test_without_scikit_learn_the_error_says_what_to_install() -> None:
    code = "import sys; sys.modules['sklearn'] = None; import fliprank.integrations.sklearn"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "MissingExtraError: scikit-learn 1.6 or later is not installed: pip install" in done.stderr
