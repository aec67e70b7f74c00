"""The table of flips around a model, against the measure of models moved past them."""

from __future__ import annotations

import numpy as np
import pytest

from fliprank.data.candidates import Candidates
from fliprank.landscape import flip_gains, trajectory
from fliprank.measures import parse_measure
from fliprank.models import Linear, Network, Parameters


def rows_of(seed: int) -> Candidates:
    rng = np.random.default_rng(seed)
    names = [f"d{i}" for i in rng.permutation(60)]
    return Candidates.of(rng.integers(0, 3, 60), group=[25, 15, 20], features=rng.normal(size=(60, 3)), docids=names)


@pytest.mark.parametrize("name", ["AP", "nDCG@5", "ESL"])
def test_moving_past_a_flip_gains_what_the_table_says(name: str) -> None:
    rows, measure = rows_of(1), parse_measure(name)
    model = Linear().prepared(rows, 4)
    sign = -1 if measure.smaller_is_better else 1
    now = measure.aggregate(measure.per_query(model.score(rows), rows))
    table = flip_gains(model, rows, measure=name, nearest=6)
    assert len(table) == 6 * 2 * 3 or name == "ESL"  # the bias moves nothing, and ESL little
    assert len(table) > 10
    assert [row.total for row in table] == sorted((row.total for row in table), reverse=True)
    docs = rows.docids.tolist()  # type: ignore[union-attr]
    for row in table:
        assert row.start == model.params[row.parameter]
        side = np.sign(row.value - row.start)
        just = row.value + side * 1e-10
        there = model.at(model.params.replace({row.parameter: just}))
        before = model.at(model.params.replace({row.parameter: row.value - side * 1e-10}))
        assert row.total == pytest.approx(
            sign * (measure.aggregate(measure.per_query(there.score(rows), rows)) - now), abs=1e-12
        )
        change = measure.per_query(there.score(rows), rows) - measure.per_query(before.score(rows), rows)
        q = rows.qids.tolist().index(row.qid)
        assert row.gain == pytest.approx(sign * change[q], abs=1e-12)
        assert row.mean_gain == pytest.approx(sign * change[q] / 3, abs=1e-12)
        assert there.score(rows)[docs.index(row.up)] > there.score(rows)[docs.index(row.down)]
        assert row.kind == ("good" if row.gain > 0 else "bad")
        assert (row.up_label > row.down_label) == (row.kind == "good")


def test_the_nearest_flips_are_the_nearest_steps_on_either_side() -> None:
    rows = rows_of(2)
    model = Linear().prepared(rows, 4)
    steps = np.sort(trajectory(model, rows, "w.1", "nDCG").steps.x)
    found = np.array(sorted(row.value - row.start for row in flip_gains(model, rows, ["w.1"], "nDCG", nearest=3)))
    expected = np.concatenate([steps[steps < 0][-3:], steps[steps > 0][:3]])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_directions_of_several_parameters_and_nets_have_flips_too() -> None:
    rows = rows_of(3)
    both = flip_gains(Linear().prepared(rows, 4), rows, [{"w.1": 1, "w.2": -1}], "AP", nearest=2)
    assert [row.parameter for row in both] == ["direction"] * 4
    net = Network(hidden=2).prepared(rows, 0)
    found = flip_gains(net, rows, ["w32.1"], "AP", nearest=2)
    assert len(found) == 4
    assert {np.sign(row.value - row.start) for row in found} == {-1, 1}


def test_a_parameter_without_room_to_move_is_passed_over() -> None:
    rows = rows_of(1)
    model = Linear().prepared(rows, 4)
    values = model.params.values
    held = np.array([np.inf, values[1], np.inf, np.inf])
    bounded = model.at(Parameters(model.params.names, values, -held * [1, -1, 1, 1], held, values))
    assert {row.parameter for row in flip_gains(bounded, rows, measure="AP", nearest=2)} == {"w.2", "w.3"}
