"""Ties, every way there is: against all orders of the tied documents, one by one."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.experiment.evaluation import evaluate
from fliprank.measures import parse_measure
from fliprank.measures.ties import TIES

MEASURES = [
    "P@2", "P(judged_only=True)@2", "R@3", "AP", "AP@3", "AP(rel=2)", "AP(judged_only=True)", "Rprec", "RR", "RR@2",
    "RR(judged_only=True)", "Success@2", "DCG@3", "nDCG", "nDCG(dcg='exp-log2')@3", "nDCG(judged_only=True)",
    "nDCG(gains={1:5,2:1})", "nDCG(base=2)", "nDCG(discount=-0.5)@4", "nDCG(discount=(1,0.5,0.25))", "Bpref",
    "Bpref(rel=2)", "ERR", "ERR(max=2)@2", "RBP(p=0.7)", "RBP(rel=1)@3", "Judged@2", "CorrectPairs", "ESL", "ESL(n=2)",
]  # fmt: skip


def all_orders(scores: np.ndarray) -> list[tuple[int, ...]]:
    """Every ranking of the rows that does not contradict the scores."""
    tied = [np.flatnonzero(scores == level).tolist() for level in sorted(set(scores.tolist()), reverse=True)]
    return [sum(parts, ()) for parts in product(*(list(permutations(group)) for group in tied))]


@st.composite
def tied_rows(draw: st.DrawFn) -> tuple[np.ndarray, Candidates]:
    """One query of up to six rows with few different scores, unjudged rows, and judged documents not among the rows."""
    size = draw(st.integers(1, 6))
    scores = np.array(draw(st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=size, max_size=size)))
    labels = draw(st.lists(st.sampled_from([0.0, 0.0, 1.0, 2.0, np.nan]), min_size=size, max_size=size))
    missed = np.array(draw(st.lists(st.sampled_from([0.0, 1.0, 2.0]), max_size=2)))
    plain = Candidates.of(labels)
    offsets = np.array([0, len(missed)])
    rows = Candidates(plain.offsets, plain.labels, plain.qids, missed_offsets=offsets, missed_labels=missed)
    return scores, rows


@pytest.mark.parametrize("name", MEASURES)
@settings(max_examples=25, deadline=None)
@given(case=tied_rows())
def test_ties_are_the_mean_the_least_and_the_most_over_all_orders(
    name: str, case: tuple[np.ndarray, Candidates]
) -> None:
    scores, rows = case
    measure, values = parse_measure(name), []
    for order in all_orders(scores):
        strict = np.empty(len(scores))
        strict[list(order)] = -np.arange(len(scores))
        values.append(measure.per_query(strict, rows)[0])
    worst, best = (max(values), min(values)) if measure.smaller_is_better else (min(values), max(values))
    for ties, expected in (("average", np.mean(values)), ("pessimistic", worst), ("optimistic", best)):
        assert measure.per_query(scores, rows, ties=ties)[0] == pytest.approx(expected, abs=1e-12), ties
    assert min(abs(measure.per_query(scores, rows, ties="random", seed=3)[0] - values)) < 1e-12


@pytest.mark.parametrize("name", MEASURES)
def test_without_ties_every_rule_gives_the_same(name: str) -> None:
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(60) < 0.3, np.nan, rng.integers(0, 3, 60))
    rows, scores = Candidates.of(labels, group=[20, 30, 0, 10]), rng.permutation(60) / 7
    measure = parse_measure(name)
    expected = measure.per_query(scores, rows)
    for ties in TIES:
        if ties != "together":
            np.testing.assert_allclose(measure.per_query(scores, rows, ties=ties), expected, rtol=0, atol=1e-12)


def test_the_mean_over_orders_of_a_large_tie_is_that_of_random_orders() -> None:
    rng = np.random.default_rng(1)
    rows = Candidates.of((rng.random(400) < 0.1).astype(float) * rng.integers(1, 4, 400))
    scores = rng.choice([1.0, 2.0, 3.0], 400)
    for name in ("AP", "RR", "ERR@10", "nDCG@10", "Bpref", "Success@1", "CorrectPairs"):
        measure = parse_measure(name)
        drawn = np.array([measure.per_query(scores, rows, ties="random", seed=s)[0] for s in range(300)])
        error = 5 * drawn.std() / np.sqrt(len(drawn)) + 1e-12
        assert measure.per_query(scores, rows, ties="average")[0] == pytest.approx(drawn.mean(), abs=error), name


def test_a_tie_of_ten_thousand_keeps_its_precision() -> None:
    """RR of one relevant among n tied: the mean of 1 / rank; of half of them, the sum by the product formula."""
    n = 10_000
    one, half = np.zeros(n), (np.arange(n) % 2).astype(float)
    one[0] = 1
    value = parse_measure("RR").per_query(np.ones(n), Candidates.of(one), ties="average")[0]
    assert value == pytest.approx((1 / np.arange(1, n + 1)).sum() / n, rel=1e-12)
    # P(first relevant at rank i) = P(none before) x n/2 / (n - i + 1)
    none, expected = 1.0, 0.0
    for i in range(1, n // 2 + 2):
        chance = (n / 2) / (n - i + 1)
        expected, none = expected + none * chance / i, none * (1 - chance)
    value = parse_measure("RR").per_query(np.ones(n), Candidates.of(half), ties="average")[0]
    assert value == pytest.approx(expected, rel=1e-12)


def test_random_ties_follow_the_seed_and_not_the_labels() -> None:
    scores, labels = np.zeros(30), np.arange(30) % 3
    first, again, other = (
        parse_measure("nDCG").rank(scores, Candidates.of(labels), ties="random", seed=s).order() for s in (1, 1, 2)
    )
    relabelled = parse_measure("nDCG").rank(scores, Candidates.of(labels[::-1]), ties="random", seed=1).order()
    assert first.tolist() == again.tolist() == relabelled.tolist() != other.tolist()


def test_a_measure_without_a_formula_for_ties_says_so() -> None:
    with pytest.raises(UsageError, match="RR has no formula for ties='together'"):
        parse_measure("RR").per_query([1, 1], Candidates.of([1, 0]), ties="together")


def test_an_unknown_rule_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="ties='coin': there are docid, rows, random, pessimistic"):
        evaluate({"q": {"a": 1}}, {"q": {"a": 1.0}}, "RR", ties="coin")


def test_evaluate_settles_ties_for_each_measure_by_itself() -> None:
    """With these gains label 1 is worth more than label 2: the worst order is another one than that of nDCG."""
    qrels, run = {"q": {"a": 1, "b": 2}}, {"q": {"a": 1.0, "b": 1.0}}
    names = ["nDCG", "nDCG(gains={1:5,2:1})"]
    for ties, first in (("pessimistic", ("a", "b")), ("optimistic", ("b", "a"))):
        found = evaluate(qrels, run, names, ties=ties)
        for name, top in zip(names, first, strict=True):
            settled = {"q": {document: 2.0 if document == top else 1.0 for document in "ab"}}
            assert found.mean("run", name) == evaluate(qrels, settled, name).mean("run", name)
        assert any("tied documents are put in the order" in how for _, how in found.explain())
    both = [evaluate(qrels, run, "nDCG", ties=t).mean("run", "nDCG") for t in ("pessimistic", "optimistic", "average")]
    assert both[2] == pytest.approx((both[0] + both[1]) / 2)


def test_a_convention_may_settle_ties_by_another_rule() -> None:
    rows = Candidates.of([0, 1, 2])
    mean = evaluate(rows, {"r": [1.0, 1.0, 1.0]}, "nDCG@3", convention="lightgbm", ties="average").mean("r", "nDCG@3")
    gains, discount = np.array([0, 1, 3]), 1 / np.log2([2, 3, 4])
    assert mean == pytest.approx(gains.sum() * discount.mean() / (3 + discount[1]))


def test_a_geometric_mean_is_that_of_the_averages() -> None:
    rows = Candidates.of([1, 0, 0, 1, 1], group=[3, 2])
    plain = parse_measure("RR").per_query([1, 1, 1, 2, 1], rows, ties="average")
    found = parse_measure("GM(RR)").value([1, 1, 1, 2, 1], rows, ties="average")
    assert found == pytest.approx(np.sqrt(plain.prod()))
