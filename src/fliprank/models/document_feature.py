"""One feature of a document as a ranking function: PageRank, URL depth or age, through a curve that flattens out.

The curves are those of Craswell et al. 2005 (and of Elasticsearch's rank_feature): log(k + x), x / (x + k) and
x^a / (x^a + k^a). k is in the feature's own units and starts at the median of its positive values; k and a are tuned
like all other parameters. Values below 0 count as 0. In a `Stack` the weight gives the direction: below 0, small values
are good.

>>> from fliprank.data.candidates import Candidates
>>> rows = Candidates.of([1, 0, 0], features=[[8.0], [2.0], [0.0]], feature_names=["pagerank"])
>>> model = Feature("pagerank", transform="saturate").prepared(rows, 0)
>>> model.params.names, model.params["pagerank.k"], model.score(rows).round(6).tolist()
(('pagerank.k',), 5.0, [0.615385, 0.285714, 0.0])
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
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
from fliprank.models.row_function import IDENTITY, LOG, SATURATE, SIGMOID, RowFunction

__all__ = ["Feature"]

TRANSFORMS: dict[str, tuple[int, str]] = {
    "none": (IDENTITY, ""),
    "log": (LOG, "k"),
    "saturate": (SATURATE, "k"),
    "sigmoid": (SIGMOID, "ka"),
}
"""The kind and the parameters of each."""
LEAST, STEEPEST = 1e-6, 20.0
"""The least k, as a share of its default; the largest a."""


@register
@dataclass(frozen=True, eq=False)
class Feature(Model):
    """The feature of this name, as it is or through a curve: "log", "saturate", "sigmoid".

    Parameters: `NAME.k`, for a sigmoid also the exponent `NAME.a`. A `k` that is given is fixed.
    """

    kind: ClassVar[str] = "feature"
    summary: ClassVar[str] = "one feature, as it is or through a curve: log, saturate, sigmoid"
    needs: ClassVar[frozenset[str]] = frozenset({"features"})
    name: str
    transform: str = "none"
    k: float | None = None

    def __post_init__(self) -> None:
        if self.transform not in TRANSFORMS:
            raise UsageError(f"transform: one of {', '.join(TRANSFORMS)}, not {self.transform!r}")
        if not isinstance(self.name, str) or not self.name:
            raise UsageError(f"a feature is named by a string, not {self.name!r}")
        if self.k is not None and (self.transform == "none" or not 0 < self.k < inf):
            raise UsageError(f"k must be a positive number, for a curve: not {self.k} for {self.transform!r}")
        if self.params is UNKNOWN and (self.k is not None or self.transform == "none"):
            params = self._parameters(float(self.k or 0.0))
            object.__setattr__(self, "params", params.fix(params.names[:1]))

    def _parameters(self, k: float) -> Parameters:
        table = {"k": (k, LEAST * k, inf), "a": (1.0, 0.0, STEEPEST)}
        return Parameters.of({f"{self.name}.{key}": table[key] for key in TRANSFORMS[self.transform][1]})

    @property
    def ready(self) -> bool:
        return self.params is not UNKNOWN

    def prepared(self, train: Candidates, rng: Seed) -> Self:
        """With k at the median of the positive values of these rows, unless it is known."""
        values = self._column(train)
        if self.ready:
            return self
        positive = values[values > 0]
        return replace(self, params=self._parameters(float(np.median(positive)) if len(positive) else 1.0))

    def initial(self, rng: np.random.Generator) -> Floats:
        """The defaults times random factors."""
        params = self.params
        return np.clip(params.default * np.exp(rng.normal(size=len(params))), params.lower, params.upper)

    def _column(self, candidates: Candidates) -> Floats:
        """The feature of each row, checked once; for a curve, with 0 in place of values below 0."""
        key = ("feature", self.name, self.transform == "none")
        if key not in candidates.memo:
            if self.name not in candidates.feature_names or candidates.features is None:
                known = ", ".join(candidates.feature_names[:10]) or "none"
                raise InputError(f"these candidates have no feature {self.name!r}", hint=f"they have: {known}")
            column = candidates.features[:, candidates.feature_names.index(self.name)].astype(np.float64)
            if not np.isfinite(column).all():
                bad = int((~np.isfinite(column)).sum())
                raise InputError(f"feature {self.name} is not a finite number in {bad:,} of {len(column):,} rows")
            least = -inf if self.transform == "none" else 0.0
            candidates.memo[key] = frozen(np.maximum(column, least), np.float64)
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
        if self.transform == "saturate":
            return x / (x + float(values[0]))
        return _sigmoid(x, values[0], values[1])[0]

    def pullback(self, candidates: Candidates, dscores: ArrayLike) -> Floats:
        x, values, given = self._known(candidates), self.params.values, row_gradient(candidates, dscores)
        if self.transform == "none":
            return np.empty(0)
        if self.transform == "log":
            return np.array([(given / (x + values[0])).sum()])
        if self.transform == "saturate":
            return np.array([-(given * x / (x + values[0]) ** 2).sum()])
        score, logs = _sigmoid(x, values[0], values[1])
        slope = given * score * (1.0 - score)
        return np.array([-slope.sum() * values[1] / values[0], (slope * logs).sum()])

    def structure(self) -> dict[str, Any]:
        return {"feature": self.name, "transform": self.transform}

    @classmethod
    def restore(cls, structure: Record) -> Self:
        model = cls(structure.text("feature"), structure.text("transform"))
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
    if kind == SATURATE:
        return float(x / (x + theta[first]))
    if kind == SIGMOID:  # as a logistic function of log(x / k)
        return float(1.0 / (1.0 + np.exp(-theta[first + 1] * np.log(x / theta[first])))) if x > 0.0 else 0.0
    return x


@kernel
def pull_curve(kind: int, x: float, theta: Floats, first: int, given: float, total: Floats) -> None:
    """Add to `total` the gradient by k, and a."""
    if kind == LOG:
        total[0] += given / (x + theta[first])
    elif kind == SATURATE:
        total[0] -= given * x / ((x + theta[first]) * (x + theta[first]))
    elif kind == SIGMOID and x > 0.0:
        k, a, score = theta[first], theta[first + 1], curve(kind, x, theta, first)
        slope = given * score * (1.0 - score)
        total[0] -= slope * a / k
        total[1] += slope * np.log(x / k)
