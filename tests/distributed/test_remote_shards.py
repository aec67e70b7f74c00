"""Rows on workers: any split, any order of answers, and the same result as in one process."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from clusters_here import Doomed, Shuffled, fitted, kill, model_for, remote, some_rows, split
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fliprank.data.candidates import Candidates
from fliprank.distributed.cluster import Cluster
from fliprank.distributed.rows import ClusterRows
from fliprank.errors import InputError, UsageError
from fliprank.experiment.trials import problem_of
from fliprank.measures import REGISTRY as MEASURES
from fliprank.measures import parse_measure
from fliprank.models import FeatureSubset, Linear
from fliprank.objectives import REGISTRY, RankNet, parse_objective
from fliprank.optimize.methods import make_method
from fliprank.optimize.problem import Problem

ROWS = some_rows()
SPLITS = ([], [20], [1, 2, 39], [7, 13, 21, 30])


@pytest.mark.parametrize("cuts", SPLITS)
@pytest.mark.parametrize(("method", "objective"), [("lbfgs", "ranknet"), ("adam", "lambdarank"), ("exact", None)])
def test_a_fit_on_workers_is_that_of_the_same_shards_here_bit_for_bit(
    client: Any, cuts: list[int], method: str, objective: str | None
) -> None:
    parts, model = split(ROWS, cuts), model_for(ROWS)
    far = fitted(method, objective, remote(Shuffled(client), parts), model, epochs=3)
    here = fitted(method, objective, parts, model, epochs=3)
    assert far[0] == here[0]
    np.testing.assert_array_equal(far[1].params.values, here[1].params.values)
    whole = fitted(method, objective, ROWS, model, epochs=3)
    np.testing.assert_allclose(far[1].params.values, whole[1].params.values, rtol=1e-7, atol=1e-9)
    if method == "exact":  # no sums of floats over rows: no rounding either
        np.testing.assert_array_equal(far[1].params.values, whole[1].params.values)


@pytest.mark.parametrize("name", [*sorted(REGISTRY.keys() - {"softp", "softrecall"}), "softp@5", "softrecall@5"])
def test_every_objective_has_the_value_and_gradient_of_one_process(client: Any, name: str) -> None:
    objective, model, parts = parse_objective(name), model_for(ROWS, hidden=3), split(ROWS, [11, 25])
    method = make_method("lbfgs", objective)
    far, here, whole = (
        problem_of(model, rows, parse_measure("AP"), objective, method)
        for rows in (remote(Cluster(client), parts), parts, ROWS)
    )
    at = model.params.free_values
    for spread in (False, True):
        (value, gradient), (own, slope), (one, all_) = (
            Problem.of(model, rows, "AP", objective, spread=spread).value_and_grad(at)
            for rows in (remote(Cluster(client), parts), parts, ROWS)
        )
        assert value == own
        np.testing.assert_array_equal(gradient, slope)
        assert value == pytest.approx(one, rel=1e-10)
        np.testing.assert_allclose(gradient, all_, rtol=1e-8, atol=1e-10)
    some = np.array([0, 3, 12, 26, 39])
    assert far.value_and_grad(at, some)[0] == here.value_and_grad(at, some)[0]
    assert far.per_query(at).tolist() == whole.per_query(at).tolist()


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_split_and_any_order_of_answers_give_the_result_of_one_process(client: Any, data: st.DataObject) -> None:
    rows = some_rows(data.draw(st.integers(3, 30)), seed=data.draw(st.integers(0, 99)))
    parts = split(rows, data.draw(st.lists(st.integers(1, rows.queries - 1), max_size=6)))
    objective = parse_objective(data.draw(st.sampled_from(["ranknet", "lambdarank", "softndcg(sigma=0.5)", "mse"])))
    measure = parse_measure(data.draw(st.sampled_from(["nDCG@5", "AP", "RR", "CorrectPairs"])))
    model, spread = model_for(rows, data.draw(st.sampled_from([0, 3]))), data.draw(st.booleans())
    far, here, whole = (
        Problem.of(model, each, measure, objective, spread=spread)
        for each in (remote(Shuffled(client), parts), parts, rows)
    )
    at = model.initialised(data.draw(st.integers(0, 9))).params.free_values
    (value, gradient), (own, slope), (one, all_) = (each.value_and_grad(at) for each in (far, here, whole))
    assert value == own
    np.testing.assert_array_equal(gradient, slope)
    assert value == pytest.approx(one, rel=1e-10, abs=1e-12)
    np.testing.assert_allclose(gradient, all_, rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(far.per_query(at), whole.per_query(at))
    along = np.eye(len(at))[data.draw(st.integers(0, len(at) - 1))]
    found, known = (each.trajectory(each.place(at), along, resolution=1e-2, flat=True) for each in (far, whole))
    assert (found is None) == (known is None)
    if found is not None and known is not None:
        np.testing.assert_array_equal(found.breaks, known.breaks)
        np.testing.assert_array_equal(found.values, known.values)


@pytest.mark.parametrize("kind", list(dict.fromkeys(MEASURES.values())), ids=lambda kind: kind.__name__)
def test_every_measure_and_its_trajectory_are_those_of_one_process(client: Any, kind: Any) -> None:
    try:
        measure = kind()
    except UsageError:  # needs a cut-off
        measure = kind(cutoff=5)
    model = model_for(ROWS)
    far, whole = (Problem.of(model, rows, measure) for rows in (remote(Cluster(client), split(ROWS, [9, 30])), ROWS))
    at, along = model.initialised(1).params.free_values, np.eye(6)[2]
    np.testing.assert_array_equal(far.per_query(at), whole.per_query(at))
    moved = [each.moved(each.moved(each.place(at), along, 0.3), along, -0.7).measure for each in (far, whole)]
    np.testing.assert_array_equal(*moved)
    try:
        other = whole.trajectory(whole.place(at), along, resolution=1e-3)
    except UsageError:  # a measure that does not change with ranks
        with pytest.raises(UsageError, match="it has no steps along a line"):
            far.trajectory(far.place(at), along, resolution=1e-3)
        return
    one = far.trajectory(far.place(at), along, resolution=1e-3)
    assert one is not None
    assert other is not None
    np.testing.assert_array_equal(one.breaks, other.breaks)
    np.testing.assert_array_equal(one.values, other.values)


def test_two_models_on_the_same_rows_have_their_own_slopes(client: Any) -> None:
    rows = remote(Cluster(client), split(ROWS, [20]))
    for names in (["1", "2"], ["3", "4"], ["1", "2"]):
        model = FeatureSubset(Linear(), names).prepared(ROWS, 0)
        far, here = (fitted("exact", None, each, model, directions="axes", epochs=1) for each in (rows, ROWS))
        np.testing.assert_array_equal(far[1].params.values, here[1].params.values)


def test_rows_that_belong_to_an_objective_go_to_their_shards(client: Any) -> None:
    rows = Candidates.of([1, 0, 1, 0, 2, 0], group=[2, 2, 2], features=np.arange(12.0).reshape(6, 2) ** 1.5)
    objective, model = RankNet(pairs=np.array([[0, 1], [4, 5]])), model_for(rows)
    far, here = (
        Problem.of(model, each, "AP", objective).value_and_grad(np.array([0.1, 0.5, -0.2]))
        for each in (remote(Cluster(client), split(rows, [1, 2])), rows)
    )
    assert far[0] == pytest.approx(here[0], rel=1e-12)
    np.testing.assert_allclose(far[1], here[1], rtol=1e-12)


def test_a_worker_that_is_killed_changes_nothing(doomed: Any) -> None:
    parts, model = split(ROWS, [10, 20, 30]), model_for(ROWS)
    here = fitted("exact", None, parts, model, epochs=2)
    cluster = Doomed(doomed, after=60)
    far = fitted("exact", None, remote(cluster, parts), model, epochs=2)
    assert any("is gone" in text for text in cluster.told)
    assert far[0] == here[0]
    np.testing.assert_array_equal(far[1].params.values, here[1].params.values)


def test_scores_that_a_dead_worker_kept_are_made_anew_by_their_recipes(doomed: Any) -> None:
    cluster, model = Cluster(doomed, say=lambda text: None), model_for(ROWS)
    far = Problem.of(model, remote(cluster, split(ROWS, [20])), "nDCG@10")
    here = Problem.of(model, split(ROWS, [20]), "nDCG@10")
    at = model.initialised(2).params.free_values
    places = [each.place(at) for each in (far, here)]
    for step in range(5):
        along = np.eye(6)[1 + step]
        places = [each.moved(place, along, 0.1) for each, place in zip((far, here), places, strict=True)]
    kill(doomed, next(iter(cluster.workers())))
    one, other = (
        each.trajectory(place, np.eye(6)[1], resolution=1e-3) for each, place in zip((far, here), places, strict=True)
    )
    assert one is not None
    assert other is not None
    np.testing.assert_array_equal(one.breaks, other.breaks)


def test_workers_drop_what_nobody_holds_any_more(client: Any) -> None:
    from fliprank.distributed import worker

    cluster, model = Cluster(client), model_for(ROWS)
    problem = Problem.of(model, remote(cluster, split(ROWS, [20])), "nDCG@10")
    for number in range(20):
        problem.measure_at(model.initialised(number).params.free_values)
    kept = client.run(_kept, cluster.session)
    assert worker.session_of is not None
    assert 0 < sum(kept.values()) <= 4


def _kept(session: str) -> int:
    from fliprank.distributed.worker import session_of

    return len(session_of(session).kept)


def test_shards_that_do_not_fit_together_are_an_error(client: Any) -> None:
    cluster, (one, two) = Cluster(client), split(ROWS, [20])
    other = Candidates.of(two.labels, qid=np.repeat(two.qids.tolist(), two.sizes), features=np.ones((len(two), 2)))
    with pytest.raises(InputError, match=r"different features.* have 5 and 2"):
        remote(cluster, [one, other])
    with pytest.raises(InputError, match=r"query 3: the query is in two shards, shard 1 and shard 2"):
        remote(cluster, [one, ROWS.select(np.arange(3, 5))])
    with pytest.raises(InputError, match=r"none\.txt.*a worker must see the file"):
        ClusterRows(cluster, [{"file": "/nowhere/none.txt", "queries": None}])


def test_functions_of_the_user_are_not_sent(client: Any) -> None:
    cluster, model = Cluster(client), model_for(ROWS)
    objective = RankNet(target=lambda high, low: np.ones(len(high)))
    with pytest.raises(UsageError, match="workers are sent data, not code"):
        Problem.of(model, remote(cluster, [ROWS]), "AP", objective).value(model.params.free_values)
    rows = remote(cluster, [ROWS])
    with pytest.raises(InputError, match="no function of this fliprank"):
        list(rows.each(_kept))
