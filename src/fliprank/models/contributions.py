"""What a score is made of: the contribution of each query term in each field, and of each feature.

They add up to the score. The sum of BM25 per field is such a sum by itself. BM25 and BM25F saturate the frequencies of
all fields together: what a term scores is shared out to the fields as each has part in its frequency. A language model
takes the logarithm of a mixture of fields: it adds up over terms, not over fields. Stacks, blends and linear models are
sums of their parts; nets, trees and cascades are none, and say so.

>>> from fliprank.data.ids import Ids
>>> from fliprank.data.term_statistics import TermStatistics
>>> from fliprank.models import BM25F
>>> terms = TermStatistics(("title", "body"), [0, 1], Ids.of(["shoe"]), [2.0], [0, 1, 2], [[1, 3], [0, 2]],
...                        [[2, 9], [4, 3]])
>>> rows = Candidates([0, 2], [1.0, 0.0], Ids.of(["q"]), terms=terms)
>>> [found] = contributions(BM25F().prepared(rows, 0), rows)
>>> [str(part) for part in found.parts], found.values.round(4).tolist()
(['title:shoe', 'body:shoe'], [[0.5656, 0.9254], [0.0, 1.4545]])
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import singledispatch
from typing import NamedTuple

import numpy as np

from fliprank.arrays import Floats
from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.models.base import Model
from fliprank.models.blend import Blend
from fliprank.models.bm25 import BM25, BM25F
from fliprank.models.bm25_sum import EACH, LEAST, BM25Sum
from fliprank.models.document_feature import Feature
from fliprank.models.engine import EngineText
from fliprank.models.language_model import LEAST as LEAST_P
from fliprank.models.language_model import TwoStageLM
from fliprank.models.linear import Linear
from fliprank.models.stack import AllFeatures, Stack
from fliprank.models.term_rows import Lines, statistics_of, term_rows

__all__ = ["Contributions", "Part", "contributions"]

TEXT = (BM25, BM25F, BM25Sum, TwoStageLM, EngineText)


class Part(NamedTuple):
    """A term in a field ("" where it is not known which), or a feature ("" for its term).

    `of` is the part of a stack or blend that it belongs to, where that has several parts with terms.
    """

    field: str
    term: str = ""
    of: str = ""

    def __str__(self) -> str:
        name = ":".join(filter(None, (self.field, self.term)))
        return f"{self.of}({name})" if self.of else name


@dataclass(frozen=True, eq=False)
class Contributions:
    """Of one query: `values` has a line per row and a column for each of `parts`; a line adds up to the row's score."""

    parts: tuple[Part, ...]
    values: Floats

    def times(self, factor: float, of: str = "") -> Contributions:
        """With another weight; `of` names the part of a stack that it belongs to."""
        return Contributions(tuple(part._replace(of=part.of or of) for part in self.parts), factor * self.values)


@singledispatch
def contributions(model: Model, candidates: Candidates) -> list[Contributions]:
    """Of each query, what the scores of its rows are made of; raises where a model's score is not a sum."""
    raise UsageError(f"the score of a {model.kind} model is no sum over terms, fields or features")


def _queries(candidates: Candidates, lines: Lines) -> Iterator[tuple[slice, list[str], Floats, Floats]]:
    """Each query's rows, terms, weight of each term, and tf: rows x terms x fields."""
    statistics = statistics_of(candidates)
    names, ends = statistics.terms.tolist(), statistics.offsets
    for q in range(candidates.queries):
        rows, terms = slice(*candidates.offsets[q : q + 2]), slice(*ends[q : q + 2])
        block = lines.tf[lines.starts[rows.start] : lines.starts[rows.stop]].astype(np.float64)
        shape = (rows.stop - rows.start, terms.stop - terms.start, lines.tf.shape[1])
        yield rows, names[terms], lines.weight[terms, 0], block.reshape(shape)


def _of_terms(terms: list[str], fields: tuple[str, ...], values: Floats) -> Contributions:
    """From values for rows x terms x fields."""
    parts = tuple(Part(field, term) for term in terms for field in fields)
    return Contributions(parts, values.reshape(len(values), len(parts)))


@contributions.register(BM25)
@contributions.register(BM25F)
def _saturating(model: BM25 | BM25F, candidates: Candidates) -> list[Contributions]:
    assert model.fields is not None
    lines, out = term_rows(candidates, model.fields, absent=True), []
    k = float(model.params["k"])
    for rows, terms, weight, tf in _queries(candidates, lines):
        length = lines.length[rows].astype(np.float64)
        scaled = model.scaled_weights(length.sum(axis=1, keepdims=True) if model.joined else length)
        frequency = tf * scaled[:, None, :]
        total = frequency.sum(axis=2, keepdims=True)
        some = (total > 0) & (frequency > 0)
        share = np.divide(frequency, k + total, out=np.zeros_like(frequency), where=some)
        out.append(_of_terms(terms, model.fields, weight[None, :, None] * share))
    return out


@contributions.register
def _summed(model: BM25Sum, candidates: Candidates) -> list[Contributions]:
    assert model.fields is not None
    lines, out = term_rows(candidates, model.fields, absent=True), []
    w, _, _, a = model.params.values.reshape(-1, EACH).T
    for rows, terms, weight, tf in _queries(candidates, lines):
        norms = np.maximum(model.norms(lines.length[rows].astype(np.float64)), LEAST)[:, None, :]
        x = np.where(tf > 0, np.power(np.maximum(tf, LEAST), a), 0.0)
        out.append(_of_terms(terms, model.fields, weight[None, :, None] * w * x / (x + norms)))
    return out


@contributions.register
def _engine(model: EngineText, candidates: Candidates) -> list[Contributions]:
    assert model.fields is not None
    lines, parts, out = term_rows(candidates, model.fields), model.parts(candidates), []
    names, ends = statistics_of(candidates).terms.tolist(), statistics_of(candidates).offsets
    owner = np.repeat(np.arange(len(candidates)), np.diff(lines.starts))
    for q in range(candidates.queries):
        (first, last), (a, b) = candidates.offsets[q : q + 2], ends[q : q + 2]
        own = slice(lines.starts[first], lines.starts[last])
        values = np.zeros((last - first, b - a, len(model.fields)))
        values[owner[own] - first, lines.term[own] - a] = parts[own]
        out.append(_of_terms(names[a:b], model.fields, values))
    return out


@contributions.register
def _language(model: TwoStageLM, candidates: Candidates) -> list[Contributions]:
    """n_t log P(t|D) of each term, whose field is known where there is one."""
    function = model.row_function(candidates)
    lines, theta, out = function.lines, function.theta(model.params.values), []
    assert lines is not None
    assert model.fields is not None
    fields, ends = lines.tf.shape[1], statistics_of(candidates).offsets
    lam, mu, weights = theta[0], theta[1 : 1 + fields], theta[1 + fields : 1 + 2 * fields]
    shares = weights / weights.sum() if weights.sum() > 0 else np.full(fields, 1 / fields)
    for q, (rows, terms, times, tf) in enumerate(_queries(candidates, lines)):
        known, size = lines.background[ends[q] : ends[q + 1]][None], mu + lines.length[rows, None].astype(np.float64)
        smoothed = np.divide(tf + mu * known, size, out=np.zeros(tf.shape), where=size > 0)
        estimate = np.where(size > 0, (1 - lam) * smoothed + lam * known, known)
        logs = np.log(np.maximum((estimate * shares).sum(axis=2), LEAST_P))
        name = model.fields[0] if len(model.fields) == 1 else ""
        out.append(_of_terms(terms, (name,), np.where(times > 0, times * logs, 0.0)[:, :, None]))
    return out


@contributions.register
def _feature(model: Feature, candidates: Candidates) -> list[Contributions]:
    return _columns(candidates, (Part(model.name),), model.score(candidates)[:, None])


@contributions.register
def _linear(model: Linear, candidates: Candidates) -> list[Contributions]:
    scaler, values = model.fitted_scaler(), model.params.values
    each = (scaler.matrix(candidates) - scaler.mean) * (values[1:] * scaler.scale)
    parts = tuple(Part(name) for name in scaler.names)
    if values[0] == 0.0:
        return _columns(candidates, parts, each)
    bias = np.full((len(candidates), 1), values[0])
    return _columns(candidates, (Part("bias"), *parts), np.hstack([bias, each]))


@contributions.register
def _stack(model: Stack, candidates: Candidates) -> list[Contributions]:
    if model.hidden:
        raise UsageError("the score of a stack with hidden nodes is no sum over terms, fields or features")
    models, features = model.models, 0 if model.scaler is None else len(model.scaler)
    top = slice(len(model.params) - features - len(models), len(model.params) - features)
    several, found = sum(isinstance(part, TEXT) for part in models) > 1, []
    for part, name, weight in zip(models, model.params.names[top], model.params.values[top].tolist(), strict=True):
        of = name.removesuffix(".weight") if several and not isinstance(part, Feature) else ""
        found.append([each.times(weight, of) for each in contributions(part, candidates)])
    for rest in model.parts:
        if isinstance(rest, AllFeatures):
            weights = model.params.values[top.stop :]
            found.append(contributions(rest.linear.at([0.0, *weights]), candidates))
    return _side_by_side(found)


@contributions.register
def _blend(model: Blend, candidates: Candidates) -> list[Contributions]:
    """What is subtracted to centre the parts is the same for all rows: it stands under "mean"."""
    assert model.spread is not None
    found, factors = [], model.params.values * model.spread[1]
    for part, label, factor in zip(model.parts, model.labels, factors, strict=True):
        found.append([each.times(float(factor), label) for each in contributions(part, candidates)])
    mean = np.full((len(candidates), 1), -float((factors * model.spread[0]).sum()))
    return _side_by_side([*found, _columns(candidates, (Part("mean"),), mean)])


def _columns(candidates: Candidates, parts: tuple[Part, ...], values: Floats) -> list[Contributions]:
    """The same parts for all queries."""
    ends = candidates.offsets
    return [Contributions(parts, values[ends[q] : ends[q + 1]]) for q in range(candidates.queries)]


def _side_by_side(found: list[list[Contributions]]) -> list[Contributions]:
    """Query by query, the columns of several models; what has the same name is one column."""
    out = []
    for side in zip(*found, strict=True):
        every, values = [part for one in side for part in one.parts], np.hstack([one.values for one in side])
        parts = tuple(dict.fromkeys(every))
        if len(parts) < len(every):
            values = np.stack([values[:, [each == part for each in every]].sum(axis=1) for part in parts], axis=1)
        out.append(Contributions(parts, values))
    return out
