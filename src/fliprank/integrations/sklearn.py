"""scikit-learn estimators: rankers that fit pipelines, GroupKFold and model selection.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> X, qid = rng.normal(size=(200, 3)), np.repeat(np.arange(20), 10)
>>> y = (X[:, 0] + 0.1 * rng.normal(size=200) > 0.8).astype(int)
>>> ranker = LinearRanker(objective="ranknet").fit(X, y, qid=qid)
>>> ranker.predict(X).shape, bool(ranker.score(X, y, qid=qid) > 0.9)
((200,), True)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fliprank.arrays import Floats, Matrix
from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, MissingExtraError, UsageError
from fliprank.measures.base import Measure
from fliprank.measures.names import parse_measure
from fliprank.models import Linear, Model, Network
from fliprank.objectives import Objective, parse_objective
from fliprank.optimize.descent import Adam, Lbfgs, descent
from fliprank.optimize.fit import Fit, Recorder
from fliprank.optimize.papers import PRESETS, Taylor2006, Taylor2008

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, validate_data
except ImportError as error:
    raise MissingExtraError("scikit-learn (1.6 or later)", "test") from error

__all__ = ["LinearRanker", "NetworkRanker"]

METHODS = ("auto", "lbfgs", "adam", *PRESETS)


class _Ranker(BaseEstimator):  # type: ignore[misc]
    """What the rankers have in common. Subclasses say which model they fit."""

    objective: str | Objective
    measure: str | Measure
    method: str
    epochs: int | None
    l2: float | None
    seed: int
    validation_fraction: float
    model_: Model
    fit_: Fit
    n_features_in_: int

    def _model(self) -> Model:
        raise NotImplementedError

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        eval_set: tuple[Any, ...] | None = None,
    ) -> Self:
        """Learn to rank the rows of each query by their labels `y`; NaN is a row that nobody judged.

        The query of each row is given by `qid`, in any order, or by `group`, the sizes of consecutive queries; without
        either, all rows are one query. `eval_set` is (X, y, qid), or (X, y, group) if `group` is what is given here: the
        validation queries, instead of a share of the training queries.
        """
        features = validate_data(self, X, dtype=np.float32)
        names = [str(name) for name in getattr(self, "feature_names_in_", ())]
        rows, _ = _candidates(features, y, qid, group, names)
        objective, measure = parse_objective(self.objective), parse_measure(self.measure)
        optimizer, rng = self._optimizer(objective), np.random.default_rng(self.seed)
        if eval_set is None:
            train, valid = _hold_out(rows, self.validation_fraction, rng)
        else:
            train, valid = rows, self._validation(eval_set, group is not None, names)
        recorder = Recorder(self._model().prepared(train, rng), train, valid, measure)
        optimizer.run(recorder, objective, rng)
        self.fit_ = recorder.fit(objective=str(objective), measure=str(measure), optimizer=repr(optimizer))
        self.model_ = self.fit_.model
        return self

    def predict(self, X: Any) -> Floats:
        """A score for each row: within a query, higher is better."""
        check_is_fitted(self, "model_")
        features = validate_data(self, X, dtype=np.float32, reset=False)
        return self.model_.score(self._rows(features, np.zeros(len(features)))[0])

    def score(self, X: Any, y: ArrayLike, qid: ArrayLike | None = None, group: ArrayLike | None = None) -> float:
        """The mean of `measure` over the queries of these rows."""
        check_is_fitted(self, "model_")
        features = validate_data(self, X, dtype=np.float32, reset=False)
        rows, _ = self._rows(features, y, qid, group)
        measure = parse_measure(self.measure)
        return measure.aggregate(measure.per_query(self.model_.score(rows), rows))

    def _rows(
        self, features: Matrix, y: ArrayLike, qid: ArrayLike | None = None, group: ArrayLike | None = None
    ) -> tuple[Candidates, Any]:
        return _candidates(features, y, qid, group, self.model_.scaler.names)  # type: ignore[attr-defined]
