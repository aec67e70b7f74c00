"""Theorem 1: true where its conditions hold, and a counter-example is found where they fail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.landscape import score_trajectory
from fliprank.landscape.theorem import compare_optima, share_optima
from fliprank.measures import parse_measure
from fliprank.models import Linear

GRADED = [  # strictly increasing gains of the same labels, no cut-off: every flip of different labels counts
    "nDCG",
    "nDCG(dcg='exp-log2')",
    "DCG",
    "nDCG(gains={1:1,2:1.5,3:9})",
]


def prepared(seed: int, levels: int, sizes: tuple[int, ...] = (18, 12, 15)) -> tuple[Linear, Candidates]:
    rng = np.random.default_rng(seed)
    count = sum(sizes)
    labels = rng.integers(0, levels, count)
    rows = Candidates.of(labels, group=list(sizes), features=rng.normal(size=(count, 4)))
    return Linear().prepared(rows, seed), rows


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_gains_that_rise_with_labels_share_all_optima(seed: int) -> None:
    model, rows = prepared(seed, levels=4)
    found = share_optima(model, rows, 3, GRADED, seed=seed)
    assert found.one_at_a_time
    assert found.same_flips
    assert found.share
    assert found.optima > 4 * 3 * 2
    assert found.theorem_holds


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_binary_labels_make_average_precision_and_gain_measures_agree(seed: int) -> None:
    model, rows = prepared(seed, levels=2)
    found = share_optima(model, rows, None, ["AP", "nDCG", "GMAP", "CorrectPairs"], seed=seed)
    assert found.same_flips
    assert found.share
    assert found.lines == 5


@pytest.mark.parametrize(
    ("measures", "levels"), [(["nDCG", "nDCG@5"], 2), (["AP", "RR"], 2), (["AP", "nDCG"], 3), (["P@3", "P@5"], 2)]
)
def test_measures_that_ignore_some_flips_have_optima_of_their_own(measures: list[str], levels: int) -> None:
    model, rows = prepared(7, levels)
    found = share_optima(model, rows, None, measures)
    assert not found.same_flips
    assert not found.share
    assert found.theorem_holds
    assert "not shared" in str(found)
    for difference in found.differences:
        assert "only" in difference.why
        assert difference.low <= difference.x <= difference.high
        # What is said of the flip is so: one measure changes at x, the other does not.
        along = np.eye(5)[difference.line]
        changed = {}
        for name in (difference.measure, difference.other):
            values = []
            for x in (difference.x - 1e-9, difference.x + 1e-9):
                there = model.at(model.params.with_free(model.params.free_values + x * along))
                values.append(parse_measure(name).per_query(there.score(rows), rows))
            changed[name] = np.abs(values[1] - values[0]).max() > 1e-12
        assert sorted(changed.values()) == [False, True]


def test_the_same_cut_off_is_no_obstacle() -> None:
    model, rows = prepared(8, levels=3)
    assert share_optima(model, rows, None, ["nDCG@5", "nDCG(dcg='exp-log2')@5"]).share


def test_flips_that_coincide_are_where_the_theorem_ends() -> None:
    """At 0 a good flip of labels 2 and 0 meets a bad one of 1 and 0: nDCG weighs them alike, DCG does not."""
    rows = Candidates.of([0, 2, 0, 1], group=[2, 2])
    paths = [score_trajectory([0, 0, 0, 0], [0, 1, 2, 0], rows, name) for name in ("nDCG", "DCG(gains={1:1,2:3})")]
    found = compare_optima(paths)
    assert found.same_flips
    assert not found.one_at_a_time
    assert not found.share
    assert found.theorem_holds
    assert found.differences[0].why.startswith("several flips")
    assert not replace(found, one_at_a_time=True).theorem_holds


def test_one_measure_or_no_direction_is_refused() -> None:
    model, rows = prepared(1, 2)
    with pytest.raises(UsageError, match="two measures"):
        share_optima(model, rows, None, ["AP"])
    with pytest.raises(UsageError, match="no direction"):
        share_optima(model, rows, [], ["AP", "nDCG"])
