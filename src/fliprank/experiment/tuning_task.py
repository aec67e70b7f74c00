"""What there is to tune on: training rows, held-out queries, and the index that both come from, if there is one.

From documents, queries and judgements (files, or a folder in BEIR's layout), or from files of term statistics. With an
index a ranking function can be run over all documents; with term statistics, over the rows that are in the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path

import numpy as np

from fliprank.data.candidates import Candidates
from fliprank.data.files import StrPath, resolve
from fliprank.data.ids import Ids, match
from fliprank.data.statistics import read_statistics
from fliprank.data.store import content_digest
from fliprank.data.trec import Qrels, Run, read_qrels
from fliprank.errors import InputError, UsageError
from fliprank.models import Model
from fliprank.text.analysis import Analyzer
from fliprank.text.index import Index, Progress
from fliprank.text.queries import read_queries

__all__ = ["Queries", "Task", "open_index", "pooled", "task_of_documents", "task_of_terms"]

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
    return Task(Queries(_with_ids(read_statistics(train))), Queries(parts[0]) if parts else None)


def task_of_documents(
    index: Index, queries: StrPath, qrels: StrPath, test: StrPath | None = None, depth: int = DEPTH
) -> Task:
    """Tune on the queries that `qrels` judges; test on those that `test`, other qrels, judges."""
    texts, notes = read_queries(queries), list[str]()
    parts: list[Queries] = []
    for path in (qrels, test):
        if path is None:
            continue
        judged = read_qrels(path)
        pool = index.pool(texts, judged, depth=depth)
        notes += [f"{Path(path).name}: {note}" for note in pool.notes if "queries have no judgements" not in note]
        known = [qid for qid in judged.qids.tolist() if qid in texts]
        parts.append(Queries(pool.candidates, {qid: texts[qid] for qid in known}, judged))
    if len(parts) > 1 and (both := sorted(parts[0].texts.keys() & parts[1].texts.keys())):
        raise InputError(
            f"{len(both)} test queries are training queries too", query=both[0], hint="a test must be of other queries"
        )
    return Task(parts[0], parts[1] if len(parts) > 1 else None, index, (*index.notes, *notes))


def open_index(
    docs: StrPath, folder: Path, fields: Sequence[str] | None, analyzer: Analyzer, progress: Progress | None = None
) -> Index:
    """The index of these documents in `folder`: as it is there, or built. Its name tells of which documents it is."""
    source = resolve(Path(docs) / "corpus.jsonl" if Path(docs).is_dir() else docs)
    made_of = f"{content_digest(source)} {fields} {analyzer}"
    place = folder / f"documents-{blake2b(made_of.encode(), digest_size=6).hexdigest()}.index"
    if place.exists():
        return Index.open(place)
    folder.mkdir(parents=True, exist_ok=True)
    return Index.build(source, place, fields=fields, analyzer=analyzer, progress=progress)


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
