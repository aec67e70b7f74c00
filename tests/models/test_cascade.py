"""A cascade: tails are frozen, tops are permuted, it comes back from its file, a stage sees only what reaches it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fliprank.data.candidates import Candidates
from fliprank.data.order import order_rows
from fliprank.errors import InputError, UsageError
from fliprank.measures import parse_measure
from fliprank.models import Linear, Model, Network, load_model
from fliprank.models.cascade import Cascade
from fliprank.models.feature_subset import FeatureSubset

NAMES = ("a", "b", "c", "d")


def collection(rng: np.random.Generator, sizes: list[int], *, ids: bool, levels: int = 4) -> Candidates:
    """Queries of these sizes; features of few levels, so that scores are often equal."""
    count = sum(sizes)
    x = rng.integers(0, levels, (count, len(NAMES))).astype(np.float32)
    docids = [f"d{i}" for i in rng.permutation(count)] if ids else None
    labels = np.where(rng.random(count) < 0.5, np.nan, rng.integers(0, 3, count))
    return Candidates.of(labels, group=sizes, docids=docids, features=x, feature_names=NAMES)


@dataclass(frozen=True, eq=False)
class ByFeature(Model):
    """Scores are a feature; notes how many rows it was asked for."""

    kind: ClassVar[str] = "by feature"
    column: int
    asked: list[int] = field(default_factory=list)

    def score(self, candidates: Candidates) -> np.ndarray:
        self.asked.append(len(candidates))
        return candidates.features[:, self.column].astype(np.float64)

    def pullback(self, candidates: Candidates, dscores: Any) -> np.ndarray:
        return np.empty(0)

    def structure(self) -> dict[str, Any]:
        return {}

    @classmethod
    def restore(cls, structure: Any) -> ByFeature:
        return cls(0)


def plain(rows: Candidates, columns: list[int], sizes: list[int]) -> list[list[int]]:
    """Figure 2, one query and one document at a time: the rows of each query in their final order."""
    out = []
    for q in range(rows.queries):
        order = list(range(rows.offsets[q], rows.offsets[q + 1]))
        for s, column in enumerate(columns):
            top = order if s == 0 else order[: sizes[s]]
            tail = [] if s == 0 else order[sizes[s] :]
            top = sorted(top)  # ties: docid, descending; without ids, row order
            if rows.docids is not None:
                top = sorted(top, key=lambda row: rows.docids[row], reverse=True)
            order = sorted(top, key=lambda row: -rows.features[row, column]) + tail
        out.append(order)
    return out


sizes_of_stages = st.lists(st.integers(1, 12), min_size=1, max_size=4, unique=True).map(
    lambda s: sorted(s, reverse=True)
)
sizes_of_queries = st.lists(st.integers(0, 15), min_size=1, max_size=5)


@given(sizes_of_queries, sizes_of_stages, st.booleans(), st.integers(0, 10**6))
@settings(max_examples=150, deadline=None)
def test_the_ranking_is_that_of_the_paper_s_figure(queries: list[int], cuts: list[int], ids: bool, seed: int) -> None:
    rows = collection(np.random.default_rng(seed), queries, ids=ids)
    columns = list(range(len(cuts)))
    cascade = Cascade([ByFeature(c) for c in columns], cuts)
    for scores in (cascade.score(rows), cascade.by_stage(rows)[-1]):
        order = order_rows(scores, rows.offsets, rows.docids)
        found = [order[a:b].tolist() for a, b in zip(rows.offsets, rows.offsets[1:], strict=False)]
        assert found == plain(rows, columns, cuts)


@given(sizes_of_queries, sizes_of_stages, st.booleans(), st.integers(0, 10**6))
@settings(max_examples=80, deadline=None)
def test_tails_are_frozen_and_tops_are_permuted(queries: list[int], cuts: list[int], ids: bool, seed: int) -> None:
    rows = collection(np.random.default_rng(seed), queries, ids=ids)
    cascade = Cascade([ByFeature(c) for c in range(len(cuts))], cuts)
    stages = cascade.by_stage(rows)
    for s, scores in enumerate(stages):
        order = order_rows(cascade.through(s + 1).score(rows), rows.offsets, rows.docids)
        np.testing.assert_array_equal(order, order_rows(scores, rows.offsets, rows.docids))
        for low, high in zip(rows.offsets, rows.offsets[1:], strict=False):
            assert sorted(scores[low:high]) == [-rank for rank in range(high - low, 0, -1)]
            if s:
                before = stages[s - 1][low:high]
                below = before < -cuts[s]
                np.testing.assert_array_equal(scores[low:high][below], before[below])
                assert set(scores[low:high][~below]) == set(before[~below])


@given(sizes_of_queries, st.integers(1, 20), st.booleans(), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_one_stage_ranks_as_its_model_does(queries: list[int], size: int, ids: bool, seed: int) -> None:
    rows = collection(np.random.default_rng(seed), queries, ids=ids)
    model = ByFeature(1)
    np.testing.assert_array_equal(Cascade([model], [size]).score(rows), model.score(rows))
    for name in ("nDCG@3", "AP", "RR", "Bpref"):
        measure = parse_measure(name)
        expected = measure.per_query(model.score(rows), rows)
        np.testing.assert_array_equal(measure.per_query(Cascade([model], [size]).score(rows), rows), expected)


def test_stages_larger_than_any_query_leave_the_last_model_s_ranking() -> None:
    rows = collection(np.random.default_rng(1), [3, 0, 7, 1], ids=True)
    scores = Cascade([ByFeature(0), ByFeature(1), ByFeature(2)], [1000, 500, 100]).score(rows)
    np.testing.assert_array_equal(
        order_rows(scores, rows.offsets, rows.docids), order_rows(ByFeature(2).score(rows), rows.offsets, rows.docids)
    )


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e14, 1e300])
def test_scores_of_any_size_are_kept_apart(size: float) -> None:
    rng = np.random.default_rng(4)
    rows = collection(rng, [2500], ids=False)
    scores = size * rng.normal(size=2500)

    @dataclass(frozen=True, eq=False)
    class Large(ByFeature):
        def score(self, candidates: Candidates) -> np.ndarray:
            return scores[candidates.memo.get("rows", slice(None))]

    found = Cascade([Large(0), ByFeature(1)], [2500, 1000]).score(rows)
    tail = np.argsort(-scores)[1000:]
    np.testing.assert_array_equal(found[tail], scores[tail])
    top = np.delete(found, tail)
    assert len(np.unique(top)) == 1000
    assert top.min() > scores[tail].max()
    scores[7] = np.inf
    with pytest.raises(InputError, match="stage 1 gives the score inf"):
        Cascade([Large(0), ByFeature(1)], [2500, 1000]).score(rows)


def test_a_stage_scores_only_what_reaches_it() -> None:
    rows = collection(np.random.default_rng(2), [50, 4, 20], ids=False)
    stages = [ByFeature(c) for c in range(3)]
    Cascade(stages, [40, 10, 5]).score(rows)
    assert [stage.asked for stage in stages] == [[74], [10 + 4 + 10], [5 + 4 + 5]]


def trained() -> tuple[Cascade, Candidates]:
    rng = np.random.default_rng(3)
    rows = collection(rng, [20] * 10, ids=True, levels=50)
    stages = [FeatureSubset(Linear(), ["a", "b"]), Network(3), FeatureSubset(Network(2), ["*"])]
    cascade = Cascade(stages, [20, 10, 4]).prepared(rows, rng)
    return cascade.at(rng.normal(size=len(cascade.params))), rows


def test_a_saved_cascade_comes_back(tmp_path: Path) -> None:
    cascade, rows = trained()
    cascade.save(tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert isinstance(loaded, Cascade)
    assert (loaded.sizes, loaded.params.names) == (cascade.sizes, cascade.params.names)
    np.testing.assert_array_equal(loaded.score(rows), cascade.score(rows))
    for mine, theirs in zip(cascade.stages, loaded.stages, strict=True):
        np.testing.assert_array_equal(mine.score(rows), theirs.score(rows))


def test_parameters_reach_their_stages_and_keep_what_is_fixed_or_shared() -> None:
    cascade, _ = trained()
    first = cascade.stages[0].params
    assert cascade.params.names[: len(first)] == tuple(f"stage1.{name}" for name in first.names)
    fixed = cascade.at(cascade.params.fix("stage1.bias").tie({"both": ["stage1.w.a", "stage2.b3"]}))
    moved = fixed.at(fixed.params.with_free(np.full(len(fixed.params.free_names), 7.0)))
    assert moved.stages[0].params["w.a"] == moved.stages[1].params["b3"] == moved.params["stage1.w.a"] == 7.0
    assert moved.stages[0].params["bias"] == first["bias"]
    held = Cascade([Linear().prepared(trained()[1], 0)], [5])
    stage = held.stages[0].at(held.stages[0].params.fix("bias"))
    assert "stage1.bias" not in Cascade([stage], [5]).params.free_names


def test_a_cascade_needs_what_its_stages_need() -> None:
    @dataclass(frozen=True, eq=False)
    class OfTerms(ByFeature):
        needs: ClassVar[frozenset[str]] = frozenset({"terms"})

    @dataclass(frozen=True, eq=False)
    class OfFeatures(ByFeature):
        needs: ClassVar[frozenset[str]] = frozenset({"features"})

    assert Cascade([OfTerms(0), OfFeatures(1)], [10, 5]).needs == {"terms", "features"}
    assert Cascade([OfTerms(0)], [10]).needs == {"terms"}


def test_columns_show_a_model_the_features_it_is_given() -> None:
    _, rows = trained()
    whole = Candidates.of(rows.labels, group=rows.sizes, features=rows.features[:, :2], feature_names=["a", "b"])
    few, plain_model = FeatureSubset(Linear(), ["b", "a"]).prepared(rows, 5), Linear().prepared(whole, 5)
    np.testing.assert_array_equal(few.score(rows), plain_model.score(whole))
    d = np.arange(len(rows), dtype=float)
    np.testing.assert_array_equal(few.pullback(rows, d), plain_model.pullback(whole, d))
    assert few.linear_in_params
    with pytest.raises(InputError, match="no feature is called 'z\\*'"):
        FeatureSubset(Linear(), ["z*"]).prepared(rows, 0)
    with pytest.raises(InputError, match="candidates lack: b"):
        few.score(Candidates.of([1.0], features=[[1.0]], feature_names=["a"]))


@pytest.mark.parametrize(
    ("stages", "sizes", "said"),
    [
        ([Linear()], [10, 5], "1 stages and 2 sizes"),
        ([], [], "0 stages"),
        ([Linear(), Linear()], [10, 10], "fewer documents than the last"),
        ([Linear(), Linear()], [10, 0], "whole numbers from 1"),
        ([Linear(), Linear()], [10, 2.5], "whole numbers from 1"),
        ([Cascade([Linear()], [5])], [10], "can't be a cascade"),
    ],
)
def test_cascades_that_make_no_sense_are_refused(stages: list[Model], sizes: list[Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Cascade(stages, sizes)


def test_a_cascade_is_trained_by_stages_only_and_saved_when_trained(tmp_path: Path) -> None:
    cascade, rows = trained()
    with pytest.raises(UsageError, match="telescope"):
        cascade.pullback(rows, np.zeros(len(rows)))
    with pytest.raises(UsageError, match="nothing to save"):
        Cascade([Linear()], [5]).save(tmp_path / "m")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('"size": 10', '"size": 20'), "fewer documents"),
        (('"size": 10', '"size": "ten"'), "whole number"),
        (('"kind": "network"', '"kind": "cascade"'), "a model that is no cascade"),
        (('"name": "stage2.b3"', '"name": "stage9.b3"'), "stage9.b3"),
    ],
)
def test_a_damaged_file_says_what_is_wrong(change: tuple[str, str], said: str, tmp_path: Path) -> None:
    trained()[0].save(tmp_path / "m")
    path = tmp_path / "m" / "model.json"
    text = path.read_text()
    assert change[0] in text
    path.write_text(text.replace(*change, 1))
    with pytest.raises(InputError, match=said):
        load_model(tmp_path / "m")
