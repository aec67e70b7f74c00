"""The two-stage language model with exact derivatives (Metzler 2007; Zhai and Lafferty 2002).

g = sum_t n_t log P(t|D), P(t|D) = (1 - lambda) (tf + mu P(t|C)) / (mu + |D|) + lambda P(t|C). n_t is how often t occurs
in the query, P(t|C) its share of the collection's tokens. Its edges: lambda = 0 is Dirichlet smoothing, mu = 0 is
Jelinek-Mercer. In a mixture, P(t|D) is the mean of one such estimate per field, weighted by `title.w`, `body.w`, ...
Every edge has a value: a term that the collection lacks is left out; a document (or field) without length has the
estimate P(t|C) if mu is 0 too; the logarithm stops at log(1e-300).

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
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from fliprank.arrays import Floats, frozen
from fliprank.data.candidates import Candidates
from fliprank.errors import InputError, UsageError
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.models.base import UNKNOWN, Model, Seed, register, row_gradient
from fliprank.models.folder import Record
from fliprank.models.parameters import Parameters
from fliprank.models.row_function import LANGUAGE, RowFunction
from fliprank.models.standardised import chunks_of
from fliprank.models.term_rows import (
    Lines,
    Place,
    at,
    field_columns,
    field_names,
    restored_fields,
    statistics_of,
    term_rows,
)

__all__ = ["Dirichlet", "JelinekMercer", "TwoStageLM"]

LAMBDA, MU, W = (0.1, 0.0, 1.0), (2000.0, 0.0, inf), (1.0, 0.0, inf)
"""Default, lower and upper bound."""
SMOOTHINGS = ("two-stage", "dirichlet", "jelinek-mercer")
LEAST, PRECISE = 1e-300, 1e-120


@register
@dataclass(frozen=True, eq=False)
class TwoStageLM(Model):
    """Query likelihood, of all fields joined or of those named. Parameters: lambda, mu.

    `mixture`: one estimate per field, each with a weight (`title.w`), and one mu for all unless `share_mu=False`
    (`title.mu`). `smoothing` fixes what is not used: "dirichlet" lambda at 0, "jelinek-mercer" mu at 0.
    """

    kind: ClassVar[str] = "two_stage_lm"
    summary: ClassVar[str] = "two-stage language model: lambda and mu"
    needs: ClassVar[frozenset[str]] = frozenset({"terms"})
    fields: tuple[str, ...] | None = None
    mixture: bool = False
    smoothing: str = field(default="two-stage", kw_only=True)
    share_mu: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        if self.smoothing not in SMOOTHINGS:
            raise UsageError(f"smoothing: one of {', '.join(SMOOTHINGS)}, not {self.smoothing!r}")
        object.__setattr__(self, "fields", field_names(self.fields))
        if self.params is UNKNOWN and (self.fields is not None or not self.mixture):
            object.__setattr__(self, "params", self._parameters(self.fields or ()))

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

    def prepared(self, train: Candidates, rng: Seed) -> Self:
        """With the fields of these rows, unless it has fields; parameters are kept."""
        ready = self if self.ready else replace(self, fields=statistics_of(train).fields)
        ready.row_function(train)  # rows that lack what it reads are an error now
        return ready

    def initial(self, rng: np.random.Generator) -> Floats:
        """Around the defaults: mu and w times a random factor, lambda anywhere."""
        params = self.params
        moved = params.default * np.exp(rng.normal(size=len(params)))
        moved[0] = rng.uniform()
        return np.clip(moved, params.lower, params.upper)

    @property
    def penalty_weights(self) -> Floats:
        """mu may well be off by a factor of e² (texts are short or long), weights by e, lambda by 0.3."""
        firm = {"lambda": 11.0, "mu": 0.25, "w": 1.0}
        return np.array([firm[name.rpartition(".")[2]] for name in self.params.names])

    def row_function(self, candidates: Candidates) -> RowFunction:
        """As kernels see it: lambda, each mu, each weight. Joined fields have the weight 1."""
        if self.fields is None:
            raise UsageError(f"this {self.kind} model knows no fields yet: train it, or call prepared(train, rng)")
        key = ("row function", self.kind, self.fields, self.mixture)
        if key not in candidates.memo:
            lines = term_rows(candidates, self.fields, not self.mixture, absent=True)
            background = _background(candidates, self.fields, not self.mixture)
            times = np.where(background.sum(axis=1) > 0, statistics_of(candidates).count, 0.0)
            lines = lines._replace(weight=frozen(times[:, None], np.float64), background=frozen(background, np.float64))
            constants = np.empty(0) if self.mixture else np.ones(1)
            places = np.arange(len(self.params) + len(constants))
            candidates.memo[key] = RowFunction(LANGUAGE, places, constants, lines=lines)
        found: RowFunction = candidates.memo[key]
        return found

    def score(self, candidates: Candidates) -> Floats:
        function, out, chunks = self.row_function(candidates), np.empty(len(candidates)), chunks_of(len(candidates))
        theta, lines = function.theta(self.params.values), function.lines
        assert lines is not None
        if chunks == 1:
            fields = lines.tf.shape[1]
            language_scores(lines, Place(0, 0, 0, fields), theta, 0, len(out), np.empty(2 * fields), out)
        else:
            _score_chunks(lines, theta, chunks, out)
        return out

    def pullback(self, candidates: Candidates, dscores: ArrayLike) -> Floats:
        function, given = self.row_function(candidates), row_gradient(candidates, dscores)
        theta, lines = function.theta(self.params.values), function.lines
        assert lines is not None
        parts, fields = np.zeros((chunks_of(len(given)), len(theta))), lines.tf.shape[1]
        if len(parts) == 1:
            language_pull(lines, Place(0, 0, 0, fields), theta, 0, len(given), given, np.empty(4 * fields), parts[0])
        else:
            _pull_chunks(lines, theta, given, parts)
        return function.by_parameters(parts.sum(axis=0), len(self.params))

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
    """P(t|C) of each query term in each field; `joined`: in all fields as one."""
    terms = statistics_of(candidates)
    for name, what in (("collection", "how often a term occurs in the collection"), ("tokens", "its size in tokens")):
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
        raise InputError("a term occurs in the collection more often than the collection has tokens")
    share: Floats = np.divide(found, tokens, out=np.zeros(found.shape), where=tokens > 0)
    return share


@kernel
def language_scores(
    lines: Lines, place: Place, theta: Floats, start: int, stop: int, scratch: Floats, out: Floats
) -> None:
    """Set `out` to the scores of rows start:stop. theta: lambda, each mu, each weight of the mixture.

    `scratch` has room for two numbers per field.
    """
    tf, length, background, fields, column = lines.tf, lines.length, lines.background, place.fields, place.column
    jelinek, mu, weight = theta[place.theta], place.theta + 1, place.theta + 1 + fields
    seen, unseen, inverse = scratch[:fields], scratch[fields : 2 * fields], _inverse_sum(theta, weight, fields)
    for row in range(start, stop):
        for s in range(fields):
            size = theta[at(mu, s)] + length[row, at(column, s)]
            known = (1.0 - jelinek) / size if size > 0.0 else 0.0
            share = theta[at(weight, s)] * inverse if inverse > 0.0 else 1.0 / fields
            seen[s] = share * known
            unseen[s] = share * (known * theta[at(mu, s)] + jelinek if size > 0.0 else 1.0)
        total, product = 0.0, 1.0
        for line in range(lines.starts[row], lines.starts[row + 1]):
            term = lines.term[line]
            times = lines.weight[term, place.weight]
            if times > 0.0:
                p = 0.0
                for s in range(fields):
                    p += seen[s] * tf[line, at(column, s)] + unseen[s] * background[term, at(column, s)]
                if times == 1.0 and p > PRECISE:  # one logarithm for many terms: it is what takes the time
                    product *= p
                    if product < PRECISE:
                        total += np.log(product)
                        product = 1.0
                else:
                    total += times * np.log(max(p, LEAST))
        out[row - start] = total + np.log(product)


@kernel
def _inverse_sum(theta: Floats, first: int, count: int) -> float:
    """1 / the sum of these entries; 0 where that is 0."""
    total = 0.0
    for s in range(count):
        total += theta[first + s]
    return 1.0 / total if total > 0.0 else 0.0


@parallel_kernel
def _score_chunks(lines: Lines, theta: Floats, chunks: int, out: Floats) -> None:
    rows, fields = len(out), lines.tf.shape[1]
    for c in prange(chunks):
        start, stop = rows * c // chunks, rows * (c + 1) // chunks
        language_scores(lines, Place(0, 0, 0, fields), theta, start, stop, np.empty(2 * fields), out[start:stop])


@kernel
def language_pull(
    lines: Lines,
    place: Place,
    theta: Floats,
    start: int,
    stop: int,
    dscores: Floats,
    scratch: Floats,
    total: Floats,
) -> None:
    """Add to `total` the gradient of rows start:stop: by lambda, each mu, each weight.

    `dscores` belongs to these rows alone; `scratch` has room for four numbers per field.
    """
    tf, length, background, fields, column = lines.tf, lines.length, lines.background, place.fields, place.column
    jelinek, mu, weight = theta[place.theta], place.theta + 1, place.theta + 1 + fields
    inverse = _inverse_sum(theta, weight, fields)
    known, prior = scratch[:fields], scratch[fields : 2 * fields]  # P of a field = known tf + prior P(t|C)
    by_tf, by_background = scratch[2 * fields : 3 * fields], scratch[3 * fields : 4 * fields]
    for row in range(start, stop):
        given = dscores[row - start]
        if given == 0.0:
            continue
        for s in range(fields):
            size = theta[at(mu, s)] + length[row, at(column, s)]
            known[s] = (1.0 - jelinek) / size if size > 0.0 else 0.0
            prior[s] = known[s] * theta[at(mu, s)] + jelinek if size > 0.0 else 1.0
            by_tf[s] = by_background[s] = 0.0
        through = 0.0
        for line in range(lines.starts[row], lines.starts[row + 1]):
            term = lines.term[line]
            times = lines.weight[term, place.weight]
            if times > 0.0:
                p = 0.0
                for s in range(fields):
                    share = theta[at(weight, s)] * inverse if inverse > 0.0 else 1.0 / fields
                    p += share * (known[s] * tf[line, at(column, s)] + prior[s] * background[term, at(column, s)])
                if p > LEAST:
                    rise = given * times / p
                    through += rise * p
                    for s in range(fields):
                        by_tf[s] += rise * tf[line, at(column, s)]
                        by_background[s] += rise * background[term, at(column, s)]
        for s in range(fields):
            share = theta[at(weight, s)] * inverse if inverse > 0.0 else 1.0 / fields
            size = theta[at(mu, s)] + length[row, at(column, s)]
            if size > 0.0:
                away = (length[row, at(column, s)] * by_background[s] - by_tf[s]) / size  # from the document's estimate
                total[0] += share * away
                total[1 + s] += share * (1.0 - jelinek) * away / size
            total[1 + fields + s] += inverse * (known[s] * by_tf[s] + prior[s] * by_background[s] - through)


@parallel_kernel
def _pull_chunks(lines: Lines, theta: Floats, dscores: Floats, parts: Floats) -> None:
    rows, chunks, fields = len(dscores), len(parts), lines.tf.shape[1]
    for c in prange(chunks):
        start, stop = rows * c // chunks, rows * (c + 1) // chunks
        scratch = np.empty(4 * fields)
        language_pull(lines, Place(0, 0, 0, fields), theta, start, stop, dscores[start:stop], scratch, parts[c])
