"""Evaluation, side by side with ranx and pytrec_eval in one run: from arrays, from a run file, and as rows grow."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytrec_eval
import ranx
from timing import Row, best, show, timed

import fliprank as fr
from fliprank.experiment.evaluation import evaluate

MEASURES = ["nDCG@10", "AP", "RR"]
THEIRS = {"ndcg_cut_10", "map", "recip_rank"}
DEPTH, JUDGED = 1000, 50


def collection(queries: int) -> tuple[fr.Qrels, fr.Run]:
    """A run of `queries` x 1000 documents and 50 judgements a query, of which about 40 are retrieved."""
    rng = np.random.default_rng(0)
    qids = [f"{q + 1}" for q in range(queries)]
    documents = np.array([f"doc{d:07d}" for d in range(100_000)])
    run, qrels = {}, {}
    for qid in qids:
        found = documents[rng.choice(len(documents), DEPTH, replace=False)]
        run[qid] = dict(zip(found.tolist(), rng.normal(size=DEPTH).tolist(), strict=True))
        judged = np.concatenate([found[rng.choice(DEPTH, JUDGED - 10, replace=False)], documents[:10]])
        qrels[qid] = dict(zip(judged.tolist(), rng.choice([0, 0, 1, 2], JUDGED).tolist(), strict=True))
    return fr.Qrels.of(qrels), fr.Run.of(run, name="bench")


def rows() -> list[Row]:
    qrels, run = collection(10_000)
    joined = fr.judge(qrels, run)
    ours = best(lambda: evaluate(joined.candidates, joined.scores, MEASURES))
    as_dicts = (qrels.to_dict(), run.to_dict())
    their_qrels, their_run = ranx.Qrels(_whole(as_dicts[0])), ranx.Run(as_dicts[1])
    ranx_names = ["ndcg@10", "map", "mrr"]
    ranx_time = best(lambda: ranx.evaluate(their_qrels, their_run, ranx_names))
    evaluator = pytrec_eval.RelevanceEvaluator(_whole(as_dicts[0]), THEIRS)
    trec_time = best(lambda: evaluator.evaluate(as_dicts[1]), 2)
    size = "10,000 queries x 1,000 documents, nDCG@10 + AP + RR"
    found = [
        Row(f"{size}: from arrays", "ranx.evaluate on its own Qrels and Run", ranx_time / ours, ">= 3"),
        Row(f"{size}: from arrays", "pytrec_eval on its dicts", trec_time / ours, ">= 10"),
        *_from_files(qrels, run, size),
        *_growth(),
    ]
    return found


def _whole(labels: dict[str, dict[str, float]]) -> dict[str, dict[str, int]]:
    return {q: {d: int(label) for d, label in documents.items()} for q, documents in labels.items()}


def _from_files(qrels: fr.Qrels, run: fr.Run, size: str) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        qrels_path, run_path = Path(folder) / "qrels", Path(folder) / "run"
        fr.write_qrels(qrels_path, qrels)
        fr.write_run(run_path, run)

        def peer() -> None:
            with qrels_path.open() as judged, run_path.open() as ranked:
                evaluator = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(judged), THEIRS)
                evaluator.evaluate(pytrec_eval.parse_run(ranked))

        ours = best(lambda: evaluate(qrels_path, run_path, MEASURES), 3)
        return [Row(f"{size}: from a TREC run file", "pytrec_eval, parsing included", timed(peer, 2)[0] / ours, ">= 5")]


def _growth() -> list[Row]:
    """Time a row at three sizes, in units of the smallest: 1 is linear growth."""
    times = []
    for queries in (1_000, 4_000, 16_000):
        rng = np.random.default_rng(1)
        labels = np.where(rng.random(queries * DEPTH) < 0.05, rng.integers(0, 3, queries * DEPTH), np.nan)
        candidates = fr.Candidates.of(labels, group=[DEPTH] * queries)
        scores = rng.normal(size=len(labels))
        times.append(best(lambda: evaluate(candidates, scores, MEASURES)) / queries)  # noqa: B023
    names = ("4,000", "16,000")
    return [
        Row(f"time a row, {n} x 1,000", "1,000 x 1,000", t / times[0], "about 1")
        for n, t in zip(names, times[1:], strict=True)
    ]


if __name__ == "__main__":
    show(rows())
