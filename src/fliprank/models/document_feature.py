"""One feature of a document as a ranking function: PageRank, URL depth or age, through a curve that flattens out.

The curves are those of Craswell et al. 2005 (and of Elasticsearch's rank_feature): log(k + x), x / (x + k) and
x^a / (x^a + k^a); for these, values below 0 count as 0. Two more are for features with a sign, x / (|x| + k), and for
dates, k / (k + age): age is how far a date lies before the newest of the training rows, in its own units, so k is the
age at which a document counts half. 0 is no date and scores 0. k is in the feature's own units and starts at the median
of its positive values (of |x|, of ages); k and a are tuned like all other parameters. In a `Stack` the weight gives the
direction: below 0, small values, or old ones, are good.

>>> from fliprank.data.candidates import Candidates
>>> rows = Candidates.of([1, 0, 0], features=[[8.0], [2.0], [0.0]], feature_names=["pagerank"])
>>> model = Feature("pagerank", transform="saturate").prepared(rows, 0)
>>> model.params.names, model.params["pagerank.k"], model.score(rows).round(6).tolist()
(('pagerank.k',), 5.0, [0.615385, 0.285714, 0.0])
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, isfinite
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats, frozen
from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, UsageError
from fliprank.kernels import kernel
from fliprank.models.base import UNKNOWN, Model, Seed, register, row_gradient
from fliprank.models.folder import Record
from fliprank.models.parameters import Parameters
from fliprank.models.row_function import IDENTITY, LOG, RECENCY, SATURATE, SIGMOID, SIGNED, RowFunction

__all__ = ["Feature"]

TRANSFORMS: dict[str, tuple[int, str]] = {
    "none": (IDENTITY, ""),
    "log": (LOG, "k"),
    "saturate": (SATURATE, "k"),
    "sigmoid": (SIGMOID, "ka"),
    "signed": (SIGNED, "k"),
    "recency": (RECENCY, "k"),
}
"""The kind and the parameters of each."""
LEAST, STEEPEST = 1e-6, 20.0
"""The least k, as a share of its default; the largest a."""
UNDATED = 1e30
"""The age of what has no date: so old that it scores 0."""


@register
@dataclass(frozen=True, eq=False)
class Feature(Model):
    """The feature of this name, as it is or through a curve: "log", "saturate", "sigmoid", "signed", "recency".

    Parameters: `NAME.k`, for a sigmoid also the exponent `NAME.a`. A `k` that is given is fixed. `newest` is the date
    from which ages count; by default the newest of the training rows. What is newer is as good as that.
    """

    kind: ClassVar[str] = "feature"
    summary: ClassVar[str] = "one feature, as it is or through a curve: log, saturate, recency, ..."
    needs: ClassVar[frozenset[str]] = frozenset({"features"})
    name: str
    transform: str = "none"
    k: float | None = None
    newest: float | None = None

    def __post_init__(self) -> None:
        if self.transform not in TRANSFORMS:
            raise UsageError(f"transform: one of {', '.join(TRANSFORMS)}, not {self.transform!r}")
        if not isinstance(self.name, str) or not self.name:
            raise UsageError(f"a feature is named by a string, not {self.name!r}")
        if self.k is not None and (self.transform == "none" or not 0 < self.k < inf):
            raise UsageError(f"k must be a positive number, for a curve: not {self.k} for {self.transform!r}")
        if self.newest is not None and (self.transform != "recency" or not isfinite(self.newest)):
            raise UsageError(f"newest is a date, for recency: not {self.newest} for {self.transform!r}")
        if self.params is UNKNOWN and (self.k is not None or self.transform == "none"):
            params = self._parameters(float(self.k or 0.0))
            object.__setattr__(self, "params", params.fix(params.names[:1]))

    def _parameters(self, k: float) -> Parameters:
        table = {"k": (k, LEAST * k, inf), "a": (1.0, 0.0, STEEPEST)}
        return Parameters.of({f"{self.name}.{key}": table[key] for key in TRANSFORMS[self.transform][1]})

    @property
    def ready(self) -> bool:
        return self.params is not UNKNOWN and (self.transform != "recency" or self.newest is not None)

    def prepared(self, train: Candidates, rng: Seed) -> Self:
        """With k at the median of the positive values of these rows, and the newest date, unless they are known."""
        values = self._raw(train)
        if self.ready:
            return self
        if self.transform == "recency" and self.newest is None:
            return replace(self, newest=float(values.max(initial=0.0))).prepared(train, rng)
        values = np.abs(self._column(train))
        positive = values[(values > 0) & (values < UNDATED)]
        return replace(self, params=self._parameters(float(np.median(positive)) if len(positive) else 1.0))

    def initial(self, rng: np.random.Generator) -> Floats:
        """The defaults times random factors."""
        params = self.params
        return np.clip(params.default * np.exp(rng.normal(size=len(params))), params.lower, params.upper)

    def _column(self, candidates: Candidates) -> Floats:
        """What the curve is of, for each row: the value, 0 in place of values below 0, or the age."""
        if self.transform in ("none", "signed"):
            return self._raw(candidates)
        key = ("feature", self.name, "positive", self.newest)
        if key not in candidates.memo:
            column = np.maximum(self._raw(candidates), 0.0)
            if self.newest is not None:
                column = np.where(column > 0, np.maximum(self.newest - column, 0.0), UNDATED)
            candidates.memo[key] = frozen(column, np.float64)
        found: Floats = candidates.memo[key]
        return found

    def _raw(self, candidates: Candidates) -> Floats:
        """The feature of each row, checked once."""
        key = ("feature", self.name)
        if key not in candidates.memo:
            if self.name not in candidates.feature_names or candidates.features is None:
                known = ", ".join(candidates.feature_names[:10]) or "none"
                raise InputError(f"these candidates have no feature {self.name!r}", hint=f"they have: {known}")
            column = candidates.features[:, candidates.feature_names.index(self.name)].astype(np.float64)
            if not np.isfinite(column).all():
                bad = int((~np.isfinite(column)).sum())
                raise InputError(f"feature {self.name} is not a finite number in {bad:,} of {len(column):,} rows")
            candidates.memo[key] = frozen(column, np.float64)
        found: Floats = candidates.memo[key]
        return found

    def _known(self, candidates: Candidates) -> Floats:
        if not self.ready:
            raise UsageError(f"feature {self.name} has no k yet: train it, or call prepared(train, rng)")
        return self._column(candidates)

    def row_function(self, candidates: Candidates) -> RowFunction:
        """As kernels see it: k, and for a sigmoid a."""
        kind, places = TRANSFORMS[self.transform][0], np.arange(len(self.params))
        return RowFunction(kind, places, np.empty(0), column=self._known(candidates))

    def score(self, candidates: Candidates) -> Floats:
        x, values = self._known(candidates), self.params.values
        if self.transform == "none":
            return x.copy()
        if self.transform == "log":
            return np.log(x + float(values[0]))
        if self.transform in ("saturate", "signed"):
            return x / (np.abs(x) + float(values[0]))
        if self.transform == "recency":
            return float(values[0]) / (x + float(values[0]))
        return _sigmoid(x, values[0], values[1])[0]

    def pullback(self, candidates: Candidates, dscores: ArrayLike) -> Floats:
        x, values, given = self._known(candidates), self.params.values, row_gradient(candidates, dscores)
        if self.transform == "none":
            return np.empty(0)
        if self.transform == "log":
            return np.array([(given / (x + values[0])).sum()])
        if self.transform in ("saturate", "signed", "recency"):
            slope = (given * x / (np.abs(x) + values[0]) ** 2).sum()
            return np.array([slope if self.transform == "recency" else -slope])
        score, logs = _sigmoid(x, values[0], values[1])
        slope = given * score * (1.0 - score)
        return np.array([-slope.sum() * values[1] / values[0], (slope * logs).sum()])

    def structure(self) -> dict[str, Any]:
        newest = {} if self.newest is None else {"newest": self.newest}
        return {"feature": self.name, "transform": self.transform, **newest}

    @classmethod
    def restore(cls, structure: Record) -> Self:
        transform = structure.text("transform")
        newest = structure.number("newest") if transform == "recency" else None
        model = cls(structure.text("feature"), transform, newest=newest)
        return model if model.ready else replace(model, params=model._parameters(1.0))


def _sigmoid(x: Floats, k: float, a: float) -> tuple[Floats, Floats]:
    """x^a / (x^a + k^a), as a logistic function of log(x / k), and that logarithm: both 0 where x is."""
    some = x > 0
    logs = np.log(x / k, out=np.zeros(len(x)), where=some)
    with np.errstate(over="ignore"):
        score: Floats = np.where(some, 1.0 / (1.0 + np.exp(-a * logs)), 0.0)
    return score, logs


@kernel
def curve(kind: int, x: float, theta: Floats, first: int) -> float:
    """The score of one row, for kernels that go row by row; k, and a, stand in `theta` from `first`.

    All rows at once are for NumPy, whose logarithms are many times as fast.
    """
    if kind == LOG:
        return float(np.log(x + theta[first]))
    if kind in (SATURATE, SIGNED):
        return float(x / (abs(x) + theta[first]))
    if kind == RECENCY:
        return float(theta[first] / (x + theta[first]))
    if kind == SIGMOID:  # as a logistic function of log(x / k)
        return float(1.0 / (1.0 + np.exp(-theta[first + 1] * np.log(x / theta[first])))) if x > 0.0 else 0.0
    return x


@kernel
def pull_curve(kind: int, x: float, theta: Floats, first: int, given: float, total: Floats) -> None:
    """Add to `total` the gradient by k, and a."""
    if kind == LOG:
        total[0] += given / (x + theta[first])
    elif kind in (SATURATE, SIGNED, RECENCY):
        slope = given * x / ((abs(x) + theta[first]) * (abs(x) + theta[first]))
        total[0] += slope if kind == RECENCY else -slope
    elif kind == SIGMOID and x > 0.0:
        k, a, score = theta[first], theta[first + 1], curve(kind, x, theta, first)
        slope = given * score * (1.0 - score)
        total[0] -= slope * a / k
        total[1] += slope * np.log(x / k)
