"""The share of pairs that tie, against counting them; where all tie, the measure is that of the tie rule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fliprank.data.candidates import Candidates
from fliprank.errors import InputError
from fliprank.landscape import score_trajectory, tied_share


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), max_size=6), max_size=4))
def test_tied_pairs_are_counted_within_queries_only(scores: list[list[int]]) -> None:
    pairs = [(a, b) for query in scores for i, a in enumerate(query) for b in query[:i]]
    rows = Candidates.of(np.zeros(sum(map(len, scores))), group=[len(query) for query in scores])
    expected = sum(a == b for a, b in pairs) / len(pairs) if pairs else 0.0
    assert tied_share(np.array([s for query in scores for s in query], float), rows) == expected


def test_a_trajectory_tells_where_all_scores_tie() -> None:
    rows = Candidates.of([1, 0, 0, 1], group=[2, 2])
    path = score_trajectory([1, 2, 3, 1], [-1, -2, -3, -1], rows, "RR")
    assert path.tied_share(1.0) == 1.0
    assert path.at(1.0) == 0.75  # by row order, whatever the scores mean
    assert path.tied_share(0.5) == 0.0
    with pytest.raises(InputError, match="shape"):
        tied_share([1.0], rows)
