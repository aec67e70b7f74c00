"""What others do to set the weights of a fusion: ranx's search, Optuna's trials, OpenSearch's grid.

Each is given lists and the judgements of training queries, tries what it tries, and keeps what is highest on these
queries. The result is a function that fuses the lists of any judged queries. ranx and Optuna come with the extra
`peers`, and are imported when they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

from fliprank.data.candidates import Candidates
from fliprank.data.fusion_rows import fused_run, fusion_rows
from fliprank.data.trec import Qrels, Run
from fliprank.errors import MissingExtraError
from fliprank.measures import parse_measure
from fliprank.models.fusion import Fusion

__all__ = ["MEASURE", "PEERS", "Fuser", "Peer", "fused_by", "opensearch_grid", "optuna_trials", "ranx_search"]

MEASURE = "nDCG@10"
TRIALS = 100
RANX_NORMS = ("min-max", "max", "sum", "zmuv", "rank", "borda")
"""ranx's ways to normalise that take any scores."""
RANX_STEP, MANY = 0.1, 3
"""The step of its grid by default; lists above which that takes minutes per norm."""

Lists = Mapping[str, Run]
Fuser = Callable[[Qrels], Run]
Peer = Callable[[Lists, Qrels, int], Fuser]
"""From lists, training judgements and a seed to what fuses the lists of other queries."""


def fused_by(model: Fusion, lists: Lists, qrels: Qrels) -> Run:
    """The run of a fusion for the queries of these judgements."""
    rows = fusion_rows(lists, qrels)
    return fused_run(rows, model.score(rows))


def opensearch_grid(lists: Lists, train: Qrels, seed: int) -> Fuser:
    """The 66 variants of OpenSearch's Search Relevance Workbench, which takes two lists: min_max and l2, three means,
    eleven weights in steps of 0.1."""
    rows, names = fusion_rows(lists, train), tuple(lists)
    every = [
        Fusion("opensearch", names, normalise=norm, combine=mean).at([1 - x / 10, x / 10])
        for norm, mean, x in product(
            ("min_max", "l2"), ("arithmetic_mean", "harmonic_mean", "geometric_mean"), range(11)
        )
    ]
    best = max(every, key=lambda model: _value(model, rows))
    return lambda qrels: fused_by(best, lists, qrels)


def optuna_trials(lists: Lists, train: Qrels, seed: int) -> Fuser:
    """100 trials of Optuna's default sampler over the formulas that `fuse` chooses among, with all their parameters."""
    optuna = _imported("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    rows, names = fusion_rows(lists, train), tuple(lists)

    def model_of(trial: Any) -> Fusion:
        model = Fusion("plain", names, normalise=trial.suggest_categorical("normalise", ["minmax", "zscore", "rank"]))
        weights = [trial.suggest_float(f"weight.{name}", 0.0, 1.0) for name in names]
        constants = [trial.suggest_float("k", 1.0, 1000.0, log=True)] if "k" in model.params.names else []
        return model.at([*weights, *constants])

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    study.optimize(lambda trial: _value(model_of(trial), rows), n_trials=TRIALS)
    best = model_of(study.best_trial)
    return lambda qrels: fused_by(best, lists, qrels)


def ranx_search(lists: Lists, train: Qrels, seed: int) -> Fuser:
    """`ranx.optimize_fusion` as it comes (weighted sum, steps of 0.1) for each of its norms; taken is the norm that is
    best on the training queries. Of more than three lists, whose grid has thousands of weights, the norm is chosen by
    steps of 0.2, and its weights by those of 0.1."""
    ranx = _imported("ranx")
    judged = ranx.Qrels({q: {d: int(label) for d, label in own.items()} for q, own in train.to_dict().items()})
    runs = _ranx_runs(ranx, lists, train)

    def search(norm: str, step: float) -> tuple[float, Any]:
        how = {"norm": norm, "method": "wsum"}
        params = ranx.optimize_fusion(judged, runs, **how, metric="ndcg@10", step=step, show_progress=False)
        return float(ranx.evaluate(judged, ranx.fuse(runs, **how, params=params), "ndcg@10")), params

    many = len(lists) > MANY
    found = {norm: search(norm, RANX_STEP * (2 if many else 1)) for norm in RANX_NORMS}
    best = max(found, key=lambda norm: found[norm][0])
    params = search(best, RANX_STEP)[1] if many else found[best][1]

    def fuser(qrels: Qrels) -> Run:
        fused = ranx.fuse(_ranx_runs(ranx, lists, qrels), norm=best, method="wsum", params=params)
        return Run.of({q: dict(own) for q, own in fused.to_dict().items()})

    return fuser


PEERS: dict[str, Peer] = {
    "ranx.optimize_fusion, best norm": ranx_search,
    "Optuna, 100 trials": optuna_trials,
    "OpenSearch's grid of 66": opensearch_grid,
}


def _value(model: Fusion, rows: Candidates) -> float:
    return parse_measure(MEASURE).value(model.score(rows), rows)


def _ranx_runs(ranx: Any, lists: Lists, qrels: Qrels) -> list[Any]:
    """The lists of the judged queries as ranx takes them: each has all queries, and none is empty."""
    out = []
    for name, run in lists.items():
        every = run.to_dict()
        out.append(ranx.Run({q: every.get(q) or {"none": 0.0} for q in qrels.qids.tolist()}, name=name))
    return out


def _imported(name: str) -> Any:
    """The module; raises an error that names the extra if it is not installed."""
    import importlib

    import numba

    config: Any = numba.config
    layer = config.THREADING_LAYER
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingExtraError(name, "peers") from None
    finally:
        config.THREADING_LAYER = layer  # ranx asks for one under which our kernels can't run in threads
