"""PostgreSQL's ts_rank, for queries whose words are joined by "or", with its gradient by the weights of the fields.

The words of all fields stand one after the other, each with the label of its field: A, B, C, D in the order of the
fields. The n-th occurrence of a word adds w / n², where w is the weight of its label; the best label counts as if it
stood first: it adds w in the place of w / n², at its first occurrence. The sum is divided by pi² / 6 and, over all
words of the query, by their number; how rare a word is, and how often it stands in the query, is nothing to it. Which
label is best changes at once when two weights change their order, so that scores jump there.

A word has at most 255 places in a field and 256 in a document. Positions end at 16383: fields longer than that are not
scored here as PostgreSQL does it.

>>> from fliprank.data.ids import Ids
>>> from fliprank.models.engine import Formula
>>> terms = TermStatistics(("title", "body"), [0, 1], Ids.of(["shoe"]), [2.0], [0, 1, 2], [[1, 2], [0, 2]],
...                        [[2, 9], [4, 3]])
>>> rows = Candidates([0, 2], [1.0, 0.0], Ids.of(["q"]), terms=terms)
>>> model = TsRank(Formula("postgresql", "ts_rank", "ts_rank"), ("title", "body")).prepared(rows, 0)
>>> (model.score(rows) * SUM_OF_SQUARES).round(4).tolist()       # 1 + 0.4 / 4 + 0.4 / 9, and 0.4 + 0.4 / 4
[1.1444, 0.5]
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats, Matrix, frozen
from fliprank.data.candidates import Candidates
from fliprank.data.term_statistics import TermStatistics
from fliprank.errors import UsageError
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.models.base import Seed, register, row_gradient
from fliprank.models.engine.kernels import Rows
from fliprank.models.engine.model import EngineText
from fliprank.models.parameters import Parameters
from fliprank.models.standardised import chunks_of
from fliprank.models.term_rows import field_columns, statistics_of, term_rows
from fliprank.naming import unknown

__all__ = ["LABELS", "NORMALISATIONS", "TsRank"]

LABELS = {"A": 1.0, "B": 0.4, "C": 0.2, "D": 0.1}
"""The weights that PostgreSQL gives its labels."""
NORMALISATIONS = {"ts_rank": 0, "ts_rank_1": 1, "ts_rank_2": 2}
"""By function, the last argument of ts_rank: 1 divides by log2(length + 1), 2 by the length of the document."""
SUM_OF_SQUARES = 1.64493406685
IN_FIELD, IN_DOCUMENT = 255, 256
"""How many places of a word PostgreSQL keeps."""


@register
@dataclass(frozen=True, eq=False)
class TsRank(EngineText):
    """ts_rank over these fields, which are four at most."""

    kind: ClassVar[str] = "ts_rank"
    summary: ClassVar[str] = "PostgreSQL's ts_rank: see --engine"
    terms: ClassVar[tuple[str, ...]] = ("ts_rank",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.formula.function not in NORMALISATIONS:
            name = self.formula.function
            raise unknown("function of postgresql", name, name, NORMALISATIONS)

    def _parameters(self, fields: tuple[str, ...]) -> Parameters:
        if len(fields) > len(LABELS):
            given = f"{len(fields)} fields: {', '.join(fields)}"
            raise UsageError(f"PostgreSQL has four labels for text, A to D, and these are {given}; name at most four")
        each = zip(fields, LABELS.values(), strict=False)
        return Parameters.of({f"{name}.w": (default, 0.0, 1.0) for name, default in each})

    def prepared(self, train: Candidates, rng: Seed) -> Self:
        """With the fields of these rows, unless it has fields; of their collection it needs nothing."""
        terms = statistics_of(train)
        fields = self.fields or terms.fields
        field_columns(terms, fields)
        nothing = np.zeros(len(fields))
        return self if self.ready else replace(self, fields=fields, tokens=nothing, counted=nothing)

    def score(self, candidates: Candidates) -> Floats:
        out = np.empty(len(candidates))
        _scores(self._rows(candidates), self.params.values, _squares(), chunks_of(len(out)), out)
        return out

    def pullback(self, candidates: Candidates, dscores: ArrayLike) -> Floats:
        given = row_gradient(candidates, dscores)
        parts = np.zeros((chunks_of(len(given)), len(self.params)))
        _gradient(self._rows(candidates), self.params.values, _squares(), given, parts)
        return np.asarray(parts.sum(axis=0), np.float64)

    def linear_along(self, direction: ArrayLike) -> bool:
        """Never: which weight is the largest may change."""
        return False

    def _rows_of(self, candidates: Candidates, fields: tuple[str, ...]) -> Rows:
        terms, lines = statistics_of(candidates), term_rows(candidates, fields)
        words = lines.length.sum(axis=1, dtype=np.float64)
        divisors = [np.ones(len(words)), np.log2(words + 1.0), words]
        divisor = divisors[NORMALISATIONS[self.formula.function]] * _known_terms(terms)[candidates.query_of_rows()]
        scale = np.divide(1.0, divisor, out=np.zeros(len(words)), where=divisor > 0)
        nothing = frozen(np.empty((0, 0)), np.float64)
        return Rows(lines.starts, lines.term, lines.tf, lines.length, nothing, terms.count, frozen(scale, np.float64))


def _known_terms(terms: TermStatistics) -> Floats:
    """How many different terms of each query the collection has."""
    known = np.ones(len(terms.count)) if terms.df is None else np.asarray(terms.df > 0, np.float64)
    return np.diff(np.append(0.0, np.cumsum(known))[terms.offsets])


def _squares() -> Floats:
    """The sum of 1 / i² up to each n, as PostgreSQL scales it."""
    return np.append(0.0, np.cumsum(1.0 / np.arange(1.0, IN_DOCUMENT + 1) ** 2)) / SUM_OF_SQUARES


@kernel
def _word(tf: Matrix, line: int, weights: Floats, squares: Floats, by: Floats) -> float:
    """The score of one word; `by` becomes its gradient. Weights are compared in the precision that PostgreSQL has."""
    before, winner, lifted, out = 0, -1, 0.0, 0.0
    for s in range(len(weights)):
        by[s] = 0.0
        after = min(before + min(int(tf[line, s]), IN_FIELD), IN_DOCUMENT)
        if after > before:
            by[s] = squares[after] - squares[before]
            out += weights[s] * by[s]
            if winner < 0 or np.float32(weights[s]) > np.float32(weights[winner]):
                winner, lifted = s, (1.0 - 1.0 / (before + 1.0) ** 2) / SUM_OF_SQUARES
            before = after
    if winner >= 0:
        by[winner] += lifted
        out += weights[winner] * lifted
    return out


@parallel_kernel
def _scores(rows: Rows, weights: Floats, squares: Floats, chunks: int, out: Floats) -> None:
    for c in prange(chunks):
        by = np.zeros(len(weights))
        for row in range(len(out) * c // chunks, len(out) * (c + 1) // chunks):
            total = 0.0
            for line in range(rows.starts[row], rows.starts[row + 1]):
                total += _word(rows.tf, line, weights, squares, by)
            out[row] = rows.scale[row] * total


@parallel_kernel
def _gradient(rows: Rows, weights: Floats, squares: Floats, dscores: Floats, parts: Floats) -> None:
    chunks, count = len(parts), len(dscores)
    for c in prange(chunks):
        by = np.zeros(len(weights))
        for row in range(count * c // chunks, count * (c + 1) // chunks):
            given = dscores[row] * rows.scale[row]
            for line in range(rows.starts[row], rows.starts[row + 1]):
                _word(rows.tf, line, weights, squares, by)
                for s in range(len(weights)):
                    parts[c, s] += given * by[s]
