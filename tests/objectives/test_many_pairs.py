"""Very many pairs: counted without looking at them, and told before they are looked at."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from fliprank.data.candidates import Candidates
from fliprank.errors import InputError
from fliprank.objectives import many_pairs, parse_objective
from fliprank.objectives.many_pairs import label_pairs
from fliprank.objectives.ranknet import RankNet
from fliprank.optimize.pairs import pairs_of

LARGE = Candidates.of(np.arange(1_000_000) % 3, group=[1_000_000])


@pytest.mark.parametrize("seed", range(5))
def test_pairs_are_counted_as_if_they_were_listed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, 60).astype(float)
    labels[rng.random(60) < 0.2] = np.nan
    rows = Candidates.of(labels, group=[0, 7, 1, 30, 22])
    assert label_pairs(rows) == len(pairs_of(RankNet(), rows))
    assert label_pairs(LARGE) == 3 * 333_333**2 + 2 * 333_333  # the product of each two of 333,334, 333,333, 333,333


@pytest.mark.parametrize("name", ["ranknet", "lambdarank", "softrank"])
def test_very_many_pairs_are_told_once_with_their_number_and_what_to_do(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many_pairs, "MANY_PAIRS", 5)
    rows, scores = Candidates.of([2, 1, 0, 0], qid=["long"] * 4), [1.0, 2.0, 3.0, 4.0]
    count = 16 if name == "softrank" else 5
    objective = parse_objective(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if name != "softrank":
            objective.value_and_grad(scores, Candidates.of([2, 1, 0, 0]))  # no more than that
    monkeypatch.setattr(many_pairs, "MANY_PAIRS", 4)
    message = rf"{name} looks at {count} pairs of rows in each evaluation \(4 rows in query long\): softndcg takes"
    with pytest.warns(UserWarning, match=message):
        objective.value_and_grad(scores, rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        objective.value_and_grad(scores, rows)


def test_what_can_not_be_held_in_memory_is_refused_before_it_is_tried() -> None:
    with pytest.raises(InputError, match=r"a list of 333,333,333,333 pairs would take 2,48\d GiB of memory"):
        pairs_of(RankNet(), LARGE)
    for method in ("recursion", "sinkhorn"):
        with pytest.warns(UserWarning, match="pairs of rows"), pytest.raises(InputError, match="GiB of memory"):
            parse_objective(f"softrank(method='{method}')").per_query(np.zeros(len(LARGE)), LARGE)
        LARGE.memo.pop(("warned of pairs", "softrank"))
