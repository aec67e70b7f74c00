"""Rows to fit to, and runs of a method on them, as the tests of the engine share them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds
from fliprank.data.ids import Ids
from fliprank.data.term_statistics import TermStatistics
from fliprank.measures import Measure, parse_measure
from fliprank.models import Linear, Model, Network
from fliprank.objectives import Objective, parse_objective
from fliprank.optimize.fit import Epoch, Recorder
from fliprank.optimize.methods import Method
from fliprank.optimize.problem import Problem

MEASURE = parse_measure("nDCG(dcg='exp-log2')@10")
MODELS: list[Model] = [Linear(), Network(3)]


def followed_rows(seed: int, queries: int = 24, rows: int = 12) -> Candidates:
    """Rows whose labels follow some of their five features, one of them downwards, with noise."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(queries * rows, 5))
    hidden = matrix @ [2.0, -1.5, 1.0, 0.5, 0.0] + rng.normal(size=len(matrix))
    labels = np.digitize(hidden, np.quantile(hidden, [0.6, 0.9]))
    return Candidates.of(labels, group=[rows] * queries, features=matrix)


def random_rows(seed: int = 0, queries: int = 15, rows: int = 10, features: int = 3) -> Candidates:
    """Rows whose labels follow a random direction of their features, with noise."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(queries * rows, features))
    hidden = matrix @ rng.normal(size=features) + 0.5 * rng.normal(size=len(matrix))
    return Candidates.of(np.digitize(hidden, np.quantile(hidden, [0.6, 0.9])), group=[rows] * queries, features=matrix)


def coarse_rows(seed: int, queries: int = 20, rows: int = 12, features: int = 5) -> Candidates:
    """The same with more noise; the last feature is equal for all rows of a query, the one before has few values."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(queries * rows, features))
    matrix[:, -1] = np.repeat(rng.normal(size=queries), rows)
    matrix[:, -2] = np.round(matrix[:, -2])
    hidden = matrix @ rng.normal(size=features) + rng.normal(size=len(matrix))
    return Candidates.of(np.digitize(hidden, np.quantile(hidden, [0.6, 0.9])), group=[rows] * queries, features=matrix)


def ordered_rows() -> Candidates:
    """The labels follow the one feature: from a weight above 0, nothing can be better."""
    return Candidates.of([2, 1, 0, 0] * 5, group=[4] * 5, features=np.tile([3.0, 2.0, 1.0, 0.0], 5)[:, None])


def text_rows(queries: int = 8, rows: int = 12, seed: int = 0) -> Candidates:
    """One term per query, two fields; labels follow the title's tf and the pagerank."""
    rng, count = np.random.default_rng(seed), queries * rows
    tf = rng.integers(0, 6, (count, 2))
    rank = np.abs(rng.normal(2, 1, (count, 1)))
    hidden = tf[:, 0] + rank[:, 0] + rng.normal(size=count)
    statistics = TermStatistics(
        ("title", "body"),
        np.arange(queries + 1),
        Ids.of(f"t{i}" for i in range(queries)),
        rng.uniform(1, 5, queries),
        np.arange(count + 1),
        tf,
        tf + rng.integers(0, 30, (count, 2)),
    )
    labels = np.digitize(hidden, np.quantile(hidden, [0.7, 0.9]))
    qids = Ids.of(f"q{i}" for i in range(queries))
    return Candidates(bounds([rows] * queries), labels, qids, None, rank, ("pagerank",), statistics)


def without_bias(rows: Candidates, seed: int = 1) -> Linear:
    """A linear model of which only the weights are free."""
    model = Linear().prepared(rows, seed)
    return model.at(model.params.fix("bias"))


def record(
    model: Model,
    train: Candidates,
    valid: Candidates | None = None,
    *,
    measure: str | Measure = MEASURE,
    objective: str | Objective | None = None,
    **given: Any,
) -> Recorder:
    """The recorder of a run from this model; `given` goes to it."""
    target = None if objective is None else parse_objective(objective)
    held = None if valid is None else Problem.of(model, valid, measure, target)
    return Recorder(Problem.of(model, train, measure, target), held, **given)


def followed(model: Model = MODELS[0], objective: str | Objective = "ranknet", seed: int = 0, **given: Any) -> Recorder:
    """The recorder of a run on `followed_rows`, with others to validate on."""
    train = followed_rows(seed)
    return record(model.prepared(train, 1), train, followed_rows(seed + 100), objective=objective, **given)


def run(method: Method, recorder: Recorder, seed: int = 3) -> Recorder:
    """The recorder after the run."""
    method.run(recorder.problem, recorder, np.random.default_rng(seed))
    return recorder


def train_rows(recorder: Recorder) -> Candidates:
    """The rows that a run is fitted to."""
    (shard,) = recorder.problem.shards
    return shard.rows


def valid_rows(recorder: Recorder) -> Candidates:
    """The rows that epochs are chosen on."""
    assert recorder.valid is not None
    (shard,) = recorder.valid.shards
    return shard.rows


def measured(model: Model, rows: Candidates, measure: Measure) -> Callable[[Floats], float]:
    """The measure as a function of the free parameters."""

    def at(values: Floats) -> float:
        scores = model.at(model.params.with_free(values)).score(rows)
        return measure.aggregate(measure.per_query(scores, rows))

    return at


def interrupt_at(number: int) -> Callable[[Epoch], None]:
    """Progress that is stopped by Ctrl-C once this epoch is written."""

    def progress(epoch: Epoch) -> None:
        if epoch.number == number:
            raise KeyboardInterrupt

    return progress
