"""Along the trail of a fit: the measure at each epoch, and the flips in between, against the models themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_model_trajectory import feature_rows, term_rows

from fliprank.errors import InputError, UsageError
from fliprank.landscape import along_trail, between, read_trail
from fliprank.measures import parse_measure
from fliprank.models import BM25F, Linear, Network
from fliprank.models.base import Model

HEAD = "number,objective,train,valid,valid_objective,rate"


@pytest.mark.parametrize("name", ["AP", "nDCG@5", "ESL"])
@pytest.mark.parametrize("kind", ["linear", "bm25f"])
def test_flips_on_the_way_add_up_to_what_each_epoch_changed(kind: str, name: str) -> None:
    rows = term_rows(4) if kind == "bm25f" else feature_rows(3)
    model: Model = (BM25F() if kind == "bm25f" else Linear()).prepared(rows, 0)
    values = np.random.default_rng(1).uniform(0.01, 0.99, (5, len(model.params.free_names)))
    measure = parse_measure(name)
    legs = along_trail(model, values, rows, name)
    assert [leg.number for leg in legs] == [1, 2, 3, 4]
    assert sum(len(leg.flips) for leg in legs) > 5 or name == "ESL"
    for leg, one, two in zip(legs, values[:-1], values[1:], strict=True):
        for told, point in ((leg.before, one), (leg.after, two)):
            there = model.at(model.params.with_free(point))
            assert told == measure.value(there.score(rows), rows)
        gains = sum(flip.mean_gain for flip in leg.flips)
        assert leg.after - leg.before == pytest.approx(measure.sign * gains, abs=1e-12)
        assert leg.tied == pytest.approx(0, abs=1e-12)
        assert leg.good == sum(flip.gain > 0 for flip in leg.flips)
        assert leg.good + leg.bad == len(leg.flips)
        assert all(0 < flip.x < 1 for flip in leg.flips)


def test_what_ties_add_is_told_apart_from_flips() -> None:
    """From weights of 0 all scores tie: the first step breaks ties and makes no flip."""
    rows = feature_rows(3)
    model = Linear().prepared(rows, 0)
    leg = along_trail(model, [[0, 0, 0, 0], [0, 1, 0, 0]], rows, "AP")[0]
    assert len(leg.flips) == 0
    assert leg.tied == pytest.approx(leg.after - leg.before)
    assert leg.tied != 0


def test_the_line_between_two_models_ends_at_both() -> None:
    rows, measure = feature_rows(4), parse_measure("AP")
    net = Network(hidden=2).prepared(rows, 0)
    other = net.initialised(1)
    path = between(net, other, rows, "AP")
    assert (path.low, path.high) == (0, 1)
    assert path.value == measure.value(net.score(rows), rows)
    assert path.at(1.0) == pytest.approx(measure.value(other.score(rows), rows))
    np.testing.assert_allclose(path.model_at(1.0).params.values, other.params.values, rtol=1e-12)
    assert path.true_ends == (False, False)  # the line could go on: what rises towards an end is cut off
    assert between(net, other, rows, "AP", -1, 2).high == 2
    with pytest.raises(UsageError, match="one structure"):
        between(net, Network(hidden=3).prepared(rows, 0), rows)
    with pytest.raises(UsageError, match="no line between"):
        between(net, net, rows)
    fixed = net.at(net.params.fix("b3.1" if "b3.1" in net.params.names else net.params.names[-1]))
    with pytest.raises(UsageError, match="can't move on its own"):
        between(fixed, fixed.at(fixed.params.values + 1.0), rows)


def test_a_trail_is_read_by_names(tmp_path: Path) -> None:
    model = Linear().prepared(feature_rows(1), 0)
    file = tmp_path / "trail.csv"
    file.write_text(f"{HEAD},w.1,w.2,w.3,bias\n0,1,2,nan,nan,nan,1,2,3,4\n5,1,2,nan,nan,nan,5,6,7,8\n")
    for path in (tmp_path, file):
        trail = read_trail(path, model.params)
        assert trail.number.tolist() == [0, 5]
        assert trail.values.tolist() == [[4, 1, 2, 3], [8, 5, 6, 7]]
    assert [leg.number for leg in along_trail(model, trail, feature_rows(1), "AP")] == [5]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "a trail has the columns"),
        ("number,objective\n", "a trail has the columns"),
        (f"{HEAD}\n", "holds no parameters"),
        (f"{HEAD},w.1,w.2,w.9,bias\n", r"not the model's free parameters: w\.3, w\.9"),
        (f"{HEAD},w.1,w.2,w.3,w.3,bias\n", "one comes twice"),
        (f"{HEAD},w.1,w.2,w.3,bias\n0,1,2,3,4,5,1,2,3\n", "line 2: expected a whole number"),
        (f"{HEAD},w.1,w.2,w.3,bias\nx,1,2,3,4,5,1,2,3,4\n", "line 2: expected a whole number"),
        (f"{HEAD},w.1,w.2,w.3,bias\n0,1,2,3,4,5,1,2,3,nan\n", "line 2: a parameter is not a finite"),
    ],
)
def test_a_trail_that_is_none_is_refused_by_name_and_line(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "trail.csv").write_text(text)
    with pytest.raises(InputError, match=words):
        read_trail(tmp_path, Linear().prepared(feature_rows(1), 0).params)


def test_values_that_are_no_trail_are_refused(tmp_path: Path) -> None:
    rows = feature_rows(1)
    model = Linear().prepared(rows, 0)
    with pytest.raises(UsageError, match="4 free parameters each"):
        along_trail(model, [[1.0, 2.0]], rows)
    with pytest.raises(UsageError, match="epoch 1 has a parameter"):
        along_trail(model, [[1.0, 2, 3, 4], [1, np.inf, 3, 4]], rows)
    with pytest.raises(InputError, match=r"trail\.csv.*no trail"):
        read_trail(tmp_path, model.params)
