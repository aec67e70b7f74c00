"""The collections of Matveeva et al. 2006 as the generator makes them, and cascades trained on them.

The paper's data are not public. Ours have its shape: up to 2,500 documents per query, about 30 of them rated on five
levels, 400 weak features, many of them counts. All rows of the first data set are 17 GB. They are generated once, block
by block, into a file without a name that the system removes with the process: parts that follow one another share it,
and memory holds only what a stage learns from.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np

from fliprank.arrays import Matrix
from fliprank.data.candidates import Candidates, concat
from fliprank.data.generate import WebModel, generate_blocks
from fliprank.data.ids import Ids
from fliprank.data.subsample import subsample
from fliprank.defaults import DEFAULT_MEASURE
from fliprank.errors import InputError
from fliprank.experiment.cascade_analysis import AfterStage, EpochCurves, epoch_curves
from fliprank.experiment.telescope import telescope
from fliprank.models import Cascade, Linear, Model, Network, load_model
from fliprank.papers.checkpoint import finished
from fliprank.papers.part import Setting
from fliprank.papers.write import cell

__all__ = ["EPOCHS", "NDCG", "RANKNET", "Scale", "Sets", "net", "of_one_population", "sets_of", "stage_row", "trained"]

NDCG = DEFAULT_MEASURE
BLOCK = 64
FIRST = {"validation": 1_000_000, "test": 2_000_000}
"""The numbers of the first queries that are not for training: the same, however many are."""
VALID = 1000
"""Unlabelled documents per validation query, as in the first data set of the paper. With 300 the hundred best of a
validation query are easier than those of a test query, and later stages were chosen badly."""
RANKNET: dict[str, Any] = {
    "objective": "ranknet",
    "restarts": 1,
    "epochs": 40,
    "patience": 5,
    "sweep": False,
    "l2": 0.01,
}
"""RankNet by L-BFGS, three unlabelled documents per labelled one (`telescope`'s default); l2 was fixed in advance."""
NETS: dict[str, Any] = {"l2": 0.001, "patience": 8}
"""What differs for two-layer nets, settled on validation queries of the small collection: with the l2 of linear models
a first stage of 8 nodes was no better than a linear one there (0.738 and 0.736, now 0.771)."""

EPOCHS: dict[str, Any] = {"method": "adam", "rate": 0.003}
"""For figures 4 and 5: slow enough that thirty epochs can be told apart."""


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
        unlabelled = {"sample": 3, "validation_unlabelled": VALID}
        return {
            "data": "fr.generate",
            "queries": queries,
            **shape,
            "method": dict(RANKNET),
            "nets": dict(NETS),
            **unlabelled,
        }


@dataclass(frozen=True, eq=False)
class Sets:
    """The queries of a collection; validation queries are in memory, the others in a file in `folder`."""

    scale: Scale
    seed: int
    folder: Path | None = None

    @property
    def model(self) -> WebModel:
        s = self.scale
        return WebModel(documents=s.documents, weak=s.features, text=False, populations=s.populations, seed=self.seed)

    @cached_property
    def _training(self) -> list[Candidates]:
        whole = self._on_disk(0, self.scale.train)
        return [_queries(whole, start, min(start + BLOCK, whole.queries)) for start in range(0, whole.queries, BLOCK)]

    def blocks(self) -> Iterator[Candidates]:
        """The training queries."""
        return iter(self._training)

    @cached_property
    def valid(self) -> Candidates:
        """The labelled documents, and some unlabelled ones per query."""
        blocks = generate_blocks(self.scale.valid, first=FIRST["validation"], block=BLOCK, model=self.model)
        drawn = [subsample(part.rows, self._random(8, i), VALID) for i, part in enumerate(blocks)]
        return concat(*drawn)

    def whole_valid(self) -> Iterator[Candidates]:
        """The validation queries in blocks, with all documents; unlabelled ones are rated 0."""
        for part in generate_blocks(self.scale.valid, first=FIRST["validation"], block=BLOCK, model=self.model):
            yield replace(part.rows, labels=np.nan_to_num(part.rows.labels, nan=0.0))

    @cached_property
    def test(self) -> Candidates:
        """All documents."""
        return self._on_disk(FIRST["test"], self.scale.test)

    @cached_property
    def epochs(self) -> EpochCurves:
        """Thirty epochs of a linear first stage, watched on the validation queries."""
        return epoch_curves(Linear(), self.sampled(), self.valid, (NDCG, "CorrectPairs"), epochs=30, **EPOCHS)

    def sampled(self) -> Candidates:
        """What the first stage learns from: the rated documents, and three unlabelled ones for each."""
        drawn = [subsample(rows, self._random(9, i), times=3, at_most=None) for i, rows in enumerate(self.blocks())]
        return concat(*drawn)

    def _on_disk(self, first: int, count: int) -> Candidates:
        """Queries from number `first` on; their features are a view of a file that is gone when the process ends."""
        shape = (count * self.scale.documents, 1 + self.scale.features)
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=self.folder) as file:
            features: Matrix = np.memmap(file, np.float32, "w+", shape=shape)
        labels, qids, start = np.empty(len(features)), list[str](), 0
        for part in generate_blocks(count, first=first, block=BLOCK, model=self.model):
            stop = start + len(part.rows)
            assert part.rows.features is not None
            features[start:stop], labels[start:stop] = part.rows.features, part.rows.labels
            qids += part.rows.qids.tolist()
            start, names = stop, part.rows.feature_names
        offsets = self.scale.documents * np.arange(count + 1)
        return Candidates(offsets, labels, Ids.of(qids), None, np.asarray(features), names)

    def _random(self, *what: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, *what])


def _queries(rows: Candidates, first: int, last: int) -> Candidates:
    """Some queries, without a copy of their features."""
    assert rows.features is not None
    own = slice(rows.offsets[first], rows.offsets[last])
    offsets = rows.offsets[first : last + 1] - rows.offsets[first]
    qids = rows.qids.take(np.arange(first, last))
    return Candidates(offsets, rows.labels[own], qids, None, rows.features[own], rows.feature_names)


@lru_cache(maxsize=1)
def _latest(scale: Scale, seed: int, folder: Path) -> Sets:
    return Sets(scale, seed, folder)


def sets_of(setting: Setting, scale: Scale) -> Sets:
    """The queries of a collection of this size; those of the last one are kept for the next part."""
    return _latest(scale, setting.seed, setting.shared)


def net(hidden: int) -> Model:
    """A net with so many hidden nodes; 0 is a linear one."""
    return Network(hidden=hidden) if hidden else Linear()


def trained(
    setting: Setting,
    sets: Sets,
    stages: list[Model],
    sizes: tuple[int, ...],
    name: str,
    first: Model | None = None,
    **options: Any,
) -> Cascade:
    """A cascade, telescoped on the training queries; kept under its name, for other parts of the paper as well.

    With `first`, a model that is trained already, only the stages after it are trained. A run that was killed goes on
    after its last epoch.
    """
    given = options.pop("options", [{} for _ in stages])
    by_stage = [{**(NETS if isinstance(m, Network) else {}), **own} for m, own in zip(stages, given, strict=True)]
    options = {**RANKNET, **options, "seed": setting.seed, "options": by_stage}
    made_of = repr((name, sizes, sets.scale, VALID, sorted(options.items()))).encode()
    place = setting.shared / f"{name} {blake2b(made_of, digest_size=6).hexdigest()}"
    try:
        known = load_model(place)
        if isinstance(known, Cascade):
            return known
    except InputError:
        pass
    setting.say(f"training {name}")
    if first is not None:
        stages, options["options"] = [first, *stages[1:]], [None, *by_stage[1:]]
    epochs = place.with_name(f"{place.name} epochs")
    fit = finished(
        telescope(Cascade(stages, sizes), sets.blocks, sets.valid, checkpoint=epochs, resume=True, **options)
    )
    assert isinstance(fit.model, Cascade)
    fit.model.save(place)
    shutil.rmtree(epochs, ignore_errors=True)
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
