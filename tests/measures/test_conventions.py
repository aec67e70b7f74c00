"""Each convention prints what its tool prints, on random rankings with ties, unjudged documents and empty queries."""

from __future__ import annotations

import warnings

import lightgbm
import numpy as np
import pytest
import pytrec_eval
import ranx
import sklearn.metrics
import xgboost

from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.experiment.evaluation import evaluate
from fliprank.measures.conventions import CONVENTIONS, find_convention

TREC = {
    "P@5": "P_5", "R@10": "recall_10", "AP": "map", "AP@10": "map_cut_10", "Rprec": "Rprec", "RR": "recip_rank",
    "Success@1": "success_1", "nDCG": "ndcg", "nDCG@10": "ndcg_cut_10", "Bpref": "bpref", "SetP": "set_P",
    "SetR": "set_recall", "SetF": "set_F",
}  # fmt: skip


def judged_runs(seed: int, documents: int) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Qrels and a run with ties, unjudged documents, queries without relevant documents, in one but not the other."""
    rng = np.random.default_rng(seed)
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for q in range(12):
        names = [f"d{i}" for i in rng.permutation(documents)]
        if q != 1:
            labels = np.zeros(documents, int) if q == 2 else rng.choice([-1, 0, 0, 0, 1, 2, 3], documents)
            qrels[f"q{q}"] = {name: int(label) for name, label in zip(names, labels, strict=True) if rng.random() < 0.6}
        if q != 3:
            scores = rng.choice([0.1, 0.5, 0.5 + 1e-9, 2.0], documents) if q % 2 else rng.normal(size=documents)
            run[f"q{q}"] = {name: float(s) for name, s in zip(names, scores, strict=True) if rng.random() < 0.7}
    return qrels, run


@pytest.mark.parametrize("seed", range(6))
def test_trec_eval(seed: int) -> None:
    qrels, run = judged_runs(seed, 8 if seed < 3 else 300)
    theirs = pytrec_eval.RelevanceEvaluator(qrels, set(TREC.values())).evaluate(run)
    ours = evaluate(qrels, {"run": run}, list(TREC), convention="trec_eval")
    for name, spelling in TREC.items():
        for qid, value in zip(ours.qids.tolist(), ours.values["run"][name], strict=True):
            if qid in theirs:
                assert value == pytest.approx(theirs[qid][spelling], abs=1e-9), (qid, name)
            else:
                assert np.isnan(value)
        mean = np.mean([values[spelling] for values in theirs.values()])
        assert ours.mean("run", name) == pytest.approx(mean, abs=1e-9)


def test_trec_eval_gmap() -> None:
    qrels, run = judged_runs(7, 50)
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"gm_map"}).evaluate(run)
    logs = [values["gm_map"] for values in theirs.values()]
    ours = evaluate(qrels, {"run": run}, "GMAP", convention="trec_eval")
    assert ours.mean("run", "GMAP") == pytest.approx(pytrec_eval.compute_aggregated_measure("gm_map", logs), abs=1e-9)


@pytest.mark.parametrize("level", [1, 2])
def test_trec_eval_with_a_relevance_level(level: int) -> None:
    qrels, run = judged_runs(11, 60)
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"map", "bpref"}, relevance_level=level).evaluate(run)
    ours = evaluate(qrels, {"run": run}, [f"AP(rel={level})", f"Bpref(rel={level})"], convention="trec_eval")
    for name, spelling in zip(ours.values["run"], ("map", "bpref"), strict=True):
        expected = [theirs[qid][spelling] if qid in theirs else np.nan for qid in ours.qids.tolist()]
        np.testing.assert_allclose(ours.values["run"][name], expected, atol=1e-9)


def rows(seed: int, graded: bool = True) -> tuple[Candidates, np.ndarray]:
    """Rows of judged queries with ties, some without relevant rows."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 40, 15)
    labels = rng.choice([0, 0, 0, 1, 2, 3, 4] if graded else [0, 0, 1], sizes.sum()).astype(float)
    candidates = Candidates.of(labels, group=sizes)
    labels[: sizes[0]] = 0
    scores = np.round(rng.normal(size=len(labels)), 1)
    return Candidates.of(labels, group=sizes), scores if seed % 2 else scores + rng.normal(size=len(candidates))


def means(candidates: Candidates, scores: np.ndarray, measure: str, convention: str) -> float:
    return evaluate(candidates, {"run": scores}, measure, convention=convention).mean("run", measure)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("cutoff", [1, 3, 10, 100])
def test_lightgbm(seed: int, cutoff: int) -> None:
    candidates, scores = rows(seed)

    def data() -> lightgbm.Dataset:
        features = np.zeros((len(candidates), 1))
        return lightgbm.Dataset(features, candidates.labels, group=candidates.sizes, init_score=scores)

    told: dict[str, dict[str, list[float]]] = {}
    settings = {"objective": "lambdarank", "metric": ["ndcg", "map"], "eval_at": [cutoff], "verbosity": -1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lightgbm.train(settings, data(), 1, valid_sets=[data()], callbacks=[lightgbm.record_evaluation(told)])
    theirs = told["valid_0"]
    for measure, metric in (("nDCG", "ndcg"), ("AP", "map")):
        ours = means(candidates, scores, f"{measure}@{cutoff}", "lightgbm")
        assert ours == pytest.approx(theirs[f"{metric}@{cutoff}"][0], abs=1e-9)


def xgboost_says(candidates: Candidates, scores: np.ndarray, metric: str) -> float:
    data = xgboost.DMatrix(np.zeros((len(candidates), 1)), label=candidates.labels)
    data.set_group(candidates.sizes)
    data.set_base_margin(scores)
    booster = xgboost.Booster({"objective": "rank:ndcg", "eval_metric": metric, "base_score": 0.0}, [data])
    return float(booster.eval(data).split(":")[-1])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("cutoff", [1, 3, 10, 100])
def test_xgboost(seed: int, cutoff: int) -> None:
    candidates, scores = rows(seed)
    ours = means(candidates, scores, f"nDCG@{cutoff}", "xgboost")
    assert ours == pytest.approx(xgboost_says(candidates, scores, f"ndcg@{cutoff}"), abs=1e-6)
    binary, scores = rows(seed, graded=False)
    for measure, metric in (("AP", "map"), ("P", "pre")):
        ours = means(binary, scores, f"{measure}@{cutoff}", "xgboost")
        assert ours == pytest.approx(xgboost_says(binary, scores, f"{metric}@{cutoff}"), abs=1e-6)


@pytest.mark.parametrize("tool", ["lightgbm", "xgboost"])
def test_tools_whose_cutoff_depends_on_other_settings_need_one(tool: str) -> None:
    with pytest.raises(UsageError, match="needs a cut-off: nDCG@10, say"):
        find_convention(tool).read("nDCG")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("cutoff", [None, 1, 5])
def test_sklearn(seed: int, cutoff: int | None) -> None:
    candidates, scores = rows(seed)
    at = "" if cutoff is None else f"@{cutoff}"
    ours = evaluate(candidates, {"run": scores}, [f"nDCG{at}", f"DCG{at}"], convention="sklearn").values["run"]
    for q, (low, high) in enumerate(zip(candidates.offsets, candidates.offsets[1:], strict=False)):
        truth, given = [candidates.labels[low:high]], [scores[low:high]]
        ndcg = sklearn.metrics.ndcg_score(truth, given, k=cutoff)
        assert ours[f"nDCG{at}"][q] == pytest.approx(ndcg, abs=1e-9)
        assert ours[f"DCG{at}"][q] == pytest.approx(sklearn.metrics.dcg_score(truth, given, k=cutoff), abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_sklearn_average_precision(seed: int) -> None:
    candidates, scores = rows(seed, graded=False)
    ours = evaluate(candidates, {"run": scores}, "AP", convention="sklearn").values["run"]["AP"]
    for q, (low, high) in enumerate(zip(candidates.offsets, candidates.offsets[1:], strict=False)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = sklearn.metrics.average_precision_score(candidates.labels[low:high], scores[low:high])
        assert ours[q] == pytest.approx(theirs, abs=1e-9)


RANX = {
    "P@5": "precision@5", "R@10": "recall@10", "AP": "map", "AP(rel=2)@10": "map@10-l2", "Rprec": "r-precision",
    "RR": "mrr", "Success@3": "hit_rate@3", "nDCG@10": "ndcg@10", "nDCG(dcg='exp-log2')@10": "ndcg_burges@10",
    "DCG@5": "dcg@5", "RBP(p=0.9)": "rbp.9",
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(2))
def test_ranx(seed: int) -> None:
    qrels, run = judged_runs(seed, 12)
    qrels = {q: {d: max(label, 0) for d, label in docs.items()} for q, docs in qrels.items()}
    theirs = ranx.evaluate(
        ranx.Qrels(qrels), ranx.Run(run), list(RANX.values()), return_mean=False, make_comparable=True
    )
    ours = evaluate(qrels, {"run": run}, list(RANX), convention="ranx")
    order = [sorted(qrels).index(qid) for qid in ours.qids.tolist()]
    for name, spelling in RANX.items():
        np.testing.assert_allclose(ours.values["run"][name], theirs[spelling][order], atol=1e-9, err_msg=name)


def test_letor_leaves_the_second_rank_undiscounted() -> None:
    """LETOR's evaluation script: DCG = g1 + g2 + the sum of g / log2(rank) from rank 3 on; gains 2^label - 1."""
    candidates, scores = rows(1)
    ours = evaluate(candidates, {"run": scores}, ["nDCG@5", "AP"], convention="letor").values["run"]["nDCG@5"]
    for q, (low, high) in enumerate(zip(candidates.offsets, candidates.offsets[1:], strict=False)):
        order = np.argsort(-scores[low:high], kind="stable")[:5]
        discount = 1 / np.log2(np.maximum(np.arange(1, 6), 2))
        gains = 2 ** candidates.labels[low:high] - 1
        best = (np.sort(gains)[::-1][:5] * discount[: min(5, high - low)]).sum()
        expected = (gains[order] * discount[: len(order)]).sum() / best if best else 0.0
        assert ours[q] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", [name for name in CONVENTIONS if name != "fliprank"])
def test_a_measure_that_the_tool_lacks_is_refused_with_those_it_has(name: str) -> None:
    with pytest.raises(UsageError, match=rf"{name} has no measure CorrectPairs; under its convention: .*nDCG"):
        find_convention(name).read("CorrectPairs")


def test_an_unknown_convention_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="unknown convention 'quepid'; there are fliprank, trec_eval"):
        find_convention("quepid")
