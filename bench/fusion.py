"""The whole of `fliprank fuse`, with nested cross-validation, against searches for weights that validate nothing.

    python bench/fusion.py

Six lists of TREC DL 2019, 100 documents each, min-max, weighted sum, nDCG@10. `ranx.optimize_fusion` tries its grid of
weights as it comes (steps of 0.1: 3,003 combinations) and in steps of 0.2, Optuna 100 trials around ranx.
The training measure is the best that a search found: ours by exact search, flip by flip (`exact_optimum`), which has no
part in a verdict. `bench/fusion_growth.py` shows how the time grows with the queries.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numba
import numpy as np
import optuna
import ranx
from timing import Row, show, timed

import fliprank as fr
from fliprank.experiment.fusing import fuse
from fliprank.experiment.fusion_optimum import exact_optimum

numba.config.THREADING_LAYER = "omp"  # ranx asks for one under which kernels can't run in threads
DATA = Path(__file__).parents[2] / "shared" / "data" / "fusion" / "dl19"
LISTS = ("bm25", "bm25_rm3", "splade", "tasb", "ada2", "repllama")
MEASURE, DEPTH, TRIALS, STEPS = "nDCG@10", 100, 100, (0.1, 0.2)


def rows() -> list[Row]:
    if not DATA.exists():
        return []
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    qrels = fr.read_qrels(DATA / "qrels.txt.gz")
    runs = {name: fr.read_run(DATA / f"{name}.run.gz") for name in LISTS}
    candidates = fr.fusion_rows(runs, qrels, depth=DEPTH)

    def ours() -> object:
        return fuse(runs, qrels, depth=DEPTH, measure=MEASURE, settings={"normalise": "minmax"})

    ours()  # compiles
    seconds, _ = timed(ours, 3)
    model = fr.Fusion("plain", LISTS, normalise="minmax")
    exact_optimum(model, candidates, MEASURE)  # compiles
    exact_seconds, (_, own) = timed(lambda: exact_optimum(model, candidates, MEASURE), 3)
    judged = ranx.Qrels({q: {d: int(s) for d, s in each.items()} for q, each in qrels.to_dict().items()})
    theirs = [ranx.Run(each.to_dict(), name=name) for name, each in runs.items()]

    def figure(weights: list[float]) -> float:
        fused = ranx.fuse(theirs, norm="min-max", method="wsum", params={"weights": tuple(weights)})
        return float(ranx.evaluate(judged, fused, "ndcg@10"))

    def grid(step: float) -> float:
        options = {"norm": "min-max", "method": "wsum", "metric": "ndcg@10", "step": step, "show_progress": False}
        found = ranx.optimize_fusion(judged, theirs, **options)
        return figure(list(found["weights"]))

    def trial(chosen: optuna.Trial) -> float:
        weights = np.array([chosen.suggest_float(name, 0.0, 1.0) for name in LISTS])
        return figure((weights / max(weights.sum(), 1e-9)).tolist())

    figure([1 / 6] * 6)  # compiles
    grids = {step: timed(partial(grid, step), 1) for step in STEPS}
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    trial_seconds, _ = timed(lambda: study.optimize(trial, n_trials=TRIALS), 1)
    what = f"whole fuse, {candidates.queries} queries x {len(LISTS)} lists x {DEPTH}"
    found, best_trial = f"training nDCG@10 {own:.4f}, by exact search", study.best_value
    return [
        *(Row(what, f"ranx.optimize_fusion, steps of {step}", each[0] / seconds, "20") for step, each in grids.items()),
        Row(what, f"Optuna around ranx, {TRIALS} trials", trial_seconds / seconds, "20"),
        Row("the exact optimum alone", f"Optuna around ranx, {TRIALS} trials", trial_seconds / exact_seconds, "1"),
        *(
            Row(found, f"ranx's {value:.4f} in steps of {step}: difference", own - value, "at least 0")
            for step, (_, value) in grids.items()
        ),
        Row(found, f"Optuna's {best_trial:.4f}: difference", own - best_trial, "at least 0"),
    ]


if __name__ == "__main__":
    show(rows())
