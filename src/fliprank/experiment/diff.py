"""What moved between two rankings: query by query, document by document, flip by flip, and why.

>>> before = {"q1": {"d1": 3, "d2": 2}, "q2": {"d1": 2, "d3": 1}}
>>> after = {"q1": {"d2": 5, "d1": 4}, "q2": {"d1": 2, "d3": 1}}
>>> found = diff(before, after, {"q1": {"d2": 1}, "q2": {"d1": 1}}, measure="RR", docs=[{"_id": "d2", "title": "Red"}])
>>> found
<Diff RR 0.7500 -> 1.0000 over 2 queries: 1 helped, 0 hurt, 1 unchanged>
>>> [(each.title, each.before, each.after, each.gain) for each in found["q1"].moved]
[('Red', 2, 1, 0.5), ('', 1, 2, 0.0)]
>>> found["q1"].flips
(Flip(up='d2', down='d1', up_label=1.0, down_label=None, rank=1, worth=0.5),)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, overload

import numpy as np
import polars as pl

from fliprank.arrays import Ints
from fliprank.checked import checked
from fliprank.data.candidates import Candidates
from fliprank.data.trec import Qrels, Run, read_run
from fliprank.defaults import DEFAULT_MEASURE
from fliprank.errors import UsageError
from fliprank.experiment.diff_records import RECORDS, query_record
from fliprank.experiment.evaluation import evaluate, read_judgements
from fliprank.experiment.move_reasons import Explainer, rows_of_candidates, rows_of_index
from fliprank.experiment.paired_runs import pair_runs, qrels_of_rows, run_of_rows
from fliprank.experiment.query_diff import Details, Judged, QueryDiff
from fliprank.experiment.significance import Comparison
from fliprank.measures import Measure, parse_measure
from fliprank.models import Model
from fliprank.text.build.documents import Source
from fliprank.text.index import Index
from fliprank.text.search.candidates import under_ids_of
from fliprank.text.search.queries import QueriesLike, read_queries
from fliprank.text.titles import read_titles

__all__ = ["Diff", "diff"]

Ranking = Any
"""A run (file, `Run`, {query: {document: score}}, frame), or a model."""
JudgedLike = Any
"""Judgements of any kind that `evaluate` takes."""

PAGE = 64
"""Queries that are looked at together."""


@dataclass(frozen=True, eq=False)
class Diff:
    """Two rankings side by side: a sequence of `QueryDiff`, the most helped query first, the most hurt last.

    Without judgements there is no measure, and the queries whose lists moved most come first. `diff["q1"]` is one query
    by its id, `diff[0]` by its place. `comparison` has the mean change with interval and p. `notes` say what was left
    out; what could not be told of a query is added once that was looked at.
    """

    details: Details
    order: Ints
    comparison: Comparison | None = None
    means: tuple[float, float] | None = None
    given_notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.order)

    @overload
    def __getitem__(self, at: int | str) -> QueryDiff: ...
    @overload
    def __getitem__(self, at: slice) -> list[QueryDiff]: ...
    def __getitem__(self, at: int | str | slice) -> QueryDiff | list[QueryDiff]:
        if isinstance(at, slice):
            return self.details.queries(self.order[at].tolist())
        if isinstance(at, str):
            known = self.details.runs.qids.tolist()
            if at not in known:
                some = ", ".join(known[:3]) + (", ..." if len(known) > 3 else "")
                raise UsageError(f"no query is called {at!r}; there are {some or 'none'}")
            return self.details.queries([known.index(at)])[0]
        return self.details.queries([int(self.order[at])])[0]

    def __iter__(self) -> Iterator[QueryDiff]:
        for start in range(0, len(self), PAGE):
            yield from self[start : start + PAGE]

    def __repr__(self) -> str:
        if self.means is None:
            told = f"{len(self)} queries: mean overlap {self.summary()['overlap']:.4f}"
            return f"<Diff {told}, the first {self.top} the same in {self.details.runs.same(self.top)}>"
        helped, hurt, same = self.counts
        told = f"{self.means[0]:.4f} -> {self.means[1]:.4f} over {len(self)} queries"
        return f"<Diff {self.measure} {told}: {helped} helped, {hurt} hurt, {same} unchanged>"

    @property
    def top(self) -> int:
        """How many ranks of each list are looked at."""
        return self.details.top

    @property
    def measure(self) -> Measure | None:
        return None if self.details.judged is None else self.details.judged.measure

    @property
    def notes(self) -> list[str]:
        return [*self.given_notes, *self.details.notes]

    @property
    def _gains(self) -> Any:
        """The change of each query in the order of this sequence; above 0 is better."""
        judged = self.details.judged
        if judged is None:
            raise UsageError("without judgements nobody can tell which queries were helped or hurt")
        return judged.measure.sign * (judged.after - judged.before)[self.order]

    @property
    def counts(self) -> tuple[int, int, int]:
        """How many queries were helped, hurt, and neither."""
        gains = self._gains
        return int((gains > 0).sum()), int((gains < 0).sum()), int((gains == 0).sum())

    def helped(self, most: int = 3) -> list[QueryDiff]:
        """The queries that gained most."""
        return self[: min(most, self.counts[0])]

    def hurt(self, most: int = 3) -> list[QueryDiff]:
        """The queries that lost most, the worst first."""
        return self[len(self) - min(most, self.counts[1]) :][::-1]

    def summary(self) -> dict[str, Any]:
        """The figures of all queries together, for programs."""
        runs = self.details.runs
        entered, left = runs.entered_and_left(self.top)
        out: dict[str, Any] = {"queries": len(self), "top": self.top, "entered": entered, "left": left}
        out |= {"same": runs.same(self.top), "overlap": float(self.details.overlaps.mean())}
        if self.means is None:
            return out
        helped, hurt, same = self.counts
        out |= {"measure": str(self.measure), "before": self.means[0], "after": self.means[1]}
        out |= {"helped": helped, "hurt": hurt, "unchanged": same}
        if self.comparison is not None:
            c = self.comparison
            out |= {"difference": c.difference, "interval": list(c.interval), "p": c.p["randomisation"]}
        return out

    def to_dict(self, queries: Iterable[QueryDiff] | None = None) -> dict[str, Any]:
        """All of it, or some queries, as JSON holds it."""
        records = [query_record(each) for each in (self if queries is None else queries)]
        return {**self.summary(), "changes": records, "notes": self.notes}

    def to_frame(self, what: str = "documents") -> pl.DataFrame:
        """A frame with one row per query and document, per query and flip ("flips"), or per query ("queries")."""
        if what not in RECORDS:
            raise UsageError(f"to_frame: one of {', '.join(RECORDS)}, not {what!r}")
        records, schema = RECORDS[what]
        return pl.DataFrame([row for each in self for row in records(each)], schema=schema, orient="row")


@checked
def diff(
    before: Ranking,
    after: Ranking | None = None,
    qrels: JudgedLike | None = None,
    *,
    measure: str | Measure | None = None,
    top: int = 10,
    queries: QueriesLike | None = None,
    docs: Source | None = None,
    index: Index | None = None,
    rows: Candidates | None = None,
    depth: int = 1000,
    seed: int = 0,
) -> Diff:
    """What moved from one ranking to another.

    `before` and `after` are runs (files, `Run`, {query: {document: score}}, frames), or models. Models need an `index`
    and the texts of `queries`, or `rows` whose labels are then the judgements; they also tell why documents moved. Or
    `before` is the folder that `fliprank tune` wrote, alone. `qrels` are judgements of any kind that `evaluate` takes;
    `docs` are for titles. `measure` is by default that of the tuning, or nDCG@10 with exponential gain.
    """
    if top < 1:
        raise UsageError(f"top must be at least 1, not {top}")
    if after is None:
        from fliprank.experiment.diff_folder import diff_of_folder

        return diff_of_folder(before, qrels, measure=measure, top=top, queries=queries, docs=docs, seed=seed)
    judged, texts = judgements_and_texts(qrels, queries)
    explainer = None
    if isinstance(before, Model) and isinstance(after, Model):
        if rows is not None:
            explainer = Explainer(before, after, rows_of_candidates(rows))
            judged = judged or qrels_of_rows(rows)
            before, after = (run_of_rows(rows, model.score(rows)) for model in (before, after))
        elif index is not None and texts:
            explainer = Explainer(before, after, rows_of_index(index, texts))
            before, after = (index.search(texts, model, depth=depth) for model in (before, after))
        else:
            raise UsageError("to compare models, give the index and the queries that they are to search for, or rows")
    elif isinstance(before, Model) or isinstance(after, Model):
        raise UsageError("give two models or two runs: a model and a run can't be compared")
    titles = None if docs is None else partial(read_titles, docs)
    known: dict[str, Any] = {"texts": texts, "read_titles": titles, "explainer": explainer}
    return diff_of_runs(_run(before), _run(after), judged, measure=measure, top=top, seed=seed, **known)


def judgements_and_texts(qrels: Any, queries: QueriesLike | None) -> tuple[Qrels | None, dict[str, str]]:
    """Judgements, if there are any, and the texts of queries: those given, or those that the judgements have."""
    found = None if qrels is None else read_judgements(qrels)
    judged = qrels_of_rows(found) if isinstance(found, Candidates) else found
    texts = dict(judged.texts) if queries is None and judged is not None else read_queries(queries or {})
    return None if judged is None else under_ids_of(texts, judged), texts


def _run(given: Any) -> Run:
    if isinstance(given, Run):
        return given
    if isinstance(given, Mapping):
        return Run.of(given)
    return Run.from_frame(given) if hasattr(given, "columns") else read_run(given)


def diff_of_runs(
    before: Run,
    after: Run,
    qrels: Qrels | None,
    *,
    measure: str | Measure | None = None,
    top: int = 10,
    seed: int = 0,
    tested: bool = True,
    notes: tuple[str, ...] = (),
    **known: Any,
) -> Diff:
    """The same of runs and judgements that were read before; `known` is what `Details` has beside them.

    With `tested=False` it is not asked whether the change could be chance.
    """
    if qrels is None:
        details = Details(pair_runs(before, after), top, **known)
        own = tuple(_lacking(before, after))
        return Diff(details, np.argsort(details.overlaps, kind="stable"), given_notes=(*notes, *own))
    chosen = parse_measure(DEFAULT_MEASURE if measure is None else measure)
    runs = pair_runs(before, after, qrels.qids)
    found = evaluate(qrels, {"before": runs.before, "after": runs.after}, [chosen], seed=seed)
    name = found.readings[0].label
    values = found.values["before"][name], found.values["after"][name]
    details = Details(runs, top, Judged(qrels, chosen, *values), **known)
    order = np.lexsort((details.overlaps, -chosen.sign * (values[1] - values[0])))
    comparison = found.compare(seed=seed)[0] if tested else None
    means = found.mean("before", name), found.mean("after", name)
    return Diff(details, order, comparison, means, (*notes, *_unjudged(before, after, qrels)))


def _lacking(before: Run, after: Run) -> Iterator[str]:
    """Notes on queries that one of the runs lacks."""
    one, other = set(before.qids.tolist()), set(after.qids.tolist())
    for which, missing in (("the first", other - one), ("the second", one - other)):
        if missing:
            yield f"{len(missing)} queries are not in {which} run: their lists are empty there"


def _unjudged(before: Run, after: Run, qrels: Qrels) -> Iterator[str]:
    """Notes on queries that are not judged, or that a run lacks."""
    known, both = set(qrels.qids.tolist()), [set(run.qids.tolist()) for run in (before, after)]
    if extra := len((both[0] | both[1]) - known):
        yield f"{extra} queries without judgements were left out"
    for which, own in (("first", both[0]), ("second", both[1])):
        if missing := len(known - own):
            yield f"{missing} judged queries are not in the {which} run: their lists are empty there"
    yield from qrels.notes
