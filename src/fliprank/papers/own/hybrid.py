"""BM25F and the weights of a fusion in one fit, against one after the other (docs/fusion.md).

Text is fused with the list of an embedding model by min-max and a weighted sum, 100 documents of each. Cranfield and
CACM: five folds of the queries; each is ranked by fits to the others. SciFact and icecat: fitted to training queries,
tested on others. All figures are of full retrieval over the index.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import fliprank as fr
from fliprank.data.candidates import Candidates
from fliprank.defaults import DEFAULT_MEASURE
from fliprank.experiment.evaluation import evaluate
from fliprank.experiment.significance import randomisation
from fliprank.experiment.splits import folds_of
from fliprank.experiment.task import Queries, Task
from fliprank.experiment.verdict import SURE
from fliprank.models.hybrid import WINDOW
from fliprank.papers.checkpoint import kept
from fliprank.papers.data import some_queries, text_collection
from fliprank.papers.part import Finding, Setting, Verdict, part

__all__ = ["hybrid"]

COLLECTIONS = ("cranfield", "cacm", "scifact", "icecat")
DEFAULT, WEIGHTS, TEXT, SEQUENCE, JOINT = "defaults", "weights", "text", "text, then weights", "both in one fit"
FOLDS = 5


@part("fliprank", "hybrid", "BM25F and fusion weights: in one fit, or one after the other?", needs=COLLECTIONS,
      minutes=15, only_by_name=True)  # fmt: skip
def hybrid(setting: Setting) -> Finding:
    """What each way of tuning gives on queries that it did not see."""
    rows = list[tuple[Any, ...]]()
    for name in COLLECTIONS[: 1 if setting.quick else None]:
        task = text_collection(setting, name, 20 if setting.quick else WINDOW, "dense")
        values = _held_out(setting, name, task)
        gap, gain = (values[JOINT] - values[other] for other in (SEQUENCE, DEFAULT))
        told = [float(gap.mean()), randomisation(gap, seed=setting.seed)]
        told += [float(gain.mean()), randomisation(gain, seed=setting.seed)]
        rows.append((name, len(gap), *(float(each.mean()) for each in values.values()), *told))
    return _finding(rows, setting)


def _held_out(setting: Setting, name: str, task: Task) -> dict[str, np.ndarray]:
    """The measure of each held-out query by each way of tuning."""
    train = some_queries(task.train.rows, 20, setting.seed) if setting.quick else task.train.rows
    if task.test is not None:
        parts = [kept(setting, f"{name}, test", partial(_ranked, setting, task, train, task.test))]
        return {way: np.array(found) for way, found in parts[0].items()}
    parts = []
    for number, fold in enumerate(folds_of(train.queries, FOLDS, setting.seed), 1):
        known = train.select(np.delete(np.arange(train.queries), fold))
        wanted = train.select(fold).qids.tolist()
        texts = {qid: task.train.texts[qid] for qid in wanted}
        assert task.train.qrels is not None
        qrels = task.train.qrels.select([qid in texts for qid in task.train.qrels.qids.tolist()])
        held = Queries(train.select(fold), texts, qrels)
        parts.append(kept(setting, f"{name}, fold {number}", partial(_ranked, setting, task, known, held)))
    return {way: np.concatenate([each[way] for each in parts]) for way in parts[0]}


def _ranked(setting: Setting, task: Task, train: Candidates, held: Queries) -> dict[str, list[float]]:
    """The measure of each held-out query, in one order for all."""
    assert held.qrels is not None
    models = _fits(train, setting)
    runs = {way: task.run(held, model, WINDOW) for way, model in models.items()}
    found = evaluate(held.qrels, runs, [DEFAULT_MEASURE])
    return {way: found.values[way][str(fr.parse_measure(DEFAULT_MEASURE))].tolist() for way in models}


def _fits(train: Candidates, setting: Setting) -> dict[str, fr.Model]:
    """The hybrid by each way of tuning on these rows."""
    recipes: dict[str, Any] = {"measure": DEFAULT_MEASURE, "seed": setting.seed, "folds": 2 if setting.quick else FOLDS}
    start = fr.Hybrid().prepared(train, setting.seed)
    tuned = fr.tune(fr.BM25F(), train, **recipes).model
    with_tuned = start.at(np.concatenate([tuned.params.values, start.fusion.params.values]))
    names = start.params.names[: len(tuned.params)]
    return {
        DEFAULT: start,
        WEIGHTS: fr.tune(start.at(start.params.fix(names)), train, **recipes).model,
        TEXT: with_tuned,
        SEQUENCE: fr.tune(with_tuned.at(with_tuned.params.fix(names)), train, **recipes).model,
        JOINT: fr.tune(start, train, **recipes).model,
    }


def _finding(rows: list[tuple[Any, ...]], setting: Setting) -> Finding:
    better, worse = (sum(sign * row[-4] > 0 and row[-3] < SURE for row in rows) for sign in (1.0, -1.0))
    verdict: Verdict = "does not hold" if worse else "holds" if better else "can't be told at this size"
    ways = (DEFAULT, WEIGHTS, TEXT, SEQUENCE, JOINT)
    return Finding(
        ("collection", "queries", *ways, "one fit - one after the other", "p", "one fit - defaults", "p (defaults)"),
        tuple(rows),
        "Tuning BM25F and the weights in one fit ranks held-out queries better than tuning one after the other.",
        f"One fit is significantly better than one after the other in {better} of {len(rows)} collections,"
        f" significantly worse in {worse} (p < {SURE}, randomisation over queries).",
        verdict,
        {"measure": DEFAULT_MEASURE, "seed": setting.seed, "window": WINDOW, "fusion": "plain: min-max, weighted sum"},
        notes=(
            "Defaults: BM25F as it comes and the dense list, equal weights. Weights, text: only these tuned. cranfield"
            " and cacm: five folds of the queries; scifact and icecat: test queries.",
        ),
    )
