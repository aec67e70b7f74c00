"""What there is to tune on: training rows, held-out queries, and the index that both come from, if there is one.

From documents, queries and judgements (files, or a folder in BEIR's layout), or from files of term statistics. With an
index a ranking function can be run over all documents; with term statistics, over the rows that are in the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from fliprank.data.candidates import Candidates
from fliprank.data.files import StrPath, resolve
from fliprank.data.ids import Ids, match
from fliprank.data.query_doc_table import first_unfit
from fliprank.data.store import content_digest
from fliprank.data.term_statistics_jsonl import read_statistics
from fliprank.data.trec import Qrels, Run, read_qrels
from fliprank.errors import InputError, UsageError
from fliprank.measures import Measure
from fliprank.models import Model
from fliprank.text.analysis import Analyzer
from fliprank.text.index import VERSION, Index, Progress
from fliprank.text.search.candidates import list_some
from fliprank.text.search.queries import read_queries

__all__ = [
    "JudgedQueries",
    "Queries",
    "Task",
    "check_measure",
    "open_index",
    "pooled",
    "read_judged_queries",
    "task_of_documents",
    "task_of_judged_queries",
    "task_of_terms",
]

DEPTH = 1000
"""Documents a query that are tuned on, beside the judged ones: the top of BM25, later also of what was tuned."""


@dataclass(frozen=True, eq=False)
class Queries:
    """Queries with judgements: rows to score; with an index also what was asked, and the judgements themselves."""

    rows: Candidates
    texts: dict[str, str] = field(default_factory=dict)
    qrels: Qrels | None = None


@dataclass(frozen=True, eq=False)
class Task:
    """Queries to tune on, and perhaps others to test on; `notes` say what was left out."""

    train: Queries
    test: Queries | None = None
    index: Index | None = None
    notes: tuple[str, ...] = ()

    def run(self, queries: Queries, model: Model, depth: int = DEPTH) -> Run:
        """The ranking of a model: over the whole index, or of the rows where there is none."""
        if self.index is not None:
            return replace(self.index.search(queries.texts, model, depth=depth), name=model.kind)
        rows = queries.rows
        assert rows.docids is not None
        return Run(rows.offsets, rows.qids, rows.docids, model.score(rows), model.kind)


def task_of_terms(train: StrPath, test: Sequence[StrPath] = ()) -> Task:
    """Tune on a file of term statistics; test on others."""
    parts = [_with_ids(read_statistics(path)) for path in test]
    if len(parts) > 1:
        raise UsageError("one --test file of term statistics at a time")
    rows = _with_ids(read_statistics(train))
    if parts:
        _check_apart(_words(rows), _words(parts[0]), test[0])
    return Task(Queries(rows), Queries(parts[0]) if parts else None)


def _words(rows: Candidates) -> dict[str, str]:
    """The terms of each query; files may number their queries alike, so that ids alone do not tell them apart."""
    assert rows.terms is not None
    terms, ends = rows.terms.terms.tolist(), rows.terms.offsets
    return {qid: " ".join(terms[ends[q] : ends[q + 1]]) for q, qid in enumerate(rows.qids.tolist())}


def _check_apart(train: dict[str, str], test: dict[str, str], path: StrPath) -> None:
    """An error where a test would be of queries that were tuned on."""
    if both := dict(train.items() & test.items()):
        hint = "a test must be of other queries"
        raise InputError(f"{len(both)} test queries are training queries too", path=path, query=min(both), hint=hint)


@dataclass(frozen=True, eq=False)
class JudgedQueries:
    """What queries ask, and the judgements to tune on, and perhaps others to test on, each by the name of its file."""

    texts: dict[str, str]
    judged: tuple[tuple[str, Qrels], ...]


def read_judged_queries(queries: StrPath, qrels: StrPath, test: StrPath | None = None) -> JudgedQueries:
    """Queries and judgements, checked against each other: before documents are indexed, which may take long."""
    texts = read_queries(queries)
    judged = [(Path(path), read_qrels(path)) for path in (qrels, test) if path is not None]
    for path, each in judged:
        _check_judgements(path, each, texts)
    if len(judged) > 1:
        _check_apart(_known(judged[0][1], texts), _known(judged[1][1], texts), judged[1][0])
    return JudgedQueries(texts, tuple((path.name, each) for path, each in judged))


def _known(qrels: Qrels, texts: dict[str, str]) -> dict[str, str]:
    """The judged queries that have a text."""
    return {qid: texts[qid] for qid in qrels.qids.tolist() if qid in texts}


def _check_judgements(path: Path, qrels: Qrels, texts: dict[str, str]) -> None:
    """An error where there is nothing to learn from."""
    if not len(qrels):
        raise InputError("all labels are negative, which says: not judged", path=path)
    if not _known(qrels, texts):
        have, want = (", ".join(list(ids)[:3]) for ids in (texts, qrels.qids.tolist()))
        raise InputError("no query has judgements", path=path, hint=f"queries: {have}; judged: {want}")
    if not (qrels.labels > 0).any():
        raise InputError("no label is above 0: no document is relevant to any query", path=path)


def task_of_documents(
    index: Index, queries: StrPath, qrels: StrPath, test: StrPath | None = None, depth: int = DEPTH
) -> Task:
    """Tune on the queries that `qrels` judges; test on those that `test`, other qrels, judges."""
    return task_of_judged_queries(index, read_judged_queries(queries, qrels, test), depth)


def task_of_judged_queries(index: Index, asked: JudgedQueries, depth: int = DEPTH) -> Task:
    """The same, where queries and judgements were read before."""
    notes, parts = list[str](), list[Queries]()
    for name, judged in asked.judged:
        try:
            pool = index.pool(asked.texts, judged, depth=depth)
        except InputError as error:
            raise InputError(error.message, path=name, query=error.query, hint=error.hint) from error
        if pool.lost == pool.candidates.queries:
            qid, text = next(iter(_known(judged, asked.texts).items()))
            hint = f"{qid} is {text[:60]!r}; are stemmer and stop words those of its language?"
            raise InputError("no query has a term that some document has", path=name, hint=hint)
        told = [note for note in pool.notes if "queries have no judgements" not in note]
        notes += [f"{name}: {note}" for note in (*told, *_remarks(judged, pool.candidates))]
        parts.append(Queries(pool.candidates, _known(judged, asked.texts), judged))
    return Task(parts[0], parts[1] if len(parts) > 1 else None, index, (*index.notes, *notes))


def _remarks(judged: Qrels, rows: Candidates) -> Iterator[str]:
    """What is odd about judgements, though they can be used."""
    if judged.unjudged:
        yield f"{judged.unjudged:,} labels are negative, which says: not judged"
    relevant = np.zeros(rows.queries, bool)
    relevant[rows.query_of_rows()[rows.labels > 0]] = True
    missed = np.repeat(np.arange(rows.queries), np.diff(rows.missed_offsets))
    relevant[missed[rows.missed_labels > 0]] = True
    if not relevant.all():
        yield list_some(rows.queries, "queries have no relevant document", rows.qids.take(np.flatnonzero(~relevant)))


def check_measure(task: Task, measure: Measure) -> None:
    """An error where the measure of even the best ranking is 0 or no number: nothing could be tuned for it."""
    for part, rows in (("training", task.train.rows), ("test", None if task.test is None else task.test.rows)):
        if rows is None:
            continue
        with np.errstate(over="ignore", invalid="ignore"):
            best = measure.per_query(np.nan_to_num(rows.labels), rows)
        if np.isnan(best).any():
            query, most = int(np.isnan(best).argmax()), float(np.nanmax(rows.labels))
            hint = f"the largest label is {most:g}; nDCG@10 takes labels as gains, where exp-log2 takes 2^label - 1"
            raise InputError(f"{measure} is not a number", query=rows.qids[query], hint=hint)
        if not best.any() and not measure.smaller_is_better:
            raise InputError(
                f"{measure} is 0 on all {part} queries, be the ranking the best: are labels, or relevant documents, "
                "missing?"
            )


def open_index(
    docs: StrPath,
    folder: Path,
    fields: Sequence[str] | None,
    analyzer: Analyzer,
    progress: Progress | None = None,
    *,
    anchors: StrPath | None = None,
    links: StrPath | None = None,
) -> Index:
    """The index of these documents in `folder`: as it is there, or built. Its name tells of which documents it is."""
    source = resolve(Path(docs) / "corpus.jsonl" if Path(docs).is_dir() else docs)
    files = [None if path is None else content_digest(resolve(path)) for path in (source, anchors, links)]
    made_of = f"{VERSION} {files} {fields} {analyzer}"
    place = folder / f"documents-{blake2b(made_of.encode(), digest_size=6).hexdigest()}.index"
    index = _opened(place)
    if index is None:
        folder.mkdir(parents=True, exist_ok=True)
        how: dict[str, Any] = {"fields": fields, "analyzer": analyzer, "anchors": anchors, "links": links}
        index = Index.build(source, place, progress=progress, **how)
    if (bad := first_unfit(*index.docids.arrays)) >= 0:
        hint = "runs and qrels are parted by it: give the document another id"
        raise InputError(f"the id {index.docids[bad]!r} has white space", path=source, hint=hint)
    return index


def _opened(place: Path) -> Index | None:
    """The index that was built before; None where there is none, or it is damaged or of another version."""
    try:
        return Index.open(place, check=True) if place.exists() else None
    except InputError:
        return None


def pooled(task: Task, model: Model, depth: int = DEPTH, watch: int = 10) -> tuple[Task, int]:
    """The task with the top of a tuned model among its training rows, and how many of its first `watch` were new."""
    if task.index is None:
        return task, 0
    before = task.train.rows
    texts, qrels = task.train.texts, task.train.qrels
    rows = task.index.candidates(texts, qrels, depth=depth, ranker=[None, model])
    return replace(task, train=replace(task.train, rows=rows)), _new_at_top(before, rows, model, watch)


def _new_at_top(before: Candidates, after: Candidates, model: Model, watch: int) -> int:
    """How many documents among the first `watch` of `after` are not in `before`."""
    top = after.top(model.score(after), watch)
    assert top.docids is not None
    assert before.docids is not None
    found = match(top.docids, top.offsets, before.docids, before.offsets, np.arange(top.queries))
    return int((found < 0).sum())


def _with_ids(rows: Candidates) -> Candidates:
    """The rows with ids of documents: their numbers where they have none."""
    if rows.docids is not None:
        return rows
    return replace(rows, docids=Ids.of([f"row{i + 1}" for i in np.arange(len(rows))]))
