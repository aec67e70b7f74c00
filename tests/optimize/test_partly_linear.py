"""Exact searches of models of which some parameters are linear: weights exactly, the others by bracketing."""

from __future__ import annotations

import numpy as np
import pytest

from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds
from fliprank.data.ids import Ids
from fliprank.data.term_statistics import TermStatistics
from fliprank.measures import parse_measure
from fliprank.models import BM25F, Feature, Stack
from fliprank.optimize.exact import Exact, line_search
from fliprank.optimize.fit import Recorder
from fliprank.optimize.line import Line


def texts(queries: int = 8, rows: int = 12) -> Candidates:
    """One term a query, two fields; labels follow the title's tf and the pagerank."""
    rng, count = np.random.default_rng(0), queries * rows
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


def test_the_weights_of_a_stack_are_searched_exactly_and_the_rest_by_bracketing() -> None:
    rows, measure = texts(), parse_measure("AP")
    stack = Stack(BM25F(), Feature("pagerank", "log")).prepared(rows, 0)
    exact = [stack.linear_along(along) for along in np.eye(len(stack.params.free_names))]
    assert 0 < sum(exact) < len(exact)
    for name, linear in zip(stack.params.free_names, exact, strict=True):
        found = line_search(stack, rows, measure, name)
        assert (found.path.resolution == 0) == linear
        assert found.value >= found.before
        if linear:
            grid = [
                measure.aggregate(measure.per_query(found.path.scores(x), rows))  # type: ignore[attr-defined]
                for x in np.linspace(max(found.path.low, -3), min(found.path.high, 3), 100)
            ]
            assert found.value >= max(grid) - 1e-12


@pytest.mark.parametrize("method", [Exact(epochs=2), Line(samples=7, epochs=2)], ids=["exact", "line"])
def test_a_stack_is_climbed_within_its_bounds(method: Exact | Line) -> None:
    rows = texts()
    recorder = Recorder(Stack(BM25F(), Feature("pagerank", "log")).prepared(rows, 0), rows, None, parse_measure("AP"))
    method.run(recorder, None, np.random.default_rng(0))
    assert recorder.trail[-1].train > recorder.trail[0].train
    recorder.fit().model.params.check_bounds()
