"""Two runs list by list: who entered and left, and rank-biased overlap by its definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fliprank.data.candidates import Candidates
from fliprank.data.ids import Ids
from fliprank.data.trec import Run, judge
from fliprank.errors import InputError
from fliprank.experiment.paired_runs import pair_runs, qrels_of_rows, rank_biased_overlap, run_of_rows
from fliprank.measures import parse_measure

lists = st.lists(st.sampled_from("abcdefghij"), unique=True, max_size=8)


def overlap_by_definition(first: list[str], second: list[str], p: float) -> float:
    """(1 - p) sum p^(d-1) agreement(d) over ten thousand depths. Beyond a list's end its agreement goes on as it was.

    Webber et al. assume that what the shorter list does not have agrees as often as what it has, and so on.
    """
    short, long = sorted((first, second), key=len)
    if not short:
        return float(not long)
    total, at_short = 0.0, len({*short} & {*long[: len(short)]})
    for depth in range(1, 2000):
        cut = min(depth, len(long))
        shared = len({*short[:cut]} & {*long[:cut]}) + at_short * max(cut - len(short), 0) / len(short)
        if depth <= len(long):
            agreement = shared / depth
        total += (1 - p) * p ** (depth - 1) * agreement
    return total


@settings(max_examples=200, deadline=None)
@given(lists, lists, st.sampled_from([0.5, 0.9, 0.98]))
def test_rank_biased_overlap_is_what_its_definition_says(first: list[str], second: list[str], p: float) -> None:
    depth = np.array([max(first.index(d), second.index(d)) for d in first if d in second], np.int64)
    found = rank_biased_overlap(depth, len(first), len(second), p)
    assert found == pytest.approx(overlap_by_definition(first, second, p), abs=1e-9)
    assert found == pytest.approx(rank_biased_overlap(depth, len(second), len(first), p))


def test_the_same_lists_overlap_wholly_and_disjoint_ones_not_at_all() -> None:
    one, other = {"q": {"a": 2.0, "b": 1.0}, "e": {}}, {"q": {"c": 2.0, "d": 1.0}, "e": {}}
    assert pair_runs(Run.of(one), Run.of(one)).overlaps().tolist() == pytest.approx([1.0, 1.0])
    assert pair_runs(Run.of(one), Run.of(other)).overlaps().tolist() == [0.0, 1.0]


def random_run(rng: np.random.Generator, queries: int) -> dict[str, dict[str, float]]:
    """Queries of 0 to 9 of 12 documents with tied scores."""
    out = {}
    for q in range(queries):
        documents = rng.permutation(12)[: rng.integers(0, 10)]
        out[f"q{q}"] = {f"d{d}": float(rng.integers(0, 4)) for d in documents}
    return out


def plainly(run: dict[str, dict[str, float]], qid: str) -> list[str]:
    """A list by score, then id, both descending."""
    return sorted(run.get(qid, {}), key=lambda d: (run[qid][d], d.encode()), reverse=True)


def test_lists_entries_and_exits_agree_with_plain_python() -> None:
    for seed in range(30):
        rng = np.random.default_rng(seed)
        one, other = random_run(rng, 6), random_run(rng, 8)
        del one["q3"]
        runs = pair_runs(Run.of(one), Run.of(other))
        assert runs.qids.tolist() == [*one, "q3", "q6", "q7"]
        top, entered, left, same = int(rng.integers(1, 6)), 0, 0, 0
        for q, qid in enumerate(runs.qids.tolist()):
            before, after = plainly(one, qid), plainly(other, qid)
            assert runs.ranked(q) == (before, after)
            entered += len({*after[:top]} - {*before[:top]})
            left += len({*before[:top]} - {*after[:top]})
            same += before[:top] == after[:top]
        assert runs.entered_and_left(top) == (entered, left)
        assert runs.same(top) == same


def test_what_occurs_twice_is_an_error() -> None:
    good = Run.of({"q": {"a": 1.0}})
    twice = Run(np.array([0, 2]), Ids.of(["q"]), Ids.of(["a", "a"]), np.array([2.0, 1.0]), "mine")
    with pytest.raises(InputError, match=r"query q: run 'mine': document a occurs twice"):
        pair_runs(good, twice)
    two = Run(np.array([0, 1, 2]), Ids.of(["q", "q"]), Ids.of(["a", "b"]), np.array([2.0, 1.0]))
    with pytest.raises(InputError, match="the query occurs twice"):
        pair_runs(two, good)
    with pytest.raises(InputError, match="is not a number"):
        pair_runs(good, Run(np.array([0, 1]), Ids.of(["q"]), Ids.of(["a"]), np.array([np.nan])))
    with pytest.raises(InputError, match=r"no query in common \(the first has q, the second x\)"):
        pair_runs(good, Run.of({"x": {"a": 1.0}}))


@pytest.mark.parametrize("name", ["nDCG@10", "AP", "R@3", "RR"])
def test_rows_as_runs_and_judgements_measure_as_the_rows_do(name: str) -> None:
    rng, measure = np.random.default_rng(3), parse_measure(name)
    labels = rng.integers(0, 3, 40).astype(float)
    labels[rng.random(40) < 0.3] = np.nan
    whole = Candidates.of(labels, group=[10, 0, 17, 13])
    rows = whole.take(rng.random(40) < 0.8)  # judged rows that are left out count as not retrieved
    scores = rng.integers(0, 4, len(rows)).astype(float)  # ties, which go by the order of rows
    judged = judge(qrels_of_rows(rows), run_of_rows(rows, scores))
    found = measure.per_query(judged.scores, judged.candidates)
    np.testing.assert_allclose(found, measure.per_query(scores, rows), rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.sort(judged.scores), np.sort(scores), rtol=0, atol=1e-12)
