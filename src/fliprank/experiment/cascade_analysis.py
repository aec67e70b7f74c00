"""What each stage of a cascade does: the tables and figures of Matveeva et al. 2006 as data.

Tables 2, 4, 6: `after_stages`, with intervals, tests and what each cut loses. Tables 3, 7: `reshuffled`. Figure 4:
`epoch_curves`, the measure and the share of pairs in the right order after each epoch. Figure 5: `label_moves`.
Figure 6: `top_labels`. Figure 7: `good_at_ranks`. `report/cascade_plots.py` draws them.

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
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.data.order import order_rows
from fliprank.defaults import DEFAULT_MEASURE, DEFAULT_OBJECTIVE
from fliprank.errors import UsageError
from fliprank.experiment.significance import bootstrap_interval, randomisation
from fliprank.experiment.telescope import options_by_stage, telescope
from fliprank.experiment.training import train
from fliprank.measures import Measure, parse_measure
from fliprank.models import Model
from fliprank.models.cascade import Cascade
from fliprank.models.trees import Trees
from fliprank.objectives import parse_objective
from fliprank.optimize.anywhere import AnyRows
from fliprank.optimize.methods import METHODS, Method, make_method

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


BISECTIONS = 60
"""Halvings of a range of values: enough for the last bit."""


@dataclass(frozen=True, eq=False)
class AfterStage:
    """The ranking after a stage: the measure with its interval, and what was gained.

    `gain` is over the first stage, `step` over the stage before, each with the p of a randomisation test. They are
    means of paired differences over queries: of a geometric mean such as GMAP, differences of logarithms. `lost` is the
    share of all relevant documents that do not reach the stage. `values` has the measure of each query.
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
    rows: AnyRows,
    measure: str | Measure = DEFAULT_MEASURE,
    *,
    rel: float = 1.0,
    confidence: float = 0.95,
    seed: int = 0,
) -> list[AfterStage]:
    """Tables 2, 4 and 6: one line per stage. `rel` is the label from which a document is relevant in `lost`."""
    chosen = parse_measure(measure)
    asked = (cascade, chosen, rel)
    parts = [_stage_facts(rows, *asked)] if isinstance(rows, Candidates) else list(rows.each(_stage_facts, *asked))
    values = [np.concatenate(own) for own in zip(*(own for own, _, _ in parts), strict=True)]
    paired = [chosen.paired(each) for each in values]
    relevant, cuts = sum(found for _, found, _ in parts), np.sum([own for _, _, own in parts], axis=0)
    out = []
    for s, (size, found) in enumerate(zip(cascade.sizes, values, strict=True)):
        against = [paired[s] - paired[0], paired[s] - paired[max(s - 1, 0)]]
        p = [randomisation(difference[~np.isnan(difference)], seed=seed) if s else 1.0 for difference in against]
        interval = _interval(chosen, found[~np.isnan(found)], confidence, seed)
        gain, step = (float(np.nanmean(difference)) for difference in against)
        lost = float(cuts[s] / max(1, relevant))
        out.append(AfterStage(s + 1, size, chosen.aggregate(found), interval, gain, p[0], step, p[1], lost, found))
    return out


def _stage_facts(
    part: Candidates, cascade: Cascade, measure: Measure, rel: float
) -> tuple[list[Floats], int, list[int]]:
    """The measure of each query after each stage, how many documents are relevant, how many of them each cut loses."""
    scores = cascade.by_stage(part)
    relevant = np.nan_to_num(part.labels, nan=-np.inf) >= rel
    lost = [int((relevant & (before < -size)).sum()) for before, size in zip(scores, cascade.sizes[1:], strict=False)]
    return [measure.per_query(s, part) for s in scores], int(relevant.sum()), [0, *lost]


def _interval(measure: Measure, values: Floats, confidence: float, seed: int) -> tuple[float, float]:
    """The bootstrapped interval of the measure, on the scale of the measure itself.

    It is found on the scale on which queries are averaged. An end of it is then brought back: it is the measure of
    queries that all have the one value x with `paired(x)` there.
    """
    low, high = bootstrap_interval(measure.paired(values), confidence, seed=seed)

    def brought_back(mean: float) -> float:
        left, right = float(values.min()), float(values.max())
        for _ in range(BISECTIONS):
            middle = (left + right) / 2
            left, right = (middle, right) if measure.paired(np.array([middle]))[0] < mean else (left, middle)
        return measure.aggregate(np.array([right]))

    plain = np.array_equal(measure.paired(values), values)
    return (low, high) if plain or np.isnan(low) else (brought_back(low), brought_back(high))


@dataclass(frozen=True, eq=False)
class Reshuffled:
    """The measure after each stage (columns) of each run (rows).

    A stage that a run left out (`only_better`) changes no rank: it has the value of the stage before.
    """

    sizes: tuple[int, ...]
    values: Floats

    @property
    def means(self) -> Floats:
        """The mean of each stage over runs."""
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
    method: str | Method = "adam",
    measure: str | Measure = DEFAULT_MEASURE,
    seed: int = 0,
    **options: Any,
) -> Reshuffled:
    """Tables 3 and 7: telescoped again with the training queries in another order and another random seed.

    `options` are those of `telescope`. The method must look at queries or pairs in turn, as Adam does, or "taylor2006",
    the paper's own: one that looks at all queries at once, as L-BFGS does, does not see their order.
    """
    if runs < 2:
        raise UsageError(f"runs={runs}: a spread needs at least 2")
    _check_order_matters(cascade, {"method": method, **options})
    chosen, out = parse_measure(measure), np.empty((runs, len(cascade.sizes)))
    for run in range(runs):
        order = np.random.default_rng([seed, run]).permutation(train.queries)
        own: dict[str, Any] = {"method": method, "measure": chosen, "seed": seed + 10_000 * run, **options}
        fit = telescope(cascade, train.select(order), valid, **own)
        if fit.interrupted:
            raise KeyboardInterrupt
        assert isinstance(fit.model, Cascade)
        values = [chosen.value(scores, test) for scores in fit.model.by_stage(test)]
        latest = np.searchsorted(-np.array(fit.model.sizes), -np.array(cascade.sizes), "right") - 1
        out[run] = np.array(values)[latest]
    return Reshuffled(cascade.sizes, out)


def _check_order_matters(cascade: Cascade, options: dict[str, Any]) -> None:
    """Raise an error if a stage is trained by a method that does not see the order of queries."""
    by_stage = options_by_stage(cascade, options.pop("options", None), options)
    for number, (stage, own) in enumerate(zip(cascade.stages, by_stage, strict=True), 1):
        if own is None or isinstance(stage, Trees):
            continue
        method = make_method(own["method"], parse_objective(own.get("objective", DEFAULT_OBJECTIVE)))
        if not method.order_matters:
            good = ", ".join(name for name, each in METHODS.items() if each.order_matters)
            raise UsageError(f"stage {number}: {method.name} does not see the order of queries; take {good}")


@dataclass(frozen=True, eq=False)
class EpochCurves:
    """`values[e, m]` is measure m on the validation queries after epoch e; of some epochs the scores and the model."""

    measures: tuple[str, ...]
    values: Floats
    scores: dict[int, Floats]
    models: dict[int, Model] = field(default_factory=dict)

    @property
    def correlation(self) -> float:
        """The correlation of the first two measures over the epochs; the random start is none of them."""
        first, second = self.values[1:, 0], self.values[1:, 1]
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

    `keep` names the epochs whose scores and models are kept. The paper's pairs are all those whose labels differ, with
    unlabelled documents rated 0. CorrectPairs leaves out unlabelled documents: `subsample` gives them that label.
    """
    chosen = tuple(map(parse_measure, measures))
    settings = {"objective": "ranknet", "restarts": 1, "sweep": False, "patience": None, **options}
    fit = train(model, rows, valid, measure=chosen[0], epochs=epochs, **settings)
    if fit.path is None or fit.start is None:
        count = len(fit.model.params.free_names)
        raise UsageError(f"curves need the parameters of each epoch, which are not kept of a model with {count:,}")
    values, scores, models = list[list[float]](), dict[int, Floats](), dict[int, Model]()
    for epoch, point in enumerate(fit.path):
        there = fit.start.at(fit.start.params.with_free(point))
        found = there.score(valid)
        values.append([each.value(found, valid) for each in chosen])
        if epoch in keep:
            scores[epoch], models[epoch] = found, there
    return EpochCurves(tuple(map(str, chosen)), np.array(values), scores, models)


@dataclass(frozen=True, eq=False)
class LabelMoves:
    """The documents of one query, in the order of the ranks `before`; an unlabelled document has the label NaN."""

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
    """The number of the query where pairs gain most while the measure loses most, by the product of the two."""
    chosen, pairs = parse_measure(measure), parse_measure("CorrectPairs")
    sign = chosen.sign
    lost = sign * (chosen.per_query(before, rows) - chosen.per_query(after, rows))
    gained = pairs.per_query(after, rows) - pairs.per_query(before, rows)
    return int(np.argmax(np.maximum(lost, 0.0) * np.maximum(gained, 0.0)))


@dataclass(frozen=True, eq=False)
class TopLabels:
    """`counts[s, i]` documents per query with `labels[i]` (NaN: unlabelled) stand at the top after stage s."""

    sizes: tuple[int, ...]
    labels: Floats
    counts: Floats

    @property
    def differences(self) -> Floats:
        """How each stage after the first changes the counts."""
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
