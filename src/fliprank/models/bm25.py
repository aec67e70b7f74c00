"""BM25 and BM25F with exact derivatives (Taylor et al. 2006, appendix, equations 3 to 10).

F = sum_t I_t f_t / (k + f_t), where f_t = sum_s w_s tf_ts / beta_s and beta_s = 1 - b_s + b_s l_s / average l_s; I_t is
the idf of term t, times how often it occurs in the query. BM25 is BM25F of one field: all fields joined, or one.
Every edge has a value: at k = 0 a term counts 1 where f > 0; a field of length 0, or whose average is 0, has beta 1.

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

from dataclasses import dataclass, field
from math import inf
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.kernels import inlined_kernel, kernel, parallel_kernel, prange
from fliprank.models.base import register, row_gradient
from fliprank.models.field_model import FieldModel
from fliprank.models.parameters import Parameters
from fliprank.models.row_function import SATURATING
from fliprank.models.standardised import chunks_of
from fliprank.models.term_rows import Lines, Place, at

__all__ = ["BM25", "BM25F", "B", "K", "W", "length_norm", "saturated"]

K, W, B = (1.2, 0.0, inf), (1.0, 0.0, inf), (0.75, 0.0, 1.0)
"""Default, lower and upper bound."""


@dataclass(frozen=True, eq=False)
class _Saturating(FieldModel):
    """What BM25 and BM25F share: they are one function, computed by the same kernels."""

    function: ClassVar[int] = SATURATING

    def score(self, candidates: Candidates) -> Floats:
        function, out, chunks = self.row_function(candidates), np.empty(len(candidates)), chunks_of(len(candidates))
        theta, lines = function.theta(self.params.values), function.lines
        assert lines is not None
        if chunks == 1:
            bm25_scores(lines, Place(0, 0, 0, lines.tf.shape[1]), theta, 0, len(out), np.empty(lines.tf.shape[1]), out)
        else:
            _score_chunks(lines, theta, chunks, out)
        return out

    def scaled_weights(self, length: Floats) -> Floats:
        """w / beta of documents with these lengths (documents x fields; one column where fields are joined).

        What retrieval over a whole index needs: f is the sum of these times tf (equation 4).
        """
        places, constants = self._places()
        _, *each = np.concatenate([self.params.values, constants])[places]
        w, b = np.array(each).reshape(2, -1)
        scaled: Floats = w / (1.0 - b + b * self.length_ratio(length))
        return scaled

    def pullback(self, candidates: Candidates, dscores: ArrayLike) -> Floats:
        function, given = self.row_function(candidates), row_gradient(candidates, dscores)
        theta, lines = function.theta(self.params.values), function.lines
        assert lines is not None
        fields = lines.tf.shape[1]
        parts = np.zeros((chunks_of(len(given)), 1 + 2 * fields))
        if len(parts) == 1:
            bm25_pull(lines, Place(0, 0, 0, fields), theta, 0, len(given), given, np.empty(4 * fields), parts[0])
        else:
            _pull_chunks(lines, theta, given, parts)
        return function.by_parameters(parts.sum(axis=0), len(self.params))


@register
@dataclass(frozen=True, eq=False)
class BM25(_Saturating):
    """BM25 of all fields joined, or of those named: `BM25()`, `BM25("body")`. Parameters: k, b."""

    kind: ClassVar[str] = "bm25"
    summary: ClassVar[str] = "BM25 of all fields joined: k and b"
    joined: ClassVar[bool] = True

    def _parameters(self, fields: tuple[str, ...]) -> Parameters:
        return Parameters.of({"k": K, "b": B})

    def _places(self) -> tuple[Ints, Floats]:
        return np.array([0, 2, 1]), np.ones(1)


@register
@dataclass(frozen=True, eq=False)
class BM25F(_Saturating):
    """BM25F: a weight and a length normalisation for each field. Parameters: k, then `title.w`, `title.b`, ...

    (w, k) and (c w, c k) rank alike, so k is fixed unless `free_k`. `share_b`: one b for all fields, called `b`.
    """

    kind: ClassVar[str] = "bm25f"
    summary: ClassVar[str] = "BM25F: a weight and a length normalisation per field"
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

    def _places(self) -> tuple[Ints, Floats]:
        count = len(self.params)
        return np.concatenate([[0], np.arange(1, count, 2), np.arange(2, count, 2)]), np.empty(0)


@inlined_kernel
def length_norm(b: float, ratio: float) -> float:
    """beta = 1 - b + b ratio, where ratio is the length over the average length; 1 without length or average."""
    return 1.0 - b + b * (ratio if ratio > 0.0 else 1.0)


@inlined_kernel
def saturated(weight: float, f: float, k: float) -> float:
    """weight f / (k + f), the score of one term; 0 where k = f = 0."""
    return weight * f / (k + f) if k + f > 0.0 else 0.0


@kernel
def bm25_scores(lines: Lines, place: Place, theta: Floats, start: int, stop: int, scaled: Floats, out: Floats) -> None:
    """Set `out` to the scores of rows start:stop. theta: k, each w, each b, each 1 / average length."""
    tf, length, fields, column = lines.tf, lines.length, place.fields, place.column
    k, w = theta[place.theta], place.theta + 1
    b, inverse = w + fields, w + 2 * fields
    for row in range(start, stop):
        for s in range(fields):
            ratio = length[row, at(column, s)] * theta[at(inverse, s)]
            scaled[s] = theta[at(w, s)] / length_norm(theta[at(b, s)], ratio)
        total = 0.0
        for line in range(lines.starts[row], lines.starts[row + 1]):
            term = lines.term[line]
            f = 0.0
            for s in range(fields):
                f += scaled[s] * tf[line, at(column, s)]
            total += saturated(lines.weight[term, place.weight], f, k)
        out[row - start] = total


@parallel_kernel
def _score_chunks(lines: Lines, theta: Floats, chunks: int, out: Floats) -> None:
    rows, fields = len(out), lines.tf.shape[1]
    for c in prange(chunks):
        start, stop = rows * c // chunks, rows * (c + 1) // chunks
        bm25_scores(lines, Place(0, 0, 0, fields), theta, start, stop, np.empty(fields), out[start:stop])


@kernel
def bm25_pull(
    lines: Lines,
    place: Place,
    theta: Floats,
    start: int,
    stop: int,
    dscores: Floats,
    scratch: Floats,
    total: Floats,
) -> None:
    """Add to `total` the gradient of rows start:stop: by k (equation 7), each w (8), each b (10).

    `dscores` belongs to these rows alone; `scratch` has room for four numbers per field.
    """
    tf, length, fields, column = lines.tf, lines.length, place.fields, place.column
    k, w = theta[place.theta], place.theta + 1
    b, inverse = w + fields, w + 2 * fields
    ratio, share = scratch[:fields], scratch[fields : 2 * fields]
    scaled, raised = scratch[2 * fields : 3 * fields], scratch[3 * fields : 4 * fields]
    for row in range(start, stop):
        given = dscores[row - start]
        if given == 0.0:
            continue
        for s in range(fields):
            ratio[s] = length[row, at(column, s)] * theta[at(inverse, s)]
            if not ratio[s] > 0.0:
                ratio[s] = 1.0
            share[s] = 1.0 / (1.0 - theta[at(b, s)] + theta[at(b, s)] * ratio[s])
            scaled[s] = theta[at(w, s)] * share[s]
            raised[s] = 0.0
        by_k = 0.0
        for line in range(lines.starts[row], lines.starts[row + 1]):
            term = lines.term[line]
            f = 0.0
            for s in range(fields):
                f += scaled[s] * tf[line, at(column, s)]
            if k + f > 0.0:
                rise = given * lines.weight[term, place.weight] / ((k + f) * (k + f))
                by_k -= rise * f
                for s in range(fields):
                    raised[s] += rise * tf[line, at(column, s)]
        total[0] += by_k
        for s in range(fields):
            by_w = k * raised[s] * share[s]
            total[1 + s] += by_w
            total[1 + fields + s] += by_w * scaled[s] * (1.0 - ratio[s])


@parallel_kernel
def _pull_chunks(lines: Lines, theta: Floats, dscores: Floats, parts: Floats) -> None:
    rows, chunks, fields = len(dscores), len(parts), lines.tf.shape[1]
    for c in prange(chunks):
        start, stop = rows * c // chunks, rows * (c + 1) // chunks
        scratch = np.empty(4 * fields)
        bm25_pull(lines, Place(0, 0, 0, fields), theta, start, stop, dscores[start:stop], scratch, parts[c])
