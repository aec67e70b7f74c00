"""Every measure equals its plain formula, and says truly what a flip does to it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import plain
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Problem, problem, problems

from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, UsageError
from fliprank.measures import ESL, GMAP, REGISTRY, Measure, SetF, SetP, SetR, SetU, nDCG, parse_measure
from fliprank.measures.ranking import rank
from fliprank.objectives import SoftNDCG

ORACLES: dict[str, Callable[..., float]] = {
    "P@1": lambda ranked, missed: plain.precision(ranked, missed, 1),
    "P(rel=2)@5": lambda ranked, missed: plain.precision(ranked, missed, 5, 2),
    "R@3": lambda ranked, missed: plain.recall(ranked, missed, 3),
    "AP": plain.average_precision,
    "AP(rel=3)@4": lambda ranked, missed: plain.average_precision(ranked, missed, 4, 3),
    "Rprec": plain.r_precision,
    "RR": plain.reciprocal_rank,
    "RR(rel=2)@3": lambda ranked, missed: plain.reciprocal_rank(ranked, missed, 3, 2),
    "Success@2": lambda ranked, missed: plain.success(ranked, missed, 2),
    "nDCG": plain.ndcg,
    "nDCG@5": lambda ranked, missed: plain.ndcg(ranked, missed, 5),
    "nDCG(dcg='exp-log2')@10": lambda ranked, missed: plain.ndcg(ranked, missed, 10, True),
    "Bpref": plain.bpref,
    "Bpref(rel=2)": lambda ranked, missed: plain.bpref(ranked, missed, 2),
    "ERR": plain.err,
    "ERR@3": lambda ranked, missed: plain.err(ranked, missed, 3),
    "RBP(p=0.8,rel=1)": lambda ranked, missed: plain.rbp(ranked, missed, 0.8),
    "Judged@4": lambda ranked, missed: plain.judged(ranked, missed, 4),
    "CorrectPairs": plain.correct_pairs,
}
JUDGED_ONLY = ["P", "R", "AP", "Rprec", "RR", "Success", "nDCG"]
BENT = [nDCG(discount=alpha, judged_only=False) for alpha in (-0.5, 0.5)]


@pytest.mark.parametrize("name", ORACLES)
@settings(max_examples=60, deadline=None)
@given(case=problems())
def test_measure_equals_its_plain_formula(name: str, case: Problem) -> None:
    values = parse_measure(name).per_query(case.scores, case.candidates)
    expected = [ORACLES[name](r, m) for r, m in zip(case.ranked, case.missed, strict=True)]
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("depth", [1, 3, 10, None])
@pytest.mark.parametrize("unjudged", [0.0, 0.5, 0.97])
def test_ranks_are_the_same_whichever_way_they_are_found(depth: int | None, unjudged: float) -> None:
    rng = np.random.default_rng(4)
    sizes = [0, 1, 2, 7, 40, 300, 1000]
    labels = rng.integers(0, 2, sum(sizes)).astype(float)
    labels[rng.random(len(labels)) < unjudged] = np.nan
    scores = np.round(rng.normal(size=len(labels)), 2)
    rows = Candidates.of(labels, group=sizes, docids=[f"d{i * 7919 % 1351}" for i in range(len(labels))])
    found, order = rank(scores, rows, depth=depth), rank(scores, rows).order()
    for q, (low, high) in enumerate(zip(rows.offsets, rows.offsets[1:], strict=False)):
        expected = [(r, row) for r, row in enumerate(order[low:high], 1) if not np.isnan(labels[row])]
        expected = [pair for pair in expected if depth is None or pair[0] <= depth]
        part = slice(found.start[q], found.start[q] + found.count[q])
        rows_found = rows.judgements.row[found.entry[part]]
        assert list(zip(found.rank[part].tolist(), rows_found.tolist(), strict=True)) == expected


@pytest.mark.parametrize("name", JUDGED_ONLY)
@settings(max_examples=30, deadline=None)
@given(case=problems())
def test_judged_only_is_the_measure_without_unjudged_rows(name: str, case: Problem) -> None:
    cutoff = {} if name in ("AP", "Rprec", "RR", "nDCG") else {"cutoff": 3}
    known = ~np.isnan(case.candidates.labels)
    for measure in [REGISTRY[name](**cutoff), *(BENT if name == "nDCG" else [])]:
        expected = measure.per_query(case.scores[known], case.candidates.take(known))
        np.testing.assert_allclose(
            replace(measure, judged_only=True).per_query(case.scores, case.candidates), expected, atol=1e-12
        )


RANKED = [
    *ORACLES,
    "GMAP",
    "GMAP(eps=0.2)",
    "GM(nDCG@3,eps=0.1)",
    "nDCG(base=10)",
    "nDCG(discount=-0.5)@5",
    "nDCG(discount=(1,0.5,0.25))",
    "nDCG(discount=0.3,judged_only=True)",
    "DCG@5",
    "nDCG(gains={1:3,2:7,3:15,4:31})",
    "RBP",
    "ESL",
    "ESL(n=2)",
]
RANKED += [f"{name}(judged_only=True){'' if name in ('AP', 'Rprec', 'RR', 'nDCG') else '@3'}" for name in JUDGED_ONLY]


@pytest.mark.parametrize("name", RANKED)
@settings(max_examples=25, deadline=None)
@given(case=problems(ties=False, longest=12))
def test_a_flip_changes_the_measure_as_it_says(name: str, case: Problem) -> None:
    measure = parse_measure(name)
    before = measure.per_query(case.scores, case.candidates)
    order = rank(case.scores, case.candidates).order()
    told = measure.flips(case.scores, case.candidates)
    for q, (low, high) in enumerate(zip(case.candidates.offsets, case.candidates.offsets[1:], strict=False)):
        for i in range(low, high - 1):
            swapped = case.scores.copy()
            swapped[[order[i], order[i + 1]]] = swapped[[order[i + 1], order[i]]]
            after = measure.per_query(swapped, case.candidates)
            assert after[q] - before[q] == pytest.approx(told[i], abs=1e-12)
            assert np.delete(after, q) == pytest.approx(np.delete(before, q), abs=1e-12)
        if high > low:
            assert told[high - 1] == 0


@pytest.mark.parametrize("name", [name for name in RANKED if not name.startswith("Judged")])
@settings(max_examples=25, deadline=None)
@given(case=problems(ties=False, longest=12))
def test_only_a_good_flip_is_rewarded_and_only_a_bad_one_penalised(name: str, case: Problem) -> None:
    """Assertion 1 of Robertson & Zaragoza 2007; an unjudged document counts as a non-relevant one."""
    measure = parse_measure(name)
    labels = np.nan_to_num(case.candidates.labels[rank(case.scores, case.candidates).order()])
    better = np.append(np.sign(np.diff(labels)), 0)
    change = measure.flips(case.scores, case.candidates) * (-1 if measure.smaller_is_better else 1)
    assert np.all((np.sign(change) == 0) | (np.sign(change) == better))


@settings(max_examples=60, deadline=None)
@given(case=problems(ties=True, longest=8), n=st.integers(1, 3))
def test_expected_search_length_is_the_mean_over_orders_of_ties(case: Problem, n: int) -> None:
    """Cooper's treatment, by sampling random orders of tied documents."""
    rng, rows = np.random.default_rng(0), case.candidates
    values = ESL(n=n).per_query(case.scores, rows)
    for q, (low, high) in enumerate(zip(rows.offsets, rows.offsets[1:], strict=False)):
        labels = [None if np.isnan(v) else v for v in rows.labels[low:high]]
        sampled = []
        for _ in range(400):
            order = sorted(range(high - low), key=lambda i: (-case.scores[low + i], rng.random()))
            sampled.append(plain.search_length([labels[i] for i in order], [], n))
        error = np.std(sampled) / 20 if sampled else 0
        assert values[q] == pytest.approx(np.mean(sampled), abs=5 * error + 1e-9)


@settings(max_examples=40, deadline=None)
@given(case=problems(), threshold=st.floats(-1, 5))
def test_set_measures_equal_their_plain_formula(case: Problem, threshold: float) -> None:
    rows = case.candidates
    sets = [m(threshold=threshold).per_query(case.scores, rows) for m in (SetP, SetR, SetF, SetU)]
    for q, (low, high) in enumerate(zip(rows.offsets, rows.offsets[1:], strict=False)):
        inside = case.scores[low:high] >= threshold
        found = int((rows.labels[low:high][inside] >= 1).sum())
        count = plain.total(case.ranked[q], case.missed[q])
        precision, recall = found / max(inside.sum(), 1), found / max(count, 1)
        harmonic = 2 * precision * recall / (precision + recall) if found else 0.0
        expected = [precision, recall, harmonic, 2 * found - (inside.sum() - found)]
        np.testing.assert_allclose([values[q] for values in sets], expected, atol=1e-12)


def test_gmap_is_the_geometric_mean_with_a_floor() -> None:
    rows = Candidates.of([1, 0, 0, 1, 0, 0], group=[2, 2, 2])
    values = GMAP(eps=1e-5).per_query([2, 1, 2, 1, 2, 1], rows)
    assert GMAP().aggregate(values) == pytest.approx((1 * 0.5 * 1e-5) ** (1 / 3))


@pytest.mark.parametrize("inner", ["nDCG@3", "RR", "ESL", "SetP"])
@settings(max_examples=25, deadline=None)
@given(case=problems(longest=12))
def test_a_geometric_mean_of_any_measure_is_the_exponential_of_mean_logarithms(inner: str, case: Problem) -> None:
    plain, measure = parse_measure(inner), parse_measure(f"GM({inner},eps=0.01)")
    values = np.maximum(plain.per_query(case.scores, case.candidates), 0.01)
    np.testing.assert_array_equal(measure.per_query(case.scores, case.candidates), values)
    assert measure.value(case.scores, case.candidates) == pytest.approx(np.exp(np.log(values).mean()))
    np.testing.assert_array_equal(measure.paired(values), np.log(values))
    assert (measure.sign, measure.depth) == (plain.sign, plain.depth)
    np.testing.assert_array_equal(measure.empty(case.candidates), plain.empty(case.candidates))


def test_gmap_is_the_geometric_mean_of_average_precision() -> None:
    case = problem(np.random.default_rng(2), [5, 9, 20])
    for short, long in (("GMAP", "GM(AP)"), ("GMAP(rel=2,eps=0.1)", "GM(AP(rel=2),eps=0.1)")):
        ours, same = (parse_measure(name).value(case.scores, case.candidates) for name in (short, long))
        assert ours == same


def plain_discount(name: str, rank: int, size: int) -> float:
    """The discounts by their definitions; ranks from 1, in a query of `size` rows."""
    curve = 1 / math.log2(1 + rank)
    if name == "base=10":  # Jarvelin & Kekalainen 2000: no discount before rank b, then the logarithm to base b
        return 1 / math.log(rank, 10) if rank > 10 else 1.0
    if name == "base=2":
        return 1 / math.log2(rank) if rank > 2 else 1.0
    if name == "discount=(1,0.5,0.25)":
        return {1: 1.0, 2: 0.5, 3: 0.25}.get(rank, 0.0)
    if rank > size:
        return curve
    last = 1 / math.log2(1 + size)
    line = 1.0 if size == 1 else 1 + (rank - 1) * (last - 1) / (size - 1)
    mirrored = 1 + last - 1 / math.log2(1 + (size + 1 - rank))
    return {"discount=1": curve, "discount=0": line, "discount=-1": mirrored,
            "discount=0.5": (line + curve) / 2, "discount=-0.25": 0.75 * line + 0.25 * mirrored}[name]  # fmt: skip


DISCOUNTS = ["base=10", "base=2", "discount=(1,0.5,0.25)", "discount=1", "discount=0", "discount=-1", "discount=0.5"]
DISCOUNTS += ["discount=-0.25"]


@pytest.mark.parametrize("cutoff", ["", "@4"])
@pytest.mark.parametrize("name", DISCOUNTS)
@settings(max_examples=25, deadline=None)
@given(case=problems(longest=25))
def test_dcg_and_ndcg_by_any_discount_are_the_plain_sums(name: str, cutoff: str, case: Problem) -> None:
    ours = [parse_measure(f"{dcg}({name}){cutoff}").per_query(case.scores, case.candidates) for dcg in ("DCG", "nDCG")]
    deepest = 4 if cutoff else 10**9
    for q, (ranked, missed) in enumerate(zip(case.ranked, case.missed, strict=True)):

        def total(gains: list[float], size: int = len(ranked)) -> float:
            return sum(g * plain_discount(name, r, size) for r, g in enumerate(gains[:deepest], 1))

        gains = [label or 0.0 for label in ranked]
        value, best = total(gains), total(sorted([*gains, *missed], reverse=True))
        assert ours[0][q] == pytest.approx(value, abs=1e-12)
        assert ours[1][q] == pytest.approx(value / best if best else 0.0, abs=1e-12)


@pytest.mark.parametrize("alpha", [-1.0, -0.4, 0.0, 0.6])
def test_ndcg_by_alpha_is_what_softndcg_tends_to(alpha: float) -> None:
    """Validation may use the discount that training uses: with little noise the soft measure is the hard one."""
    case = problem(np.random.default_rng(3), [6, 15, 40])
    hard = nDCG(dcg="exp-log2", discount=alpha).per_query(case.scores, case.candidates)
    soft, _ = SoftNDCG(sigma=1e-6, discount=alpha).evaluate(case.scores, case.candidates, np.ones(3))
    np.testing.assert_allclose(hard, soft, atol=1e-5)


def test_gains_by_label_may_change_the_order_of_grades() -> None:
    rows = Candidates.of([1, 2])
    upside_down = nDCG(gains={1: 5, 2: 1})
    assert upside_down.per_query([2, 1], rows) == pytest.approx(1)
    assert upside_down.per_query([1, 2], rows)[0] < 1


def test_documents_that_top_cuts_off_stay_in_the_ideal_ranking() -> None:
    case = problem(np.random.default_rng(5), [20, 30], ties=False)
    best = case.candidates.top(case.scores, 10)
    order = rank(case.scores, case.candidates).order()
    kept = np.concatenate([order[low : low + 10] for low in case.candidates.offsets[:-1]])
    for name in ("nDCG@10", "P@5", "R@10"):
        measure = parse_measure(name)
        expected = measure.per_query(case.scores, case.candidates)
        np.testing.assert_allclose(measure.per_query(case.scores[kept], best), expected)


@pytest.mark.parametrize("measure", [parse_measure("nDCG@10"), parse_measure("ESL"), parse_measure("SetP")])
def test_scores_that_are_not_numbers_are_refused_with_the_query(measure: Measure) -> None:
    with pytest.raises(InputError, match="query b: the score of row 2 is not a number"):
        measure.per_query([1.0, 2.0, np.nan], Candidates.of([1, 0, 1], qid=["a", "a", "b"]))


def test_a_grade_above_errs_highest_is_refused() -> None:
    with pytest.raises(InputError, match=r"a label of 5 .*use ERR\(max=5\)"):
        parse_measure("ERR@10").per_query([1, 2], Candidates.of([5, 0]))


@pytest.mark.parametrize("name", ["nDCG(dcg='exp-log2')@10", "DCG(dcg='exp-letor')", "ERR", "GM(nDCG(dcg='exp-log2'))"])
@pytest.mark.parametrize("label", [1001.0, 1024.0, 1e9])
def test_a_label_whose_exponential_gain_no_float_can_hold_is_refused(name: str, label: float) -> None:
    said = "a label of " if name == "ERR" else "query b: a label of "
    with pytest.raises(InputError, match=said):
        parse_measure(name).per_query([1, 2, 3], Candidates.of([0, 1, label], qid=["a", "a", "b"]))


def test_large_labels_are_measured_as_long_as_their_gains_can_be_summed() -> None:
    many = Candidates.of([1000.0] * 50 + [0.0] * 50)
    falling = np.arange(100.0)[::-1]
    assert nDCG(dcg="exp-log2").per_query(falling, many)[0] == pytest.approx(1.0)
    assert nDCG(dcg="exp-log2", gains={2000: 3}).per_query([1, 2], Candidates.of([2000, 1]))[0] < 1.0
    with pytest.raises(InputError, match="more than any float"):
        nDCG().per_query(falling, Candidates.of([1.7e308] * 100))


@pytest.mark.parametrize("name", ["ERR(max=1e+09)", "ERR(max=1001)", "ERR(max=-1)"])
def test_a_highest_grade_that_no_float_can_hold_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="highest grade is from 0 to 1000"):
        parse_measure(name)
