"""A weight per query: the plain formula with other weights for each query, exact gradients, traits by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fusion_formulas import NAMES, random_lists, rows_of

import fliprank as fr
from fliprank.data.list_traits import OF_LISTS, with_traits
from fliprank.models.fusion import AdaptiveFusion, Fusion

SEED = 20261118
ENGINES: list[tuple[str, dict[str, Any], int]] = [
    ("plain", {"normalise": "minmax"}, 3),
    ("elasticsearch-rrf", {}, 3),
    ("opensearch", {"combine": "geometric_mean"}, 3),
    ("opensearch", {"combine": "harmonic_mean", "normalise": "l2"}, 2),
    ("weaviate", {}, 2),
    ("qdrant", {}, 3),
    ("solr", {"method": "edismax"}, 2),
    ("haystack", {}, 2),
]


def smooth_lists(rng: np.random.Generator, count: int) -> fr.Candidates:
    """Lists of all lengths, one of one document and one empty."""
    lists = {}
    for q in range(7):
        each = []
        for _ in range(count):
            docs = rng.choice(15, int(rng.integers(3, 13)), replace=False)
            each.append([(f"d{i}", float(s)) for i, s in zip(docs, rng.gamma(3.0, 1.0, len(docs)), strict=True)])
        lists[f"q{q}"] = each
    lists["q0"][0], lists["q1"][-1] = lists["q0"][0][:1], []
    return rows_of(lists)


def adaptive(case: tuple[str, dict[str, Any], int], rows: fr.Candidates, size: float = 0.2) -> AdaptiveFusion:
    """A model with slopes that are not 0, some large enough to end at the least factor."""
    model = AdaptiveFusion(case[0], NAMES[: case[2]], **case[1]).prepared(rows, 0)
    values, rng = model.params.values.copy(), np.random.default_rng(1)
    plain = len(values) - model.slopes.size
    values[:plain] *= rng.uniform(0.5, 1.0, plain)
    values[plain:] = rng.normal(0, size, len(values) - plain)
    return model.at(values)


@pytest.mark.parametrize("case", ENGINES, ids=lambda case: f"{case[0]}-{case[2]}")
def test_each_query_is_fused_as_the_plain_fusion_with_its_weights_does_it(case: Any) -> None:
    rows = smooth_lists(np.random.default_rng(SEED), case[2])
    model = adaptive(case, rows, 1.5)
    found, weights = model.score(rows), model.query_weights(rows)
    factors = weights / model.weights
    assert factors.min() == pytest.approx(0.05)  # some end there
    assert factors.max() > 1.5
    usual = Fusion(case[0], NAMES[: case[2]], **case[1])
    rest = model.params.values[len(usual.weights) if usual.rule.weights == "each" else 1 : len(usual.params)]
    for q in range(rows.queries):
        one, own = rows.select([q]), weights[q]
        if usual.rule.weights == "share":  # only the ratio counts: the engine is sent a share
            alone = usual.at([own[1] / own.sum()]).score(one) * own.sum()
        else:
            alone = usual.at([*own, *rest]).score(one)
        np.testing.assert_allclose(found[rows.offsets[q] : rows.offsets[q + 1]], alone, rtol=1e-12)


def test_weights_are_linear_in_standardised_traits_until_they_end() -> None:
    rows = with_traits(smooth_lists(np.random.default_rng(SEED), 2), terms=[0.0, 1, 2, 3, 4, 5, 90])
    model = adaptive((*ENGINES[0][:2], 2), rows, 0.5)
    assert rows.lists is not None
    assert rows.lists.traits is not None
    there = rows.lists.statistics[:, :, 0] > 0
    for j, name in enumerate(model.lists):
        factor = np.ones(rows.queries)
        for t, trait in enumerate((*OF_LISTS, "terms")):
            column = rows.lists.traits[:, j, t]
            known = column[there[:, j]]
            away = np.clip((column - known.mean()) / known.std(), -3, 3)
            factor += model.params[f"slope.{name}.{trait}"] * np.where(there[:, j], away, 0.0)
        expected = model.params[f"weight.{name}"] * np.maximum(factor, 0.05)
        np.testing.assert_allclose(model.query_weights(rows)[:, j], expected, rtol=1e-12)


@pytest.mark.parametrize("case", ENGINES, ids=lambda case: f"{case[0]}-{case[2]}")
def test_slopes_of_0_are_the_plain_fusion(case: Any) -> None:
    rows = rows_of(random_lists(np.random.default_rng(SEED), case[2]))
    usual = Fusion(case[0], NAMES[: case[2]], **case[1])
    model = AdaptiveFusion.like(usual).prepared(rows, 0)
    np.testing.assert_allclose(model.score(rows), usual.score(rows), rtol=1e-14)
    given = np.random.default_rng(3).normal(size=len(rows))
    np.testing.assert_allclose(
        model.pullback(rows, given)[: len(usual.params)], usual.pullback(rows, given), rtol=1e-10, atol=1e-12
    )


@pytest.mark.parametrize("size", [0.05, 1.5])
@pytest.mark.parametrize("case", ENGINES, ids=lambda case: f"{case[0]}-{case[2]}")
def test_gradients_are_those_of_finite_differences(case: Any, size: float) -> None:
    rows = smooth_lists(np.random.default_rng(SEED), case[2])
    model = adaptive(case, rows, size)
    given, step = np.random.default_rng(5).normal(size=len(rows)), 1e-6
    found = model.pullback(rows, given)
    assert np.abs(found[-model.slopes.size :]).max() > 1e-4
    for i, name in enumerate(model.params.names):
        up, down = model.params.values.copy(), model.params.values.copy()
        up[i] += step
        down[i] -= step
        slope = float((model.at(up).score(rows) - model.at(down).score(rows)) @ given) / (2 * step)
        assert found[i] == pytest.approx(slope, rel=2e-5, abs=2e-6), name


def test_lines_along_weights_are_exact_and_along_slopes_are_not() -> None:
    rows = smooth_lists(np.random.default_rng(SEED), 3)
    model = adaptive(ENGINES[0], rows)
    along = np.zeros(len(model.params))
    along[:3] = [0.5, -0.25, 1.0]
    moved = model.at(model.params.values + 0.3 * along).score(rows)
    np.testing.assert_allclose(moved, model.score(rows) + 0.3 * model.slope(rows, along), atol=1e-12)
    along[5] = 1.0
    assert not model.linear_along(along)
    with pytest.raises(fr.UsageError, match="linear along the weights"):
        model.slope(rows, along)
    with pytest.raises(fr.UsageError, match="no gradient by the lists"):
        model.backward(rows, np.zeros(len(rows)))


def test_traits_are_what_they_say() -> None:
    """By plain Python, from lists with ties, single hits and empty ones."""
    lists = random_lists(np.random.default_rng(SEED), 3)
    rows = with_traits(rows_of(lists))
    assert rows.lists is not None
    assert rows.lists.traits is not None
    for q, query in enumerate(rows.qids.tolist()):
        each = lists[query]
        for j, own in enumerate(each):
            overlaps = []
            for i, other in enumerate(each):
                if i != j:
                    tops = [{doc for doc, _ in some[:10]} for some in (own, other)]
                    shortest = min(map(len, tops))
                    overlaps.append(len(tops[0] & tops[1]) / shortest if shortest else 0.0)
            scores = [score for _, score in own]
            width = max(scores) - min(scores) if scores else 0.0
            spread = float(np.std(scores)) / width if width else 0.0
            gap = (scores[0] - scores[1]) / width if width else 0.0
            expected = [sum(overlaps) / 2, spread, gap]
            np.testing.assert_allclose(rows.lists.traits[q, j], expected, atol=1e-12)


def test_scores_on_another_scale_have_the_same_traits() -> None:
    lists = random_lists(np.random.default_rng(SEED), 2)
    other = {q: [[(d, 7.0 * s - 3.0) for d, s in one] for one in each] for q, each in lists.items()}
    one, two = (with_traits(rows_of(each)).lists for each in (lists, other))
    assert one is not None
    assert two is not None
    assert one.traits is not None
    assert two.traits is not None
    np.testing.assert_allclose(one.traits, two.traits, atol=1e-9)


def test_taken_rows_keep_their_traits_and_scores() -> None:
    rows = with_traits(smooth_lists(np.random.default_rng(SEED), 3))
    model = adaptive(ENGINES[0], rows)
    kept = np.random.default_rng(1).uniform(size=len(rows)) < 0.5
    np.testing.assert_array_equal(model.score(rows.take(kept)), model.score(rows)[kept])
    both = fr.concat(rows.select([3]), rows.select([5]))
    np.testing.assert_array_equal(model.score(both), model.score(rows.select([3, 5])))
    bare = smooth_lists(np.random.default_rng(SEED), 3)
    np.testing.assert_array_equal(model.score(bare), model.score(rows))  # worked out where they are not there
    with pytest.raises(fr.UsageError, match="not whole lists any more"):
        model.score(bare.take(kept))


def test_a_saved_one_ranks_new_queries(tmp_path: Path) -> None:
    rows = smooth_lists(np.random.default_rng(SEED), 3)
    model = adaptive(ENGINES[0], rows)
    model.save(tmp_path)
    back = fr.load_model(tmp_path)
    assert isinstance(back, AdaptiveFusion)
    others = smooth_lists(np.random.default_rng(7), 3)
    np.testing.assert_array_equal(back.score(others), model.score(others))
    assert back.prepared(others, 0) is back


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('"gap"', "3"), "traits: expected a list of names"),
        (('"centre"', '"middle"'), "centre: expected 3 lines of 3 numbers"),
        (('"lists": ["text", "vector", "clicks"]', '"lists": ["text", "vector"]'), "expected 2 lines of 3 numbers"),
    ],
)
def test_a_damaged_model_file_is_named(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    adaptive(ENGINES[0], smooth_lists(np.random.default_rng(SEED), 3)).save(tmp_path)
    text = " ".join((tmp_path / "model.json").read_text().split()).replace("[ ", "[").replace(" ]", "]")
    assert change[0] in text
    (tmp_path / "model.json").write_text(text.replace(*change))
    with pytest.raises(fr.InputError, match=said):
        fr.load_model(tmp_path)


def test_what_makes_no_sense_is_said() -> None:
    rows = smooth_lists(np.random.default_rng(SEED), 2)
    with pytest.raises(fr.UsageError, match="no weights that could depend on the query"):
        AdaptiveFusion("solr", NAMES[:2]).prepared(rows, 0)
    with pytest.raises(fr.UsageError, match="expected a finite number for each of 7 queries"):
        with_traits(rows, terms=[1.0])
    texts = dict.fromkeys(rows.qids.tolist(), "red shoes")
    model = AdaptiveFusion("plain", NAMES[:2]).prepared(fr.with_query_traits(rows, texts), 0)
    with pytest.raises(fr.UsageError, match="needs terms of each query"):
        model.score(rows)
    with pytest.raises(fr.UsageError, match="these rows have agreement, spread, gap"):
        model.score(with_traits(rows))
    with pytest.raises(fr.UsageError, match="of lists"):
        with_traits(fr.Candidates.of([1, 0]))
