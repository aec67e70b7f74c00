"""Taylor et al. 2008: distributions against samples, fits that no test label can change, folds that do not overlap."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from shared_data import needs_data, quick

import fliprank as fr
from fliprank.experiment.splits import Fold
from fliprank.papers import PARTS, Finding, Setting, find_parts
from fliprank.papers.taylor2008 import fits
from fliprank.papers.taylor2008.corpora import NEEDS, Corpus, corpus
from fliprank.papers.taylor2008.distributions import SCORES, _variation
from fliprank.papers.taylor2008.fits import G10, OBJECTIVES, fit_once, settings_tried, trained

pytestmark = pytest.mark.long

NAMES = [part.name for part in find_parts("taylor2008")]


def run(name: str, cache: Path) -> Finding:
    return PARTS["taylor2008", name].run(Setting(True, {}, cache))


def rows_of(queries: int, seed: int) -> fr.Candidates:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(queries * 8, 3))
    labels = np.clip(np.round(x @ [1.0, -0.5, 0.2] + rng.normal(size=len(x))), 0, 2)
    return fr.Candidates.of(labels, qid=np.repeat([f"s{seed}q{i}" for i in range(queries)], 8), features=x)


@pytest.fixture
def toy() -> Corpus:
    """Two folds, of which the second shares training queries with the first."""
    shared = rows_of(12, 1)
    folds = [
        Fold(fr.concat(shared, rows_of(6, seed)), rows_of(8, seed + 10), rows_of(10, seed + 20)) for seed in (2, 3)
    ]
    return Corpus("toy", "Web", folds, fr.Linear())


def test_every_table_and_figure_of_the_paper_is_there_in_its_order() -> None:
    figures, tables = ["figure1", "figure2", "figure3", "figure5"], ["table1", "table2", "table3"]
    expected = [*figures, "section3.3", "section3.2", "section4.5", *tables, "figure6"]
    assert expected == NAMES


def test_distributions_of_figures_2_and_3_are_those_of_samples(tmp_path: Path) -> None:
    draws = 200_000
    noisy = SCORES + np.random.default_rng(0).normal(size=(draws, 3))
    ranks = np.argsort(np.argsort(-noisy, axis=1), axis=1)
    sampled = np.stack([np.bincount(ranks[:, j], minlength=3) for j in range(3)]) / draws
    found = run("figure3", tmp_path)
    assert found.verdict == "holds"
    true = np.array([row[4] for row in found.rows]).reshape(3, 3)
    assert np.abs(true - sampled).max() < 0.006
    told = {(row[0], row[1]): row for row in run("figure2", tmp_path).rows}
    for j in range(3):
        row = told[f"three documents, document {j + 1}", "true"]
        assert row[2] == pytest.approx(ranks[:, j].mean(), abs=0.01)
        paper = told[f"three documents, document {j + 1}", "the paper's"]
        independent = np.array([r[3] for r in found.rows]).reshape(3, 3)[j]
        assert paper[3] == pytest.approx(np.abs(independent - sampled[j]).sum() / 2, abs=0.006)


def test_total_variation_is_the_largest_difference_over_sets_of_ranks() -> None:
    one, other = np.array([[0.5, 0.3, 0.2]]), np.array([[0.1, 0.6, 0.3]])
    sets = [[i for i in range(3) if bits >> i & 1] for bits in range(8)]
    assert _variation(one, other)[0] == pytest.approx(max(abs(one[0, s].sum() - other[0, s].sum()) for s in sets))


def test_scores_without_noise_have_certain_ranks_and_discounts_bend_as_said(tmp_path: Path) -> None:
    assert run("figure1", tmp_path).verdict == "holds"
    found = run("figure5", tmp_path)
    assert found.verdict == "holds"
    assert found.rows[-1][1:5] == pytest.approx([1 / np.log2(2 + rank) for rank in (0, 1, 4, 9)])


def test_every_setting_that_is_tried_is_an_objective_and_the_soft_ones_have_a_noise(tmp_path: Path) -> None:
    setting = Setting(False, {}, tmp_path)
    counts = {}
    for name in (*OBJECTIVES.values(), "softrank(discount=0.5)"):
        tried = settings_tried(name, setting)
        counts[name] = len(tried)
        for objective, rate in tried:
            parsed = fr.parse_objective(objective)
            assert 0 < rate <= 0.1
            assert parsed.name != "softrank" or parsed.sigma in (0.1, 0.01)
    assert list(counts.values()) == [2, 2, 2, 4, 4]


def test_the_setting_with_the_best_validation_is_taken_and_then_tested(toy: Corpus, tmp_path: Path) -> None:
    setting = Setting(True, {}, tmp_path)
    found = trained(setting, toy, "ranknet")
    for number, fold in enumerate(toy.folds):
        runs = [
            fit_once(setting, toy.model, fold.train, fold.valid, *trial) for trial in settings_tried("ranknet", setting)
        ]
        values = [G10.value(run.model.score(fold.valid), fold.valid) for run in runs]
        best = runs[int(np.argmax(values))]
        assert found.chosen[number].endswith(f"epoch {best.best.number}")
        own = G10.per_query(best.model.score(fold.test), fold.test)
        np.testing.assert_allclose(found.g10[10 * number : 10 * (number + 1)], own)
    assert len(found.training) == 12 + 6 + 6  # those of both folds count once


def test_labels_of_test_queries_change_nothing_that_is_chosen(toy: Corpus, tmp_path: Path) -> None:
    setting = Setting(True, {}, tmp_path)
    plain = trained(setting, toy, "softrank")
    fits._TRAINED.clear()
    rng = np.random.default_rng(5)
    other = [fold._replace(test=replace(fold.test, labels=rng.permutation(fold.test.labels))) for fold in toy.folds]
    changed = trained(replace(setting, cache=tmp_path / "other"), replace(toy, folds=other), "softrank")
    assert changed.chosen == plain.chosen
    np.testing.assert_array_equal(changed.training, plain.training)
    assert not np.array_equal(changed.g10, plain.g10)
    fits._TRAINED.clear()


def test_a_bent_discount_is_what_validation_queries_are_judged_by(toy: Corpus, tmp_path: Path) -> None:
    measure, fold = fr.nDCG(dcg="exp-log2", discount=-0.5), toy.folds[0]
    setting = Setting(True, {}, tmp_path)
    fit = fit_once(setting, toy.model, fold.train, fold.valid, "softrank(discount=-0.5,sigma=1)", 0.1, measure=measure)
    assert fit.best.valid == pytest.approx(measure.value(fit.model.score(fold.valid), fold.valid))
    again = fit_once(
        setting, toy.model, fold.train, fold.valid, "softrank(discount=-0.5,sigma=1)", 0.1, measure=measure
    )
    assert str(again.trail) == str(fit.trail)  # of which NaN is a part


@needs_data
def test_the_gradient_goes_through_the_net_into_bm25f(tmp_path: Path) -> None:
    setting = quick(tmp_path, ["stanford-web"])
    data = corpus(setting, "stanford-web")
    train, valid, _ = data.folds[0]
    start = data.model.prepared(train, 0).params
    text = [f"{field}.{kind}" for field in ("body", "title", "anchor") for kind in "wb"]
    assert [name for name in start.free_names if name in text or name == "k"] == text
    fit = fit_once(setting, data.model, train, valid, "softrank(sigma=1)", 0.1)
    last = dict(zip(fit.model.params.free_names, fit.path[-1], strict=True))
    assert all(last[name] != start[name] for name in text)
    assert len([name for name in start.names if name.startswith("w21.")]) == 6  # three nodes, two inputs


@needs_data
def test_folds_test_every_query_once_and_never_one_that_was_trained_or_validated_on(tmp_path: Path) -> None:
    setting = replace(quick(tmp_path, NEEDS), quick=False)
    for name in ("stanford-web", "mq2008"):
        tested = []
        for train, valid, test in corpus(setting, name).folds:
            sets = [set(part.qids.tolist()) for part in (train, valid, test)]
            assert sum(map(len, sets)) == len(set.union(*sets))
            tested += test.qids.tolist()
        assert len(tested) == len(set(tested))
        assert len(tested) == 784 if name == "mq2008" else 630 < len(tested) < 662


def test_samples_agree_with_the_expectation_and_not_with_independent_contests(tmp_path: Path) -> None:
    found = run("section3.3", tmp_path)
    assert found.verdict == "does not hold"
    rows = {row[0]: row for row in found.rows}
    for row in found.rows:
        assert row[2] == pytest.approx(row[3], abs=3 * (row[5] - row[4]) + 1e-6)
    tie = rows["three documents that tie, one relevant"]
    discounts = 1 / np.log2([2, 3, 4])
    assert tie[1] == pytest.approx(discounts @ [0.25, 0.5, 0.25])  # by hand: two coin flips
    assert tie[2] == pytest.approx(discounts.mean())  # by hand: every rank alike
