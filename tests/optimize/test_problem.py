"""What a problem answers: gradients by finite differences, spread, the measure, lines, ties, single queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from runs import MEASURE, followed_rows, measured, random_rows, text_rows, without_bias

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.measures import parse_measure
from fliprank.models import BM25F, Feature, Linear, Model, Network, Stack
from fliprank.models.folder import Record
from fliprank.models.parameters import Parameters
from fliprank.objectives import RankNet, parse_objective
from fliprank.optimize.pairs import pairs_of
from fliprank.optimize.problem import Problem

OBJECTIVES = ["ranknet", "softndcg(sigma=0.3)", "softap"]


@dataclass(frozen=True, eq=False)
class Scores(Model):
    """A model whose parameters are the scores themselves."""

    kind: ClassVar[str] = "scores"

    def score(self, candidates: Candidates) -> Floats:
        return self.params.values

    def pullback(self, candidates: Candidates, dscores: ArrayLike) -> Floats:
        return np.asarray(dscores, np.float64)

    def structure(self) -> dict[str, Any]:
        return {}

    @classmethod
    def restore(cls, structure: Record) -> Self:
        return cls()


def score_problem(rows: Candidates, objective: str, spread: bool = True) -> Problem:
    params = Parameters(tuple(map(str, range(len(rows)))), np.zeros(len(rows)))
    return Problem.of(Scores(params=params), rows, MEASURE, parse_objective(objective), spread=spread)


def rows_of(seed: int = 0, sizes: tuple[int, ...] = (6, 1, 4, 5)) -> Candidates:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, sum(sizes))
    return Candidates.of(labels, group=list(sizes), features=rng.normal(size=(sum(sizes), 3)))


# The objective


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("spread", [True, False])
def test_the_gradient_by_scores_is_that_of_the_value(objective: str, spread: bool) -> None:
    problem, count = score_problem(rows_of(), objective, spread), len(rows_of())
    scores = (7 if spread else 1) * np.random.default_rng(1).normal(size=count)
    _, gradient = problem.value_and_grad(scores)
    for i, step in enumerate(1e-5 * np.eye(count)):
        ends = [problem.value_and_grad(scores + sign * step)[0] for sign in (1, -1)]
        # The integrals of soft measures have rounding of some 1e-12, which the difference divides by the step.
        assert gradient[i] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=5e-7)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_spread_is_the_mean_standard_deviation_of_queries_that_have_one(objective: str) -> None:
    rows, target = rows_of(), parse_objective(objective)
    scores = 7 * np.random.default_rng(1).normal(size=len(rows))
    deviations = [part.std() for part in np.split(scores, rows.offsets[1:-1])]
    assert deviations[1] == 0  # a query of one row
    value, _ = target.value_and_grad(scores / np.mean([d for d in deviations if d > 0]), rows)
    found, _ = score_problem(rows, objective).value_and_grad(scores)
    assert found == pytest.approx(-value if target.maximise else value, rel=1e-12)


@given(st.floats(1e-3, 1e3), st.integers(0, 99))
def test_scores_that_are_further_apart_cost_the_same(factor: float, seed: int) -> None:
    problem = score_problem(rows_of(seed), "ranknet")
    scores = np.random.default_rng(seed).normal(size=len(rows_of()))
    value, gradient = problem.value_and_grad(scores)
    scaled, smaller = problem.value_and_grad(factor * scores)
    assert scaled == pytest.approx(value)
    np.testing.assert_allclose(factor * smaller, gradient, atol=1e-9)
    assert gradient @ scores == pytest.approx(0.0, abs=1e-9)  # nothing is gained by being surer


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_to_tell_nothing_apart_is_no_way_out(objective: str) -> None:
    """Where labels contradict the features, equal scores would cost least; a descent must not end there."""
    rows = Candidates.of([0, 1] * 10, group=[2] * 10, features=np.tile([[2.0], [1.0]], (10, 1)))
    problem = Problem.of(Linear().prepared(rows, 0), rows, MEASURE, parse_objective(objective), spread=True)
    alike, wrong = (problem.value_and_grad(np.array([0.0, weight])) for weight in (0.0, 1.0))
    assert alike[0] > wrong[0]
    assert np.abs(alike[1]).max() > 0  # it is a place to start from all the same


@pytest.mark.parametrize("spread", [True, False])
@pytest.mark.parametrize("factors", [True, False])
def test_the_cost_and_the_prior_by_search_coordinates_have_their_gradient(spread: bool, factors: bool) -> None:
    """The whole that a descent goes down, of a model whose parameters are of any size."""
    rows = text_rows()
    model = Stack(BM25F(), Feature("pagerank", "log")).prepared(rows, 0)
    problem = Problem.of(model, rows, MEASURE, parse_objective("softndcg(sigma=0.3)"), spread=spread)
    space = problem.space(factors=factors, prior=0.1)
    start = model.params.free_values
    point = space.to_search(np.clip(1.3 * start, model.params.free_lower, 0.9 * model.params.free_upper))

    def cost(point: Floats) -> float:
        values = space.from_search(point)
        return problem.value_and_grad(values)[0] + space.prior_cost(values)[0]

    values = space.from_search(point)
    gradient = space.pull(values, problem.value_and_grad(values)[1]) + space.prior_cost(values)[1]
    assert np.abs(gradient).min() > 1e-6
    for i, step in enumerate(1e-5 * np.eye(len(point))):
        assert gradient[i] == pytest.approx((cost(point + step) - cost(point - step)) / 2e-5, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("objective", ["ranknet", "softndcg(sigma=0.5)", "lambdarank"])
def test_the_gradient_by_parameters_is_that_of_the_value(objective: str) -> None:
    rows = followed_rows(0)
    model = Network(2).prepared(rows, 1)
    problem, values = Problem.of(model, rows, MEASURE, parse_objective(objective)), model.params.values
    gradient, step = problem.value_and_grad(values)[1], 1e-6
    for i in range(0, len(values), 3):
        aside = np.zeros(len(values))
        aside[i] = step
        slope = (problem.value_and_grad(values + aside)[0] - problem.value_and_grad(values - aside)[0]) / (2 * step)
        assert gradient[i] == pytest.approx(slope, rel=1e-4, abs=1e-6)


def test_the_prior_adds_the_squared_weights_to_the_cost_and_leaves_biases_alone() -> None:
    rows = followed_rows(0)
    params = Network(3).prepared(rows, 1).params
    names = [name for name in params.names if name.startswith("w")]
    assert len(names) == 3 * 5 + 3
    problem = Problem.of(Network(3).prepared(rows, 1), rows, MEASURE, RankNet())
    held = problem.space(factors=True, prior=0.5).prior_cost(params.free_values)[0]
    assert held == pytest.approx(0.5 * sum(params[name] ** 2 for name in names))


def test_some_queries_are_a_problem_of_their_own() -> None:
    rows, chosen = random_rows(3), np.array([1, 4, 5, 11])
    model = Linear().prepared(rows, 0)
    whole = Problem.of(model, rows, MEASURE, parse_objective("softndcg(sigma=0.3)"))
    part = Problem.of(model, rows.select(chosen), MEASURE, whole.objective)
    values = model.params.free_values
    expected = part.value_and_grad(values)
    for found in (whole.value_and_grad(values, chosen), whole.select(chosen).value_and_grad(values)):
        assert found[0] == expected[0]
        assert found[1].tolist() == expected[1].tolist()
    assert whole.select(chosen).measure_at(values) == part.measure_at(values) != whole.measure_at(values)
    assert whole.select(chosen).queries == 4


def test_pairs_that_are_given_by_row_go_with_their_queries() -> None:
    rows = random_rows(3)
    every = pairs_of(RankNet(), rows)
    pairs = every[np.random.default_rng(0).permutation(len(every))[:40]]
    owner = rows.query_of_rows()[pairs[:, 0]]
    problem = Problem.of(Linear().prepared(rows, 0), rows, MEASURE, RankNet(pairs=pairs, normalise="none"))
    values = problem.params.free_values
    scores = problem.model.score(rows)
    costs = np.logaddexp(0.0, scores[pairs[:, 1]] - scores[pairs[:, 0]])
    for chosen in (np.array([0, 3, 4]), np.array([9]), np.arange(15)):
        expected = costs[np.isin(owner, chosen)].sum() / len(chosen)
        assert problem.value_and_grad(values, chosen)[0] == pytest.approx(expected, rel=1e-9)


def test_a_problem_without_an_objective_says_so() -> None:
    rows = random_rows()
    problem = Problem.of(Linear().prepared(rows, 0), rows, MEASURE)
    with pytest.raises(UsageError, match="no objective to descend, only a measure"):
        problem.value_and_grad(problem.params.free_values)


# The measure


@pytest.mark.parametrize("name", ["AP", "GMAP", "ESL"])
def test_the_measure_is_to_be_maximised(name: str) -> None:
    rows, measure = random_rows(1), parse_measure(name)
    model = without_bias(rows)
    problem, values = Problem.of(model, rows, name), model.params.free_values
    plain = measured(model, rows, measure)(values)
    assert problem.measure_at(values) == problem.place(values).measure == (-plain if name == "ESL" else plain)
    assert problem.per_query(values).tolist() == measure.per_query(model.score(rows), rows).tolist()


@pytest.mark.parametrize("model", [Linear(), Network(2), Stack(BM25F(), Feature("pagerank", "log"))])
def test_a_line_is_the_measure_along_it(model: Model) -> None:
    rows = text_rows() if isinstance(model, Stack) else random_rows(1)
    problem = Problem.of(model.prepared(rows, 0), rows, "AP")
    values, rng = problem.params.free_values, np.random.default_rng(0)
    for direction in [*np.eye(len(values)), rng.normal(size=len(values))]:
        line = problem.line(values, direction)
        for x in (-0.1, 0.0, 0.3):
            moved = np.clip(values + x * direction, problem.params.free_lower, problem.params.free_upper)
            if (moved == values + x * direction).all():
                assert line(x) == pytest.approx(problem.measure_at(moved), abs=1e-12)
                place = problem.moved(problem.place(values), direction, x)
                assert place.measure == line(x)
                np.testing.assert_allclose(place.scores[0], problem.at(moved).score(rows), atol=1e-9)


def test_no_trajectory_along_what_moves_all_scores_alike() -> None:
    rows = random_rows(1)
    problem = Problem.of(Linear().prepared(rows, 0), rows, "AP")
    place = problem.place(problem.params.free_values)
    assert problem.trajectory(place, np.array([1.0, 0, 0, 0]), resolution=0.01) is None
    assert problem.trajectory(place, np.array([0.0, 1, 0, 0]), resolution=0.01) is not None


def test_a_bracketed_trajectory_ends_two_widths_from_here() -> None:
    rows = random_rows(1)
    problem = Problem.of(Network(1).prepared(rows, 0), rows, "AP")
    place = problem.place(problem.params.free_values)
    path = problem.trajectory(place, np.array([0.5, *np.zeros(len(place.values) - 1)]), resolution=0.01)
    assert path is not None
    assert (path.low, path.high) == (-4.0, 4.0)  # the width is 1, the direction half as long
    assert path.resolution > 0


@pytest.mark.parametrize("levels", [1, 2, 3, 50])
def test_nothing_is_ranked_where_all_scores_of_each_query_tie(levels: int) -> None:
    rows = rows_of()
    scores = np.random.default_rng(0).integers(0, levels, len(rows)).astype(float)
    by_query = 100.0 * rows.query_of_rows()  # queries may differ: within each of them all scores are one
    problem = score_problem(rows, "ranknet")
    assert problem.ranks_nothing(problem.place(scores + by_query)) == (levels == 1)


def test_where_no_query_has_two_rows_nothing_ties() -> None:
    problem = score_problem(rows_of(sizes=(1, 1)), "ranknet")
    assert not problem.ranks_nothing(problem.place(np.zeros(2)))


def test_the_measure_where_the_cost_was_just_asked_for_takes_no_scoring(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, scored, score = random_rows(3), list[int](), Linear.score

    def counted(self: Linear, candidates: Candidates) -> Floats:
        scored.append(len(candidates))
        return score(self, candidates)

    model = Linear().prepared(rows, 0)
    problem, fresh = (Problem.of(model, rows, MEASURE, RankNet()) for _ in range(2))
    here, there = np.array(model.params.free_values), np.array(model.params.free_values) + 1.0
    expected = [fresh.measure_at(here), fresh.measure_at(there)]
    monkeypatch.setattr(Linear, "score", counted)
    problem.value_and_grad(here)
    assert [problem.measure_at(here), len(scored)] == [expected[0], 1]
    assert [problem.measure_at(there), len(scored)] == [expected[1], 2]
    problem.value_and_grad(there, np.array([0]))  # of some queries only: not what is asked for next
    assert [problem.measure_at(there), len(scored)] == [expected[1], 4]
