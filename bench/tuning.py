"""The whole of `fliprank tune` against Optuna's 100 trials, which validate nothing.

    python bench/tuning.py

Ours is all that the command does once there is an index: candidates, what comes up, fits, cross-validation, proof on
test queries, ranges, the learning curve, files. A trial of Optuna sets the parameters, ranks the training queries and
measures nDCG@10: over the whole index (top 100), or of the rows of the file where there is no index. Test queries are
looked at once, by both.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import optuna
import polars as pl
import Stemmer
from timing import Row, show, timed

from fliprank.data.files import read_bytes
from fliprank.data.term_statistics_jsonl import read_statistics
from fliprank.data.trec import read_qrels
from fliprank.defaults import DEFAULT_MEASURE
from fliprank.experiment.evaluation import evaluate
from fliprank.experiment.jobs import tune_and_write
from fliprank.experiment.task import JudgedQueries, Queries, Task, open_index, task_of_judged_queries
from fliprank.measures import parse_measure
from fliprank.models import BM25, BM25F, Feature, Model, Stack
from fliprank.models.parameters import Parameters
from fliprank.text.analysis import Analyzer
from fliprank.text.search.queries import read_queries

DATA = Path(__file__).parents[2] / "shared" / "data" / "text"
TRIALS, TOP = 100, 100
MEASURE = parse_measure(DEFAULT_MEASURE)
Figure = Callable[[Model], float]


@contextmanager
def silent(name: str) -> Any:
    yield None


def rows() -> list[Row]:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    out = []
    with tempfile.TemporaryDirectory() as place:
        for name, model in (("scifact", BM25F()), ("npl", BM25()), ("icecat", BM25F())):
            if (DATA / name).exists():
                out += by_retrieval(name, model, Path(place))
        if (DATA / "stanford-web").exists():
            out += by_rows(Stack(BM25F(), Feature("pagerank", transform="log")), Path(place))
    return out


def by_retrieval(name: str, model: Model, place: Path) -> list[Row]:
    """NPL has one set of judgements: half of its queries are the test."""
    index = open_index(DATA / name, place, None, Analyzer())
    folder, texts = DATA / name / "qrels", read_queries(DATA / name)
    if name == "npl":
        every = read_qrels(folder / "test.tsv")
        half = np.random.default_rng(0).permutation(len(every.qids)) % 2 == 0
        judged = {"train": ("test.tsv", every.select(half)), "test": ("test.tsv", every.select(~half))}
    else:
        judged = {part: (f"{part}.tsv", read_qrels(folder / f"{part}.tsv")) for part in ("train", "test")}

    def task() -> Task:
        return task_of_judged_queries(index, JudgedQueries(texts, judged))

    def figure(queries: Queries) -> Figure:
        return lambda found: _mean(queries, index.search(queries.texts, found, depth=TOP))

    seconds, out = compare(name, model, task, figure, place, "our own retrieval")
    if model.kind == "bm25":
        train = task().train
        search = with_bm25s(DATA / name, train.texts)
        theirs, _ = optimised(lambda params: _mean(train, search(params)), model.prepared(train.rows, 0).params)
        out.append(Row(f"the same, {name}", f"Optuna around bm25s, {TRIALS} trials", theirs / seconds, "10"))
    return out


def _mean(queries: Queries, run: Any) -> float:
    return evaluate(queries.qrels, {"run": run}, [DEFAULT_MEASURE]).means()["run"][DEFAULT_MEASURE]


def by_rows(model: Model, place: Path) -> list[Row]:
    train, test = (read_statistics(DATA / "stanford-web" / f"{part}.jsonl") for part in ("2014-train", "2014-dev"))

    def figure(queries: Queries) -> Figure:
        return lambda found: MEASURE.value(found.score(queries.rows), queries.rows)

    task = Task(Queries(train), test=Queries(test))
    return compare("stanford-web", model, lambda: task, figure, place, "the same rows")[1]


def compare(
    name: str, model: Model, task: Callable[[], Task], figure: Callable[[Queries], Figure], place: Path, around: str
) -> tuple[float, list[Row]]:
    """Our seconds, and how both did."""

    def ours() -> Any:
        return tune_and_write(model, task(), place / name, silent, measure=MEASURE)

    ours()  # compiles
    seconds, result = timed(ours, 3)
    known = task()
    assert known.test is not None
    ready = model.prepared(known.train.rows, 0)
    train, test = figure(known.train), figure(known.test)
    theirs, best = optimised(lambda params: train(ready.at(params)), ready.params)
    tuned, other, first = (test(each) for each in (result.fit.model, ready.at(best), ready))
    what = f"{model.kind} on {name}, {known.train.rows.queries} queries"
    told = f"test nDCG@10 {tuned:.4f}, Optuna's {other:.4f}, default {first:.4f}; {result.verdict.word}"
    return seconds, [
        Row(f"whole tune of {what}", f"Optuna around {around}, {TRIALS} trials", theirs / seconds, "10"),
        Row(f"its {told}", "Optuna's: difference", tuned - other, "at least 0"),
    ]


def optimised(figure: Callable[[Parameters], float], params: Parameters) -> tuple[float, Parameters]:
    """Optuna's time, and the best parameters of its trials."""

    def trial(chosen: optuna.Trial) -> float:
        values = [
            chosen.suggest_float(each, 0, 1) if each.endswith("b") else chosen.suggest_float(each, 0.05, 10, log=True)
            for each in params.free_names
        ]
        return figure(params.with_free(values))

    figure(params)  # compiles
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    seconds, _ = timed(lambda: study.optimize(trial, n_trials=TRIALS), 1)
    return seconds, params.with_free([study.best_params[each] for each in params.free_names])


def with_bm25s(folder: Path, texts: dict[str, str]) -> Callable[[Parameters], dict[str, dict[str, float]]]:
    """Retrieval by bm25s with the parameters k and b: it scores while it indexes, and so must index anew."""
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
