"""Subsampling: the counts of the papers, nothing labelled lost, nothing drawn twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fliprank.data import subsample as subsampling
from fliprank.data.candidates import Candidates
from fliprank.data.subsample import subsample, subsample_by_spec
from fliprank.errors import UsageError


def mixed(labelled: list[int], unlabelled: list[int], seed: int = 0) -> Candidates:
    """Queries with so many labelled and unlabelled rows, in random order; feature and document id number the rows."""
    rng = np.random.default_rng(seed)
    labels = [
        rng.permutation(np.concatenate([rng.integers(0, 5, a).astype(float), np.full(b, np.nan)]))
        for a, b in zip(labelled, unlabelled, strict=True)
    ]
    sizes = [len(part) for part in labels]
    rows = np.arange(sum(sizes))
    return Candidates.of(
        np.concatenate([*labels, []]), group=sizes, docids=[f"d{i}" for i in rows], features=rows[:, None]
    )


def drawn(rows: Candidates, few: Candidates) -> list[int]:
    """How many unlabelled rows of each query were kept."""
    kept = few.features[:, 0].astype(int)
    return np.bincount(few.query_of_rows(), np.isnan(rows.labels[kept]), minlength=rows.queries).astype(int).tolist()


LABELLED, UNLABELLED = [3, 40, 0, 5, 10], [100, 100, 100, 2, 0]


@pytest.mark.parametrize(
    ("options", "counts"),
    [
        ({}, [3, 30, 0, 2, 0]),  # SoftRank: as many as are judged, or 30
        ({"times": 1, "at_most": None}, [3, 40, 0, 2, 0]),  # nested ranker, n = 1, 3, 10
        ({"times": 3, "at_most": None}, [9, 100, 0, 2, 0]),
        ({"times": 10, "at_most": None}, [30, 100, 0, 2, 0]),
        ({"per_query": "average", "at_most": None}, [12, 12, 12, 2, 0]),  # Taylor 2006: 58 rated in 5 queries
        ({"per_query": 50}, [50, 50, 50, 2, 0]),
        ({"per_query": 0}, [0, 0, 0, 0, 0]),
        ({"times": 0.5}, [2, 20, 0, 2, 0]),
    ],
)
def test_counts_are_those_of_the_papers(options: dict[str, Any], counts: list[int]) -> None:
    rows = mixed(LABELLED, UNLABELLED)
    few = subsample(rows, 1, **options)
    assert drawn(rows, few) == counts
    assert few.sizes.tolist() == [a + b for a, b in zip(LABELLED, counts, strict=True)]


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 12)), max_size=6), st.integers(0, 1000))
@settings(deadline=None)
def test_labelled_rows_stay_and_drawn_ones_are_irrelevant(sizes: list[tuple[int, int]], seed: int) -> None:
    rows = mixed([a for a, _ in sizes], [b for _, b in sizes], seed)
    few = subsample(rows, seed, times=2, at_most=5)
    kept = few.features[:, 0].astype(int)
    assert (np.diff(kept) > 0).all()
    np.testing.assert_array_equal(few.labels, np.nan_to_num(rows.labels[kept], nan=0.0))
    assert set(np.flatnonzero(~np.isnan(rows.labels))) <= set(kept)
    assert few.docids.tolist() == [f"d{i}" for i in kept]
    assert few.qids == rows.qids
    assert drawn(rows, few) == [min(2 * a, 5, b) for a, b in sizes]
    assert len(few.missed_labels) == 0


@pytest.mark.parametrize(
    ("spec", "options"),
    [
        ("rated", {}),
        ("average", {"per_query": "average", "at_most": None}),
        ("3", {"times": 3, "at_most": None}),
        (0.5, {"times": 0.5, "at_most": None}),
    ],
)
def test_the_words_of_the_command_line_are_the_papers_counts(spec: str | float, options: dict[str, Any]) -> None:
    rows = mixed(LABELLED, UNLABELLED)
    assert subsample_by_spec(rows, spec, 1).docids.tolist() == subsample(rows, 1, **options).docids.tolist()
    assert subsample_by_spec(rows, None, 1) is rows


def test_an_unknown_word_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match=r"sample='most': expected 'rated', 'average', or a number of unlabelled rows"):
        subsample_by_spec(mixed([1], [1]), "most", 0)


def test_every_unlabelled_row_is_drawn_equally_often() -> None:
    rows = mixed([2, 3], [8, 6], seed=3)
    rng = np.random.default_rng(0)
    kept = np.concatenate([subsample(rows, rng).features[:, 0] for _ in range(1500)]).astype(int)
    often = np.bincount(kept, minlength=len(rows)) / 1500
    expected = np.where(np.isnan(rows.labels), np.where(rows.query_of_rows() == 0, 2 / 8, 3 / 6), 1.0)
    assert np.abs(often - expected).max() < 0.06


def test_the_seed_decides() -> None:
    rows = mixed([5] * 20, [50] * 20)
    first, again, other = (subsample(rows, seed).docids.tolist() for seed in (1, np.random.default_rng(1), 2))
    assert first == again != other


def test_what_has_no_unlabelled_rows_comes_back_as_it_is() -> None:
    rows = Candidates.of([1, 0, 2], qid=["a", "a", "b"])
    assert subsample(rows, 0) is rows


def test_judgements_of_rows_that_were_missing_before_are_kept() -> None:
    rows = mixed([4, 4], [10, 10]).top(np.arange(28.0), 7)
    few = subsample(rows, 0)
    assert few.missed_labels.tolist() == rows.missed_labels.tolist()
    assert few.missed_offsets.tolist() == rows.missed_offsets.tolist()


@pytest.mark.parametrize("options", [{"per_query": "all"}, {"per_query": -1}, {"times": -1}, {"at_most": -2}])
def test_nonsense_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        subsample(mixed([1], [1]), 0, **options)


BITS = [np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64]


@settings(deadline=None)
@given(st.sampled_from(BITS), st.lists(st.integers(0, 50), max_size=8), st.integers(0, 99), st.integers(1, 20))
def test_draws_are_passed_over_to_the_state_that_they_would_leave(
    kind: Any, drawn: list[int], seed: int, at_once: int
) -> None:
    """With half a step kept for the next small number, too, as `integers` of 32 bits leaves it."""
    one, other = (np.random.Generator(kind(seed)) for _ in range(2))
    assert one.integers(0, 9, dtype=np.int32) == other.integers(0, 9, dtype=np.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subsampling, "SKIPPED", at_once)
        states = subsampling._states(one, np.array(drawn, np.int64))
    for state, count in zip(states, drawn, strict=True):
        np.testing.assert_equal(state, other.bit_generator.state)
        other.random(count)
    np.testing.assert_equal(one.bit_generator.state, other.bit_generator.state)


def test_billions_of_draws_take_neither_time_nor_memory() -> None:
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    assert len(subsampling._states(rng, np.full(1000, 10**12))) == 1000
    rng.bit_generator.advance(2**128 - 10**15)  # the period is 2**128
    assert rng.bit_generator.state == before
