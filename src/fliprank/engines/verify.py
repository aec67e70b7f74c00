"""The closed loop: is what was tuned here what the engine computes, and is the gain there too?

The engine itself indexes the documents and answers the queries, at its defaults and as tuned. Every score is compared
with ours, and so is the order; then the measure is taken of the engine's own rankings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fliprank.arrays import Floats
from fliprank.checked import checked
from fliprank.data.candidates import Candidates
from fliprank.data.trec import Qrels, Run
from fliprank.defaults import DEFAULT_MEASURE
from fliprank.engines.base import Runner, runner_of
from fliprank.engines.coded_texts import coded_documents, coded_queries
from fliprank.errors import UsageError
from fliprank.experiment.results import Proof
from fliprank.models.engine import EngineText
from fliprank.text.index import Index
from fliprank.text.search.queries import QueriesLike, read_queries

__all__ = ["Agreement", "Verified", "agreement", "verify"]

Progress = Callable[[str, int], None]


@dataclass(frozen=True)
class Agreement:
    """How the engine's scores and order compare with ours.

    `pairs` of query and document were compared; `error` is the largest difference of scores, relative to them, and
    `worst` where it is. `misplaced` counts documents that the engine ranks the other way round than we do; `missed`
    those that belong into its list by our scores and are not there. Differences within `tolerance` count as ties.
    """

    pairs: int
    error: float
    worst: tuple[str, str]
    misplaced: int
    missed: int
    tolerance: float

    @property
    def good(self) -> bool:
        """Whether the engine computes what we compute."""
        return self.error <= self.tolerance and not self.misplaced and not self.missed


@dataclass(frozen=True, eq=False)
class Verified:
    """What came of it: how scores agree, and the gain in the engine beside the gain that we promised."""

    engine: str
    version: str
    agreements: dict[str, Agreement]
    there: Proof
    here: Proof

    @property
    def good(self) -> bool:
        """Whether the engine computes what we compute, at its defaults and as tuned."""
        return all(each.good for each in self.agreements.values())

    def content(self) -> dict[str, Any]:
        """For programs."""
        told = {
            name: {**vars(found), "worst": list(found.worst), "good": found.good}
            for name, found in self.agreements.items()
        }
        proofs = {"in_engine": self.there.figures(), "promised": self.here.figures()}
        return {"engine": self.engine, "version": self.version, "agreement": told, **proofs}


@checked
def verify(
    model: EngineText,
    index: Index,
    queries: QueriesLike,
    qrels: Qrels,
    *,
    measure: str = DEFAULT_MEASURE,
    depth: int = 100,
    progress: Progress | None = None,
) -> Verified:
    """Run the engine on the documents of `index` and compare: its scores with ours, its defaults with `model`."""
    formula = model.formula
    kind = runner_of(formula.engine)
    if kind.functions and formula.function not in kind.functions:
        raise UsageError(f"{formula.engine} can be run here for {', '.join(kind.functions)}, not {formula.function}")
    version = kind.version()
    known = set(qrels.qids.tolist())
    asked = {qid: text for qid, text in read_queries(queries).items() if qid in known}
    documents, words = coded_documents(index, model.fields or ()), coded_queries(index, asked)
    models = {"default": model.at(model.params.default), "tuned": model}
    hits: dict[str, dict[str, dict[str, float]]] = {}
    for name, each in models.items():
        with kind(documents, model.fields or (), each) as engine:
            hits[name] = _answers(engine, words, each, depth, progress)
    agreements, runs = dict[str, Agreement](), dict[str, Run]()
    for name, each in models.items():
        runs[name] = index.search(asked, each, depth=depth)
        rows = index.rows(asked, {qid: list(found) for qid, found in hits[name].items()})
        agreements[name] = agreement(rows, each.score(rows), hits[name], runs[name].to_dict(), depth, kind.tolerance)
    measures = list(dict.fromkeys([measure, "AP", "RR"]))
    there = Proof.of(qrels, Run.of(hits["default"]), Run.of(hits["tuned"]), measures)
    here = Proof.of(qrels, runs["default"], runs["tuned"], measures)
    return Verified(formula.engine, version, agreements, there, here)


def _answers(
    engine: Runner, words: Mapping[str, list[str]], model: EngineText, depth: int, progress: Progress | None
) -> dict[str, dict[str, float]]:
    out: dict[str, dict[str, float]] = {}
    for number, (qid, each) in enumerate(words.items(), 1):
        out[qid] = engine.search(each, model, depth)
        if progress is not None:
            progress("asking the engine", number)
    return out


def agreement(
    rows: Candidates,
    ours: Floats,
    hits: Mapping[str, Mapping[str, float]],
    best: Mapping[str, Mapping[str, float]],
    depth: int,
    tolerance: float,
) -> Agreement:
    """How our scores of `rows` (the engine's hits, in its order) and our `best` documents compare with its own."""
    theirs = np.array([score for found in hits.values() for score in found.values()])
    error = np.abs(ours - theirs) / np.maximum(np.maximum(np.abs(ours), np.abs(theirs)), 1e-12)
    same = np.diff(rows.query_of_rows()) == 0
    falls = ours[1:] > ours[:-1] + tolerance * np.abs(ours[:-1])
    missed = 0
    for qid, expected in best.items():
        found = hits.get(qid, {})
        last = min(found.values(), default=-np.inf) if len(found) >= depth else -np.inf
        over = last + tolerance * abs(last) if np.isfinite(last) else last
        missed += sum(docid not in found and score > over for docid, score in expected.items())
    place = int(error.argmax()) if len(error) else -1
    where = (rows.qids[int(rows.query_of_rows()[place])], rows.document_ids()[place]) if len(error) else ("", "")
    return Agreement(len(theirs), float(error.max(initial=0.0)), where, int((falls & same).sum()), missed, tolerance)
