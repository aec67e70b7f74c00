"""Engines: the gain that we promise beside the gain in the engine itself, and what is lost by translation.

Each function of each engine that runs here is tuned on training queries. Then the engine indexes the documents, and
answers other queries at its defaults and as tuned: all documents that have some word of the query are compared.
OpenSearch is left out, whose functions are Lucene's own. (docs/engines.md)
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import fliprank as fr
from fliprank.arrays import Ints
from fliprank.defaults import DEFAULT_MEASURE
from fliprank.engines.base import RUNNERS, runner_of
from fliprank.engines.verify import verify
from fliprank.errors import FliprankError
from fliprank.experiment.proving import TuningProof
from fliprank.experiment.results import Proof
from fliprank.experiment.task import Queries, Task
from fliprank.export.functions import FUNCTIONS, engine_model
from fliprank.models import EngineText
from fliprank.papers.checkpoint import kept
from fliprank.papers.data import text_collection
from fliprank.papers.part import Finding, Setting, Verdict, part
from fliprank.text.index import Index

__all__ = ["in_engines", "translated"]

COLLECTIONS = ("icecat", "cranfield", "cacm", "npl")
OF_FIELDS = ("icecat", "scifact", "cranfield", "cacm")
"""Collections whose documents have several fields."""
SAME_AS_LUCENE = ("opensearch",)
SURE = 0.05


def _halves(setting: Setting, name: str) -> Task:
    """Training and test queries: those of the collection, or two halves of its queries."""
    task = text_collection(setting, name, 50 if setting.quick else 200)
    if task.test is not None:
        return task
    drawn = np.random.default_rng(setting.seed).permutation(task.train.rows.queries)
    first, second = np.sort(drawn[::2]), np.sort(drawn[1::2])
    return Task(_some(task.train, first), None, _some(task.train, second), task.index)


def _some(queries: Queries, numbers: Ints) -> Queries:
    rows = queries.rows.select(numbers)
    known = set(rows.qids.tolist())
    assert queries.qrels is not None
    judged = queries.qrels.select([qid in known for qid in queries.qrels.qids.tolist()])
    return Queries(rows, {qid: text for qid, text in queries.texts.items() if qid in known}, judged)


def _tuned(engine: str, function: str, task: Task, setting: Setting) -> tuple[EngineText, TuningProof]:
    """The tuned function, and what cross-validation on the training queries promises."""
    fitted = fr.tune(engine_model(engine, function), task.train.rows, measure=DEFAULT_MEASURE, seed=setting.seed)
    assert isinstance(fitted.model, EngineText)
    return fitted.model, fitted.proof


def _here() -> dict[tuple[str, str], str]:
    """The functions of engines that run here, with the version of each engine."""
    runner_of("sqlite")
    found = {}
    for engine in sorted(set(RUNNERS) - set(SAME_AS_LUCENE)):
        try:
            version = RUNNERS[engine].version()
        except FliprankError:
            continue
        for function in RUNNERS[engine].functions or FUNCTIONS[engine]:
            found[engine, function] = version
    return found


@part("fliprank", "engines", "The gain in the engine itself", needs=COLLECTIONS, minutes=40,
      only_by_name=True)  # fmt: skip
def in_engines(setting: Setting) -> Finding:
    """Promised and shown, engine by engine."""
    rows = list[tuple[Any, ...]]()
    engines = _here()
    for name in COLLECTIONS[: 1 if setting.quick else None]:
        task = _halves(setting, name)
        for (engine, function), version in list(engines.items())[: 2 if setting.quick else None]:
            setting.say(f"{name}: {engine}, {function}")
            found = kept(setting, f"{name}, {engine}, {function}", partial(_shown, engine, function, task, setting))
            rows.append((name, version, function, *found))
    wrong = [row for row in rows if row[4] > 1e-5 or row[5]]
    better, worse = (sum(sign * row[8] > 0 and row[9] < SURE for row in rows) for sign in (1.0, -1.0))
    verdict: Verdict = "does not hold" if wrong or worse else "holds" if better else "can't be told at this size"
    return Finding(
        (
            "collection",
            "engine",
            "function",
            "pairs",
            "error",
            "misplaced",
            "default",
            "tuned",
            "change",
            "p",
            "ours",
            "promised",
            "verdict",
        ),
        tuple(rows),
        "The engine computes what was tuned, and shows the gain that was promised.",
        f"{len(rows)} functions on {len({row[0] for row in rows})} collections: the largest relative difference of a"
        f" score is {max(row[4] for row in rows):.1g}, {sum(row[5] for row in rows)} documents are in another place."
        f" In the engine, tuned is significantly better in {better}, worse in {worse} (p < {SURE})."
        f" {_kept_promises(rows)}",
        verdict,
        {"measure": DEFAULT_MEASURE, "seed": setting.seed},
        notes=(
            "default, tuned, change: in the engine, on queries that tuning did not see; ours: the same change by our"
            " own scoring. promised: the cross-validated change on the training queries, and the verdict on it; where"
            " that is not adopt, `tune` keeps the engine's defaults. Engines get the terms of our analyzer. misplaced:"
            " documents that are in another order, or missing, beyond ties.",
        ),
    )


def _kept_promises(rows: list[tuple[Any, ...]]) -> str:
    """What came of the functions that the verdict on training queries adopts, and of the others."""
    adopted = [row for row in rows if row[-1] == "adopt"]
    if not adopted:
        return "Of none does the verdict on training queries say adopt."
    promised, shown = (float(np.mean([row[place] for row in adopted])) for place in (11, 8))
    lost = sum(row[8] < 0 and row[9] < SURE for row in adopted)
    return (
        f"The verdict on training queries adopts {len(adopted)}: on average it promises {promised:+.4f}, and the engine"
        f" shows {shown:+.4f}; significantly worse: {lost}."
    )


def _shown(engine: str, function: str, task: Task, setting: Setting) -> list[Any]:
    assert isinstance(task.index, Index)
    assert task.test is not None
    assert task.test.qrels is not None
    model, proof = _tuned(engine, function, task, setting)
    found = verify(model, task.index, task.test.texts, task.test.qrels, measure=DEFAULT_MEASURE, depth=len(task.index))
    each = found.agreements.values()
    pairs, error = sum(one.pairs for one in each), max(one.error for one in each)
    wrong = sum(one.misplaced + one.missed for one in each)
    there, here = found.there.comparisons[0], found.here.comparisons[0]
    means = found.there.evaluation.means()
    values = [means[run][there.measure] for run in ("default", "tuned")]
    figures = [pairs, error, wrong, *values, there.difference, there.p["randomisation"], here.difference]
    return [*figures, proof.difference, proof.word]


TRANSLATED = {
    ("lucene", "combined_fields"): fr.BM25F(share_b=True, free_k=True),
    ("lucene", "most_fields"): fr.BM25Sum(),
}
"""Engines' functions, and the function of ours that people would tune in their place."""


@part("fliprank", "translation", "Tuning the engine's own function, or ours and translating", needs=OF_FIELDS,
      minutes=4, only_by_name=True)  # fmt: skip
def translated(setting: Setting) -> Finding:
    """What is lost where parameters of one function are set in another."""
    rows = list[tuple[Any, ...]]()
    for name in OF_FIELDS[: 1 if setting.quick else None]:
        task = _halves(setting, name)
        for engine, function in TRANSLATED:
            setting.say(f"{name}: {function}")
            found = kept(setting, f"{name}, {function}", partial(_lost, engine, function, task, setting))
            rows.append((name, function, *found))
    return Finding(
        ("collection", "function", "default", "translated", "own", "own less translated", "p"),
        tuple(rows),
        "Tuning the engine's own function is better than tuning another one and translating.",
        f"Of {len(rows)} rows the own function is better in {sum(row[5] > 0 for row in rows)}, significantly in "
        f"{sum(row[5] > 0 and row[6] < SURE for row in rows)}; translating is significantly better in "
        f"{sum(row[5] < 0 and row[6] < SURE for row in rows)}.",
        "holds" if any(row[5] > 0 and row[6] < SURE for row in rows) else "can't be told at this size",
        {"measure": DEFAULT_MEASURE, "seed": setting.seed},
    )


def _lost(engine: str, function: str, task: Task, setting: Setting) -> list[float]:
    assert task.test is not None
    test, other = task.test.rows, TRANSLATED[engine, function]
    own, _ = _tuned(engine, function, task, setting)
    fitted = fr.tune(other, task.train.rows, measure=DEFAULT_MEASURE, seed=setting.seed).model
    moved = own.at(_translate(fitted, own))
    scores = [model.score(test) for model in (own.at(own.params.default), moved, own)]
    proof = Proof.of(test, scores[1], scores[2], [DEFAULT_MEASURE])
    before = Proof.of(test, scores[0], scores[2], [DEFAULT_MEASURE]).evaluation.means()["default"]
    [c], means = proof.comparisons, proof.evaluation.means()
    values = [next(iter(before.values())), means["default"][c.measure], means["tuned"][c.measure]]
    return [*values, c.difference, c.p["randomisation"]]


def _translate(ours: fr.Model, own: EngineText) -> Any:
    """Parameters by name; (w, k) and (c w, c k) rank alike, so weights and k are scaled until no weight is below 1."""
    given = {name: float(value) for name, value in zip(ours.params.names, ours.params.values, strict=True)}
    if own.formula.fields == "one_text":
        least = min(given[f"{name}.w"] for name in own.fields or () if given[f"{name}.w"] > 0.0)
        factor = max(1.0, 1.0 / least)
        given |= {name: value * factor for name, value in given.items() if name == "k" or name.endswith(".w")}
        given["b"] = given[f"{(own.fields or ())[0]}.b"]
    values = {name: given[name] for name in own.params.names if name in given}
    return own.params.at(own.params.values).replace(_within(own, values))


def _within(own: EngineText, values: dict[str, float]) -> dict[str, float]:
    """Kept within the engine's bounds."""
    params = own.params
    bounds = {n: (low, high) for n, low, high in zip(params.names, params.lower, params.upper, strict=True)}
    return {name: float(np.clip(value, *bounds[name])) for name, value in values.items()}
