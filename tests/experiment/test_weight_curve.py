"""The measure over a weight, and the weights that are as good as the best."""

from __future__ import annotations

import numpy as np
import pytest
from test_fusing import collection

from fliprank.data.fusion_rows import fusion_rows
from fliprank.experiment.weight_curve import as_good_range, share_curve
from fliprank.measures import Measure, parse_measure
from fliprank.models.fusion import Fusion

MEASURE = parse_measure("nDCG@10")


def behind(measure: Measure, best: np.ndarray, here: np.ndarray) -> float:
    """How far one is behind the other: the sum of differences over the root of the sum of their squares."""
    gap = measure.sign * (measure.paired(here) - measure.paired(best))
    return float(-gap.sum() / np.sqrt((gap**2).sum())) if gap.any() else 0.0


@pytest.mark.parametrize("name", ["nDCG@10", "AP", "GM(AP)", "ESL"])
def test_the_range_ends_where_some_weight_is_further_behind_than_chance_brings_any(name: str) -> None:
    measure = parse_measure(name)
    lists, judged = collection(4, queries=30, good=(0.5, 1.8))
    rows, model = fusion_rows(lists, judged), Fusion("plain", list(lists), normalise="minmax")
    curve = share_curve(model, rows, measure, 1)
    assert curve is not None
    found = as_good_range(curve)
    best_at = curve.best_point("widest")
    assert found.low <= best_at <= found.high
    assert 0 < found.high - found.low < 1

    def at(x: float) -> np.ndarray:
        return measure.per_query(model.at([1 - x, x]).score(rows), rows)

    best, grid = at(best_at), np.linspace(0.003, 0.997, 120)
    values = {float(x): at(float(x)) for x in grid}
    gaps = np.array([measure.paired(here) - measure.paired(best) for here in values.values()])
    rng, most = np.random.default_rng(7), []
    for _ in range(2000):
        signs = rng.choice([-1, 1], len(best))
        most.append(max(abs(float((signs * gap).sum())) / np.sqrt((gap**2).sum()) for gap in gaps if gap.any()))
    least, largest = np.quantile(most, [0.9, 0.98])  # what flips and points give varies a little
    assert all(behind(measure, best, here) <= largest for x, here in values.items() if found.low < x < found.high)
    for end, away in ((found.low, -1e-9), (found.high, 1e-9)):  # just outside either end it is worse
        assert end in (0.0, 1.0) or behind(measure, best, at(end + away)) >= least


def test_the_range_hardly_ever_misses_the_best_weight_of_all_queries() -> None:
    """Two lists that see alike: for all queries that there could be, equal weights are best."""
    missed = 0
    for seed in range(60):
        lists, judged = collection(200 + seed, queries=25, documents=25, good=(1.0, 1.0))
        model = Fusion("plain", list(lists), normalise="zscore")
        curve = share_curve(model, fusion_rows(lists, judged), MEASURE, 1)
        assert curve is not None
        found = as_good_range(curve)
        missed += not found.low <= 0.5 <= found.high
    assert missed <= 5


def test_lists_that_say_the_same_leave_the_weight_open() -> None:
    lists, judged = collection(4, queries=10)
    twice = {"one": lists["list0"], "two": {q: {d: 2 * s for d, s in own.items()} for q, own in lists["list0"].items()}}
    rows = fusion_rows(twice, judged)
    curve = share_curve(Fusion("plain", list(twice), normalise="minmax"), rows, MEASURE, 1)
    assert curve is not None
    assert as_good_range(curve)[:2] == (0.0, 1.0)


def test_a_curve_over_one_share_of_three_keeps_the_proportion_of_the_others() -> None:
    lists, judged = collection(5, queries=10, good=(1.0, 1.0, 1.0))
    rows = fusion_rows(lists, judged)
    model = Fusion("plain", list(lists), normalise="minmax").at([0.2, 0.5, 0.3])
    curve = share_curve(model, rows, MEASURE, 1)
    assert curve is not None
    for x in (0.03, 0.41, 0.9):
        moved = model.at([(1 - x) * 0.4, x, (1 - x) * 0.6])
        assert curve.at(x) == pytest.approx(MEASURE.value(moved.score(rows), rows), abs=1e-12)
    alone = share_curve(model.at([0, 1, 0]), rows, MEASURE, 1)
    assert alone is not None
    assert alone.at(0.3) == pytest.approx(MEASURE.value(model.at([0.35, 0.3, 0.35]).score(rows), rows), abs=1e-12)


def test_the_share_of_either_of_two_lists() -> None:
    lists, judged = collection(3, queries=12)
    rows, model = fusion_rows(lists, judged), Fusion("weaviate", list(lists))
    first, second = (share_curve(model, rows, MEASURE, place) for place in (0, 1))
    assert first is not None
    assert second is not None
    for x in (0.11, 0.62):
        assert first.at(x) == pytest.approx(second.at(1 - x), abs=1e-12)
