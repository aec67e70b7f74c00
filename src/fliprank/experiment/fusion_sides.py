"""The lists of some judged queries as rows, and what rankings of them are worth.

All rankings are of the same rows, which have labels: nothing is joined with the judgements twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.data.fusion_rows import fusion_rows
from fliprank.data.trec import JudgedRun, Qrels, Run, read_qrels
from fliprank.errors import InputError
from fliprank.experiment.evaluation import Evaluation, evaluate
from fliprank.experiment.results import Proof
from fliprank.models.fusion import Fusion

__all__ = ["TUNED", "Side", "judgements_of", "proof_of", "run_of"]

TUNED = "tuned"
"""What the tuned fusion is called in tables."""


@dataclass(frozen=True, eq=False)
class Side:
    """The lists of some judged queries."""

    rows: Candidates
    qrels: Qrels
    notes: tuple[str, ...]

    @classmethod
    def of(cls, lists: Mapping[str, Run], qrels: Qrels, depth: int | None, ascending: Iterable[str]) -> Side:
        rows = fusion_rows(lists, qrels, depth=depth, ascending=ascending)
        return cls(rows, qrels, tuple(_notes(lists, rows)))

    def ranked(self, scores: Floats) -> JudgedRun:
        """All rows in the order of these scores."""
        return JudgedRun(self.rows, scores, 0, 0)

    def baselines(self, models: Mapping[str, Fusion]) -> dict[str, JudgedRun]:
        """The ranking of each baseline; of a list alone (the first of them), the list and nothing else."""
        out, lists = dict[str, JudgedRun](), self.rows.lists
        assert lists is not None
        bare = replace(self.rows, lists=None)
        for place, (name, model) in enumerate(models.items()):
            if place < len(lists.names):
                there = np.flatnonzero(lists.ranks[:, place] > 0)
                out[name] = JudgedRun(bare.take(there), -lists.ranks[there, place].astype(np.float64), 0, 0)
            else:
                out[name] = self.ranked(model.score(self.rows))
        return out

    def evaluation(self, sides: Mapping[str, JudgedRun], measures: list[str]) -> Evaluation:
        """The measures of all of them. Their rows have labels: nothing is joined with the judgements again."""
        found = {name: evaluate(side.candidates, {name: side.scores}, measures) for name, side in sides.items()}
        values = {name: each.values[name] for name, each in found.items()}
        return Evaluation(self.rows.qids, values, next(iter(found.values())).readings)


def proof_of(evaluation: Evaluation, kept: str) -> Proof:
    """The tuned fusion against the best of what there was."""
    values = {"default": evaluation.values[kept], "tuned": evaluation.values[TUNED]}
    pair = replace(evaluation, values=values)
    return Proof(pair, pair.compare())


def run_of(side: JudgedRun, name: str) -> Run:
    rows = side.candidates
    return Run(rows.offsets, rows.qids, rows.document_ids(), side.scores, name)


def judgements_of(given: Any) -> Qrels:
    if isinstance(given, Qrels):
        return given
    return Qrels.of(given) if isinstance(given, Mapping) else read_qrels(given)


def _notes(lists: Mapping[str, Run], rows: Candidates) -> Iterable[str]:
    """What a person should know of these lists: queries that they lack, scores that say nothing."""
    found = rows.lists
    assert found is not None
    count, low, high = (found.statistics[:, :, column] for column in (0, 1, 2))
    for place, name in enumerate(lists):
        lacking = int((count[:, place] == 0).sum())
        if lacking == rows.queries:
            raise InputError(f"the list {name} has none of the judged queries")
        if lacking:
            yield f"{name} has nothing for {lacking:,} of {rows.queries:,} judged queries"
        flat = int(((count[:, place] > 1) & (low[:, place] == high[:, place])).sum())
        if flat:
            yield f"all scores of {name} are equal in {flat:,} of {rows.queries:,} queries"
    if np.isnan(rows.labels).all():
        raise InputError("no judged document is in any of the lists", hint="are the document ids of the same kind?")
