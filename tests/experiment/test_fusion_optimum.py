"""The best weights on training queries: never below a grid."""

from __future__ import annotations

import numpy as np
import pytest
from test_fusing import collection

from fliprank.data.fusion_rows import fusion_rows
from fliprank.errors import UsageError
from fliprank.experiment.fusion_optimum import exact_optimum, lattice
from fliprank.measures import parse_measure
from fliprank.models.fusion import Fusion

MEASURE = parse_measure("nDCG@10")


def brute_force(model: Fusion, rows: object, points: np.ndarray) -> float:
    return max(MEASURE.value(model.at(point).score(rows), rows) for point in points.tolist())


@pytest.mark.parametrize("seed", range(4))
def test_two_lists_are_never_below_a_grid_of_101(seed: int) -> None:
    lists, judged = collection(seed, queries=15, good=(0.8, 1.2))
    rows, model = fusion_rows(lists, judged), Fusion("plain", list(lists), normalise="minmax")
    found = exact_optimum(model, rows, MEASURE)
    share = np.linspace(0, 1, 101)
    assert found.value >= brute_force(model, rows, np.column_stack([1 - share, share])) - 1e-12
    assert found.value == pytest.approx(MEASURE.value(found.model.score(rows), rows), abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_three_lists_are_never_below_a_grid_in_steps_of_a_twentieth(seed: int) -> None:
    lists, judged = collection(20 + seed, queries=12, documents=25, good=(0.8, 1.2, 0.5))
    rows, model = fusion_rows(lists, judged), Fusion("plain", list(lists), normalise="minmax")
    found = exact_optimum(model, rows, MEASURE)
    assert found.value >= brute_force(model, rows, lattice(3, 20)) - 1e-12
    assert found.model.weights.sum() == pytest.approx(1.0)


def test_a_measure_whose_small_values_are_good_is_made_small() -> None:
    lists, judged = collection(3, queries=10, documents=20, good=(0.8, 1.2, 0.5))
    rows, model, measure = fusion_rows(lists, judged), Fusion("plain", list(lists)), parse_measure("ESL")
    found = exact_optimum(model, rows, measure)
    assert found.value <= min(measure.value(model.at(p).score(rows), rows) for p in lattice(3, 10).tolist())


def test_a_lattice_has_every_point_once() -> None:
    points = lattice(4, 5)
    assert len(points) == len({tuple(p) for p in points.tolist()}) == 56
    assert (points >= 0).all()
    assert np.allclose(points.sum(axis=1), 1.0)


def test_a_fusion_without_weights_is_refused() -> None:
    lists, judged = collection(3, queries=4)
    with pytest.raises(UsageError, match="no weights"):
        exact_optimum(Fusion("solr", list(lists)), fusion_rows(lists, judged), MEASURE)
