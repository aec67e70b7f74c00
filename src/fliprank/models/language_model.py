"""The two-stage language model with exact derivatives (Metzler 2007; Zhai and Lafferty 2002).

g = sum_t n_t log P(t|D), P(t|D) = (1 - lambda) (tf + mu P(t|C)) / (mu + |D|) + lambda P(t|C), n_t how often t stands in
the query, P(t|C) its share of the collection's tokens. Its edges: lambda = 0 is Dirichlet smoothing, mu = 0 is
Jelinek-Mercer. As a mixture, P(t|D) is the mean of such an estimate for each field, weighted by `title.w`, `body.w`...
Every edge has a value: a term that the collection lacks is left out; a document (or field) without length says P(t|C)
where mu is 0 too; the logarithm stops at log(1e-300).

>>> from fliprank.data.candidates import Candidates
>>> from fliprank.data.ids import Ids
>>> from fliprank.data.term_statistics import TermStatistics
>>> terms = TermStatistics(("body",), [0, 1], Ids.of(["shoe"]), [2.0], [0, 1, 2], [[3], [0]], [[90], [40]],
...                        collection=[[50]], tokens=[100_000], documents=1000)
>>> rows = Candidates([0, 2], [1.0, 0.0], Ids.of(["q"]), terms=terms)
>>> model = TwoStageLM().prepared(rows, 0).at([0.1, 2000])
>>> model.score(rows).round(6).tolist()            # the first: log(0.9 (3 + 2000 x 0.0005) / 2090 + 0.1 x 0.0005)
[-6.335371, -7.618707]
>>> [float(f"{slope:.6g}") for slope in model.pullback(rows, [1.0, 0.0])]
[-0.797678, -0.000343498]
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats, Ints, Matrix, frozen
from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, UsageError
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.models.base import NONE, Model, Seed, register, row_gradient
from fliprank.models.folder import Record
from fliprank.models.parameters import Parameters
from fliprank.models.term_rows import TermRows, field_columns, field_names, restored_fields, statistics_of, term_rows

__all__ = ["Dirichlet", "JelinekMercer", "TwoStageLM"]

LAMBDA, MU, W = (0.1, 0.0, 1.0), (2000.0, 0.0, inf), (1.0, 0.0, inf)
"""Default, lower and upper bound."""
SMOOTHINGS = ("two-stage", "dirichlet", "jelinek-mercer")
LEAST, PRECISE = 1e-300, 1e-120


class Theta(NamedTuple):
    """lambda, and for each field mu and its share of the mixture."""

    jelinek: float
    mu: Floats
    share: Floats


class Background(NamedTuple):
    """What kernels read; `background` is P(t|C) by query term and field, `times` is 0 for terms to leave out."""

    offsets: Ints
    term_offsets: Ints
    times: Floats
    background: Floats
    starts: Ints
    tf: Matrix
    length: Matrix


@register
@dataclass(frozen=True, eq=False)
class TwoStageLM(Model):
    """Query likelihood, of all fields joined or of those named. Parameters: lambda, mu.

    `mixture`: by field, with a weight each (`title.w`), and one mu for all unless `share_mu=False` (`title.mu`).
    `smoothing` fixes what is not used: "dirichlet" lambda at 0, "jelinek-mercer" mu at 0.
    """

    kind: ClassVar[str] = "two_stage_lm"
    fields: tuple[str, ...] | None = None
    mixture: bool = False
    smoothing: str = field(default="two-stage", kw_only=True)
    share_mu: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        if self.smoothing not in SMOOTHINGS:
            raise UsageError(f"smoothing: one of {', '.join(SMOOTHINGS)}, not {self.smoothing!r}")
        object.__setattr__(self, "fields", field_names(self.fields))
        if self.params is NONE and self.fields is not None:
            object.__setattr__(self, "params", self._parameters(self.fields))

    def _parameters(self, fields: tuple[str, ...]) -> Parameters:
        mus = [f"{name}.mu" for name in fields] if self.mixture else ["mu"]
        table = {"lambda": LAMBDA} | dict.fromkeys(mus, MU)
        params = Parameters.of(table | (dict.fromkeys((f"{name}.w" for name in fields), W) if self.mixture else {}))
        if self.mixture and self.share_mu:
            params = params.tie({"mu": mus})
        if self.smoothing == "dirichlet":
            return params.replace({"lambda": 0.0}).fix("lambda")
        if self.smoothing == "jelinek-mercer":
            return params.replace(dict.fromkeys(mus, 0.0)).fix(mus)
        return params

    @property
    def ready(self) -> bool:
        return self.fields is not None

    @property
    def penalty_weights(self) -> Floats:
        """As strongly as its size allows: mu is in the thousands, the others about 1."""
        held: Floats = 1.0 / np.maximum(1.0, self.params.default) ** 2
        return held

    def prepared(self, train: Candidates, rng: Seed) -> Self:
        """With the fields of these rows; parameters are kept."""
        ready = replace(self, fields=self.fields or statistics_of(train).fields)
        ready._rows(train)  # rows without what it needs are an error now
        return ready

    def initial(self, rng: np.random.Generator) -> Floats:
        """Around the defaults: mu and w times a random factor, lambda anywhere."""
        params = self.params
        moved = params.default * np.exp(rng.normal(size=len(params)))
        moved[0] = rng.uniform()
        return np.clip(moved, params.lower, params.upper)

    def _theta(self) -> Theta:
        values = self.params.values
        if not self.mixture:
            return Theta(float(values[0]), values[1:].copy(), np.ones(1))
        count = len(values) // 2
        weights, total = values[1 + count :], float(values[1 + count :].sum())
        share = weights / total if total > 0 else np.full(count, 1.0 / count)
        return Theta(float(values[0]), values[1 : 1 + count].copy(), share)

    def _rows(self, candidates: Candidates) -> tuple[TermRows, Background]:
        if self.fields is None:
            raise UsageError(f"this {self.kind} model knows no fields yet: train it, or call prepared(train, rng)")
        rows, key = term_rows(candidates, self.fields, not self.mixture), ("background", self.fields, self.mixture)
        if key not in candidates.memo:
            background = _background(candidates, self.fields, not self.mixture)
            lines = rows.lines
            times = np.where(background.sum(axis=1) > 0, lines.times, 0.0)
            candidates.memo[key] = Background(
                lines.offsets,
                lines.term_offsets,
                frozen(times, np.float64),
                frozen(background, np.float64),
                lines.starts,
                lines.tf,
                lines.length,
            )
        return rows, candidates.memo[key]

    def score(self, candidates: Candidates) -> Floats:
        (rows, lines), theta, out = self._rows(candidates), self._theta(), np.empty(len(candidates))
        if rows.chunks == 1:
            _score_rows(lines, theta, 0, len(candidates), 0, out)
        else:
            _score_chunks(lines, theta, rows.cuts, rows.query, out)
        return out

    def pullback(self, candidates: Candidates, dscores: ArrayLike) -> Floats:
        (rows, lines), theta, given = self._rows(candidates), self._theta(), row_gradient(candidates, dscores)
        parts = np.zeros((rows.chunks, 1 + 2 * len(theta.mu)))
        if rows.chunks == 1:
            _pull_rows(lines, theta, 0, len(candidates), 0, given, parts[0])
        else:
            _pull_chunks(lines, theta, rows.cuts, rows.query, given, parts)
        total: Floats = parts.sum(axis=0)
        if not self.mixture:
            return total[:2]
        weights = self.params.values[1 + len(theta.mu) :].sum()
        total[1 + len(theta.mu) :] *= 1.0 / weights if weights > 0 else 0.0
        return total

    def structure(self) -> dict[str, Any]:
        return {"fields": [{"name": name} for name in self.fields or ()], "mixture": self.mixture}

    @classmethod
    def restore(cls, structure: Record) -> Self:
        fields, _ = restored_fields(structure)
        mixture = structure.data.get("mixture")
        if not isinstance(mixture, bool):
            structure.fail("mixture", "true or false")
        return cls(fields, mixture)


def Dirichlet(fields: Any = None, mixture: bool = False) -> TwoStageLM:
    """Dirichlet smoothing: the two-stage model with lambda fixed at 0."""
    return TwoStageLM(fields, mixture, smoothing="dirichlet")


def JelinekMercer(fields: Any = None, mixture: bool = False) -> TwoStageLM:
    """Jelinek-Mercer smoothing: the two-stage model with mu fixed at 0."""
    return TwoStageLM(fields, mixture, smoothing="jelinek-mercer")


def _background(candidates: Candidates, fields: tuple[str, ...], joined: bool) -> Floats:
    """P(t|C) of each query term in each field; `joined`: in all as one."""
    terms = statistics_of(candidates)
    for name, what in (("collection", "how often a term stands in the collection"), ("tokens", "its size in tokens")):
        if getattr(terms, name) is None:
            raise InputError(
                f"a language model needs to know {what}: these term statistics have no {name!r}",
                hint="take the candidates from an index, or add it to the file of term statistics",
            )
    assert terms.collection is not None
    assert terms.tokens is not None
    columns = field_columns(terms, fields)
    found, tokens = terms.collection[:, columns], terms.tokens[columns]
    if joined:
        found, tokens = found.sum(axis=1, keepdims=True), tokens.sum(keepdims=True)
    if (found > tokens).any():
        raise InputError("a term stands in the collection more often than the collection has tokens")
    share: Floats = np.divide(found, tokens, out=np.zeros(found.shape), where=tokens > 0)
    return share


@kernel
def _score_rows(rows: Background, theta: Theta, start: int, stop: int, query: int, out: Floats) -> None:
    jelinek, mu, share = theta
    tf, length, background, fields = rows.tf, rows.length, rows.background, len(mu)
    seen, unseen = np.empty(fields), np.empty(fields)
    for row in range(start, stop):
        while row >= rows.offsets[query + 1]:
            query += 1
        for s in range(fields):
            size = mu[s] + length[row, s]
            known = (1.0 - jelinek) / size if size > 0.0 else 0.0
            seen[s] = share[s] * known
            unseen[s] = share[s] * (known * mu[s] + jelinek if size > 0.0 else 1.0)
        total, product, term = 0.0, 1.0, rows.term_offsets[query]
        for line in range(rows.starts[row], rows.starts[row + 1]):
            times = rows.times[term]
            if times > 0.0:
                p = 0.0
                for s in range(fields):
                    p += seen[s] * tf[line, s] + unseen[s] * background[term, s]
                if times == 1.0 and p > PRECISE:  # one logarithm for many terms: it is what takes the time
                    product *= p
                    if product < PRECISE:
                        total += np.log(product)
                        product = 1.0
                else:
                    total += times * np.log(max(p, LEAST))
            term += 1
        out[row] = total + np.log(product)


@parallel_kernel
def _score_chunks(rows: Background, theta: Theta, cuts: Ints, query: Ints, out: Floats) -> None:
    for c in prange(len(query)):
        _score_rows(rows, theta, cuts[c], cuts[c + 1], query[c], out)


@kernel
def _pull_rows(
    rows: Background, theta: Theta, start: int, stop: int, query: int, dscores: Floats, total: Floats
) -> None:
    """Add to `total` the gradient of these rows: by lambda, each mu, each weight (times the sum of weights)."""
    jelinek, mu, share = theta
    tf, length, background, fields = rows.tf, rows.length, rows.background, len(mu)
    known, prior = np.empty(fields), np.empty(fields)  # P of a field = known tf + prior P(t|C)
    by_tf, by_background = np.empty(fields), np.empty(fields)
    for row in range(start, stop):
        while row >= rows.offsets[query + 1]:
            query += 1
        given = dscores[row]
        if given == 0.0:
            continue
        for s in range(fields):
            size = mu[s] + length[row, s]
            known[s] = (1.0 - jelinek) / size if size > 0.0 else 0.0
            prior[s] = known[s] * mu[s] + jelinek if size > 0.0 else 1.0
            by_tf[s] = by_background[s] = 0.0
        through, term = 0.0, rows.term_offsets[query]
        for line in range(rows.starts[row], rows.starts[row + 1]):
            if rows.times[term] > 0.0:
                p = 0.0
                for s in range(fields):
                    p += share[s] * (known[s] * tf[line, s] + prior[s] * background[term, s])
                if p > LEAST:
                    rise = given * rows.times[term] / p
                    through += rise * p
                    for s in range(fields):
                        by_tf[s] += rise * tf[line, s]
                        by_background[s] += rise * background[term, s]
            term += 1
        for s in range(fields):
            size = mu[s] + length[row, s]
            if size > 0.0:
                away = (length[row, s] * by_background[s] - by_tf[s]) / size  # of P(t|C) from the document's estimate
                total[0] += share[s] * away
                total[1 + s] += share[s] * (1.0 - jelinek) * away / size
            total[1 + fields + s] += known[s] * by_tf[s] + prior[s] * by_background[s] - through


@parallel_kernel
def _pull_chunks(rows: Background, theta: Theta, cuts: Ints, query: Ints, dscores: Floats, parts: Floats) -> None:
    for c in prange(len(query)):
        _pull_rows(rows, theta, cuts[c], cuts[c + 1], query[c], dscores, parts[c])
