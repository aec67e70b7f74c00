"""Tuning against Optuna (100 trials) around full retrieval, at the measure that Optuna reaches.

    python bench/tuning.py

A trial of Optuna sets the parameters, retrieves the top 100 of all training queries by our own index and measures
nDCG@10; so does the last figure of ours. Our time is that of candidates and fit, without cross-validation.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import optuna
from timing import Row, show, timed

from fliprank.experiment.evaluation import evaluate
from fliprank.experiment.recipes import Recipe
from fliprank.experiment.training import DEFAULT_MEASURE
from fliprank.experiment.tuning import prepare, tune
from fliprank.experiment.tuning_task import Task, open_index, task_of_documents
from fliprank.models import BM25, BM25F, Model
from fliprank.text.analysis import Analyzer

DATA = Path(__file__).parents[2] / "shared" / "data" / "text"
TRIALS, TOP = 100, 100
RECIPE = Recipe("softndcg(sigma=0.3)", 0.001, climb=True)


def rows() -> list[Row]:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    out = []
    with tempfile.TemporaryDirectory() as place:
        for name, split, model in (("scifact", "train", BM25F()), ("npl", "test", BM25())):
            if not (DATA / name).exists():
                continue
            index = open_index(DATA / name, Path(place), None, Analyzer())
            out += compare(name, index, DATA / name / "qrels" / f"{split}.tsv", model)
    return out


def compare(name: str, index: object, qrels: Path, model: Model) -> list[Row]:
    def ours() -> tuple[Task, Model]:
        task = task_of_documents(index, qrels.parents[1], qrels)
        return task, tune(model, task.train.rows, measure=DEFAULT_MEASURE, recipes=[RECIPE], starts=1).model

    ours()  # compiles
    seconds, (task, tuned) = timed(ours, 1)
    ready = prepare(model, task.train.rows)

    def figure(each: Model) -> float:
        run = index.search(task.train.texts, each, depth=TOP)
        return evaluate(task.train.qrels, {"run": run}, [DEFAULT_MEASURE]).means()["run"][DEFAULT_MEASURE]

    def trial(chosen: optuna.Trial) -> float:
        free = ready.params.free_names
        values = [
            chosen.suggest_float(each, 0, 1) if each.endswith("b") else chosen.suggest_float(each, 0.05, 10, log=True)
            for each in free
        ]
        return figure(ready.at(ready.params.with_free(values)))

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    theirs, _ = timed(lambda: study.optimize(trial, n_trials=TRIALS), 1)
    found = figure(tuned)
    what = f"{model.kind} on {name}, {len(task.train.texts)} queries"
    told = f"nDCG@10 {found:.4f} ours, {study.best_value:.4f} Optuna's, {figure(ready):.4f} default"
    reached = next((i + 1 for i, t in enumerate(study.trials) if t.value is not None and t.value >= found), None)
    when = f"Optuna passes ours at trial {reached}" if reached else "Optuna never reaches ours"
    return [
        Row(f"tune {what}: {told}", f"Optuna, {TRIALS} trials", theirs / seconds, "20"),
        Row(f"the same, to ours at most: {when}", "Optuna", theirs * (reached or TRIALS) / TRIALS / seconds, "20"),
    ]


if __name__ == "__main__":
    show(rows())
