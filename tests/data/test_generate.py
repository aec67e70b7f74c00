"""Generated collections: drawn from what is stated, the same from the same seed, the best ranking known."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from scipy import stats

import fliprank as fr
from fliprank.data.generate import FIELDS, FieldModel, Generated, WebModel, generate, generate_blocks
from fliprank.experiment.realism import profile

NDCG = fr.parse_measure("nDCG(dcg='exp-log2')@10")


def arrays(found: Generated) -> list[np.ndarray]:
    rows = found.rows
    known = [found.utility, rows.offsets, rows.labels, rows.features]
    if rows.terms is not None:
        terms = rows.terms
        known += [terms.idf, terms.offsets, terms.starts, terms.tf, terms.length, terms.collection, terms.tokens]
    return known  # type: ignore[return-value]


def same(one: Generated, other: Generated) -> bool:
    ids = one.rows.qids.tolist() == other.rows.qids.tolist()
    return ids and all(a.tobytes() == b.tobytes() for a, b in zip(arrays(one), arrays(other), strict=True))


@pytest.fixture(scope="module")
def plain() -> Generated:
    """One population, so that aspects are standard normal in every row."""
    return generate(150, documents=400, populations=1, weak=8, seed=3)


@pytest.mark.parametrize("text", [True, False])
def test_the_same_seed_gives_the_same_bytes_in_blocks_of_any_size(text: bool) -> None:
    model = WebModel(documents=40, weak=5, text=text, seed=5)
    whole = generate(10, model=model)
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    assert same(whole, generate(10, model=model))
    numba.set_num_threads(threads)
    blocks = list(generate_blocks(10, block=3, model=model))
    assert [part.rows.queries for part in blocks] == [3, 3, 3, 1]
    joined = Generated(fr.concat(*(b.rows for b in blocks)), np.concatenate([b.utility for b in blocks]))
    assert same(whole, joined)
    later = generate(4, first=6, model=model)
    assert same(later, Generated(whole.rows.select(np.arange(6, 10)), whole.utility[240:]))
    other = generate(10, model=WebModel(documents=40, weak=5, text=text, seed=6))
    assert not (other.utility == whole.utility).any()


def test_queries_differ_from_one_another() -> None:
    found = generate(200, documents=20, text=False, weak=4)
    assert len(np.unique(found.utility)) == len(found.utility)
    assert found.rows.features is not None
    for column in found.rows.features[:, :2].T:
        assert len(np.unique(column)) > 0.99 * len(column)
    by_query = found.utility.reshape(200, 20)
    assert abs(np.corrcoef(by_query[:-1].ravel(), by_query[1:].ravel())[0, 1]) < 0.06


def test_lengths_are_log_normal_as_stated(plain: Generated) -> None:
    assert plain.rows.terms is not None
    for column, model in zip(plain.rows.terms.length.T, FIELDS, strict=True):
        assert (column == 0).mean() == pytest.approx(model.absent, abs=0.01)
        assert (column == np.round(column)).all()
        drawn = np.random.default_rng(0).lognormal(np.log(model.median), model.spread, 200_000)
        expected = np.maximum(1, np.floor(drawn + 0.5))
        for level in (0.1, 0.25, 0.5, 0.75, 0.9):
            assert np.quantile(column[column > 0], level) == pytest.approx(
                np.quantile(expected, level), rel=0.04, abs=1
            )


@pytest.mark.parametrize("number", range(4), ids=[model.name for model in FIELDS])
def test_term_frequencies_follow_the_field_model(plain: Generated, number: int) -> None:
    """Against the stated distribution, drawn by NumPy with the same lengths and term shares."""
    terms, model = plain.rows.terms, FIELDS[number]
    assert terms is not None
    assert terms.collection is not None
    assert terms.tokens is not None
    rng, of_row = np.random.default_rng(1), np.repeat(np.arange(len(plain.rows)), np.diff(terms.starts))
    place = np.concatenate(
        [np.arange(a, b) for a, b in zip(terms.offsets, terms.offsets[1:], strict=False) for _ in range(400)]
    )
    share = terms.collection[place, number] / terms.tokens[number]
    length = terms.length[of_row, number].astype(np.float64)
    aspect = rng.normal(size=len(plain.rows))[of_row]
    mean = model.base * np.exp(model.slope * aspect) * (length / model.median) ** model.power + share * length
    noisy = mean * rng.gamma(model.shape, 1 / model.shape, len(mean))
    expected = np.where(length > 0, np.minimum(rng.poisson(noisy), length), 0)
    found = terms.tf[:, number].astype(np.float64)
    if model.name == "body":  # a term that is nowhere else is put there once
        elsewhere = terms.tf[:, [f for f in range(4) if f != number]].sum(axis=1) > 0
        expected, found = expected[elsewhere], found[elsewhere]
        length = length[elsewhere]
    assert (found <= length).all()
    for most in (0, 1, 2, 5, 10):
        assert (found <= most).mean() == pytest.approx((expected <= most).mean(), abs=0.012)


def test_every_candidate_has_every_query_term_somewhere(plain: Generated) -> None:
    assert plain.rows.terms is not None
    assert plain.rows.terms.tf.sum(axis=1).min() == 1
    counts = np.diff(plain.rows.terms.offsets)
    assert (counts.min(), counts.max()) == (1, 5)


def test_utilities_are_as_stated() -> None:
    one = generate(200, documents=500, text=False, populations=1).utility
    assert stats.kstest(one[::20], "norm").pvalue > 0.001
    two = generate(400, documents=500, text=False).utility
    # topical 5% on average: 1.5 + N(0, 1.25); others -1 + N(0, 0.25)
    assert two.mean() == pytest.approx(0.05 * 1.5 - 0.95, abs=0.01)
    assert (two > 1).mean() == pytest.approx(0.05 * stats.norm.sf(-0.5 / np.sqrt(1.25)), abs=0.003)


def test_what_match_counts_for_text_can_find() -> None:
    """The more utility is match, the better a ranking by text; a model of quality alone leaves it nothing."""
    values = []
    for weights in ((0.0, 1.0), (1.0, 1.0), (1.0, 0.0)):
        found = generate(60, documents=100, populations=1, weights=weights, seed=2)
        assert found.utility.std() == pytest.approx(1, abs=0.05)
        score = fr.BM25F().prepared(found.rows, 0).score(found.rows).reshape(60, 100)
        pairs = zip(score, found.utility.reshape(60, 100), strict=True)
        values.append(np.mean([np.corrcoef(*pair)[0, 1] for pair in pairs]))
    assert abs(values[0]) < 0.03
    assert values[0] + 0.05 < values[1] < values[2] - 0.03


def test_weak_features_mix_aspects_and_noise_as_stated(plain: Generated) -> None:
    model = WebModel(documents=400, populations=1, weak=8, seed=3)
    weak, features = model.weak_features(), plain.rows.features
    assert features is not None
    assert plain.rows.feature_names == ("pagerank", *(f"f{k}" for k in range(1, 9)))
    signal = (weak.mix.astype(np.float64) ** 2).sum(axis=0) + weak.noise.astype(np.float64) ** 2
    weights = np.r_[np.full(4, 0.5), np.full(4, 0.5)] / np.sqrt(2)  # utility as a sum of aspects
    for k in range(2):  # the plain quarter
        column = features[:, 1 + k].astype(np.float64).reshape(150, 400)
        assert column.var(axis=1).mean() == pytest.approx(signal[k] * np.exp(0.18), rel=0.12)  # E of scale squared
        within = np.mean(
            [np.corrcoef(c, u)[0, 1] for c, u in zip(column, plain.utility.reshape(150, 400), strict=True)]
        )
        assert within == pytest.approx(weights @ weak.mix[:, k] / np.sqrt(signal[k]), abs=0.015)
        standard = (column - column.mean(axis=1, keepdims=True)) / column.std(axis=1, keepdims=True)
        assert abs((standard**3).mean()) < 0.05
        assert (standard**4).mean() == pytest.approx(3.0, abs=0.35)
    cut, counts, logs = features[:, 3:5], features[:, 5:7], features[:, 7:9]
    assert (cut >= 0).all()
    assert (counts == np.floor(counts)).all()
    assert counts.max() <= np.exp(6)
    np.testing.assert_allclose(np.expm1(logs), np.round(np.expm1(logs)), atol=1e-2)
    spread = features[:, 1].reshape(150, 400).std(axis=1)
    assert np.std(np.log(spread)) == pytest.approx(0.3, abs=0.07)  # scales vary by query


def test_pagerank_is_heavy_tailed_and_shows_some_quality(plain: Generated) -> None:
    assert plain.rows.features is not None
    logs = np.log(plain.rows.features[:, 0].astype(np.float64))
    assert logs.std() == pytest.approx(np.sqrt(1 + 0.3**2), rel=0.02)
    expected = 0.3 / np.sqrt(1.09) / (2 * np.sqrt(2))  # one of eight aspects
    assert np.corrcoef(logs, plain.utility)[0, 1] == pytest.approx(expected, abs=0.015)


def test_labels_rise_with_true_utility() -> None:
    exact = generate(40, documents=300, text=False, error=0.0, strictness=0.0)
    rated = ~np.isnan(exact.rows.labels)
    order = np.argsort(exact.utility[rated])
    assert (np.diff(exact.rows.labels[rated][order]) >= 0).all()
    assert set(exact.rows.labels[rated].tolist()) == {0.0, 1.0, 2.0, 3.0, 4.0}
    noisy = generate(100, documents=300, text=False)
    means = [noisy.utility[noisy.rows.labels == level].mean() for level in range(5)]
    assert (np.diff(means) > 0).all()


def test_about_thirty_are_rated_the_top_of_a_basic_ranker_and_a_few_others() -> None:
    found = generate(300, documents=1000, text=False)
    rated = (~np.isnan(found.rows.labels)).reshape(300, 1000)
    assert rated.sum(axis=1).mean() == pytest.approx(30, abs=1)
    rank = np.argsort(np.argsort(-found.utility.reshape(300, 1000), axis=1), axis=1)
    assert 6 < rated[rank >= 100].sum() / 300 < 9  # others, anywhere
    assert rated[rank < 5].mean() > 0.9
    few = generate(5, documents=3, text=False)
    assert not np.isnan(few.rows.labels).any()


def test_no_fitted_model_beats_true_utility_and_tuning_beats_the_defaults() -> None:
    model = WebModel(documents=150, weak=12, seed=8)
    train, test = generate(80, model=model), generate(120, first=80, model=model)
    optimal = NDCG.per_query(test.utility, test.rows)
    default = NDCG.per_query(fr.BM25F().prepared(train.rows, 0).score(test.rows), test.rows)
    options = {"objective": "ranknet", "method": "lbfgs", "sweep": False, "sample": 3}
    tuned = fr.train(fr.BM25F(), train.rows, **options)  # type: ignore[arg-type]
    fitted = {"bm25f": tuned.model}
    for name, each in (("linear", fr.Linear()), ("network", fr.Network(4))):
        fitted[name] = fr.train(each, train.rows, **options).model  # type: ignore[arg-type]
    values = {name: NDCG.per_query(each.score(test.rows), test.rows) for name, each in fitted.items()}
    assert stats.ttest_rel(values["bm25f"], default).pvalue < 0.05
    assert values["bm25f"].mean() > default.mean()
    for value in values.values():
        assert value.mean() < optimal.mean()


def test_language_models_and_stacks_score_the_rows() -> None:
    rows = generate(5, documents=60).rows
    for model in (fr.TwoStageLM(), fr.Stack(fr.BM25F(), fr.Feature("pagerank", transform="log"))):
        assert np.isfinite(model.prepared(rows, 0).score(rows)).all()


def test_other_fields_can_be_given() -> None:
    title = FieldModel("title", 5.0, 0.1, 0.0, 0.0, 0.0, 0.0, 1.0)
    rows = generate(5, documents=60, fields=(FIELDS[0], title, *FIELDS[2:])).rows
    assert rows.terms is not None
    assert rows.terms.tf[:, 1].mean() < 0.01  # what the share of the collection gives


def test_nonsense_is_refused() -> None:
    for settings, words in (
        ({"documents": 0}, "documents=0"),
        ({"populations": 3}, "populations=3"),
        ({"fields": FIELDS[:2]}, "2 fields"),
    ):
        with pytest.raises(fr.UsageError, match=words):
            generate(1, **settings)  # type: ignore[arg-type]
    with pytest.raises(fr.UsageError, match="queries=0"):
        generate(0)
    with pytest.raises(fr.UsageError, match="a model or its settings"):
        generate(1, model=WebModel(), weak=3)


def test_the_profile_of_a_collection() -> None:
    found = profile(generate(20, documents=100).rows)
    assert found["rows per query"] == 100
    assert sum(found[f"share of label {level}"] for level in range(5)) == pytest.approx(1)
    assert found["nDCG@10 of BM25F, rated rows"] > found["nDCG@10 of chance, rated rows"]


def test_a_file_is_generated_and_its_best_ranking_evaluated(tmp_path: Path) -> None:
    def command(*given: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "fliprank", *given], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    told = command("generate", "--queries", "6", "--docs", "40", "--out", "rows.jsonl", "--utility", "best.txt")
    assert "6 queries, 240 rows" in told
    rows = fr.read_statistics(tmp_path / "rows.jsonl")
    whole = generate(6, documents=40)
    assert rows.terms is not None
    assert whole.rows.terms is not None
    np.testing.assert_array_equal(rows.terms.tf, whole.rows.terms.tf)
    np.testing.assert_array_equal(rows.labels, whole.rows.labels)
    assert f"{NDCG.value(whole.utility, whole.rows):.4f}" in command("evaluate", "rows.jsonl", "best.txt")
    command("generate", "--queries", "6", "--docs", "40", "--features", "8", "--first", "6", "--out", "more.parquet")
    more = fr.read_parquet(tmp_path / "more.parquet")
    later = generate(6, first=6, documents=40, weak=8, text=False)
    np.testing.assert_array_equal(more.features, later.rows.features)
