"""Judged web-like collections as large as asked for, with the true utility of every row known.

Each candidate has eight hidden aspects: four of match, one per field (url, title, body, anchor), and four of quality.

- *Two populations* (Matveeva et al. 2006 assume so): some 5% of the candidates are about the query's topic, which
  shifts their aspects of match; quality counts for these only. What tells documents apart at the top is not what tells
  them apart below. *One population*: utility is one sum of all aspects, at the top as below.
- *Fields*: a query term occurs in a field as often as a Poisson variable says whose mean grows with the aspect of match
  and with the length of the field, with gamma noise (Robertson and Walker's two Poissons, made smooth). Every
  candidate has every query term somewhere: one that has it nowhere has it once in the body.
- *Static*: a heavy-tailed number like PageRank, which shows the first aspect of quality.
- *Weak features*, if asked for: each mixes a few aspects with much noise, on a scale of its own in each query; one
  quarter each is plain, cut off at 0, counts, and logarithms of counts.
- *Judgements*: five grades of utility as a judge sees it, for the 22 or so that a basic ranker puts on top and some 8
  others; judges err, and are strict or kind by query.

Query number i is a function of the seed and i alone: blocks of any size and sets that start anywhere (`first`) are
parts of one endless list of queries. Training, validation and test sets are different stretches of it.

>>> few = generate(3, documents=50, seed=1)
>>> few.rows.queries, len(few.rows), few.rows.terms.fields, few.rows.feature_names
(3, 150, ('url', 'title', 'body', 'anchor'), ('pagerank',))
>>> later = generate(1, documents=50, seed=1, first=2)
>>> bool((later.utility == few.utility[100:]).all())
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.checked import checked
from fliprank.data.candidates import Candidates, concat
from fliprank.data.csr import bounds
from fliprank.data.generate_query import ASPECTS, MATCH, Drawn, Plan, Weak, World, draw, query_terms
from fliprank.data.ids import Ids
from fliprank.data.term_statistics import TermStatistics
from fliprank.errors import UsageError

__all__ = ["FIELDS", "STATIC", "FieldModel", "Generated", "WebModel", "generate", "generate_blocks"]

STATIC = "pagerank"
GRADES = {1: (1.0, 2.2, 2.7, 3.2), 2: (1.5, 2.5, 3.2, 4.0)}
"""Where grades begin, by the number of populations."""
COLLECTION = 20_000_000
"""Documents of the collection that candidates are thought to come from."""
TERM_SHARES = (3e-6, 2e-3)
"""The rarest and the commonest query term: its share of the tokens of the collection."""


class FieldModel(NamedTuple):
    """How often query terms occur in a field, and how long it is.

    Length is log-normal with `median` and `spread` (of its logarithm), and 0 with probability `absent`. The mean
    frequency of a term at match m is `base` exp(`slope` m) (length / median)^`power`, and what its share of the
    collection gives for so many tokens on top; gamma noise of this `shape` multiplies it. No more than the length.
    """

    name: str
    median: float
    spread: float
    absent: float
    base: float
    slope: float
    power: float
    shape: float


FIELDS = (
    FieldModel("url", 7.0, 0.35, 0.0, 0.08, 0.7, 0.0, 3.0),
    FieldModel("title", 7.0, 0.5, 0.03, 0.20, 0.7, 0.0, 3.0),
    FieldModel("body", 450.0, 1.1, 0.0, 4.0, 0.3, 0.5, 1.0),
    FieldModel("anchor", 25.0, 1.5, 0.4, 0.4, 0.9, 0.7, 0.8),
)


@dataclass(frozen=True)
class WebModel:
    """All that a collection is drawn from. `weak` is the number of weak features, `populations` 1 or 2.

    `topical` are the parameters of the beta distribution of a query's share of topical candidates, `shift` is what they
    have more in every aspect of match. `weights` say how much match and quality count (by default 0.5 and 1 among the
    topical, alike in one population): the more match counts, the more can be had from text alone. `static` is how
    strongly PageRank shows its aspect of quality. `rated` are the mean numbers rated at the top and elsewhere; `basic`
    is the error of the ranker that chooses the top, `error` that of judges, `strictness` how much they differ by
    query; `grades` are the utilities at which grades 1 to 4 begin (by default such that grade 4 is rare).
    """

    documents: int = 2500
    weak: int = 0
    text: bool = True
    populations: int = 2
    fields: tuple[FieldModel, ...] = FIELDS
    topical: tuple[float, float] = (2.0, 38.0)
    shift: float = 1.5
    static: float = 0.3
    weights: tuple[float, float] | None = None
    rated: tuple[float, float] = (22.0, 8.0)
    basic: float = 0.4
    error: float = 0.4
    strictness: float = 0.3
    grades: tuple[float, ...] | None = None
    seed: int = 0
    _memo: dict[str, Weak] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.documents < 1 or self.weak < 0 or self.populations not in (1, 2):
            given = f"documents={self.documents}, weak={self.weak}, populations={self.populations}"
            raise UsageError(f"{given}: expected at least 1 document, no fewer than 0 features, 1 or 2 populations")
        if len(self.fields) != MATCH:
            raise UsageError(f"{len(self.fields)} fields: there is one for each of {MATCH} aspects of match")

    def weak_features(self) -> Weak:
        """How weak features follow from aspects: the same for all queries."""
        if "weak" not in self._memo:
            rng = np.random.default_rng([self.seed, 1])
            mix = rng.normal(size=(ASPECTS, self.weak)) * (rng.random((ASPECTS, self.weak)) < 0.25)
            parts = (mix, rng.normal(0.5, 1.0, self.weak), rng.uniform(1.0, 3.0, self.weak))
            self._memo["weak"] = Weak(*(np.ascontiguousarray(part, np.float32) for part in parts))
        return self._memo["weak"]


@dataclass(frozen=True, eq=False)
class Generated:
    """Rows, and the true utility of each: no ranking is better in the long run than that by `utility`."""

    rows: Candidates
    utility: Floats = field(repr=False)


@checked
def generate(
    queries: int,
    *,
    first: int = 0,
    model: WebModel | None = None,
    progress: Callable[[int], None] | None = None,
    **settings: Any,
) -> Generated:
    """Queries `first` to `first` + `queries` - 1 of a model; `settings` are those of `WebModel`.

    `progress` is called with the number of queries that are done.
    """
    parts = []
    for part in generate_blocks(queries, first=first, model=model, **settings):
        parts.append(part)
        if progress is not None:
            progress(sum(each.rows.queries for each in parts))
    if len(parts) == 1:
        return parts[0]
    return Generated(concat(*(part.rows for part in parts)), np.concatenate([part.utility for part in parts]))


@checked
def generate_blocks(
    queries: int, *, first: int = 0, block: int = 64, model: WebModel | None = None, **settings: Any
) -> Iterator[Generated]:
    """The same in blocks of `block` queries, each made when it is asked for: as large as the disk or patience allow."""
    if model is not None and settings:
        raise UsageError("give a model or its settings, not both")
    chosen = WebModel(**settings) if model is None else model
    if queries < 1 or first < 0 or block < 1:
        raise UsageError(f"queries={queries}, first={first}, block={block}: expected at least 1, 0 and 1")
    for start in range(first, first + queries, block):
        yield _block(chosen, start, min(block, first + queries - start))


def _block(model: WebModel, first: int, queries: int) -> Generated:
    key, rows = np.uint64(model.seed % 2**64), queries * model.documents
    counts, shares = query_terms(key, first, queries, *TERM_SHARES)
    starts = bounds(np.repeat(counts, model.documents))
    drawn = Drawn(
        np.empty((starts[-1] if model.text else 0, MATCH), np.float32),
        np.empty((rows if model.text else 0, MATCH), np.float32),
        np.empty((rows, 1 + model.weak), np.float32),
        np.full(rows, np.nan),
        np.empty(rows),
    )
    plan = Plan(
        model.documents,
        model.text,
        model.populations == 2,
        model.shift,
        *_weights(model),
        model.static,
        model.basic,
        model.error,
        model.strictness,
    )
    grades = GRADES[model.populations] if model.grades is None else model.grades
    numbers = [list(each[1:]) for each in model.fields]
    parts = [np.array(part, np.float64) for part in (model.topical, model.rated, grades, numbers)]
    world = World(parts[0], parts[1], parts[2], parts[3], bounds(counts), shares)
    draw(key, first, plan, world, model.weak_features(), drawn)
    names = (STATIC, *(f"f{k + 1}" for k in range(model.weak)))
    terms = _statistics(model, first, counts, shares, starts, drawn) if model.text else None
    qids = Ids.of([f"q{first + q + 1}" for q in range(queries)])
    offsets = model.documents * np.arange(queries + 1)
    return Generated(Candidates(offsets, drawn.labels, qids, None, drawn.features, names, terms), drawn.utility)


def _weights(model: WebModel) -> tuple[float, float]:
    """Of match and quality; in one population such that utility has variance 1."""
    match, quality = model.weights or ((0.5, 1.0) if model.populations == 2 else (1.0, 1.0))
    unit = 1.0 if model.populations == 2 else float(np.hypot(match, quality))
    return match / unit, quality / unit


def _statistics(
    model: WebModel, first: int, counts: Ints, shares: Floats, starts: Ints, drawn: Drawn
) -> TermStatistics:
    """Term statistics of the rows; those of the collection follow from each term's share of its tokens."""
    means = np.array([f.median * np.exp(f.spread**2 / 2) * (1 - f.absent) for f in model.fields])
    holding = COLLECTION * -np.expm1(-shares * means.sum())
    idf = np.log1p((COLLECTION - holding + 0.5) / (holding + 0.5))
    numbers = zip(
        np.repeat(np.arange(len(counts)), counts), np.concatenate([np.arange(c) for c in counts]), strict=True
    )
    return TermStatistics(
        tuple(f.name for f in model.fields),
        bounds(counts),
        Ids.of([f"t{first + q + 1}.{t + 1}" for q, t in numbers]),
        idf,
        starts,
        drawn.tf,
        drawn.length,
        collection=COLLECTION * shares[:, None] * means,
        tokens=COLLECTION * means,
        documents=COLLECTION,
    )
