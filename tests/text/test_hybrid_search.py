"""Lists of other retrievers beside an index: rows, notes, errors; retrieval equals fusing the runs themselves."""

from __future__ import annotations

import re

import numpy as np
import pytest

import fliprank as fr
from fliprank.data.builtin import collection
from fliprank.errors import InputError, UsageError

DOCS = [{"_id": "a", "t": "red shoe"}, {"_id": "b", "t": "blue shoe"}, {"_id": "c", "t": "sky"}]


@pytest.fixture(scope="module")
def help_pages() -> fr.Index:
    return fr.Index.build(collection())


@pytest.fixture(scope="module")
def dense(help_pages: fr.Index) -> dict[str, dict[str, float]]:
    """Thirty random documents of each query, most of which no term matches."""
    rng, ids = np.random.default_rng(0), help_pages.docids.tolist()
    qids = help_pages.search(collection(), depth=1).qids.tolist()
    return {q: {ids[i]: float(s) for i, s in zip(rng.permutation(len(ids))[:30], rng.normal(size=30), strict=True)}
            for q in qids}  # fmt: skip


@pytest.mark.parametrize("window", [5, 40])
def test_hybrid_retrieval_is_the_fusion_of_both_runs(
    window: int, help_pages: fr.Index, dense: dict[str, dict[str, float]]
) -> None:
    rows = help_pages.candidates(collection(), runs={"dense": dense}, depth=window, ranker=fr.BM25F())
    model = fr.Hybrid(window=window).prepared(rows, 0)
    model = model.at(model.params.replace({"weight.text": 2.0, "title.w": 3.0}))
    found = help_pages.search(collection(), model, runs={"dense": dense}, depth=12).to_dict()
    text = help_pages.search(collection(), model.text, depth=window)
    both = fr.fusion_rows({"text": text, "dense": dense}, depth=window)
    fused = fr.Fusion("plain", ["text", "dense"]).at([2.0, 1.0]).score(both)
    expected = fr.fused_run(both, fused, depth=12).to_dict()
    assert found.keys() == expected.keys()
    for qid, documents in expected.items():
        assert list(found[qid]) == list(documents)
        assert list(found[qid].values()) == pytest.approx(list(documents.values()))


def test_rows_are_the_union_and_lists_stand_beside_them() -> None:
    index = fr.Index.build(DOCS)
    runs = {"dense": {"q": {"c": 0.9, "b": 0.3, "zz": 1.0}, "p": {"c": 1.0}, "x": {"a": 1.0}}}
    pool = index.pool({"q": "red", "p": "the", "r": "sky"}, {"q": {"a": 1}, "p": {"c": 1}, "r": {"c": 2}}, runs=runs)
    rows = pool.candidates
    assert rows.lists is not None
    assert rows.docids is not None
    assert rows.docids.tolist() == ["a", "c", "b", "c", "c"]
    np.testing.assert_array_equal(rows.lists.scores[:, 0], [np.nan, 0.9, 0.3, 1.0, np.nan])
    assert rows.lists.ranks[:, 0].tolist() == [0, 1, 2, 1, 0]
    np.testing.assert_array_equal(rows.labels, [1, np.nan, np.nan, 1, 2])
    assert not len(rows.missed_labels)  # a query without terms has rows of the other list
    assert pool.run_notes == (
        "1 of 4 documents of dense are not in the index, and left out: zz",
        "dense has nothing for 1 of 3 queries: r",
    )
    model = fr.Hybrid().prepared(rows, 0)
    assert model.score(rows).tolist() == [0.5, 1.0, 0.0, 0.5, 0.5]


def test_depth_cuts_each_list_before_it_is_normalised() -> None:
    index = fr.Index.build(DOCS)
    rows = index.candidates({"q": "red"}, runs={"dense": {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}}, depth=2)
    assert rows.docids is not None
    assert rows.lists is not None
    assert (rows.docids.tolist(), rows.lists.scores[:, 0].tolist()) == (["a", "b"], [3.0, 2.0])


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ({"dense": {"x": {"a": 1.0}}}, "the list dense has none of the queries"),
        ({"dense": {"q": {"z1": 1.0, "z2": 0.5}}}, "no document of the list dense is in the index"),
        ({}, "there are no runs"),
    ],
)
def test_lists_that_do_not_fit_are_refused(runs: dict[str, dict[str, dict[str, float]]], said: str) -> None:
    with pytest.raises((InputError, UsageError), match=said):
        fr.Index.build(DOCS).candidates({"q": "red"}, runs=runs)


def test_a_hybrid_needs_runs_and_runs_a_hybrid() -> None:
    index, runs = fr.Index.build(DOCS), {"dense": {"q": {"c": 0.9, "b": 0.3}}}
    model = fr.Hybrid().prepared(index.candidates({"q": "red"}, runs=runs), 0)
    with pytest.raises(UsageError, match=re.escape("give them by --run (runs=): dense")):
        index.search({"q": "red"}, model)
    with pytest.raises(UsageError, match="for a hybrid, not for bm25"):
        index.search({"q": "red"}, fr.BM25(), runs=runs)
    with pytest.raises(UsageError, match="these rows have splade"):
        index.search({"q": "red"}, model, runs={"splade": runs["dense"]})
