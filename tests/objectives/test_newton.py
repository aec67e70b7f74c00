"""What boosted trees descend by: the objective's own gradient, its sign that of a cost, and a curvature above 0."""

from __future__ import annotations

import numpy as np
import pytest

from fliprank.data.candidates import Candidates
from fliprank.objectives import REGISTRY, RankNet, parse_objective

NAMES = [name + ("@3" if name in ("softp", "softrecall") else "") for name in REGISTRY]
EXACT = [
    "lambdarank",
    "lambdarank@3",
    "lambdarank(measure='AP',sigma=2.0)",
    "lambdarank(measure='RR')",
    "ranknet",
    "ranknet(normalise='none',target=0.8)",
    "mse",
    "logistic",
]
STEP = 1e-5


def problem(seed: int) -> tuple[np.ndarray, Candidates]:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 9, 7)
    labels = rng.choice([0.0, 0.0, 1.0, 2.0, np.nan], sizes.sum())
    return rng.normal(size=sizes.sum()), Candidates.of(labels, group=sizes)


def steps(rows: Candidates) -> np.ndarray:
    return STEP * np.eye(len(rows))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_is_that_of_the_cost_summed_over_queries(name: str, seed: int) -> None:
    objective, (scores, rows) = parse_objective(name), problem(seed)
    value, gradient, curvature = objective.newton(scores, rows)
    sign = -1.0 if objective.maximise else 1.0

    def cost(at: np.ndarray) -> float:
        return sign * float(objective.per_query(at, rows).sum())

    expected = [(cost(scores + step) - cost(scores - step)) / (2 * STEP) for step in steps(rows)]
    np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-5)
    assert value == pytest.approx(sign * cost(scores) / rows.queries)
    assert (curvature > 0).all()


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("seed", range(3))
def test_where_the_curvature_is_known_it_is_the_second_derivative(name: str, seed: int) -> None:
    objective, (scores, rows) = parse_objective(name), problem(seed)
    ends = [[objective.newton(scores + side, rows)[1] for side in (step, -step)] for step in steps(rows)]
    expected = [(high[i] - low[i]) / (2 * STEP) for i, (high, low) in enumerate(ends)]
    np.testing.assert_allclose(objective.newton(scores, rows)[2], expected, rtol=1e-4, atol=1e-5)


def test_chosen_pairs_have_the_second_derivative_too() -> None:
    scores, rows = np.array([0.3, -0.2, 1.0, 0.4]), Candidates.of([1, 0, 2, 0], group=[2, 2])
    for pairs in ([[0, 1], [2, 3]], [[0, 1], [0, 1], [2, 3]]):
        objective = RankNet(pairs=np.array(pairs))
        ends = [[objective.newton(scores + side, rows)[1] for side in (step, -step)] for step in steps(rows)]
        expected = [(high[i] - low[i]) / (2 * STEP) for i, (high, low) in enumerate(ends)]
        np.testing.assert_allclose(objective.newton(scores, rows)[2], expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["softndcg", "softap", "softrank"])
def test_a_step_by_a_soft_measure_is_the_same_in_units_of_its_noise(name: str) -> None:
    scores, rows = problem(4)
    steps = []
    for sigma in (0.1, 0.7):
        _, gradient, curvature = parse_objective(f"{name}(sigma={sigma})").newton(sigma * scores, rows)
        steps.append(gradient / curvature / sigma)
    np.testing.assert_allclose(steps[0], steps[1], rtol=1e-6, atol=1e-7)


def test_a_leaf_moves_by_at_most_two_units_and_by_little_where_gradients_are_small() -> None:
    _, gradient, curvature = parse_objective("softndcg(sigma=1.0)").newton(*problem(5))
    moved = np.abs(gradient / curvature)
    assert moved.max() <= 2
    assert (np.argsort(moved) == np.argsort(np.abs(gradient))).mean() > 0.9
