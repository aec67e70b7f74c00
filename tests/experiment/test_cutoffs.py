"""Cut-offs from data: every choice is worth what the cascade with those cut-offs is, and the frontier is the best."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fliprank as fr
from fliprank.experiment import cutoffs as module
from fliprank.experiment.cutoffs import choose_cutoffs
from fliprank.experiment.stage_costs import time_stages
from fliprank.models.cascade import Cascade


def rows(seed: int, sizes: list[int], ids: bool = True) -> fr.Candidates:
    rng = np.random.default_rng(seed)
    count = sum(sizes)
    x = rng.integers(0, 5, (count, 3)).astype(np.float32)
    x[0] = 0.5  # no feature is constant
    labels = np.where(rng.random(count) < 0.6, np.nan, rng.integers(0, 3, count))
    docids = [f"d{i}" for i in rng.permutation(count)] if ids else None
    return fr.Candidates.of(labels, group=sizes, docids=docids, features=x)


def nested(train: fr.Candidates, stages: int) -> Cascade:
    models = [fr.Linear().prepared(train, 0) for _ in range(stages)]
    weights = np.eye(4)[1:]
    return Cascade([m.at(weights[s % 3]) for s, m in enumerate(models)], [100, 8, 4, 2, 1][:stages])


@given(st.lists(st.integers(1, 14), min_size=1, max_size=5), st.integers(1, 3), st.booleans(), st.booleans(),
       st.sampled_from(["nDCG@3", "AP", "RR"]), st.integers(0, 999))  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_every_choice_is_what_the_cascade_itself_gives(
    sizes: list[int], stages: int, ids: bool, drop: bool, name: str, seed: int
) -> None:
    candidates, measure = rows(seed, sizes, ids), fr.parse_measure(name)
    cascade, costs, grid = nested(candidates, stages), [1.0, 3.0, 10.0][:stages], (1, 3, 5)
    found = choose_cutoffs(cascade, candidates, costs=costs, measure=measure, grid=grid, drop=drop)
    tried = sorted({n for n in (*grid, *cascade.sizes[1:]) if n < max(*sizes, 2)})
    expected = {}
    for kept in (range(stages) if drop else [stages - 1]) if stages > 1 else [0]:
        for which in combinations(range(1, stages), kept):
            for cuts in combinations(tried[::-1], kept):
                few = Cascade([cascade.stages[s] for s in (0, *which)], [100, *cuts])
                value = measure.per_query(few.score(candidates), candidates).mean()
                seen = [np.mean(candidates.sizes), *(np.minimum(candidates.sizes, n).mean() for n in cuts)]
                price = sum(costs[s] * n for s, n in zip((0, *which), seen, strict=True))
                expected[(0, *which), (100, *cuts)] = (pytest.approx(price), pytest.approx(value))
    assert {(c.stages, c.sizes): (c.cost, c.value) for c in found.choices} == expected
    if not found.choices:
        return
    for choice in found.frontier:
        assert choice.value >= max(c.value for c in found.choices if c.cost <= choice.cost)
    dearest = max(c.cost for c in found.choices)
    assert found.within(dearest).value == max(c.value for c in found.choices)
    best = found.apply(found.within(dearest))
    assert measure.per_query(best.score(candidates), candidates).mean() == pytest.approx(found.within(dearest).value)


def test_lost_is_the_share_of_relevant_documents_below_the_cuts() -> None:
    candidates = rows(7, [12, 9, 15])
    cascade = nested(candidates, 3)
    found = choose_cutoffs(cascade, candidates, costs=[1, 1, 1], grid=[2, 6], drop=False, rel=2)
    relevant = np.nan_to_num(candidates.labels) >= 2
    for choice in found.choices:
        lost = [0.0]
        for s in (1, 2):
            before = Cascade(cascade.stages[:s], choice.sizes[:s]).by_stage(candidates)[-1]
            lost.append((relevant & (before < -choice.sizes[s])).sum() / relevant.sum())
        assert choice.lost == pytest.approx(tuple(lost))
    assert any(choice.lost[2] > choice.lost[1] > 0 for choice in found.choices)


def test_with_too_many_choices_a_thinner_grid_is_refined(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(3000, 3))
    labels = np.clip(np.round(x @ [0.4, 0.7, 1.0] + 0.5 * rng.normal(size=3000)), 0, 3)
    candidates = fr.Candidates.of(labels, group=[30] * 100, features=x)
    weights = [[0, 1, 0, 0], [0, 1, 1, 0], [0, 1, 1, 1], [0, 0.4, 0.7, 1]]
    cascade = Cascade([fr.Linear().prepared(candidates, 0).at(w) for w in weights], [100, 8, 4, 2])
    options = {"costs": [1, 3, 10, 30], "measure": "nDCG@5", "grid": (1, 2, 3, 5, 7, 10, 15)}
    whole = choose_cutoffs(cascade, candidates, **options)
    monkeypatch.setattr(module, "MOST", 60)
    some = choose_cutoffs(cascade, candidates, **options)
    known = {(c.stages, c.sizes): c for c in whole.choices}
    assert all(known[c.stages, c.sizes] == c for c in some.choices)
    assert len(some.choices) < len(whole.choices)
    best = [max(c.value for c in part.choices) for part in (some, whole)]
    assert best[0] > best[1] - 0.01
    reached = [np.mean([part.within(b).value for b in range(30, 300)]) for part in (some, whole)]
    assert reached[0] > reached[1] - 0.01


def test_a_smaller_measure_can_be_the_better_one() -> None:
    candidates = rows(5, [20, 25, 30, 18])
    found = choose_cutoffs(nested(candidates, 3), candidates, costs=[1, 5, 9], measure="ESL", grid=[3, 9])
    assert found.frontier[-1].value == min(c.value for c in found.choices)


def test_costs_are_timed_by_stage() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20_000, 40))
    candidates = fr.Candidates.of(rng.integers(0, 2, 20_000), group=[1000] * 20, features=x)
    cheap, dear = fr.Linear().prepared(candidates, 0), fr.Network(100).prepared(candidates, 0)
    timed = time_stages(Cascade([cheap, dear], [1000, 500]), candidates, tries=3)
    assert 0 < timed.scoring[0] < timed.scoring[1]
    assert timed.gathering is None
    found = choose_cutoffs(Cascade([cheap, dear], [1000, 500]), candidates, grid=[100])
    assert {c.sizes for c in found.choices} == {(1000,), (1000, 100), (1000, 500)}
    assert found.costs.unit == "microseconds"
    assert found.costs.includes.startswith("scoring, timed")


def test_what_makes_no_sense_is_refused() -> None:
    candidates = rows(5, [20])
    cascade = nested(candidates, 2)
    for costs in ([1.0], [1.0, -2.0], [1.0, float("nan")]):
        with pytest.raises(fr.UsageError, match="one number for each of 2 stages"):
            choose_cutoffs(cascade, candidates, costs=costs)
    with pytest.raises(fr.UsageError, match="the cheapest cascade costs 20 per query, over the budget of 5"):
        choose_cutoffs(cascade, candidates, costs=[1, 1]).within(5)


@pytest.mark.parametrize("most", [3000, 5])
@pytest.mark.parametrize("sizes", [[7, 4, 2], [3, 2, 1], [2, 1], [1]])
def test_every_choice_can_be_applied(sizes: list[int], most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", most)
    candidates = rows(5, [20, 30, 9])
    cascade = Cascade(nested(candidates, len(sizes)).stages, sizes)
    found = choose_cutoffs(cascade, candidates, costs=[1.0] * len(sizes))
    assert found.choices
    for choice in found.choices:
        applied = found.apply(choice)
        assert (applied.sizes, len(applied.stages)) == (choice.sizes, len(choice.stages))


def test_with_no_room_for_all_stages_it_is_said() -> None:
    candidates = rows(5, [20])
    cascade = Cascade(nested(candidates, 3).stages, [20, 2, 1])
    assert len(choose_cutoffs(cascade, candidates, costs=[1, 1, 1], grid=[], drop=False).choices) == 1
    found = choose_cutoffs(cascade, rows(5, [2]), costs=[1, 1, 1], grid=[], drop=False)
    with pytest.raises(fr.UsageError, match="no falling cut-offs for all 3 stages"):
        found.within(100)


def test_a_cost_that_is_too_small_says_what_the_cheapest_costs_in_its_unit() -> None:
    candidates = rows(5, [20])
    with pytest.raises(fr.UsageError, match=r"the cheapest cascade costs [0-9.e+]+ microseconds per query, over"):
        choose_cutoffs(nested(candidates, 2), candidates, feature_costs=1e3).within(1.0)


def test_the_count_of_choices_is_right() -> None:
    for stages, grid, drop in product(range(4), range(5), (True, False)):
        cuts = [
            c
            for c in product(range(grid + 1) if drop else range(1, grid + 1), repeat=stages)
            if all(a > b for a, b in zip([n for n in c if n], [n for n in c if n][1:], strict=False))
        ]
        assert module._count(stages, grid, drop) == len(cuts)
