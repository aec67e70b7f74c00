"""The sum of one BM25 per field, with exact derivatives: what engines compute for a query in several fields.

F = sum_s w_s sum_t I_t x_ts / (x_ts + k_s beta_s), where x_ts = tf_ts^a_s and beta_s = 1 - b_s + b_s l_s / average l_s.
I_t is the idf of term t, times how often it occurs in the query. There is no factor k + 1, as in Lucene since version
8, so w_s is the boost of field s in Elasticsearch's `multi_match` of type `most_fields`; k_s and b_s are settings of
the field's similarity. An engine takes the idf of a term anew for each field, from the documents that have the field.
Here a term has one idf, which comes with the candidates: the weight of a field makes up for idfs that differ by a
factor, not for those that differ from term to term.

BM25F adds up frequencies and then saturates, so that a term in title and body counts less than twice; here each field
saturates alone. a_s bends the frequencies before that: at its default 1 the formula is plain BM25, below 1 further
occurrences count less, and at 0 only whether a term occurs. Every edge has a value, as in `bm25.py`.

>>> from fliprank.data.candidates import Candidates
>>> from fliprank.data.ids import Ids
>>> from fliprank.data.term_statistics import TermStatistics
>>> terms = TermStatistics(("title", "body"), [0, 1], Ids.of(["shoe"]), [2.0], [0, 1, 2], [[1, 3], [0, 2]],
...                        [[2, 9], [4, 3]])
>>> rows = Candidates([0, 2], [1.0, 0.0], Ids.of(["q"]), terms=terms)
>>> model = BM25Sum().prepared(rows, 0)
>>> model.params.free_names
('title.w', 'title.k', 'title.b', 'body.w', 'body.k', 'body.b')
>>> model.score(rows).round(6).tolist()          # the first: 2 / (1 + 1.2 x 0.75) + 2 x 3 / (3 + 1.2 x 1.375)
[2.342954, 1.454545]
>>> model.pullback(rows, [1.0, 0.0]).round(6).tolist()
[1.052632, -0.415512, 0.221607, 0.0, 1.290323, -0.381547, -0.166493, 0.503007]
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.errors import UsageError
from fliprank.kernels import inlined_kernel, kernel, parallel_kernel, prange
from fliprank.models.base import register, row_gradient
from fliprank.models.bm25 import B, K, W, length_norm
from fliprank.models.field_model import FieldModel
from fliprank.models.parameters import Parameters
from fliprank.models.row_function import SUMMED
from fliprank.models.standardised import chunks_of
from fliprank.models.term_rows import Lines, Place, at

__all__ = ["BM25Sum", "curved"]

A = (1.0, 0.0, 2.0)
"""Default, lower and upper bound of the exponent of tf."""
EACH = 4
"""Parameters per field."""
LEAST, LOGS = 1e-300, np.log(np.maximum(np.arange(256.0), 1.0))


@register
@dataclass(frozen=True, eq=False)
class BM25Sum(FieldModel):
    """One BM25 per field, weighted and added up. Parameters: `title.w`, `title.k`, `title.b`, `title.a`, `body.w`, ...

    The exponents `a` are fixed at 1 unless `curves`. All weights times a number rank alike. None of them is fixed for
    that: whichever it is, its field might be the one that is worth nothing, and then all others would have to go to
    infinity. A prior holds their common size instead, and objectives see scores in units of their spread, so that it
    is worth nothing to them.
    """

    kind: ClassVar[str] = "bm25sum"
    summary: ClassVar[str] = "a sum of BM25 per field: a weight, k and b for each"
    joined: ClassVar[bool] = False
    function: ClassVar[int] = SUMMED
    curves: bool = field(default=False, kw_only=True)

    def _parameters(self, fields: tuple[str, ...]) -> Parameters:
        every = (("w", W), ("k", K), ("b", B), ("a", A))
        params = Parameters.of({f"{name}.{key}": bounds for name in fields for key, bounds in every})
        return params if self.curves else params.fix([f"{name}.a" for name in fields])

    def _places(self) -> tuple[Ints, Floats]:
        return np.arange(len(self.params)).reshape(-1, EACH).T.ravel(), np.empty(0)

    def score(self, candidates: Candidates) -> Floats:
        function, out, chunks = self.row_function(candidates), np.empty(len(candidates)), chunks_of(len(candidates))
        theta, lines = function.theta(self.params.values), function.lines
        assert lines is not None
        if chunks == 1:
            fields = lines.tf.shape[1]
            sum_scores(lines, Place(0, 0, 0, fields), theta, 0, len(out), np.empty(fields), out)
        else:
            _score_chunks(lines, theta, chunks, out)
        return out

    def pullback(self, candidates: Candidates, dscores: ArrayLike) -> Floats:
        function, given = self.row_function(candidates), row_gradient(candidates, dscores)
        theta, lines = function.theta(self.params.values), function.lines
        assert lines is not None
        fields = lines.tf.shape[1]
        parts = np.zeros((chunks_of(len(given)), EACH * fields))
        if len(parts) == 1:
            sum_pull(lines, Place(0, 0, 0, fields), theta, 0, len(given), given, np.empty(5 * fields), parts[0])
        else:
            _pull_chunks(lines, theta, given, parts)
        return function.by_parameters(parts.sum(axis=0), len(self.params))

    def linear_along(self, direction: ArrayLike) -> bool:
        """True where only weights move."""
        return not self.params.direction(direction).reshape(-1, EACH)[:, 1:].any()

    def slope(self, candidates: Candidates, direction: ArrayLike) -> Floats:
        if not self.linear_along(direction):
            raise UsageError("the scores of a bm25sum model are linear along its weights only")
        values = self.params.values.copy()
        values[::EACH] = self.params.direction(direction)[::EACH]
        return replace(self, params=self.params.at(values)).score(candidates)

    def norms(self, length: Floats) -> Floats:
        """k beta of documents with these lengths (documents x fields): what retrieval over a whole index needs."""
        _, k, b, _ = self.params.values.reshape(-1, EACH).T
        norms: Floats = k * (1.0 - b + b * self.length_ratio(length))
        return norms


@inlined_kernel
def _log(tf: float) -> float:
    """log(tf), from a table for what occurs: a branch that can't be foreseen costs more than all else. 0 at 0."""
    whole = np.uint64(tf)
    return LOGS[whole] if tf < len(LOGS) and whole == tf else float(np.log(tf))


@inlined_kernel
def curved(tf: float, a: float) -> float:
    """tf^a; 0 where tf is 0."""
    return tf if a == 1.0 or tf == 0.0 or tf == 1.0 else float(np.exp(a * _log(tf)))


@inlined_kernel
def _norm(k: float, b: float, ratio: float) -> float:
    """k beta; not quite 0, so that x / (x + k beta) is 0 at x = 0 and 1 elsewhere where k is 0."""
    return max(k * length_norm(b, ratio), LEAST)


@inlined_kernel
def _bent(theta: Floats, first: int, fields: int) -> bool:
    """Whether some exponent is not 1."""
    for s in range(fields):
        if theta[first + s] != 1.0:
            return True
    return False


@kernel
def sum_scores(lines: Lines, place: Place, theta: Floats, start: int, stop: int, norm: Floats, out: Floats) -> None:
    """Set `out` to the scores of rows start:stop. theta: each w, each k, each b, each a, each 1 / average length."""
    length, fields, column, w = lines.length, place.fields, place.column, place.theta
    k, b, a, inverse = w + fields, w + 2 * fields, w + 3 * fields, w + 4 * fields
    bent = _bent(theta, a, fields)
    for row in range(start, stop):
        for s in range(fields):
            ratio = length[row, at(column, s)] * theta[at(inverse, s)]
            norm[s] = _norm(theta[at(k, s)], theta[at(b, s)], ratio)
        total = 0.0
        for line in range(lines.starts[row], lines.starts[row + 1]):
            term = lines.term[line]
            of_term = 0.0
            for s in range(fields):
                tf = np.float64(lines.tf[line, at(column, s)])
                x = curved(tf, theta[at(a, s)]) if bent else tf
                of_term += theta[at(w, s)] * x / (x + norm[s])
            total += lines.weight[term, place.weight] * of_term
        out[row - start] = total


@parallel_kernel
def _score_chunks(lines: Lines, theta: Floats, chunks: int, out: Floats) -> None:
    rows, fields = len(out), lines.tf.shape[1]
    for c in prange(chunks):
        start, stop = rows * c // chunks, rows * (c + 1) // chunks
        sum_scores(lines, Place(0, 0, 0, fields), theta, start, stop, np.empty(fields), out[start:stop])


@kernel
def sum_pull(
    lines: Lines,
    place: Place,
    theta: Floats,
    start: int,
    stop: int,
    dscores: Floats,
    scratch: Floats,
    total: Floats,
) -> None:
    """Add to `total` the gradient of rows start:stop: by each w, each k, each b, each a.

    With y = x / (x + k beta): dy/dk = -y beta / (x + k beta), dy/db = -y k (ratio - 1) / (x + k beta), and dy/da =
    y k beta log(tf) / (x + k beta). `dscores` belongs to these rows alone; `scratch` has room for 5 numbers per field.
    """
    length, fields, column, w = lines.length, place.fields, place.column, place.theta
    k, b, a, inverse = w + fields, w + 2 * fields, w + 3 * fields, w + 4 * fields
    ratio, norm, by_w = scratch[:fields], scratch[fields : 2 * fields], scratch[2 * fields : 3 * fields]
    fall, bend = scratch[3 * fields : 4 * fields], scratch[4 * fields : 5 * fields]
    bent = _bent(theta, a, fields)
    for row in range(start, stop):
        given = dscores[row - start]
        if given == 0.0:
            continue
        for s in range(fields):
            ratio[s] = length[row, at(column, s)] * theta[at(inverse, s)]
            if not ratio[s] > 0.0:
                ratio[s] = 1.0
            norm[s] = _norm(theta[at(k, s)], theta[at(b, s)], ratio[s])
            by_w[s] = fall[s] = bend[s] = 0.0
        for line in range(lines.starts[row], lines.starts[row + 1]):
            term = lines.term[line]
            weight = given * lines.weight[term, place.weight]
            for s in range(fields):
                tf = np.float64(lines.tf[line, at(column, s)])
                x = curved(tf, theta[at(a, s)]) if bent else tf
                share = 1.0 / (x + norm[s])
                y = weight * x * share
                by_w[s] += y
                fall[s] += y * share
                bend[s] += y * share * _log(tf)
        for s in range(fields):
            weight, beta = theta[at(w, s)], length_norm(theta[at(b, s)], ratio[s])
            total[s] += by_w[s]
            total[fields + s] -= weight * beta * fall[s]
            total[2 * fields + s] -= weight * theta[at(k, s)] * (ratio[s] - 1.0) * fall[s]
            total[3 * fields + s] += weight * norm[s] * bend[s]


@parallel_kernel
def _pull_chunks(lines: Lines, theta: Floats, dscores: Floats, parts: Floats) -> None:
    rows, chunks, fields = len(dscores), len(parts), lines.tf.shape[1]
    for c in prange(chunks):
        start, stop = rows * c // chunks, rows * (c + 1) // chunks
        scratch = np.empty(5 * fields)
        sum_pull(lines, Place(0, 0, 0, fields), theta, start, stop, dscores[start:stop], scratch, parts[c])
