"""Tuning against Optuna (100 trials) around full retrieval, to an equal measure.

    python bench/tuning.py

A trial of Optuna sets the parameters, retrieves the top 100 of all training queries and measures nDCG@10: by our own
index, or by bm25s, which scores while it indexes and so must index anew (its tokens are kept). Ours searches the
measure along lines, as Optuna does at points; its time is that of finding the candidates and of the fit, and its figure
is of full retrieval too. The rows "to ours" count Optuna's trials only until it is as good as ours.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import bm25s
import numpy as np
import optuna
import polars as pl
import Stemmer
from timing import Row, show, timed

from fliprank.data.files import read_bytes
from fliprank.data.trec import Run
from fliprank.defaults import DEFAULT_MEASURE
from fliprank.experiment.evaluation import evaluate
from fliprank.experiment.task import Task, open_index, task_of_documents
from fliprank.experiment.training import prepared
from fliprank.experiment.trials import Trial
from fliprank.experiment.tuning import tune
from fliprank.models import BM25, BM25F, Model
from fliprank.models.parameters import Parameters
from fliprank.optimize.methods import Sampled
from fliprank.text.analysis import Analyzer

DATA = Path(__file__).parents[2] / "shared" / "data" / "text"
TRIALS, TOP = 100, 100
DIRECT = [Trial(None, (Sampled(),))]
Search = Callable[[Parameters], "Run | dict[str, dict[str, float]]"]


def rows() -> list[Row]:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    out = []
    with tempfile.TemporaryDirectory() as place:
        for name, split, model in (("scifact", "train", BM25F()), ("npl", "test", BM25())):
            if (DATA / name).exists():
                index = open_index(DATA / name, Path(place), None, Analyzer())
                out += compare(name, index, DATA / name / "qrels" / f"{split}.tsv", model)
    return out


def compare(name: str, index: object, qrels: Path, model: Model) -> list[Row]:
    def ours(**options: object) -> tuple[Task, Model]:
        task = task_of_documents(index, qrels.parents[1], qrels)
        return task, tune(model, task.train.rows, measure=DEFAULT_MEASURE, **options).model

    ours(recipes=DIRECT)  # compiles
    seconds, (task, tuned) = timed(lambda: ours(recipes=DIRECT), 3)
    every, (_, blended) = timed(ours, 1)
    ready = prepared(model, task.train.rows)
    texts = task.train.texts

    def figure(found: object) -> float:
        return evaluate(task.train.qrels, {"run": found}, [DEFAULT_MEASURE]).means()["run"][DEFAULT_MEASURE]

    def by_index(params: Parameters) -> Run:
        return index.search(texts, ready.at(params), depth=TOP)

    engines: dict[str, Search] = {"our own retrieval": by_index}
    if model.kind == "bm25":
        engines["bm25s"] = with_bm25s(DATA / name, texts)
    found, first = figure(by_index(tuned.params)), figure(by_index(ready.params))
    what, out = f"{model.kind} on {name}, {len(texts)} queries", []
    for engine, search in engines.items():
        theirs, values = optimised(lambda params, search=search: figure(search(params)), ready.params)
        told = f"nDCG@10 {found:.4f} ours, {max(values):.4f} Optuna's, {first:.4f} default"
        reached = next((i + 1 for i, value in enumerate(values) if value >= found), None)
        when = f"Optuna is as good at trial {reached}" if reached else "Optuna is never as good"
        out += [
            Row(f"tune {what}: {told}", f"Optuna around {engine}, {TRIALS} trials", theirs / seconds, "20"),
            Row(f"the same, to ours: {when}", engine, theirs * (reached or TRIALS) / TRIALS / seconds, "20"),
        ]
        if engine == "our own retrieval":
            told = f"{figure(by_index(blended.params)):.4f}, a mean of several recipes with a prior"
            out.append(Row(f"the same by all recipes, cross-validated: {told}", "100 trials", theirs / every, "-"))
    return out


def optimised(figure: Callable[[Parameters], float], params: Parameters) -> tuple[float, list[float]]:
    """Optuna's time, and the figure of each of its trials."""

    def trial(chosen: optuna.Trial) -> float:
        values = [
            chosen.suggest_float(each, 0, 1) if each.endswith("b") else chosen.suggest_float(each, 0.05, 10, log=True)
            for each in params.free_names
        ]
        return figure(params.with_free(values))

    figure(params)  # compiles
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    seconds, _ = timed(lambda: study.optimize(trial, n_trials=TRIALS), 1)
    return seconds, [each.value for each in study.trials if each.value is not None]


def with_bm25s(folder: Path, texts: dict[str, str]) -> Search:
    """Retrieval by bm25s with the parameters k and b."""
    documents = pl.read_ndjson(read_bytes(folder / "corpus.jsonl").tobytes(), infer_schema_length=None)
    stem = Stemmer.Stemmer("english")
    ids, bodies = np.array(documents["_id"].to_list()), documents.select(pl.exclude("_id").fill_null("")).rows()
    tokens = bm25s.tokenize([" ".join(body) for body in bodies], stopwords="en", stemmer=stem, show_progress=False)
    asked = bm25s.tokenize(list(texts.values()), stopwords="en", stemmer=stem, show_progress=False, return_ids=False)

    def search(params: Parameters) -> dict[str, dict[str, float]]:
        engine = bm25s.BM25(method="lucene", k1=params["k"], b=params["b"], backend="numba")
        engine.index(tokens, show_progress=False)
        found, scores = engine.retrieve(asked, k=TOP, show_progress=False)
        pairs = zip(texts, ids[found].tolist(), scores.tolist(), strict=True)
        return {qid: dict(zip(docs, each, strict=True)) for qid, docs, each in pairs}

    return search


if __name__ == "__main__":
    show(rows())
