"""What each stage of a cascade does: the tables and figures of Matveeva et al. 2006 as data.

Tables 2, 4, 6: `after_stages`, with intervals, tests and what each cut loses. Tables 3, 7: `reshuffled`. Figure 4:
`epoch_curves`, the measure beside the pairs in the right order after each epoch. Figure 5: `label_moves`. Figure 6:
`top_labels`. Figure 7: `good_at_ranks`. Pictures of them: `report/cascade_plots.py`.

>>> from fliprank.models import Linear
>>> x = np.array([[3, 0], [2, 1], [1, 2], [0, 3]], float)
>>> rows = Candidates.of([0, 1, 3, 0], features=x)
>>> stages = [Linear().prepared(rows, 0).at(w) for w in ([0, 1, 0], [0, 0, 1])]
>>> nested = Cascade(stages, sizes=[4, 2])
>>> [(row.stage, row.size, round(row.value, 3), row.lost) for row in after_stages(nested, rows)]
[(1, 4, 0.541, 0.0), (2, 2, 0.59, 0.5)]
>>> top_labels(nested, rows, k=1).counts.tolist()                         # labels 0, 1, 3 at rank 1 after each stage
[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.data.order import order_rows
from fliprank.errors import UsageError
from fliprank.experiment.significance import bootstrap_interval, randomisation
from fliprank.experiment.telescope import telescope
from fliprank.experiment.training import DEFAULT_MEASURE, train
from fliprank.measures import Measure, parse_measure
from fliprank.measures.ranking import Ranking
from fliprank.models import Model
from fliprank.models.cascade import Cascade

__all__ = [
    "AfterStage",
    "EpochCurves",
    "LabelMoves",
    "Reshuffled",
    "TopLabels",
    "after_stages",
    "epoch_curves",
    "good_at_ranks",
    "label_moves",
    "opposed_query",
    "reshuffled",
    "top_labels",
]


@dataclass(frozen=True, eq=False)
class AfterStage:
    """The ranking after a stage: the measure with its interval, the gain over the first stage and the one before.

    `lost`: the share of relevant documents that do not reach the stage. `values`: the measure of each query.
    """

    stage: int
    size: int
    value: float
    interval: tuple[float, float]
    gain: float
    p: float
    step: float
    step_p: float
    lost: float
    values: Floats


def after_stages(
    cascade: Cascade,
    rows: Candidates,
    measure: str | Measure = DEFAULT_MEASURE,
    *,
    rel: float = 1.0,
    confidence: float = 0.95,
    seed: int = 0,
) -> list[AfterStage]:
    """Tables 2, 4 and 6: one line a stage. p is of a randomisation test over queries; `interval` is bootstrapped."""
    chosen, scores = parse_measure(measure), cascade.by_stage(rows)
    values = [chosen.paired(chosen.per_query(s, rows)) for s in scores]
    relevant = np.nan_to_num(rows.labels, nan=-np.inf) >= rel
    out = []
    for s, (size, found) in enumerate(zip(cascade.sizes, values, strict=True)):
        against = [found - values[0], found - values[max(s - 1, 0)]]
        p = [randomisation(difference[~np.isnan(difference)], seed=seed) if s else 1.0 for difference in against]
        cut = relevant & (scores[s - 1] < -size) if s else np.zeros(len(rows), bool)
        known = found[~np.isnan(found)]
        interval = bootstrap_interval(known, confidence, seed=seed)
        gain, step = (float(np.nanmean(difference)) for difference in against)
        lost = float(cut.sum() / max(1, relevant.sum()))
        out.append(AfterStage(s + 1, size, chosen.aggregate(found), interval, gain, p[0], step, p[1], lost, found))
    return out


@dataclass(frozen=True, eq=False)
class Reshuffled:
    """The measure after each stage (columns) of each run (rows)."""

    sizes: tuple[int, ...]
    values: Floats

    @property
    def means(self) -> Floats:
        """Of each stage, over runs."""
        means: Floats = self.values.mean(axis=0)
        return means

    @property
    def deviations(self) -> Floats:
        """The standard deviation of each stage over runs."""
        deviations: Floats = self.values.std(axis=0, ddof=1)
        return deviations


def reshuffled(
    cascade: Cascade,
    train: Candidates,
    valid: Candidates,
    test: Candidates,
    *,
    runs: int = 11,
    measure: str | Measure = DEFAULT_MEASURE,
    seed: int = 0,
    **options: Any,
) -> Reshuffled:
    """Tables 3 and 7: telescoped anew with the training queries in another order and other random numbers.

    `options` are those of `telescope`. Only with a method that looks at queries in turn does their order matter.
    """
    if runs < 2:
        raise UsageError(f"runs={runs}: a spread needs at least 2")
    chosen, out = parse_measure(measure), []
    for run in range(runs):
        order = np.random.default_rng([seed, run]).permutation(train.queries)
        fit = telescope(cascade, train.select(order), valid, measure=chosen, seed=seed + 10_000 * run, **options)
        assert isinstance(fit.model, Cascade)
        out.append([chosen.value(scores, test) for scores in fit.model.by_stage(test)])
    return Reshuffled(cascade.sizes, np.array(out))


@dataclass(frozen=True, eq=False)
class EpochCurves:
    """`values[e, m]`: measure m on the validation queries after epoch e; `scores[e]`: those of the epochs kept."""

    measures: tuple[str, ...]
    values: Floats
    scores: dict[int, Floats]

    @property
    def correlation(self) -> float:
        """Of the first two measures over the epochs."""
        first, second = self.values[:, 0], self.values[:, 1]
        if len(first) < 2 or first.std() == 0 or second.std() == 0:
            return float("nan")
        return float(np.corrcoef(first, second)[0, 1])


def epoch_curves(
    model: Model,
    rows: Candidates,
    valid: Candidates,
    measures: Sequence[str | Measure] = (DEFAULT_MEASURE, "CorrectPairs"),
    *,
    epochs: int = 30,
    keep: Sequence[int] = (1, 2),
    **options: Any,
) -> EpochCurves:
    """Figure 4: the measures after each epoch of one training run. Epoch 0 is the random start.

    The paper's pairs are all those whose labels differ, unlabelled documents being rated 0: give `valid` such labels
    (as `subsample` does) to count them; CorrectPairs leaves out what is unlabelled.
    """
    notes = _Noting(tuple(map(parse_measure, measures)), valid, set(keep))
    settings = {"objective": "ranknet", "restarts": 1, "sweep": False, "patience": None, **options}
    train(model, rows, valid, measure=notes, epochs=epochs, **settings)
    return EpochCurves(tuple(map(str, notes.measures)), np.array(notes.values), notes.scores)


@dataclass(frozen=True, eq=False)
class _Noting(Measure):
    """The first of some measures, to those who train by it; it notes all of them for the validation queries."""

    name: ClassVar[str] = "noting"
    measures: tuple[Measure, ...]
    valid: Candidates
    keep: set[int]
    values: list[list[float]] = field(default_factory=list)
    scores: dict[int, Floats] = field(default_factory=dict)

    def __str__(self) -> str:
        return str(self.measures[0])

    def per_query(self, scores: ArrayLike, candidates: Candidates) -> Floats:
        if candidates is self.valid:
            if len(self.values) in self.keep:
                self.scores[len(self.values)] = np.array(scores, np.float64)
            self.values.append([m.value(scores, candidates) for m in self.measures])
        return self.measures[0].per_query(scores, candidates)

    def of(self, ranking: Ranking) -> Floats:
        return self.measures[0].of(ranking)

    def flips(self, scores: ArrayLike, candidates: Candidates) -> Floats:
        return self.measures[0].flips(scores, candidates)


@dataclass(frozen=True, eq=False)
class LabelMoves:
    """The documents of one query, best first by the ranks `before`; a label is NaN where there is none."""

    query: str
    labels: Floats
    before: Ints
    after: Ints


def label_moves(before: ArrayLike, after: ArrayLike, rows: Candidates, query: int) -> LabelMoves:
    """Figure 5: the ranks of the documents of query number `query` under two scores, such as those of two epochs."""
    low, high = rows.offsets[query], rows.offsets[query + 1]
    ranks = []
    for scores in (before, after):
        order = order_rows(np.asarray(scores, np.float64), rows.offsets, rows.docids)[low:high] - low
        rank = np.empty(high - low, np.int64)
        rank[order] = np.arange(1, high - low + 1)
        ranks.append(rank)
    first = np.argsort(ranks[0])
    return LabelMoves(rows.qids[query], rows.labels[low:high][first], ranks[0][first], ranks[1][first])


def opposed_query(
    before: ArrayLike, after: ArrayLike, rows: Candidates, measure: str | Measure = DEFAULT_MEASURE
) -> int:
    """The number of the query where pairs gain most while the measure loses: the largest product of the two."""
    chosen, pairs = parse_measure(measure), parse_measure("CorrectPairs")
    sign = chosen.sign
    lost = sign * (chosen.per_query(before, rows) - chosen.per_query(after, rows))
    gained = pairs.per_query(after, rows) - pairs.per_query(before, rows)
    return int(np.argmax(np.maximum(lost, 0.0) * np.maximum(gained, 0.0)))


@dataclass(frozen=True, eq=False)
class TopLabels:
    """`counts[s, i]`: how many documents with `labels[i]` (NaN: unlabelled) stand at the top after stage s, a query."""

    sizes: tuple[int, ...]
    labels: Floats
    counts: Floats

    @property
    def differences(self) -> Floats:
        """What each stage after the first changes."""
        return np.diff(self.counts, axis=0)


def top_labels(cascade: Cascade, rows: Candidates, k: int = 10) -> TopLabels:
    """Figure 6: the labels among the top k after each stage, on average over queries."""
    levels, level = np.unique(rows.labels, return_inverse=True)  # NaN, if any, comes last and once
    counts = [np.bincount(level[scores >= -k], minlength=len(levels)) for scores in cascade.by_stage(rows)]
    return TopLabels(cascade.sizes, levels, np.array(counts) / max(1, rows.queries))


def good_at_ranks(cascade: Cascade, rows: Candidates, k: int = 10, good: float = 3.0) -> Floats:
    """Figure 7: the share of queries with a document labelled `good` or better at each of the top k ranks, by stage."""
    best = np.nan_to_num(rows.labels, nan=-np.inf) >= good
    counts = []
    for scores in cascade.by_stage(rows):
        ranks = -scores[best & (scores >= -k)].astype(np.int64)
        counts.append(np.bincount(ranks, minlength=k + 1)[1:])
    return np.array(counts) / max(1, rows.queries)
