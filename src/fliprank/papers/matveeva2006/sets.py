"""The collections of Matveeva et al. 2006 as the generator makes them, and cascades trained on them.

The paper's data are not public. Ours have its shape: up to 2,500 documents per query, about 30 of them rated on five
levels, 400 weak features, many of them counts. Training queries are never all in memory: each stage generates them
again, block by block, and keeps what it learns from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fliprank.data.candidates import Candidates, concat
from fliprank.data.generate import WebModel, generate, generate_blocks
from fliprank.data.subsample import subsample
from fliprank.defaults import DEFAULT_MEASURE
from fliprank.errors import InputError
from fliprank.experiment.cascade_analysis import AfterStage
from fliprank.experiment.telescope import telescope
from fliprank.models import Cascade, Linear, Model, Network, load_model
from fliprank.papers.checkpoint import finished
from fliprank.papers.part import Setting
from fliprank.papers.write import cell

__all__ = ["NDCG", "RANKNET", "Scale", "Sets", "net", "of_one_population", "stage_row", "trained"]

NDCG = DEFAULT_MEASURE
BLOCK = 32
FIRST = {"validation": 1_000_000, "test": 2_000_000}
"""The numbers of the first queries that are not for training: the same, however many are."""
VALID = 1000
"""Unlabelled documents per validation query, as in the paper."""
RANKNET: dict[str, Any] = {"objective": "ranknet", "restarts": 1, "patience": 10, "sweep": False, "l2": 0.01}
"""RankNet with three unlabelled documents per labelled one (`telescope`'s default); l2 was fixed in advance."""


@dataclass(frozen=True)
class Scale:
    """How large a collection is: training, validation and test queries, and the rows of each."""

    train: int
    valid: int
    test: int
    documents: int
    features: int
    sizes: tuple[int, ...]
    populations: int = 2

    @classmethod
    def of(cls, which: str, setting: Setting) -> Scale:
        """The paper's "first" data set, the "second" (of a size that can be done), or a "small" one for variants."""
        if setting.quick:
            return cls(40, 20, 30, 200, 40, (200, 100, 30, 10))
        queries = {"first": (3514, 691, 688), "second": (7028, 1132, 1376), "small": (600, 150, 500)}[which]
        return cls(*queries, 2500, 400 if which == "first" else 100, (2500, 1000, 100, 10))

    @property
    def fewer(self) -> tuple[int, ...]:
        """The sizes without the second stage."""
        return (self.sizes[0], *self.sizes[2:])

    def settings(self) -> dict[str, Any]:
        """What it takes to generate the collection again."""
        queries = {"training": self.train, "validation": self.valid, "test": self.test}
        shape = {"documents": self.documents, "features": self.features + 1, "populations": self.populations}
        return {"data": "fr.generate", "queries": queries, **shape, "method": dict(RANKNET), "sample": 3}


@dataclass(frozen=True, eq=False)
class Sets:
    """The queries of a collection: validation and test queries in memory, training queries in blocks."""

    scale: Scale
    seed: int

    @property
    def model(self) -> WebModel:
        s = self.scale
        return WebModel(documents=s.documents, weak=s.features, text=False, populations=s.populations, seed=self.seed)

    def blocks(self, order: int | None = None) -> Iterator[Candidates]:
        """The training queries; with `order`, blocks and the queries within them in an order of that number."""
        starts = np.arange(0, self.scale.train, BLOCK)
        rng = self._random(7, order or 0)
        for start in starts.tolist() if order is None else rng.permutation(starts).tolist():
            count = min(BLOCK, self.scale.train - start)
            rows = generate(count, first=start, model=self.model).rows
            yield rows if order is None else rows.select(rng.permutation(count))

    @cached_property
    def valid(self) -> Candidates:
        """The labelled documents, and 1000 unlabelled ones per query."""
        blocks = generate_blocks(self.scale.valid, first=FIRST["validation"], block=BLOCK, model=self.model)
        drawn = [subsample(part.rows, self._random(8, i), VALID) for i, part in enumerate(blocks)]
        return concat(*drawn)

    @cached_property
    def test(self) -> Candidates:
        """All documents; generated as one block, so as not to hold them twice."""
        count = self.scale.test
        [whole] = generate_blocks(count, first=FIRST["test"], block=count, model=self.model)
        return whole.rows

    def sampled(self) -> Candidates:
        """What the first stage learns from: the rated documents, and three unlabelled ones for each."""
        drawn = [subsample(rows, self._random(9, i), times=3, at_most=None) for i, rows in enumerate(self.blocks())]
        return concat(*drawn)

    def _random(self, *what: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, *what])


def net(hidden: int) -> Model:
    """A net with so many hidden nodes; 0 is a linear one."""
    return Network(hidden=hidden) if hidden else Linear()


def trained(
    setting: Setting,
    sets: Sets,
    stages: list[Model],
    sizes: tuple[int, ...],
    name: str,
    blocks: Callable[[], Iterator[Candidates]] | None = None,
    **options: Any,
) -> Cascade:
    """A cascade, telescoped on the training queries; kept under its name, for other parts of the paper as well."""
    place = setting.shared / f"{name} {'-'.join(map(str, sizes))} {sets.scale.train}-{sets.scale.features}"
    try:
        known = load_model(place)
        if isinstance(known, Cascade):
            return known
    except InputError:
        pass
    setting.say(f"training {name}")
    options = {**RANKNET, **options, "seed": setting.seed}
    fit = finished(telescope(Cascade(stages, sizes), blocks or sets.blocks, sets.valid, **options))
    assert isinstance(fit.model, Cascade)
    fit.model.save(place)
    return fit.model


def stage_row(name: str | int, found: list[AfterStage], sizes: tuple[int, ...]) -> tuple[Any, ...]:
    """A line of Tables 2, 4 and 6: each stage with half its interval, the gain of the last, its p, what cuts lose."""
    by_size = {each.size: f"{each.value:.4f} (± {(each.interval[1] - each.interval[0]) / 2:.3f})" for each in found}
    lost = ", ".join(f"{100 * each.lost:.1f}%" for each in found[1:])
    last = found[-1]
    return (name, *(by_size.get(size, "-") for size in sizes), f"{last.gain:+.4f}", cell(last.p, "p"), lost or "-")


def of_one_population(scale: Scale) -> Scale:
    """The control: what tells documents apart at the top is what tells them apart below."""
    return replace(scale, populations=1)
