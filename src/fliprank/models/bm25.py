"""BM25 and BM25F with exact derivatives (Taylor et al. 2006, appendix, equations 3 to 10).

F = sum_t I_t f_t / (k + f_t), where f_t = sum_s w_s tf_ts / beta_s and beta_s = 1 - b_s + b_s l_s / average l_s; I_t is
the idf of term t, times how often it stands in the query. BM25 is BM25F of one field: all fields joined, or one.
Every edge has a value: at k = 0 a term counts 1 where f > 0; a field without length, or whose average is 0, has beta 1.

>>> from fliprank.data.candidates import Candidates
>>> from fliprank.data.ids import Ids
>>> from fliprank.data.term_statistics import TermStatistics
>>> terms = TermStatistics(("title", "body"), [0, 1], Ids.of(["shoe"]), [2.0], [0, 1, 2], [[1, 3], [0, 2]],
...                        [[2, 9], [4, 3]])
>>> rows = Candidates([0, 2], [1.0, 0.0], Ids.of(["q"]), terms=terms)
>>> model = BM25F().prepared(rows, 0)
>>> model.params.names, model.params.free_names
(('k', 'title.w', 'title.b', 'body.w', 'body.b'), ('title.w', 'title.b', 'body.w', 'body.b'))
>>> model.score(rows).round(6).tolist()            # the first: 2 f / (1.2 + f), f = 1 / 0.75 + 3 / 1.375
[1.491003, 1.454545]
>>> model.pullback(rows, [1.0, 0.0]).round(6).tolist()
[-0.316215, 0.143932, 0.06397, 0.235526, -0.085646]
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats, Ints, frozen
from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, UsageError
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.models.base import NONE, Model, Seed, register, row_gradient
from fliprank.models.folder import Record
from fliprank.models.parameters import Parameters
from fliprank.models.term_rows import Lines, average_lengths, field_names, restored_fields, statistics_of, term_rows

__all__ = ["BM25", "BM25F"]

K, W, B = (1.2, 0.0, inf), (1.0, 0.0, inf), (0.75, 0.0, 1.0)
"""Default, lower and upper bound."""


class Theta(NamedTuple):
    """k, and for each field w, b and 1 / average length."""

    k: float
    w: Floats
    b: Floats
    inverse: Floats


@dataclass(frozen=True, eq=False)
class _Saturating(Model):
    """What BM25 and BM25F share; `average` is the average length of each field, of the collection or the training rows.

    Where `fields` is None, they are those of the training rows.
    """

    joined: ClassVar[bool]
    fields: tuple[str, ...] | None = None
    average: Floats | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", field_names(self.fields))
        if self.average is not None:
            object.__setattr__(self, "average", frozen(self.average, np.float64))
        if self.params is NONE and self.fields is not None:
            object.__setattr__(self, "params", self._parameters(self.fields))

    @abstractmethod
    def _parameters(self, fields: tuple[str, ...]) -> Parameters:
        """The parameters of a model of these fields, at their defaults."""

    @abstractmethod
    def _theta(self) -> Theta:
        """The parameters as kernels read them."""

    @property
    def ready(self) -> bool:
        return self.average is not None

    @property
    def penalty_weights(self) -> Floats:
        return np.ones(len(self.params))

    def prepared(self, train: Candidates, rng: Seed) -> Self:
        """With the fields and average lengths of these rows (of their collection, where known); parameters are kept."""
        fields = self.fields or statistics_of(train).fields
        average = average_lengths(train, fields, self.joined)
        return replace(self, fields=fields, average=average)

    def initial(self, rng: np.random.Generator) -> Floats:
        """Around the defaults: k and w times a random factor, b plus a random number."""
        params, noise = self.params, rng.normal(size=len(self.params))
        is_b = np.array([name == "b" or name.endswith(".b") for name in params.names], bool)
        moved = np.where(is_b, params.default + 0.2 * noise, params.default * np.exp(0.5 * noise))
        return np.clip(moved, params.lower, params.upper)

    def _known(self) -> tuple[tuple[str, ...], Floats]:
        if self.fields is None or self.average is None:
            raise UsageError(f"this {self.kind} model knows no lengths yet: train it, or call prepared(train, rng)")
        return self.fields, self.average

    def _with_lengths(self, k: float, w: Floats, b: Floats) -> Theta:
        """With 0 for the inverse of an average of 0."""
        average = self._known()[1]
        inverse = np.divide(1.0, average, out=np.zeros(len(average)), where=average > 0)
        return Theta(float(k), w, b, inverse)

    def score(self, candidates: Candidates) -> Floats:
        rows, theta = term_rows(candidates, self._known()[0], self.joined), self._theta()
        out = np.empty(len(candidates))
        if rows.chunks == 1:
            _score_rows(rows.lines, theta, 0, len(candidates), 0, out)
        else:
            _score_chunks(rows.lines, theta, rows.cuts, rows.query, out)
        return out

    def _gradient(self, candidates: Candidates, dscores: ArrayLike) -> Floats:
        """By k, then each w, then each b."""
        rows, theta = term_rows(candidates, self._known()[0], self.joined), self._theta()
        given, parts = row_gradient(candidates, dscores), np.zeros((rows.chunks, 1 + 2 * len(theta.w)))
        if rows.chunks == 1:
            _pull_rows(rows.lines, theta, 0, len(candidates), 0, given, parts[0])
        else:
            _pull_chunks(rows.lines, theta, rows.cuts, rows.query, given, parts)
        total: Floats = parts.sum(axis=0)
        return total

    def structure(self) -> dict[str, Any]:
        fields, average = self._known()
        if self.joined:
            return {"fields": [{"name": name} for name in fields], "average": float(average[0])}
        columns = zip(fields, average.tolist(), strict=True)
        return {"fields": [{"name": name, "average": mean} for name, mean in columns]}

    @classmethod
    def restore(cls, structure: Record) -> Self:
        fields, records = restored_fields(structure)
        average = [entry.number("average") for entry in ([structure] if cls.joined else records)]
        if min(average) < 0:
            raise InputError("an average length is negative", path=structure.path)
        return cls(fields, average=np.array(average))


@register
@dataclass(frozen=True, eq=False)
class BM25(_Saturating):
    """BM25 of all fields joined, or of those named: `BM25()`, `BM25("body")`. Parameters: k, b."""

    kind: ClassVar[str] = "bm25"
    joined: ClassVar[bool] = True

    def _parameters(self, fields: tuple[str, ...]) -> Parameters:
        return Parameters.of({"k": K, "b": B})

    def _theta(self) -> Theta:
        return self._with_lengths(self.params.values[0], np.ones(1), self.params.values[1:].copy())

    def pullback(self, candidates: Candidates, dscores: ArrayLike) -> Floats:
        return self._gradient(candidates, dscores)[::2]


@register
@dataclass(frozen=True, eq=False)
class BM25F(_Saturating):
    """BM25F: a weight and a length normalisation for each field. Parameters: k, then `title.w`, `title.b`, ...

    (w, k) and (c w, c k) rank alike, so k is fixed unless `free_k`. `share_b`: one b for all fields, called `b`.
    """

    kind: ClassVar[str] = "bm25f"
    joined: ClassVar[bool] = False
    share_b: bool = field(default=False, kw_only=True)
    free_k: bool = field(default=False, kw_only=True)

    def _parameters(self, fields: tuple[str, ...]) -> Parameters:
        table = {"k": K}
        for name in fields:
            table |= {f"{name}.w": W, f"{name}.b": B}
        params = Parameters.of(table)
        if self.share_b:
            params = params.tie({"b": [f"{name}.b" for name in fields]})
        return params if self.free_k else params.fix("k")

    def _theta(self) -> Theta:
        values = self.params.values
        return self._with_lengths(values[0], values[1::2].copy(), values[2::2].copy())

    def pullback(self, candidates: Candidates, dscores: ArrayLike) -> Floats:
        total, fields = self._gradient(candidates, dscores), len(self._known()[0])
        return np.concatenate([total[:1], total[1:].reshape(2, fields).T.ravel()])


@kernel
def _score_rows(rows: Lines, theta: Theta, start: int, stop: int, query: int, out: Floats) -> None:
    k, w, b, inverse = theta
    tf, length, starts, fields = rows.tf, rows.length, rows.starts, len(w)
    scaled = np.empty(fields)
    for row in range(start, stop):
        while row >= rows.offsets[query + 1]:
            query += 1
        for s in range(fields):
            ratio = length[row, s] * inverse[s]
            scaled[s] = w[s] / (1.0 - b[s] + b[s] * (ratio if ratio > 0.0 else 1.0))
        total, term = 0.0, rows.term_offsets[query]
        for line in range(starts[row], starts[row + 1]):
            f = 0.0
            for s in range(fields):
                f += scaled[s] * tf[line, s]
            if k + f > 0.0:
                total += rows.weight[term] * f / (k + f)
            term += 1
        out[row] = total


@parallel_kernel
def _score_chunks(rows: Lines, theta: Theta, cuts: Ints, query: Ints, out: Floats) -> None:
    for c in prange(len(query)):
        _score_rows(rows, theta, cuts[c], cuts[c + 1], query[c], out)


@kernel
def _pull_rows(rows: Lines, theta: Theta, start: int, stop: int, query: int, dscores: Floats, total: Floats) -> None:
    """Add to `total` the gradient of these rows: by k (equation 7), each w (8), each b (10)."""
    k, w, b, inverse = theta
    tf, length, starts, fields = rows.tf, rows.length, rows.starts, len(w)
    ratio, share, scaled, raised = np.empty(fields), np.empty(fields), np.empty(fields), np.empty(fields)
    for row in range(start, stop):
        while row >= rows.offsets[query + 1]:
            query += 1
        given = dscores[row]
        if given == 0.0:
            continue
        for s in range(fields):
            ratio[s] = length[row, s] * inverse[s]
            if not ratio[s] > 0.0:
                ratio[s] = 1.0
            share[s] = 1.0 / (1.0 - b[s] + b[s] * ratio[s])
            scaled[s] = w[s] * share[s]
            raised[s] = 0.0
        by_k, term = 0.0, rows.term_offsets[query]
        for line in range(starts[row], starts[row + 1]):
            f = 0.0
            for s in range(fields):
                f += scaled[s] * tf[line, s]
            if k + f > 0.0:
                rise = given * rows.weight[term] / ((k + f) * (k + f))
                by_k -= rise * f
                for s in range(fields):
                    raised[s] += rise * tf[line, s]
            term += 1
        total[0] += by_k
        for s in range(fields):
            by_w = k * raised[s] * share[s]
            total[1 + s] += by_w
            total[1 + fields + s] += by_w * scaled[s] * (1.0 - ratio[s])


@parallel_kernel
def _pull_chunks(rows: Lines, theta: Theta, cuts: Ints, query: Ints, dscores: Floats, parts: Floats) -> None:
    for c in prange(len(query)):
        _pull_rows(rows, theta, cuts[c], cuts[c + 1], query[c], dscores, parts[c])
