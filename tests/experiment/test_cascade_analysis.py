"""The paper's tables and figures of a cascade, each against a count by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fliprank as fr
from fliprank.data.subsample import subsample
from fliprank.experiment.cascade_analysis import (
    after_stages,
    epoch_curves,
    good_at_ranks,
    label_moves,
    opposed_query,
    reshuffled,
    top_labels,
)
from fliprank.experiment.significance import bootstrap_interval, randomisation
from fliprank.experiment.telescope import telescope
from fliprank.models.cascade import Cascade

NDCG = "nDCG(dcg='exp-log2')@10"


def rows(seed: int, queries: int = 25, size: int = 30) -> fr.Candidates:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(size * queries, 3))
    labels = np.clip(np.round(x @ [1.0, 0.7, 0.3] + 0.5 * rng.normal(size=len(x))), 0, 4)
    labels[rng.random(len(x)) < 0.4] = np.nan
    qid, ids = np.repeat(np.arange(queries) + 1000 * seed, size), [f"d{i}" for i in range(len(x))]
    return fr.Candidates.of(labels, qid=qid, docids=ids, features=x)


def nested(train: fr.Candidates) -> Cascade:
    weights = ([0, 1, 0, 0], [0, 1, 0.7, 0], [0, 1, 0.7, 0.3])
    return Cascade([fr.Linear().prepared(train, 0).at(w) for w in weights], [30, 12, 6])


def ranked(scores: np.ndarray, candidates: fr.Candidates, q: int) -> list[int]:
    """The rows of a query, best first."""
    return sorted(range(candidates.offsets[q], candidates.offsets[q + 1]), key=lambda row: -scores[row])


def test_a_line_for_each_stage_with_what_it_gains_and_loses() -> None:
    test = rows(1)
    cascade, measure = nested(test), fr.parse_measure(NDCG)
    table = after_stages(cascade, test, rel=2)
    values = [measure.per_query(cascade.through(s).score(test), test) for s in (1, 2, 3)]
    for s, row in enumerate(table):
        assert (row.stage, row.size) == (s + 1, cascade.sizes[s])
        assert row.value == pytest.approx(values[s].mean())
        assert row.interval[0] < row.value < row.interval[1]
        assert row.gain == pytest.approx((values[s] - values[0]).mean())
        assert row.step == pytest.approx((values[s] - values[max(s - 1, 0)]).mean())
    assert table[2].p == randomisation(values[2] - values[0])
    assert table[2].step_p == randomisation(values[2] - values[1])
    assert table[2].gain > 0 > table[2].p - 0.05
    relevant = {row for row in range(len(test)) if test.labels[row] >= 2}
    for s in (1, 2):
        scores = cascade.through(s).score(test)
        reach = {row for q in range(test.queries) for row in ranked(scores, test, q)[: cascade.sizes[s]]}
        assert table[s].lost == pytest.approx(len(relevant - reach) / len(relevant))


def test_a_geometric_mean_is_on_its_own_scale_and_its_differences_are_of_logarithms() -> None:
    test = rows(1)
    cascade, measure = nested(test), fr.parse_measure("GMAP")
    table = after_stages(cascade, test, "GMAP")
    logs = [np.log(measure.per_query(cascade.through(s).score(test), test)) for s in (1, 2, 3)]
    for s, row in enumerate(table):
        assert row.value == pytest.approx(np.exp(logs[s].mean()))
        assert row.interval == pytest.approx(np.exp(bootstrap_interval(logs[s])))
        assert row.interval[0] < row.value < row.interval[1]
        assert row.gain == pytest.approx((logs[s] - logs[0]).mean())
        assert row.step == pytest.approx((logs[s] - logs[max(s - 1, 0)]).mean())
        np.testing.assert_allclose(row.values, np.exp(logs[s]))
    assert table[2].step_p == randomisation(logs[2] - logs[1])


def test_labels_at_the_top_are_counted() -> None:
    test = rows(2)
    cascade = nested(test)
    found = top_labels(cascade, test, k=5)
    assert found.labels[:-1].tolist() == [0, 1, 2, 3, 4]
    assert np.isnan(found.labels[-1])
    for s, scores in enumerate(cascade.by_stage(test)):
        top = [test.labels[row] for q in range(test.queries) for row in ranked(scores, test, q)[:5]]
        for i, level in enumerate([0, 1, 2, 3, 4]):
            assert found.counts[s, i] == pytest.approx(top.count(level) / test.queries)
        assert found.counts[s, 5] == pytest.approx(np.isnan(top).sum() / test.queries)
    assert found.counts.sum(axis=1) == pytest.approx([5, 5, 5])
    assert found.differences.sum(axis=1) == pytest.approx([0, 0])


def test_good_documents_are_counted_at_each_rank() -> None:
    test = rows(3)
    cascade = nested(test)
    found = good_at_ranks(cascade, test, k=4, good=2)
    for s, scores in enumerate(cascade.by_stage(test)):
        for r in range(4):
            good = [test.labels[ranked(scores, test, q)[r]] >= 2 for q in range(test.queries)]
            assert found[s, r] == pytest.approx(np.mean(good))


def test_curves_are_the_measures_after_each_epoch() -> None:
    train, valid = subsample(rows(4), 0), subsample(rows(5), 0)
    measures = [NDCG, "CorrectPairs", "AP"]
    curves = epoch_curves(fr.Linear(), train, valid, measures, epochs=6, keep=(0, 3, 6))
    assert curves.measures == (NDCG, "CorrectPairs", "AP")
    assert curves.values.shape == (7, 3)
    for epoch, scores in curves.scores.items():
        told = [fr.parse_measure(m).per_query(scores, valid).mean() for m in measures]
        assert curves.values[epoch] == pytest.approx(told)
    plain = fr.train(
        fr.Linear(), train, valid, objective="ranknet", measure="AP", epochs=6, restarts=1, sweep=False, patience=None
    )
    assert curves.values[:, 2] == pytest.approx([epoch.valid for epoch in plain.trail])
    assert curves.correlation == pytest.approx(np.corrcoef(curves.values[1:, 0], curves.values[1:, 1])[0, 1])


def test_labels_move_over_ranks_in_the_query_where_pairs_and_measure_disagree_most() -> None:
    # Query b: a document with label 1 climbs past seven with label 0, at the price of one swap at the top.
    labels = [2, 1, 0] + [4, 3] + [0] * 8 + [1]
    test = fr.Candidates.of(labels, qid=["a"] * 3 + ["b"] * 11)
    before = np.array([3.0, 2, 1, 20, 19, *range(18, 10, -1), 1])
    after = before.copy()
    after[3:5] = before[[4, 3]]
    after[-1] = 17.5
    query = opposed_query(before, after, test)
    assert query == 1
    moves = label_moves(before, after, test, query)
    assert (moves.query, moves.labels.tolist()) == ("b", labels[3:])
    assert moves.before.tolist() == list(range(1, 12))
    assert moves.after.tolist() == [2, 1, 3, 5, 6, 7, 8, 9, 10, 11, 4]


def test_reshufflings_differ_and_agree_roughly() -> None:
    cascade = Cascade([fr.Linear(), fr.Linear()], [30, 10])
    options = {"objective": "ranknet", "epochs": 3, "restarts": 1, "sweep": False, "sample": 1}
    found = reshuffled(cascade, rows(6), rows(7), rows(8), runs=3, **options)
    assert found.values.shape == (3, 2)
    assert len(np.unique(found.values[:, 1])) == 3
    assert found.means == pytest.approx(found.values.mean(axis=0))
    assert found.deviations == pytest.approx(found.values.std(axis=0, ddof=1))
    assert found.deviations.max() < 0.1
    with pytest.raises(fr.UsageError, match="at least 2"):
        reshuffled(cascade, rows(6), rows(7), rows(8), runs=1)


def test_a_stage_that_a_reshuffling_leaves_out_has_the_value_of_the_stage_before() -> None:
    train, valid, test = rows(6), rows(7), rows(8)
    bad = fr.Linear().prepared(train, 0).at([0, -1, -1, 0])
    cascade = Cascade([fr.Linear(), bad, fr.Network(1), bad], [30, 20, 12, 8])
    options = {"objective": "ranknet", "epochs": 3, "restarts": 1, "sweep": False, "sample": 1, "only_better": True}
    options |= {"options": [{}, None, {}, None]}
    found = reshuffled(cascade, train, valid, test, runs=2, measure="AP", **options)
    assert found.values.shape == (2, 4)
    assert not np.isnan(found.values).any()
    for run in range(2):
        shuffled = train.select(np.random.default_rng([0, run]).permutation(train.queries))
        fit = telescope(cascade, shuffled, valid, method="adam", measure="AP", seed=10_000 * run, **options)
        value, expected = 0.0, []
        by_size = dict(zip(fit.model.sizes, fit.model.by_stage(test), strict=True))
        for size in cascade.sizes:
            value = fr.parse_measure("AP").per_query(by_size[size], test).mean() if size in by_size else value
            expected.append(value)
        assert len(by_size) < 4
        assert found.values[run] == pytest.approx(expected)


@pytest.mark.parametrize(
    "options", [{"method": "lbfgs"}, {"method": "exact"}, {"options": [{}, {"method": "lbfgs"}]}, {"method": "auto"}]
)
def test_a_method_that_does_not_see_the_order_can_not_be_reshuffled(options: dict[str, Any]) -> None:
    cascade = Cascade([fr.Linear(), fr.Linear()], [30, 10])
    with pytest.raises(fr.UsageError, match=r"does not see the order of queries; take .*adam, .*taylor2006"):
        reshuffled(cascade, rows(6), rows(7), rows(8), runs=2, objective="ranknet", **options)


@pytest.mark.parametrize(("method", "matters"), [("adam", True), ("taylor2006", True), ("lbfgs", False)])
def test_methods_say_rightly_whether_order_matters(method: str, matters: bool) -> None:
    train = subsample(rows(6, 5, 8), 0)
    turned = train.select(np.arange(train.queries)[::-1])
    model = fr.Linear().prepared(train, 0)
    options = {"objective": "ranknet", "method": method, "epochs": 2, "sweep": False}
    one, two = (fr.train(model, each, **options).model.params.values for each in (train, turned))
    assert np.allclose(one, two, rtol=1e-9, atol=1e-12) is not matters


def test_curves_of_a_model_with_too_many_parameters_are_refused() -> None:
    train, valid = subsample(rows(4), 0), subsample(rows(5), 0)
    with pytest.raises(fr.UsageError, match="the parameters of each epoch, which are not kept of a model with 1,251"):
        epoch_curves(fr.Network(250), train, valid, epochs=1)
