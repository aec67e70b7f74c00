"""Does `fliprank fuse` say "adopt" where nothing is to be gained? Simulated collections in which the truth is known.

A retriever returns the 50 documents of a query that it scores highest, of 100, and sees a document's label through
noise. Four worlds, 20 to 60 queries each:

    noise       the second list has 50 documents at random, in random order: nothing is better than the first alone
    alike       two retrievers with the same noise: fusing them helps, but no weights are better than equal ones
    three       two alike, and a list at random: the first two alike are better than equal weights of all three, so
                that adopting is right; here the verdict should be right often
    per query   two retrievers alike: what lists tell of a query says nothing about which of them is better there

In the first, second and last a verdict "adopt" (of a weight per query, in the last) is a false alarm.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from fliprank.experiment.fusing import fuse
from fliprank.papers.checkpoint import kept
from fliprank.papers.part import Finding, Setting, Verdict, part

__all__ = ["calibration", "world"]

MEASURE = "nDCG@10"
DOCUMENTS, DEPTH, SIGHT = 100, 50, 2.0
COLLECTIONS, QUICK_COLLECTIONS, ALARMS = {"noise": 200, "alike": 100, "three": 20, "per query": 100}, 2, 0.05

WORLDS: dict[str, tuple[float, ...]] = {
    "noise": (SIGHT, 0.0),
    "alike": (SIGHT, SIGHT),
    "three": (SIGHT, SIGHT, 0.0),
    "per query": (SIGHT, SIGHT),
}
"""How well each list sees labels."""
RIGHT = ("three",)
"""Where adopting is right."""


def world(sights: tuple[float, ...], seed: int) -> tuple[dict[str, dict[str, dict[str, float]]], dict[str, Any]]:
    """Lists and judgements of one collection; all documents are judged."""
    rng = np.random.default_rng(seed)
    queries = int(rng.integers(20, 61))
    labels = rng.choice([0, 1, 2], (queries, DOCUMENTS), p=[0.9, 0.06, 0.04])
    lists = {}
    for number, sight in enumerate(sights):
        scores = sight * labels + rng.normal(size=labels.shape)
        scores = (scores + 5.0) * 10.0**number  # each on a scale of its own
        best = np.argsort(-scores, axis=1)[:, :DEPTH]
        lists[f"list{number + 1}"] = {
            f"q{q}": {f"d{d}": float(scores[q, d]) for d in best[q].tolist()} for q in range(queries)
        }
    judged = {f"q{q}": {f"d{d}": int(label) for d, label in enumerate(labels[q])} for q in range(queries)}
    return lists, judged


@part("fliprank", "fusion-calibration", "How often fuse adopts what is no better", minutes=8, only_by_name=True)
def calibration(setting: Setting) -> Finding:
    """The share of collections of each world in which the verdict is "adopt"."""
    rows, alarms = list[tuple[Any, ...]](), dict[str, float]()
    for name in WORLDS:
        count = QUICK_COLLECTIONS if setting.quick else COLLECTIONS[name]
        found = [
            kept(setting, f"{name} {number + 1}", partial(_one, name, setting.seed + number)) for number in range(count)
        ]
        adopted = sum(each["adopted"] for each in found)
        if name not in RIGHT:
            alarms[name] = adopted / count
        truth = "adopt" if name in RIGHT else "leave alone"
        mean = float(np.mean([each["difference"] for each in found]))
        rows.append((name, truth, count, adopted, adopted / count, mean))
    worst = max(alarms, key=lambda name: alarms[name])
    verdict: Verdict = "holds" if alarms[worst] <= ALARMS else "does not hold"
    return Finding(
        ("world", "right is", "collections", "adopted", "share", "mean difference held out"),
        tuple(rows),
        "Where nothing is to be gained, `fuse` says adopt in at most 5% of collections.",
        f"The largest share of false alarms is {alarms[worst]:.3f} (world: {worst}).",
        verdict if not setting.quick else "can't be told at this size",
        {"measure": MEASURE, "seed": setting.seed, "documents": DOCUMENTS, "depth": DEPTH, "sight": SIGHT},
        notes=(
            "20 to 60 queries each. noise: the second list is random. alike: two lists that are equally good, with"
            " noise of their own. three: the same two, and a random one. per query: two that are equally good;"
            " adopted is a weight per query, compared with one for all.",
            "Difference: nDCG@10 of what was tuned less that of the best of what there was, on held-out queries, which"
            " was picked on these very queries.",
        ),
    )


def _one(name: str, seed: int) -> dict[str, Any]:
    lists, judged = world(WORLDS[name], seed)
    if name == "per query":
        found = fuse(lists, judged, measure=MEASURE, reported=(), settings={"normalise": "minmax"}, adaptive=True)
        assert found.per_query is not None
        return {"adopted": found.per_query.adopted, "difference": found.per_query.difference}
    found = fuse(lists, judged, measure=MEASURE, reported=())
    proof = found.proofs["cross_validated"]
    return {"adopted": found.verdict.word == "adopt", "difference": proof.gain}
