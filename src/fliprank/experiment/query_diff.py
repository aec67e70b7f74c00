"""One query's two lists: which documents moved, which flips that took, what each was worth, and why.

`QueryDiff` is what a person or program reads; `Details` knows labels, titles, texts and functions, as far as there are
any, and makes them for some queries at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fliprank.arrays import Floats, Ints
from fliprank.data.candidates import Candidates
from fliprank.data.csr import bounds
from fliprank.data.trec import Qrels
from fliprank.errors import InputError, UsageError
from fliprank.experiment.move_reasons import Explainer, Reason, TwoSums
from fliprank.experiment.paired_runs import PairedRuns
from fliprank.landscape.list_flips import ListFlips, TwoLists, has_flips, list_flips, payments
from fliprank.measures import Measure
from fliprank.models.contributions import Part

__all__ = ["Details", "Flip", "Judged", "Moved", "QueryDiff"]

INFINITE = float("inf")


@dataclass(frozen=True)
class Moved:
    """A document among the first ranks of either list; a rank (from 1) is None where the list does not have it.

    `label` is None if nobody judged it. `gain` is what the measure pays for it in the list after, less that before;
    these add up to the change of the measure over all documents. `because` has the parts of its score by how they
    changed against the documents that it swapped with, what pushed it most first; `sums` the parts (part, before,
    after) as they are.
    """

    docid: str
    title: str
    label: float | None
    before: int | None
    after: int | None
    score_before: float | None
    score_after: float | None
    gain: float | None = None
    because: tuple[Reason, ...] = ()
    sums: tuple[tuple[Part, float, float], ...] = ()

    @property
    def moved(self) -> bool:
        return self.before != self.after

    @property
    def way(self) -> float:
        """How far it moved, where the first ranks count most: the difference of 1 / rank; above 0 for upwards."""
        before, after = (0.0 if rank is None else 1.0 / rank for rank in (self.before, self.after))
        return after - before


class Flip(NamedTuple):
    """Document `up` overtook `down` at `rank`, which was worth `worth` to the measure of the query.

    `down` is None where `up` entered the list at its end, `up` is None where `down` left it there.
    """

    up: str | None
    down: str | None
    up_label: float | None
    down_label: float | None
    rank: int
    worth: float


@dataclass(frozen=True, eq=False)
class QueryDiff:
    """The first `top` ranks of a query before and after. Without judgements there is no measure: values are None.

    `documents` are those among the first ranks of either list. `flips` is None where the measure has no law of flips.
    """

    qid: str
    text: str
    top: int
    before: float | None
    after: float | None
    overlap: float
    documents: tuple[Moved, ...]
    flips: tuple[Flip, ...] | None = None

    @property
    def change(self) -> float | None:
        return None if self.before is None or self.after is None else self.after - self.before

    def __repr__(self) -> str:
        said = f"overlap {self.overlap:.2f}" if self.change is None else f"{self.before:.4f} -> {self.after:.4f}"
        moved = sum(document.moved for document in self.documents)
        return f"<QueryDiff {self.qid}: {said}, {moved} documents moved>"

    @property
    def lists(self) -> tuple[list[Moved], list[Moved]]:
        """The first ranks before and after."""

        def some(rank: Callable[[Moved], int | None]) -> list[Moved]:
            ranked = [(place, each) for each in self.documents if (place := rank(each)) is not None]
            return [each for place, each in sorted(ranked, key=lambda pair: pair[0]) if place <= self.top]

        return some(lambda each: each.before), some(lambda each: each.after)

    @property
    def moved(self) -> list[Moved]:
        """The documents that moved: those that the measure feels most first, then those that moved furthest."""
        some = [each for each in self.documents if each.moved]
        return sorted(some, key=lambda each: (-abs(each.gain or 0.0), -abs(each.way)))


@dataclass(frozen=True, eq=False)
class Judged:
    """Judgements, a measure, and its value of each query before and after; queries are those of the judgements."""

    qrels: Qrels
    measure: Measure
    before: Floats
    after: Floats

    def labels(self, q: int) -> dict[str, float]:
        """The labels of the documents of a query."""
        rows = np.arange(*self.qrels.offsets[q : q + 2])
        return dict(zip(self.qrels.docids.take(rows).tolist(), self.qrels.labels[rows].tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class Details:
    """Two runs and what is known beside them."""

    runs: PairedRuns
    top: int
    judged: Judged | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    read_titles: Callable[[Iterable[str]], Mapping[str, str]] | None = None
    explainer: Explainer | None = None

    @cached_property
    def titles(self) -> Mapping[str, str]:
        """Titles of all documents among the first ranks; read once."""
        every = (docid for q in range(len(self.runs)) for docid in self.shown(q))
        return {} if self.read_titles is None else self.read_titles(dict.fromkeys(every))

    @cached_property
    def notes(self) -> list[str]:
        """What could not be told; grows while queries are looked at."""
        return []

    def shown(self, q: int) -> list[str]:
        """The documents among the first ranks of either list."""
        before, after = self.runs.ranked(q)
        return list(dict.fromkeys((*before[: self.top], *after[: self.top])))

    def queries(self, numbers: Sequence[int]) -> list[QueryDiff]:
        """The queries with these numbers."""
        lists = [_Lists.of(self, q) for q in numbers]
        worths = [_Worths()] * len(lists) if self.judged is None else self._worths(lists, self.judged)
        sums = self._sums(numbers)
        return [self._query(each, known, sums) for each, known in zip(lists, worths, strict=True)]

    def _query(self, lists: _Lists, worths: _Worths, sums: Mapping[str, TwoSums]) -> QueryDiff:
        q, qid, names = lists.q, self.runs.qids[lists.q], self.shown(lists.q)
        ranks = [[float(side.get(name, INFINITE)) for name in names] for side in lists.ranks]
        scores = [[side.get(name) for name in names] for side in lists.scores]
        own = sums.get(qid)
        exact = self.explainer is not None and self.explainer.exact
        if own is not None and exact and not own.agrees(*scores):
            self._note("why documents moved is not told: the scores of the runs are not those of the functions")
            own = None
        documents = [
            Moved(
                name,
                self.titles.get(name, ""),
                lists.labels.get(name),
                lists.ranks[0].get(name),
                lists.ranks[1].get(name),
                scores[0][i],
                scores[1][i],
                worths.gains.get(name),
                () if own is None else tuple(own.reasons(i, *ranks)),
                () if own is None else tuple(own.of(i)),
            )
            for i, name in enumerate(names)
        ]
        before = None if self.judged is None else float(self.judged.before[q])
        after = None if self.judged is None else float(self.judged.after[q])
        about = (qid, self.texts.get(qid, ""), self.top, before, after, float(self.overlaps[q]))
        return QueryDiff(*about, tuple(documents), worths.flips)

    @cached_property
    def overlaps(self) -> Floats:
        """The rank-biased overlap of each query's lists."""
        return self.runs.overlaps()

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)

    def _sums(self, numbers: Sequence[int]) -> dict[str, TwoSums]:
        """What scores are made of, where the lists come from functions whose scores are sums."""
        wanted = {self.runs.qids[q]: names for q in numbers if (names := self.shown(q))}
        if self.explainer is None or not wanted:
            return {}
        try:
            return self.explainer.sums(wanted)
        except (InputError, UsageError) as error:  # the score is no sum, or a document is not in the index
            self._note(f"why documents moved is not told: {error}")
            return {}

    def _worths(self, lists: Sequence[_Lists], judged: Judged) -> list[_Worths]:
        """Of each query the flips with their worths, and what the measure pays more or less for each document."""
        if not has_flips(judged.measure):
            self._note(f"{judged.measure} does not pay by ranks alone: what flips are worth is not told")
            return [_Worths()] * len(lists)
        rows, orders = _as_rows(lists)
        found = list_flips(judged.measure, rows, orders)
        paid = [
            payments(judged.measure, rows, order, held)
            for order, held in ((orders.before, orders.held_before), (orders.after, orders.held_after))
        ]
        out: list[_Worths] = []
        for number, each in enumerate(lists):
            span = slice(*rows.offsets[number : number + 2])
            values = (judged.before[each.q], judged.after[each.q])
            if any(abs(side[span].sum() - value) > 1e-9 for side, value in zip(paid, values, strict=True)):
                self._note(f"{judged.measure} depends on the length of lists: what flips are worth is not told for all")
                out.append(_Worths())
                continue
            gains = dict(zip(each.names, (paid[1][span] - paid[0][span]).tolist(), strict=True))
            mine = np.flatnonzero(found.query == number)
            out.append(_Worths(gains, tuple(each.flip(found, int(i), int(span.start)) for i in mine)))
        return out


class _Worths(NamedTuple):
    """What the measure pays more or less for each document of a query, and what each flip was worth."""

    gains: Mapping[str, float] = {}
    flips: tuple[Flip, ...] | None = None


@dataclass(frozen=True, eq=False)
class _Lists:
    """The two lists of a query, from rank 1, and all labels of it; `names` has those of the first list first."""

    q: int
    names: list[str]
    ranks: tuple[dict[str, int], dict[str, int]]
    scores: tuple[dict[str, float], dict[str, float]]
    labels: dict[str, float]

    @classmethod
    def of(cls, details: Details, q: int) -> _Lists:
        both, scores = details.runs.ranked(q), details.runs.scores(q)
        before, after = ({name: rank for rank, name in enumerate(names, 1)} for names in both)
        known = [dict(zip(names, own.tolist(), strict=True)) for names, own in zip(both, scores, strict=True)]
        labels = {} if details.judged is None else details.judged.labels(q)
        return cls(q, list(dict.fromkeys((*both[0], *both[1]))), (before, after), (known[0], known[1]), labels)

    def flip(self, found: ListFlips, i: int, first: int) -> Flip:
        """The i-th of the flips found, whose rows of this query begin at `first`."""
        up, down = (None if row < 0 else self.names[row - first] for row in (int(found.up[i]), int(found.down[i])))
        up_label, down_label = (None if name is None else self.labels.get(name) for name in (up, down))
        return Flip(up, down, up_label, down_label, int(found.rank[i]), float(found.worth[i]))


def _as_rows(lists: Sequence[_Lists]) -> tuple[Candidates, TwoLists]:
    """The documents of these lists as judged rows, and their two orders."""
    offsets = bounds(np.array([len(each.names) for each in lists], np.int64))
    labels = [each.labels.get(name, np.nan) for each in lists for name in each.names]
    missed = [[each.labels[name] for name in each.labels.keys() - set(each.names)] for each in lists]
    orders: list[Ints] = []
    for side in (0, 1):
        rows = []
        for each, first in zip(lists, offsets.tolist(), strict=False):
            place = {name: first + i for i, name in enumerate(each.names)}
            ranked = list(each.ranks[side])
            rows += [place[name] for name in dict.fromkeys((*ranked, *each.names))]
        orders.append(np.array(rows, np.int64))
    held = [np.array([len(each.ranks[side]) for each in lists], np.int64) for side in (0, 1)]
    rows_of = Candidates(
        offsets,
        np.array(labels, np.float64),
        Candidates.of([], group=[0] * len(lists)).qids,
        missed_offsets=bounds(np.array([len(each) for each in missed], np.int64)),
        missed_labels=np.array([label for each in missed for label in each], np.float64),
    )
    return rows_of, TwoLists(orders[0], held[0], orders[1], held[1])
