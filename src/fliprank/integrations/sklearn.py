"""scikit-learn estimators: rankers for pipelines, GroupKFold and model selection.

Queries come as a fit parameter: `ranker.fit(X, y, qid=qid)`, `pipeline.fit(X, y, ranker__qid=qid)`. Cross-validation
and searches bring them to fitting and scoring alike by metadata routing: after
`sklearn.set_config(enable_metadata_routing=True)`, `cross_val_score(ranker, X, y, cv=GroupKFold(5), params={"qid": qid,
"groups": qid})`. Rows without queries are an error: as one query they would be ranked against rows of others.

>>> rng = np.random.default_rng(0)
>>> X, qid = rng.normal(size=(200, 3)), np.repeat(np.arange(20), 10)
>>> y = X[:, 0] + 0.1 * rng.normal(size=200) > 0.8
>>> ranker = LinearRanker(objective="ranknet").fit(X, y, qid=qid)
>>> ranker.predict(X).shape, ranker.score(X, y, qid=qid) > 0.9, ranker.model_.params.names
((200,), True, ('bias', 'w.1', 'w.2', 'w.3'))
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fliprank.arrays import Floats, Matrix
from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, MissingExtraError, UsageError
from fliprank.experiment.trials import problem_of
from fliprank.measures.base import Measure
from fliprank.measures.names import parse_measure
from fliprank.models.base import Model
from fliprank.models.linear import Linear
from fliprank.models.network import Network
from fliprank.objectives import Objective, parse_objective
from fliprank.optimize.fit import Fit, Recorder
from fliprank.optimize.methods import make_method

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import (
        check_array,
        check_is_fitted,
        validate_data,
    )
except ImportError as error:
    raise MissingExtraError("scikit-learn 1.6 or later", "sklearn") from error

__all__ = ["LinearRanker", "NetworkRanker"]


class LinearRanker(BaseEstimator):  # type: ignore[misc]
    """A linear model of standardised features.

    `objective` is what it goes down, `measure` what the epoch is chosen by and `score` gives; both take any name that
    fliprank knows. `method` is "auto", "lbfgs", "adam", "taylor2006" or "taylor2008"; `epochs` and `l2`, where they are
    None, are the method's own. `validation_fraction` of the queries are held out to choose the epoch; with 0, it is
    chosen on the training queries. Queries are taken in the order of their ids, so that the order of rows of different
    queries does not matter.

    After `fit`: `model_`, the trained model, and `fit_`, the trail of epochs, the best of them, and why it stopped.
    """

    model_: Model
    fit_: Fit
    __metadata_request__fit: ClassVar = {"qid": True}
    __metadata_request__score: ClassVar = {"qid": True}

    def __init__(
        self,
        objective: str | Objective = "lambdarank@10",
        measure: str | Measure = "nDCG(dcg='exp-log2')@10",
        method: str = "auto",
        epochs: int | None = None,
        l2: float | None = None,
        seed: int = 0,
        validation_fraction: float = 0.2,
    ) -> None:
        self.objective = objective
        self.measure = measure
        self.method = method
        self.epochs = epochs
        self.l2 = l2
        self.seed = seed
        self.validation_fraction = validation_fraction

    def _untrained(self) -> Model:
        return Linear()

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        eval_set: tuple[Any, ...] | None = None,
    ) -> Self:
        """Learn to rank the rows of each query by their labels `y`; NaN is a row that nobody judged.

        The query of each row is given by `qid`, ids in any order, or by `group`, the sizes of consecutive queries.
        `eval_set` = (X, y, qid), or (X, y, group) where this call has `group`,
        are the validation queries; without it a share of the queries is held out.
        """
        features = validate_data(self, X, dtype=np.float32)
        rows = _candidates(features, y, qid, group, getattr(self, "feature_names_in_", ()))
        objective, measure = parse_objective(self.objective), parse_measure(self.measure)
        if getattr(objective, "pairs", None) is not None:
            raise UsageError("a ranker reorders the rows: its objective can't have pairs that are given by row")
        given = {name: value for name, value in (("epochs", self.epochs), ("l2", self.l2)) if value is not None}
        method, rng = make_method(self.method, objective, **given), np.random.default_rng(self.seed)
        if eval_set is None:
            train, valid = _hold_out(rows, self.validation_fraction, rng)
        else:
            train, valid = rows, self._validation(eval_set, group is not None, rows.feature_names)
        ready = self._untrained().prepared(train, rng)
        problem, held = (
            None if part is None else problem_of(ready, part, measure, objective, method) for part in (train, valid)
        )
        assert problem is not None
        recorder = Recorder(problem, held)
        method.run(problem, recorder, rng)
        self.fit_ = recorder.fit(objective=str(objective), measure=str(measure), method=str(method))
        self.model_ = self.fit_.model
        return self

    def _validation(self, eval_set: tuple[Any, ...], sizes: bool, names: tuple[str, ...]) -> Candidates:
        if not isinstance(eval_set, tuple) or len(eval_set) != 3:
            raise UsageError("eval_set is (X, y, qid), or (X, y, group) where fit is given group")
        X, y, given = eval_set
        features = validate_data(self, X, dtype=np.float32, reset=False)
        return _candidates(features, y, None if sizes else given, given if sizes else None, names)

    def predict(self, X: Any) -> Floats:
        """A score for each row, in the order given: within a query, higher is better."""
        check_is_fitted(self, "model_")
        features = validate_data(self, X, dtype=np.float32, reset=False)
        return self.model_.score(_candidates(features, np.zeros(len(features)), None, [len(features)], self._names()))

    def score(
        self,
        X: Any,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: None = None,
    ) -> float:
        """The mean of `measure` over the queries of these rows.

        `sample_weight` must be None: it is here because a scikit-learn pipeline that routes metadata always passes it.
        """
        check_is_fitted(self, "model_")
        if sample_weight is not None:
            raise UsageError("a ranker's score is a mean over queries: rows have no sample_weight")
        features = validate_data(self, X, dtype=np.float32, reset=False)
        rows, measure = _candidates(features, y, qid, group, self._names()), parse_measure(self.measure)
        return measure.value(self.model_.score(rows), rows)

    def _names(self) -> tuple[str, ...]:
        """The features as the model knows them, whatever those of a later array are called."""
        names: tuple[str, ...] = self.model_.scaler.names  # type: ignore[attr-defined]
        return names

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


class NetworkRanker(LinearRanker):
    """A two-layer net of `hidden` nodes with tanh on standardised features; all else as in `LinearRanker`."""

    def __init__(
        self,
        hidden: int = 10,
        objective: str | Objective = "lambdarank@10",
        measure: str | Measure = "nDCG(dcg='exp-log2')@10",
        method: str = "auto",
        epochs: int | None = None,
        l2: float | None = None,
        seed: int = 0,
        validation_fraction: float = 0.2,
    ) -> None:
        super().__init__(objective, measure, method, epochs, l2, seed, validation_fraction)
        self.hidden = hidden

    def _untrained(self) -> Model:
        return Network(hidden=self.hidden)


def _candidates(
    features: Matrix, y: ArrayLike | None, qid: ArrayLike | None, group: ArrayLike | None, names: Iterable[Any]
) -> Candidates:
    """Checked rows as candidates, queries in the order of their ids, the rows of each in the order given."""
    if y is None:
        raise UsageError("a ranker requires y to be passed, but the target y is None: give the label of each row")
    labels = check_array(y, ensure_2d=False, dtype=np.float64, ensure_all_finite="allow-nan", input_name="y")
    if labels.ndim != 1 or len(labels) != len(features):
        raise InputError(f"y must be one label a row: shape {labels.shape} for {len(features)} rows of X")
    called = [str(name) for name in names]
    if qid is None and group is None:
        hint = "qid=, the query of each row, or group=, the sizes of consecutive queries"
        routing = (
            "in cross-validation and searches by sklearn.set_config(enable_metadata_routing=True), params={'qid': qid}"
        )
        raise UsageError(f"a ranker ranks the rows of each query: give {hint}; {routing}")
    if qid is None:
        return Candidates.of(labels, group=group, features=features, feature_names=called)
    if group is not None:
        raise UsageError("give the queries by qid= or by group=, not both")
    ids = _ids(qid, len(features))
    order = np.argsort(ids, kind="stable")
    return Candidates.of(labels[order], qid=ids[order], features=features[order], feature_names=called)


def _ids(qid: Any, rows: int) -> NDArray[Any]:
    """Query ids, one a row, of a kind that can be sorted."""
    ids = np.asarray(qid)
    if ids.shape != (rows,):
        raise InputError(f"qid must be one query id a row: shape {ids.shape} for {rows} rows of X")
    if hasattr(qid, "isna"):  # pandas, some of whose missing values can't be compared
        absent = np.asarray(qid.isna())
    else:
        absent = np.array([value is None or value != value for value in ids.tolist()], bool)
    if absent.any():
        raise InputError(f"qid has no value in row {int(absent.argmax())}")
    return ids.astype(str) if ids.dtype == object else ids


def _hold_out(rows: Candidates, fraction: float, rng: np.random.Generator) -> tuple[Candidates, Candidates | None]:
    """(training, validation) queries: at least one for training; None where there is none to hold out."""
    if not 0 <= fraction < 1:
        raise UsageError(f"validation_fraction is from 0 to below 1, not {fraction}")
    held = min(round(fraction * rows.queries), rows.queries - 1)
    if held < 1:
        return rows, None
    shuffled = rng.permutation(rows.queries)
    return rows.select(np.sort(shuffled[held:])), rows.select(np.sort(shuffled[:held]))
